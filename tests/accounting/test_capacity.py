"""Planning: waits by nearest rank, fallbacks, and how much is held, exactly."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuledger.accounting import capacity as room
from gpuledger.accounting.capacity import capacity, fell_back, held_over, nearest_rank, union_us
from gpuledger.model.capacity import EVERY, Admission, CapacityReport, HeldSpan, Outcome
from gpuledger.model.missing import Missing

UNTOLD = Missing("not told")


def asked(
    requested: str, since: int | None, until: int, placed: str = "", outcome: Outcome = Outcome.STARTED
) -> Admission:
    return Admission(
        requested=requested, asked_us=UNTOLD if since is None else since, until_us=until, outcome=outcome, placed=placed
    )


def held(class_name: str, since: int, until: int, amount: Fraction | int = 1) -> HeldSpan:
    return HeldSpan(class_name=class_name, amount=Fraction(amount), since_us=since, until_us=until)


def answer(*of: Admission | HeldSpan, since: int = 0, until: int = 100, **words) -> CapacityReport:
    return capacity(
        since_us=since,
        until_us=until,
        admissions=[each for each in of if isinstance(each, Admission)],
        held=[each for each in of if isinstance(each, HeldSpan)],
        **{"owned": {}} | words,
    )


def line(report: CapacityReport, name: str):
    return next(each for each in (*report.lines, report.overall) if each.class_name == name)


@pytest.mark.parametrize(
    ("waits", "p50", "p95"),
    [([7], 7, 7), ([1, 9], 1, 9), ([1, 2, 3], 2, 3), (list(range(1, 21)), 10, 19), (list(range(1, 101)), 50, 95)],
)
def test_a_percentile_is_a_wait_that_somebody_had(waits: list[int], p50: int, p95: int) -> None:
    """The nearest rank: place ceil(n x p), nothing between two waits."""
    assert (nearest_rank(waits, 50), nearest_rank(waits, 95)) == (p50, p95)


def test_waits_are_of_those_that_started_in_the_window() -> None:
    """Whole, also where they began before it; who gave up or still waits is counted, and in no percentile."""
    report = answer(
        asked("H100", 10, 30, "H100"),
        asked("H100", 0, 20, "H100"),
        asked("H100", 60, 90, outcome=Outcome.GAVE_UP),
        asked("H100", 70, 100, outcome=Outcome.WAITING),
        asked("H100", 80, 150, "H100"),
        asked("H100", 0, 5, "H100"),
        since=10,
    )
    h100 = line(report, "H100")
    assert (h100.started, h100.gave_up, h100.waiting) == (2, 1, 2)
    assert (h100.wait_p50_us, h100.wait_p95_us) == (20, 20)
    assert h100.waited_us == (30 - 10) + (100 - 60)


def test_a_start_that_nobody_told_of_before_has_no_wait() -> None:
    """It is counted as such, never as 0."""
    l4 = line(answer(asked("", None, 10, "L4")), "L4")
    assert (l4.started, l4.unasked) == (1, 1)
    assert isinstance(l4.wait_p50_us, Missing)
    assert isinstance(l4.waited_us, Missing)


@pytest.mark.parametrize(
    ("requested", "placed", "verdict"),
    [
        ("H100", "H100", False),
        ("H100", "A100", True),
        ("H100|A100", "A100", False),
        ("H100 | A100", "A100", False),
        ("H100|A100", "L4", True),
        ("H100", "cpu", True),
        ("gpu", "A100", False),
        ("GPU", "cpu", True),
        ("cpu", "cpu", False),
        ("H100", "", None),
        ("", "H100", None),
        ("V100M32", "GPU", None),
    ],
)
def test_a_fallback_is_something_else_than_asked_for(requested: str, placed: str, verdict: bool | None) -> None:
    """Either of A|B meets it, any card a request for any; what is not known is no fallback."""
    found = fell_back(asked(requested, 0, 1, placed))
    assert (None if isinstance(found, Missing) else found) is verdict


def test_fallbacks_say_what_was_given_instead() -> None:
    """Of those whose request and placement are known."""
    report = answer(
        asked("H100", 0, 1, "A100"), asked("H100", 0, 2, "A100"), asked("H100", 0, 3, "cpu"),
        asked("H100", 0, 4, "H100"), asked("H100", 0, 5, "gpu"), asked("H100|L4", 0, 6, "L4"),
    )  # fmt: skip
    h100 = line(report, "H100")
    assert (h100.compared, h100.fallbacks, h100.instead) == (4, 3, (("A100", 2), ("cpu", 1)))
    either = line(report, "H100|L4")
    assert (either.fallbacks, either.peak) == (0, room.ONLY_ASKED)
    assert line(report, EVERY).fallbacks == 3


def test_shares_are_exact() -> None:
    """Three thirds, seven sevenths and four quarters at once are three devices."""
    parts = [held("L4", 0, 50, Fraction(1, n)) for n in (3, 7, 4) for _ in range(n)]
    l4 = line(answer(*parts), "L4")
    assert (l4.peak, l4.peak_at_us, l4.mean) == (3, 0, Fraction(3, 2))


def test_a_peak_is_of_what_is_held_at_once() -> None:
    """A device that is let go at the moment another is taken is not held twice."""
    l4 = line(answer(held("L4", 0, 10, 2), held("L4", 10, 20, 2), held("L4", 15, 16, Fraction(1, 2))), "L4")
    assert (l4.peak, l4.peak_at_us) == (Fraction(5, 2), 15)


def test_cards_of_an_untold_kind_leave_open_how_many_of_a_class_were_held() -> None:
    """Who asked for a V100 and holds a GPU may hold a V100: not 0."""
    report = answer(asked("V100", 0, 1, "GPU"), held("GPU", 1, 9), held("V100", 2, 3))
    assert line(report, "V100").peak == room.CARD_UNTOLD
    assert line(report, "GPU").peak == 1
    assert line(report, EVERY).peak == 2


def test_owned_is_known_or_says_why_not() -> None:
    """A class that no agent has seen is not owned 0 times; all of them add up only where all are known."""
    report = answer(held("L4", 0, 9), held("H100", 0, 9), owned={"L4": 4, "T4": 1})
    assert (line(report, "L4").owned, line(report, "T4").owned) == (4, 1)
    assert line(report, "T4").peak == 0
    assert isinstance(line(report, "H100").owned, Missing)
    assert isinstance(line(report, EVERY).owned, Missing)
    assert line(answer(held("L4", 0, 9), owned={"L4": 4, "T4": 1}), EVERY).owned == 5


def test_one_class_and_the_requests_it_meets() -> None:
    """``--class A100`` shows A100 and whoever would have taken one."""
    report = answer(
        asked("A100", 0, 1, "A100"), asked("A100|H100", 0, 2, "H100"), asked("L4", 0, 3, "L4"), held("L4", 0, 9),
        class_name="A100",
    )  # fmt: skip
    assert [each.class_name for each in report.lines] == ["A100", "A100|H100"]
    assert report.overall.started == 2


def test_the_cpu_holds_no_devices_and_the_unplaced_are_told() -> None:
    """Neither is a 0."""
    report = answer(held("cpu", 0, 9, 0), held("", 0, 9, 0), asked("cpu", 0, 1, "cpu"))
    assert line(report, "cpu").peak == room.NO_DEVICES
    assert [problem.code for problem in report.problems] == ["unplaced"]


def test_nothing_known_is_no_answer() -> None:
    """Nor is what lies outside the window one."""
    assert not answer().answered
    assert not answer(held("L4", 100, 200), held("L4", -5, 0), asked("L4", 100, 120, "L4")).answered
    assert answer(asked("L4", 90, 120, "L4")).answered


spans = st.lists(
    st.tuples(st.integers(0, 60), st.integers(0, 40), st.sampled_from([Fraction(1, n) for n in (1, 2, 3, 7)])),
    max_size=12,
)


@settings(max_examples=150, deadline=None)
@given(spans)
def test_the_sweep_agrees_with_looking_at_every_moment(drawn: list[tuple[int, int, Fraction]]) -> None:
    """Peak, mean and waited time against a plain count over all moments."""
    cut = [held("L4", since, since + length, amount) for since, length, amount in drawn]
    levels = [sum((s.amount for s in cut if s.since_us <= at < s.until_us), Fraction(0)) for at in range(10, 80)]
    peak, peak_at_us, mean = held_over(cut, 10, 80)
    assert (peak, mean) == (max(levels), sum(levels, Fraction(0)) / 70)
    if peak:
        assert levels[peak_at_us - 10] == peak
    inside = [(max(s.since_us, 10), min(s.until_us, 80)) for s in cut]
    assert union_us(inside) == sum(1 for level in levels if level)


def test_whether_anything_waited_is_unknown_for_a_reason() -> None:
    """Nobody asked for it, or nobody told of the asking: neither is 0."""
    report = answer(held("L4", 0, 10), asked("H100", None, 5, "H100"))
    assert line(report, "L4").waited_us == room.NOT_REQUESTED
    assert line(report, "H100").waited_us == room.NOBODY_ASKED
