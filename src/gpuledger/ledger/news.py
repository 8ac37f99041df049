"""What is new beyond the marks until which somebody knows a ledger: of workloads, placements, heartbeats and the like.

In: the connection of an open ledger, and the last number of each writer, then and now. Out: :class:`News`. One
statement, however many there are; of those who probably wrote it travels with the question who did.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

import sqlalchemy as sa

from gpuledger.ledger.engine import MARK, answers, bare_cursor
from gpuledger.model.missing import Missing

_WRITERS_AT_ONCE = 50  # seven parts of a statement each: SQLite takes 500
_BEYOND = f"WHERE writer = {MARK} AND number > {MARK}"
_OF_ONE_WRITER = f"""SELECT 'event' AS kind, workload AS name, MIN(at_us) AS at_us FROM workload_event {_BEYOND}
    GROUP BY workload
UNION ALL SELECT DISTINCT 'hold', workload, 0 FROM hold {_BEYOND}
UNION ALL SELECT 'placement', placement, 0 FROM placement {_BEYOND}
UNION ALL SELECT 'beat', host, MAX(until_us) FROM watch {_BEYOND}
    AND device = '' AND source = 'controller' AND method = 'heartbeat' GROUP BY host
UNION ALL SELECT 'correction', '', 0 WHERE EXISTS (SELECT 1 FROM usage_correction {_BEYOND})
UNION ALL SELECT 'policy', '', 0 WHERE EXISTS (SELECT 1 FROM policy {_BEYOND})
UNION ALL SELECT 'archive', '', 0 WHERE EXISTS (SELECT 1 FROM archive {_BEYOND})"""  # noqa: S608 constants
_PARTS = 7
NO_EVENT = Missing("no event is new")


@dataclass(frozen=True, slots=True, kw_only=True)
class News:
    """What came between two sets of marks. Rows that came after them may be among it, and will be told again.

    Args:
        seen: the last number of each writer until which all was known.
        marks: the last numbers until which this tells.
        writers: whose last number is another.
        workloads: those with new events or holds.
        placements: keys of new ones.
        earliest_us: the moment of the earliest new event, microseconds UTC.
        beats: the last new heartbeat of each source, microseconds UTC.
        is_corrected: whether any correction is new.
        has_policy: whether any policy is new.
        has_archive: whether any rows left for the archive.
    """

    seen: Mapping[str, int]
    marks: Mapping[str, int]
    writers: frozenset[str]
    workloads: frozenset[str]
    placements: frozenset[str]
    earliest_us: int | Missing
    beats: Mapping[str, int]
    is_corrected: bool
    has_policy: bool
    has_archive: bool

    def can_change(self, before_us: int) -> bool:
        """Whether time before a moment may count otherwise now: by a late event, or by a correction."""
        return self.is_corrected or (not isinstance(self.earliest_us, Missing) and self.earliest_us < before_us)


def ask_ahead(
    connection: sa.Connection, seen: Mapping[str, int], writers: Collection[str]
) -> tuple[frozenset[str], Iterator[tuple[str, str, int]]]:
    """Ask what is new of writers who probably wrote; for :func:`news`. It travels with the question who did."""
    chosen = sorted(writers)[:_WRITERS_AT_ONCE]
    return frozenset(chosen), _ask(connection, [(writer, seen.get(writer, 0)) for writer in chosen])


def news(
    connection: sa.Connection,
    seen: Mapping[str, int],
    marks: Mapping[str, int],
    ahead: tuple[frozenset[str], Iterable[tuple[str, str, int]]] = (frozenset(), ()),
) -> News:
    """What came between ``seen`` and ``marks``, both the last number of each writer.

    Args:
        connection: of the ledger.
        seen, marks: as of :class:`News`.
        ahead: of whom it was asked already, after ``marks`` was asked for, and the answer.
    """
    asked, rows = ahead
    moved = [(writer, seen.get(writer, 0)) for writer, number in marks.items() if number != seen.get(writer, 0)]
    late = [mark for mark in moved if mark[0] not in asked]
    found: dict[str, dict[str, list[int]]] = {}
    for kind, name, at_us in chain(rows, _ask(connection, late)):
        found.setdefault(kind, {}).setdefault(name, []).append(at_us)
    events = found.get("event", {})
    return News(
        seen=dict(seen),
        marks=dict(marks),
        writers=frozenset(writer for writer, _ in moved),
        workloads=frozenset(events) | frozenset(found.get("hold", ())),
        placements=frozenset(found.get("placement", ())),
        earliest_us=min((min(moments) for moments in events.values()), default=NO_EVENT),
        beats={source: max(moments) for source, moments in found.get("beat", {}).items()},
        is_corrected="correction" in found,
        has_policy="policy" in found,
        has_archive="archive" in found,
    )


def _ask(connection: sa.Connection, moved: Sequence[tuple[str, int]]) -> Iterator[tuple[str, str, int]]:
    """Asked at once, read when somebody looks."""
    cursors = []
    for start in range(0, len(moved), _WRITERS_AT_ONCE):
        part = moved[start : start + _WRITERS_AT_ONCE]
        cursors.append(bare_cursor(connection))
        cursors[-1].execute(
            " UNION ALL ".join([_OF_ONE_WRITER] * len(part)), [cell for mark in part for cell in mark * _PARTS]
        )
    rows = chain.from_iterable(map(answers, cursors))
    return ((str(kind), str(name), int(at_us)) for kind, name, at_us in rows)
