"""Steps whose allocation is missing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gpuledger.model.problem import Problem
from gpuledger.sources.slurm_rows import Findings, SlurmRow
from gpuledger.sources.slurm_steps import find_missing

HOUR = 3_600_000_000


def row(job: str, step: str = "", *, gpus: int = 1, hours: int = 1, **words: Any) -> SlurmRow:
    told: dict[str, Any] = {
        "line": 5, "job": job, "step": step, "allocated": f"cpu=1,gres/gpu={gpus}" if gpus else "cpu=1",
        "start_us": 10 * HOUR, "end_us": (10 + hours) * HOUR,
    }  # fmt: skip
    return SlurmRow(**told | words)


def missing(allocations: Sequence[SlurmRow], steps: Sequence[SlurmRow]) -> tuple[Problem, ...]:
    findings = Findings("dump")
    find_missing(allocations, steps, findings)
    return findings.all()


def test_steps_of_an_allocation_are_in_order() -> None:
    """Also where the step of a heterogeneous job is named by the whole of it."""
    assert not missing([row("1"), row("2+0")], [row("1", "batch"), row("2", "0+1"), row("2+0", "0")])


def test_a_step_alone_is_told_with_its_size() -> None:
    """It was held, by somebody; how much of it nobody can say but the allocation."""
    [problem] = missing([row("1")], [row("2", "0", gpus=4, hours=2)])
    assert problem.code == "allocation-missing"
    assert problem.where == "dump:5"
    assert "job 2 has a step and no allocation" in problem.message
    assert "its step 0 held 4 GPUs, 28,800 device-seconds" in problem.message


def test_steps_are_never_added() -> None:
    """The extern step spans the allocation, so it stands for all; without it the largest does."""
    [problem] = missing([], [row("2", "0", gpus=9), row("2", "extern", gpus=4), row("2", "batch")])
    assert "job 2 has 3 steps" in problem.message
    assert "its step extern held 4 GPUs, 14,400 device-seconds" in problem.message
    [problem] = missing([], [row("2", "0", gpus=2), row("2", "batch", gpus=3)])
    assert "step batch held 3 GPUs, 10,800 device-seconds" in problem.message


def test_steps_without_gpus_are_told_without_a_size() -> None:
    """The allocation may have held some all the same: no figure is not 0."""
    [problem] = missing([], [row("2", "batch", gpus=0)])
    assert "device-seconds" not in problem.message


def test_a_step_that_names_another_cluster_belongs_where_its_time_does() -> None:
    """Names are mangled in some dumps; a job of the same number elsewhere is another."""
    allocation = row("1", cluster="a")
    assert not missing([allocation], [row("1", "0", cluster="b")])
    assert missing([allocation], [row("1", "0", cluster="b", start_us=50 * HOUR, end_us=51 * HOUR)])


def test_a_step_that_cannot_be_read_is_said() -> None:
    """Its TRES are none."""
    codes = [problem.code for problem in missing([], [row("2", "0", allocated="gres/gpu=x")])]
    assert codes == ["broken-line", "allocation-missing"]
