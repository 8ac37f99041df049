"""What the ledger's tests share: an open ledger, rows of every kind, and a bare sqlite3 connection beside it."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from gpuledger.ledger import Ledger
from gpuledger.model.archive import Archive
from gpuledger.model.missing import Missing
from gpuledger.model.moments import HOUR_US, SECOND_US
from gpuledger.model.rows import (
    DeviceEvent,
    DriverRecord,
    Pass,
    PolicyVersion,
    ProcessIdentity,
    Sighting,
    UsageCorrection,
    UsageRecord,
    Watch,
)
from gpuledger.model.workload_rows import ExpectedEnd, Hold, PlacementRow, WorkloadEvent

NOON = 494_000 * HOUR_US
"""A whole hour in May 2026."""


def _device(number: int = 0, **fields: Any) -> DeviceEvent:
    base = {"host": "box", "device": "GPU-a", "at_us": NOON + number, "event": "seen", "class_name": "T4"}
    return DeviceEvent(**base | {"product": "Tesla T4", "memory_mib": 16, "method": "simulated"} | fields)


def _watch(number: int = 0, **fields: Any) -> Watch:
    since = NOON + number * SECOND_US
    base = {"host": "box", "device": "GPU-a", "source": "driver", "method": "simulated", "interval_ms": 1000}
    return Watch(**base | {"since_us": since, "until_us": since + SECOND_US, "status": "ok"} | fields)


def _identity(number: int = 0, **fields: Any) -> ProcessIdentity:
    base = {"host": "box", "boot_id": "b", "pid": 100 + number, "start_ticks": 5, "started_at_us": NOON}
    return ProcessIdentity(**base | {"seen_at_us": NOON, "method": "poll", "grade": "kernel", "text_key": "k"} | fields)


def _driver(number: int = 0, **fields: Any) -> DriverRecord:
    start = NOON + number * SECOND_US
    base = {"host": "box", "device": "GPU-a", "pid": 100 + number, "started_at_us": start, "context_ms": 500}
    figures = {"peak_memory_mib": 10, "gpu_percent": 0, "memory_percent": Missing("driver: not supported")}
    return DriverRecord(**base | figures | {"read_at_us": start + SECOND_US, "method": "simulated"} | fields)


def _sighting(number: int = 0, **fields: Any) -> Sighting:
    since = NOON + number * SECOND_US
    base = {"host": "box", "device": "GPU-a", "pid": 100 + number, "boot_id": "b", "start_ticks": 5}
    span = {"context_started_at_us": since, "since_us": since, "until_us": since + SECOND_US}
    rest = {"peak_memory_mib": Missing("?"), "gone_at_us": Missing("alive"), "method": "simulated"}
    return Sighting(**base | span | rest | fields)


def _record(number: int = 0, **fields: Any) -> UsageRecord:
    base = {"meter": "gpu.context", "hour_us": NOON + number * HOUR_US, "host": "box", "device": "GPU-a"}
    rest = {"subject": "k", "context": "settled", "quantity": 10, "evidence_count": 1, "evidence_hash": "e"}
    return UsageRecord(**base | rest | {"recorded_at_us": NOON} | fields)


def _correction(number: int = 1, **fields: Any) -> UsageCorrection:
    base = {"meter": "gpu.context", "hour_us": NOON, "host": "box", "device": "GPU-a", "subject": "k"}
    rest = {"correction_number": number, "delta": -3, "reason": "late-evidence", "evidence_count": 1}
    return UsageCorrection(**base | rest | {"evidence_hash": "e", "recorded_at_us": NOON} | fields)


def _pass(number: int = 0, **fields: Any) -> Pass:
    base = {"at_us": NOON + number, "covered_from_us": NOON, "covered_until_us": NOON, "evidence_marks": "{}"}
    return Pass(**base | {"records_added": 0, "corrections_added": 0} | fields)


def _policy(version: int = 1, **fields: Any) -> PolicyVersion:
    base = {"version": version, "effective_from_us": NOON, "applied_at_us": NOON, "document": "services: []\n"}
    return PolicyVersion(**base | {"document_hash": "d"} | fields)


def _placement(number: int = 0, **fields: Any) -> PlacementRow:
    base = {"placement": f"p{number}", "class_name": "T4", "region": "", "machine": "", "pool": "", "devices": "[]"}
    return PlacementRow(**base | {"count": 1, "share_num": 1, "share_den": 1} | fields)


def _event(number: int = 0, **fields: Any) -> WorkloadEvent:
    base = {"workload": "w", "event_id": f"e{number}", "sequence": number, "state": "running", "at_us": NOON + number}
    rest = {"recorded_at_us": NOON, "source": "test", "subject": "k", "placement": "p0"}
    return WorkloadEvent(**base | rest | fields)


def _hold(number: int = 0, **fields: Any) -> Hold:
    base = {"workload": "w", "sequence": number, "change": "taken", "at_us": NOON, "placement": "p0"}
    return Hold(**base | {"expires_at_us": Missing("?")} | fields)


def _expected(number: int = 0, **fields: Any) -> ExpectedEnd:
    base = {"workload": "w", "sequence": number, "at_us": NOON, "until_us": NOON + 1}
    return ExpectedEnd(**base | fields)


def _archive(number: int = 0, **fields: Any) -> Archive:
    base = {"archived_at_us": NOON, "before_us": 1, "month": "2026-05", "rows_of": "driver", "row_count": 1}
    span = {"first_us": 0, "last_us": 0, "writers": "{}", "rows_hash": f"r{number}"}
    return Archive(**base | span | {"file_name": "f", "file_hash": "h", "folder": "/srv"} | fields)


@pytest.fixture(scope="session")
def make() -> SimpleNamespace:
    """Rows with sensible fields: ``make.driver(3, context_ms=7)``."""
    return SimpleNamespace(
        noon=NOON,
        device=_device,
        watch=_watch,
        identity=_identity,
        driver=_driver,
        sighting=_sighting,
        record=_record,
        correction=_correction,
        metering_pass=_pass,
        policy=_policy,
        placement=_placement,
        event=_event,
        hold=_hold,
        expected=_expected,
        archive=_archive,
        one_of_each=lambda: [
            _policy(), _pass(), _correction(), _record(), _expected(), _hold(), _event(), _placement(),
            _sighting(), _driver(), _identity(), _watch(), _device(),
        ],
    )  # fmt: skip


@pytest.fixture
def place(new_place: Callable[[str], Any]) -> Any:
    """Where a ledger may be made."""
    return new_place("ledger.db")


@pytest.fixture
def ledger(place: Path) -> Iterator[Ledger]:
    """An empty ledger, open to append."""
    with Ledger.open(place, mode="append") as opened:
        yield opened


@contextmanager
def _bare(path: Path) -> Iterator[sqlite3.Connection]:
    connection = sqlite3.connect(path, isolation_level=None)
    try:
        yield connection
    finally:
        connection.close()


@pytest.fixture
def bare() -> Callable[[Path], Any]:
    """Opens a file with plain sqlite3, as anybody with write permission could."""
    return _bare
