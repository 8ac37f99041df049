"""Rollup: sums by what people ask, and the laws that no question can break."""

from __future__ import annotations

import itertools
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuledger.accounting.amounts import Amount, Grain, OpenContext
from gpuledger.accounting.owners import Naming
from gpuledger.accounting.rollup import parse_by, roll_up
from gpuledger.errors import Misconfigured
from gpuledger.model.identity import IdentityText
from gpuledger.model.meters import GPU_BUSY, GPU_CONTEXT, GPU_MEMORY, Meter
from gpuledger.model.missing import Missing
from gpuledger.model.moments import DAY_US, HOUR_US, parse_moment
from gpuledger.model.policy import HostOwner, Policy, UserOwner
from gpuledger.model.quantities import Coverage
from gpuledger.model.usage import BY, UsageReport

DAY = parse_moment("2026-07-27", now_us=0)
TEXTS = {
    "o": IdentityText(unit="ollama.service", user="ollama"),
    "x": IdentityText(command="python x.py", user="al"),
    "y": IdentityText(command="python y.py", user="al"),
}
CLASSES = {("box", "GPU-1"): "RTX-4090"}
POLICY = Policy(
    effective_from_us=DAY + 12 * HOUR_US, users={"al": UserOwner(team="vision")}, hosts={"box": HostOwner(owner="prof")}
)


def amount(
    subject: str, quantity: int, *, observed: int = 0, hour: int = 0, device: str = "GPU-1",
    meter: Meter = GPU_CONTEXT, provisional: bool = False, grain: Grain = Grain.HOUR,
) -> Amount:  # fmt: skip
    graded = meter is GPU_CONTEXT
    return Amount(
        meter=meter.name, subject=subject, host="box", device=device, at_us=DAY + hour * HOUR_US, grain=grain,
        quantity=quantity, settled=quantity - observed if graded else 0, observed=observed if graded else 0,
        provisional=provisional,
    )  # fmt: skip


def rolled(
    *amounts: Amount, by: tuple[str, ...] = ("service",), meter: Meter = GPU_CONTEXT, **more: object
) -> UsageReport:
    fields: dict = {"coverage": (), **more}
    return roll_up(
        meter=meter, by=by, since_us=DAY, until_us=DAY + DAY_US, amounts=amounts,
        naming=Naming(texts=TEXTS, versions=[(POLICY.effective_from_us, POLICY)]), classes=CLASSES, **fields,
    )  # fmt: skip


def lines(report: UsageReport) -> list[tuple]:
    return [(*row.key, row.quantity) for row in report.rows]


def test_rows_most_first_unattributed_apart() -> None:
    """Named amounts add up by service; unnamed ones by cause, whatever else is known of them."""
    report = rolled(
        amount("x", 10),
        amount("o", 30),
        amount("o", 20, observed=20, hour=5, provisional=True),
        amount("unattributed:before-watch", 7),
        amount("unattributed:between-samples", 8),
        amount("unattributed:before-watch", 2, device="GPU-2"),
    )
    assert lines(report) == [("ollama", 50), ("script:x.py by al", 10)]
    assert (report.rows[0].settled, report.rows[0].observed, report.rows[0].provisional) == (30, 20, 20)
    assert [(line.cause, line.quantity) for line in report.unattributed] == [
        ("before-watch", 9),
        ("between-samples", 8),
    ]
    assert report.unattributed[0].meaning == "dead before the agent first looked"
    assert (report.total, report.unattributed_quantity, report.provisional) == (77, 17, 20)


@pytest.mark.parametrize(
    ("by", "expected"),
    [
        (("user",), [("al", 30), ("ollama", 5)]),
        (("team",), [("vision", 20), ("-", 15)]),
        (("host-owner",), [("prof", 20), ("-", 15)]),
        (("project",), [("-", 35)]),
        (("workload",), [("-", 35)]),
        (("class",), [("RTX-4090", 25), ("-", 10)]),
        (("device",), [("GPU-1", 25), ("GPU-2", 10)]),
        (("host",), [("box", 35)]),
        (("subject",), [("script:y.py by al", 20), ("script:x.py by al", 10), ("unit:ollama.service", 5)]),
        (("hour",), [("2026-07-27T00:00:00Z", 15), ("2026-07-27T12:00:00Z", 20)]),
        (("day",), [("2026-07-27", 35)]),
        (("month",), [("2026-07", 35)]),
        (("user", "device"), [("al", "GPU-1", 20), ("al", "GPU-2", 10), ("ollama", "GPU-1", 5)]),
        (("service", "hour"), [
            ("script:x.py by al", "2026-07-27T00:00:00Z", 10),
            ("ollama", "2026-07-27T00:00:00Z", 5),
            ("script:y.py by al", "2026-07-27T12:00:00Z", 20),
        ]),
        ((), [(35,)]),
    ],
)  # fmt: skip
def test_every_grouping(by: tuple[str, ...], expected: list[tuple]) -> None:
    """Each word of --by groups by what it says; times sort by time, all else by size."""
    amounts = (amount("x", 10, device="GPU-2"), amount("y", 20, hour=12), amount("o", 5))
    report = rolled(*amounts, amount("unattributed:watch-gap", 3), by=by)
    assert lines(report) == expected
    assert report.total == 38


def test_forgotten_text_keeps_its_amount() -> None:
    """Forgetting drops a name, never an amount."""
    assert lines(rolled(amount("gone", 4), amount("gone-too", 5))) == [("forgotten", 9)]


def test_corrections_take_away_and_leave_no_empty_line() -> None:
    """A record taken back by a correction, and booked under another name, leaves one line."""
    report = rolled(amount("x", 10), amount("x", -10), amount("o", 10))
    assert lines(report) == [("ollama", 10)]


def test_busy_stands_beside_context_and_only_there() -> None:
    """Busy time is a column, never part of the sum; where none was sampled that is said."""
    report = rolled(amount("o", 10), amount("x", 5), amount("o", 4, meter=GPU_BUSY))
    assert report.total == 15
    assert report.rows[0].busy_ms == 4
    assert report.rows[1].busy_ms == Missing("no SM activity was sampled")
    with pytest.raises(ValueError, match="does not belong"):
        rolled(amount("o", 4, meter=GPU_BUSY), meter=GPU_MEMORY)


def test_amounts_too_coarse_are_a_bug() -> None:
    """A day's sum cannot be shown by hour."""
    with pytest.raises(ValueError, match="too coarse"):
        rolled(amount("o", 4, grain=Grain.DAY), by=("hour",))
    assert lines(rolled(amount("o", 4, grain=Grain.DAY), by=("day",))) == [("2026-07-27", 4)]


def test_nothing_known_is_no_zero() -> None:
    """Without a row and without a watched second, the total is missing, not 0."""
    report = rolled(coverage=[Coverage(host="box", device="G", since_us=0, until_us=10**9, reason="watch-gap")])
    assert not report.answered
    assert isinstance(report.total, Missing)
    assert isinstance(report.unattributed_quantity, Missing)
    assert isinstance(report.unsettled_quantity, Missing)


def test_watched_and_idle_is_an_answer() -> None:
    """A watched hour in which nothing ran is a proven 0."""
    report = rolled(coverage=[Coverage(host="box", device="G", since_us=0, until_us=10**9, reason="")])
    assert report.answered
    assert (report.total, report.unsettled_quantity) == (0, 0)


def test_open_contexts_only_for_context_time() -> None:
    """Sampled meters are never settled, so they have nothing unsettled."""
    living = OpenContext(
        host="box", device="GPU-1", pid=7, subject="o", since_us=DAY, quantity=Missing("?"), accounted="no",
        process_started_at_us=DAY, seen_at_us=DAY + HOUR_US, memory_mib=3,
    )  # fmt: skip
    report = rolled(open_contexts=[living])
    assert [row.pid for row in report.unsettled] == [7]
    assert [row.uptime_ms for row in report.never_accounted] == [3_600_000]
    assert isinstance(report.unsettled_quantity, Missing)
    memory = rolled(meter=GPU_MEMORY, open_contexts=[living])
    assert (memory.unsettled, memory.never_accounted) == ((), ())


def test_by_as_typed() -> None:
    """Groupings are words with commas; a wrong one is answered with all of them."""
    assert parse_by("service, day") == ("service", "day")
    assert parse_by("") == ()
    with pytest.raises(Misconfigured, match="'colour'") as caught:
        parse_by("colour")
    assert all(word in caught.value.hint for word in BY)
    with pytest.raises(Misconfigured, match="twice"):
        parse_by("day,day")


AMOUNTS = st.lists(
    st.builds(
        lambda subject, quantity, part, hour, device, provisional: amount(
            subject, quantity, observed=quantity * part // 4, hour=hour, device=device, provisional=provisional
        ),
        st.sampled_from(["o", "x", "y", "gone", "unattributed:watch-gap", "unattributed:pid-ambiguous"]),
        st.integers(min_value=-50, max_value=10**9),
        st.integers(min_value=0, max_value=4),
        st.integers(min_value=0, max_value=23),
        st.sampled_from(["GPU-1", "GPU-2"]),
        st.booleans(),
    ),
    max_size=25,
)
QUESTIONS = st.lists(st.sampled_from(BY), max_size=4, unique=True).map(tuple)


@settings(max_examples=120)
@given(AMOUNTS, QUESTIONS, st.randoms(use_true_random=False))
def test_laws(amounts: list[Amount], by: tuple[str, ...], shuffle: random.Random) -> None:
    """Total = rows + unattributed = everything that came in; grades add up; order does not matter."""
    watched = [Coverage(host="box", device="GPU-1", since_us=DAY, until_us=DAY + DAY_US, reason="")]
    report = rolled(*amounts, by=by, coverage=watched)
    everything = sum(each.quantity for each in amounts)
    assert report.total == everything
    unnamed = sum(each.quantity for each in amounts if each.subject.startswith("unattributed:"))
    assert report.unattributed_quantity == unnamed
    assert sum(row.quantity for row in report.rows) == everything - unnamed
    assert all(row.settled + row.observed == row.quantity for row in report.rows)
    assert report.provisional == sum(each.quantity for each in amounts if each.provisional)
    assert len({row.key for row in report.rows}) == len(report.rows)
    shuffled = list(amounts)
    shuffle.shuffle(shuffled)
    assert rolled(*shuffled, by=by, coverage=watched) == report


@settings(max_examples=60)
@given(AMOUNTS, QUESTIONS, st.integers(min_value=0, max_value=24))
def test_splitting_the_window_changes_no_sum(amounts: list[Amount], by: tuple[str, ...], hour: int) -> None:
    """The groups of two parts of a window add up to those of the whole."""
    edge = DAY + hour * HOUR_US
    parts = [
        rolled(*(each for each in amounts if each.at_us < edge), by=by),
        rolled(*(each for each in amounts if each.at_us >= edge), by=by),
    ]
    added: dict[tuple[str, ...], int] = {}
    for row in itertools.chain(*(part.rows for part in parts)):
        added[row.key] = added.get(row.key, 0) + row.quantity
    whole = {row.key: row.quantity for row in rolled(*amounts, by=by).rows}
    assert {key: total for key, total in added.items() if total} == {
        key: total for key, total in whole.items() if total
    }
