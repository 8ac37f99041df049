"""The stores under contract: SQLite, PostgreSQL, and a plain list that is too simple to be wrong.

Every store is driven through the same few calls.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, Protocol

import pytest

from gpuledger.ledger import Appended, Ledger, verify_ledger
from gpuledger.model.missing import Missing
from gpuledger.model.problem import Problem
from gpuledger.model.row_kinds import ROWS
from gpuledger.model.rows import (
    DeviceEvent,
    DriverRecord,
    Pass,
    PolicyVersion,
    ProcessIdentity,
    Row,
    Seal,
    Sighting,
    UsageCorrection,
    UsageRecord,
    Watch,
)
from gpuledger.model.workload_rows import ExpectedEnd, Hold, PlacementRow, WorkloadEvent


class Store(Protocol):
    """What the contract asks of a store."""

    def append(self, rows: list[Row], *, writer: str, at_us: int) -> Appended: ...
    def scan(self, kind: type[Row], **wanted: Any) -> Iterator[Row]: ...
    def get(self, ref: str) -> Row: ...
    def marks(self) -> dict[str, int]: ...
    def heads(self) -> dict[str, tuple[int, str]]: ...
    def count(self, kind: type[Row]) -> int: ...
    def seal(self, at_us: int, *, writer: str) -> Seal: ...
    def latest_root(self) -> str | Missing: ...
    def findings(self) -> list[Any]: ...
    def close(self) -> None: ...


KEYS: dict[type[Row], tuple[str, ...]] = {
    DeviceEvent: ("host", "device", "event", "at_us"),
    Watch: ("host", "device", "source", "method", "since_us", "until_us", "status"),
    ProcessIdentity: ("host", "boot_id", "pid", "start_ticks", "exec_number", "seen_at_us"),
    DriverRecord: ("host", "device", "pid", "natural_key"),
    Sighting: ("host", "device", "pid", "boot_id", "start_ticks", "since_us", "until_us"),
    UsageRecord: ("meter", "hour_us", "host", "device", "subject", "context"),
    UsageCorrection: ("meter", "hour_us", "host", "device", "subject", "correction_number"),
    Pass: ("writer", "number"),
    PlacementRow: ("placement",),
    WorkloadEvent: ("workload", "event_id"),
    Hold: ("workload", "sequence", "change"),
    ExpectedEnd: ("workload", "sequence"),
    PolicyVersion: ("version",),
    Seal: ("previous_root",),
}
"""The natural keys, as the rows' own documentation gives them."""

COMPARED: dict[type[Row], tuple[str, ...]] = {
    DriverRecord: ("context_ms", "peak_memory_mib", "gpu_percent", "memory_percent"),
    Watch: ("interval_ms", "readings", "new_rows", "living"),
    UsageRecord: ("quantity",),
    PolicyVersion: ("effective_from_us", "document_hash"),
    PlacementRow: ("class_name", "region", "machine", "pool", "devices", "count", "share_num", "share_den"),
    WorkloadEvent: ("state", "at_us", "source", "requested_class", "placement"),
    Hold: ("at_us", "placement", "expires_at_us"),
    ExpectedEnd: ("until_us",),
}
"""The figures whose difference is a conflict, of the kinds that the contract tries."""

TIMES = {
    Watch: "since_us",
    DriverRecord: "end",
    UsageRecord: "hour_us",
    Pass: "at_us",
    PolicyVersion: "applied_at_us",
    WorkloadEvent: "at_us",
    Hold: "at_us",
    ExpectedEnd: "at_us",
}

ABSENT = Missing("not recorded")


def values_of(row: Row) -> dict[str, Any]:
    """The row's fields by name, ``writer`` and ``number`` first."""
    return {field.name: getattr(row, field.name) for field in fields(row)}


def plain(row: Row) -> Row:
    """The row as a store gives it back: absences without their reason."""
    values = values_of(row)
    return type(row)(**{name: ABSENT if isinstance(value, Missing) else value for name, value in values.items()})


def spans(row: Row) -> tuple[int, int]:
    """What a row covers."""
    if isinstance(row, DriverRecord):
        end = row.read_at_us if isinstance(row.started_at_us, Missing) else row.started_at_us + row.context_ms * 1000
        return end - row.context_ms * 1000, end
    if isinstance(row, Watch):
        return row.since_us, row.until_us
    moment = getattr(row, TIMES[type(row)])
    return moment, moment


class ListLedger:
    """A ledger as a list of rows in memory."""

    def __init__(self) -> None:
        self.rows: list[Row] = []
        self.chains: dict[str, tuple[int, str]] = {}
        self.root = "0" * 64

    def append(self, rows: list[Row], *, writer: str, at_us: int) -> Appended:
        known, conflicts, added = 0, [], []
        number = self.chains.get(writer, (0, ""))[0]
        for kind in ROWS:
            for row in (each for each in rows if type(each) is kind):
                same = (
                    None if kind is Pass else next((old for old in [*self.rows, *added] if self._same(old, row)), None)
                )
                if same is None:
                    number += 1
                    added.append(replace(row, writer=writer, number=number))
                    continue
                known += 1
                if any(self._text(same, name) != self._text(row, name) for name in COMPARED.get(kind, ())):
                    conflicts.append(Problem(code="conflict", message="", where=same.ref))
        if added:
            self._link(added, writer, at_us)
            self.rows += added
        return Appended(added=tuple(added), known=known, conflicts=tuple(conflicts))

    def _link(self, added: list[Row], writer: str, at_us: int) -> None:
        previous = self.chains.get(writer, (0, "0" * 64))[1]
        array: list[list[object]] = [[writer, added[0].number, added[-1].number, at_us]]
        for row in added:
            cells = list(values_of(row).values())
            if isinstance(row, DriverRecord):
                cells += [row.natural_key, spans(row)[1]]
            array.append([row.kind, *(None if isinstance(cell, Missing) else cell for cell in cells)])
        text = previous + json.dumps(array, separators=(",", ":"))
        self.chains[writer] = (added[-1].number, hashlib.sha256(text.encode()).hexdigest())

    @staticmethod
    def _same(old: Row, new: Row) -> bool:
        return type(old) is type(new) and all(getattr(old, name) == getattr(new, name) for name in KEYS[type(new)])

    @staticmethod
    def _text(row: Row, name: str) -> str:
        value = getattr(row, name)
        return "-" if isinstance(value, Missing) else str(value)

    def scan(
        self, kind: type[Row], *, since_us=None, until_us=None, hosts=None, devices=None, pids=None, after=None,
        upto=None, order="number", descending=False, limit=None,
    ) -> Iterator[Row]:  # fmt: skip
        found = []
        for row in (each for each in self.rows if type(each) is kind):
            start, end = spans(row) if kind in TIMES else (0, 0)
            if until_us is not None and start >= until_us:
                continue
            if since_us is not None and not (end > since_us or start >= since_us):
                continue
            if hosts is not None and row.host not in hosts:
                continue
            if devices is not None and row.device not in devices:
                continue
            if pids is not None and (row.host, row.pid) not in pids:
                continue
            if after is not None and row.number <= after.get(row.writer, 0):
                continue
            if upto is not None and row.number > upto.get(row.writer, 0):
                continue
            found.append(row)
        found.sort(key=lambda row: (row.writer, row.number))
        if order == "time":
            found.sort(key=lambda row: spans(row)[1 if kind is DriverRecord else 0])
        found = [plain(row) for row in found]
        if descending:
            found.sort(key=lambda row: (row.writer, row.number), reverse=True)
            if order == "time":
                found.sort(key=lambda row: spans(row)[1 if kind is DriverRecord else 0], reverse=True)
        return iter(found[:limit])

    def get(self, ref: str) -> Row:
        return next(plain(row) for row in self.rows if row.ref == ref)

    def marks(self) -> dict[str, int]:
        return {writer: number for writer, (number, _) in self.chains.items()}

    def heads(self) -> dict[str, tuple[int, str]]:
        return dict(self.chains)

    def count(self, kind: type[Row]) -> int:
        return sum(type(row) is kind for row in self.rows)

    def seal(self, at_us: int, *, writer: str) -> Seal:
        heads = json.dumps({key: list(self.chains[key]) for key in sorted(self.chains)}, separators=(",", ":"))
        text = self.root + json.dumps([at_us, heads], separators=(",", ":"))
        seal = Seal(at_us=at_us, heads=heads, previous_root=self.root, root=hashlib.sha256(text.encode()).hexdigest())
        self.root = seal.root
        (added,) = self.append([seal], writer=writer, at_us=at_us).added
        assert isinstance(added, Seal)
        return added

    def latest_root(self) -> str | Missing:
        return Missing("no seal yet") if self.root == "0" * 64 else self.root

    def findings(self) -> list[Any]:
        return []

    def close(self) -> None:
        pass


class CheckedLedger(Ledger):
    """The real one, with its own check as a method."""

    def findings(self) -> list[Any]:
        return verify_ledger(self)


def _opened(place: Path | str) -> Store:
    return CheckedLedger.open(place, mode="append")  # type: ignore[return-value]


@pytest.fixture
def stores(postgres) -> dict[str, Callable[[Path], Store]]:
    """How each store is made, empty, in a directory of its own."""
    return {
        "list": lambda path: ListLedger(),
        "sqlite": lambda path: _opened(path / "ledger.db"),
        "postgresql": lambda path: _opened(postgres.new_ledger()),
    }


@pytest.fixture(params=["list", "sqlite", "postgresql"])
def store(
    request: pytest.FixtureRequest, stores: dict[str, Callable[[Path], Store]], tmp_path: Path
) -> Iterator[Store]:
    """One empty store after the other."""
    made = stores[request.param](tmp_path)
    yield made
    made.close()
