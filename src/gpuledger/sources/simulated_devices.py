"""The devices of the simulated driver and the rules they keep: what a real driver does with its rows.

In: opens and closes of devices. Out: living contexts and the ring of dead rows. No locks here; the driver
in :mod:`gpuledger.sources.simulated` holds them.
"""

from __future__ import annotations

from dataclasses import dataclass, field

RING = 128
"""Dead rows per GPU (NV_MAX_DEAD_ACCT_PROCESS in gpu_acct.c, the same from driver 515 to 595)."""

NO_INSTANCE = 4294967295
"""MIG instance id of a process on a whole GPU."""


@dataclass(slots=True, kw_only=True)
class SimulatedInstance:
    """A MIG instance; also the handle that the binding's calls take."""

    uuid: str
    name: str
    memory_mib: int
    gpu_instance: int
    compute_instance: int


@dataclass(slots=True, kw_only=True)
class OpenContext:
    """A context that is open now; ``kinds`` are the lists it shows up in, of C, G and M."""

    pid: int
    started_at_us: int
    memory_mib: int
    peak_mib: int
    kinds: str
    accounted: bool
    percent: int = 0
    gpu_instance: int = NO_INSTANCE
    compute_instance: int = NO_INSTANCE


@dataclass(slots=True, kw_only=True)
class DeadRow:
    """A finished row, settled."""

    pid: int
    started_at_us: int
    context_ms: int
    peak_mib: int
    percent: int


@dataclass(slots=True, kw_only=True)
class SimulatedGpu:
    """One device; also the handle that the binding's calls take. ``dead`` is in order of end, oldest first."""

    uuid: str
    product: str
    memory_mib: int
    accounting: bool
    mig: bool = False
    instances: list[SimulatedInstance] = field(default_factory=list)
    living: dict[int, OpenContext] = field(default_factory=dict)
    dead: dict[int, DeadRow] = field(default_factory=dict)

    def close(self, pid: int, ended_at_us: int) -> None:
        """The context is settled if it was accounted, else gone without a trace.

        A second stint of a pid frees its older row; a full ring loses its oldest.
        """
        context = self.living.pop(pid)
        if not context.accounted:
            return
        self.dead.pop(pid, None)
        while len(self.dead) >= RING:
            del self.dead[next(iter(self.dead))]
        self.dead[pid] = DeadRow(
            pid=pid,
            started_at_us=context.started_at_us,
            # Without a sign, as the driver subtracts: a clock set back meanwhile wraps around.
            context_ms=(ended_at_us - context.started_at_us) % 2**64 // 1000,
            peak_mib=context.peak_mib,
            percent=context.percent,
        )

    def disable(self) -> None:
        """Accounting off: running rows are gone for good, dead rows go stale."""
        self.accounting = False
        for context in self.living.values():
            context.accounted = False

    def listed(self) -> list[int]:
        """The accounting list: the dead, then the running; a pid may stand in both."""
        return [*self.dead, *(pid for pid, context in self.living.items() if context.accounted)]
