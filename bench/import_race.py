"""The import's race: 4,000 rows of ``nvidia-smi`` into an empty ledger, and the least that could be done with them."""

from __future__ import annotations

import csv
import random
import sqlite3
import time
from pathlib import Path

from gpuledger.ledger.store import Ledger
from gpuledger.model.moments import MINUTE_US, parse_moment
from gpuledger.operations.import_nvidia_smi import import_nvidia_smi

ROWS = 4_000
GPUS = tuple(f"GPU-{number:08x}-0000-4000-8000-000000000000" for number in range(32))
"""As many as 4,000 rows need: a driver keeps 128 finished ones of each."""
_HEADS = (
    "timestamp, gpu_name, gpu_bus_id, gpu_serial, gpu_uuid, pid, gpu_utilization [%], mem_utilization [%], "
    "max_memory_usage [MiB], time [ms]"
)


def write_dump(path: Path) -> None:
    """A dump as ``nvidia-smi --query-accounted-apps=... --format=csv`` prints it."""
    chance = random.Random(3)
    lines = [_HEADS]
    for number in range(ROWS):
        uuid = GPUS[number % len(GPUS)]
        memory, spent = chance.randrange(100, 80_000), chance.randrange(1, 4_000_000)
        lines.append(
            f"2026/10/31 12:00:00.000, NVIDIA H100 80GB HBM3, 00000000:{number % len(GPUS):02X}:00.0, [N/A], {uuid}, "
            f"{1000 + number}, {chance.randrange(100)} %, {chance.randrange(60)} %, {memory} MiB, {spent} ms"
        )
    path.write_text("\n".join(lines) + "\n")


def imported(dump: Path, place: Path) -> float:
    """Seconds of the product's import into a ledger that is there and empty."""
    Ledger.open(place, mode="append").close()
    began = time.perf_counter()
    report = import_nvidia_smi(
        lambda: Ledger.open(place, mode="append"), dump, pid_map=None, host="box", local_host="box", device="",
        zone="UTC", taken_at_us=None, now_us=parse_moment("2026-10-31T13:00Z", now_us=0) + MINUTE_US, role="import",
    )  # fmt: skip
    seconds = time.perf_counter() - began
    assert report.finished == ROWS, report
    return seconds


def bare(dump: Path, place: Path) -> float:
    """Seconds of a csv.reader and one insert of all rows: no checks, no names, no chain."""
    connection = sqlite3.connect(place)
    connection.execute("CREATE TABLE row (uuid TEXT, pid INTEGER, gpu INTEGER, mem INTEGER, mib INTEGER, ms INTEGER)")
    began = time.perf_counter()
    with dump.open(newline="") as file:
        reader = csv.reader(file, skipinitialspace=True)
        next(reader)
        rows = [(cells[4], int(cells[5]), *(int(cell.split()[0]) for cell in cells[6:])) for cells in reader]
    connection.executemany("INSERT INTO row VALUES (?, ?, ?, ?, ?, ?)", rows)
    connection.commit()
    seconds = time.perf_counter() - began
    connection.close()
    return seconds
