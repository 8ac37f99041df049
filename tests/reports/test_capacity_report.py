"""Planning as a table, as JSON, as CSV."""

from __future__ import annotations

import csv
import io
from dataclasses import replace
from fractions import Fraction

import pytest

from gpuledger.model.capacity import EVERY, CapacityLine, CapacityReport
from gpuledger.model.missing import Missing
from gpuledger.model.moments import HOUR_US, parse_moment
from gpuledger.reports import capacity_report

T0 = parse_moment("2026-07-27", now_us=0)
UNSEEN = Missing("no agent has seen a device of this class")
H100 = CapacityLine(
    class_name="H100-80GB", started=1200, gave_up=2, waiting=3, unasked=4, wait_p50_us=90_000_000,
    wait_p95_us=7_200_000_000, waited_us=6 * HOUR_US, compared=1000, fallbacks=31, instead=(("A100", 30), ("cpu", 1)),
    peak=Fraction(15, 2), peak_at_us=T0 + HOUR_US, mean=Fraction(10, 3), owned=8,
)  # fmt: skip
L4 = replace(
    H100, class_name="L4", wait_p50_us=Missing("nothing started"), wait_p95_us=Missing("nothing started"),
    waited_us=Missing("nobody asked"), fallbacks=Missing("not compared"), instead=(), peak=Fraction(2), owned=UNSEEN,
)  # fmt: skip


@pytest.fixture
def day() -> CapacityReport:
    """Two classes over one day."""
    return CapacityReport(
        since_us=T0, until_us=T0 + 24 * HOUR_US, lines=(H100, L4), overall=replace(H100, class_name=EVERY, instead=()),
        answered=True,
    )  # fmt: skip


def test_one_line_a_class(day: CapacityReport, printed) -> None:
    """Waits in words, shares of time, fallbacks of those compared, devices with three decimals where not whole."""
    lines = printed(capacity_report.to_table(day), 120).splitlines()
    assert next(line.split() for line in lines if line.startswith("H100")) == [
        "H100-80GB", "1,200", "1", "min", "30", "s", "2", "h", "25.0", "%", "31", "of", "1,000", "7.500", "3.333", "8",
    ]  # fmt: skip
    assert next(line.split() for line in lines if line.startswith("L4")) == [
        "L4", "1,200", "-", "-", "-", "-", "2", "3.333", "-",
    ]  # fmt: skip


def test_under_it_stands_what_the_table_cannot_say(day: CapacityReport, printed) -> None:
    """What was given instead, who is in no percentile, whose wait is unknown, and why a figure is not given."""
    told = printed(capacity_report.to_table(day), 120)
    for words in (
        "H100-80GB: given A100 30 times",
        "H100-80GB: given cpu 1 time",
        "3 requests still waited at the end, 2 gave up",
        "4 requests started that nobody told of before: their wait is UNKNOWN",
        "- owned: no agent has seen a device of this class",
        "- fallbacks: not compared",
    ):
        assert words in told


@pytest.mark.parametrize("width", [60, 80, 120])
def test_no_figure_is_cut(day: CapacityReport, printed, width: int) -> None:
    """Spare columns go first."""
    told = printed(capacity_report.to_table(day), width)
    assert "7.500" in told
    assert "31 of 1,000" in told
    assert all(len(line) <= width for line in told.splitlines())


def test_json_is_exact(day: CapacityReport) -> None:
    """Fractions as text, waits in microseconds, null with its reason."""
    found = capacity_report.to_json(day)
    h100, l4 = found["classes"]  # type: ignore[misc]
    assert (h100["peak"], h100["mean"], h100["wait_p50_us"], h100["of_us"]) == (
        "15/2",
        "10/3",
        90_000_000,
        24 * HOUR_US,
    )
    assert h100["instead"] == {"A100": 30, "cpu": 1}
    assert "missing" not in h100
    assert (l4["owned"], l4["missing"]["owned"]) == (None, UNSEEN.reason)
    assert found["all"]["class"] == EVERY  # type: ignore[index, call-overload]


def test_csv_is_one_row_a_class(day: CapacityReport) -> None:
    """What is not known is empty."""
    rows = list(csv.DictReader(io.StringIO(capacity_report.to_csv(day))))
    assert [(row["class"], row["mean"], row["owned"]) for row in rows] == [
        ("H100-80GB", "3.333", "8"),
        ("L4", "3.333", ""),
    ]


def test_nothing_known_reads_unknown(day: CapacityReport, printed) -> None:
    """Never a table of zeros."""
    assert "UNKNOWN: no lifecycle event" in printed(capacity_report.to_table(replace(day, lines=(), answered=False)))
