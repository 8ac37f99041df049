"""The rule over a lake, seen from inside: ranges of workloads, months, unplaced time."""

from __future__ import annotations

from pathlib import Path
from unittest.mock import patch

from control_plane import ControlPlane
from gpuledger.ledger.duck import Duck
from gpuledger.ledger.lake import Lake
from gpuledger.ledger.lake_rule import LakeRule, files, placements
from lakes import exported, told


def test_parts_do_not_change_what_is_found(tmp_path: Path) -> None:
    """One workload at a time, one hour at a time, or all at once."""
    plane = told(tmp_path / "a.db")
    exported(plane, tmp_path / "lake", 160)
    until_us = plane.at(150)
    plane.ledger.close()
    lake = Lake.open(tmp_path / "lake")
    answers = []
    for at_once in (1, 10**6):
        with (
            patch("gpuledger.ledger.lake_rule.EVENTS_AT_ONCE", at_once),
            patch("gpuledger.ledger.lake_rule.ROWS_AT_ONCE", at_once),
            Duck(tmp_path) as duck,
        ):
            rule = LakeRule(lake, duck, until_us=until_us)
            parts = list(rule.find())
            assert parts[-1][0] == parts[-1][1]
            answers.append(
                (
                    rule.months(),
                    rule.unplaced_us(),
                    [row for month in rule.months() for batch in rule.records(month) for row in batch.to_pylist()],
                )
            )
    assert answers[0] == answers[1]
    months, unplaced_us, rows = answers[0]
    assert (months, unplaced_us) == (["2026-07", "2026-08"], 1_800_000_000)
    assert sum(row["quantity"] for row in rows) == 9000 + 6 * 3600


def test_what_began_after_the_last_heartbeat_has_no_time_yet(tmp_path: Path) -> None:
    """As in a ledger: not four hours less than none, which was once divided by."""
    plane = ControlPlane(tmp_path / "a.db")
    plane.run("done", 1, 2, plane.placement())
    plane.beat(3)
    plane.run("w", 7, None, plane.placement())
    exported(plane, tmp_path / "lake", 20)
    until_us = plane.at(12)
    plane.ledger.close()
    with Duck(tmp_path) as duck:
        rule = LakeRule(Lake.open(tmp_path / "lake"), duck, until_us=until_us)
        list(rule.find())
        rows = [row for month in rule.months() for batch in rule.records(month) for row in batch.to_pylist()]
    assert [(row["hour_us"], row["quantity"]) for row in rows] == [(plane.at(1), 3600)]


def test_names_of_files_are_quoted() -> None:
    """A folder may have a quote in its name."""
    assert files([Path("a'b.parquet")]) == "read_parquet(['a''b.parquet'])"


def test_placements_are_read_whole(tmp_path: Path) -> None:
    """By their keys."""
    plane = told(tmp_path / "a.db")
    exported(plane, tmp_path / "lake", 30)
    plane.ledger.close()
    assert {row.machine for row in placements(Lake.open(tmp_path / "lake")).values()} == {"n1", "n2"}
