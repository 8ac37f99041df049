"""The bounded memory of processes: what kernel events told of each, until it is told on or too old to matter.

In: :class:`ProcessEvent`. Out: :class:`Life`, by pid. Most processes of a machine never touch a GPU;
what is raw here is forgotten here, and only what is asked for or touched a device is redacted and told.
Order and age are taken from the boot-time clock, which nobody sets; what is told has the wall clock.
"""

from __future__ import annotations

from collections import deque

from gpuledger.model.moments import SECOND_US
from gpuledger.sources.process_events import NVIDIA_MAJOR, Happened, ProcessEvent
from gpuledger.sources.process_lives import MOST_HOLDS, TICK_US, Life, Ran
from gpuledger.sources.urgent_events import LAST_DEVICE_MINOR

MOST_DEAD = 65_536
"""Ended processes kept at most: a storm of exits between two looks, at about a kilobyte each."""

MOST_TOUCHED = 65_536
"""Processes that opened a device and are not told yet, at most."""

LOOKS_KEPT = 3
KEPT_US = 15 * SECOND_US
"""An ended process is kept for so many looks and so long at least: the driver settles its row at its last close,
and the next look reads it."""

OPEN_NAMES_US = SECOND_US // 10
"""The driver's start of a context follows the open that made it within this."""


class RecentProcesses:
    """Every living process that events told of, and the ended ones for a while.

    Args:
        own_pid: the agent itself, whose opens are no touch.
        sees_opens: opens are among the events: an ended process that opened nothing is no loss.
    """

    def __init__(self, *, own_pid: int, sees_opens: bool = False) -> None:
        self._own_pid = own_pid
        self._sees_opens = sees_opens
        self._by_pid: dict[int, list[Life]] = {}
        self._dead: deque[Life] = deque()
        self.touched: dict[int, Life] = {}
        """Lives that opened a device's node, by ``id``, until all of it is told."""
        self.dropped = 0
        """Processes let go before their time, because there were too many."""
        self.vanished = 0
        """Processes whose exit no event told."""

    def note(self, event: ProcessEvent, *, offset_us: int, look: int) -> None:
        """Remember one event.

        Args:
            offset_us: wall clock less boot-time clock, when the event was read.
            look: the number of the look that comes next.
        """
        at_us = event.boot_us + offset_us
        happened = event.happened
        if happened is Happened.EXIT:
            self._exit(event, at_us, look)
            return
        life = self._life(event, offset_us, look)
        life.seen_us = max(at_us, life.seen_us)
        if happened is Happened.EXEC:
            life.execs(event, at_us)
            if life.lets_go(at_us, event.boot_us):
                self._touch(life)
        elif happened is Happened.FORK:
            parent = self.living(event.parent)
            if parent is not None and parent.ran and not life.ran:
                own = parent.at(event.boot_us)
                life.became(Ran(at_us, event.boot_us, own.raw, own.text, own.doubted))
        else:
            life.says(event, at_us)
            self._open(life, event, at_us)

    def of(self, pid: int) -> list[Life]:
        """The lives known of a pid, oldest first."""
        return self._by_pid.get(pid, [])

    def living(self, pid: int) -> Life | None:
        """The process that has a pid now, as far as events told."""
        lives = self._by_pid.get(pid)
        return lives[-1] if lives and lives[-1].died_us is None else None

    def all_living(self) -> list[Life]:
        """Every process that is alive, as far as events told."""
        return [lives[-1] for lives in self._by_pid.values() if lives[-1].died_us is None]

    def add(self, life: Life) -> Life:
        """Remember a process found otherwise."""
        self._by_pid.setdefault(life.pid, []).append(life)
        return life

    def doubt(self, since_us: int, since_boot_us: int) -> None:
        """Events were lost: whoever lived since then may have become another program without our knowing.

        Who opened a device since then had its program then: an open tells it, or that it was told.

        Args:
            since_us, since_boot_us: when the last event before was read, by either clock.
        """
        doubtful = self.all_living()
        for life in reversed(self._dead):
            if life.died_boot_us < since_boot_us - SECOND_US:  # CPUs stamp a little out of order
                break
            doubtful.append(life)
        for life in doubtful:
            if life.ran and not life.ran[-1].doubted:
                later_us = max(0, life.open_boot_us + OPEN_NAMES_US - since_boot_us)
                life.became(Ran(since_us + later_us, since_boot_us + later_us, None, doubted=True))

    def vanish(self, life: Life, boot_us: int, look: int) -> None:
        """Note the end of a process whose exit no event told: it was alive when it was last seen, no more is known.

        Args:
            boot_us: when that was found, by the boot-time clock.
        """
        self.vanished += 1
        self._bury(life, life.seen_us, boot_us, look)

    def forget(self, *, boot_us: int, look: int) -> None:
        """Let go of the dead that no row can belong to any more."""
        while self._dead:
            oldest = self._dead[0]
            if look - oldest.died_look < LOOKS_KEPT or boot_us - oldest.died_boot_us < KEPT_US:
                break
            self._let_go(self._dead.popleft())

    def _exit(self, event: ProcessEvent, at_us: int, look: int) -> None:
        life = self.living(event.pid)
        if life is None:
            return
        if event.start_ticks > life.start_ticks and not life.can_be_of(event):
            self.vanish(life, event.boot_us, look)  # the pid had another process since
        elif life.can_be_of(event):
            life.start_ticks = life.start_ticks or event.start_ticks
            life.exit_seen, life.seen_us = True, max(at_us, life.seen_us)
            self._bury(life, at_us, event.boot_us, look)

    def _bury(self, life: Life, at_us: int, boot_us: int, look: int) -> None:
        life.died_us, life.died_boot_us, life.died_look = at_us, boot_us, look
        self._dead.append(life)
        if life.holds:
            self._touch(life)
        while len(self._dead) > MOST_DEAD:
            oldest = self._dead.popleft()
            if not self._sees_opens and not oldest.told_dead:
                self.dropped += 1
            self._let_go(oldest)

    def _revive(self, life: Life) -> None:
        """Its exit was told, and it goes on: an exec proves that."""
        self._dead.remove(life)
        life.died_us, life.died_boot_us, life.exit_seen = None, 0, False

    def _let_go(self, life: Life) -> None:
        lives = self._by_pid[life.pid]
        lives.remove(life)
        if not lives:
            del self._by_pid[life.pid]

    def _life(self, event: ProcessEvent, offset_us: int, look: int) -> Life:
        """The process that an event is of: known, or new."""
        ticks, known = event.start_ticks, self.living(event.pid)
        born_boot_us = ticks * TICK_US if ticks else event.boot_us
        if known is not None:
            if known.can_be_of(event):
                if ticks and not known.start_ticks:
                    known.start_ticks, known.born_us, known.born_boot_us = ticks, born_boot_us + offset_us, born_boot_us
                return known
            self.vanish(known, event.boot_us, look)  # the pid has another process now
        for dead in reversed(self.of(event.pid) if ticks else ()):
            if dead.start_ticks == ticks:  # found by a snapshot while it ended
                if event.happened is Happened.EXEC and dead is self.of(event.pid)[-1]:
                    self._revive(dead)
                return dead
        return self.add(
            Life(pid=event.pid, start_ticks=ticks, born_us=born_boot_us + offset_us, born_boot_us=born_boot_us)
        )

    def _open(self, life: Life, event: ProcessEvent, at_us: int) -> None:
        is_device = event.major == NVIDIA_MAJOR and event.minor <= LAST_DEVICE_MINOR
        if event.happened is Happened.OPEN:
            life.open_boot_us = max(event.boot_us, life.open_boot_us)
        if not is_device or life.pid == self._own_pid or life.is_monitor:
            return
        if life.opens(event.minor, at_us, event.boot_us, is_found=event.happened is Happened.HOLD):
            self._touch(life)
            if len(life.holds) > MOST_HOLDS:
                del life.holds[0]
                self.dropped += 1

    def _touch(self, life: Life) -> None:
        self.touched[id(life)] = life
        if len(self.touched) > MOST_TOUCHED:
            oldest = self.touched.pop(next(iter(self.touched)))
            oldest.holds.clear()  # so that a snapshot finds it anew
            self.dropped += 1
