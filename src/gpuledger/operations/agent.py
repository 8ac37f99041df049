"""``agent``: looks at the driver, names what it lists, writes down what is new; meters and seals each hour.

The order of one look: the driver, then the names of what it lists, then one transaction. What could
not be written (a full disk, a lock) is kept and tried again with the next look; what was written is
written once, however often it is tried.
"""

from __future__ import annotations

import errno
import fcntl
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Protocol

from gpuledger.clock import Clock
from gpuledger.errors import GpuledgerError, NotFound, Refused, Unavailable
from gpuledger.ledger.places import Place
from gpuledger.ledger.store import Ledger
from gpuledger.metering.records import CLOSED_AFTER_US
from gpuledger.model.moments import hour_floor, iso
from gpuledger.model.readings import Reading
from gpuledger.model.rows import Row, Watch
from gpuledger.operations.meter import meter
from gpuledger.operations.pulse import Pulse, pulse_path, tell
from gpuledger.operations.remembering import recall
from gpuledger.sources.watchers import Watcher
from gpuledger.watching.memory import Beat
from gpuledger.watching.observer import Observer

_BACKLOG_ROWS = 200_000
"""Rows kept while the ledger cannot be written; beyond it the agent stops, and the time is a watch gap."""
_BUSY_FRESH_ROWS = 32
"""More new rows than this in one look: a quarter of the ring, so look more often."""
_FASTEST_US = 100_000
_DEAF_US = 1_000_000
"""Longest sleep in one piece: a signal does not shorten it (PEP 475), and whoever stops an agent waits so long."""


class Source(Protocol):
    """What can be looked at: NVML, nvidia-smi, or a simulated driver."""

    @property
    def method(self) -> str:
        """How it is read: ``nvml``, ``nvidia-smi`` or ``simulated``."""
        ...

    def read(self, now_us: int) -> Reading:
        """One look at all devices."""
        ...

    def enable_accounting(self, uuid: str) -> None:
        """Switch the driver's accounting on; needs root."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentPlan:
    """How an agent runs.

    Args:
        host: name of this machine in the ledger.
        boot_id: the kernel's boot id.
        interval_us: time between two looks (for ``--once``: between two runs).
        flush_us: longest time that spans stay unwritten.
        once: look once and end.
        enable_accounting: switch the driver's accounting on where it is off.
        naming_note: why a better method of naming is not used; may be empty.
    """

    host: str
    boot_id: str
    interval_us: int
    flush_us: int
    once: bool = False
    enable_accounting: bool = False
    naming_note: str = ""


class Agent:
    """The loop.

    Args:
        ledger: open for appending.
        source, watcher, clock: the seams to the outside.
        plan: how to run.
        talk: says a sentence to the person.
        stopping: asked before each wait; true ends the loop.
        looked: told of each look whose news are written: its time, microseconds UTC, and whether the driver
            answered.
        stuck: told of each look whose news could not be written, and are kept: its time.
    """

    def __init__(
        self,
        *,
        ledger: Ledger,
        source: Source,
        watcher: Watcher,
        clock: Clock,
        plan: AgentPlan,
        talk: Callable[[str], None],
        stopping: Callable[[], bool] = lambda: False,
        looked: Callable[[int, bool], None] | None = None,
        stuck: Callable[[int], None] | None = None,
    ) -> None:
        self._ledger = ledger
        self._source = source
        self._watcher = watcher
        self._clock = clock
        self.plan = plan
        self._talk = talk
        self._stopping = stopping
        self._looked = looked
        self._stuck = stuck
        self._backlog: list[Row] = []
        self._troubles: dict[str, str] = {}
        self._enabled: set[str] = set()
        self._problems: set[tuple[str, str]] = set()
        self._metered_hour_us = 0
        self._interval_us = plan.interval_us
        self._observer = Observer(
            host=plan.host,
            boot_id=plan.boot_id,
            key_of=ledger.key_of,
            beat=Beat(interval_us=plan.interval_us, flush_us=plan.flush_us),
            memory=recall(ledger, host=plan.host, now_us=clock.now_us()),
            naming_note=plan.naming_note,
        )

    def run(self) -> None:
        """Look until told to stop (or once), then write what is unwritten and seal."""
        due_us = self._clock.boot_us()
        while True:
            self.look()
            if self.plan.once or self._stopping():
                break
            if due_us <= self._clock.boot_us():
                due_us = max(due_us + self._interval_us, self._clock.boot_us())
            self._wait(due_us)
            if self._stopping():
                break
        self.stop()

    def _wait(self, due_us: int) -> None:
        """Wait until a look is due, or something happened that it should see before it is gone."""
        urgent, soonest_us = self._watcher.urgent, self._clock.boot_us() + _FASTEST_US
        while (left_us := due_us - self._clock.boot_us()) > 0 and not self._stopping():
            left_s = min(left_us, _DEAF_US) / 1_000_000
            if urgent is None:
                self._clock.sleep(left_s)
            elif urgent.wait(left_s):
                due_us = min(due_us, soonest_us)
                urgent = None

    def look(self) -> None:
        """One look, written if the ledger lets it."""
        if self._watcher.urgent is not None:
            self._watcher.urgent.clear()
        at_us, boot_us = self._clock.now_us(), self._clock.boot_us()
        answered = True
        try:
            reading = self._source.read(at_us)
            lasted_us = self._clock.boot_us() - boot_us
        except Unavailable as error:
            answered = False
            self._complain("driver", error, f"the driver did not answer: {error.message}")
            self._backlog += self._observer.unreachable(at_us=at_us, method=self._source.method, sentence=error.message)
        else:
            self._mended("driver", at_us)
            self._note_problems(reading, at_us)
            names = self._watcher.look(
                self._observer.pids_to_name(reading), at_us, restarted=self._observer.restarted(reading)
            )
            self._backlog += self._observer.look(reading, names, at_us=at_us, boot_us=boot_us, lasted_us=lasted_us)
            if self.plan.enable_accounting:
                self._enable(reading)
        self._write(at_us)
        if self._looked is not None and not self._backlog:
            self._looked(at_us, answered)
        elif self._stuck is not None and self._backlog:
            self._stuck(at_us)
        self._adapt()
        self._hourly(at_us)

    def stop(self) -> None:
        """Write what is unwritten, and seal."""
        self._watcher.close()
        at_us = self._clock.now_us()
        self._backlog += self._observer.flush(self._source.method, at_us)
        self._ledger.append(self._backlog, writer=f"{self.plan.host}.agent", at_us=at_us)
        self._backlog = []
        if not self.plan.once:
            self._ledger.seal(at_us, writer=f"{self.plan.host}.agent")

    def _write(self, at_us: int) -> None:
        if not self._backlog:
            return
        try:
            appended = self._ledger.append(self._backlog, writer=f"{self.plan.host}.agent", at_us=at_us)
        except Unavailable as error:
            if len(self._backlog) > _BACKLOG_ROWS:
                raise
            told = f"not written yet, {len(self._backlog)} rows kept in memory: {error.message}"
            self._complain("ledger", error, told)
            return
        for problem in appended.conflicts:
            self._talk(f"note: {problem}")
        self._backlog = []
        self._mended("ledger", at_us)

    def _complain(self, where: str, error: GpuledgerError, sentence: str) -> None:
        """Say a trouble once, not at every look."""
        if self._troubles.get(where) != error.code:
            self._talk(f"{iso(self._clock.now_us())} {sentence}")
        self._troubles[where] = error.code

    def _mended(self, where: str, at_us: int) -> None:
        """What was in trouble works; said once nothing else is in trouble."""
        if self._troubles.pop(where, "") and not self._troubles:
            self._talk(f"{iso(at_us)} all is well again")

    def _note_problems(self, reading: Reading, at_us: int) -> None:
        """What was imperfect is said and written once for as long as it holds, not at every look."""
        now = {(problem.code, problem.where): problem for problem in reading.problems}
        for place in sorted(now.keys() - self._problems):
            self._talk(f"{iso(at_us)} note: {now[place]}")
            self._backlog.append(self._remark("", at_us, str(now[place])))
        self._problems = set(now)

    def _remark(self, device: str, at_us: int, sentence: str) -> Watch:
        """A sentence for the journal: a look of no length, which watches nothing by itself."""
        return Watch(
            host=self.plan.host, device=device, source="driver", method=self._source.method, interval_ms=0,
            since_us=at_us, until_us=at_us, status="ok", readings=0, detail=sentence,
        )  # fmt: skip

    def _enable(self, reading: Reading) -> None:
        for device in reading.devices.values():
            if device.accounting != "disabled" or device.mig:
                self._mended(device.uuid, self._clock.now_us())
                continue
            try:
                self._source.enable_accounting(device.uuid)
            except (Unavailable, NotFound, Refused) as error:
                self._complain(device.uuid, error, f"accounting could not be enabled yet: {error.message}")
                continue
            self._mended(device.uuid, self._clock.now_us())
            again = " again (the driver was reloaded)" if device.uuid in self._enabled else ""
            self._enabled.add(device.uuid)
            at_us = self._clock.now_us()
            self._talk(f"{iso(at_us)} accounting enabled{again} on {device.product} {device.uuid}")
            self._backlog.append(self._remark(device.uuid, at_us, f"accounting enabled{again} by the agent"))

    def _adapt(self) -> None:
        """Look more often while the driver's ring of 128 rows fills quickly."""
        fresh = self._observer.most_fresh_rows
        if fresh > _BUSY_FRESH_ROWS:
            self._interval_us = max(_FASTEST_US, min(self._interval_us, self._interval_us * _BUSY_FRESH_ROWS // fresh))
        elif self._interval_us < self.plan.interval_us:
            self._interval_us = min(self.plan.interval_us, self._interval_us * 2)
        if self._interval_us != self._observer.beat.interval_us:
            self._observer.beat = Beat(interval_us=self._interval_us, flush_us=self.plan.flush_us)

    def _hourly(self, at_us: int) -> None:
        """Close the hour that is over for the grace period, and seal."""
        if self._backlog:
            return
        closed_us = hour_floor(at_us - CLOSED_AFTER_US)
        if closed_us == self._metered_hour_us:
            return
        try:
            passed = meter(self._ledger, now_us=at_us, writer=f"{self.plan.host}.meter")
            if passed.covered_until_us > passed.covered_from_us:
                self._ledger.seal(at_us, writer=f"{self.plan.host}.agent")
        except Unavailable as error:
            self._complain("meter", error, f"the hour could not be metered yet: {error.message}")
            return
        self._mended("meter", at_us)
        self._metered_hour_us = closed_us


class OneAgent:
    """Holds the place of the one agent of a ledger on this machine, by a lock that dies with the process.

    Args:
        place: where the ledger lies; the lock lies beside it, or on this machine where that is a server.

    Raises:
        Refused: ``agent-running`` on entry, when another holds it.
    """

    def __init__(self, place: Place) -> None:
        self._path = pulse_path(place)
        self._of_server = not isinstance(place, Path)
        self._descriptor = -1

    def __enter__(self) -> OneAgent:
        try:
            if self._of_server:
                self._path.parent.mkdir(parents=True, exist_ok=True)
            flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW  # else root would write where a link points
            self._descriptor = os.open(self._path, flags, 0o640)
            os.fchmod(self._descriptor, 0o640)  # as the ledger: whoever reads it may hear its pulse
        except OSError as error:
            if error.errno in (errno.ENOSPC, errno.EDQUOT):
                told = f"{self._path}: {error.strerror}"
                raise Unavailable("ledger-full", told, hint=f"df -h {self._path.parent}") from None
            if error.errno == errno.EROFS:
                told = f"{self._path.parent} lies on a file system that is read-only here"
                raise Unavailable("ledger-read-only", told, hint="--ledger with a place that can be written") from None
            if error.errno == errno.ELOOP:
                told = f"{self._path} is a symbolic link, and an agent follows none there"
                raise Unavailable("ledger-permission", told, hint=f"rm {self._path}") from None
            raise Unavailable(
                "ledger-permission",
                f"{self._path}: {error.strerror}",
                hint="--ledger with a place that you may write, or sudo",
            ) from None
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(self._descriptor)
            raise Refused(
                "agent-running",
                "another agent is writing to this ledger, and two would watch the same things twice",
                hint="gpuledger usage   (reads while it runs), or --ledger with another place",
            ) from None
        return self

    def tell(self, pulse: Pulse) -> None:
        """Tell readers until when this agent has looked."""
        tell(self._descriptor, pulse)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._descriptor)
