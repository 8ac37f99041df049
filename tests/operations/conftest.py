"""A machine that an agent can watch: a simulated driver, a clock that the test moves, names given by hand."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gpuledger.clock import FixedClock
from gpuledger.errors import Unavailable
from gpuledger.ledger.store import Ledger
from gpuledger.model.identity import IdentityText
from gpuledger.model.moments import SECOND_US, parse_moment
from gpuledger.model.readings import Named, NamesLook
from gpuledger.model.rows import Row
from gpuledger.operations.agent import Agent, AgentPlan
from gpuledger.sources.nvml import NvmlSource
from gpuledger.sources.simulated import SimulatedDriver


class NamedByHand:
    """A watcher that knows the processes it was told of."""

    method = "poll"
    urgent = None

    def __init__(self) -> None:
        self.alive: dict[int, Named] = {}
        self._told: set[tuple[int, int]] = set()

    def look(self, pids: Collection[int], now_us: int, *, restarted: Collection[int] = ()) -> NamesLook:
        current = {pid: replace(self.alive[pid], seen_at_us=now_us) for pid in pids if pid in self.alive}
        fresh = tuple(one for one in current.values() if (one.pid, one.start_ticks) not in self._told)
        self._told |= {(one.pid, one.start_ticks) for one in fresh}
        return NamesLook(method=self.method, current=current, fresh=fresh)

    def close(self) -> None:
        self._told.clear()


class FullDisk:
    """The ledger on a disk that can be full."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self.is_full = False

    def append(self, rows: Sequence[Row], *, writer: str, at_us: int) -> Any:
        if self.is_full:
            raise Unavailable("ledger-full", "no room on the disk", hint="free some space")
        return self._ledger.append(rows, writer=writer, at_us=at_us)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._ledger, name)


class Machine:
    """One machine with one accounted GPU, at 10:00 UTC of a summer day."""

    host = "box"
    gpu = "GPU-5a3c1f2e-1111-2222-3333-444455556666"

    def __init__(self, place: Path) -> None:
        self.clock = FixedClock(parse_moment("2026-07-27T10:00:00Z", now_us=0))
        self.driver = SimulatedDriver(self.clock.now_us)
        self.driver.add_gpu(self.gpu, product="NVIDIA L4", memory_mib=23034, accounting=True)
        self.names = NamedByHand()
        self.ledger = Ledger.open(place, mode="append")
        self.disk = FullDisk(self.ledger)
        self.said: list[str] = []

    def agent(self, **plan: Any) -> Agent:
        """An agent that looks once a second; what it says is kept."""
        words = {"host": self.host, "boot_id": "boot", "interval_us": SECOND_US, "flush_us": 300 * SECOND_US} | plan
        return Agent(
            ledger=self.disk,  # type: ignore[arg-type] - the ledger, or its full disk
            source=NvmlSource(self.driver, method="simulated"),  # type: ignore[arg-type] - the binding's calls
            watcher=self.names,
            clock=self.clock,
            plan=AgentPlan(**words),
            talk=self.said.append,
        )

    def start(self, pid: int, program: str, memory_mib: int = 100) -> None:
        """A process starts, can be named, and opens the GPU."""
        self.names.alive[pid] = Named(
            pid=pid, start_ticks=pid, exec_number=0, started_at_us=self.clock.now_us(),
            seen_at_us=self.clock.now_us(), text=IdentityText(exe=f"/usr/bin/{program}", command=program, user="al"),
        )  # fmt: skip
        self.driver.start(pid, self.gpu, memory_mib)

    def finish(self, pid: int) -> None:
        """A process closes the GPU and dies."""
        self.driver.finish(pid, self.gpu)
        del self.names.alive[pid]

    def watch(self, agent: Agent, looks: int, every_s: float = 1) -> None:
        """So many looks; time passes before each."""
        for _ in range(looks):
            self.clock.advance(int(every_s * SECOND_US))
            agent.look()

    def rows(self, kind: type[Row], **words: Any) -> list[Any]:
        """What the ledger holds of a kind, in the order of time."""
        return list(self.ledger.scan(kind, order="time", **words))


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    """A machine with an empty ledger."""
    made = Machine(tmp_path / "machine.db")
    yield made
    made.ledger.close()
