"""Coverage: what was watched, and why the rest is UNKNOWN."""

from typing import Any

import pytest

from gpuledger.metering.coverage import LOSSES, PRECEDENCE, coverage
from gpuledger.model.reasons import UnknownReason


def told(
    make: Any, rows: list[Any], since: int = 0, until: int = 100, device: str = "GPU-0"
) -> list[tuple[int, int, str]]:
    spans = coverage(rows, [("box", device)], since_us=make.at(since), until_us=make.at(until))
    zero = make.at(0)
    return [((s.since_us - zero) // 1000, (s.until_us - zero) // 1000, s.reason) for s in spans]


def looked(make: Any, since: int, until: int, status: str = "ok", **words: Any) -> Any:
    return make.watch(since, until, source="driver", status=status, **words)


def test_never_watched_is_before_watch(make: Any) -> None:
    """Nothing had looked yet: never a zero, and the whole window long."""
    assert told(make, []) == [(0, 100, "before-watch")]


def test_before_between_and_after(make: Any) -> None:
    """Before the first look, gaps, and the time after the last look."""
    rows = [looked(make, 20, 40), looked(make, 60, 80)]
    assert told(make, rows) == [
        (0, 20, "before-watch"), (20, 40, ""), (40, 60, "watch-gap"), (60, 80, ""), (80, 100, "watch-gap"),
    ]  # fmt: skip


def test_the_first_look_may_lie_before_the_window(make: Any) -> None:
    """Of the device, or of the host's naming: then a hole is a gap. Other devices' looks do not count."""
    assert told(make, [looked(make, -50, -40)]) == [(0, 100, "watch-gap")]
    assert told(make, [make.watch(-50, -40)]) == [(0, 100, "watch-gap")]
    assert told(make, [looked(make, -50, -40, device="GPU-1")]) == [(0, 100, "before-watch")]


def test_a_reason_holds_for_its_span(make: Any) -> None:
    """And rows that touch with one verdict are one span."""
    rows = [
        looked(make, 0, 30, "accounting-disabled"),
        looked(make, 30, 50, "accounting-disabled"),
        looked(make, 50, 100),
    ]
    assert told(make, rows) == [(0, 50, "accounting-disabled"), (50, 100, "")]


def test_another_source_that_looked_overrides_a_reason(make: Any) -> None:
    """Somebody looked and nothing was lost."""
    rows = [looked(make, 0, 100, "driver-unreachable"), looked(make, 30, 50, method="nvidia-smi")]
    assert told(make, rows) == [(0, 30, "driver-unreachable"), (30, 50, ""), (50, 100, "driver-unreachable")]


@pytest.mark.parametrize("loss", LOSSES)
def test_a_loss_overrides_the_ok_of_its_own_source_only(make: Any, loss: UnknownReason) -> None:
    """The source looked, and what it looked for was gone; another source may still have it."""
    rows = [looked(make, 0, 100), looked(make, 30, 50, loss)]
    assert told(make, rows) == [(0, 30, ""), (30, 50, loss), (50, 100, "")]
    rows.append(looked(make, 40, 60, method="nvidia-smi"))
    assert told(make, rows) == [(0, 30, ""), (30, 40, loss), (40, 100, "")]


def test_of_several_reasons_the_gravest_is_told(make: Any) -> None:
    """In the order of the explicit list, which knows every reason."""
    assert set(PRECEDENCE) == set(UnknownReason)
    rows = [looked(make, 0, 100, reason, method=f"source {n}") for n, reason in enumerate(reversed(PRECEDENCE))]
    assert told(make, rows) == [(0, 100, PRECEDENCE[0])]


def test_a_word_of_a_newer_version_is_kept_and_comes_last(make: Any) -> None:
    """It is not ok, and it is not dropped."""
    assert told(make, [looked(make, 0, 100, "solar-flare")]) == [(0, 100, "solar-flare")]
    rows = [looked(make, 0, 100, "solar-flare"), looked(make, 0, 100, "empty-ledger", method="nvidia-smi")]
    assert told(make, rows) == [(0, 100, "empty-ledger")]


def test_a_driver_that_did_not_answer_at_all_holds_for_every_device(make: Any) -> None:
    """Such a row names no device."""
    assert told(make, [looked(make, 0, 100, "driver-unreachable", device="")]) == [(0, 100, "driver-unreachable")]


def test_a_single_look_with_a_reason_is_shown_at_its_moment(make: Any) -> None:
    """It takes no time, and cuts the span around it; at the very end of the window it is shown too."""
    rows = [looked(make, 50, 50, "accounting-disabled"), looked(make, 100, 100, "empty-ledger")]
    assert told(make, rows) == [
        (0, 50, "before-watch"), (50, 50, "accounting-disabled"), (50, 100, "watch-gap"), (100, 100, "empty-ledger"),
    ]  # fmt: skip


def test_a_single_look_is_not_repeated_where_a_span_says_it(make: Any) -> None:
    """Nor where the time around it is watched, unless something was lost at that moment."""
    rows = [looked(make, 0, 60, "empty-ledger"), looked(make, 60, 100)]
    rows += [
        looked(make, 0, 0, "empty-ledger"),
        looked(make, 70, 70, "empty-ledger"),
        looked(make, 80, 80, "clock-step"),
    ]
    assert told(make, rows) == [(0, 60, "empty-ledger"), (60, 80, ""), (80, 80, "clock-step"), (80, 100, "")]


def test_a_single_look_that_found_nothing_wrong_watches_no_time(make: Any) -> None:
    """One look proves one moment."""
    assert told(make, [looked(make, 50, 50)]) == [(0, 50, "before-watch"), (50, 100, "watch-gap")]


def test_an_empty_window_has_no_spans(make: Any) -> None:
    """Nothing is asked, nothing is told."""
    assert told(make, [looked(make, 0, 100)], 50, 50) == []


def test_each_device_once_in_order(make: Any) -> None:
    """However often and in whatever order it is asked for."""
    asked = [("box", "GPU-1"), ("box", "GPU-0"), ("box", "GPU-1")]
    spans = coverage([], asked, since_us=0, until_us=9)
    assert [span.device for span in spans] == ["GPU-0", "GPU-1"]


def idle(make: Any, rows: list[Any]) -> list[tuple[int, int, str, bool]]:
    spans = coverage(rows, [("box", "GPU-0")], since_us=make.at(0), until_us=make.at(100))
    zero = make.at(0)
    return [((s.since_us - zero) // 1000, (s.until_us - zero) // 1000, s.reason, s.idle) for s in spans]


def test_idle_time_was_watched_and_is_told_apart(make: Any) -> None:
    """It reads 0 with evidence; only what is not idle by any source that looked is called used."""
    rows = [looked(make, 0, 40, "empty-ledger"), looked(make, 40, 70, "idle"), looked(make, 70, 100)]
    assert idle(make, rows) == [(0, 40, "empty-ledger", False), (40, 70, "", True), (70, 100, "", False)]
    other = looked(make, 50, 60, method="nvidia-smi")
    assert idle(make, [*rows, other])[1:4] == [(40, 50, "", True), (50, 60, "", False), (60, 70, "", True)]


@pytest.mark.parametrize("loss", LOSSES)
def test_idle_of_a_source_that_lost_something_is_no_idle_time(make: Any, loss: UnknownReason) -> None:
    """Both cannot be true, and the loss counts."""
    assert idle(make, [looked(make, 0, 100, "idle"), looked(make, 0, 100, loss)]) == [(0, 100, loss, False)]


def test_another_sources_reason_does_not_undo_the_proof(make: Any) -> None:
    """Nor its own weaker word; a moment within it is not told."""
    rows = [looked(make, 0, 100, "idle"), looked(make, 0, 100, "empty-ledger")]
    rows += [looked(make, 0, 100, "driver-unreachable", method="nvidia-smi"), looked(make, 50, 50, "empty-ledger")]
    assert idle(make, rows) == [(0, 100, "", True)]


def test_how_the_clocks_stand_watches_nothing(make: Any) -> None:
    """A row of the clock is not the first look at a host."""
    rows = [make.watch(-50, -50, source="clock", device=""), looked(make, 50, 100)]
    assert told(make, rows) == [(0, 50, "before-watch"), (50, 100, "")]
