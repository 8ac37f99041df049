"""A watcher that lives on kernel events: names also the processes that lived and died between two looks.

In: an :class:`EventSource` and the pids that the driver names. Out: a :class:`NamesLook`. A thread takes
the events up as they come, and never waits for a look, which remembers them and tells what they say of the
pids asked for and of whoever opened a device. The living are compared with ``/proc`` now and then, since a
process can write itself another title without any event.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import NamedTuple

from gpuledger.clock import Clock
from gpuledger.errors import Unavailable
from gpuledger.model.durations import several
from gpuledger.model.missing import Missing
from gpuledger.model.moments import SECOND_US
from gpuledger.model.readings import Named, NamesLook, Unread
from gpuledger.sources import procfs
from gpuledger.sources.process_events import EventSource, ProcessEvent
from gpuledger.sources.process_lives import TICK_US, Life, Ran
from gpuledger.sources.procfs import GONE, PROC
from gpuledger.sources.recent_processes import RecentProcesses
from gpuledger.sources.told_lives import program_of, untold, untold_opens
from gpuledger.sources.urgent_events import UrgentEvents
from gpuledger.sources.watchers import MOST_TITLES

EXIT_WITHIN_US = 2 * SECOND_US
"""A process can be gone from ``/proc`` before its exit is read: the connector's events are some 20 ms late, more on a
busy machine. Whose exit is not told after so long ended without one."""

TITLE_US = 30 * SECOND_US
"""A known living process is compared with ``/proc`` this often: events tell what it becomes, but not a title that it
writes itself."""

SNAPSHOT_US = 60 * SECOND_US
"""Who holds a device is asked this often: a descriptor that is inherited or passed on is no open."""

MOST_WAITING = 8192
"""Events that may wait for a look; more are remembered by the thread that reads them, which then waits for its turn."""

_MOST_READS = 64
"""Readings in a row at a look, of a source that never runs dry."""

_WAIT_S = 0.5
_OFFSET_TRIES = 3
_OFFSET_APART_US = 200
"""A row is told to be of one program or the next by its start, and programs can follow within milliseconds."""


class _Batch(NamedTuple):
    """What one reading of the source brought.

    Attributes:
        events: in the kernel's order.
        offset_us: wall clock less boot-time clock, when they were read.
        lost: events (or spells of them) lost since the reading before.
    """

    events: Sequence[ProcessEvent]
    offset_us: int
    lost: int


class EventWatcher:
    """Names by kernel events; see :class:`gpuledger.sources.watchers.Watcher`.

    Args:
        source: the events, from now on its watcher's alone.
        clock: both clocks: events have the boot-time clock, everything else the wall clock.
        proc: where ``/proc`` is; another folder in tests.
        own_pid: the agent itself.
        in_background: take events up in a thread of their own; tests do without.
    """

    def __init__(
        self,
        source: EventSource,
        *,
        clock: Clock,
        proc: Path = PROC,
        own_pid: int | None = None,
        in_background: bool = True,
    ) -> None:
        self.method = source.method
        self._source = source
        self._clock = clock
        self._proc = proc
        own_pid = os.getpid() if own_pid is None else own_pid
        self._recent = RecentProcesses(own_pid=own_pid, sees_opens=source.sees_opens)
        self._look = 0
        self._lost, self._lost_told = source.lost(), 0
        self._dropped = self._vanished = 0
        self._is_doubtful = False
        self._snapshot_us = 0
        self._reading, self._remembering = threading.Lock(), threading.Lock()
        self._waiting: list[_Batch] = []
        self._events_waiting = 0
        self._noted_boot_us = clock.boot_us()
        self._missed: dict[int, tuple[Life, int]] = {}
        self._failure: Exception | None = None
        self._closing = threading.Event()
        self._urgent = UrgentEvents(own_pid=own_pid)
        self.urgent: threading.Event | None = self._urgent.told
        self._read_the_living()
        self._thread = threading.Thread(target=self._take_up, name=f"{self.method}-events", daemon=True)
        if in_background:
            self._thread.start()

    def look(self, pids: Collection[int], now_us: int, *, restarted: Collection[int] = ()) -> NamesLook:
        """Name these pids, and whoever opened a device since the last look.

        Raises:
            Unavailable: ``events-failed``: the events can no longer be read. A watcher that went deaf must not go on.
        """
        if self._failure is not None:
            raise self._failure
        with self._remembering:
            self._catch_up()
            self._look_around(now_us)
            self._look += 1
            unreadable: set[int] = set()
            asked = [life for pid in sorted(pids) for life in self._asked(pid, now_us, pid in restarted, unreadable)]
            lives = {id(life): life for life in (*asked, *self._recent.touched.values())}.values()
            told = [program for life in lives
                    for program in untold(life, life.seen_us if id(life) in self._missed else now_us)]  # fmt: skip
            current: dict[int, Named] = {}
            for pid in pids:
                alive = self._recent.living(pid)
                if alive is None or id(alive) in self._missed:
                    continue
                program = program_of(alive, len(alive.ran) - 1, now_us)
                if isinstance(program, Named):
                    current[pid] = program
                else:
                    unreadable.add(pid)
            exits = {(life.pid, life.start_ticks): life.died_us for life in lives
                     if life.died_us is not None and life.exit_seen}  # fmt: skip
            opened = tuple(told for life in self._recent.touched.values() for told in untold_opens(life))
            self._recent.touched.clear()
            self._recent.forget(boot_us=self._clock.boot_us(), look=self._look)
            lost = self._losses()
        return NamesLook(
            method=self.method,
            current=current,
            fresh=tuple(program for program in told if isinstance(program, Named)),
            unreadable=frozenset(unreadable),
            unread=tuple(program for program in told if isinstance(program, Unread)),
            opened=opened,
            exits=exits,
            sees_opens=self._source.sees_opens,
            lost=lost,
        )

    def close(self) -> None:
        """Stop listening; once is enough, and more do no harm."""
        if self._closing.is_set():
            return
        self._closing.set()
        if self._thread.is_alive():
            self._thread.join(timeout=2 * _WAIT_S + self._source.pause_s)
        self._source.close()

    def _take_up(self) -> None:
        """The thread: events leave the kernel's buffer soon, however long it is to the next look."""
        try:
            self._source.begin()
            while not self._closing.is_set():
                if self._source.wait(_WAIT_S):
                    if self._source.pause_s:
                        self._closing.wait(self._source.pause_s)
                    self._read_events()
                    if self._events_waiting > MOST_WAITING:
                        with self._remembering:
                            self._note_waiting()
        except OSError as error:
            self._failure = self._deaf(error)
        except Exception as error:  # noqa: BLE001 the next look raises it, in the thread that can end the agent
            self._failure = error

    def _deaf(self, error: OSError) -> Unavailable:
        told = f"the kernel's process events ({self.method}) can no longer be read: {error.strerror or error}"
        return Unavailable("events-failed", told, hint="gpuledger agent   (again; or with --watch poll)")

    def _read_events(self) -> int:
        """Take up what has happened since the last time; returns how many events that were."""
        with self._reading:
            events = self._source.read()
            lost = self._source.lost()
            if events or lost != self._lost:
                self._waiting.append(_Batch(events, self._offset_us(), lost - self._lost))
                self._events_waiting += len(events)
            self._lost = lost
            self._urgent.note(events)
        return len(events)

    def _note_waiting(self) -> None:
        """Remember what was taken up, in its order."""
        with self._reading:
            batches, self._waiting, self._events_waiting = self._waiting, [], 0
        note, look = self._recent.note, self._look + 1
        for batch in batches:
            for event in batch.events:
                note(event, offset_us=batch.offset_us, look=look)
            if batch.lost:
                self._lost_told += batch.lost
                self._is_doubtful = True
                self._recent.doubt(self._noted_boot_us + batch.offset_us, self._noted_boot_us)
            if batch.events:
                self._noted_boot_us = batch.events[-1].boot_us

    def _catch_up(self) -> None:
        """Read and remember until nothing is left to read."""
        try:
            with self._reading:
                self._source.catch_up()
            for _ in range(_MOST_READS):
                if not self._read_events():
                    break
        except OSError as error:
            raise self._deaf(error) from error
        self._note_waiting()

    def _look_around(self, now_us: int) -> None:
        """What events do not tell: who holds a device by inheritance, who vanished, and after a loss everything."""
        is_doubtful, self._is_doubtful = self._is_doubtful, False
        for life, _ in list(self._missed.values()):
            if life.died_us is None:
                self._compare(life, now_us)
        self._missed = {key: missed for key, missed in self._missed.items() if missed[0].died_us is None}
        if not is_doubtful and 0 <= now_us - self._snapshot_us < SNAPSHOT_US:
            return
        self._snapshot_us = now_us
        with os.scandir(self._proc) as folders:
            present = {int(entry.name) for entry in folders if entry.name.isdigit()}
        for life in self._recent.all_living():
            if is_doubtful or life.pid not in present:
                self._compare(life, now_us)
        with self._reading:
            held = self._source.snapshot()
        for event in held:
            self._recent.note(event, offset_us=self._offset_us(), look=self._look + 1)

    def _offset_us(self) -> int:
        """Wall clock less boot-time clock; asked thrice at most, since another process can come in between."""
        apart_us, offset_us = 1 << 62, 0
        for _ in range(_OFFSET_TRIES):
            before_us, now_us, after_us = self._clock.boot_us(), self._clock.now_us(), self._clock.boot_us()
            if after_us - before_us < apart_us:
                apart_us, offset_us = after_us - before_us, now_us - before_us
            if apart_us <= _OFFSET_APART_US:
                break
        return offset_us

    def _losses(self) -> str:
        """What went by unseen since the look before; empty when nothing did."""
        lost, self._lost_told = self._lost_told, 0
        dropped, self._dropped = self._recent.dropped - self._dropped, self._recent.dropped
        vanished, self._vanished = self._recent.vanished - self._vanished, self._recent.vanished
        parts = []
        if lost and self._source.counts_losses:
            parts.append(f"{several(lost, 'event')} lost")
        elif lost:
            parts.append(
                f"the kernel's buffer ran over {several(lost, 'time')}; how many events were lost is not known"
            )
        if vanished:
            parts.append(f"{several(vanished, 'process', 'processes')} ended without an event")
        if dropped:
            parts.append(f"{several(dropped, 'process', 'processes')} forgotten early, there were too many")
        return "; ".join(parts)

    def _read_the_living(self) -> None:
        """Who lives already: an event never tells of them."""
        with os.scandir(self._proc) as folders:
            pids = [int(entry.name) for entry in folders if entry.name.isdigit()]
        for pid in pids:
            self._meet(pid)

    def _asked(self, pid: int, now_us: int, restarted: bool, unreadable: set[int]) -> list[Life]:
        """The lives of a pid, its living one compared with ``/proc`` where that is due."""
        life = self._recent.living(pid)
        if life is not None and (restarted or not 0 <= now_us - life.read_us < TITLE_US):
            self._compare(life, now_us)
            life = self._recent.living(pid)
        if life is None and self._meet(pid) is not GONE and self._recent.living(pid) is None:
            unreadable.add(pid)
        return self._recent.of(pid)

    def _compare(self, life: Life, now_us: int) -> None:
        """Whether a living process is still what events said; ``/proc`` tells more, such as a title it wrote itself."""
        boot_us = self._clock.boot_us()
        stat = procfs.read_stat(life.pid, proc=self._proc)
        if isinstance(stat, Missing):
            if stat is GONE:
                self._miss(life)
            return
        if not life.start_ticks and stat.start_ticks * TICK_US <= life.born_boot_us + TICK_US:
            life.start_ticks = stat.start_ticks
        if life.start_ticks != stat.start_ticks:
            self._miss(life)
            return
        self._missed.pop(id(life), None)
        life.read_us, life.seen_us = now_us, max(now_us, life.seen_us)
        if not stat.is_alive:
            return  # its first thread has ended; of the others events tell
        mark = procfs.program_mark(life.pid, proc=self._proc)
        if mark == life.mark and not (life.ran and life.ran[-1].doubted):
            return
        last = life.ran[-1] if life.ran else None
        reading = self._identity(life.pid)
        if isinstance(reading, Missing) or reading.start_ticks != life.start_ticks:
            return
        if not (reading.text.exe and reading.text.cwd):
            # what is not shown is taken from the program known, so an exec a moment ago must be known too
            self._catch_up()
            if last is not (life.ran[-1] if life.ran else None):
                life.read_us = 0
                return
        life.mark, life.read_boot_us = reading.program_mark, boot_us
        life.renew(reading.text, now_us, boot_us, most_titles=MOST_TITLES)

    def _miss(self, life: Life) -> None:
        """A process that is there no more: its exit is about to be told; if it is not, it is lost."""
        boot_us = self._clock.boot_us()
        _, since_us = self._missed.setdefault(id(life), (life, boot_us))
        if boot_us - since_us >= EXIT_WITHIN_US:
            self._recent.vanish(life, boot_us, self._look + 1)

    def _meet(self, pid: int) -> Life | Missing:
        """A process from ``/proc`` that no event told of: it was there before, or forked without an event."""
        now_us, boot_us = self._clock.now_us(), self._clock.boot_us()
        stat = procfs.read_stat(pid, proc=self._proc)
        if isinstance(stat, Missing):
            return stat
        reading = self._identity(pid)
        if isinstance(reading, Missing):
            return reading
        is_buried = any(dead.start_ticks == reading.start_ticks for dead in self._recent.of(pid))
        if not stat.is_alive or is_buried:
            return GONE
        born_boot_us = reading.start_ticks * TICK_US
        return self._recent.add(
            Life(
                pid=pid,
                start_ticks=reading.start_ticks,
                born_us=reading.started_at_us,
                born_boot_us=born_boot_us,
                seen_us=now_us,
                ran=[Ran(reading.started_at_us, born_boot_us, None, reading.text)],
                read_us=now_us,
                read_boot_us=boot_us,
                mark=reading.program_mark,
            )
        )

    def _identity(self, pid: int) -> procfs.ProcessReading | Missing:
        booted_at_us = procfs.boot_wall_us(self._clock.now_us(), self._clock.boot_us())
        return procfs.read_identity(pid, booted_at_us=booted_at_us, proc=self._proc)
