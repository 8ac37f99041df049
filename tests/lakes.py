"""Lakes for tests: a ledger exported into one, and its rows as the ledger has them."""

from __future__ import annotations

from pathlib import Path

from control_plane import ControlPlane
from gpuledger.ledger import parquet
from gpuledger.ledger.lake import Lake
from gpuledger.model.lake import DERIVED, ExportReport
from gpuledger.model.rows import UsageRecord
from gpuledger.operations.export_parquet import export_parquet

Amounts = list[tuple[object, ...]]


def exported(plane: ControlPlane, folder: Path, hour: float) -> ExportReport:
    """The lake of a control plane's ledger, at an hour after midnight."""
    return export_parquet(plane.ledger, folder, now_us=plane.at(hour))


def derived(folder: Path) -> Amounts:
    """Derived records, sorted: key, seconds and evidence."""
    found: Amounts = []
    columns = parquet.columns_of("usage_record")
    for path in Lake.open(folder).paths(DERIVED):
        for rows in parquet.read(path, "usage_record", named=DERIVED):
            found += [_figures(dict(zip(columns, row, strict=True))) for row in rows]
    return sorted(found)


def recorded(plane: ControlPlane) -> Amounts:
    """Records of the ledger, as :func:`derived` has them."""
    return sorted(
        _figures({name: getattr(row, name) for name in UsageRecord.__slots__}) for row in plane.ledger.scan(UsageRecord)
    )


def _figures(row: dict[str, object]) -> tuple[object, ...]:
    names = ("hour_us", "meter", "host", "device", "subject", "context", "quantity", "evidence_count", "evidence_hash")
    return tuple(row[name] for name in names)


def told(place: Path) -> ControlPlane:
    """A control plane with a morning behind it: three workloads, two months apart from each other, one still open."""
    plane = ControlPlane(place)
    whole, third = plane.placement("n2"), plane.placement("n1", share="1/3")
    plane.run("early", 1, 3.5, third)
    plane.run("late", 24 * 6, None, whole, team="nlp")
    plane.tell("lost", "running", 2)
    plane.tell("lost", "stopped", 2.5)
    return plane
