"""Records and corrections: what the evidence says now, against what was written down.

In: derived quantities, and the records and corrections of the very same hours. Out: the rows to
append, and nothing where there is no difference. Records are final: a late fact becomes a correction.
Which hours new evidence can have changed is told by :mod:`gpuledger.metering.late`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import dataclass, field

from gpuledger.model.moments import HOUR_US, MINUTE_US, hour_floor
from gpuledger.model.quantities import Quantity
from gpuledger.model.reasons import UnknownReason
from gpuledger.model.rows import UsageCorrection, UsageRecord, Watch

CLOSED_AFTER_US = 5 * MINUTE_US
"""An hour is recorded once it has been over for so long (DESIGN section 6, Metering)."""

LATE_EVIDENCE = "late-evidence"
LATE_NAME = "late-name"
CLOCK_STEP = "clock-step"

_Group = tuple[str, int, str, str]
"""(meter, hour, host, device): within it an amount can change its name."""

_Key = tuple[str, int, str, str, str]
"""A group and a subject: what a correction corrects. The context tag takes no part in it, so that a
context which is settled after its hour was recorded changes nothing."""


@dataclass(slots=True)
class _Amount:
    quantity: int = 0
    refs: set[str] = field(default_factory=set)


def closed_until(now_us: int) -> int:
    """The end of the last UTC hour that has been over for five minutes."""
    return hour_floor(now_us - CLOSED_AFTER_US)


def evidence_hash(refs: Iterable[str]) -> str:
    """First 16 hex digits of the SHA-256 over the references, sorted, one a line."""
    return hashlib.sha256("\n".join(sorted(refs)).encode()).hexdigest()[:16]


def compare(
    derived: Iterable[Quantity],
    recorded: Iterable[UsageRecord],
    corrections: Iterable[UsageCorrection],
    *,
    covered_hours: Container[int] | Callable[[int], bool],
    recorded_at_us: int,
    watches: Iterable[Watch] = (),
) -> tuple[list[UsageRecord], list[UsageCorrection]]:
    """What to append so that records plus corrections equal what the evidence says.

    Args:
        derived: quantities of whole hours, from one or more windows.
        recorded, corrections: all rows of the same hours, and of no other hour: a recorded key that is
            not derived is taken back.
        covered_hours: the hours (their starts) that a pass covered before. An hour of a host that holds
            rows counts as covered too.
        recorded_at_us: when the pass runs.
        watches: watch rows of these hours, to see whether the clock was set.

    Returns:
        Records for hours never covered; corrections for the others. Both sorted by key.
    """
    covers: Callable[[int], bool] = covered_hours if callable(covered_hours) else covered_hours.__contains__
    written: dict[_Key, int] = {}
    numbers: dict[_Key, int] = {}
    for record in recorded:
        key = _key(record)
        written[key] = written.get(key, 0) + record.quantity
    for correction in corrections:
        key = _key(correction)
        written[key] = written.get(key, 0) + correction.delta
        numbers[key] = max(numbers.get(key, 0), correction.correction_number)
    held = {(hour_us, host) for _, hour_us, host, _, _ in written}

    fresh: dict[tuple[_Key, str], _Amount] = {}
    now: dict[_Key, _Amount] = {}
    for quantity in derived:
        key = _key(quantity)
        if covers(quantity.hour_us) or (quantity.hour_us, quantity.host) in held:
            amount = now.setdefault(key, _Amount())
        else:
            amount = fresh.setdefault((key, quantity.context), _Amount())
        amount.quantity += quantity.quantity
        amount.refs |= quantity.evidence

    records = [
        UsageRecord(
            meter=key[0], hour_us=key[1], host=key[2], device=key[3], subject=key[4], context=context,
            quantity=amount.quantity, evidence_count=len(amount.refs), evidence_hash=evidence_hash(amount.refs),
            recorded_at_us=recorded_at_us,
        )
        for (key, context), amount in sorted(fresh.items(), key=lambda item: item[0])
    ]  # fmt: skip
    return records, _corrections(now, written, numbers, recorded_at_us, _steps(watches))


def _corrections(
    now: Mapping[_Key, _Amount],
    written: Mapping[_Key, int],
    numbers: Mapping[_Key, int],
    recorded_at_us: int,
    steps: Container[tuple[str, str, int]],
) -> list[UsageCorrection]:
    groups: dict[_Group, dict[_Key, int]] = {}
    nothing = _Amount()
    for key in sorted({*now, *written}):
        if delta := now.get(key, nothing).quantity - written.get(key, 0):
            groups.setdefault(key[:4], {})[key] = delta
    behind: dict[_Group, set[str]] = {group: set() for group in groups}
    for key, amount in now.items():
        if key[:4] in behind:
            behind[key[:4]] |= amount.refs
    rows: list[UsageCorrection] = []
    for group, deltas in groups.items():
        for key, delta in deltas.items():
            refs = now[key].refs if key in now else behind[group]
            rows.append(
                UsageCorrection(
                    meter=key[0], hour_us=key[1], host=key[2], device=key[3], subject=key[4],
                    correction_number=numbers.get(key, 0) + 1, delta=delta, reason=_reason(key, delta, deltas, steps),
                    evidence_count=len(refs), evidence_hash=evidence_hash(refs), recorded_at_us=recorded_at_us,
                )
            )  # fmt: skip
    return rows


def _reason(key: _Key, delta: int, deltas: Mapping[_Key, int], steps: Container[tuple[str, str, int]]) -> str:
    """An amount that changed its name, a clock that was set, or evidence that came late."""
    if -delta in deltas.values() or (len(deltas) > 1 and sum(deltas.values()) == 0):
        return LATE_NAME
    _, hour_us, host, device, _ = key
    return CLOCK_STEP if (host, device, hour_us) in steps or (host, "", hour_us) in steps else LATE_EVIDENCE


def _steps(watches: Iterable[Watch]) -> set[tuple[str, str, int]]:
    """(host, device or '', hour) in which the wall clock was set."""
    return {
        (watch.host, watch.device, hour_us)
        for watch in watches
        if watch.status == UnknownReason.CLOCK_STEP
        for hour_us in range(hour_floor(watch.since_us), watch.until_us + 1, HOUR_US)
    }


def _key(row: Quantity | UsageRecord | UsageCorrection) -> _Key:
    return (row.meter, row.hour_us, row.host, row.device, row.subject)
