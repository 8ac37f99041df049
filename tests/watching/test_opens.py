"""What opens prove: idle time, a list that lost nothing, contexts whose rows are lost. And what they do not."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuledger.model.missing import Missing
from gpuledger.model.readings import DeviceReading, FinishedRow, LivingContext, NamesLook, Opened
from gpuledger.model.reasons import IDLE, UnknownReason
from gpuledger.watching.accounting import ListLook, device_status
from gpuledger.watching.opens import KEPT_UNREAD_US, Opens, Verdict

GPU = "GPU-11111111-2222-3333-4444-555555555555"
T0 = 1_790_000_000_000_000
SECOND = 1_000_000
EMPTY = UnknownReason.EMPTY_LEDGER
OVERFLOW = UnknownReason.RING_OVERFLOW


def at(second: float) -> int:
    return T0 + int(second * SECOND)


def opened(
    pid: int, second: float, until: float | None = None, *, ticks: int = 7, minor: int = 0, found: bool = False,
    number: int = 0, became: bool = False,
):  # fmt: skip
    return Opened(
        pid=pid, start_ticks=ticks, minor=minor, opened_at_us=at(second), is_found=found, number=number, became=became,
        exited_at_us=Missing("still alive") if until is None else at(until),
    )  # fmt: skip


def finished(pid: int, second: float | None) -> FinishedRow:
    return FinishedRow(
        pid=pid, started_at_us=Missing("no start") if second is None else at(second), context_ms=100,
        peak_memory_mib=1, gpu_percent=0, memory_percent=0,
    )  # fmt: skip


def alive(pid: int) -> LivingContext:
    return LivingContext(
        pid=pid, device=GPU, kinds="C", memory_mib=1, started_at_us=Missing("not accounted"), accounted=False,
        busy_percent=0,
    )  # fmt: skip


class Looking:
    """One device, looked at every second or so by a watcher that sees opens."""

    def __init__(self, *, minor: int | Missing = 0) -> None:
        self.opens = Opens(host="box", boot_id="boot")
        self.minor = minor
        self.second: float = 0
        self.status: str = EMPTY
        self.touched: set[tuple[int, int]] = set()

    def look(
        self,
        second: float,
        *told: Opened,
        rows: Iterable[FinishedRow] = (),
        living: Iterable[int] = (),
        loss: str = "",
        lost: str = "",
        sees: bool = True,
        follows: bool = True,
        same_load: bool = True,
    ) -> Verdict:
        rows, contexts = tuple(rows), tuple(alive(pid) for pid in living)
        device = DeviceReading(
            uuid=GPU, product="L4", memory_mib=1, accounting="enabled", finished=rows, living=contexts,
            listed=len(rows), minor=self.minor,
        )  # fmt: skip
        names = NamesLook(method="ebpf", opened=told, sees_opens=sees, lost=lost)
        self.touched = self.opens.take(names, [device], at_us=at(second))
        verdict = self.opens.judge(
            device, ListLook(status=device_status(device), loss=loss, fresh=rows), names, at_us=at(second),
            since_us=at(self.second) if follows else None, before=self.status, is_same_load=same_load,
        )  # fmt: skip
        self.second, self.status = second, verdict.status
        return verdict

    def freed(self, second: float) -> list[tuple[float, float, str]]:
        """Looks until the driver has had its time; where a row may have been lost, in seconds."""
        found = [span for later in range(3) for span in self.look(second + later).freed]
        return [((since - T0) / SECOND, (until - T0) / SECOND, told) for since, until, told in found]

    def settle(self, second: float) -> list[tuple[int, float, float]]:
        """Looks until the driver has had its time; contexts found, by pid and seconds."""
        found = [*self.look(second).sightings, *self.look(second + 1).sightings, *self.look(second + 2).sightings]
        return [(row.pid, (row.since_us - T0) / SECOND, (row.until_us - T0) / SECOND) for row in found]


def test_an_empty_list_over_which_nobody_opened_the_device_is_idle() -> None:
    """And says so."""
    looking = Looking()
    verdict = looking.look(1)
    assert verdict.status == IDLE
    assert verdict.detail.startswith("proven idle: accounting was on")
    assert looking.look(2).status == IDLE


@pytest.mark.parametrize(
    "words",
    [{"sees": False}, {"lost": "3 events lost"}, {"follows": False}, {"same_load": False}, {"loss": "accounting-reset"},
     {"living": [7]}],
)  # fmt: skip
def test_idle_needs_every_part_of_its_proof(words: dict) -> None:
    """Opens seen, none lost, the look before, the same load, no loss, nobody alive."""
    looking = Looking()
    assert looking.look(1, **words).status == EMPTY
    assert Looking(minor=Missing("not told")).look(1).status == EMPTY


def test_idle_needs_an_empty_list_at_the_look_before_too() -> None:
    """What was on at the look before has not been idle since."""
    looking = Looking()
    looking.status = UnknownReason.ACCOUNTING_DISABLED
    assert looking.look(1).status == EMPTY
    assert looking.look(2).status == IDLE
    looking.look(3, living=[7])
    assert looking.look(4).status == EMPTY
    assert looking.look(5).status == IDLE


def test_an_opener_of_which_the_driver_lists_nothing_leaves_the_time_unknown() -> None:
    """It opened the device and may have used it; with its pid, so that somebody can look."""
    looking = Looking()
    assert looking.look(1, opened(7, 0.5)).detail == "opened by pid 7, of which the driver lists nothing"
    assert looking.look(2).status == EMPTY
    assert looking.look(3, opened(7, 0.5, 2.5)).status == EMPTY
    assert looking.look(4).status == IDLE
    many = looking.look(5, *(opened(pid, 4.1, 4.2) for pid in range(100, 108)))
    assert many.detail == "opened by pid 100, 101, 102, 103, 104 and 3 more, of which the driver lists nothing"
    assert looking.look(6, opened(9, 5.5, minor=1)).status == IDLE


def test_a_context_that_was_never_accounted_is_no_idle_time_once_it_is_gone() -> None:
    """It was on the living list, its process holds the device still, or held it a moment ago."""
    looking = Looking()
    looking.look(1, opened(7, 0.5), living=[7])
    assert looking.look(2).status == EMPTY
    assert looking.look(3).status == EMPTY
    assert looking.look(4, opened(7, 0.5, 3.2)).status == EMPTY
    assert looking.look(5).status == IDLE


def test_an_open_while_the_device_was_left_out_of_a_look_is_remembered() -> None:
    """The device comes back, and its opener is there."""
    looking = Looking()
    looking.look(1)
    names = NamesLook(method="ebpf", opened=(opened(7, 1.5),), sees_opens=True)
    assert looking.opens.take(names, [], at_us=at(2)) == {(7, 7)}
    assert looking.look(3).status == EMPTY


def test_opens_of_a_device_that_is_not_ours_are_not_kept_for_ever() -> None:
    """A container's agent sees the opens of every GPU, and reads its own."""
    looking = Looking()
    looking.look(1, opened(7, 0.5, 0.6, minor=5), opened(8, 0.5, minor=5))
    assert looking.touched == set()
    assert len(looking.opens._openers[5]) == 2
    looking.look(1 + KEPT_UNREAD_US / SECOND)
    assert list(looking.opens._openers[5]) == [(8, 7, 0)]


def storm(count: int, *, second: float = 1.1) -> tuple[list[Opened], list[FinishedRow]]:
    """So many processes that came and went, and their rows."""
    pids = range(1000, 1000 + count)
    return [opened(pid, second, second + 0.2, ticks=pid) for pid in pids], [finished(pid, second) for pid in pids]


def test_128_new_rows_are_no_loss_where_events_tell_of_no_other() -> None:
    """Everyone who had the device open since is alive on it or has its row."""
    looking = Looking()
    looking.look(1, opened(7, 0.5), living=[7])
    told, rows = storm(128)
    verdict = looking.look(2, *told, rows=rows, living=[7], loss=OVERFLOW)
    assert (verdict.loss, verdict.status) == ("", "ok")
    assert verdict.detail == "128 new rows in one look, and events tell of no other"
    assert looking.settle(3) == []


@pytest.mark.parametrize(
    ("told", "rows", "lost"),
    [
        ([opened(7, 1.1, 1.3)], [], ""),  # one more ended
        ([opened(7, 0.2)], [], ""),  # one more has it open, and is not alive on it
        ([], [finished(7, 1.1)], ""),  # a row of somebody that no event told of
        ([opened(1000, 1.4, 1.5, ticks=9)], [], ""),  # the pid twice: the second stint frees the first one's row
        ([opened(1000, 1.4, 1.5, ticks=9)], [finished(1000, 1.4)], ""),
        ([], [], "1 event lost"),
    ],
)  # fmt: skip
def test_128_new_rows_are_a_loss_as_soon_as_one_does_not_fit(told: list, rows: list, lost: str) -> None:
    """One process more, one row more, one event less."""
    looking = Looking()
    looking.look(1)
    stormed, ring = storm(127)
    verdict = looking.look(2, *stormed, *told, rows=[*ring, *rows], loss=OVERFLOW, lost=lost)
    assert verdict.loss == OVERFLOW


def test_lost_rows_are_contexts_from_open_to_exit_once_the_driver_had_its_time() -> None:
    """Two looks and two seconds; with the process, dead, and no memory."""
    looking = Looking()
    looking.look(1)
    told, rows = storm(130)
    assert looking.look(2, *told, rows=rows[2:], loss=OVERFLOW).sightings == ()
    assert looking.look(3).sightings == ()
    found = looking.look(3.5).sightings
    assert [(row.pid, row.start_ticks, row.since_us, row.until_us, row.gone_at_us) for row in found] == [
        (pid, pid, at(1.1), at(1.3), at(1.3)) for pid in (1000, 1001)
    ]
    assert {(row.method, row.process_died, row.samples, row.boot_id, row.device) for row in found} == {
        ("ebpf", 1, 0, "boot", GPU)
    }
    assert looking.settle(4) == []


def test_a_row_that_comes_a_look_late_is_the_row() -> None:
    """The kernel tells the exit before the device is closed."""
    looking = Looking()
    looking.look(1)
    told, rows = storm(130)
    looking.look(2, *told, rows=rows[2:], loss=OVERFLOW)
    looking.look(3, rows=rows[:2])
    assert looking.settle(4) == []


def test_an_open_alone_is_no_use() -> None:
    """No row was lost when it ended, so none was written: it looked, and used nothing."""
    looking = Looking()
    looking.look(1, opened(7, 0.5, 0.9))
    assert looking.settle(2) == []


def test_a_loss_is_of_those_that_ended_in_it() -> None:
    """Who ended long before had its time, who goes on is seen alive."""
    looking = Looking()
    looking.look(10, opened(7, 0.5, 1), opened(8, 0.5, 9.5), opened(9, 9))
    looking.look(20, opened(10, 15, 16), rows=[finished(1, 15)], loss=OVERFLOW)
    assert looking.settle(21) == [(10, 15.0, 16.0)]


def test_a_second_stint_of_a_pid_frees_the_first_ones_row() -> None:
    """Which proves that it had one: its context is booked, though the ring did not run over."""
    looking = Looking()
    looking.look(1)
    looking.look(9, opened(7, 1.5, 2), opened(7, 5, 6, ticks=8), rows=[finished(7, 5)])
    assert looking.settle(10) == [(7, 1.5, 2.0)]


def chain(pid: int, *spans: tuple[float, float], goes_on: bool = False) -> list[Opened]:
    """One process that becomes a program after the other, each of which opens the device."""
    last = len(spans) - 1
    return [
        opened(pid, since, None if goes_on and number == last else until, number=number, became=number < last)
        for number, (since, until) in enumerate(spans)
    ]


def test_programs_before_the_last_one_leave_no_row_and_no_proof_of_one() -> None:
    """The driver keeps one row a pid: whether the first two had contexts nobody can tell, so it is said, not booked."""
    looking = Looking()
    looking.look(1)
    told = chain(7, (1.1, 1.2), (1.25, 1.3), (1.35, 1.9))
    verdict = looking.look(2, *told, rows=[finished(7, 1.351)])
    told = "pid 7 let go of the device 2 times by exec and held it anew before its row could be read"
    assert (verdict.sightings, verdict.freed) == ((), ((at(1.1), at(1.3), told),))
    assert looking.freed(3) == []


def test_a_process_known_to_use_the_device_used_it_before_its_row_was_freed_too() -> None:
    """Its first program was seen alive, its third has a row: the second is booked from open to exec."""
    looking = Looking()
    looking.look(1, *chain(7, (0.5, 9), goes_on=True), living=[7])
    told = chain(7, (0.5, 1.2), (1.25, 1.5), (1.55, 1.9))
    found = looking.look(2, *told, rows=[finished(7, 1.551)]).sightings
    assert [(row.since_us, row.until_us, row.gone_at_us, row.process_died) for row in found] == [
        (at(1.25), at(1.5), at(1.5), 0)
    ]
    assert looking.freed(6) == []


def test_what_it_does_later_proves_nothing_of_what_it_did_before() -> None:
    """A launcher asks for the devices, and becomes what uses one."""
    looking = Looking()
    looking.look(1)
    looking.look(2, *chain(7, (1.1, 1.2), (1.3, 1.4), (1.5, 9), goes_on=True), rows=[finished(7, 1.3)], living=[7])
    assert looking.settle(3) == []


def test_a_look_between_two_programs_that_finds_no_row_proves_that_there_was_none() -> None:
    """The close of the first came before the open of the second, so its row would have been there."""
    looking = Looking()
    looking.look(1)
    looking.look(2, *chain(7, (1.1, 1.2), (1.3, 9), goes_on=True))
    looking.look(3, *chain(7, (1.1, 1.2), (1.3, 2.5)), rows=[finished(7, 1.301)])
    assert looking.freed(4) == []


def test_each_row_is_of_the_program_that_opened_the_device_last_before_it() -> None:
    """Programs follow within milliseconds, so two seconds would take any of them."""
    looking = Looking()
    looking.look(1)
    looking.look(2, *chain(7, (1.1, 1.2), (1.21, 9), goes_on=True), rows=[finished(7, 1.1001)])
    [found] = looking.look(3, *chain(7, (1.1, 1.2), (1.21, 1.22), (1.23, 2.9)), rows=[finished(7, 1.2301)]).sightings
    assert (found.since_us, found.until_us) == (at(1.21), at(1.22))
    assert looking.settle(4) == []


def test_in_a_ring_that_ran_over_every_program_counts() -> None:
    """The one whose row is there by its row, the others from open to exec."""
    looking = Looking()
    looking.look(1)
    verdict = looking.look(2, *chain(7, (1.1, 1.2), (1.25, 1.9)), rows=[finished(7, 1.2501)], loss=OVERFLOW)
    assert [(row.since_us, row.until_us) for row in verdict.sightings] == [(at(1.1), at(1.2))]
    assert (looking.settle(3), verdict.freed) == ([], ())


def test_the_exec_that_let_go_of_a_device_is_known_at_its_look() -> None:
    """So a context ends there and not at the look that missed it."""
    looking = Looking()
    looking.look(1, *chain(7, (0.5, 9), goes_on=True), living=[7])
    looking.look(2, *chain(7, (0.5, 1.2), (1.3, 9), goes_on=True), living=[7])
    assert looking.opens.lets_go(GPU, 7, 7, since_us=at(1), until_us=at(2)) == at(1.2)
    assert looking.opens.lets_go(GPU, 7, 7, since_us=at(1.3), until_us=at(2)) is None
    looking.look(3)
    assert looking.opens.lets_go(GPU, 7, 7, since_us=at(1), until_us=at(3)) is None


def test_an_exec_after_the_driver_was_read_ends_the_context_at_the_next_look() -> None:
    """The look saw it alive; events are read a moment later."""
    looking = Looking()
    looking.look(1, *chain(7, (0.5, 1.05), (1.06, 9), goes_on=True), living=[7])
    assert looking.opens.lets_go(GPU, 7, 7, since_us=at(0), until_us=at(1)) is None
    looking.look(2, living=[7])
    assert looking.opens.lets_go(GPU, 7, 7, since_us=at(1), until_us=at(2)) == at(1.05)


def test_a_context_of_the_next_program_begins_with_its_own_open() -> None:
    """And each program's once."""
    looking = Looking()
    looking.look(1, *chain(7, (0.5, 9), goes_on=True))
    assert looking.opens.begins(GPU, 7, 7) == at(0.5)
    looking.look(2, *chain(7, (0.5, 1.2), (1.3, 9), goes_on=True), living=[7])
    assert looking.opens.begins(GPU, 7, 7) == at(1.3)
    assert looking.opens.begins(GPU, 7, 7) is None


def test_who_was_found_holding_the_device_opened_it_earlier() -> None:
    """A row that began hours before the snapshot is its row all the same."""
    looking = Looking()
    looking.look(1, opened(7, 1, found=True))
    looking.look(2, opened(7, 1, 1.5, found=True), rows=[finished(7, -9000)], loss=OVERFLOW)
    assert looking.settle(3) == []
    other = Looking()
    other.look(1, opened(7, 1))
    other.look(2, opened(7, 1, 1.5), rows=[finished(7, -9000)], loss=OVERFLOW)
    assert other.settle(3) == [(7, 1.0, 1.5)]


def test_a_row_without_a_start_can_be_anyones_of_its_pid() -> None:
    """So it is taken for the opener's: a context is never booked twice."""
    looking = Looking()
    looking.look(2, opened(7, 1, 1.5), rows=[finished(7, None)], loss=OVERFLOW)
    assert looking.settle(3) == []


def test_a_context_begins_at_its_first_open_once() -> None:
    """A second context of the same process began later, nobody knows when."""
    looking = Looking()
    looking.look(1, opened(7, 0.5))
    assert looking.opens.begins(GPU, 7, 8) is None
    assert looking.opens.begins("GPU-other", 7, 7) is None
    assert looking.opens.begins(GPU, 7, 7) == at(0.5)
    assert looking.opens.begins(GPU, 7, 7) is None


def test_a_clock_that_is_set_leaves_no_length_from_before(tmp_path) -> None:
    """An hour that nobody lived is no context."""
    looking = Looking()
    looking.look(1, opened(7, 0.5))
    looking.opens.step(at(3600))
    looking.second = 3600
    looking.look(3601, opened(7, 0.5, 3600.5), loss=OVERFLOW, rows=[finished(1, 3600)])
    assert looking.settle(3602) == [(7, 3600.0, 3600.5)]


jobs = st.lists(
    st.tuples(st.integers(1, 6), st.integers(0, 40), st.integers(0, 12), st.booleans()), max_size=12
)  # fmt: skip


@settings(max_examples=150, deadline=None)
@given(jobs=jobs, order=st.randoms(use_true_random=False))
def test_the_order_in_which_opens_are_told_does_not_matter(jobs: list, order) -> None:
    """Twice told, or in another order within a look: the same contexts, each within the life of its process."""

    def found(shuffled: bool) -> list[tuple[int, float, float]]:
        looking = Looking()
        seen = []
        for second in range(1, 60):
            told = [
                opened(pid, begun / 2, (begun + length) / 2, ticks=number + 1)
                for number, (pid, begun, length, _) in enumerate(jobs)
                if second - 1 <= (begun + length) / 2 < second
            ]
            rows = [
                finished(pid, begun / 2)
                for pid, begun, length, is_kept in jobs
                if is_kept and second - 1 <= (begun + length) / 2 < second
            ]
            if shuffled:
                told = told * 2
                order.shuffle(told)
            loss = OVERFLOW if second % 5 == 0 else ""
            seen += [
                (row.pid, row.since_us, row.until_us)
                for row in looking.look(second, *told, rows=rows, loss=loss).sightings
            ]
        assert not looking.opens._openers.get(0)
        return sorted(seen)

    once = found(False)
    assert once == found(True)
    lives = {(pid, at(begun / 2), at((begun + length) / 2)) for pid, begun, length, _ in jobs}
    assert set(once) <= lives
