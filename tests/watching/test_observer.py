"""The observer: what looks become, one look after another."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import pytest

from gpuledger.model.identity import IdentityText
from gpuledger.model.missing import Missing
from gpuledger.model.moments import iso
from gpuledger.model.readings import DeviceReading, FinishedRow, LivingContext, Named, NamesLook, Opened, Reading
from gpuledger.model.rows import DeviceEvent, DriverRecord, ProcessIdentity, Row, Sighting, Watch
from gpuledger.watching.memory import Beat, Memory
from gpuledger.watching.observer import Observer

GPU = "GPU-11111111-2222-3333-4444-555555555555"
T0 = 1_790_000_000_000_000
SECOND = 1_000_000
BEAT = Beat(interval_us=SECOND, flush_us=300 * SECOND)


def finished(pid: int, started_at_us: int, ms: int = 100) -> FinishedRow:
    return FinishedRow(
        pid=pid, started_at_us=started_at_us, context_ms=ms, peak_memory_mib=184, gpu_percent=0, memory_percent=0
    )


def alive(
    pid: int,
    started_at_us: int | None = None,
    memory_mib: int | Missing = 100,
    accounted: bool | Missing = True,
    busy: int = 0,
) -> LivingContext:
    return LivingContext(
        pid=pid,
        device=GPU,
        kinds="C",
        memory_mib=memory_mib,
        started_at_us=Missing("not accounted") if started_at_us is None else started_at_us,
        accounted=accounted,
        busy_percent=busy,
    )


def reading(
    rows: Iterable[FinishedRow] = (), living: Iterable[LivingContext] = (), accounting: str = "enabled"
) -> Reading:
    rows, living = tuple(rows), tuple(living)
    listed = len(rows) + sum(1 for one in living if one.accounted is True)
    device = DeviceReading(
        uuid=GPU,
        product="NVIDIA L4",
        memory_mib=23034,
        accounting=accounting,
        finished=rows,
        living=living,
        listed=listed,
    )
    return Reading(at_us=T0, method="nvml", driver_version="590.48.01", devices={GPU: device})


def named(pid: int, ticks: int = 7, started_at_us: int = T0 - 60 * SECOND, seen_at_us: int = T0) -> Named:
    return Named(
        pid=pid, start_ticks=ticks, exec_number=0, started_at_us=started_at_us, seen_at_us=seen_at_us,
        text=IdentityText(exe="/usr/bin/thing", command="thing"),
    )  # fmt: skip


def names(*found: Named, fresh: Iterable[Named] | None = None) -> NamesLook:
    return NamesLook(
        method="poll", current={one.pid: one for one in found}, fresh=tuple(found if fresh is None else fresh)
    )


class Watching:
    """An observer with a clock that the test moves."""

    def __init__(self, memory: Memory | None = None, beat: Beat = BEAT) -> None:
        self.observer = Observer(
            host="box", boot_id="boot", key_of=lambda text: text.exe, beat=beat, memory=memory or Memory()
        )
        self.rows: list[Row] = []

    def look(
        self, second: float, what: Reading, who: NamesLook | None = None, boot_second: float | None = None
    ) -> list[Row]:
        at_us = T0 + int(second * SECOND)
        boot_us = 10**9 + int((second if boot_second is None else boot_second) * SECOND)
        rows = self.observer.look(what, who or names(), at_us=at_us, boot_us=boot_us)
        self.rows += rows
        return rows

    def end(self, second: float) -> list[Row]:
        rows = self.observer.flush("nvml", T0 + int(second * SECOND))
        self.rows += rows
        return rows

    def of(self, kind: type[Row]) -> list[Row]:
        return [row for row in self.rows if isinstance(row, kind)]

    def watches(self, source: str = "driver") -> list[tuple[float, float, str]]:
        return [
            ((row.since_us - T0) / SECOND, (row.until_us - T0) / SECOND, row.status)
            for row in self.rows
            if isinstance(row, Watch) and row.source == source
        ]


def test_a_device_is_told_once_and_again_only_when_it_changes() -> None:
    """A month of looks at one unchanged device is one device row."""
    watching = Watching()
    for second in range(5):
        watching.look(second, reading())
    assert [row.event for row in watching.of(DeviceEvent)] == ["seen"]
    watching.look(5, Reading(at_us=T0, method="nvml", devices={}))
    assert [row.event for row in watching.of(DeviceEvent)] == ["seen", "lost"]


def test_looks_of_one_status_become_one_watch_row() -> None:
    """Ten looks are written as the first one and one span, not as ten rows."""
    watching = Watching()
    for second in range(10):
        watching.look(second, reading([finished(1, T0 - 99 * SECOND)]))
    watching.end(9)
    assert watching.watches() == [(0.0, 0.0, "ok"), (0.0, 9.0, "ok")]
    assert watching.watches("process") == [(0.0, 0.0, "ok"), (0.0, 9.0, "ok")]


@pytest.mark.parametrize(
    ("what", "status"),
    [
        (reading(accounting="disabled"), "accounting-disabled"),
        (reading(accounting="unsupported"), "accounting-unsupported"),
        (reading(), "empty-ledger"),
        (reading([finished(5, T0)]), "ok"),
        (reading(living=[alive(5, T0)]), "ok"),
        (reading([finished(5, T0)], accounting="disabled"), "accounting-disabled"),
    ],
)
def test_what_a_list_says_of_itself_is_the_status_of_the_watch(what: Reading, status: str) -> None:
    """Mode off, unsupported, on but empty, or on with rows: four different statements, none of them zero."""
    watching = Watching()
    watching.look(0, what)
    assert watching.watches() == [(0.0, 0.0, status)]


def test_a_finished_row_is_written_once_however_often_it_is_read() -> None:
    """The driver lists a dead process for days; the ledger gets it once."""
    watching = Watching()
    for second in range(3):
        watching.look(second, reading([finished(7, T0 - SECOND)]))
    assert len(watching.of(DriverRecord)) == 1


def test_the_time_between_two_looks_belongs_to_what_the_later_look_found() -> None:
    """A mode found off at second 5 was last known on at second 4."""
    watching = Watching()
    for second in range(5):
        watching.look(second, reading([finished(7, T0 - SECOND)]))
    watching.look(5, reading(accounting="disabled"))
    watching.look(6, reading(accounting="disabled"))
    watching.end(6)
    assert watching.watches()[1:] == [
        (0.0, 4.0, "ok"),
        (4.0, 5.0, "accounting-reset"),
        (5.0, 6.0, "accounting-disabled"),
    ]


def test_every_known_row_gone_is_a_driver_reload() -> None:
    """Rows do not vanish by themselves while the ring has room."""
    watching = Watching()
    watching.look(0, reading([finished(7, T0 - SECOND), finished(8, T0 - SECOND)]))
    watching.look(1, reading([finished(9, T0)]))
    watching.end(1)
    assert (0.0, 1.0, "accounting-reset") in watching.watches()


def test_a_second_stint_that_frees_its_own_older_row_is_no_reload() -> None:
    """The driver keeps one row a pid: the only known row may be replaced by its own pid."""
    watching = Watching()
    watching.look(0, reading([finished(7, T0 - 10 * SECOND)]))
    watching.look(1, reading([finished(7, T0)]))
    watching.end(1)
    assert watching.watches()[-1] == (0.0, 1.0, "ok")
    assert len(watching.of(DriverRecord)) == 2


def test_a_ring_that_went_round_is_unknown_and_its_rows_are_kept() -> None:
    """128 new rows in one look mean loss; the rows that are there count all the same."""
    watching = Watching()
    watching.look(0, reading([finished(pid, T0 - 500 * SECOND) for pid in range(1, 129)]))
    watching.look(1, reading([finished(pid, T0) for pid in range(1001, 1129)]))
    watching.look(2, reading([finished(pid, T0) for pid in range(1001, 1129)]))
    watching.end(2)
    assert watching.watches()[1:] == [(0.0, 1.0, "ring-overflow"), (1.0, 2.0, "ok")]
    assert len(watching.of(DriverRecord)) == 256
    assert watching.observer.most_fresh_rows == 0


def test_a_living_context_is_written_at_first_sight_with_the_time_the_driver_proves() -> None:
    """Held since the driver's start of it, though nobody looked then; memory only where a sample counts."""
    watching = Watching()
    watching.look(0, reading(living=[alive(5, T0 - 100 * SECOND)]), names(named(5)))
    proven, first = watching.of(Sighting)
    assert isinstance(proven, Sighting)
    assert isinstance(first, Sighting)
    assert (proven.since_us, proven.until_us, proven.samples) == (T0 - 100 * SECOND, T0 - 2 * SECOND, 0)
    assert (first.since_us, first.until_us, first.samples) == (T0 - 2 * SECOND, T0, 1)
    assert (proven.memory_mib_ms, first.memory_mib_ms, first.memory_ms) == (0, 200_000, 2000)


def test_samples_count_back_to_the_look_before_and_two_polls_at_most() -> None:
    """100 MiB over four seconds of looks is 400 MiB-seconds; a look that comes late counts two polls."""
    watching = Watching()
    for second in range(5):
        watching.look(second, reading(living=[alive(5, busy=50, accounted=False)]), names(named(5)))
    watching.look(8, reading(living=[alive(5, busy=50, accounted=False)]), names(named(5)))
    watching.end(8)
    rows = [row for row in watching.of(Sighting) if isinstance(row, Sighting)]
    assert sum(row.memory_mib_ms for row in rows) == 100 * 6000
    assert sum(row.busy_ms for row in rows) == 3000
    assert (rows[0].since_us, rows[-1].until_us) == (T0, T0 + 8 * SECOND)


def test_memory_that_cannot_be_read_covers_no_time() -> None:
    """Windows and foreign containers give no memory: that is absence, not 0 MiB."""
    watching = Watching()
    for second in range(3):
        watching.look(second, reading(living=[alive(5, memory_mib=Missing("WDDM"))]), names(named(5)))
    watching.end(3)
    rows = [row for row in watching.of(Sighting) if isinstance(row, Sighting)]
    assert {row.memory_ms for row in rows} == {0}
    assert all(isinstance(row.peak_memory_mib, Missing) for row in rows)


def test_absent_from_the_accounting_list_on_two_readings_is_never_accounted() -> None:
    """One reading may fall between the open and the list; two do not."""
    watching = Watching()
    for second in range(3):
        watching.look(second, reading(living=[alive(5, accounted=False)]), names(named(5)))
    watching.end(3)
    assert [row.accounted for row in watching.of(Sighting)] == ["unknown", "no"]


def test_a_context_that_is_missed_is_written_with_the_look_that_missed_it() -> None:
    """Whether the process died with it is told apart: a live process may open the device again."""
    watching = Watching()
    watching.look(0, reading(living=[alive(5), alive(6)]), names(named(5), named(6)))
    watching.look(1, reading(living=[]), names(named(5), fresh=()))
    gone = {
        row.pid: row for row in watching.of(Sighting) if isinstance(row, Sighting) and isinstance(row.gone_at_us, int)
    }
    assert {pid: (row.gone_at_us, row.process_died) for pid, row in gone.items()} == {
        5: (T0 + SECOND, 0),
        6: (T0 + SECOND, 1),
    }


def test_a_reused_pid_is_another_context() -> None:
    """The same pid with another start is another life: the first ends, the second begins."""
    watching = Watching()
    watching.look(0, reading(living=[alive(5, T0 - 9 * SECOND)]), names(named(5, ticks=7)))
    watching.look(1, reading(living=[alive(5, T0 + SECOND // 2)]), names(named(5, ticks=99, started_at_us=T0)))
    lives = {row.start_ticks: row.gone_at_us for row in watching.of(Sighting) if isinstance(row, Sighting)}
    assert lives[7] == T0 + SECOND
    assert isinstance(lives[99], Missing)


def test_a_device_that_was_not_read_says_nothing_about_its_contexts() -> None:
    """A GPU that fell off the bus for one look did not end what ran on it."""
    watching = Watching()
    watching.look(0, reading(living=[alive(5)]), names(named(5)))
    watching.look(1, Reading(at_us=T0, method="nvml", devices={}), names(named(5)))
    assert not [row for row in watching.of(Sighting) if isinstance(row, Sighting) and isinstance(row.gone_at_us, int)]


def test_only_identities_that_touched_a_device_are_kept() -> None:
    """A pid reused by something that never opened the GPU stays out of the ledger."""
    watching = Watching()
    stranger = named(8, started_at_us=T0 + 50 * SECOND)
    holder = named(9, started_at_us=T0 - 50 * SECOND)
    watching.look(0, reading([finished(8, T0), finished(9, T0)]), names(stranger, holder))
    assert [row.pid for row in watching.of(ProcessIdentity)] == [9]


def test_a_pause_is_a_gap_row_not_a_watched_span() -> None:
    """A suspended laptop does not watch."""
    watching = Watching()
    watching.look(0, reading([finished(1, T0)]))
    watching.look(1, reading([finished(1, T0)]))
    watching.look(601, reading([finished(1, T0)]))
    watching.end(601)
    assert watching.watches() == [(0.0, 0.0, "ok"), (0.0, 1.0, "ok"), (1.0, 601.0, "watch-gap"), (601.0, 601.0, "ok")]


def test_a_clock_set_back_ends_every_span_and_is_a_row() -> None:
    """The wall clock moves against the boot clock: nothing runs backwards, and it is written down."""
    watching = Watching()
    for second in range(3):
        watching.look(second, reading(living=[alive(5, T0 - SECOND)]), names(named(5)))
    watching.look(-3597, reading(living=[alive(5, T0 - SECOND)]), names(named(5)), boot_second=3)
    watching.look(-3596, reading(living=[alive(5, T0 - SECOND)]), names(named(5)), boot_second=4)
    watching.end(-3596)
    assert (-3597.0, 2.0, "clock-step") in watching.watches()
    assert all(row.since_us <= row.until_us for row in watching.rows if isinstance(row, Watch | Sighting))
    held = sum(row.memory_ms for row in watching.rows if isinstance(row, Sighting))
    assert held <= 5000


def test_a_restart_goes_on_where_the_run_before_stopped() -> None:
    """Within the rhythm the span goes on (cron); beyond it the time between is a gap row."""
    within = Watching(
        Memory(looked_us={("driver", GPU): T0 - 60 * SECOND, ("process", ""): T0 - 60 * SECOND}),
        Beat(interval_us=60 * SECOND, flush_us=1),
    )
    within.look(0, reading([finished(1, T0)]))
    assert (-60.0, 0.0, "ok") in within.watches()
    beyond = Watching(Memory(looked_us={("driver", GPU): T0 - 60 * SECOND, ("process", ""): T0 - 60 * SECOND}))
    beyond.look(0, reading([finished(1, T0)]))
    assert beyond.watches() == [(-60.0, 0.0, "watch-gap"), (0.0, 0.0, "ok")]
    assert beyond.watches("process") == [(-60.0, 0.0, "watch-gap"), (0.0, 0.0, "ok")]


def test_events_before_a_restart_were_heard_by_nobody() -> None:
    """However soon it came: the driver's list tells of the time between; a reader that was not there cannot."""
    restarted = Watching(Memory(looked_us={("driver", GPU): T0 - SECOND, ("process", ""): T0 - SECOND}))
    restarted.look(0, on_minor(reading([finished(1, T0)])), heard())
    restarted.look(1, on_minor(reading([finished(1, T0)])), heard())
    restarted.end(1)
    assert restarted.watches() == [(-1.0, 0.0, "ok"), (0.0, 1.0, "ok")]
    assert restarted.watches("process") == [(-1.0, 0.0, "watch-gap"), (0.0, 0.0, "ok"), (0.0, 1.0, "ok")]


def test_a_driver_that_does_not_answer_is_unknown_for_every_device_known() -> None:
    """No answer is not an empty list."""
    watching = Watching()
    watching.look(0, reading([finished(1, T0)]))
    watching.rows += watching.observer.unreachable(at_us=T0 + SECOND, method="nvml", sentence="driver gone")
    watching.end(1)
    assert (0.0, 1.0, "driver-unreachable") in watching.watches()


def test_a_start_told_later_proves_the_time_before_the_first_look() -> None:
    """The accounting list may show a context one look after the living list: its start still counts."""
    watching = Watching()
    watching.look(0, reading(living=[alive(5, accounted=False)]), names(named(5)))
    watching.look(1, reading(living=[alive(5, T0 - 7 * SECOND)]), names(named(5)))
    watching.end(1)
    spans = [
        (row.since_us - T0, row.until_us - T0, row.samples)
        for row in watching.of(Sighting)
        if isinstance(row, Sighting)
    ]
    assert spans == [(0, 0, 1), (-7 * SECOND, 0, 0), (0, SECOND, 1)]


def on_minor(what: Reading, *, load: str = "1:a") -> Reading:
    """The same reading by a source that tells the number of the node and the driver's load."""
    devices = {uuid: replace(device, minor=0) for uuid, device in what.devices.items()}
    return replace(what, devices=devices, load=load)


def heard(*opened: Opened, lost: str = "", method: str = "ebpf", **words: object) -> NamesLook:
    """What a watcher of kernel events tells."""
    return NamesLook(method=method, opened=opened, lost=lost, sees_opens=method == "ebpf", **words)  # type: ignore[arg-type]


def opened(pid: int, second: float, until: float | None = None, ticks: int = 7) -> Opened:
    return Opened(
        pid=pid, start_ticks=ticks, minor=0, opened_at_us=T0 + int(second * SECOND),
        exited_at_us=Missing("still alive") if until is None else T0 + int(until * SECOND),
    )  # fmt: skip


def test_an_empty_list_is_idle_from_the_second_look_on() -> None:
    """With the same load, and nobody who opened the device; the first look proves nothing."""
    watching = Watching()
    for second in range(4):
        watching.look(second, on_minor(reading()), heard())
    watching.end(3)
    assert watching.watches() == [(0.0, 0.0, "empty-ledger"), (0.0, 1.0, "idle"), (1.0, 3.0, "idle")]


@pytest.mark.parametrize(
    ("what", "who"),
    [
        (on_minor(reading(), load="2:a"), heard()),
        (on_minor(reading(), load=""), heard()),
        (reading(), heard()),
        (on_minor(reading()), heard(lost="3 events lost")),
        (on_minor(reading()), heard(method="connector")),
        (on_minor(reading()), names()),
        (on_minor(reading()), heard(opened(5, 1.5, 1.6))),
    ],
    ids=["reloaded", "load not told", "node not told", "events lost", "opens not seen", "polled", "opened"],
)
def test_idle_time_ends_with_its_proof(what: Reading, who: NamesLook) -> None:
    """And begins again a look after it is whole again."""
    watching = Watching()
    for second in range(2):
        watching.look(second, on_minor(reading()), heard())
    watching.look(2, what, who)
    assert watching.watches()[-1] == (1.0, 2.0, "empty-ledger")


def test_idle_is_not_proven_over_a_look_that_left_the_device_out() -> None:
    """Nor over a pause, nor over a clock that was set, nor over a driver that did not answer."""
    left_out = Watching()
    for second, what in enumerate([on_minor(reading())] * 2 + [Reading(at_us=T0, method="nvml", load="1:a")]):
        left_out.look(second, what, heard())
    left_out.look(3, on_minor(reading()), heard())
    assert left_out.watches()[-1][2] == "empty-ledger"
    stepped = Watching()
    for second in range(2):
        stepped.look(second, on_minor(reading()), heard())
    stepped.look(3600, on_minor(reading()), heard(), boot_second=2)
    assert stepped.watches()[-1][2] == "empty-ledger"
    silent = Watching()
    for second in range(2):
        silent.look(second, on_minor(reading()), heard())
    silent.rows += silent.observer.unreachable(at_us=T0 + 2 * SECOND, method="nvml", sentence="gone")
    silent.look(3, on_minor(reading()), heard())
    assert silent.watches()[-1][2] == "empty-ledger"


def test_lost_events_are_a_span_of_the_naming_watch_with_their_size() -> None:
    """The time since the look before; and what was said at the start is not lost with it."""
    watching = Watching()
    watching.observer._naming_note = "not by ebpf: no"
    for second, lost in enumerate(["1 event lost", "", "", "12 events lost", ""]):
        watching.look(second, on_minor(reading()), heard(lost=lost))
    watching.end(4)
    assert watching.watches("process") == [
        (0.0, 0.0, "events-lost"), (0.0, 1.0, "ok"), (1.0, 2.0, "ok"), (2.0, 3.0, "events-lost"), (3.0, 4.0, "ok"),
    ]  # fmt: skip
    details = [row.detail for row in watching.rows if isinstance(row, Watch) and row.source == "process"]
    assert details == ["1 event lost; not by ebpf: no", "", "", "12 events lost", ""]


def test_events_are_heard_while_no_look_comes() -> None:
    """A driver that hung for ten minutes is a gap of its watch, not of the names."""
    watching = Watching()
    watching.look(0, reading([finished(1, T0)]), heard())
    watching.look(600, reading([finished(1, T0)]), heard())
    watching.end(600)
    assert (0.0, 600.0, "watch-gap") in watching.watches()
    assert watching.watches("process") == [(0.0, 0.0, "ok"), (0.0, 600.0, "ok")]


def test_a_living_context_reaches_from_its_open_to_its_exit() -> None:
    """Where the driver gives no start; named, and dead at the exit, not at the look that missed it."""
    watching = Watching()
    watching.look(0, on_minor(reading()), heard())
    mine = named(5)
    seen = on_minor(reading(living=[alive(5, accounted=False)]))
    watching.look(9, seen, heard(opened(5, 2), current={5: mine}, fresh=(mine,)))
    watching.look(10, seen, heard(current={5: mine}))
    watching.look(11, on_minor(reading()), heard(opened(5, 2, 10.25), exits={(5, 7): T0 + 10_250_000}))
    rows = [row for row in watching.of(Sighting) if isinstance(row, Sighting)]
    spans = sorted((row.since_us - T0, row.until_us - T0) for row in rows)
    assert spans == [(2 * SECOND, 7 * SECOND), (7 * SECOND, 9 * SECOND), (9 * SECOND, 10_250_000)]
    assert [(row.gone_at_us, row.process_died) for row in rows if isinstance(row.gone_at_us, int)] == [
        (T0 + 10_250_000, 1)
    ]


def test_a_second_context_of_a_process_does_not_begin_with_the_first_open() -> None:
    """What lay between the two is nobody's use."""
    watching = Watching()
    mine = named(5)
    seen = on_minor(reading(living=[alive(5, accounted=False)]))
    watching.look(9, seen, heard(opened(5, 8), current={5: mine}))
    watching.look(10, on_minor(reading()), heard(current={5: mine}))
    watching.look(60, seen, heard(current={5: mine}))
    assert max(row.until_us - row.since_us for row in watching.of(Sighting) if isinstance(row, Sighting)) <= SECOND
    again = [row.since_us for row in watching.of(Sighting) if isinstance(row, Sighting)][-1]
    assert again == T0 + 60 * SECOND


def test_rows_that_the_ring_lost_are_booked_by_events_and_named() -> None:
    """A storm of 130: 128 rows, two contexts from open to exit, every identity, and the loss said."""
    watching = Watching()
    watching.look(0, on_minor(reading()), heard())
    watching.look(1, on_minor(reading()), heard())
    pids = range(1000, 1130)
    fresh = tuple(named(pid, ticks=pid, started_at_us=T0 + SECOND, seen_at_us=T0 + 1_500_000) for pid in pids)
    told = [opened(pid, 1.2, 1.5, ticks=pid) for pid in pids]
    ring = [finished(pid, T0 + 1_200_000) for pid in pids[2:]]
    for second in (2, 3, 4):
        watching.look(second, on_minor(reading(ring)), heard(*told, fresh=fresh) if second == 2 else heard())
    assert (1.0, 2.0, "ring-overflow") in watching.watches()
    assert len(watching.of(ProcessIdentity)) == 130
    assert [(row.pid, row.since_us, row.until_us) for row in watching.of(Sighting) if isinstance(row, Sighting)] == [
        (pid, T0 + 1_200_000, T0 + 1_500_000) for pid in (1000, 1001)
    ]
    assert len(watching.of(DriverRecord)) == 128


def test_a_next_program_is_another_context_though_the_driver_shows_the_row_of_the_one_before() -> None:
    """While the second holds the device, its start is hidden behind the first one's row: its own open dates it."""
    watching = Watching()
    mine = named(5)
    watching.look(0, on_minor(reading()), heard())
    first = on_minor(reading(living=[alive(5, T0 + 500_000)]))
    watching.look(1, first, heard(opened(5, 0.5), current={5: mine}, fresh=(mine,)))
    second = on_minor(reading([finished(5, T0 + 500_000, 800)], [alive(5)]))
    told = (replace(opened(5, 0.5, 1.3), became=True), replace(opened(5, 1.4), number=1))
    watching.look(2, second, heard(*told, current={5: mine}))
    watching.look(3, second, heard(current={5: mine}))
    watching.end(3)
    rows = [row for row in watching.of(Sighting) if isinstance(row, Sighting)]
    assert [(row.gone_at_us, row.process_died) for row in rows if isinstance(row.gone_at_us, int)] == [
        (T0 + 1_300_000, 0)
    ]
    later = [row for row in rows if isinstance(row.context_started_at_us, Missing)]
    assert min(row.since_us for row in later) == T0 + 1_400_000
    assert max(row.until_us for row in later) == T0 + 3 * SECOND


def test_time_of_which_a_row_may_have_been_freed_is_unknown() -> None:
    """A row of the watch beside the one that looked: time, and no amount."""
    watching = Watching()
    watching.look(0, on_minor(reading()), heard())
    told = (replace(opened(5, 0.2, 0.4), became=True), replace(opened(5, 0.5, 0.7), number=1))
    rows = [finished(5, T0 + 500_000, 200)]
    watching.look(1, on_minor(reading(rows)), heard(*told, fresh=(named(5),)))
    for second in (2, 3, 4):
        watching.look(second, on_minor(reading(rows)), heard())
    assert (0.2, 0.4, "row-freed") in watching.watches()
    assert not watching.of(Sighting)


def test_a_pid_whose_older_row_is_known_is_asked_for_again() -> None:
    """A reused pid frees its older row: the new one is of another process."""
    watching = Watching()
    watching.look(0, reading([finished(5, T0)]))
    assert watching.observer.pids_to_name(reading([finished(5, T0 + SECOND)])) == {5}


def test_how_the_clocks_stand_is_a_row_at_first_and_at_every_step() -> None:
    """Events have the boot-time clock: what was joined by which offset can be told for ever."""
    watching = Watching()
    for second, boot in enumerate([0, 1, 2]):
        watching.look(second, reading(), boot_second=boot)
    watching.look(3600, reading(), boot_second=3)
    clocks = [row for row in watching.rows if isinstance(row, Watch) and row.source == "clock"]
    booted = [T0 - 10**9 + ahead * SECOND for ahead in (0, 3597)]
    assert [(row.detail, row.readings, row.since_us == row.until_us) for row in clocks] == [
        (f"by the wall clock the machine booted at {iso(us)}, {us} us ahead of the boot-time clock", 0, True)
        for us in booted
    ]
