"""Blind spots: everything unseen in one answer, and the odds of polling."""

from __future__ import annotations

from fractions import Fraction

import pytest

from gpuledger.accounting.amounts import Amount
from gpuledger.accounting.blind import JOB_LENGTHS_MS, blind_spots, chance_of_catching, chances
from gpuledger.accounting.owners import Naming
from gpuledger.model.missing import Missing
from gpuledger.model.moments import HOUR_US, SECOND_US
from gpuledger.model.quantities import Coverage
from gpuledger.model.rows import Watch


def watch(interval_ms: int, source: str = "process", method: str = "poll") -> Watch:
    return Watch(
        host="box",
        device="",
        source=source,
        method=method,
        interval_ms=interval_ms,
        since_us=0,
        until_us=1,
        status="ok",
    )


@pytest.mark.parametrize(
    ("length_ms", "interval_ms", "chance"),
    [(6_000, 60_000, Fraction(1, 10)), (1, 3, Fraction(1, 3)), (1000, 1000, Fraction(1)), (5000, 1000, Fraction(1))],
)
def test_chance_is_exact(length_ms: int, interval_ms: int, chance: Fraction) -> None:
    """A 6 s job under a 60 s poll is caught one time in ten."""
    assert chance_of_catching(length_ms, interval_ms) == chance


def test_chances_for_every_interval_that_polled() -> None:
    """Each interval once, shortest first; event methods and drivers are no polling; single looks are told."""
    table, once = chances(
        [watch(60_000), watch(1000), watch(60_000), watch(5, "driver", "nvml"), watch(7, method="ebpf")]
    )
    assert [chance.interval_ms for chance in table] == [1000] * len(JOB_LENGTHS_MS) + [60_000] * len(JOB_LENGTHS_MS)
    assert not once
    assert chances([watch(0)]) == ((), True)


def test_all_blind_spots_of_a_window() -> None:
    """Time by reason, amounts by cause, and late evidence, oldest first."""
    report = blind_spots(
        since_us=0,
        until_us=HOUR_US,
        amounts=[
            Amount(
                meter="gpu.context",
                subject=subject,
                host="box",
                device="G",
                at_us=0,
                quantity=quantity,
                settled=quantity,
            )
            for subject, quantity in (("unattributed:watch-gap", 5), ("named", 7))
        ],
        naming=Naming(texts={}),
        coverage=[
            Coverage(host="box", device="G", since_us=0, until_us=60 * SECOND_US, reason="ring-overflow"),
            Coverage(host="box", device="G", since_us=60 * SECOND_US, until_us=HOUR_US, reason=""),
        ],
        watches=[watch(60_000)],
    )
    assert [(size.reason, size.seconds) for size in report.sizes] == [("ring-overflow", 60)]
    assert [(line.cause, line.quantity) for line in report.unattributed] == [("watch-gap", 5)]
    assert (report.total_ms, report.unattributed_ms, report.unsettled_ms) == (12, 5, 0)
    assert (report.watched.seconds, report.watched.of) == (3540, 3600)


def test_nothing_known_is_missing_not_zero() -> None:
    """An unwatched window without rows has no total."""
    report = blind_spots(since_us=0, until_us=1, amounts=[], naming=Naming(texts={}), coverage=[], watches=[])
    assert isinstance(report.total_ms, Missing)
    assert isinstance(report.unattributed_ms, Missing)
    assert isinstance(report.unsettled_ms, Missing)
