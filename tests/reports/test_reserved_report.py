"""Reserved time as a table, as JSON, and as CSV: every figure adds up."""

from __future__ import annotations

import csv
import io
from fractions import Fraction

import pytest
from rich.console import Console

from gpuledger.model.missing import Missing
from gpuledger.model.reasons import ReservedReason
from gpuledger.model.reserved import NOT_OWNED, ReservedGap, ReservedReport, ReservedRow
from gpuledger.reports.reserved_report import not_told, to_csv, to_json, to_table


def row(key: str, quantity: Fraction | int, owned: Fraction | Missing = NOT_OWNED) -> ReservedRow:
    return ReservedRow(
        key=(key,), seconds=3600, quantity=Fraction(quantity), provisional=Fraction(0), owned=owned
    )  # fmt: skip


def report(*rows: ReservedRow, told: bool = True, gaps: tuple[ReservedGap, ...] = ()) -> ReservedReport:
    return ReservedReport(
        meter="gpu.reserved", unit="device-seconds", note="time reserved", since_us=0, until_us=3_600_000_000,
        by=("team",), rows=rows, gaps=gaps, told=told,
    )  # fmt: skip


GAP = ReservedGap(
    reason=ReservedReason.UNPLACED, what="lost", seconds=5400, since_us=0, until_us=1, detail="cp says that it runs"
)  # fmt: skip


def shown(one: ReservedReport, width: int = 100) -> str:
    console = Console(width=width, file=io.StringIO())
    console.print(to_table(one))
    return console.file.getvalue()  # type: ignore[attr-defined]


def test_sevenths_add_up_when_they_are_printed() -> None:
    """Three decimals, rounded once by largest remainder."""
    document = to_json(report(*(row(f"t{number}", Fraction(3600, 7)) for number in range(7))))
    quantities = [Fraction(str(one["quantity"])) for one in document["rows"]]  # type: ignore[index,union-attr,call-overload]
    assert sum(quantities) == 3600
    assert document["total"] == "3600.000"
    assert document["grade"] == "reserved"


def test_csv_adds_up_too() -> None:
    """And says nothing where nothing is owned."""
    lines = list(csv.DictReader(io.StringIO(to_csv(report(row("a", 1200, Fraction(3600)), row("b", Fraction(1, 3)))))))
    assert [line["quantity"] for line in lines] == ["1200.000", "0.333"]
    assert [line["owned"] for line in lines] == ["3600.000", ""]


@pytest.mark.parametrize("width", [60, 80, 120])
def test_the_table_cuts_no_figure(width) -> None:
    """Hours, device-seconds, share, and owned beside reserved where there is room."""
    told = shown(report(row("vision", 1_224_000, Fraction(3_600_000)), row("nlp", 36)), width)
    assert "1,224,000.000" in told
    assert "1,224,036.000" in told
    assert ("device-hours" in told) == (width > 60)


def test_without_a_transition_nothing_is_said_of_zero() -> None:
    """UNKNOWN, with its reason."""
    assert "UNKNOWN" in shown(report(told=False))
    assert to_json(report(told=False))["total"] is None


def test_nothing_reserved_is_a_sentence() -> None:
    """It is an answer: transitions are known."""
    assert "nothing was reserved" in shown(report())


def test_gaps_stand_under_the_table_with_what_helps() -> None:
    """Sized, by reason."""
    told = shown(report(row("a", 1), gaps=(GAP,)))
    for word in ("unplaced", "1 h 30 min", "lost", "gpuledger transition"):
        assert word in told
    assert not_told([]) == []
    assert to_json(report(gaps=(GAP,)))["gaps"][0]["seconds"] == 5400  # type: ignore[index,call-overload]
