"""``usage``: recorded where recorded, derived where not, and the total is what its parts are."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest

from gpuledger.errors import Misconfigured
from gpuledger.model.missing import Missing
from gpuledger.model.rows import PolicyVersion, UsageRecord
from gpuledger.model.usage import UsageReport
from gpuledger.operations.apply import apply
from gpuledger.operations.meter import meter
from gpuledger.operations.usage import understood, usage, window

EVERY_STORE = True


def asked(box, since: float = 0, until: float = 130, now: float = 130, **words: Any) -> UsageReport:
    return usage(
        box.ledger, meter=words.get("meter", "gpu.context"), by=words.get("by", ("service",)), since_us=box.at(since),
        until_us=box.at(until), now_us=box.at(now),
    )  # fmt: skip


def by_key(report: UsageReport) -> dict[tuple[str, ...], int]:
    return {row.key: row.quantity for row in report.rows}


def test_rows_and_unattributed_are_the_total(box) -> None:
    """Never more, never less; what has no name stands beside the rows, not in them."""
    box.tell_a_morning()
    report = asked(box)
    assert by_key(report) == {("unit:chat.service",): 3_600_000, ("unit:tts.service",): 1_800_000}
    assert [(line.cause, line.quantity) for line in report.unattributed] == [("between-samples", 600)]
    assert report.total == 3_600_000 + 1_800_000 + 600


def test_an_open_context_is_in_the_rows_and_listed_as_unsettled(box) -> None:
    """Observed, not settled: seen, and not counted twice."""
    box.tell_a_morning()
    report = asked(box)
    (row,) = [row for row in report.rows if row.key == ("unit:tts.service",)]
    assert (row.settled, row.observed) == (0, 1_800_000)
    assert [(one.pid, one.quantity, one.since_us) for one in report.unsettled] == [(9, 1_800_000, box.at(90))]


def test_what_was_settled_since_shows_as_settled_and_the_record_stays(box) -> None:
    """`settled` is read by joining the driver's rows; it is not stored (DESIGN section 5)."""
    box.tell_a_morning()
    meter(box.ledger, now_us=box.at(125), writer="box.meter")
    records = list(box.ledger.scan(UsageRecord))
    box.append(box.seen(9, 120, 122, start=90, gone=122), box.settled(9, 90, 1_920_000, read=122), minute=126)
    meter(box.ledger, now_us=box.at(127), writer="box.meter")
    (row,) = [row for row in asked(box, until=120).rows if row.key == ("unit:tts.service",)]
    assert (row.quantity, row.settled, row.observed) == (1_800_000, 1_800_000, 0)
    assert list(box.ledger.scan(UsageRecord)) == records


@pytest.mark.parametrize("metered", [False, True])
@pytest.mark.parametrize("meter_name", ["gpu.context", "gpu.memory", "gpu.busy"])
def test_a_window_that_cuts_hours_is_the_sum_of_its_parts(box, metered: bool, meter_name: str) -> None:
    """Recorded or not, at whatever minute it is cut."""
    box.tell_a_morning()
    if metered:
        meter(box.ledger, now_us=box.at(125), writer="box.meter")
    cuts = [0, 21.5, 40.25, 60, 77.7, 95, 119.9, 130]
    whole = asked(box, 0, 130, meter=meter_name)
    parts = [asked(box, a, b, meter=meter_name) for a, b in pairwise(cuts)]
    for key in by_key(whole):
        assert sum(by_key(part).get(key, 0) for part in parts) == by_key(whole)[key]
    assert sum(sum(line.quantity for line in part.unattributed) for part in parts) == sum(
        line.quantity for line in whole.unattributed
    )


def test_hours_that_are_not_recorded_are_marked_provisional(box) -> None:
    """The first hour is final, the second can still change."""
    box.tell_a_morning()
    assert asked(box).provisional == asked(box).total
    meter(box.ledger, now_us=box.at(65), writer="box.meter")
    report = asked(box)
    assert report.provisional == 1_200_000 + 1_800_000
    assert {row.key: row.provisional for row in report.rows} == {
        ("unit:chat.service",): 1_200_000, ("unit:tts.service",): 1_800_000,
    }  # fmt: skip


def test_watched_and_unknown_fill_the_window(box) -> None:
    """Time nobody looked is a reason with seconds, before the first look and after the last."""
    box.tell_a_morning()
    report = asked(box)
    assert {(span.reason, span.seconds) for span in report.unknown} == {("before-watch", 600), ("watch-gap", 600)}
    assert (report.watched.seconds, report.watched.of) == (6600, 7800)


def test_nothing_known_is_no_zero(box) -> None:
    """No row at all and the time not watched: UNKNOWN, not 0 ms."""
    box.append(box.device(0))
    report = asked(box)
    assert not report.answered
    assert isinstance(report.total, Missing)


def test_memory_and_activity_are_samples(box) -> None:
    """Neither settled nor observed; busy time stands beside context time."""
    box.append(
        box.device(0), box.naming(0, 60), box.looking(0, 60), box.named(7, 1, "chat"),
        box.seen(7, 10, 20, start=10, memory_mib_ms=200 * 600_000, memory_ms=600_000, busy_ms=90_000),
    )  # fmt: skip
    assert by_key(asked(box, meter="gpu.memory")) == {("unit:chat.service",): 120_000}
    (row,) = asked(box).rows
    assert (row.quantity, row.busy_ms) == (600_000, 90_000)


def test_names_are_of_policy_and_of_all_time(box, tmp_path) -> None:
    """A rule applied today names last month's use; a version applied after `now` does not."""
    box.tell_a_morning()
    meter(box.ledger, now_us=box.at(125), writer="box.meter")
    path = tmp_path / "policy.yaml"
    path.write_text("services:\n  - {service: assistant, team: home, match: {unit: 'chat'}}\n", encoding="utf-8")
    apply(lambda: _Open(box.ledger), path, now_us=box.at(200), writer="box.policy")
    assert ("unit:chat.service",) in by_key(asked(box, now=199))
    assert by_key(asked(box, now=201, by=("service", "team")))["assistant", "home"] == 3_600_000


class _Open:
    """The ledger that is open already."""

    def __init__(self, ledger: Any) -> None:
        self._ledger = ledger

    def __enter__(self) -> Any:
        return self._ledger

    def __exit__(self, *reason: object) -> None:
        return None


def test_the_window_is_by_default_from_the_first_evidence_to_now(box) -> None:
    """Whoever asks nothing gets everything; the future is not asked about."""
    box.tell_a_morning()
    now_us = box.at(300)
    assert window(box.ledger, since=None, until=None, now_us=now_us) == (box.at(10), now_us)
    assert window(box.ledger, since=box.at(5), until=box.at(999), now_us=now_us) == (box.at(5), now_us)


def test_the_window_of_imports_ends_with_the_last_dump(box) -> None:
    """Nobody watches on after a dump, so the months since are no gap in a watch."""
    box.append(box.device(0), replace(box.looking(30, 30, every_ms=0), method="import"), role="import")
    assert window(box.ledger, since=None, until=None, now_us=box.at(9999)) == (
        box.at(30), box.at(30) + 1_000_000,
    )  # fmt: skip


def test_the_window_of_an_empty_ledger_is_empty(box) -> None:
    """And is no error: the answer says UNKNOWN."""
    assert window(box.ledger, since=None, until=None, now_us=box.at(5)) == (box.at(5), box.at(5))


@pytest.mark.parametrize(("since", "until"), [(60, 30), (60, 60), (200, None)])
def test_a_window_that_ends_before_it_begins_is_refused(box, since: float, until: float | None) -> None:
    """A typing error must not read as an empty answer."""
    box.tell_a_morning()
    with pytest.raises(Misconfigured) as refused:
        window(
            box.ledger, since=box.at(since), until=None if until is None else box.at(until), now_us=box.at(130)
        )  # fmt: skip
    assert refused.value.code == "empty-window"


@pytest.mark.parametrize(
    ("words", "code"), [({"meter": "gpu.power"}, "unknown-meter"), ({"by": ("planet",)}, "bad-grouping")]
)
def test_what_cannot_be_asked_is_refused(box, words: dict[str, Any], code: str) -> None:
    """With the list of what can."""
    with pytest.raises(Misconfigured) as refused:
        asked(box, **words)
    assert (refused.value.code, bool(refused.value.hint)) == (code, True)


def test_a_policy_document_is_read_once() -> None:
    """However often it is asked for; another document, or another moment of its application, is read."""

    def row(version: int, document: str, applied_at_us: int = 1) -> PolicyVersion:
        return PolicyVersion(
            version=version,
            effective_from_us=version,
            applied_at_us=applied_at_us,
            document=document,
            document_hash="h",
        )

    teams = [f"owners: {{users: {{al: {{team: {team}}}}}}}" for team in ("vision", "nlp")]
    first = understood([row(1, teams[0]), row(2, teams[1])], now_us=1)
    again = understood([row(2, teams[1]), row(1, teams[0]), row(3, teams[0], applied_at_us=2)], now_us=1)
    assert [(since_us, policy.users["al"].team) for since_us, policy in first] == [(1, "vision"), (2, "nlp")]
    assert [policy for _, policy in again] == [policy for _, policy in first]
    assert all(now is before for (_, now), (_, before) in zip(again, first, strict=True))
    ((_, later),) = understood([row(1, teams[0], applied_at_us=2)], now_us=2)
    assert later is not first[0][1]
