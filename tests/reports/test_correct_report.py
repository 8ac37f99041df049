"""What correct booked, or would book."""

from __future__ import annotations

import csv
import io

from rich.console import Console

from gpuledger.model.outcomes import CorrectReport
from gpuledger.model.rows import UsageCorrection
from gpuledger.reports.correct_report import to_csv, to_json, to_table

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
    told = shown(CorrectReport(done=False, why="log", by="al", corrections=(ROW,)))
    assert "-1,800" in told
    assert "--yes" in told
    assert "1 correction booked: log (al)" in shown(CorrectReport(done=True, why="log", by="al", corrections=(ROW,)))


def test_nothing_to_correct_is_said() -> None:
    """No table of nothing."""
    assert "nothing to correct" in shown(CorrectReport(done=True, why="log", by="al", corrections=()))


def test_scripts_get_each_correction() -> None:
    """With a reference once it is booked."""
    report = CorrectReport(done=False, why="log", by="al", corrections=(ROW,))
    assert to_json(report)["corrections"][0]["ref"] is None  # type: ignore[index,call-overload]
    assert next(csv.DictReader(io.StringIO(to_csv(report))))["delta"] == "-1800"
