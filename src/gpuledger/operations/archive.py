"""``archive``: old evidence leaves for sealed files by month. Records, corrections, passes and seals stay.

In the order of things: nothing of the time may wait; what was recorded of it must follow from it; the files are written
and read back; and only then do the rows go, in the transaction that says so in the ledger.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from pathlib import Path

from gpuledger.errors import Corrupt, GpuledgerError, Misconfigured, Refused
from gpuledger.ledger.archive_files import RowsHash, Run, Written, left_over
from gpuledger.ledger.archived import archived_until, still_here
from gpuledger.ledger.dropping import drop, dropped
from gpuledger.ledger.engine import engine_of
from gpuledger.ledger.kinds import KIND_OF
from gpuledger.ledger.leaving import LEAVE, REASONS, Leaving
from gpuledger.ledger.reserved import reading
from gpuledger.ledger.store import Ledger
from gpuledger.ledger.verify import verify_ledger
from gpuledger.model.archive import Archive, ArchiveReport, LeavingLine, StayingLine
from gpuledger.model.durations import several
from gpuledger.model.lake import month_of, month_span
from gpuledger.model.missing import Missing
from gpuledger.model.moments import HOUR_US, hour_floor, iso
from gpuledger.model.problem import Problem
from gpuledger.model.rows import Pass, Row
from gpuledger.model.workload_rows import WorkloadEvent
from gpuledger.operations.correct import due
from gpuledger.operations.finality import Finality
from gpuledger.operations.touched import seen_by, touched_hours
from gpuledger.operations.verify import differences_of_processes
from gpuledger.operations.verify_reserved import differences

_UNWRITTEN = Missing("nothing was written")
_BATCH = 20_000
_EARLIEST_US = -(2**62)
_BEFORE_COMMIT = ("archive-overtaken", "not-owner", "ledger-busy", "ledger-full", "ledger-permission")
"""Errors after which it is certain that no row left, though others may hold the locks for long."""


def archive(
    ledger: Ledger,
    *,
    before_us: int,
    folder: Path | None,
    done: bool,
    now_us: int,
    writer: str,
    progress: Callable[[int, int], None] | None = None,
) -> ArchiveReport:
    """Say what would leave the ledger, or let it leave.

    Args:
        ledger: open to append where it is to be done.
        before_us: whole UTC months before this.
        folder: the archive's folder.
        done: write it, and drop the rows; else nothing is changed.
        now_us: the time at which hours are final.
        writer: chain to write to, ``HOST.archive``.
        progress: called with rows done and rows in all.

    Raises:
        Refused: ``not-final``, ``late-evidence``, ``records-differ``, ``archived-already``; on PostgreSQL
            ``not-owner``.
        Misconfigured: ``bound-ahead``, ``no-folder``, ``archive-folder``.
        Unavailable: ``archive-unwritable``, ``archive-overtaken``, ``missing-extra``.
        Corrupt: ``ledger-damaged``, ``archive-damaged``.
    """
    bound_us = month_span(month_of(before_us))[0]
    if bound_us > now_us:
        raise Misconfigured(
            "bound-ahead", f"{iso(bound_us)} lies ahead, and only months that are over leave",
            hint=f"gpuledger archive --before {month_of(now_us)}",
        )  # fmt: skip
    if done:
        if folder is None:
            raise Misconfigured(
                "no-folder", "nothing says where it goes", hint="gpuledger archive ... --to FOLDER --yes"
            )
        with ledger.mapped():
            engine_of(ledger.connection).refuse_to_drop(ledger.connection)
    first_us, _ = ledger.span_of(LEAVE)
    where = "" if folder is None else str(folder.absolute())
    if isinstance(first_us, Missing) or first_us >= bound_us:
        return ArchiveReport(done=False, before_us=bound_us, folder=where, leaving=(), staying=())
    _refuse_a_copy(ledger)
    marks = ledger.marks()
    from_us = max(hour_floor(first_us), archived_until(ledger))
    _refuse_unfinished(ledger, marks, from_us, bound_us, now_us=now_us)
    leaving = Leaving(ledger, bound_us, _months(first_us, bound_us), _unplaced(ledger, marks, bound_us))
    staying = tuple(
        StayingLine(rows_of=kind.kind, row_count=count, reason=REASONS[reason])
        for (kind, reason), count in leaving.staying.items()
    )
    problems = [] if folder is None else _left_over(ledger, folder)
    if not done or folder is None:
        lines = tuple(_line(month, kind, _counted(leaving, kind, month)) for month, kind in _files(leaving))
        return ArchiveReport(
            done=False, before_us=bound_us, folder=where, leaving=lines, staying=staying, problems=tuple(problems)
        )
    _refuse_damaged(ledger)
    _refuse_different(ledger, from_us, bound_us, now_us=now_us)
    files = list(_files(leaving))
    if not files:
        return ArchiveReport(
            done=False, before_us=bound_us, folder=where, leaving=(), staying=staying, problems=tuple(problems)
        )
    with Run(folder) as run:
        written: list[tuple[str, type[Row], Written]] = []
        for place, (month, kind) in enumerate(files, start=1):
            file = run.write(KIND_OF[kind], month, leaving.rows(kind, month, _BATCH))
            written.append((month, kind, file))
            if progress is not None:
                progress(place, len(files))
        root = ledger.latest_root()
        run.finish(
            {"ledger": str(ledger.place), "archived_at": iso(now_us), "before": iso(bound_us),
             "root": "" if isinstance(root, Missing) else root}
        )  # fmt: skip
        rows = [
            _row(leaving, month, kind, file, bound_us=bound_us, folder=where, now_us=now_us)
            for month, kind, file in written
        ]
        names = {row.file_name for row in rows}
        try:
            drop(ledger, rows, marks=marks, writer=writer, at_us=now_us)
        except GpuledgerError as error:
            if _surely_stayed(ledger, names, error):
                run.undo()
            raise
    root = ""
    try:
        root = ledger.seal(now_us, writer=writer).root
    except GpuledgerError as error:  # the rows are gone all the same, and the next seal covers what says so
        problems.append(Problem(code=error.code, message=f"it is done, and not sealed yet: {error.message}"))
    return ArchiveReport(
        done=True,
        before_us=bound_us,
        folder=where,
        leaving=tuple(_line(month, kind, file) for month, kind, file in written),
        staying=staying,
        root=root,
        problems=tuple(problems),
    )


def _surely_stayed(ledger: Ledger, names: Collection[str], error: GpuledgerError) -> bool:
    """Whether nothing left with these files, and nothing can any more.

    Where the connection was cut it is asked under the locks of the transaction that would have done it: the server may
    still be at work, and holds them to its end. Where the server is away nobody can tell.
    """
    if error.code in _BEFORE_COMMIT:
        return not any(row.file_name in names for row in ledger.scan(Archive))
    with suppress(GpuledgerError):
        return not dropped(ledger, names)
    return False


def _left_over(ledger: Ledger, folder: Path) -> list[Problem]:
    """Folders of runs that did not come to their end, which somebody may delete."""
    known = {row.file_name.partition("/")[0] for row in ledger.scan(Archive)}
    return [
        Problem(
            code="archive-left-over",
            message=f"{why}, and no row of the ledger names it: delete it, if no run writes at this moment",
            where=str(path),
        )
        for path, why in left_over(folder, str(ledger.place), known)
    ]


def _refuse_a_copy(ledger: Ledger) -> None:
    """Raise where rows that left the original stand here still: they would leave a second time, into other files."""
    with ledger.mapped():
        count = still_here(ledger.connection)
    if count:
        raise Refused(
            "archived-already",
            f"{several(count, 'row')} of this ledger left the one it was copied from, for an archive; here they still "
            "stand, and their file must stay the only one",
            hint="copy it anew into an empty ledger: what left is not copied: gpuledger copy FROM TO",
        )


def _refuse_unfinished(ledger: Ledger, marks: dict[str, int], from_us: int, bound_us: int, *, now_us: int) -> None:
    """Raise where anything of the time before the bound can still change."""
    passes = list(ledger.scan(Pass))
    finality = Finality(passes, now_us=now_us)
    begins_us = max(from_us, finality.spans[0][0]) if finality.spans else from_us  # nothing before was ever counted
    for hour_us in range(begins_us, bound_us, HOUR_US):
        if not finality.is_final(hour_us):
            final_us = finality.final_from(hour_us)
            when = "no pass has covered it" if isinstance(final_us, Missing) else f"it will be at {iso(final_us)}"
            hint = "gpuledger meter"
            if not isinstance(final_us, Missing):
                hint = f"the same again from {iso(final_us)} on, or gpuledger archive --before EARLIER-MONTH"
            raise Refused("not-final", f"the hour {iso(hour_us)} is not final: {when}; nothing leaves", hint=hint)
    waiting = {hour for hour in touched_hours(ledger, passes, marks) if hour < bound_us}
    unseen = list(ledger.scan(WorkloadEvent, until_us=bound_us, after=seen_by(passes), upto=marks, limit=1))
    if waiting or unseen:
        said = several(len(waiting), "hour") if waiting else unseen[0].ref
        raise Refused(
            "not-final", f"evidence of the time before {iso(bound_us)} waits for a pass ({said}); nothing leaves",
            hint="gpuledger meter",
        )  # fmt: skip
    late = due(ledger, passes, marks, since_us=from_us, until_us=bound_us, now_us=now_us).late
    if late:
        raise Refused(
            "late-evidence",
            f"{several(len(late), 'final hour')} before {iso(bound_us)} differ from evidence that came late, from "
            f"{iso(min(one.hour_us for one in late))} on: once it left nobody could book it",
            hint='gpuledger correct --reason "..." --by NAME --yes',
        )


def _refuse_damaged(ledger: Ledger) -> None:
    """Raise where the rows themselves are not those that were written: no archive could be checked against them."""
    for found in verify_ledger(ledger):
        raise Corrupt(
            "ledger-damaged", f"{found.where}: {found.sentence}; nothing leaves a damaged ledger",
            hint="gpuledger verify   (then restore from a backup)",
        )  # fmt: skip


def _refuse_different(ledger: Ledger, from_us: int, bound_us: int, *, now_us: int) -> None:
    """Raise where a recorded hour of the time does not follow from its evidence."""
    passes = list(ledger.scan(Pass))
    found = differences_of_processes(ledger, passes, seen_by(passes), since_us=from_us, until_us=bound_us)
    found = found or list(differences(ledger, now_us=now_us, since_us=from_us, until_us=bound_us))
    if found:
        raise Refused(
            "records-differ",
            f"{several(len(found), 'record')} of the time before {iso(bound_us)} do not follow from their evidence "
            f"({found[0]}); nothing leaves",
            hint="gpuledger verify",
        )


def _unplaced(ledger: Ledger, marks: dict[str, int], bound_us: int) -> set[str]:
    """Workloads that run nobody knows where: once a placement arrives, they are counted from their events."""
    with reading(ledger, marks) as read:
        read.want_doubtful(0, bound_us)
        read.derive((), until_us=bound_us, cut=False)
        return {held.workload for held in read.held(_EARLIEST_US, bound_us, {""})}


def _months(first_us: int, bound_us: int) -> list[tuple[str, int, int]]:
    found = []
    at_us = first_us
    while at_us < bound_us:
        month = month_of(at_us)
        found.append((month, *month_span(month)))
        at_us = found[-1][2]
    return found


def _files(leaving: Leaving) -> Iterator[tuple[str, type[Row]]]:
    """Month and kind of each file, oldest month first."""
    yield from sorted(
        ((month, kind) for kind in LEAVE for month in leaving.months(kind)),
        key=lambda each: (each[0], LEAVE.index(each[1])),
    )


def _counted(leaving: Leaving, kind: type[Row], month: str) -> Written:
    """What a file would hold."""
    told = RowsHash(kind.kind)
    for batch in leaving.rows(kind, month, _BATCH):
        told.add(batch)
    return told.written()


def _line(month: str, kind: type[Row], file: Written) -> LeavingLine:
    return LeavingLine(
        month=month,
        rows_of=kind.kind,
        row_count=file.row_count,
        size=file.size,
        file_name=file.name,
        file_size=file.file_size if file.name else _UNWRITTEN,
    )


def _row(
    leaving: Leaving, month: str, kind: type[Row], file: Written, *, bound_us: int, folder: str, now_us: int
) -> Archive:
    first_us, last_us = leaving.span(kind, month)
    return Archive(
        archived_at_us=now_us,
        before_us=bound_us,
        month=month,
        rows_of=kind.kind,
        row_count=file.row_count,
        first_us=first_us,
        last_us=last_us,
        writers=json.dumps(file.writers, sort_keys=True, separators=(",", ":")),
        rows_hash=file.rows_hash,
        file_name=file.name,
        file_hash=file.file_hash,
        folder=folder,
    )
