"""Laws of reserved time: whatever is told, in whatever order, and whenever anybody meters."""

from __future__ import annotations

import tempfile
from collections import defaultdict
from fractions import Fraction
from functools import cache
from itertools import pairwise
from pathlib import Path
from unittest.mock import patch

from hypothesis import given, settings
from hypothesis import strategies as st

from control_plane import MIDNIGHT_US, ControlPlane, as_row
from gpuledger.accounting.amounts import Grain
from gpuledger.ledger.store import Ledger
from gpuledger.metering.records import closed_until
from gpuledger.model.identity import IdentityText
from gpuledger.model.meters import CPU_RESERVED, GPU_RESERVED
from gpuledger.model.reserved import PLACED
from gpuledger.model.rows import UsageCorrection, UsageRecord
from gpuledger.model.workload_rows import WorkloadEvent
from gpuledger.operations.usage_reserved import reserved_amounts
from gpuledger.operations.verify import verify
from reserved_oracle import HOUR, seconds

STATES = ["pending", "provisioning", "downloading", "booting", "running", "running", "stopping", "stopped", "failed"]
LAST = 20
"""Hours in which things happen: short of the 48 after which hours are final."""

told = st.lists(
    st.tuples(
        st.sampled_from(["a", "b", "c"]),
        st.sampled_from(STATES),
        st.one_of(st.integers(0, LAST * 4).map(lambda q: q * HOUR // 4), st.integers(0, LAST * HOUR)),
        st.sampled_from([None, None, "n1", "n2", "cpu"]),
        st.booleans(),
    ),
    max_size=18,
)
passes = st.lists(st.integers(1, LAST), max_size=4)


@cache
def empty() -> bytes:
    """The file of an empty ledger: to make its tables takes longer than a test."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "empty.db"
        Ledger.open(place, mode="append").close()
        return place.read_bytes()


def fresh(folder: str) -> ControlPlane:
    """A control plane with an empty ledger."""
    place = Path(folder) / "plane.db"
    place.write_bytes(empty())
    return ControlPlane(place)


def rows_of(plane: ControlPlane, events: list[tuple[str, str, int, str | None, bool]]) -> list[list[object]]:
    """Each event with its placement; half of a workload's events have another owner."""
    kinds = {
        "n1": plane.placement("n1", share="1/3"), "n2": plane.placement("n2", count=2),
        "cpu": plane.placement("n1", class_name="cpu", count=0),
    }  # fmt: skip
    batches: list[list[object]] = []
    for number, (workload, state, offset_us, machine, other) in enumerate(events):
        placement = kinds[machine] if machine else None
        text = IdentityText(workload=workload, user="bo" if other else "al")
        event = WorkloadEvent(
            workload=workload, event_id=f"{number}", sequence=number, state=state, at_us=MIDNIGHT_US + offset_us,
            recorded_at_us=MIDNIGHT_US, source="cp", subject=plane.ledger.key_of(text),
            placement=placement.key if placement else "",
        )  # fmt: skip
        batches.append([as_row(placement), event] if placement else [event])
    return batches


def recorded(plane: ControlPlane) -> dict[tuple[int, str, str], int]:
    """(hour, placement, subject) to seconds, corrections included."""
    found: dict[tuple[int, str, str], int] = defaultdict(int)
    for row in (*plane.ledger.scan(UsageRecord), *plane.ledger.scan(UsageCorrection)):
        amount = row.quantity if isinstance(row, UsageRecord) else row.delta
        found[row.hour_us, row.device.removeprefix(PLACED), row.subject] += amount
    return {key: amount for key, amount in found.items() if amount}


@settings(max_examples=80, deadline=None)
@given(
    events=told, order=st.randoms(use_true_random=False), hours=passes, again=st.booleans(),
    at_once=st.sampled_from([(1, 1), (3, 10), (150_000, 300_000)]),
)  # fmt: skip
def test_recorded_and_corrected_is_what_the_events_say(events, order, hours, again, at_once) -> None:
    """In any order, told twice or once, metered at any times, in whatever parts: the oracle's answer, and a second pass
    adds nothing."""
    with (
        tempfile.TemporaryDirectory() as folder,
        patch("gpuledger.operations.reserved_windows.EVENTS_AT_ONCE", at_once[0]),
        patch("gpuledger.operations.meter_reserved.RECORDS_AT_ONCE", at_once[1]),
    ):
        plane = fresh(folder)
        batches = rows_of(plane, events)
        order.shuffle(batches)
        moments = sorted(hours)
        for number, batch in enumerate(batches):
            if moments and number % 4 == 3:
                plane.meter(moments.pop(0))
            plane.ledger.append(batch, writer="box.transition", at_us=MIDNIGHT_US)
            if again:
                plane.ledger.append(batch, writer="far.transition", at_us=MIDNIGHT_US)
        now = LAST + 2
        plane.meter(now)
        until_us = closed_until(plane.at(now))
        expected: dict[tuple[int, str, str], int] = defaultdict(int)
        every = list(plane.ledger.scan(WorkloadEvent))
        for (_, hour_us, placement, subject), amount in seconds(every, until_us=until_us).items():
            expected[hour_us, placement, subject] += amount
        assert recorded(plane) == expected
        second = plane.meter(now)
        assert (second.records, second.corrections) == ((), ())
        checks = {check.name: check.findings for check in verify(plane.ledger, now_us=plane.at(now)).checks}
        assert not any(checks.values()), checks
        plane.ledger.close()


@settings(max_examples=60, deadline=None)
@given(
    events=told,
    cuts=st.lists(st.integers(0, LAST * HOUR + HOUR), max_size=4),
    metered=st.sampled_from([None, 3, LAST]),
)
def test_splitting_a_window_never_changes_a_sum(events, cuts, metered) -> None:
    """Recorded, due or derived: the parts of a window add up to it, to the second, for each placement."""
    with tempfile.TemporaryDirectory() as folder:
        plane = fresh(folder)
        for batch in rows_of(plane, events):
            plane.ledger.append(batch, writer="box.transition", at_us=MIDNIGHT_US)
        if metered:
            plane.meter(metered)
        now_us = plane.at(LAST + 1)

        def sums(since_us: int, until_us: int) -> dict[tuple[str, str], int]:
            found: dict[tuple[str, str], int] = defaultdict(int)
            for meter in (GPU_RESERVED, CPU_RESERVED):
                for amount in reserved_amounts(
                    plane.ledger, meter, Grain.HOUR, since_us=since_us, until_us=until_us, now_us=now_us
                ):
                    found[amount.placement.placement, amount.subject] += amount.seconds
            return {key: amount for key, amount in found.items() if amount}

        edges = sorted({MIDNIGHT_US, now_us, *(MIDNIGHT_US + cut for cut in cuts)})
        parts: dict[tuple[str, str], int] = defaultdict(int)
        for since_us, until_us in pairwise(edges):
            for key, amount in sums(since_us, until_us).items():
                parts[key] += amount
        assert {key: amount for key, amount in parts.items() if amount} == sums(MIDNIGHT_US, now_us)
        plane.ledger.close()


@settings(max_examples=60, deadline=None)
@given(parts=st.lists(st.integers(1, 40), min_size=1, max_size=12))
def test_shares_of_a_device_make_the_device(parts) -> None:
    """However a device is cut, the shares of an hour add up to 3,600 device-seconds, exactly."""
    whole = sum(parts)
    with tempfile.TemporaryDirectory() as folder:
        plane = fresh(folder)
        for number, part in enumerate(parts):
            plane.run(f"w{number}", 0, 1, plane.placement(share=str(Fraction(part, whole))))
        plane.meter(2)
        total = sum(
            amount.seconds * Fraction(amount.placement.share_num, amount.placement.share_den)
            for amount in reserved_amounts(
                plane.ledger, GPU_RESERVED, Grain.WINDOW, since_us=plane.at(0), until_us=plane.at(1), now_us=plane.at(2)
            )
        )
        assert total == 3600
        plane.ledger.close()
