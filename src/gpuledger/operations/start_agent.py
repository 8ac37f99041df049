"""Chooses the driver source and the way of naming for an agent on this machine."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass

from gpuledger.clock import Clock
from gpuledger.errors import Misconfigured, Unavailable
from gpuledger.ledger.store import Ledger
from gpuledger.operations.agent import Agent, AgentPlan, Source
from gpuledger.sources.connector import ConnectorSource
from gpuledger.sources.ebpf import EbpfSource
from gpuledger.sources.event_watcher import EventWatcher
from gpuledger.sources.nvidia_smi import NvidiaSmiSource
from gpuledger.sources.nvml import NvmlSource, load_binding
from gpuledger.sources.process_events import EventSource
from gpuledger.sources.procfs import boot_id
from gpuledger.sources.watchers import PollWatcher, Watcher

AUTO = "auto"
METHODS = ("ebpf", "connector", "poll")
"""Ways of naming, the best first."""

_EVENTS: dict[str, Callable[[], EventSource]] = {"ebpf": EbpfSource, "connector": ConnectorSource}

_HOW = {
    "ebpf": "processes are named by kernel events (eBPF), however short they live",
    "connector": "processes are named by kernel events (process connector); what opens a device is not seen",
    "poll": "processes are named by polling /proc (shorter ones can be missed: see `gpuledger blind`)",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """Why a way of naming is not to be had here, and what grants it."""

    method: str
    message: str
    hint: str

    def __str__(self) -> str:
        return f"{self.method}: {self.message}"


def choose_source(talk: Callable[[str], None]) -> Source:
    """NVML, else ``nvidia-smi``.

    Raises:
        Unavailable: ``driver-unreachable`` when neither answers.
    """
    try:
        return NvmlSource(load_binding())
    except Unavailable as nvml_error:
        fallback = NvidiaSmiSource()
        try:
            fallback.read(0)
        except Unavailable:
            raise nvml_error from None
        talk(f"NVML does not answer ({nvml_error.message}); reading nvidia-smi instead, which gives no start times")
        return fallback


def ready_source(*, enable_accounting: bool, talk: Callable[[str], None]) -> Source:
    """The source of an agent that is about to start: asked for before the ledger is made.

    Raises:
        Unavailable: ``driver-unreachable``; ``needs-root`` when told to enable accounting without root.
    """
    if enable_accounting and os.geteuid() != 0:
        raise Unavailable(
            "needs-root",
            "the driver lets only root enable accounting",
            hint="sudo gpuledger agent --enable-accounting   (or once: sudo nvidia-smi -am 1)",
        )
    return choose_source(talk)


def choose_watcher(method: str, *, clock: Clock) -> tuple[Watcher, tuple[Refusal, ...]]:
    """The way of naming: the one asked for, or (``auto``) the first of :data:`METHODS` that this machine lets.

    Returns:
        The watcher, and why each better one is not used.

    Raises:
        Unavailable: the one asked for is refused here.
        Misconfigured: ``unknown-watch``.
    """
    source, refusals = _choose_events(method)
    watcher = PollWatcher(clock=clock) if source is None else EventWatcher(source, clock=clock)
    return watcher, refusals


def best_method() -> tuple[str, tuple[Refusal, ...]]:
    """The first of :data:`METHODS` that this machine lets, and why each better one is not to be had."""
    source, refusals = _choose_events(AUTO)
    if source is None:
        return METHODS[-1], refusals
    source.close()
    return source.method, refusals


def _choose_events(method: str) -> tuple[EventSource | None, tuple[Refusal, ...]]:
    if method not in (AUTO, *METHODS):
        told = f"{method!r} is no way of naming"
        raise Misconfigured("unknown-watch", told, hint=f"--watch {'|'.join((AUTO, *METHODS))}")
    refusals: list[Refusal] = []
    for name, source in _EVENTS.items():
        if method not in (AUTO, name):
            continue
        try:
            return source(), tuple(refusals)
        except Unavailable as error:
            if method == name:
                raise
            refusals.append(Refusal(method=name, message=error.message, hint=error.hint))
    return None, tuple(refusals)


def start(
    ledger: Ledger,
    source: Source,
    watcher: Watcher,
    *,
    host: str,
    clock: Clock,
    interval_us: int,
    flush_us: int,
    once: bool,
    enable_accounting: bool,
    naming_note: str,
    talk: Callable[[str], None],
    stopping: Callable[[], bool],
    looked: Callable[[int, bool], None],
    stuck: Callable[[int], None] | None = None,
) -> Agent:
    """An agent ready to run."""
    return Agent(
        ledger=ledger,
        source=source,
        watcher=watcher,
        clock=clock,
        plan=AgentPlan(
            host=host,
            boot_id=boot_id(),
            interval_us=interval_us,
            flush_us=flush_us,
            once=once,
            enable_accounting=enable_accounting,
            naming_note=naming_note,
        ),
        talk=talk,
        stopping=stopping,
        looked=looked,
        stuck=stuck,
    )


def describe(agent: Agent, ledger: Ledger, watcher: Watcher) -> str:
    """What an agent that starts says of itself."""
    plan = agent.plan
    if plan.once:
        return f"one look at {plan.host}; ledger {ledger.place}"
    return (
        f"watching {plan.host} every {plan.interval_us / 1_000_000:g} s; ledger {ledger.place}; {_HOW[watcher.method]}"
    )
