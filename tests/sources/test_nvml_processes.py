"""Living processes: each trap of the lists and of the utilisation buffer by name."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pynvml
import pytest

from gpuledger.model.missing import Missing
from gpuledger.sources.nvml_accounting import MIB, NOT_AVAILABLE_U64, AccountingLook
from gpuledger.sources.nvml_processes import (
    PID_MAX,
    Busy,
    Entry,
    Held,
    busy_of,
    living_contexts,
    merge,
    read_busy,
    read_entries,
    scrambles_processes,
)

NOW = 1_790_000_000_000_000
SECOND = 1_000_000
GPU = "GPU-a"
TOTAL = {GPU: 81559}
NONE = 4294967295


def entry(kind: str, pid: int, mib: int | None) -> tuple[str, Entry]:
    """An entry on the GPU."""
    return GPU, Entry(kind, pid, None if mib is None else mib * MIB, NONE, NONE)


def sample(pid: int, percent: int, at_us: int = NOW - 1) -> SimpleNamespace:
    """A utilisation sample."""
    return SimpleNamespace(pid=pid, smUtil=percent, timeStamp=at_us)


class Lists:
    """A binding with process lists and samples that a test sets; a value that is an error is raised."""

    def __init__(self, **answers: Any) -> None:
        self.answers = answers
        self.calls: list[str] = []

    def __getattr__(self, name: str) -> Any:
        def call(*arguments: Any) -> Any:
            self.calls.append(name)
            answer = self.answers.get(name, [])
            answer = answer.pop(0) if isinstance(answer, list) and answer and isinstance(answer[0], list) else answer
            if isinstance(answer, Exception):
                raise answer
            return answer

        return call


def listed(pid: int, memory_bytes: int | None) -> SimpleNamespace:
    """An entry as the binding gives it, not under MIG."""
    return SimpleNamespace(pid=pid, usedGpuMemory=memory_bytes, gpuInstanceId=NONE, computeInstanceId=NONE)


def test_the_same_pid_in_two_lists_holds_its_memory_once() -> None:
    """A process with compute and graphics contexts is listed twice with the same memory."""
    held, problems = merge([entry("C", 7, 300), entry("G", 7, 300), entry("M", 8, 5)], where=GPU, memory_mib=TOTAL)
    assert held == {(GPU, 7): Held("CG", 300), (GPU, 8): Held("M", 5)}
    assert problems == ()


def test_merged_memory_is_the_most_of_any_list() -> None:
    """Lists read one after the other may differ; memory that one list lacks is taken from the other."""
    held, _ = merge([entry("C", 7, 300), entry("G", 7, 310)], where=GPU, memory_mib=TOTAL)
    assert held[GPU, 7].memory_mib == 310
    held, _ = merge([entry("C", 7, None), entry("G", 7, 310)], where=GPU, memory_mib=TOTAL)
    assert held[GPU, 7].memory_mib == 310
    held, _ = merge([entry("C", 7, 310), entry("G", 7, None)], where=GPU, memory_mib=TOTAL)
    assert held[GPU, 7].memory_mib == 310


@pytest.mark.parametrize("memory_bytes", [None, NOT_AVAILABLE_U64])
def test_used_memory_not_available_is_missing(memory_bytes: int | None) -> None:
    """The binding gives None for N/A (WDDM, another user's process); a raw list the sentinel. Neither is 0."""
    held, problems = merge([(GPU, Entry("C", 7, memory_bytes, NONE, NONE))], where=GPU, memory_mib=TOTAL)
    assert isinstance(held[GPU, 7].memory_mib, Missing)
    assert problems == ()


@pytest.mark.parametrize("pid", [0, PID_MAX + 1, NONE])
def test_impossible_pids_are_left_out_and_told(pid: int) -> None:
    """A scrambled list names other fields' bytes as pids."""
    held, problems = merge([entry("C", pid, 1)], where=GPU, memory_mib=TOTAL)
    assert held == {}
    assert [problem.code for problem in problems] == ["bad-process-entry"]


def test_memory_beyond_the_device_is_left_out_and_told() -> None:
    """17592186044415 MiB is the sentinel of another tool's making; it is never metered."""
    held, problems = merge([entry("C", 7, 90_000)], where=GPU, memory_mib=TOTAL)
    assert isinstance(held[GPU, 7].memory_mib, Missing)
    assert [problem.code for problem in problems] == ["bad-memory"]


@pytest.mark.parametrize(
    "old", [pynvml.NVMLLibraryMismatchError("too old"), pynvml.NVMLError(pynvml.NVML_ERROR_FUNCTION_NOT_FOUND)]
)
def test_unversioned_call_on_an_old_driver_falls_back(old: Exception) -> None:
    """The binding binds the plain names to version 3; drivers before R510 know version 2."""
    binding: Any = Lists(
        nvmlDeviceGetComputeRunningProcesses=old, nvmlDeviceGetComputeRunningProcesses_v2=[listed(7, 300 * MIB)]
    )
    absent: set[str] = set()
    assert read_entries(binding, None, absent, version_2=False) == [Entry("C", 7, 300 * MIB, NONE, NONE)]
    binding.calls.clear()
    assert read_entries(binding, None, absent, version_2=False) == [Entry("C", 7, 300 * MIB, NONE, NONE)]
    assert "nvmlDeviceGetComputeRunningProcesses" not in binding.calls  # known by now


def test_a_list_that_the_device_lacks_is_not_tried_again() -> None:
    """MPS lists exist since Volta, graphics lists not on every device: absent, and no error."""
    absent: set[str] = set()
    missing = pynvml.NVMLError(pynvml.NVML_ERROR_NOT_SUPPORTED)
    binding: Any = Lists(
        nvmlDeviceGetMPSComputeRunningProcesses=missing, nvmlDeviceGetMPSComputeRunningProcesses_v2=missing
    )
    assert read_entries(binding, None, absent, version_2=False) == []
    binding.calls.clear()
    read_entries(binding, None, absent, version_2=False)
    assert binding.calls == ["nvmlDeviceGetComputeRunningProcesses", "nvmlDeviceGetGraphicsRunningProcesses"]


def test_a_list_that_failed_is_not_an_empty_list() -> None:
    """Any error but absence is raised: nobody may be read as gone because a call failed."""
    binding: Any = Lists(nvmlDeviceGetComputeRunningProcesses=pynvml.NVMLError(pynvml.NVML_ERROR_UNKNOWN))
    with pytest.raises(pynvml.NVMLError_Unknown):
        read_entries(binding, None, set(), version_2=False)


@pytest.mark.parametrize(
    ("version", "scrambled"),
    [("535.43.02", True), ("535.86.10", True), ("535.104.05", False), ("535.42", False), ("610.43.02", False)],
)
def test_drivers_that_scramble_process_lists_are_known(version: str, scrambled: bool) -> None:
    """535.43 to 535.86 give version 3 of the lists in longer records."""
    assert scrambles_processes(version) is scrambled


def test_scrambled_lists_are_read_by_the_older_call_only() -> None:
    """Version 2 keeps its layout on those drivers; version 3 is not asked."""
    binding: Any = Lists(nvmlDeviceGetComputeRunningProcesses_v2=[listed(7, MIB)])
    assert [one.pid for one in read_entries(binding, None, set(), version_2=True)] == [7]
    assert all(name.endswith("_v2") for name in binding.calls)


@pytest.mark.parametrize("number", [pynvml.NVML_SUCCESS, pynvml.NVML_ERROR_NOT_FOUND])
def test_no_sample_means_nobody_was_busy(number: int) -> None:
    """The binding raises NVMLError(0) when the count is 0, and NotFound when there is no sample: both are 0 %."""
    binding: Any = Lists(nvmlDeviceGetProcessUtilization=pynvml.NVMLError(number))
    assert read_busy(binding, None, 0, NOW, where=GPU).percent == {}


@pytest.mark.parametrize(
    "number", [pynvml.NVML_ERROR_NOT_SUPPORTED, pynvml.NVML_ERROR_NO_PERMISSION, pynvml.NVML_ERROR_TIMEOUT]
)
def test_utilisation_that_cannot_be_told_is_missing(number: int) -> None:
    """A driver that samples nobody here is not a driver that saw nobody busy."""
    binding: Any = Lists(nvmlDeviceGetProcessUtilization=pynvml.NVMLError(number))
    assert isinstance(read_busy(binding, None, 0, NOW, where=GPU).percent, Missing)


def test_a_lost_device_is_not_an_idle_one() -> None:
    """Lost between two calls: the device is left out of the look, not read without utilisation."""
    binding: Any = Lists(nvmlDeviceGetProcessUtilization=pynvml.NVMLError(pynvml.NVML_ERROR_GPU_IS_LOST))
    with pytest.raises(pynvml.NVMLError_GpuIsLost):
        read_busy(binding, None, 0, NOW, where=GPU)


def test_samples_that_came_between_size_and_list_are_asked_for_again() -> None:
    """The binding asks twice; a sample in between makes the second answer too small."""
    answers = [pynvml.NVMLError(pynvml.NVML_ERROR_INSUFFICIENT_SIZE), [sample(7, 40)]]

    def ask(handle: Any, since_us: int) -> Any:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    binding: Any = SimpleNamespace(nvmlDeviceGetProcessUtilization=ask)
    assert read_busy(binding, None, 0, NOW, where=GPU).percent == {7: 40}


@pytest.mark.parametrize(
    "garbage",
    [
        sample(0, 37100),  # nvtop #110
        sample(7, 999),  # HAMi #1089
        sample(7, NONE),  # nvidia_gpu_exporter #418, DCGM #199
        sample(7, 40, NOW - 60 * SECOND),  # before what was asked for
        sample(7, 40, NOW + 60 * SECOND),  # after now
        sample(NONE, 40),
    ],
)
def test_garbage_utilisation_is_left_out_and_told(garbage: SimpleNamespace) -> None:
    """Impossible samples are dropped with a problem, and the others still count."""
    busy = busy_of([garbage, sample(8, 30)], NOW - SECOND, NOW, where=GPU)
    assert busy.percent == {8: 30}
    assert [problem.code for problem in busy.problems] == ["bad-utilisation"]


def test_a_hundred_garbage_samples_are_one_problem() -> None:
    """A buffer full of garbage is told once, with its number."""
    busy = busy_of([sample(0, 37100)] * 100, NOW - SECOND, NOW, where=GPU)
    assert len(busy.problems) == 1
    assert "100 utilisation samples" in busy.problems[0].message


def test_several_samples_of_a_pid_are_averaged_and_the_newest_remembered() -> None:
    """The next look asks from the newest stamp on, so that no sample counts twice."""
    busy = busy_of([sample(7, 40, NOW - 20), sample(7, 61, NOW - 10)], NOW - SECOND, NOW, where=GPU)
    assert busy.percent == {7: 50}
    assert busy.last_sample_us == NOW - 10


def test_a_clock_set_back_does_not_silence_utilisation() -> None:
    """A last sample in the future would make the driver give nothing until the clock is there again."""
    asked: list[int] = []
    binding: Any = SimpleNamespace(
        nvmlDeviceGetProcessUtilization=lambda handle, since_us: asked.append(since_us) or [sample(7, 40, NOW)]
    )
    assert read_busy(binding, None, NOW + 3600 * SECOND, NOW, where=GPU).percent == {7: 40}
    assert asked == [NOW]


def test_utilisation_is_joined_by_pid_and_absence_of_a_sample_is_zero() -> None:
    """The driver lists only pids with samples: the others were not busy as far as it looks."""
    held = {(GPU, 7): Held("C", 300), (GPU, 8): Held("C", 1)}
    busy = Busy(percent={7: 40}, last_sample_us=NOW)
    contexts = living_contexts(held, busy, AccountingLook(), gpu=GPU, before={})
    assert [context.busy_percent for context in contexts.values()] == [40, 0]
    unknown = Busy(percent=Missing("x"), last_sample_us=NOW)
    contexts = living_contexts(held, unknown, AccountingLook(), gpu=GPU, before={})
    assert all(isinstance(context.busy_percent, Missing) for context in contexts.values())


def test_accounted_says_what_the_list_says() -> None:
    """Running row: True with its start. List read and not in it: False. Hidden by a dead row: Missing."""
    held = {(GPU, pid): Held("C", 1) for pid in (7, 8, 9)}
    look = AccountingLook(running={7: NOW - SECOND}, doubled=frozenset({9}), listed=3)
    busy = Busy(percent={}, last_sample_us=NOW)
    running, unlisted, hidden = living_contexts(held, busy, look, gpu=GPU, before={}).values()
    assert (running.accounted, running.started_at_us) == (True, NOW - SECOND)
    assert unlisted.accounted is False
    assert isinstance(unlisted.started_at_us, Missing)
    assert isinstance(hidden.accounted, Missing)
    assert isinstance(hidden.started_at_us, Missing)


def test_accounting_that_is_off_says_nothing_of_a_context() -> None:
    """Off or unsupported: whether a context is accounted is not known, rather than no."""
    busy = Busy(percent={}, last_sample_us=NOW)
    contexts = living_contexts({(GPU, 7): Held("C", 1)}, busy, Missing("accounting: disabled"), gpu=GPU, before={})
    assert isinstance(contexts[GPU, 7].accounted, Missing)


def test_a_running_row_that_no_list_shows_is_a_living_context() -> None:
    """Only the accounting list knows it: kind A, its memory not known, its start is."""
    look = AccountingLook(running={7: NOW - SECOND}, listed=1)
    contexts = living_contexts({}, Busy(percent={7: 5}, last_sample_us=NOW), look, gpu=GPU, before={})
    context = contexts[GPU, 7]
    assert (context.kinds, context.accounted, context.busy_percent) == ("A", True, 5)
    assert isinstance(context.memory_mib, Missing)


def test_unchanged_contexts_are_the_same_objects() -> None:
    """What has not changed since the last look is not built again; what has is."""
    held = {(GPU, 7): Held("C", 300), (GPU, 8): Held("C", 1)}
    first = living_contexts(held, Busy(percent={}, last_sample_us=0), AccountingLook(), gpu=GPU, before={})
    second = living_contexts(held, Busy(percent={8: 9}, last_sample_us=0), AccountingLook(), gpu=GPU, before=first)
    assert second[GPU, 7] is first[GPU, 7]
    assert second[GPU, 8].busy_percent == 9
