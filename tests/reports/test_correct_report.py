"""What correct booked, or would book."""

from __future__ import annotations

import csv
import io

from rich.console import Console

from gpuledger.model.missing import Missing
from gpuledger.model.outcomes import CorrectReport, MeterReport
from gpuledger.model.rows import UsageCorrection
from gpuledger.reports.correct_report import to_csv, to_json, to_table

NO_PASS = Missing("test: none ran")
ROW = UsageCorrection(
    meter="gpu.reserved", hour_us=0, host="n1", device="placement:p", subject="s", correction_number=1, delta=-1800,
    reason="late-evidence: log (al)", evidence_count=1, evidence_hash="ab", recorded_at_us=9,
)  # fmt: skip


def shown(report: CorrectReport) -> str:
    console = Console(width=100, file=io.StringIO())
    console.print(to_table(report))
    return console.file.getvalue()  # type: ignore[attr-defined]


def test_what_would_be_booked_says_how() -> None:
    """Each hour with its change, and the option that books it."""
    told = shown(CorrectReport(done=False, why="log", by="al", corrections=(ROW,), ran=NO_PASS))
    assert "-1,800" in told
    assert "--yes" in told
    assert "1 correction booked: log (al)" in shown(
        CorrectReport(done=True, why="log", by="al", corrections=(ROW,), ran=NO_PASS)
    )


def test_nothing_to_correct_is_said() -> None:
    """No table of nothing."""
    assert "nothing to correct" in shown(CorrectReport(done=True, why="log", by="al", corrections=(), ran=NO_PASS))


def test_scripts_get_each_correction() -> None:
    """With a reference once it is booked."""
    report = CorrectReport(done=False, why="log", by="al", corrections=(ROW,), ran=NO_PASS)
    assert to_json(report)["corrections"][0]["ref"] is None  # type: ignore[index,call-overload]
    assert to_json(report)["pass"] is None
    assert next(csv.DictReader(io.StringIO(to_csv(report))))["delta"] == "-1800"


def test_what_the_pass_before_it_booked_is_said() -> None:
    """Somebody asked for corrections of final hours, and more was written."""
    ran = MeterReport(
        at_us=9, covered_from_us=0, covered_until_us=0, hours_derived=0, corrections=(ROW,), open_from_us=0
    )
    report = CorrectReport(done=True, why="log", by="al", corrections=(), ran=ran)
    assert "a metering pass ran first: 0 records and 1 correction booked" in shown(report)
    assert to_json(report)["pass"] == {"records_added": 0, "corrections_added": 1}
