"""What an observer is given at its start: the rhythm of looking, and what is known of the run before."""

from __future__ import annotations

from dataclasses import dataclass, field

from gpuledger.model.rows import DeviceEvent
from gpuledger.watching.accounting import AccountingList
from gpuledger.watching.contexts import LiveContext


@dataclass(frozen=True, slots=True, kw_only=True)
class Beat:
    """The rhythm of looking.

    Args:
        interval_us: time between two looks.
        flush_us: longest time that a span stays unwritten.
    """

    interval_us: int
    flush_us: int

    @property
    def interval_ms(self) -> int:
        """Time between two looks, ms."""
        return self.interval_us // 1000

    @property
    def gap_us(self) -> int:
        """A pause longer than this is a gap in watching, not a late look."""
        return max(3 * self.interval_us, 5_000_000)

    @property
    def longest_sample_us(self) -> int:
        """A sample counts for two polls at most."""
        return 2 * self.interval_us


@dataclass(slots=True, kw_only=True)
class Memory:
    """What a restarted observer knows of the run before, read back from the ledger.

    Args:
        devices: last event by device UUID.
        lists: rows of each device that the driver may still list, and its last known mode.
        contexts: contexts that were alive at the last look, by (device, pid).
        looked_us: the last look by (source, device), as in a watch. Empty at the first run.
    """

    devices: dict[str, DeviceEvent] = field(default_factory=dict)
    lists: dict[str, AccountingList] = field(default_factory=dict)
    contexts: dict[tuple[str, int], LiveContext] = field(default_factory=dict)
    looked_us: dict[tuple[str, str], int] = field(default_factory=dict)
