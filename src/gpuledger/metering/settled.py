"""Settled stints of one pid on one device: the driver's rows, each once, whatever told of them.

A row with a start is one stint, whose start is its key. A row without (CSV, XML) is known by its
content and driver load; where a started row says the same, it is that row read from another source.
Two rows that claim one key with different content are a conflict that the ledger refuses; here the
one read first counts, so that the answer does not depend on order.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from gpuledger.metering.stints import Stint
from gpuledger.model.missing import Missing
from gpuledger.model.rows import DriverRecord

_Figures = tuple[int, int | None, int | None, int | None]


@dataclass(slots=True)
class Startless:
    """Readings of one row without a start.

    Args:
        row: the reading that counts: the earliest.
        rows: all of them.
    """

    row: DriverRecord
    rows: list[DriverRecord]

    @property
    def read_us(self) -> int:
        """The earliest reading: the context had ended by then."""
        return self.row.read_at_us


def started_stint(start_us: int, rows: list[DriverRecord]) -> Stint:
    """The stint of readings of one row whose start is known; the first of them counts."""
    row = rows[0]
    end_us = start_us + row.context_ms * 1000
    return Stint(
        row.host, row.device, row.pid, start_us, ((start_us, end_us),), True, row.context_ms, "driver", rows, [],
        row.read_at_us,
    )  # fmt: skip


def started_stints(rows: Iterable[DriverRecord]) -> list[Stint]:
    """One stint for each start, in the order of starts."""
    by_start: dict[int, list[DriverRecord]] = {}
    for row in rows:
        if not isinstance(row.started_at_us, Missing):
            by_start.setdefault(row.started_at_us, []).append(row)
    return [started_stint(start_us, sorted(same, key=_order)) for start_us, same in sorted(by_start.items())]


def startless(rows: Iterable[DriverRecord]) -> list[Startless]:
    """Rows without a start, each once, in the order of their first reading.

    A source that does not know the driver's load joins the load that was read first.
    """
    by_content: dict[_Figures, dict[str, list[DriverRecord]]] = {}
    for row in rows:
        by_content.setdefault(_figures(row), {}).setdefault(row.driver_epoch, []).append(row)
    found: list[Startless] = []
    for loads in by_content.values():
        anywhere = loads.pop("", []) if len(loads) > 1 else []
        if anywhere:
            first = min(loads, key=lambda load: (earliest(loads[load]).read_at_us, load))
            loads[first].extend(anywhere)
        found.extend(Startless(row=earliest(same), rows=same) for same in loads.values())
    found.sort(key=lambda group: _order(group.row))
    return found


def without_twins(found: Iterable[Startless], stints: Iterable[Stint]) -> list[Startless]:
    """Give each startless row that a started one explains to it; what is left is returned.

    Equal content first, then content that agrees wherever both sources could read it. A started row
    takes one.
    """
    by_length: dict[int, list[Stint]] = {}
    for stint in stints:
        by_length.setdefault(stint.context_ms, []).append(stint)
    left = list(found)
    for agree in (_equal, _compatible):
        unexplained: list[Startless] = []
        for group in left:
            candidates = by_length.get(group.row.context_ms, [])
            place = next((n for n, stint in enumerate(candidates) if agree(stint.rows[0], group.row)), None)
            if place is None:
                unexplained.append(group)
            else:
                candidates.pop(place).rows.extend(group.rows)
        left = unexplained
    return left


def earliest(rows: Iterable[DriverRecord]) -> DriverRecord:
    """The reading that counts among readings of one row."""
    return min(rows, key=_order)


def _order(row: DriverRecord) -> tuple[int, tuple[str, ...], str, str]:
    return (row.read_at_us, row.content, row.driver_epoch, row.method)


def _figures(row: DriverRecord) -> _Figures:
    return (row.context_ms, _known(row.peak_memory_mib), _known(row.gpu_percent), _known(row.memory_percent))


def _known(figure: int | Missing) -> int | None:
    return None if isinstance(figure, Missing) else figure


def _equal(started: DriverRecord, loose: DriverRecord) -> bool:
    return _figures(started) == _figures(loose)


def _compatible(started: DriverRecord, loose: DriverRecord) -> bool:
    return started.context_ms == loose.context_ms and all(
        one is None or other is None or one == other
        for one, other in zip(_figures(started)[1:], _figures(loose)[1:], strict=True)
    )
