"""What an import of a history brought in, and what to type next."""

from __future__ import annotations

from dataclasses import replace

from gpuledger.model.missing import Missing
from gpuledger.model.moments import parse_moment
from gpuledger.model.outcomes import HistoryReport
from gpuledger.model.problem import Problem
from gpuledger.reports import import_history_report

T0 = parse_moment("2026-07-27T10:20:00Z", now_us=0)
REPORT = HistoryReport(
    path="pods.csv", source="trace:openb", rows_read=1203, added=4000, known=12, conflicts=0, since_us=T0,
    until_us=T0 + 7_200_000_000, running=34, waiting=1, as_of_us=T0 + 7_200_000_000, by="user",
    problems=(
        Problem(code="no-end", message="no end", where="pods.csv:7"),
        Problem(code="no-end", message="no end", where="pods.csv:9"),
    ),
)  # fmt: skip


def test_counts_are_sentences(printed) -> None:
    """Read, added, known; what is open is known to a time, and unknown beyond."""
    told = printed(import_history_report.to_table(REPORT), 200)
    assert "pods.csv: 1,203 rows read, told by trace:openb, from 2026-07-27T10:20:00Z to 2026-07-27T12:20:00Z" in told
    assert "4,000 transitions added, 12 known already\n" in told
    assert "34 workloads still held devices, 1 workload still waited at 2026-07-27T12:20:00Z: known to there" in told
    assert "Left out, or imperfect: no-end\n" in told


def test_what_to_type_next_is_typed_as_it_stands(printed) -> None:
    """Whole hours around what was told, by what it names."""
    told = printed(import_history_report.to_table(REPORT), 200)
    span = "--since 2026-07-27T10:00:00Z --until 2026-07-27T13:00:00Z"
    assert f"  gpuledger usage --meter gpu.reserved --by user {span}" in told
    assert f"  gpuledger capacity {span}" in told
    assert "  gpuledger meter\n" in told


def test_what_to_ask_reaches_as_far_as_what_is_open(printed) -> None:
    """It is metered to the dump's own time."""
    later = replace(REPORT, as_of_us=T0 + 6 * 3_600_000_000)
    told = printed(import_history_report.to_table(later), 200)
    assert "--since 2026-07-27T10:00:00Z --until 2026-07-27T17:00:00Z" in told
    told = printed(import_history_report.to_table(replace(later, running=0)), 200)
    assert "--since 2026-07-27T10:00:00Z --until 2026-07-27T13:00:00Z" in told


def test_conflicts_are_said(printed) -> None:
    """The first stays."""
    told = printed(import_history_report.to_table(replace(REPORT, conflicts=3)), 200)
    assert "12 known already, 3 of them with other content: the first stays" in told


def test_an_empty_file_has_no_span_and_no_next_step(printed) -> None:
    """Nothing to meter."""
    why = Missing("it tells of nothing")
    empty = replace(
        REPORT, rows_read=0, added=0, known=0, since_us=why, until_us=why, running=0, waiting=0, as_of_us=why,
        problems=(),
    )  # fmt: skip
    told = printed(import_history_report.to_table(empty), 200)
    assert told.splitlines() == [
        "pods.csv: 0 rows read, told by trace:openb", "0 transitions added, 0 known already",
    ]  # fmt: skip
    assert import_history_report.to_json(empty)["missing"] == {
        "since": why.reason, "until": why.reason, "as_of": why.reason,
    }  # fmt: skip


def test_who_only_waits_may_have_no_time(printed) -> None:
    """Then it reads UNKNOWN."""
    waiting = replace(REPORT, running=0, as_of_us=Missing("nothing runs in it"))
    assert "until when is UNKNOWN, nothing runs in it" in printed(import_history_report.to_table(waiting), 200)


def test_json_and_csv_hold_the_same_counts() -> None:
    """With problems in JSON; what is not known is empty in CSV."""
    found = import_history_report.to_json(REPORT)
    assert [problem["where"] for problem in found["problems"]] == ["pods.csv:7", "pods.csv:9"]  # type: ignore[index, union-attr]
    header, values = import_history_report.to_csv(REPORT).splitlines()
    cells = dict(zip(header.split(","), values.split(","), strict=True))
    assert cells == {name: str(found[name]) for name in cells}
    assert import_history_report.to_csv(replace(REPORT, as_of_us=Missing("x"))).splitlines()[1].endswith(",")
