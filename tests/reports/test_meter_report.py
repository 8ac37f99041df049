"""What a pass did, as a sentence, JSON and rows."""

from __future__ import annotations

import csv
import io
from typing import Any

import pytest

from gpuledger.model.moments import HOUR_US, parse_moment
from gpuledger.model.outcomes import MeterReport
from gpuledger.model.rows import UsageCorrection, UsageRecord
from gpuledger.reports import meter_report

T0 = parse_moment("2026-07-27", now_us=0)


def report(**words: Any) -> MeterReport:
    key = {
        "meter": "gpu.context",
        "hour_us": T0,
        "host": "box",
        "device": "GPU-0",
        "subject": "k",
        "writer": "box.meter",
    }
    rest = {"evidence_count": 1, "evidence_hash": "e", "recorded_at_us": T0 + 3 * HOUR_US}
    base: dict[str, Any] = {
        "at_us": T0 + 3 * HOUR_US, "covered_from_us": T0, "covered_until_us": T0 + 2 * HOUR_US, "hours_derived": 2,
        "reserved_hours_derived": 5,
        "open_from_us": T0 + 2 * HOUR_US,
        "records": (UsageRecord(**key, **rest, context="settled", quantity=600, number=1),),
        "corrections": (
            UsageCorrection(**key, **rest, correction_number=1, delta=-50, reason="late-evidence", number=2),
        ),
    }  # fmt: skip
    return MeterReport(**base | words)


def test_a_pass_is_two_sentences(printed) -> None:
    """What was closed and booked, and from when on figures can still change."""
    assert printed(meter_report.to_table(report())).splitlines() == [
        "closed 2026-07-27T00:00:00Z to 2026-07-27T02:00:00Z: 1 record and 1 correction booked",
        "open from 2026-07-27T02:00:00Z on: usage there is provisional",
    ]


def test_no_new_hour_is_said(printed) -> None:
    """An empty span is not printed as one."""
    nothing = report(covered_from_us=T0 + 2 * HOUR_US, records=(), corrections=())
    assert printed(meter_report.to_table(nothing)).startswith("no hour was new: 0 records")


def test_json_names_each_correction() -> None:
    """By reference, with its sign and its reason."""
    found = meter_report.to_json(report())
    assert (found["hours_derived"], found["reserved_hours_derived"], found["late"]) == (2, 5, 0)
    assert (found["records_added"], found["corrections_added"], found["open_from"]) == (1, 1, "2026-07-27T02:00:00Z")
    assert found["corrections"] == [
        {
            "ref": "correction:box.meter/2", "meter": "gpu.context", "hour": "2026-07-27T00:00:00Z", "delta": -50,
            "reason": "late-evidence",
        }
    ]  # fmt: skip


@pytest.mark.parametrize(("column", "values"), [("quantity", ["600", "-50"]), ("ref", None)])
def test_csv_holds_records_and_corrections(column: str, values: list[str] | None) -> None:
    """A sum over its column is what the pass changed."""
    rows = list(csv.DictReader(io.StringIO(meter_report.to_csv(report()))))
    assert [row[column] for row in rows] == (values or ["record:box.meter/1", "correction:box.meter/2"])
