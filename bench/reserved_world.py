"""Ledgers full of workloads for ``bench_metering``, built through the product's own append, and kept.

Two worlds: jobs of a month, as a batch system tells them, and a large cluster on which everybody still runs.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

from gpuledger.ledger.store import Ledger
from gpuledger.model.identity import IdentityText
from gpuledger.model.lifecycle import Placement, State, Transition
from gpuledger.model.moments import HOUR_US, SECOND_US, parse_moment
from gpuledger.model.workload_rows import PlacementRow, WorkloadEvent

BEGIN_US = parse_moment("2026-10-01", now_us=0)
DAYS = 30
MACHINES = 500
LONGEST_HOURS = 32
HISTORY_HOURS = 6
"""Hours in which the live workloads had their former lives."""

_WRITER = "bench.transition"
_AT_ONCE = 50_000


def jobs(path: Path, *, count: int) -> Path:
    """``count`` finished jobs of up to 32 hours over 30 days, 16.5 hours records each: declared history."""
    return _built(path, _jobs(count))


def live(path: Path, *, count: int, events: int) -> Path:
    """``count`` workloads that run, and ``events`` events of them: former lives of four events, then the last one."""
    return _built(path, _live(count, events))


def transitions(count: int, *, devices: int = 1000) -> list[Transition]:
    """``count`` transitions of lives of four states on so many devices, in the order of time."""
    places = [
        Placement(class_name="H100-80GB", machine=f"n{number // 8:03}", count=1, devices=(f"GPU-{number:06}",))
        for number in range(devices)
    ]
    made: list[Transition] = []
    for life in range(-(-count // (4 * devices))):
        for step, state in enumerate((State.PROVISIONING, State.BOOTING, State.RUNNING, State.STOPPED)):
            made += [
                Transition(
                    workload=f"w{life}-{number}", event_id=f"w{life}-{number}-{state}", state=state,
                    at_us=BEGIN_US + (4 * life + step) * SECOND_US, source="cluster", user=f"u{number % 50}", team="t",
                    placement=place if state is State.PROVISIONING else None,
                )
                for number, place in enumerate(places)
            ]  # fmt: skip
    return made[:count]


def _jobs(count: int) -> Iterator[tuple[str, list[tuple[str, int, bool]], int]]:
    random.seed(7)
    last_us = (DAYS * 24 - LONGEST_HOURS) * HOUR_US
    for _ in range(count):
        start_us = BEGIN_US + random.randrange(0, last_us)
        end_us = start_us + random.randrange(HOUR_US // 2, LONGEST_HOURS * HOUR_US)
        yield "slurm", [("provisioning", start_us, True), ("running", start_us, False), ("stopped", end_us, False)], 1


def _live(count: int, events: int) -> Iterator[tuple[str, list[tuple[str, int, bool]], int]]:
    random.seed(11)
    lives = max(0, events // count - 2) // 4
    span_us = HISTORY_HOURS * HOUR_US // (lives + 1)
    for _ in range(count):
        told: list[tuple[str, int, bool]] = []
        for life in range(lives):
            at_us = BEGIN_US + life * span_us + random.randrange(0, span_us // 4)
            told += [("provisioning", at_us, True), ("booting", at_us + HOUR_US // 60, False),
                     ("running", at_us + HOUR_US // 30, False), ("stopped", at_us + span_us // 2, False)]  # fmt: skip
        at_us = BEGIN_US + lives * span_us + random.randrange(0, span_us // 4)
        told += [("provisioning", at_us, True), ("running", at_us + HOUR_US // 60, False)]
        yield "cluster", told, 0


def _built(path: Path, workloads: Iterator[tuple[str, list[tuple[str, int, bool]], int]]) -> Path:
    if path.exists():
        return path
    fresh = path.with_suffix(f".{os.getpid()}")
    placements = [
        Placement(class_name=("H100-80GB", "A100-SXM4-40GB")[number % 2], machine=f"n{number:03}",
                  count=1 + number % 8, share=Fraction(1))
        for number in range(MACHINES)
    ]  # fmt: skip
    with Ledger.open(fresh, mode="append") as ledger:
        ledger.append([_row(each) for each in placements], writer=_WRITER, at_us=BEGIN_US)
        rows: list[WorkloadEvent] = []
        for number, (source, told, is_declared) in enumerate(workloads):
            name = f"{source}-{number:06}"
            owner = IdentityText(workload=name, user=f"u{number % 200}", team=f"t{number % 20}")
            subject = ledger.key_of(owner, is_new=True)
            for sequence, (state, at_us, is_placed) in enumerate(told, start=1):
                rows.append(
                    WorkloadEvent(
                        workload=name, event_id=str(sequence), sequence=sequence, state=state, at_us=at_us,
                        recorded_at_us=at_us, source=source, is_declared=is_declared, subject=subject,
                        placement=placements[number * 7 % MACHINES].key if is_placed else "",
                    )
                )  # fmt: skip
            if len(rows) >= _AT_ONCE:
                ledger.append(rows, writer=_WRITER, at_us=BEGIN_US)
                rows = []
        ledger.append(rows, writer=_WRITER, at_us=BEGIN_US)
    fresh.rename(path)
    return path


def _row(placement: Placement) -> PlacementRow:
    return PlacementRow(
        placement=placement.key, class_name=placement.class_name, region="", machine=placement.machine, pool="",
        devices="[]", count=placement.count, share_num=1, share_den=1,
    )  # fmt: skip
