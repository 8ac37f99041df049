"""Causes: the decision table, line by line."""

from typing import Any

import pytest

from gpuledger.metering.causes import UNWATCHED, NamingWatch, naming_watches


def watch(make: Any) -> NamingWatch:
    """Watched each second from 100 s to 200 s and 300 s to 400 s, events lost 350 s to 351 s, one look at 500 s."""
    return NamingWatch(
        [
            make.watch(100_000, 150_000),
            make.watch(150_000, 200_000),
            make.watch(300_000, 400_000),
            make.watch(350_000, 351_000, status="events-lost"),
            make.watch(500_000, 500_000, every=0),
            make.watch(120_000, 120_000, status="clock-step"),
        ]
    )


@pytest.mark.parametrize(
    ("since", "until", "cause"),
    [
        (1_000, 2_000, "before-watch"),
        (99_000, 100_000, "before-watch"),
        (50_000, 102_000, "before-watch"),
        (50_000, 102_001, "between-samples"),
        (100_000, 101_999, "between-samples"),
        (149_500, 150_500, "between-samples"),
        (149_000, 151_000, "between-samples"),
        (120_000, 120_500, "between-samples"),
        (199_500, 200_500, "watch-gap"),
        (250_000, 250_500, "watch-gap"),
        (198_000, 310_000, "watch-gap"),
        (199_000, 301_000, "watch-gap"),
        (350_500, 350_600, "events-lost"),
        (349_900, 350_100, "events-lost"),
        (450_000, 450_000, "watch-gap"),
        (350_999, 355_000, "events-lost"),
        (380_000, 380_000, "between-samples"),
        (499_000, 501_000, "watch-gap"),
        (600_000, 600_500, "watch-gap"),
    ],
)
def test_the_table(make: Any, since: int, until: int, cause: str) -> None:
    """Which line holds for a context from ``since`` to ``until``."""
    assert watch(make).cause(make.at(since), make.at(until)) == cause


def test_a_host_without_naming_watch_is_before_watch(make: Any) -> None:
    """Driver watches name nobody, and other hosts' watches neither."""
    found = naming_watches([make.watch(0, 1000, source="driver"), make.watch(0, 1000, host="other")])
    assert found.get("box", UNWATCHED).cause(make.at(10), make.at(20)) == "before-watch"
    assert set(found) == {"other"}


def test_six_seconds_under_a_sixty_second_poll(make: Any) -> None:
    """The trap: lived and died between two looks; and what lived for two minutes was as little seen alive."""
    slow = NamingWatch([make.watch(0, 3_600_000, every=60_000)])
    assert slow.cause(make.at(600_000), make.at(606_000)) == "between-samples"
    assert slow.cause(make.at(600_000), make.at(720_000)) == "between-samples"


def test_looks_that_come_late_meet_nobody(make: Any) -> None:
    """A span at 1 s stays unbroken over a look 4.5 s late, so 3.2 s of it prove no look; nor does a whole minute."""
    found = NamingWatch([make.watch(0, 100_000)])
    causes = {found.cause(make.at(10_000), make.at(10_000 + ms)) for ms in (1, 3_200, 60_000)}
    assert causes == {"between-samples"}


def test_two_speeds_of_one_unbroken_watch(make: Any) -> None:
    """They are one watch: a context over both lies in it."""
    both = NamingWatch([make.watch(0, 100_000, every=60_000), make.watch(100_000, 200_000, every=1000)])
    assert both.cause(make.at(50_000), make.at(102_000)) == "between-samples"
    assert both.cause(make.at(199_000), make.at(200_001)) == "watch-gap"


def test_the_interval_in_force(make: Any) -> None:
    """The latest one begun by then, the first one before any, none without a watch."""
    both = NamingWatch([make.watch(0, 100_000, every=60_000), make.watch(100_000, 200_000, every=1000)])
    assert [both.interval_us(make.at(ms)) for ms in (-5, 0, 99_999, 100_000)] == [60_000_000] * 3 + [1_000_000]
    assert UNWATCHED.interval_us(make.at(0)) == 0


def test_order_and_duplicates_do_not_matter(make: Any) -> None:
    """The same rows backwards and twice tell the same."""
    rows = [make.watch(0, 5000), make.watch(7000, 9000), make.watch(5000, 6000, status="events-lost")]
    one, other = NamingWatch(rows), NamingWatch([*reversed(rows), *rows])
    for since in range(0, 9000, 250):
        assert one.cause(make.at(since), make.at(since + 700)) == other.cause(make.at(since), make.at(since + 700))


@pytest.mark.parametrize("method", ["ebpf", "connector"])
def test_what_events_watched_and_did_not_name_could_not_be_read(make: Any, method: str) -> None:
    """No process falls between two events; a part that was polled, missed or lost has its own cause."""
    found = NamingWatch(
        [
            make.watch(0, 100_000, method=method),
            make.watch(100_000, 200_000),
            make.watch(200_000, 300_000, method=method),
            make.watch(210_000, 220_000, method=method, status="events-lost"),
        ]
    )
    causes = {
        (since, until): found.cause(make.at(since), make.at(until))
        for since, until in (
            (50_000, 50_001), (50_000, 50_000), (-9_000, 60_000), (0, 100_000), (90_000, 110_000), (150_000, 150_001),
            (205_000, 212_000), (225_000, 226_000), (290_000, 310_000),
        )
    }  # fmt: skip
    assert causes == {
        (50_000, 50_001): "identity-unreadable",
        (50_000, 50_000): "identity-unreadable",
        (-9_000, 60_000): "identity-unreadable",
        (0, 100_000): "identity-unreadable",
        (90_000, 110_000): "between-samples",
        (150_000, 150_001): "between-samples",
        (205_000, 212_000): "events-lost",
        (225_000, 226_000): "identity-unreadable",
        (290_000, 310_000): "watch-gap",
    }


def test_events_leave_no_blur_at_the_end_of_a_life(make: Any) -> None:
    """A poll may have seen a process last two polls before its end; an event tells the end."""
    both = NamingWatch(
        [make.watch(0, 100_000, every=60_000), make.watch(100_001, 200_000, method="ebpf", every=60_000)]
    )
    assert [both.polled_us(make.at(ms)) for ms in (50_000, 150_000)] == [60_000_000, 0]
    assert [both.interval_us(make.at(ms)) for ms in (50_000, 150_000)] == [60_000_000] * 2
