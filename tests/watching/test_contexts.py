"""Living contexts, look after look: what a look adds, what is the same context, and what is written."""

from __future__ import annotations

import pytest

from gpuledger.model.identity import IdentityText
from gpuledger.model.missing import Missing
from gpuledger.model.readings import LivingContext, Named
from gpuledger.watching.contexts import LiveContext, first_look

SECOND = 1_000_000
T0 = 1_790_000_000 * SECOND
NO_START = Missing("not accounted")


def seen(
    started_at_us: int | Missing = NO_START, memory_mib: int | Missing = 100, busy: int = 0,
    accounted: bool | Missing = True,
) -> LivingContext:  # fmt: skip
    return LivingContext(
        pid=5, device="GPU-0", kinds="C", memory_mib=memory_mib, started_at_us=started_at_us, accounted=accounted,
        busy_percent=busy,
    )  # fmt: skip


def named(ticks: int = 7) -> Named:
    return Named(pid=5, start_ticks=ticks, exec_number=0, started_at_us=T0, seen_at_us=T0, text=IdentityText(exe="x"))


def begun(what: LivingContext, who: Named | None = None, *, known_until_us: int = 0) -> LiveContext:
    context, _ = first_look(
        what, who, boot_id="boot", at_us=T0, known_until_us=known_until_us, longest_us=2 * SECOND
    )  # fmt: skip
    return context


def look(context: LiveContext, second: float, what: LivingContext, who: Named | None = None) -> None:
    context.look(what, who, boot_id="boot", at_us=T0 + int(second * SECOND), longest_us=2 * SECOND)


def test_a_context_without_a_start_is_held_from_its_first_look_on() -> None:
    """What was before nobody saw, and no driver says."""
    context, proven = first_look(seen(), None, boot_id="boot", at_us=T0, known_until_us=0, longest_us=2 * SECOND)
    assert (context.since_us, proven, context.memory_ms) == (T0, None, 0)


def test_the_drivers_start_proves_the_time_before_the_first_look() -> None:
    """That part carries no memory: no sample was taken in it."""
    context, proven = first_look(
        seen(T0 - 60 * SECOND), named(), boot_id="boot", at_us=T0, known_until_us=0, longest_us=2 * SECOND
    )
    assert proven is not None
    assert (proven.since_us, proven.last_look_us, proven.memory_ms) == (T0 - 60 * SECOND, T0 - 2 * SECOND, 0)
    assert (context.since_us, context.memory_ms) == (T0 - 2 * SECOND, 2000)


def test_what_is_written_already_is_not_written_twice() -> None:
    """After a restart the span goes on where the run before stopped."""
    _, proven = first_look(
        seen(T0 - 60 * SECOND), None, boot_id="b", at_us=T0, known_until_us=T0 - 10 * SECOND, longest_us=2 * SECOND
    )
    assert proven is not None
    assert proven.since_us == T0 - 10 * SECOND


def test_a_start_in_the_future_gives_no_negative_span() -> None:
    """Clocks disagree by fractions of a second."""
    context, proven = first_look(
        seen(T0 + SECOND), None, boot_id="b", at_us=T0, known_until_us=0, longest_us=2 * SECOND
    )
    assert (context.since_us, context.memory_ms, proven) == (T0, 0, None)


def test_samples_add_up_and_the_highest_is_kept() -> None:
    """Memory and activity are integrated over the time since the look before."""
    context = begun(seen(T0))
    look(context, 1, seen(T0, 300, busy=50))
    look(context, 2, seen(T0, 200, busy=0))
    row = context.write(host="box", method="nvml")
    assert (row.memory_mib_ms, row.memory_ms, row.busy_ms, row.peak_memory_mib, row.samples) == (
        300 * 1000 + 200 * 1000, 2000, 500, 300, 3,
    )  # fmt: skip


def test_a_sample_counts_for_two_polls_at_most() -> None:
    """A look that comes after ten seconds proves the hold, not the memory of all ten."""
    context = begun(seen(T0))
    look(context, 10, seen(T0, 100))
    row = context.write(host="box", method="nvml")
    assert (row.memory_ms, row.until_us) == (2000, T0 + 10 * SECOND)


def test_what_follows_a_written_row_begins_at_its_last_look() -> None:
    """Two rows of one context touch and do not overlap; nothing is added twice."""
    context = begun(seen(T0))
    look(context, 1, seen(T0))
    first = context.write(host="box", method="nvml")
    look(context, 2, seen(T0))
    second = context.write(host="box", method="nvml")
    assert (first.until_us, second.since_us, second.until_us) == (T0 + SECOND, T0 + SECOND, T0 + 2 * SECOND)
    assert (second.samples, second.memory_ms) == (1, 1000)


def test_a_clock_set_back_never_turns_a_span_around() -> None:
    """The last look stays the last."""
    context = begun(seen(T0))
    look(context, -5, seen(T0))
    row = context.write(host="box", method="nvml")
    assert row.since_us <= row.until_us == T0


@pytest.mark.parametrize(
    ("held", "again", "who", "same"),
    [
        (T0, T0 + 900, 7, True),
        (T0, T0 + SECOND // 10, 7, False),
        (NO_START, T0 + 3 * SECOND, 7, True),
        (T0, T0, 8, False),
        (T0, T0, None, True),
    ],
)
def test_a_context_is_the_same_process_with_the_same_start(held, again, who, same: bool) -> None:
    """The driver keeps the start that it stamped; another process is another context whatever its start."""
    context = begun(seen(held), named(7))
    assert context.is_same(seen(again), None if who is None else named(who)) is same


def test_a_process_read_late_is_named_from_then_on() -> None:
    """A first look may fall on a /proc that cannot be read."""
    context = begun(seen(T0))
    assert (context.boot_id, context.start_ticks) == ("", 0)
    look(context, 1, seen(T0), named(7))
    assert (context.boot_id, context.start_ticks) == ("boot", 7)


def test_absent_from_the_list_twice_in_a_row_is_never_accounted() -> None:
    """Once may be the moment between open and list; being listed in between begins anew."""
    context = begun(seen(accounted=False))
    assert context.accounted == "unknown"
    look(context, 1, seen(accounted=True))
    look(context, 2, seen(accounted=False))
    assert context.accounted == "yes"
    look(context, 3, seen(accounted=False))
    assert context.accounted == "no"


def test_a_context_that_is_gone_says_when_and_whether_its_process_died() -> None:
    """The look that missed it, not the last one that saw it."""
    row = begun(seen(T0)).write(host="box", method="nvml", gone_at_us=T0 + SECOND, died=True)
    assert (row.until_us, row.gone_at_us, row.process_died) == (T0, T0 + SECOND, 1)


@pytest.mark.parametrize(
    ("exited", "ended", "seen_until"),
    [(None, 3, 1), (2, 2, 2), (1, 1, 1), (3.5, 3, 3), (0.5, 3, 1)],
    ids=["not told", "between the looks", "at the last look", "while the driver was read", "of an earlier process"],
)
def test_a_context_ends_with_its_process_where_an_event_told_that(exited, ended: int, seen_until: int) -> None:
    """Else at the look that missed it; what was seen is proven until the exit, and no look later."""
    context = begun(seen(T0))
    look(context, 1, seen(T0))
    exited_us = None if exited is None else T0 + int(exited * SECOND)
    assert context.ends(exited_us, T0 + 3 * SECOND) == T0 + ended * SECOND
    assert context.last_look_us == T0 + seen_until * SECOND


def test_a_context_without_a_start_begins_with_its_open() -> None:
    """Never before what is written of it, never after the look; a driver's start is better."""
    words = {"boot_id": "boot", "at_us": T0, "longest_us": 2 * SECOND, "known_until_us": 0}
    opened_us = T0 - 7 * SECOND
    context, proven = first_look(seen(NO_START), named(7), **words, opened_us=opened_us)
    assert proven is not None
    assert (proven.since_us, proven.last_look_us, context.since_us) == (opened_us, T0 - 2 * SECOND, T0 - 2 * SECOND)
    late, none = first_look(seen(NO_START), named(7), **words, opened_us=T0 + SECOND)
    assert (late.since_us, none) == (T0, None)
    known, proven = first_look(seen(NO_START), named(7), **words | {"known_until_us": T0 - SECOND}, opened_us=opened_us)
    assert (known.since_us, proven) == (T0 - SECOND, None)
    started, _ = first_look(seen(T0 - SECOND), named(7), **words, opened_us=opened_us)
    assert started.since_us == T0 - SECOND
