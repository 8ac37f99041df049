"""What every ``audit`` reads and ends with: files and folders within bounds, and waivers laid over the report."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from gpuledger.audit.waivers import apply_waivers, parse_waivers, waivers_in
from gpuledger.errors import BadInput
from gpuledger.model.findings import AuditReport, Waiver, Written
from gpuledger.model.problem import Problem
from gpuledger.operations.reading_files import read_text

MOST_BYTES = 64 * 1024 * 1024
"""Of one file. The largest dashboards have 2 MB; a Node has 20 KB as JSON, so this holds 3,000 of them."""

MOST_FILES = 20_000
"""Of one call, so that a mistyped folder does not read a disk."""

MOST_SIGNS = 256 * 1024 * 1024
"""Of all texts of one call: they are held together, since rules and roles of one belong to others."""

_HINT = "give the text file itself"


def gather(
    paths: Sequence[Path], *, suffixes: Sequence[str], files_before: int = 0, signs_before: int = 0
) -> tuple[tuple[Written, ...], tuple[Problem, ...]]:
    """The texts of files and folders, in the order given, folders by name.

    Args:
        paths: a file of any name, ``-`` for stdin, or a folder, of which files with one of the suffixes are taken.
        suffixes: such as ``.yaml``.
        files_before, signs_before: what the same call has read already; its bounds are of all.

    Returns:
        The texts, and one problem for each file that is there and could not be read as text.

    Raises:
        BadInput: ``unreadable-file`` where a path that was named is not there.
    """
    texts: list[Written] = []
    unread: list[Problem] = []
    held = signs_before
    files = _files(paths, tuple(suffix.lower() for suffix in suffixes), unread)
    for number, (path, named) in enumerate(files, start=files_before):
        if number >= MOST_FILES:
            message = f"more than {MOST_FILES:,} files; the others were not read"
            unread.append(Problem(code="too-many-files", message=message, where=str(path)))
            break
        if not named and not path.is_file():  # a pipe would wait for ever
            message = "no file: a link to nothing, a pipe or a device"
            unread.append(Problem(code="unreadable-file", message=message, where=str(path)))
            continue
        try:
            text = read_text(path, most=MOST_BYTES, hint=_HINT)
        except BadInput as error:
            place = f"{error.path}:{error.line}" if error.line else error.path
            message = error.message.removeprefix(f"{place}: ")
            unread.append(Problem(code=error.code, message=message, where=place))
            continue
        held += len(text)
        if held > MOST_SIGNS:
            message = f"more than {MOST_SIGNS // 1024**2:,} Mi signs in all; this and the others were not read"
            unread.append(Problem(code="too-many-files", message=message, where=str(path)))
            break
        texts.append(Written(path=str(path), text=text))
    return tuple(texts), tuple(unread)


def _files(paths: Sequence[Path], suffixes: tuple[str, ...], unread: list[Problem]) -> Iterator[tuple[Path, bool]]:
    """Every file, and whether it was named itself."""
    for path in paths:
        if path.is_dir():
            yield from ((inside, False) for inside in _within(path, suffixes, unread))
        elif str(path) == "-" or path.exists():
            yield path, True
        else:
            raise BadInput("unreadable-file", "no such file or folder", path=str(path), hint="check the path")


def _within(folder: Path, suffixes: tuple[str, ...], unread: list[Problem]) -> Iterator[Path]:
    """Files below a folder by name; links to folders are not followed, and hidden folders (.git) are left out."""

    def closed(error: OSError) -> None:
        message = f"a folder that cannot be read: {error.strerror}"
        unread.append(Problem(code="unreadable-file", message=message, where=str(error.filename)))

    for place, folders, names in os.walk(folder, onerror=closed):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            if name.lower().endswith(suffixes):
                yield Path(place) / name


def waivers_of(file: Path | None) -> tuple[Waiver, ...]:
    """The waivers of a file; none without one.

    Raises:
        BadInput: where the file cannot be read, or a waiver lacks its reason, owner or expiry.
    """
    if file is None:
        return ()
    return parse_waivers(Written(path=str(file), text=read_text(file, most=MOST_BYTES, hint=_HINT)))


def judged(
    report: AuditReport, *, texts: Sequence[Written], waivers: Sequence[Waiver], unread: Sequence[Problem], now_us: int
) -> AuditReport:
    """A report with what was not read before it, and with the waivers of a file and of comments laid over it.

    Args:
        report: of a pure audit.
        texts: what was audited; comments in it are waivers too.
        waivers: of the file.
        unread: what could not even be read as text; stands before what could not be parsed.
        now_us: what an expiry is compared with, microseconds UTC.
    """
    said: list[Waiver] = list(waivers)
    refused: list[Problem] = []
    for written in texts:
        in_text, wrong = waivers_in(written.text, written.path)
        said += in_text
        refused += wrong
    whole = AuditReport(
        audit=report.audit, looked=report.looked, findings=report.findings, unread=(*unread, *report.unread),
        notes=(*report.notes, *refused), facts=report.facts, checklist=report.checklist, draft=report.draft,
        checks=report.checks,
    )  # fmt: skip
    return apply_waivers(whole, said, now_us)
