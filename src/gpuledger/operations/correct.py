"""``correct``: books what came late for final hours of reserved time, with a reason and a name.

A pass only lists it (``late-evidence``): whoever issued a statement of these hours must know of a change.

What is booked here can rest on evidence that no pass has seen, and ``verify`` derives from what passes have seen. So
a pass runs first, and the corrections go into one transaction with a row of a pass that says how far was looked.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from gpuledger.errors import Misconfigured, Unavailable
from gpuledger.ledger.archived import archived_until
from gpuledger.ledger.reserved import reading
from gpuledger.ledger.store import Ledger
from gpuledger.metering.records import LATE_EVIDENCE, closed_until
from gpuledger.model.missing import Missing
from gpuledger.model.moments import hour_floor
from gpuledger.model.outcomes import CorrectReport, MeterReport
from gpuledger.model.reserved import Booking
from gpuledger.model.rows import Pass, UsageCorrection
from gpuledger.operations.finality import Finality
from gpuledger.operations.meter import meter
from gpuledger.operations.meter_reserved import booked
from gpuledger.operations.touched import seen_by

NO_PASS = Missing("nothing was to be booked, so no pass ran")

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
    pass_writer: str,
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
        pass_writer: that of the pass which runs first, ``HOST.meter``.

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
    reason = f"{LATE_EVIDENCE}: {why.strip()} ({by.strip()})"
    passes, marks = list(ledger.scan(Pass)), ledger.marks()
    booking = due(ledger, passes, marks, since_us=since_us, until_us=until_us, now_us=now_us, reason=reason)
    booked_rows = booking.corrections
    ran: MeterReport | Missing = NO_PASS
    if is_done and booked_rows:
        ran = meter(ledger, now_us=now_us, writer=pass_writer)
        booked_rows = _book(
            ledger, marks, since_us=since_us, until_us=until_us, now_us=now_us, reason=reason, writer=writer
        )
    return CorrectReport(done=is_done, why=why.strip(), by=by.strip(), corrections=booked_rows, ran=ran)


def _book(
    ledger: Ledger, looked: Mapping[str, int], *, since_us: int, until_us: int, now_us: int, reason: str, writer: str
) -> tuple[UsageCorrection, ...]:
    """Book what is left after a pass that looked at least as far as ``looked``.

    Raises:
        Unavailable: ``passes-collide``.
    """
    passes = list(ledger.scan(Pass))
    corrections = ledger.count(UsageCorrection)
    seen = {**looked, **seen_by(passes)}
    marks = {each: max(number, looked.get(each, 0)) for each, number in seen.items()}
    rows = due(
        ledger, passes, marks, since_us=since_us, until_us=until_us, now_us=now_us, reason=reason
    ).corrections  # fmt: skip
    if not rows:
        return ()
    open_us = Finality(passes, now_us=now_us).spans[-1][1]
    row = Pass(
        at_us=now_us, covered_from_us=open_us, covered_until_us=open_us,
        evidence_marks=json.dumps(marks, sort_keys=True), records_added=0, corrections_added=len(rows),
    )  # fmt: skip
    appended = ledger.append_if(
        lambda: ledger.count(Pass) == len(passes) and ledger.count(UsageCorrection) == corrections,
        [*rows, row],
        writer=writer,
        at_us=now_us,
    )
    if appended is None:
        raise Unavailable(
            "passes-collide", "a pass, or another correction, was booked meanwhile",
            hint="gpuledger correct   (again: it then books what is left)",
        )  # fmt: skip
    return tuple(row for row in appended.added if isinstance(row, UsageCorrection))


def due(
    ledger: Ledger, passes: Sequence[Pass], marks: Mapping[str, int], *, since_us: int, until_us: int, now_us: int,
    reason: str = "",
) -> Booking:  # fmt: skip
    """What is due in the final hours of a window: corrections that carry ``reason``; without one, listed.

    Args:
        passes: all that were booked.
        marks: where the evidence ends, by writer.
    """
    finality = Finality(passes, now_us=now_us)
    span = max(since_us, archived_until(ledger)), min(hour_floor(until_us), closed_until(now_us))
    parts = finality.late_marks(*span)
    if not parts:
        return Booking()
    first_us, last_us, before = parts[-1][0], parts[0][1], parts[-1][2]
    with reading(ledger, marks) as read:
        read.want_late(before, parts)
        read.want_heard(before, until_us=last_us)
        read.drop_from(last_us)
        read.ask_from(archived_until(ledger))
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
