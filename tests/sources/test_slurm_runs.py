"""Of several rows that tell of one run, the one that counts."""

from __future__ import annotations

from typing import Any

import pytest

from gpuledger.model.missing import Missing
from gpuledger.sources.slurm_rows import NOT_TOLD, Findings, SlurmRow
from gpuledger.sources.slurm_runs import (
    BROKE,
    OPEN,
    OVER,
    WAITING,
    each_run_once,
    ends_before,
    find_requeued,
    waits_from,
    was_cancelled_waiting,
    whole_state,
)

SECOND = 1_000_000


def row(line: int, state: str = "COMPLETED", start: int | None = 100, end: int | None = 200, **words: Any) -> SlurmRow:
    told: dict[str, Any] = {
        "line": line, "job": "7", "state": state, "start_us": NOT_TOLD if start is None else start * SECOND,
        "end_us": NOT_TOLD if end is None else end * SECOND, "submit_us": 50 * SECOND,
    }  # fmt: skip
    return SlurmRow(**told | words)


def once(*rows: SlurmRow) -> tuple[list[int], list[str]]:
    findings = Findings("dump")
    return [one.line for one in each_run_once(rows, findings)], [problem.code for problem in findings.all()]


def test_states_are_of_one_kind_each() -> None:
    """None is in two of the sets."""
    sets = [WAITING, OPEN, BROKE, OVER]
    assert sum(len(one) for one in sets) == len(frozenset().union(*sets))


def test_one_that_has_ended_counts_before_one_that_goes_on() -> None:
    """Whichever stands first."""
    running = row(1, "RUNNING", end=None, elapsed_s=500)
    assert once(running, row(2)) == ([2], [])
    assert once(row(2), running) == ([2], [])


def test_of_two_that_go_on_the_later_look_counts() -> None:
    """It was seen to run longer."""
    assert once(row(1, "RUNNING", end=None, elapsed_s=9), row(2, "RUNNING", end=None, elapsed_s=5)) == ([1], [])


def test_other_starts_clusters_and_jobs_are_other_runs() -> None:
    """Each stays."""
    assert once(row(1), row(2, start=150), row(3, cluster="b"), row(4, job="8")) == ([1, 2, 3, 4], [])


def test_two_ends_of_one_run_are_a_conflict() -> None:
    """The later counts; rows that say the same, with other columns, are none."""
    assert once(row(1, end=300), row(2)) == ([1], ["conflict"])
    assert once(row(1), row(2, nodes="n1")) == ([1], [])
    assert once(row(1, user="alice"), row(2, user="bob")) == ([1], ["conflict"])


def test_waiting_that_a_later_start_overtook_is_over() -> None:
    """A requeued job may wait again."""
    waits = row(1, "PENDING", start=None, end=None)
    assert once(waits, row(2)) == ([2], [])
    assert once(row(2), row(3, "PENDING", start=None, end=None, submit_us=250 * SECOND)) == ([2, 3], [])
    assert once(waits, row(2, cluster="b")) == ([1, 2], [])


def test_since_when_a_job_waits() -> None:
    """Since it could have started, where that is told; else since it was submitted."""
    assert waits_from(row(1, eligible_us=70 * SECOND)) == 70 * SECOND
    assert waits_from(row(1)) == 50 * SECOND
    assert isinstance(waits_from(row(1, submit_us=NOT_TOLD)), Missing)


@pytest.mark.parametrize(
    ("word", "state"),
    [
        ("OUT_OF_ME+", "OUT_OF_MEMORY"), ("CANCELLED+", "CANCELLED"), ("COMPLETI+", "COMPLETING"),
        ("NODE_FAIL", "NODE_FAIL"), ("COMPLE+", "COMPLE"), ("RE+", "RE"), ("NEW+", "NEW"),
    ],
)  # fmt: skip
def test_a_state_cut_for_its_column_is_the_one_that_begins_so(word: str, state: str) -> None:
    """Where several do, none is guessed."""
    assert whole_state(word) == state


def test_runs_that_sacct_left_out_are_told() -> None:
    """Without -D it prints the last run of a requeued job alone; one that waits again has run so often."""
    findings = Findings("dump")
    rows = [
        row(1, restarts=3),
        row(2, job="8"), row(3, job="8", start=200, restarts=1),
        row(4, "PENDING", None, None, job="9", restarts=2), row(5, job="9"),
        row(6, job="10"), row(7, cluster="other"),
    ]  # fmt: skip
    find_requeued(rows, findings)
    assert [(one.code, one.where) for one in findings.all()] == [("runs-missing", "dump:1"), ("runs-missing", "dump:4")]
    assert ["1 of its 4 runs" in one.message for one in findings.all()] == [True, False]
    assert "1 of its 2 runs" in findings.all()[1].message


def test_the_run_before_is_known_by_its_end() -> None:
    """Of the same job and cluster; one that ends after the next began ends with it; one that goes on tells nothing."""
    rows = [row(1), row(2, start=300, end=400), row(3, start=350, end=500), row(4, job="8", start=900, end=950)]
    ends = {start // SECOND: end // SECOND for (_, _, start), end in ends_before([*reversed(rows)]).items()}
    assert ends == {300: 200, 350: 350}
    assert ends_before([row(1, "RUNNING", end=None), row(2, start=300)]) == {("", "7", 300 * SECOND): 100 * SECOND}


@pytest.mark.parametrize(
    ("words", "gave_up"),
    [
        ({}, True), ({"nodes": "n1"}, False), ({"elapsed_s": 0}, True), ({"end": 101}, False),
        ({"state": "FAILED"}, False), ({"state": "COMPLETED"}, False),
    ],
)  # fmt: skip
def test_cancelled_where_it_starts_and_without_nodes_it_never_ran(words: dict[str, Any], gave_up: bool) -> None:
    """A job that failed at once has its nodes, or is not cancelled."""
    assert was_cancelled_waiting(row(1, **{"state": "CANCELLED", "end": 100} | words)) is gave_up
