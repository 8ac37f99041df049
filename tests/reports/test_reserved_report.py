"""Reserved time as a table, as JSON, and as CSV: every figure adds up."""

from __future__ import annotations

import csv
import io
from dataclasses import replace
from fractions import Fraction

import pytest
from rich.console import Console

from gpuledger.model.missing import Missing
from gpuledger.model.reasons import ReservedReason
from gpuledger.model.reserved import NOT_OWNED, ReservedGap, ReservedReport, ReservedRow
from gpuledger.reports.reserved_report import MOST_IDLE, not_told, to_csv, to_json, to_table


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


def test_what_is_owned_and_not_reserved_is_told() -> None:
    """The total is of all that is owned, so that it does not depend on the grouping."""
    one = replace(
        report(row("n1", 3600, Fraction(7200))), owned=Fraction(21_600),
        idle=((("n3",), Fraction(10_800)), (("n2",), Fraction(3600))),
    )  # fmt: skip
    told = shown(one)
    assert "Owned, and nothing of it reserved: 4.0 device-hours: n3 3.0; n2 1.0" in told
    assert "6.0" in told.split("total")[1].splitlines()[0]
    document = to_json(one)
    assert document["owned"] == "21600.000"
    assert document["idle"] == [{"team": "n3", "owned": "10800.000"}, {"team": "n2", "owned": "3600.000"}]
    assert "by another name" not in told
    doubt = replace(one, rows=(*one.rows, row("n3.example.org", 3600)))
    assert "perhaps the same by another name: n3.example.org" in " ".join(shown(doubt).split())
    many = replace(one, idle=tuple(((f"m{number}",), Fraction(3600)) for number in range(MOST_IDLE + 5)))
    assert "; 5 more" in " ".join(shown(many).split())


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
