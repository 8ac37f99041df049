"""Waiting that a later dump tells as started, and an older one that is imported after it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from gpuledger.ledger.store import Ledger
from gpuledger.model.capacity import CapacityLine
from gpuledger.model.moments import MINUTE_US, parse_moment
from gpuledger.model.outcomes import HistoryReport
from gpuledger.operations.capacity import capacity
from gpuledger.operations.import_history import import_history
from gpuledger.operations.import_slurm import read_slurm

NOW_US = parse_moment("2026-11-21", now_us=0)
HEADER = "JobID|Cluster|User|State|Submit|Start|End|ElapsedRaw|ReqTRES|AllocTRES"
AT_TEN = (
    "5 RUNNING 08:00 09:00 Unknown 3600",
    "7 PENDING 09:00 Unknown Unknown 0",
    "8_[1-2] PENDING 09:00 None None 0",
)
AT_TWELVE = (
    "5 RUNNING 08:00 09:00 Unknown 10800", "7 COMPLETED 09:00 10:30 11:00 1800", "8_1 COMPLETED 09:00 10:30 11:00 1800",
    "8_2 FAILED 09:00 10:45 11:00 900",
)  # fmt: skip
"""A dump at ten, and one at twelve: what waited has run since."""


def bring(folder: Path, rows: Sequence[str]) -> HistoryReport:
    """Import a dump of these jobs, each with two GPUs."""
    lines = [HEADER]
    for row in rows:
        job, state, *times, elapsed = row.split()
        cells = [f"2026-11-20T{time}:00" if ":" in time else time for time in times]
        given = "gres/gpu:a100=2,gres/gpu=2" if state != "PENDING" else ""
        lines.append("|".join([job, "hpc", "ann", state, *cells, elapsed, "gres/gpu:a100=2,gres/gpu=2", given]))
    path = folder / "sacct.txt"
    path.write_text("\n".join([*lines, ""]), encoding="utf-8")
    return import_history(
        lambda: Ledger.open(folder / "l.db", mode="append"), read_slurm(path, zone="UTC").history,
        path="sacct.txt", as_of_us=None, now_us=NOW_US, writer="box.import",
    )  # fmt: skip


def planned(folder: Path) -> CapacityLine:
    with Ledger.open(folder / "l.db", mode="read") as ledger:
        return capacity(ledger, since_us=None, until_us=None, now_us=NOW_US).overall


def test_a_later_dump_ends_the_wait_of_what_has_started(tmp_path: Path) -> None:
    """It is neither a request that waits nor one that gave up: the run tells since when it waited. The waits stay."""
    bring(tmp_path, AT_TEN)
    assert planned(tmp_path).waiting == 2
    bring(tmp_path, AT_TWELVE)
    after = planned(tmp_path)
    assert (after.started, after.waiting, after.gave_up) == (4, 0, 0)
    assert (after.wait_p50_us, after.waited_us) == (90 * MINUTE_US, 165 * MINUTE_US)


def test_either_dump_a_second_time_adds_nothing(tmp_path: Path) -> None:
    """Nor makes a conflict."""
    for rows in (AT_TEN, AT_TWELVE):
        bring(tmp_path, rows)
    for rows in (AT_TEN, AT_TWELVE, AT_TEN):
        again = bring(tmp_path, rows)
        assert (again.added, again.conflicts) == (0, 0)
    assert planned(tmp_path).waiting == 0


def test_an_older_dump_that_comes_later_leaves_no_job_waiting(tmp_path: Path) -> None:
    """Of the tasks of its array nobody knows how many they were, so they stay."""
    for rows in (AT_TWELVE, AT_TEN):
        bring(tmp_path, rows)
    assert planned(tmp_path).waiting == 1
    again = bring(tmp_path, AT_TEN)
    assert (again.added, again.conflicts) == (0, 0)


@pytest.mark.parametrize(
    ("rows", "waiting"),
    [
        (("8_1 COMPLETED 09:00 10:30 11:00 1800", "8_[2] PENDING 09:00 None None 0"), 2),
        (("70 COMPLETED 09:00 10:30 11:00 1800",), 2),
        (("7 FAILED 08:00 08:30 08:40 600",), 2),
        (("7 COMPLETED 09:00 10:00 11:00 3600",), 1),
    ],
)
def test_who_may_still_wait_is_left_waiting(tmp_path: Path, rows: tuple[str, ...], waiting: int) -> None:
    """Tasks of the array that the dump tells so, other jobs, and a job whose run began before it was seen to wait."""
    bring(tmp_path, AT_TEN)
    bring(tmp_path, rows)
    assert planned(tmp_path).waiting == waiting
