"""Chooses the driver source and the way of naming for an agent on this machine."""

from __future__ import annotations

import os
from collections.abc import Callable

from gpuledger.clock import Clock
from gpuledger.errors import Unavailable
from gpuledger.ledger.store import Ledger
from gpuledger.operations.agent import Agent, AgentPlan, Source
from gpuledger.sources.nvidia_smi import NvidiaSmiSource
from gpuledger.sources.nvml import NvmlSource, load_binding
from gpuledger.sources.procfs import boot_id
from gpuledger.sources.watchers import PollWatcher


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


def start(
    ledger: Ledger,
    source: Source,
    *,
    host: str,
    clock: Clock,
    interval_us: int,
    flush_us: int,
    once: bool,
    enable_accounting: bool,
    talk: Callable[[str], None],
    stopping: Callable[[], bool],
    looked: Callable[[int, bool], None],
) -> Agent:
    """An agent ready to run."""
    return Agent(
        ledger=ledger,
        source=source,
        watcher=PollWatcher(clock=clock),
        clock=clock,
        plan=AgentPlan(
            host=host,
            boot_id=boot_id(),
            interval_us=interval_us,
            flush_us=flush_us,
            once=once,
            enable_accounting=enable_accounting,
        ),
        talk=talk,
        stopping=stopping,
        looked=looked,
    )


def describe(agent: Agent, ledger: Ledger) -> str:
    """What an agent that starts says of itself."""
    plan = agent.plan
    if plan.once:
        return f"one look at {plan.host}; ledger {ledger.path}"
    return (
        f"watching {plan.host} every {plan.interval_us / 1_000_000:g} s; ledger {ledger.path}; "
        "processes are named by polling /proc (shorter ones can be missed: see `gpuledger blind`)"
    )
