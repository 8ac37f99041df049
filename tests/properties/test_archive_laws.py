"""Laws of archiving: what left changes no amount, neither of hours before the bound nor of those after it."""

from __future__ import annotations

import tempfile
from dataclasses import fields, replace
from pathlib import Path
from unittest.mock import patch

from hypothesis import given, note, settings
from hypothesis import strategies as st

from gpuledger.ledger import leaving as chosen
from gpuledger.ledger.dropping import drop
from gpuledger.ledger.leaving import LEAVE, Leaving
from gpuledger.ledger.store import Ledger
from gpuledger.metering.derive import derive
from gpuledger.model.archive import Archive
from gpuledger.model.identity import IdentityText
from gpuledger.model.moments import DAY_US, HOUR_US
from gpuledger.model.rows import DeviceEvent, ProcessIdentity, Row
from gpuledger.operations.evidence import load_evidence
from gpuledger.operations.meter import meter
from gpuledger.operations.usage import usage
from gpuledger.reports import usage_report
from properties.test_laws import END_US, KEY, START_US, History, histories, summed

BACK_US = 10 * HOUR_US
NOW_US = END_US + 30 * DAY_US


def shifted(row: Row, by_us: int, ticks: int) -> Row:
    """The same row at another time, of another process."""
    moved = {
        field.name: getattr(row, field.name) - by_us
        for field in fields(row)
        if field.name.endswith("_us") and isinstance(getattr(row, field.name), int)
    }
    if getattr(row, "start_ticks", 0):
        moved["start_ticks"] = row.start_ticks + ticks  # type: ignore[attr-defined]
    return replace(row, **moved)


def laid_down(ledger: Ledger, before: History, after: History) -> None:
    """Two histories one after the other, of the same pids, and a pass over all of it."""
    rows: list[Row] = []
    for row in [*(shifted(each, BACK_US, 10_000) for each in before.rows), *after.rows]:
        if isinstance(row, ProcessIdentity):
            rows.append(replace(row, text_key=ledger.key_of(IdentityText(exe=row.text_key))))
        else:
            rows.append(row)
    rows += [
        DeviceEvent(host="box", device=device, at_us=START_US - BACK_US, event="seen", class_name="L4", product="L4",
                    memory_mib=1, method="nvml")
        for device in ("GPU-a", "GPU-b")
    ]  # fmt: skip
    ledger.append(rows, writer="box.agent", at_us=END_US)
    meter(ledger, now_us=END_US + DAY_US, writer="box.meter")


def let_go(ledger: Ledger, bound_us: int) -> int:
    """Drop what may leave before a bound, whatever hour it is. Returns how much it was."""
    # the rows that stay for an agent that starts: no amount rests on them, save on the last looks, so here they leave
    with patch.object(chosen, "_RING_ROWS", 0), patch.object(chosen, "_DAY_US", HOUR_US):
        leaving = Leaving(ledger, bound_us, [("2026-01", -(2**62), bound_us)], ())
    archives = []
    for number, kind in enumerate(LEAVE):
        count = sum(len(batch) for month in leaving.months(kind) for batch in leaving.rows(kind, month, 100))
        if count:
            archives.append(
                Archive(archived_at_us=NOW_US, before_us=bound_us, month="2026-01", rows_of=kind.kind, row_count=count,
                        first_us=0, last_us=0, writers="{}", rows_hash=str(number), file_name="", file_hash="",
                        folder="")
            )  # fmt: skip
    if archives:
        drop(ledger, archives, marks=ledger.marks(), writer="box.archive", at_us=NOW_US)
    return sum(each.row_count for each in archives)


def told(ledger: Ledger, bound_us: int) -> list[object]:
    """Usage of every meter, over all of it and on both sides of the bound.

    Of a sampled meter without an amount: whether nothing was held, or nobody sampled it, only the looks that left tell.
    """
    windows = ((START_US - BACK_US, END_US), (START_US - BACK_US, bound_us), (bound_us, END_US))
    answers = [
        usage_report.to_json(usage(ledger, meter=name, by=by, since_us=since_us, until_us=until_us, now_us=NOW_US))
        for name in ("gpu.context", "gpu.memory", "gpu.busy")
        for by in (("subject",), ("device", "hour"))
        for since_us, until_us in windows
        if since_us < until_us
    ]
    return [answer for answer in answers if answer["meter"] == "gpu.context" or answer["total"]]


@settings(max_examples=40, deadline=None)
@given(histories(), histories(), st.integers(-6, 5))
def test_what_leaves_changes_no_amount(before: History, after: History, hour: int) -> None:
    """Hours from the bound on are derived the same without it; usage says the same of all hours, graded alike."""
    bound_us = START_US + hour * HOUR_US
    with tempfile.TemporaryDirectory() as folder, Ledger.open(Path(folder) / "l.db", mode="append") as ledger:
        laid_down(ledger, before, after)
        span = {"since_us": bound_us, "until_us": END_US + HOUR_US}
        derived = summed(derive(load_evidence(ledger, **span), **span), *KEY)
        answers = told(ledger, bound_us)
        note(f"{let_go(ledger, bound_us)} rows left")
        assert summed(derive(load_evidence(ledger, **span), **span), *KEY) == derived
        assert told(ledger, bound_us) == answers
        again = meter(ledger, now_us=NOW_US, writer="box.meter")
        assert not again.corrections
