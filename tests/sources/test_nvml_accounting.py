"""The accounting list: each of its traps by name, and the proof that lets settled rows be kept."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pynvml
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuledger.model.missing import Missing
from gpuledger.model.readings import FinishedRow
from gpuledger.sources.nvml_accounting import (
    FULL_LOOKS,
    MIB,
    NOT_AVAILABLE_U32,
    NOT_AVAILABLE_U64,
    AccountingList,
    RawStats,
    interpret,
    read_stats,
)
from gpuledger.sources.simulated import SimulatedDriver

NOW = 1_790_000_000_000_000
SECOND = 1_000_000
GPU = "GPU-a"


def raw(**changes: int) -> RawStats:
    """A plain finished row, but for the changes."""
    plain = RawStats(
        gpuUtilization=12, memoryUtilization=3, maxMemoryUsage=184 * MIB, time=679, startTime=NOW - SECOND, isRunning=0
    )
    return plain._replace(**changes)


def understood(figures: RawStats) -> FinishedRow:
    """The row of figures that must be believable."""
    settled = interpret(7, figures, where=GPU, memory_mib=81559, now_us=NOW)
    assert isinstance(settled.row, FinishedRow)
    return settled.row


def test_a_short_job_keeps_its_time_though_it_reads_no_utilisation() -> None:
    """A 679 ms job with 184 MiB reads 0 %: its time is a row like any other."""
    row = understood(raw(gpuUtilization=0, memoryUtilization=0))
    assert (row.context_ms, row.peak_memory_mib, row.gpu_percent) == (679, 184, 0)


def test_zero_peak_memory_is_what_the_driver_says() -> None:
    """0 MiB is neither made absent nor taken for no use (L40S on 595.80 writes it for a row of 153 s)."""
    assert understood(raw(maxMemoryUsage=0, time=153_712)).peak_memory_mib == 0


def test_sentinel_of_peak_memory_is_an_absent_value() -> None:
    """2^64 - 1 bytes means not available: Missing, and no problem."""
    settled = interpret(7, raw(maxMemoryUsage=NOT_AVAILABLE_U64), where=GPU, memory_mib=81559, now_us=NOW)
    assert isinstance(settled.row, FinishedRow)
    assert isinstance(settled.row.peak_memory_mib, Missing)
    assert settled.problems == ()


def test_sentinel_of_utilisation_is_an_absent_value() -> None:
    """4294967295 % means not available; the binding never converts it."""
    row = understood(raw(gpuUtilization=NOT_AVAILABLE_U32, memoryUtilization=NOT_AVAILABLE_U32))
    assert isinstance(row.gpu_percent, Missing)
    assert isinstance(row.memory_percent, Missing)


def test_utilisation_over_100_is_left_out_and_told() -> None:
    """A percentage that cannot be becomes no other percentage."""
    settled = interpret(7, raw(gpuUtilization=999), where=GPU, memory_mib=81559, now_us=NOW)
    assert isinstance(settled.row, FinishedRow)
    assert isinstance(settled.row.gpu_percent, Missing)
    assert [problem.code for problem in settled.problems] == ["bad-utilisation"]


def test_peak_memory_beyond_the_device_is_left_out_and_told() -> None:
    """More memory than there is comes from a garbled row; without a known total nothing is judged."""
    settled = interpret(7, raw(maxMemoryUsage=81560 * MIB), where=GPU, memory_mib=81559, now_us=NOW)
    assert isinstance(settled.row, FinishedRow)
    assert isinstance(settled.row.peak_memory_mib, Missing)
    assert [problem.code for problem in settled.problems] == ["bad-memory"]
    unjudged = interpret(7, raw(maxMemoryUsage=81560 * MIB), where=GPU, memory_mib=Missing("x"), now_us=NOW)
    assert isinstance(unjudged.row, FinishedRow)
    assert unjudged.row.peak_memory_mib == 81560


@pytest.mark.parametrize("context_ms", [NOT_AVAILABLE_U64 // 1000, NOT_AVAILABLE_U64, NOW])
def test_context_time_that_wrapped_leaves_the_row_out(context_ms: int) -> None:
    """A clock set back under a context wraps its time around: no plausible number replaces it."""
    settled = interpret(7, raw(time=context_ms), where=GPU, memory_mib=81559, now_us=NOW)
    assert isinstance(settled.row, Missing)
    assert [problem.code for problem in settled.problems] == ["bad-context-time"]


@pytest.mark.parametrize("start", [0, 1_000_000, NOT_AVAILABLE_U64])
def test_start_that_is_no_time_is_missing_and_told(start: int) -> None:
    """A start in 1970 comes from a clock that was not set yet; the row's own time still counts."""
    settled = interpret(7, raw(startTime=start), where=GPU, memory_mib=81559, now_us=NOW)
    assert isinstance(settled.row, FinishedRow)
    assert isinstance(settled.row.started_at_us, Missing)
    assert settled.row.context_ms == 679
    assert [problem.code for problem in settled.problems] == ["bad-start-time"]


def test_end_in_the_future_is_kept() -> None:
    """After the clock was set back an hour, rows that ended before it lie ahead: they are evidence still."""
    assert understood(raw(startTime=NOW + 3600 * SECOND)).started_at_us == NOW + 3600 * SECOND


class Counting(SimulatedDriver):
    """The simulated driver, counting stats calls; may do something at one of them."""

    def __init__(self, now_us: Any) -> None:
        super().__init__(now_us)
        self.asked: list[int] = []
        self.during: Any = None

    def nvmlDeviceGetAccountingStats(self, handle: Any, pid: int) -> SimpleNamespace:  # noqa: N802 - the binding's
        self.asked.append(pid)
        if self.during:
            self.during, during = None, self.during
            during()
        return super().nvmlDeviceGetAccountingStats(handle, pid)


class Box:
    """One accounted GPU, a clock, and the list under test."""

    def __init__(self) -> None:
        self.now_us = NOW
        self.driver = Counting(lambda: self.now_us)
        self.driver.add_gpu(GPU, accounting=True)
        self.handle = self.driver.nvmlDeviceGetHandleByIndex(0)
        self.list = AccountingList(GPU, 81559)

    def run(self, pid: int, ms: int = 500) -> None:
        """A process that opens the device and closes it again."""
        self.driver.start(pid, GPU, 184)
        self.now_us += ms * 1000
        self.driver.finish(pid, GPU)

    def look(self, wait_us: int = SECOND) -> Any:
        """One look, a while later; the pids whose rows were asked for are in ``driver.asked``."""
        self.now_us += wait_us
        self.driver.asked.clear()
        return self.list.look(self.driver, self.handle, self.now_us)

    def truth(self) -> list[tuple[int, int, int]]:
        """Finished rows as the driver holds them: pid, start, ms."""
        return [(row.pid, row.started_at_us, row.context_ms) for row in self.handle.dead.values()]


def seen(look: Any) -> list[tuple[int, int, int]]:
    """Finished rows as read."""
    return [(row.pid, row.started_at_us, row.context_ms) for row in look.finished]


def test_settled_rows_are_asked_for_once() -> None:
    """A ring of 100 settled rows costs one call a look, plus one for each running row."""
    box = Box()
    for pid in range(1, 101):
        box.run(pid)
    box.driver.start(500, GPU, 184)
    first = box.look()
    assert len(first.finished) == 100
    assert len(box.driver.asked) == 101
    box.look()
    assert box.driver.asked == [500, 100]
    box.run(200)
    assert seen(box.look()) == box.truth()
    assert box.driver.asked == [500, 200, 100]


def test_an_unchanged_list_gives_the_same_object() -> None:
    """Who reads the rows can see at a glance that none is new."""
    box = Box()
    box.run(1)
    assert box.look().finished is box.look().finished


def test_the_same_list_with_another_row_is_read() -> None:
    """A daemon that opens and closes again and again leaves the same list each time, and another row."""
    box = Box()
    box.run(1)
    box.run(2)
    box.look()
    for _ in range(3):
        box.run(2)
        assert seen(box.look()) == box.truth()


def test_rows_replaced_in_the_same_order_are_read() -> None:
    """Two daemons in turn leave the same list of two, both rows new."""
    box = Box()
    for _ in range(4):
        box.run(1)
        box.run(2)
        assert seen(box.look()) == box.truth()


def test_reused_pid_gives_the_old_row_while_the_new_one_runs() -> None:
    """The stats call finds the dead first: one finished row, and a running one that cannot be read."""
    box = Box()
    box.run(1)
    box.run(9)
    box.driver.start(1, GPU, 184)
    look = box.look()
    assert look.listed == 3
    assert [row.pid for row in look.finished] == [1, 9]
    assert look.running == {}
    assert look.doubled == {1}
    box.driver.finish(1, GPU)
    assert seen(box.look()) == box.truth()


def test_a_row_that_went_away_between_list_and_call_is_no_error() -> None:
    """NotFound for a pid just listed is normal: the row is read next time if it comes back."""
    box = Box()
    box.run(1)
    box.run(2)
    box.driver.fail("nvmlDeviceGetAccountingStats", pynvml.NVML_ERROR_NOT_FOUND, times=1)
    assert [row.pid for row in box.look().finished] == [1]
    assert seen(box.look()) == box.truth()


def test_other_errors_are_raised() -> None:
    """A list that failed is not an empty list."""
    box = Box()
    box.run(1)
    box.driver.fail("nvmlDeviceGetAccountingStats", pynvml.NVML_ERROR_TIMEOUT, times=1)
    with pytest.raises(pynvml.NVMLError_Timeout):
        box.look()


def test_all_rows_are_read_again_once_a_minute() -> None:
    """Whatever a future driver does, a stale row does not stay."""
    box = Box()
    for pid in range(1, 11):
        box.run(pid)
    most = 0
    for _ in range(FULL_LOOKS + 1):
        box.look()
        most = max(most, len(box.driver.asked)) if box.list._looks > 1 else 0
    assert most == 10


def test_a_list_in_another_order_is_read_whole() -> None:
    """Where ends do not rise along the list, the proof does not hold, and no row is kept unasked."""
    box = Box()
    box.run(1)
    box.now_us -= 3600 * SECOND  # the clock is set back
    box.run(2)
    box.look()
    box.look()
    assert box.driver.asked == [2, 1]


def test_a_context_that_ended_during_a_look_is_no_proof() -> None:
    """Two second stints may end between two calls of one walk, and the one read first must not stay as it was."""
    box = Box()
    box.run(1)
    box.run(2)
    box.driver.start(1, GPU, 184)
    box.driver.start(2, GPU, 184)

    def both_end() -> None:
        box.driver.finish(2, GPU, box.now_us + 10)
        box.driver.finish(1, GPU, box.now_us + 20)

    def later() -> None:
        box.driver.during = both_end

    box.driver.during = later  # pid 2 is read first, as it was; both end before pid 1 is read
    box.look(wait_us=100)
    assert seen(box.look()) == box.truth()


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("open"), st.integers(1, 5)),
        st.tuples(st.just("close"), st.integers(1, 5)),
        st.tuples(st.just("wait"), st.integers(1, 2_000_000)),
        st.tuples(st.just("set the clock back by"), st.integers(1, 5_000_000)),
        st.tuples(st.just("reload"), st.just(0)),
        st.tuples(st.just("look while this closes"), st.integers(1, 5)),
        st.tuples(st.just("look"), st.just(0)),
    ),
    max_size=40,
)


@settings(max_examples=150, deadline=None)
@given(STEPS)
def test_what_is_kept_is_what_the_driver_holds(steps: list[tuple[str, int]]) -> None:
    """Law: after any history of opens, closes, reuse, reloads and clock steps, a look gives the driver's rows."""
    box = Box()
    for step, amount in steps:
        living = box.handle.living
        match step:
            case "open" if amount not in living:
                box.driver.start(amount, GPU, 184)
            case "close" if amount in living:
                box.driver.finish(amount, GPU)
            case "wait":
                box.now_us += amount
            case "set the clock back by":
                box.now_us -= amount
            case "reload":
                box.driver.reload()
                box.driver.nvmlDeviceSetAccountingMode(box.handle, 1)
            case "look while this closes" if amount in living:
                box.driver.during = lambda pid=amount: box.driver.finish(pid, GPU, box.now_us + 5)
                box.look(wait_us=1)
                box.driver.during = None
            case "look":
                believable = [row for row in box.truth() if row[2] < 2**40]
                assert seen(box.look(wait_us=1)) == believable


def test_binding_objects_with_none_for_memory_are_read() -> None:
    """An object that already turned the sentinel into None is read as not available."""
    stats = SimpleNamespace(**raw()._asdict())
    stats.maxMemoryUsage = None
    binding: Any = SimpleNamespace(nvmlDeviceGetAccountingStats=lambda handle, pid: stats)
    figures = read_stats(binding, None, 7)
    assert figures is not None
    assert isinstance(understood(figures).peak_memory_mib, Missing)
