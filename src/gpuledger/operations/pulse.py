"""The agent's pulse: when it last looked, told beside the ledger at every look.

An agent writes what is new at once, and what goes on only every few minutes. Between two writes its
silence means that nothing changed, as long as it looks. The pulse says until when it has looked, so
that a reader need not take five unwritten minutes for a gap. It is no evidence: it is never metered,
never chained, and gone with the next write.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from gpuledger.ledger.places import Place, beside
from gpuledger.ledger.store import Ledger
from gpuledger.model.missing import Missing
from gpuledger.model.moments import MINUTE_US
from gpuledger.model.reasons import UnknownReason
from gpuledger.model.rows import DeviceEvent, Sighting, Watch

UNWRITTEN = ":/0"
"""The reference of a row that is in no ledger ends with this: no writer, number 0."""

LONGEST_FLUSH_US = 10 * MINUTE_US
"""An agent may leave what goes on unwritten for so long, and no longer."""
_LONGEST_US = LONGEST_FLUSH_US + 5 * MINUTE_US
"""No agent leaves more than this unwritten; what is older was left by one that died."""
_BEATS = 3
"""Intervals without a look after which it is not waited for any more."""
_BYTES = 512
_UNREAD = (UnknownReason.DEVICE_LOST, UnknownReason.DRIVER_UNREACHABLE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pulse:
    """One agent's last look.

    Args:
        host: the machine.
        looked_us: wall clock of the look, microseconds UTC.
        interval_us: time to the next one.
        answered: whether the driver answered; else nothing was seen of contexts, and nothing named.
        stuck_since_us, stuck_us: first and last look of those that could not be written, as on a full disk; 0 where
            the last one was written.
    """

    host: str
    looked_us: int
    interval_us: int
    answered: bool = True
    stuck_since_us: int = 0
    stuck_us: int = 0

    @property
    def told_us(self) -> int:
        """The last look of all, whether it is written or kept until it can be."""
        return max(self.looked_us, self.stuck_us)

    def is_beating(self, now_us: int) -> bool:
        """Whether the next look is still to be waited for: now is then as good as the last look."""
        return now_us - self.told_us <= _BEATS * self.interval_us


class PulseTeller:
    """Tells one agent's looks, written or not.

    Args:
        host, interval_us: as in a :class:`Pulse`.
        say: writes a pulse.
    """

    def __init__(self, *, host: str, interval_us: int, say: Callable[[Pulse], None]) -> None:
        self._pulse = Pulse(host=host, looked_us=0, interval_us=interval_us)
        self._say = say

    def looked(self, at_us: int, answered: bool) -> None:
        """A look is written, and all before it."""
        self._pulse = replace(self._pulse, looked_us=at_us, answered=answered, stuck_since_us=0, stuck_us=0)
        self._say(self._pulse)

    def stuck(self, at_us: int) -> None:
        """A look could not be written; it is kept."""
        self._pulse = replace(self._pulse, stuck_since_us=self._pulse.stuck_since_us or at_us, stuck_us=at_us)
        self._say(self._pulse)


def pulse_path(place: Place) -> Path:
    """The file beside the ledger, on the agent's machine, that it holds locked and tells its pulse in."""
    return beside(place, ".agent")


def tell(descriptor: int, pulse: Pulse) -> None:
    """Write a pulse over the last one; not synced, since it is worth nothing after a crash."""
    text = json.dumps(asdict(pulse)).encode()
    os.pwrite(descriptor, text.ljust(_BYTES), 0)


def hear(ledger: Ledger, *, now_us: int) -> Pulse | None:
    """The pulse of the agent that writes to this ledger; None where none is told or it cannot be read."""
    try:
        told = json.loads(pulse_path(ledger.place).read_text(encoding="utf-8"))
        interval_us, stuck_us = int(told["interval_us"]), min(int(told.get("stuck_us", 0)), now_us)
        is_stuck = now_us - stuck_us <= _BEATS * interval_us  # else it has ended, and what it kept is lost
        return Pulse(
            host=str(told["host"]),
            looked_us=min(int(told["looked_us"]), now_us),
            interval_us=interval_us,
            answered=bool(told["answered"]),
            stuck_since_us=min(int(told.get("stuck_since_us", 0)), stuck_us) if is_stuck else 0,
            stuck_us=stuck_us if is_stuck else 0,
        )
    except (OSError, ValueError, KeyError, TypeError):
        return None


def unwritten_watches(ledger: Ledger, pulse: Pulse | None) -> Iterable[Watch]:
    """What each watch of the agent would say now: its last status until the pulse, then ``not-written`` if stuck."""
    if pulse is None:
        return
    names = {""} if pulse.answered else set()
    devices = {*names, *(event.device for event in ledger.scan(DeviceEvent, hosts=[pulse.host]) if not event.parent)}
    for device in devices:
        rows = ledger.scan(
            Watch,
            hosts=[pulse.host],
            devices=[device],
            until_us=max(pulse.looked_us, pulse.stuck_us) + 1,
            order="time",
            descending=True,
            limit=8,
        )
        latest = max(
            (row for row in rows if row.readings and row.method not in ("import", "clock")),
            key=lambda row: row.until_us,
            default=None,
        )
        if latest is None:
            continue
        goes_on = replace(latest, writer="", number=0, readings=0, new_rows=0, detail="")
        known_us = latest.until_us
        if 0 < pulse.looked_us - known_us <= _LONGEST_US:
            yield replace(goes_on, since_us=known_us, until_us=pulse.looked_us)
            known_us = pulse.looked_us
        since_us = known_us if pulse.stuck_since_us - known_us <= _BEATS * pulse.interval_us else pulse.stuck_since_us
        if device and since_us < pulse.stuck_us:
            yield replace(goes_on, since_us=since_us, until_us=pulse.stuck_us, status=UnknownReason.NOT_WRITTEN)


def unwritten_sightings(ledger: Ledger, alive: Iterable[Sighting], pulse: Pulse | None) -> Iterable[Sighting]:
    """Contexts that the agent saw last and has not missed since: alive until the pulse, without samples.

    Not those of a device that it does not read now: nothing was missed there, and nothing seen.
    """
    if pulse is None or not pulse.answered:
        return
    unread = {row.device for row in unwritten_watches(ledger, pulse) if row.status in _UNREAD}
    unread |= {event.device for event in ledger.scan(DeviceEvent, hosts=[pulse.host]) if event.parent in unread}
    for row in alive:
        if row.device in unread:
            continue
        since_us = row.until_us
        is_its_own = row.host == pulse.host and row.method != "import"
        if is_its_own and isinstance(row.gone_at_us, Missing) and 0 < pulse.looked_us - since_us <= _LONGEST_US:
            yield replace(
                row, writer="", number=0, since_us=since_us, until_us=pulse.looked_us, samples=0, memory_mib_ms=0,
                memory_ms=0, busy_ms=0, busy_covered_ms=0,
            )  # fmt: skip
