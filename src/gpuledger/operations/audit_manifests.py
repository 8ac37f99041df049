"""``audit manifests``: read, judge, lay waivers over it."""

from __future__ import annotations

from collections.abc import Sequence
from os.path import normpath
from pathlib import Path

from gpuledger.audit.exception_drafts import DraftKind
from gpuledger.audit.kustomize import NAMES, kustomization_references
from gpuledger.audit.manifests import WantedDraft, audit_manifests
from gpuledger.errors import Misconfigured
from gpuledger.model.findings import AuditReport, Written
from gpuledger.model.problem import Problem
from gpuledger.operations.audit_files import gather, judged, waivers_of

SUFFIXES = (".yaml", ".yml", ".json", ".tpl", "kustomization")
"""Files of a folder that can hold manifests; a kustomization may have no suffix."""

_MOST_ROUNDS = 20
"""Bases of bases that are followed."""


def manifests(
    paths: Sequence[Path],
    *,
    waivers: Path | None,
    draft: str,
    owner: str,
    until_us: int | None,
    namespace: str,
    now_us: int,
) -> AuditReport:
    """Judge the exporters of files and folders.

    Args:
        paths: what to read; ``-`` for stdin.
        waivers: a file of waivers.
        draft: ``plain`` or ``kyverno`` to draft the exception too; empty for none.
        owner, until_us, namespace: who signs the draft, when it ends, and where the exporter runs if no text says so.
        now_us: the present.

    Raises:
        BadInput: a path that is not there, or a waiver that lacks something.
        Misconfigured: ``bad-draft``, or no namespace to draft for.
        Refused: a draft without owner or end.
    """
    given = waivers_of(waivers)
    if draft and draft not in set(DraftKind):
        raise Misconfigured("bad-draft", f"{draft!r} is no kind of draft", hint="--draft plain, or --draft kyverno")
    wanted = WantedDraft(kind=DraftKind(draft), owner=owner, until_us=until_us, namespace=namespace) if draft else None
    texts, unread = gather(paths, suffixes=SUFFIXES)
    more, wrong = _referenced(texts, unread)
    texts, unread = (*texts, *more), (*unread, *wrong)
    report = audit_manifests(texts, now_us=now_us, wanted=wanted)
    return judged(report, texts=texts, waivers=given, unread=unread, now_us=now_us)


def _referenced(texts: Sequence[Written], before: Sequence[Problem]) -> tuple[tuple[Written, ...], tuple[Problem, ...]]:
    """What kustomizations name beside them and nobody gave: bases, patches, values; as ``kubectl kustomize`` does.

    Args:
        texts: what was given; with all that is read here it stays within the bounds of one call.
        before: what of it was not read; these are files too.
    """
    known = {normpath(written.path) for written in texts}
    new: Sequence[Written] = texts
    found: list[Written] = []
    unread: list[Problem] = []
    for number in range(_MOST_ROUNDS + 1):
        named = [Path(name) for written in new for name in kustomization_references(written)]
        files = [file for path in named for file in (_kustomization_of(path) if path.is_dir() else [path])]
        wanted = [file for file in dict.fromkeys(files) if file.is_file() and normpath(file) not in known]
        if not wanted:
            break
        if number == _MOST_ROUNDS:
            message = f"bases of bases for more than {_MOST_ROUNDS} rounds; this and the others were not read"
            message += ": kubectl kustomize OVERLAY | gpuledger audit manifests -"
            unread.append(Problem(code="kustomize-not-built", message=message, where=str(wanted[0])))
            break
        signs = sum(len(written.text) for written in (*texts, *found))
        new, wrong = gather(wanted, suffixes=SUFFIXES, files_before=len(known) + len(before), signs_before=signs)
        known |= {normpath(file) for file in wanted}
        found += new
        unread += wrong
    return tuple(found), tuple(unread)


def _kustomization_of(folder: Path) -> list[Path]:
    return [folder / name for name in NAMES if (folder / name).is_file()][:1]
