"""Living contexts, look after look, merged into sightings.

A context is written when it is first seen, at each flush, and when it is first missed. A memory or
busy sample counts back to the look before it (or to the context's start), two polls at most.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from gpuledger.model.missing import Missing
from gpuledger.model.readings import LivingContext, Named
from gpuledger.model.rows import Sighting

SAME_START_US = 1_000
"""Two readings of one context's start by the driver agree within this: it is stamped once and kept (gpu_acct.c)."""

BUSY_BUFFER_MS = 10_000
"""The driver's utilisation samples reach back about 10 s (72 samples of a shared buffer, ``gpu_acct.c``)."""

ALIVE = Missing("still alive")


@dataclass(slots=True, kw_only=True)
class LiveContext:
    """One context that is alive, and what of it is not yet written.

    Args:
        device, pid: where and who by number.
        boot_id, start_ticks: the process; ("", 0) while it could not be read.
        started_at_us: the driver's start, or Missing.
        seen_from_us: start of all that is or will be written of it.
        since_us: start of the unwritten span.
        last_look_us: last look that saw it.
        absent_readings: consecutive looks whose accounting list did not hold it.
        accounted: as in a :class:`Sighting`.
        samples, memory_mib_ms, memory_ms, busy_ms, busy_covered_ms, peak_memory_mib: of the unwritten span.
    """

    device: str
    pid: int
    boot_id: str
    start_ticks: int
    started_at_us: int | Missing
    seen_from_us: int
    since_us: int
    last_look_us: int
    absent_readings: int = 0
    accounted: str = "unknown"
    samples: int = 0
    memory_mib_ms: int = 0
    memory_ms: int = 0
    busy_ms: int = 0
    busy_covered_ms: int = 0
    peak_memory_mib: int | Missing = field(default_factory=lambda: Missing("no memory sample"))

    def is_same(self, seen: LivingContext, named: Named | None) -> bool:
        """Whether a context seen now is this one: the same process, and the same start where both are known."""
        if named is not None and self.start_ticks and named.start_ticks != self.start_ticks:
            return False
        if isinstance(self.started_at_us, Missing) or isinstance(seen.started_at_us, Missing):
            return True
        return abs(self.started_at_us - seen.started_at_us) <= SAME_START_US

    def look(self, seen: LivingContext, named: Named | None, *, boot_id: str, at_us: int, longest_us: int) -> None:
        """Add one look: samples count back to the look before, ``longest_us`` at most."""
        if named is not None and not self.start_ticks:
            self.boot_id, self.start_ticks = boot_id, named.start_ticks
        if isinstance(self.started_at_us, Missing):
            self.started_at_us = seen.started_at_us
        self._note_accounting(seen)
        covered_ms = max(0, min(at_us - self.last_look_us, longest_us)) // 1000
        if not isinstance(seen.memory_mib, Missing):
            self.memory_mib_ms += seen.memory_mib * covered_ms
            self.memory_ms += covered_ms
            held = self.peak_memory_mib
            self.peak_memory_mib = seen.memory_mib if isinstance(held, Missing) else max(held, seen.memory_mib)
        if not isinstance(seen.busy_percent, Missing):
            sampled_ms = min(covered_ms, BUSY_BUFFER_MS)
            self.busy_ms += seen.busy_percent * sampled_ms // 100
            self.busy_covered_ms += sampled_ms
        self.samples += 1
        self.last_look_us = max(at_us, self.last_look_us)

    def _note_accounting(self, seen: LivingContext) -> None:
        if seen.accounted is True:
            self.accounted, self.absent_readings = "yes", 0
        elif seen.accounted is False:
            self.absent_readings += 1
            if self.absent_readings >= 2:
                self.accounted = "no"

    def learns_start(self, seen: LivingContext) -> LiveContext | None:
        """What a start told only now proves before the first look: a span of its own, or None."""
        started = seen.started_at_us
        if not isinstance(self.started_at_us, Missing) or isinstance(started, Missing) or started >= self.seen_from_us:
            return None
        proven = replace(self, started_at_us=started, since_us=started, last_look_us=self.seen_from_us, samples=0)
        proven.memory_mib_ms = proven.memory_ms = proven.busy_ms = proven.busy_covered_ms = 0
        self.seen_from_us = started
        return proven

    def ends(self, exited_us: int | None, missed_us: int) -> int:
        """When it ended: at its process's exit where an event told that, else at the look that missed it.

        Args:
            exited_us: may lie a little after that look: the driver is read after the clock.
        """
        if exited_us is None or exited_us < self.last_look_us:
            return missed_us
        self.last_look_us = max(min(exited_us, missed_us), self.last_look_us)
        return self.last_look_us

    def write(self, *, host: str, method: str, gone_at_us: int | Missing = ALIVE, died: bool = False) -> Sighting:
        """The unwritten span as a row; what follows begins at the last look."""
        row = Sighting(
            host=host,
            device=self.device,
            pid=self.pid,
            boot_id=self.boot_id,
            start_ticks=self.start_ticks,
            context_started_at_us=self.started_at_us,
            since_us=min(self.since_us, self.last_look_us),
            until_us=self.last_look_us,
            accounted=self.accounted,
            samples=self.samples,
            memory_mib_ms=self.memory_mib_ms,
            memory_ms=self.memory_ms,
            peak_memory_mib=self.peak_memory_mib,
            busy_ms=self.busy_ms,
            busy_covered_ms=self.busy_covered_ms,
            gone_at_us=gone_at_us,
            process_died=int(died),
            method=method,
        )
        self.since_us = self.last_look_us
        self.samples = self.memory_mib_ms = self.memory_ms = self.busy_ms = self.busy_covered_ms = 0
        return row


def first_look(
    seen: LivingContext,
    named: Named | None,
    *,
    boot_id: str,
    at_us: int,
    known_until_us: int,
    longest_us: int,
    opened_us: int | None = None,
) -> tuple[LiveContext, LiveContext | None]:
    """A context seen for the first time: held since the driver's start of it, else its open, else since this look.

    Args:
        opened_us: when an event saw its process open the device; None where none did.
        known_until_us: end of what is already written of this very context, 0 if nothing.
        longest_us: the longest time that one sample may count for.

    Returns:
        The context from where its first sample counts, and before it the part that its start or open
        proves without any sample, or None when there is none.
    """
    started: int | Missing | None = seen.started_at_us
    if isinstance(started, Missing):
        started = opened_us
    since_us = at_us if started is None else min(max(started, known_until_us), at_us)
    sampled_from_us = max(since_us, at_us - longest_us)
    context = _open(seen, named, boot_id, sampled_from_us)
    context.look(seen, named, boot_id=boot_id, at_us=at_us, longest_us=longest_us)
    if sampled_from_us == since_us:
        return context, None
    proven = _open(seen, named, boot_id, since_us)
    proven.last_look_us = sampled_from_us
    proven.accounted = context.accounted
    return context, proven


def _open(seen: LivingContext, named: Named | None, boot_id: str, since_us: int) -> LiveContext:
    return LiveContext(
        device=seen.device,
        pid=seen.pid,
        boot_id=boot_id if named is not None else "",
        start_ticks=named.start_ticks if named is not None else 0,
        started_at_us=seen.started_at_us,
        seen_from_us=since_us,
        since_us=since_us,
        last_look_us=since_us,
    )
