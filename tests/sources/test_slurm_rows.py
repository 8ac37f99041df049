"""The words of Slurm's accounting: how long a row lasted, and problems named and counted."""

from __future__ import annotations

from gpuledger.model.missing import Missing
from gpuledger.model.problem import Problem
from gpuledger.sources.slurm_rows import MOST_PROBLEMS, Findings, SlurmRow

SECOND = 1_000_000


def test_a_row_lasts_from_start_to_end() -> None:
    """Both are told, so Elapsed is not asked."""
    row = SlurmRow(line=1, job="1", start_us=10 * SECOND, end_us=70 * SECOND, elapsed_s=5)
    assert (row.lasted_s, row.known_until_us) == (60, 70 * SECOND)


def test_an_open_row_is_known_until_the_dump_was_taken() -> None:
    """That is start + elapsed + suspended: slurmdbd takes the suspended time off Elapsed."""
    row = SlurmRow(line=1, job="1", start_us=10 * SECOND, elapsed_s=50, suspended_s=7)
    assert (row.lasted_s, row.known_until_us) == (57, 67 * SECOND)


def test_a_row_without_elapsed_is_known_until_nothing() -> None:
    """No end and no elapsed time: UNKNOWN, not 0."""
    row = SlurmRow(line=1, job="1", start_us=10 * SECOND)
    assert isinstance(row.known_until_us, Missing)
    assert row.lasted_s == 0
    assert isinstance(SlurmRow(line=1, job="1", elapsed_s=3).known_until_us, Missing)


def test_an_end_before_the_start_lasts_nothing() -> None:
    """It is no negative time."""
    assert SlurmRow(line=1, job="1", start_us=10 * SECOND, end_us=3 * SECOND).lasted_s == 0


def test_many_problems_of_one_kind_are_counted_with_their_size() -> None:
    """The first are named by line, of the rest number and size are told."""
    findings = Findings("dump")
    for line in range(MOST_PROBLEMS + 3):
        findings.add(Problem(code="allocation-missing", message="missing"), line, device_seconds=1_000)
    findings.add(Problem(code="broken-line", message="broken"), 7)
    told = findings.all()
    assert len(told) == MOST_PROBLEMS + 2
    assert str(told[-1]) == "dump: 3 more like these, 3,000 device-seconds in all [allocation-missing]"
    assert str(told[-2]) == "dump:7: broken [broken-line]"
    assert told[0].where == "dump"
