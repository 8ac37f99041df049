"""``audit manifests``: read, judge, lay waivers over it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from gpuledger.audit.exception_drafts import DraftKind
from gpuledger.audit.manifests import WantedDraft, audit_manifests
from gpuledger.errors import Misconfigured
from gpuledger.model.findings import AuditReport
from gpuledger.operations.audit_files import gather, judged, waivers_of

SUFFIXES = (".yaml", ".yml", ".json", ".tpl")
"""Files of a folder that can hold manifests."""


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
    report = audit_manifests(texts, now_us=now_us, wanted=wanted)
    return judged(report, texts=texts, waivers=given, unread=unread, now_us=now_us)
