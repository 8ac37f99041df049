"""What a reading verb needs of the archive: which of its months, and what to say where they are not at hand."""

from __future__ import annotations

import re

from gpuledger.errors import NotFound, Unavailable
from gpuledger.ledger.archived import archived_until, is_laid, may_hold
from gpuledger.ledger.kinds import KINDS
from gpuledger.ledger.laying import months_of
from gpuledger.ledger.store import Ledger
from gpuledger.model.archive import Archive
from gpuledger.model.durations import several
from gpuledger.model.explanation import Explanation
from gpuledger.model.moments import HOUR_US, iso
from gpuledger.model.rows import DriverRecord, Row, Sighting, UsageCorrection, UsageRecord
from gpuledger.model.workload_rows import ExpectedEnd, Hold, WorkloadEvent
from gpuledger.operations.evidence import end_of, start_of

_REF = re.compile(r"([a-z]+):(.+)/([0-9]{1,18})", re.DOTALL)
_KINDS = frozenset(kind.row.kind for kind in KINDS)


def archived_between(ledger: Ledger, since_us: int, until_us: int) -> list[Archive]:
    """What left of the time [since, until) and does not lie under this reading."""
    if _is_laid(ledger) or since_us >= archived_until(ledger):
        return []
    return [row for row in ledger.scan(Archive) if row.first_us < until_us and row.last_us >= since_us]


def _is_laid(ledger: Ledger) -> bool:
    with ledger.mapped():
        return is_laid(ledger.connection)


def holding(ledger: Ledger, ref: str) -> list[Archive]:
    """What left and may hold the row behind a reference that the ledger does not have; nothing where it has it."""
    parts = _REF.fullmatch(ref)
    if parts is None or parts[1] not in _KINDS or _is_laid(ledger):
        return []
    try:
        ledger.get(ref)
    except NotFound:
        rows = [row for row in ledger.scan(Archive) if row.rows_of == parts[1]]
        return [row for row in rows if may_hold(row.writers, parts[2], int(parts[3]))]
    return []


def needed_for(ledger: Ledger, ref: str, since_us: int, until_us: int) -> list[Archive]:
    """What the way down from a reference needs: the row itself, or what it rests on.

    Args:
        ref: a row, or a line of usage.
        since_us, until_us: the window of a line.
    """
    if left := holding(ledger, ref):
        return left
    parts = _REF.fullmatch(ref)
    if parts is not None and parts[1] in _KINDS and parts[2] in ledger.writers():
        span = _span(ledger.get(ref))
        return archived_between(ledger, *span) if span else []
    return archived_between(ledger, since_us, until_us)


def _span(row: Row) -> tuple[int, int] | None:
    """The time whose evidence stands behind a row, or beside it."""
    match row:
        case UsageRecord() | UsageCorrection():
            return row.hour_us, row.hour_us + HOUR_US
        case DriverRecord():
            return start_of(row), end_of(row) + 1
        case Sighting():
            return row.since_us, row.until_us + 1
        case WorkloadEvent() | Hold() | ExpectedEnd():
            return row.at_us, row.at_us + 1
        case _:
            return None


def note_of(left: list[Archive], ref: str) -> Explanation:
    """A node that says where the rest of the way is."""
    return Explanation(
        title=f"the evidence of {months_of(left)} is archived: gpuledger explain {ref} --archive FOLDER",
        figures=(
            ("archived_rows", sum(row.row_count for row in left)),
            ("folder", left[-1].folder),
        ),
        refs=tuple(row.ref for row in left),
    )


def missing(left: list[Archive], what: str, command: str = "", *, hint: str = "") -> Unavailable:
    """The error where nothing can be said without the archive.

    Args:
        left: what is needed of it.
        what: what cannot be said, the beginning of a sentence.
        command: what to type, without the option.
        hint: what helps instead, where verbs ask that do not have the option.
    """
    gone = several(sum(row.row_count for row in left), "row")
    return Unavailable(
        "archive-missing",
        f"{what}: {gone} of {months_of(left)} left the ledger for {left[-1].folder}, on {iso(left[-1].archived_at_us)}",
        hint=hint or f"{command} --archive FOLDER   (or GPULEDGER_ARCHIVE=FOLDER)",
    )
