"""What a person would write without the product: the same rule and one insert, into a table with the same keys.

No guards against change, no hash chain, no evidence hash, and no index beside the keys.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from types import TracebackType
from typing import Any

from gpuledger.ledger.metered import rule
from gpuledger.ledger.store import Ledger
from gpuledger.model.lifecycle import Transition
from gpuledger.model.moments import HOUR_US

_ALWAYS = 2**62

_RELATIONS = """
CREATE TEMP TABLE metered_workload (
    workload TEXT NOT NULL PRIMARY KEY, from_us BIGINT, since_us BIGINT, until_us BIGINT
);
CREATE TEMP TABLE metered_mark (writer TEXT NOT NULL PRIMARY KEY, number BIGINT);
CREATE TEMP TABLE metered_hour (start_us INTEGER PRIMARY KEY, end_us BIGINT);
CREATE TEMP TABLE metered_beat (source TEXT NOT NULL PRIMARY KEY, until_us BIGINT);
INSERT INTO metered_mark SELECT writer, MAX(last_number) FROM link GROUP BY writer;
CREATE TABLE bare_record (
    writer TEXT NOT NULL, number INTEGER NOT NULL, meter TEXT NOT NULL, hour_us INTEGER NOT NULL, host TEXT NOT NULL,
    device TEXT NOT NULL, subject TEXT NOT NULL, context TEXT NOT NULL, quantity INTEGER NOT NULL,
    evidence_count INTEGER NOT NULL, evidence_hash TEXT NOT NULL, recorded_at_us INTEGER NOT NULL,
    PRIMARY KEY (writer, number), UNIQUE (hour_us, meter, host, device, subject, context)
) STRICT, WITHOUT ROWID;
"""

_INSERT = f"""
INSERT INTO bare_record
SELECT 'bare', ROW_NUMBER() OVER (ORDER BY r.hour_us, p.machine, r.placement, r.subject), 'gpu.reserved', r.hour_us,
    p.machine, 'placement:' || r.placement, r.subject, 'reserved', r.amount_us / 1000000, 3, r.begin_event, 0
FROM ({rule()}) AS r JOIN placement AS p ON p.placement = r.placement
WHERE r.amount_us >= 1000000"""


def close_hour(place: Path, hour_us: int) -> int:
    """One hour of everybody who has events. Returns the number of records."""
    living = f"SELECT DISTINCT workload, ?, -1, {_ALWAYS} FROM workload_event"
    return _run(place, [(hour_us, hour_us + HOUR_US)], living, (hour_us,), hour_us + HOUR_US)


def history(place: Path, now_us: int) -> int:
    """All hours of all workloads. Returns the number of records."""
    with closing(_connected(place)) as connection:
        ((first_us,),) = connection.execute("SELECT MIN(at_us) FROM workload_event").fetchall()
    hours = [(at_us, at_us + HOUR_US) for at_us in range(first_us - first_us % HOUR_US, now_us - HOUR_US + 1, HOUR_US)]
    return _run(place, hours, f"SELECT DISTINCT workload, -1, -1, {_ALWAYS} FROM workload_event", (), now_us)


def _run(place: Path, hours: Sequence[tuple[int, int]], asked: str, words: tuple[int, ...], until_us: int) -> int:
    with closing(_connected(place)) as connection:
        connection.executescript(_RELATIONS)
        connection.execute("BEGIN IMMEDIATE")
        connection.execute(f"INSERT INTO metered_workload {asked}", words)
        connection.executemany("INSERT INTO metered_hour VALUES (?, ?)", hours)
        connection.execute(_INSERT, {"until_us": until_us})
        connection.execute("COMMIT")
        return int(connection.execute("SELECT COUNT(*) FROM bare_record").fetchall()[0][0])


def _connected(place: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(place, isolation_level=None)
    for setting in ("synchronous = FULL", "cache_size = -16384"):  # as the product has them
        connection.execute(f"PRAGMA {setting}")
    return connection


class Inserting:
    """Events by bare statements into the ledger's own table with its keys, indexes and guards, in its own file."""

    def __init__(self, place: Path) -> None:
        Ledger.open(place, mode="append").close()
        self._connection = _connected(place)
        self._number = 0

    def __enter__(self) -> Inserting:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._connection.close()

    def rows(self, transitions: Sequence[Transition]) -> list[tuple[Any, ...]]:
        """Transitions as rows of the table, made ahead of the race."""
        made = []
        for each in transitions:
            self._number += 1
            placement = each.placement.key if each.placement else ""
            made.append(("b.transition", self._number, each.workload, each.event_id, 1, each.state.value, each.at_us,
                         each.at_us, each.source, 0, "0" * 64, "", placement))  # fmt: skip
        return made

    def insert(self, rows: Sequence[tuple[Any, ...]]) -> None:
        """Insert these in one commit."""
        marks = ", ".join("?" * len(rows[0]))
        self._connection.execute("BEGIN IMMEDIATE")
        self._connection.executemany(f"INSERT INTO workload_event VALUES ({marks})", rows)
        self._connection.execute("COMMIT")
