"""``correct``: books what came late for final hours of reserved time, with a reason and a name.

A pass only lists it (``late-evidence``): whoever issued a statement of these hours must know of a change.
"""

from __future__ import annotations

from gpuledger.errors import Misconfigured, Unavailable
from gpuledger.ledger.archived import archived_until
from gpuledger.ledger.reserved import reading
from gpuledger.ledger.store import Ledger
from gpuledger.metering.records import LATE_EVIDENCE, closed_until
from gpuledger.model.missing import Missing
from gpuledger.model.moments import hour_floor
from gpuledger.model.outcomes import CorrectReport
from gpuledger.model.reserved import Booking
from gpuledger.model.rows import Pass, UsageCorrection
from gpuledger.operations.finality import Finality
from gpuledger.operations.meter_reserved import booked

_LONGEST = 200
"""Characters of a reason: a sentence and the number of a ticket, not a letter."""


def correct(
    ledger: Ledger,
    *,
    why: str,
    by: str,
    since_us: int,
    until_us: int,
    is_done: bool,
    now_us: int,
    writer: str,
) -> CorrectReport:
    """Book every difference in final hours of a window, or say what would be booked.

    Args:
        ledger: open for appending where it is to be done.
        why: the reason, kept in each correction for good.
        by: who decides it, kept as well.
        since_us, until_us: the window; hours that lie whole in it.
        is_done: book it; else nothing is changed.
        now_us: the time at which hours are final.
        writer: chain to write to, ``HOST.correct``.

    Raises:
        Misconfigured: ``no-reason`` without a reason or a name.
        Unavailable: ``passes-collide`` when a pass or another ``correct`` booked meanwhile.
    """
    if not why.strip() or not by.strip() or len(why) > _LONGEST:
        raise Misconfigured(
            "no-reason",
            f"a correction of a final hour needs a reason of at most {_LONGEST} characters, and who decides it",
            hint='gpuledger correct --reason "the runtime log of 3 March" --by al --yes',
        )
    passes = list(ledger.scan(Pass))
    corrections = ledger.count(UsageCorrection)
    booking = due(ledger, passes, since_us=since_us, until_us=until_us, now_us=now_us,
                  reason=f"{LATE_EVIDENCE}: {why.strip()} ({by.strip()})")  # fmt: skip
    booked_rows = booking.corrections
    if is_done and booked_rows:
        appended = ledger.append_if(
            lambda: ledger.count(Pass) == len(passes) and ledger.count(UsageCorrection) == corrections,
            booked_rows,
            writer=writer,
            at_us=now_us,
        )
        if appended is None:
            raise Unavailable(
                "passes-collide", "a pass, or another correction, was booked meanwhile",
                hint="gpuledger correct   (again: it then books what is left)",
            )  # fmt: skip
        booked_rows = tuple(row for row in appended.added if isinstance(row, UsageCorrection))
    return CorrectReport(done=is_done, why=why.strip(), by=by.strip(), corrections=booked_rows)


def due(ledger: Ledger, passes: list[Pass], *, since_us: int, until_us: int, now_us: int, reason: str = "") -> Booking:
    """What is due in the final hours of a window: corrections that carry ``reason``; without one, listed."""
    finality = Finality(passes, now_us=now_us)
    span = max(since_us, archived_until(ledger.connection)), min(hour_floor(until_us), closed_until(now_us))
    parts = finality.late_marks(*span)
    if not parts:
        return Booking()
    marks = ledger.marks()
    first_us, last_us, before = parts[-1][0], parts[0][1], parts[-1][2]
    with reading(ledger, marks) as read:
        read.want_late(before, parts)
        read.want_heard(before, until_us=last_us)
        read.drop_from(last_us)
        read.ask_from(archived_until(ledger.connection))
        asked_us = read.first_hour()
        if isinstance(asked_us, Missing):
            return Booking()
        return booked(
            read,
            list(finality.final_hours(max(asked_us, first_us), span[1])),
            finality,
            marks,
            closed_us=closed_until(now_us),
            now_us=now_us,
            reason=reason,
            late_since=before,
        )
