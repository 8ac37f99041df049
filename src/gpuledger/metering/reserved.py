"""Reserved time to records and corrections: what the rule gives now, against what was written down.

In: :class:`~gpuledger.model.reserved.ReservedTime` of some workloads and hours, what stands in the ledger of the
very same ones, and which hours passes have covered. Out: rows to append, and what a pass may not book. Records are
final: a late fact becomes a correction for 48 hours, and afterwards a difference that a person books.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass

from gpuledger.metering.records import LATE_EVIDENCE, evidence_hash
from gpuledger.model.moments import HOUR_US
from gpuledger.model.reserved import PLACED, RESERVED, Booking, Difference, ReservedTime, meters_of
from gpuledger.model.rows import UsageCorrection, UsageRecord
from gpuledger.model.workload_rows import PlacementRow

FINAL_AFTER_US = 48 * HOUR_US
"""An hour is final so long after the first pass that covered it (DESIGN section 6, Metering)."""

Run = tuple[int, str, str, str, str, str, str | None]
"""(number, workload, placement, subject, first, begin and end event) of an interval; no end where it is open."""

Head = tuple[int, str, str, str, str, int, str]
"""(run, meter, host, device, subject, evidence count, evidence hash): what records of one interval share."""

Key = tuple[str, int, str, str, str]
"""(meter, hour, host, device, subject) of a record."""


@dataclass(slots=True)
class Standing:
    """What the ledger holds of one key.

    Args:
        workload: whose it is.
        quantity: seconds, record and corrections.
        last_number: of its corrections; 0 where there is none.
    """

    workload: str
    quantity: int = 0
    last_number: int = 0


@dataclass(slots=True)
class _Derived:
    workload: str
    quantity: int
    is_declared: bool
    evidence: tuple[str, ...]


def book(
    times: Iterable[ReservedTime],
    standing: Mapping[Key, Standing],
    placements: Mapping[str, PlacementRow],
    *,
    is_covered: Callable[[int], bool],
    is_final: Callable[[int], bool],
    recorded_at_us: int,
    placed_late: Collection[tuple[str, int]] = (),
    behind: Callable[[str], Iterable[str]] = lambda _: (),
    reason: str = "",
) -> Booking:
    """What to append so that records plus corrections equal what the events say.

    Args:
        times: of some workloads and whole hours, all of it.
        standing: everything that stands of the same workloads and hours: what is not derived is taken back.
        placements: by key, each that ``times`` names.
        is_covered: whether a pass covered an hour, by its start: then an amount that is new is a correction.
        is_final: whether an hour is final: then nothing is booked, save history that was declared, and time
            of workloads that got their placement late.
        recorded_at_us: when the pass runs.
        placed_late: (workload, hour) of time that was without a placement at the pass before.
        behind: by workload, the evidence of an amount that is taken back whole.
        reason: given by whoever books final hours too; empty: they are listed.
    """
    derived = _by_key(times, placements)
    records: list[UsageRecord] = []
    corrections: list[UsageCorrection] = []
    late: list[Difference] = []
    hashes: dict[tuple[str, ...], str] = {}  # the hours of one interval rest on the same events
    for key in sorted({*derived, *standing}):
        now, stood = derived.get(key), standing.get(key)
        quantity = now.quantity if now else 0
        delta = quantity - (stood.quantity if stood else 0)
        if not delta:
            continue
        meter, hour_us, host, device, subject = key
        workload = now.workload if now else stood.workload if stood else ""
        is_new = stood is None and now is not None
        is_declared = now is not None and now.is_declared
        wanted = not is_covered(hour_us) or is_declared or (workload, hour_us) in placed_late
        inserted = is_new and wanted
        if not inserted and is_final(hour_us) and not reason:
            late.append(
                Difference(
                    meter=meter, hour_us=hour_us, host=host, device=device, subject=subject, workload=workload,
                    recorded=quantity - delta, derived=quantity,
                )
            )  # fmt: skip
            continue
        refs = now.evidence if now else tuple(behind(workload))
        if refs not in hashes:
            hashes[refs] = evidence_hash(refs)
        if inserted:
            records.append(
                UsageRecord(
                    meter=meter, hour_us=hour_us, host=host, device=device, subject=subject, context=RESERVED,
                    quantity=quantity, evidence_count=len(refs), evidence_hash=hashes[refs],
                    recorded_at_us=recorded_at_us,
                )
            )  # fmt: skip
        else:
            corrections.append(
                UsageCorrection(
                    meter=meter, hour_us=hour_us, host=host, device=device, subject=subject,
                    correction_number=(stood.last_number if stood else 0) + 1, delta=delta,
                    reason=reason or LATE_EVIDENCE, evidence_count=len(refs), evidence_hash=hashes[refs],
                    recorded_at_us=recorded_at_us,
                )
            )  # fmt: skip
    return Booking(records=tuple(records), corrections=tuple(corrections), late=tuple(late))


def seconds_of(times: Iterable[ReservedTime], placements: Mapping[str, PlacementRow]) -> dict[Key, int]:
    """Whole seconds by the key of a record."""
    return {key: derived.quantity for key, derived in _by_key(times, placements).items()}


def _by_key(times: Iterable[ReservedTime], placements: Mapping[str, PlacementRow]) -> dict[Key, _Derived]:
    """What has a placement, and a second at least; the rest is skipped."""
    derived: dict[Key, _Derived] = {}
    for time in times:
        seconds = time.seconds
        if not time.placement or not seconds:
            continue
        placement = placements[time.placement]
        for meter in meters_of(placement.class_name):
            key = (meter.name, time.hour_us, placement.machine, f"{PLACED}{time.placement}", time.subject)
            amount = derived.get(key)
            if amount is None:
                derived[key] = _Derived(time.workload, seconds, time.is_declared, time.evidence)
                continue
            # two workloads share a subject only where no text names them: each is rounded by itself
            amount.quantity += seconds
            amount.is_declared = amount.is_declared and time.is_declared
            amount.evidence = tuple(dict.fromkeys((*amount.evidence, *time.evidence)))
    return derived


def heads_of(runs: Iterable[Run], placements: Mapping[str, PlacementRow]) -> tuple[list[Head], list[int]]:
    """What the records of these intervals share, an entry for each meter; and those that have none.

    Two workloads share a subject only where no text names them. Their seconds are added up after they were rounded, so
    their intervals have no heads: they are booked by :func:`book`.
    """
    heads: list[Head] = []
    shared: set[tuple[str, str]] = set()
    whose: dict[tuple[str, str], str] = {}
    kept: list[Run] = []
    for run in runs:
        _, workload, placement, subject, *_ = run
        if whose.setdefault((placement, subject), workload) != workload:
            shared.add((placement, subject))
        kept.append(run)
    meters = {key: tuple(meter.name for meter in meters_of(row.class_name)) for key, row in placements.items()}
    for number, _, placement, subject, first, begin, end in kept:
        if (placement, subject) in shared:
            continue
        refs = {first, begin} if end is None else {first, begin, end}
        digest = evidence_hash(refs)
        host, device = placements[placement].machine, f"{PLACED}{placement}"
        heads += [(number, meter, host, device, subject, len(refs), digest) for meter in meters[placement]]
    return heads, [run[0] for run in kept if (run[2], run[3]) in shared] if shared else []


def standing_of(rows: Iterable[tuple[str, Key, int, int]]) -> dict[Key, Standing]:
    """What stands of each key, out of (workload, key, signed seconds, number of the correction or 0)."""
    found: dict[Key, Standing] = {}
    for workload, key, amount, number in rows:
        stood = found.setdefault(key, Standing(workload))
        stood.quantity += amount
        stood.last_number = max(stood.last_number, number)
    return found
