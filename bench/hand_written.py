"""The race's other side: the best SQL that a person would write over the records, with the standard library alone.

In: a ledger's file, a window of whole hours, and the service of each subject. Out: the same rows as
``usage --by service`` gives: quantity, what of it the driver has settled, busy time beside it, causes apart.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping

Line = tuple[str, int, int, int, int | None]
"""Service or ``unattributed:CAUSE``, quantity, settled, observed, busy ms."""

# One pass over the covering index for all three figures.
_SUMS = """
    SELECT subject,
           SUM(CASE WHEN meter = 'gpu.context' THEN quantity END),
           SUM(CASE WHEN meter = 'gpu.context' AND context = 'settled' THEN quantity ELSE 0 END),
           SUM(CASE WHEN meter = 'gpu.busy' THEN quantity END)
    FROM usage_record
    WHERE meter IN ('gpu.context', 'gpu.busy') AND hour_us >= ?1 AND hour_us < ?2
    GROUP BY subject"""
# Two passes, each one range of the index: faster or slower by the build of SQLite, so both are tried.
_SUMS_OF_CONTEXT = """
    SELECT subject, SUM(quantity), SUM(CASE WHEN context = 'settled' THEN quantity ELSE 0 END)
    FROM usage_record WHERE meter = 'gpu.context' AND hour_us >= ?1 AND hour_us < ?2 GROUP BY subject"""
_SUMS_OF_BUSY = """
    SELECT subject, SUM(quantity)
    FROM usage_record WHERE meter = 'gpu.busy' AND hour_us >= ?1 AND hour_us < ?2 GROUP BY subject"""
_CORRECTIONS = """
    SELECT subject, meter, SUM(delta) FROM usage_correction
    WHERE meter IN ('gpu.context', 'gpu.busy') AND hour_us >= ?1 AND hour_us < ?2 GROUP BY subject, meter"""
# Contexts open when recorded that the driver has settled since: few contexts, many hours.
_SETTLED_SINCE = """
    SELECT r.subject, SUM(r.quantity) FROM usage_record AS r
    JOIN driver_record AS d
      ON d.host = r.host AND d.pid = CAST(substr(r.context, 1, instr(r.context, '@') - 1) AS INTEGER)
     AND d.device = r.device AND d.natural_key = 'start:' || substr(r.context, instr(r.context, '@') + 1)
    WHERE r.meter = 'gpu.context' AND r.hour_us >= ?1 AND r.hour_us < ?2 AND r.context LIKE '%@%'
    GROUP BY r.subject"""


def by_service(
    connection: sqlite3.Connection, services: Mapping[str, str], *, since_us: int, until_us: int, one_pass: bool
) -> list[Line]:
    """Sums by service, most first."""
    window = (since_us, until_us)
    sums: dict[str, list[int | None]] = {}

    def add(subject: str, quantity: int | None, settled: int, busy_ms: int | None) -> None:
        # settled and quantity are None until a context record gives them: busy time alone makes no row
        line = sums.setdefault(services.get(subject, subject), [None, 0, None])
        if quantity is not None:
            line[0] = (line[0] or 0) + quantity
            line[1] = (line[1] or 0) + settled
        if busy_ms is not None:
            line[2] = (line[2] or 0) + busy_ms

    if one_pass:
        for row in connection.execute(_SUMS, window):
            add(*row)
    else:
        for subject, quantity, settled in connection.execute(_SUMS_OF_CONTEXT, window):
            add(subject, quantity, settled, None)
        for subject, busy_ms in connection.execute(_SUMS_OF_BUSY, window):
            add(subject, None, 0, busy_ms)
    for subject, meter, delta in connection.execute(_CORRECTIONS, window):
        if meter == "gpu.context":
            add(subject, delta, delta, None)
        else:
            add(subject, None, 0, delta)
    for subject, settled in connection.execute(_SETTLED_SINCE, window):
        add(subject, 0, settled, None)
    lines = [
        (service, quantity, settled or 0, quantity - (settled or 0), busy_ms)
        for service, (quantity, settled, busy_ms) in sums.items()
        if quantity
    ]
    return sorted(lines, key=lambda line: (-line[1], line[0]))
