"""A reading of reserved time whose rule runs on DuckDB: ``meter --engine duckdb``, for long backlogs.

In: what any :class:`~gpuledger.ledger.reserved.Reading` is asked. Out: the same relations in the ledger's connection,
so that everything after them is the very same code, and books the very same rows. The events of the workloads asked for
are handed over as Arrow.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, cast

from sqlalchemy.engine.interfaces import DBAPICursor

from gpuledger.ledger import metered
from gpuledger.ledger.duck import RULE_READS, Duck
from gpuledger.ledger.engine import engine_of
from gpuledger.ledger.reserved import Reading
from gpuledger.ledger.store import Ledger

_EVENTS = f"""
SELECT {", ".join(f"e.{name}" for name in RULE_READS)}
FROM metered_workload AS w CROSS JOIN workload_event AS e CROSS JOIN metered_mark AS m
WHERE e.workload = w.workload AND e.at_us >= w.since_us AND e.at_us <= w.until_us
    AND m.writer = e.writer AND e.number <= m.number"""  # noqa: S608 constants

_FETCHED = 50_000


class DuckReading(Reading):
    """A reading that runs the rule's first two parts on an engine.

    Args:
        ledger, marks: as for any reading.
        duck: the engine; nothing else may run on it.
    """

    def __init__(self, ledger: Ledger, marks: Mapping[str, int], duck: Duck) -> None:
        super().__init__(ledger, marks)
        duck.make_relations()
        insert = engine_of(ledger.connection).insert
        self._cursor = self.cursor = cast("DBAPICursor", _Elsewhere(self._cursor, duck, insert))


class _Elsewhere:
    """The ledger's cursor, save that the rule's parts run on the engine, and what they find comes back."""

    def __init__(self, cursor: DBAPICursor, duck: Duck, insert: Callable[..., None]) -> None:
        self._cursor = cursor
        self._insert = insert
        self._duck = duck

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cursor, name)

    def execute(self, statement: str, bound: Any = ()) -> Any:
        """Run a statement: here, or there."""
        runs, amounts, _ = metered.parts()
        if statement == runs:
            self._find_runs(bound["until_us"])
        elif statement == amounts:
            self._hand_over("metered_hour")
            self._duck.cut_runs()
            self._take_back("metered_amount")
        else:
            return self._cursor.execute(statement, bound)
        return None

    def _find_runs(self, until_us: int) -> None:
        duck = self._duck
        self._hand_over("metered_workload", "metered_mark", "metered_beat")
        duck.clear("workload_event")
        self._cursor.execute(_EVENTS)
        while rows := self._cursor.fetchmany(_FETCHED):
            duck.fill("workload_event", RULE_READS, rows)
        duck.find_runs(until_us)
        duck.clear("workload_event")
        self._take_back("metered_run")

    def _hand_over(self, *names: str) -> None:
        for name in names:
            columns = _names(name)
            self._duck.clear(name)
            self._cursor.execute(f"SELECT {', '.join(columns)} FROM {name}")  # noqa: S608 constants
            self._duck.fill(name, columns, self._cursor.fetchall())

    def _take_back(self, name: str) -> None:
        columns = _names(name)
        found = self._duck.run(f"SELECT {', '.join(columns)} FROM {name} ORDER BY run")  # noqa: S608 constants
        while rows := found.fetchmany(_FETCHED):
            self._insert(self._cursor, name, columns, rows)


def _names(relation: str) -> list[str]:
    return [part.split()[0] for part in metered.RELATIONS[relation].split(", ")]
