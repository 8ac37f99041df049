"""A month of a busy box: 8 GPUs, 2,000,000 finished processes, as the agent would have written them.

In: a place and a size. Out: a ledger, filled through the product's own append, so that its chain verifies.
The same size gives the same evidence each time.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from gpuledger.ledger.store import Ledger
from gpuledger.model.identity import IdentityText
from gpuledger.model.missing import Missing
from gpuledger.model.moments import DAY_US, HOUR_US, MINUTE_US, SECOND_US, parse_moment
from gpuledger.model.rows import DeviceEvent, DriverRecord, ProcessIdentity, Row, Sighting, Watch
from gpuledger.operations.apply import apply

HOST = "busy"
AGENT = f"{HOST}.agent"
BOOT = "b0000000-0000-4000-8000-000000000000"
MONTH_US = parse_moment("2026-10-01T00:00Z", now_us=0)
DAYS = 31
GPUS = tuple(f"GPU-{number:08x}-0000-4000-8000-000000000000" for number in range(8))
PROCESSES = 2_000_000
TEXTS = 3_000
IN_AN_HOUR = 25
"""Distinct programs on one GPU in one hour: with three meters some 500,000 records in a month."""
DAEMONS = 2
"""Resident processes on each GPU, alive all month."""
FLUSH_US = 5 * MINUTE_US
LOOK_US = SECOND_US
UNSEEN = 20
"""One process in so many falls between two looks: a driver row without a name."""

ALIVE = Missing("still alive")

POLICY = """\
services:
  - {service: ollama, team: home, match: {unit: "^ollama\\\\.service$"}}
  - {service: whisper, team: speech, match: {command: "whisper"}}
  - {service: xtts, team: speech, match: {command: "xtts"}}
  - {service: notebooks, team: lab, match: {exe: "jupyter"}}
  - {service: render, team: art, match: {unit: "^render-.*\\\\.service$"}}
  - {service: nightly, team: lab, match: {unit: "^nightly\\\\.service$", command: "train"}}
  - {service: eval, team: lab, match: {command: "eval_[0-9]+"}}
  - {service: embed, team: search, match: {command: "embed"}}
  - {service: index, team: search, match: {command: "index"}}
  - {service: finetune, team: lab, match: {command: "finetune"}}
  - {service: vision, team: vision, match: {user: "^(alice|bob)$", command: "detect"}}
  - {service: batch, team: lab, match: {command: "batch_job"}}
"""
_PROGRAMS = ("whisper", "xtts", "eval_{n}", "embed", "index", "finetune", "detect", "batch_job", "own_{n}", "plot_{n}")
_USERS = ("alice", "bob", "carol", "dave", "erin")


@dataclass(frozen=True, slots=True, kw_only=True)
class Built:
    """A month that lies ready.

    Args:
        path: the ledger.
        days: its length.
        rows: evidence rows appended, 0 when it was there already.
        seconds: how long that took.
    """

    path: Path
    days: int
    rows: int
    seconds: float


def evidence(folder: Path, *, days: int, processes: int) -> Built:
    """The evidence of a month (or its first days) in a ledger; built once for each size."""
    path = folder / f"month-{days}d-{processes}.db"
    if path.exists():
        return Built(path=path, days=days, rows=0, seconds=0.0)
    fresh = path.with_name(f"{path.name}.{os.getpid()}")
    began = time.perf_counter()
    count = 0
    policy = folder / "policy.yaml"
    policy.write_text(POLICY)
    apply(lambda: Ledger.open(fresh, mode="append"), policy, now_us=MONTH_US, writer=f"{HOST}.policy")
    with Ledger.open(fresh, mode="append") as ledger:
        ledger.connection.exec_driver_sql("PRAGMA cache_size = -524288")  # of this filling only
        keys = [ledger.key_of(text) for text in texts()]
        for number, batch in enumerate(_days(keys, days=days, processes=processes)):
            at_us = MONTH_US + number * DAY_US + DAY_US
            appended = ledger.append(batch, writer=AGENT, at_us=at_us)
            assert appended.known == 0, f"the month is not its own: {appended.known} rows twice"
            ledger.seal(at_us, writer=AGENT)
            count += len(batch)
    fresh.rename(path)
    return Built(path=path, days=days, rows=count, seconds=time.perf_counter() - began)


def texts() -> list[IdentityText]:
    """The distinct programs of the box."""
    found = [
        IdentityText(exe="/usr/bin/ollama", command="ollama runner", user="ollama", unit="ollama.service"),
        IdentityText(exe="/usr/bin/jupyter", command="jupyter lab", user="carol", unit="jupyter.service"),
    ]
    for number in range(len(found), TEXTS):
        program = _PROGRAMS[number % len(_PROGRAMS)].format(n=number)
        user = _USERS[number % len(_USERS)]
        command = f"python3 /home/{user}/{program}.py --run {number}"
        unit = f"render-{number}.service" if number % 50 == 0 else f"session-{number % 97}.scope"
        cgroup = f"/user.slice/{unit}"
        found.append(
            IdentityText(exe="/usr/bin/python3.11", command=command, user=user, uid="1000", unit=unit, cgroup=cgroup)
        )
    return found


def _days(keys: list[str], *, days: int, processes: int) -> Iterator[list[Row]]:
    chance = random.Random(1)
    a_gpu_and_day = processes // (len(GPUS) * DAYS)
    serial = 0
    for day in range(days):
        start_us = MONTH_US + day * DAY_US
        rows: list[Row] = []
        if day == 0:
            rows += [_device(uuid) for uuid in GPUS]
        for place, uuid in enumerate(GPUS):
            rows += _watches(uuid, start_us)
            rows += _daemons(keys, place, uuid, start_us, first=day == 0)
            for number in range(a_gpu_and_day):
                at_us = start_us + number * DAY_US // a_gpu_and_day + chance.randrange(SECOND_US)
                long_ms = int(chance.lognormvariate(9.3, 1.0)) + 50
                hour = (at_us - MONTH_US) // HOUR_US
                key = keys[(hour * 37 + place * 379 + chance.randrange(IN_AN_HOUR) * 101) % len(keys)]
                rows += _process(serial, key, uuid, at_us, min(long_ms, 3_000_000), chance)
                serial += 1
        rows += _watches("", start_us)
        yield rows


def _device(uuid: str) -> DeviceEvent:
    return DeviceEvent(
        host=HOST, device=uuid, at_us=MONTH_US, event="seen", class_name="H100-80GB", product="NVIDIA H100 80GB HBM3",
        memory_mib=81559, pci_bus_id="00000000:01:00.0", driver_version="595.45.04", method="nvml",
    )  # fmt: skip


def _watches(uuid: str, start_us: int) -> Iterator[Watch]:
    for number in range(DAY_US // FLUSH_US):
        since_us = start_us + number * FLUSH_US
        yield Watch(
            host=HOST, device=uuid, source="driver" if uuid else "process", method="nvml" if uuid else "poll",
            interval_ms=LOOK_US // 1000, since_us=since_us, until_us=since_us + FLUSH_US, status="ok",
            readings=FLUSH_US // LOOK_US, new_rows=29 if uuid else 0, living=6 if uuid else 0,
        )  # fmt: skip


def _daemons(keys: list[str], place: int, uuid: str, start_us: int, *, first: bool) -> Iterator[Row]:
    for number in range(DAEMONS):
        pid = 900 + place * DAEMONS + number
        started_us = MONTH_US + pid * 1000
        if first:
            yield _identity(pid, pid, started_us, started_us + SECOND_US, keys[number])
        for flush in range(DAY_US // FLUSH_US):
            since_us = max(started_us, start_us + flush * FLUSH_US)
            until_us = start_us + (flush + 1) * FLUSH_US
            yield _sighting(uuid, pid, pid, started_us, since_us, until_us, memory_mib=4000 + pid, busy_ms=9_000)


def _process(serial: int, key: str, uuid: str, at_us: int, context_ms: int, chance: random.Random) -> Iterator[Row]:
    pid = 1000 + serial % 4_190_000
    ticks = (at_us - MONTH_US) // 10_000 + 10_000
    ended_us = at_us + context_ms * 1000
    memory_mib = 300 + serial % 20_000
    looked_us = ended_us - ended_us % LOOK_US + LOOK_US
    yield DriverRecord(
        host=HOST, device=uuid, pid=pid, started_at_us=at_us, context_ms=context_ms, peak_memory_mib=memory_mib,
        gpu_percent=serial % 90, memory_percent=serial % 40, read_at_us=looked_us, method="nvml",
    )  # fmt: skip
    first_us = at_us - at_us % LOOK_US + LOOK_US
    if first_us >= ended_us or chance.randrange(UNSEEN) == 0:
        return
    yield _identity(pid, ticks, at_us - 100_000, first_us, key)
    last_us = looked_us - LOOK_US
    yield _sighting(uuid, pid, ticks, at_us, at_us, first_us, memory_mib=memory_mib, busy_ms=0, samples=1)
    cut_us = first_us
    flush_us = first_us - first_us % FLUSH_US + FLUSH_US
    while flush_us < last_us:
        yield _sighting(uuid, pid, ticks, at_us, cut_us, flush_us, memory_mib=memory_mib, busy_ms=serial % 1000)
        cut_us, flush_us = flush_us, flush_us + FLUSH_US
    yield _sighting(
        uuid, pid, ticks, at_us, cut_us, last_us, memory_mib=memory_mib, busy_ms=(last_us - cut_us) // 3000,
        gone_at_us=looked_us,
    )  # fmt: skip


def _identity(pid: int, ticks: int, started_us: int, seen_us: int, key: str) -> ProcessIdentity:
    return ProcessIdentity(
        host=HOST, boot_id=BOOT, pid=pid, start_ticks=ticks, started_at_us=started_us, seen_at_us=seen_us,
        method="poll", grade="kernel", text_key=key,
    )  # fmt: skip


def _sighting(
    uuid: str,
    pid: int,
    ticks: int,
    context_us: int,
    since_us: int,
    until_us: int,
    *,
    memory_mib: int,
    busy_ms: int,
    samples: int | None = None,
    gone_at_us: int | Missing = ALIVE,
) -> Sighting:
    span_ms = (until_us - since_us) // 1000
    return Sighting(
        host=HOST, device=uuid, pid=pid, boot_id=BOOT, start_ticks=ticks, context_started_at_us=context_us,
        since_us=since_us, until_us=until_us, accounted="yes",
        samples=span_ms * 1000 // LOOK_US if samples is None else samples, memory_mib_ms=memory_mib * span_ms,
        memory_ms=span_ms, peak_memory_mib=memory_mib, busy_ms=busy_ms, busy_covered_ms=span_ms,
        gone_at_us=gone_at_us,
        process_died=0 if isinstance(gone_at_us, Missing) else 1, method="nvml",
    )  # fmt: skip
