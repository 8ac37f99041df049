"""Reserved time explained: records, transitions, placements and holds as nodes of a tree."""

from __future__ import annotations

import json
from collections.abc import Iterable
from fractions import Fraction

from gpuledger.accounting.owners import Owner
from gpuledger.model.durations import decimal
from gpuledger.model.explanation import Explanation, Figure
from gpuledger.model.meters import Meter
from gpuledger.model.missing import Missing
from gpuledger.model.moments import HOUR_US, hour_floor, iso
from gpuledger.model.reserved import PRODUCTS, ReservedAmount, factor
from gpuledger.model.rounding import nearest
from gpuledger.model.rows import UsageCorrection, UsageRecord
from gpuledger.model.workload_rows import ExpectedEnd, Hold, PlacementRow, WorkloadEvent


def line_node(
    ref: str,
    meter: Meter,
    *,
    since_us: int,
    until_us: int,
    seconds: int,
    product: Fraction,
    due: int,
    children: Iterable[Explanation],
) -> Explanation:
    """A line of usage: what it comes to, and the records behind it; ``due``: seconds that the next pass books."""
    unit, per_unit = PRODUCTS[meter.name]
    figures: list[tuple[str, Figure]] = [
        (unit, decimal(nearest(product * Fraction(1000, per_unit)), 3)),
        ("seconds", seconds),
    ]
    if due:
        figures.append(("seconds_not_recorded_yet", due))
    return Explanation(
        title=f"{ref}: {meter.name} in {unit}, {iso(since_us)} to {iso(until_us)}",
        figures=tuple(figures),
        children=tuple(children),
    )


def record_node(
    row: UsageRecord | UsageCorrection,
    placement: PlacementRow,
    owner: Owner,
    *,
    final_from_us: int | Missing,
    children: Iterable[Explanation],
) -> Explanation:
    """A record or correction: seconds, times what was held."""
    hour = f"{iso(row.hour_us)} to {iso(row.hour_us + HOUR_US)}"
    if isinstance(row, UsageRecord):
        title = f"record: {row.meter} of {owner.workload}, {hour}"
        amount: tuple[str, Figure] = ("seconds", row.quantity)
    else:
        title = f"correction {row.correction_number} of {row.meter} of {owner.workload}, {hour}: {row.reason}"
        amount = ("delta_seconds", row.delta)
    each = factor(row.meter, placement)
    figures: list[tuple[str, Figure]] = [
        amount,
        ("each_second_counts", str(each)),
        ("user", owner.user),
        ("team", owner.team),
        ("project", owner.project),
        ("recorded_at", iso(row.recorded_at_us)),
        ("final_from", final_from_us if isinstance(final_from_us, Missing) else iso(final_from_us)),
        ("evidence_count", row.evidence_count),
        ("evidence_hash", row.evidence_hash),
    ]
    return Explanation(title=title, figures=tuple(figures), refs=_refs(row), children=tuple(children))


def due_node(amount: ReservedAmount, meter: Meter, owner: Owner, *, children: Iterable[Explanation]) -> Explanation:
    """Time that no record says: what the next pass books, what is still open, or a part of an hour."""
    figures: list[tuple[str, Figure]] = [
        ("seconds", amount.seconds),
        ("each_second_counts", str(factor(meter.name, amount.placement))),
        ("user", owner.user),
        ("team", owner.team),
        ("project", owner.project),
    ]
    hour = iso(hour_floor(amount.at_us))
    title = f"not recorded yet, or cut by the window: {meter.name} of {owner.workload}, in the hour of {hour}"
    return Explanation(title=title, figures=tuple(figures), children=tuple(children))


def event_node(row: WorkloadEvent, owner: Owner, *, stands: bool = True) -> Explanation:
    """One transition; what a stop before it voids says so."""
    void = "" if stands else ", void: it had stopped"
    figures: list[tuple[str, Figure]] = [
        ("source", row.source),
        ("event_id", row.event_id),
        ("recorded_at", iso(row.recorded_at_us)),
        ("user", owner.user),
    ]
    if row.placement:
        figures.append(("placement", row.placement))
    if row.requested_class:
        figures.append(("requested_class", row.requested_class))
    return Explanation(
        title=f"{iso(row.at_us)}: {row.workload} {row.state}{void}", figures=tuple(figures), refs=_refs(row)
    )


def placement_node(row: PlacementRow) -> Explanation:
    """What was held."""
    share = Fraction(row.share_num, row.share_den)
    devices = ", ".join(json.loads(row.devices)) or "not told which"
    figures: list[tuple[str, Figure]] = [("devices", devices), ("share_of_each", str(share))]
    figures += [(name, text) for name, text in (("region", row.region), ("pool", row.pool)) if text]
    where = f" on {row.machine}" if row.machine else ""
    return Explanation(
        title=f"placement {row.placement}: {row.count} of {row.class_name}{where}",
        figures=tuple(figures),
        refs=_refs(row),
    )


def hold_node(row: Hold) -> Explanation:
    """A claim on capacity, or its end."""
    figures: list[tuple[str, Figure]] = [("at", iso(row.at_us)), ("placement", row.placement)]
    if not isinstance(row.expires_at_us, Missing):
        figures.append(("expires_at", iso(row.expires_at_us)))
    return Explanation(title=f"hold of {row.workload}: {row.change}", figures=tuple(figures), refs=_refs(row))


def expected_node(row: ExpectedEnd) -> Explanation:
    """When somebody said that a workload will be done."""
    figures: list[tuple[str, Figure]] = [("said_at", iso(row.at_us)), ("until", iso(row.until_us))]
    return Explanation(title=f"expected end of {row.workload}", figures=tuple(figures), refs=_refs(row))


def rest_node(number: int, of: str) -> Explanation:
    """How many more there are."""
    return Explanation(title=f"and {number} more {of}")


def _refs(row: UsageRecord | UsageCorrection | WorkloadEvent | PlacementRow | Hold | ExpectedEnd) -> tuple[str, ...]:
    return (row.ref,) if row.number else ()
