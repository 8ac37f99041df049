"""What is told of all jobs of a dump together."""

from __future__ import annotations

from fractions import Fraction

from gpuledger.sources.slurm_rows import SlurmRow
from gpuledger.sources.slurm_sums import Sums

HOUR = SlurmRow(line=2, job="7", start_us=0, end_us=3_600_000_000, suspended_s=600)


def told(sums: Sums, *, ran: int = 1, names_gpus: bool = True) -> list[tuple[str, str]]:
    return [(problem.code, problem.message) for problem in sums.problems(ran=ran, names_gpus=names_gpus)]


def holding(count: int, share: Fraction = Fraction(1)) -> list[tuple[str, int, Fraction]]:
    return [("a100", count, share)]


def test_nothing_is_told_of_none() -> None:
    """No job, no sentence."""
    assert told(Sums.of_none(), ran=0, names_gpus=False) == []


def test_suspended_time_is_told_with_what_was_held() -> None:
    """In jobs, in seconds and in device-seconds; half a device counts half."""
    sums = Sums.of_none()
    sums.note(HOUR, holding(4), nodes=1)
    sums.note(HOUR, holding(1, Fraction(1, 2)), nodes=0)
    [(code, message)] = told(sums)
    assert code == "suspended"
    assert message.startswith("2 jobs were suspended for 1,200 s;")
    assert "2,700 device-seconds" in message


def test_several_nodes_are_seen_by_their_list_and_by_their_number() -> None:
    """How many GPUs each of them had is told by neither."""
    sums = Sums.of_none()
    sums.note(HOUR, holding(3) + holding(1), nodes=2)
    sums.note(SlurmRow(line=3, job="8", start_us=0, end_us=10_000_000, nodes="n[1-2]"), holding(2), nodes=0)
    sums.note(SlurmRow(line=4, job="9", start_us=0, end_us=10_000_000, nodes="n1"), holding(2), nodes=1)
    sums.note(SlurmRow(line=5, job="10", start_us=0, end_us=10_000_000, nodes="n1,n2"), holding(0), nodes=2)
    assert (sums.spread.jobs, sums.spread.amount) == (2, 4 * 3600 + 2 * 10)


def test_what_nothing_tells_is_unknown_and_no_zero() -> None:
    """Of a job, and of a cluster that does not track its GPUs."""
    sums = Sums.of_none()
    sums.untold.add(3600)
    (_, one), (code, message) = told(sums, ran=3, names_gpus=False)
    assert one == "1 job ran for 3,600 s, and what was held nothing tells: UNKNOWN, and not counted"
    assert code == "gpus-untracked"
    assert "AccountingStorageTRES=gres/gpu" in message
