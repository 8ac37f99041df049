"""One text with all that was made of it, as the rules of ``audit exporter`` read it; and how they name places."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gpuledger.audit.exporter_rows import Pod, Rows, Unit
from gpuledger.audit.exporter_scope import Judgement
from gpuledger.audit.exposition import Exposition
from gpuledger.model.findings import Where


@dataclass(frozen=True, slots=True, kw_only=True)
class Scrape:
    """One text with all that was made of it.

    Args:
        path: the file or address.
        exposition: its samples.
        rows: laid out.
        judgement: its scope.
    """

    path: str
    exposition: Exposition
    rows: Rows
    judgement: Judgement

    def where(self, name: str, line: int = 0) -> Where:
        """A place in this text."""
        return Where(path=self.path, line=line, name=name)


def line_of(unit: Unit, metric: str, pod: Pod | None = None) -> int:
    """Where a metric of a unit stands first, on a pod's row where one is named; 0 for nowhere."""
    pods = unit.figures.get(metric, {})
    rows = [row for each, samples in pods.items() if pod is None or each == pod for row in samples]
    return min((row.line for row in rows), default=0)


def first_line(unit: Unit) -> int:
    """Where a unit stands first."""
    return min(row.line for pods in unit.figures.values() for rows in pods.values() for row in rows)


def listed(names: Sequence[str], most: int = 3) -> str:
    """A few names, and how many more there are."""
    shown = ", ".join(names[:most])
    return f"{shown} and {len(names) - most} more" if len(names) > most else shown
