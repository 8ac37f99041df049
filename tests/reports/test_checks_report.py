"""Checks: verdict, sentence, findings, and what helps."""

from __future__ import annotations

import csv
import io

from rich.console import Group

from gpuledger.model.checks import Check, Verdict
from gpuledger.reports import checks_report

CHECKS = (
    Check(name="chains", verdict=Verdict.OK, sentence="3 chains"),
    Check(
        name="derived", verdict=Verdict.FOUND, sentence="12 differ", findings=tuple(f"row {n}" for n in range(12)),
        hint="gpuledger meter",
    ),
)  # fmt: skip


def test_lines_for_eyes(printed) -> None:
    """Ten findings are shown, more are counted, and the hint comes last."""
    text = printed(Group(*checks_report.lines(CHECKS))).splitlines()
    assert text[:3] == ["ok      chains   3 chains", "found   derived  12 differ", "    row 0"]
    assert text[-2:] == ["    and 2 more; --format json lists all", "    what helps: gpuledger meter"]


def test_json_and_csv_have_every_finding() -> None:
    """Programs get all of them."""
    assert len(checks_report.as_list(CHECKS)[1]["findings"]) == 12
    rows = list(csv.DictReader(io.StringIO(checks_report.to_csv(CHECKS))))
    assert [row["finding"] for row in rows][:3] == ["", "", "row 0"]
    assert len(rows) == 14
