"""Sums over records and corrections, open contexts and merged watches, each checked against plain Python."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuledger.ledger import Ledger, UsageSum, sums
from gpuledger.model.missing import Missing
from gpuledger.model.moments import DAY_US, HOUR_US
from gpuledger.model.rows import UsageCorrection, UsageRecord, Watch

EVERY_STORE = True


def test_a_sum_tells_what_was_settled_and_what_was_corrected(ledger: Ledger, make) -> None:
    """Gone and open contexts are in the quantity, and in no part of it; corrections are in both."""
    ledger.append(
        [
            make.record(quantity=10),
            make.record(context="gone", quantity=20),
            make.record(context="7@1000", quantity=40),
            make.record(context="8@?55", quantity=80),
            make.record(meter="gpu.busy", quantity=160),
            make.record(subject="unattributed:watch-gap", quantity=5),
            make.correction(delta=-3),
            make.correction(2, delta=1),
        ],
        writer="w",
        at_us=1,
    )
    assert ledger.sum_usage("gpu.context", by=["subject"]) == [
        UsageSum(key=("k",), quantity=148, settled=10, corrected=-2),
        UsageSum(key=("unattributed:watch-gap",), quantity=5, settled=5, corrected=0),
    ]
    assert ledger.sum_usage("gpu.context") == [UsageSum(key=(), quantity=153, settled=15, corrected=-2)]
    assert ledger.sum_usage("gpu.memory") == []
    assert ledger.sum_usage("gpu.memory", by=["host"]) == []


def test_sums_are_cut_at_hours(ledger: Ledger, make) -> None:
    """The hours that begin in the window, and no other."""
    ledger.append([make.record(n, quantity=10**n) for n in range(4)], writer="w", at_us=1)
    (found,) = ledger.sum_usage("gpu.context", make.noon + 1, make.noon + 3 * HOUR_US)
    assert found.quantity == 110
    (found,) = ledger.sum_usage("gpu.context", make.noon, None)
    assert found.quantity == 1111


def test_a_correction_alone_is_a_group(ledger: Ledger, make) -> None:
    """A subject that was only corrected is listed with what was booked."""
    ledger.append([make.correction(subject="s", delta=4)], writer="w", at_us=1)
    assert ledger.sum_usage("gpu.context", by=["subject", "day_us"]) == [
        UsageSum(key=("s", make.noon - make.noon % DAY_US), quantity=4, settled=0, corrected=4)
    ]


def test_an_unknown_group_is_a_bug(ledger: Ledger) -> None:
    """Nothing but the listed parts gets into the statement."""
    with pytest.raises(ValueError, match="cannot be summed by"):
        ledger.sum_usage("gpu.context", by=["subject; DROP TABLE watch"])


quantities = st.integers(-50, 50)
a_record = st.tuples(
    st.integers(0, 30), st.sampled_from("ab"), st.sampled_from("xy"), st.sampled_from(["settled", "gone", "1@5"])
)
groupings = st.lists(st.sampled_from(["subject", "host", "device", "hour_us", "day_us"]), unique=True, max_size=3)


@settings(max_examples=40, deadline=None)
@given(
    st.dictionaries(a_record, quantities, max_size=12),
    st.lists(st.tuples(a_record, quantities), max_size=5),
    groupings,
    st.integers(0, 20),
    st.integers(0, 20),
)
def test_sums_agree_with_adding_rows_up(tmp_path_factory, records, deltas, by, since, length) -> None:
    """Any records, any corrections, any grouping, any window."""
    base = {"meter": "m", "host": "h", "evidence_count": 1, "evidence_hash": "e", "recorded_at_us": 1}
    rows = [
        UsageRecord(**base, hour_us=hour * HOUR_US, subject=subject, device=device, context=context, quantity=quantity)
        for (hour, subject, device, context), quantity in records.items()
    ]
    corrections = [
        UsageCorrection(**base, hour_us=hour * HOUR_US, subject=subject, device=device, correction_number=number,
                        delta=delta, reason="late-evidence")
        for number, ((hour, subject, device, _), delta) in enumerate(deltas)
    ]  # fmt: skip
    window = (since * HOUR_US, (since + length) * HOUR_US)
    expected: dict[tuple, list[int]] = {}
    for row in [*rows, *corrections]:
        if not window[0] <= row.hour_us < window[1]:
            continue
        parts = {"subject": row.subject, "host": row.host, "device": row.device, "hour_us": row.hour_us,
                 "day_us": row.hour_us - row.hour_us % DAY_US}  # fmt: skip
        sums = expected.setdefault(tuple(parts[part] for part in by), [0, 0, 0])
        amount = row.delta if isinstance(row, UsageCorrection) else row.quantity
        sums[0] += amount
        if isinstance(row, UsageCorrection):
            sums[2] += amount
        elif row.context == "settled":
            sums[1] += amount
    with Ledger.open(tmp_path_factory.mktemp("sums") / "l.db", mode="append") as ledger:
        ledger.append([*rows, *corrections], writer="w", at_us=1)
        found = ledger.sum_usage("m", *window, by=by)
    assert {row.key: [row.quantity, row.settled, row.corrected] for row in found} == expected
    assert [row.key for row in found] == sorted(row.key for row in found)


def test_an_open_context_is_settled_by_the_drivers_row(ledger: Ledger, make) -> None:
    """By host, device, pid and start; a context without a start, or another's row, settles nothing."""
    start = make.driver().started_at_us
    records = [
        make.record(context=f"100@{start}", quantity=1),
        make.record(1, context=f"100@{start}", quantity=20),
        make.record(2, context=f"101@{start}", quantity=300),
        make.record(context="100@?5", quantity=4000),
        make.record(context="settled", quantity=50_000),
        make.record(context=f"100@{start}", device="GPU-b", quantity=600_000),
        make.record(context=f"100@{start}", host="other", quantity=7_000_000),
        make.record(context=f"100@{start}", meter="gpu.busy", quantity=80_000_000),
    ]
    ledger.append(records, writer="m", at_us=1)
    assert ledger.settled_since("gpu.context") == {}
    ledger.append([make.driver()], writer="box.agent", at_us=2)
    assert ledger.settled_since("gpu.context") == {(): 21}
    assert ledger.settled_since("gpu.context", by=["host", "device"]) == {("box", "GPU-a"): 21}
    assert ledger.settled_since("gpu.context", make.noon, make.noon + HOUR_US) == {(): 1}


def test_what_was_settled_since_has_the_keys_of_the_sum(ledger: Ledger, make) -> None:
    """Subjects, hours and days are keys too; nothing is settled of a meter without records."""
    start = make.driver().started_at_us
    records = [
        make.record(number, context=f"100@{start}", device=device, subject=subject, quantity=10**number)
        for number in range(3)
        for device, subject in (("GPU-a", "s"), ("GPU-a", "t"), ("GPU-b", "s"))
    ]
    ledger.append([*records, make.record(context="settled", subject="u"), make.driver()], writer="w", at_us=1)
    window = ("gpu.context", make.noon, make.noon + 2 * HOUR_US)
    assert ledger.settled_since(*window, by=["subject", "hour_us"]) == {
        (subject, make.noon + number * HOUR_US): 10**number for number in range(2) for subject in ("s", "t")
    }
    assert ledger.settled_since(*window, by=[]) == {(): 22}
    day_us = make.noon - make.noon % DAY_US
    assert ledger.settled_since(*window, by=["subject", "day_us"]) == {("s", day_us): 11, ("t", day_us): 11}
    assert ledger.settled_since("gpu.busy", None, None, by=[]) == {}
    assert ledger.settled_since("gpu.busy", None, None, by=["subject"]) == {}


def test_watched_spans_hold_the_first_look_and_the_window(ledger: Ledger, make) -> None:
    """What the driver's source saw of a device and of its host as a whole, merged; other devices are left out."""
    rows = [
        make.watch(0),
        *(make.watch(number, interval_ms=number) for number in (10, 11, 12)),
        make.watch(13, status="ring-overflow"),
        make.watch(11, device=""),
        make.watch(11, device="GPU-b"),
        make.watch(11, source="process"),
    ]
    ledger.append(rows, writer="w", at_us=1)
    spans = ledger.watched_spans([("box", "GPU-a")], make.noon + 10_500_000, make.noon + 60_000_000)
    seen = {
        (row.device, (row.since_us - make.noon) // 1_000_000, (row.until_us - make.noon) // 1_000_000, row.status)
        for row in spans
    }
    assert seen == {
        ("GPU-a", 0, 1, "ok"),
        ("GPU-a", 10, 13, "ok"),
        ("GPU-a", 13, 14, "ring-overflow"),
        ("", 11, 12, "ok"),
    }


def test_open_records_take_their_own_index(ledger: Ledger, place, bare) -> None:
    """The few open ones are not looked for among all records."""
    with bare(place) as connection:
        plan = connection.execute(
            "EXPLAIN QUERY PLAN SELECT * FROM usage_record AS r WHERE r.meter = ? AND r.hour_us >= ? AND r.hour_us < ? "
            "AND r.context LIKE '%@%'", ("m", 0, 1)
        ).fetchall()  # fmt: skip
    assert "usage_record_open" in str(plan)


def test_remarks_are_those_of_unknown_looks_at_devices(ledger: Ledger, make) -> None:
    """By time; what a look that saw says of itself is no remark, nor is anything of who names."""
    said = {
        1: {"status": "empty-ledger", "detail": "opened by pid 7"},
        2: {"status": "empty-ledger"},
        3: {"detail": "accounting enabled"},
        4: {"status": "idle", "detail": "proven idle"},
        5: {"status": "driver-unreachable", "device": "", "detail": "the GPU is lost"},
        6: {"status": "events-lost", "source": "process", "device": "", "method": "ebpf", "detail": "3 events lost"},
    }
    ledger.append([make.watch(n, **words) for n, words in reversed(said.items())], writer="w", at_us=1)
    told = sums.remarks(ledger.connection, None, None)
    found = [(remark.device, remark.status, remark.detail) for remark in told]
    assert found == [("GPU-a", "empty-ledger", "opened by pid 7"), ("", "driver-unreachable", "the GPU is lost")]
    second = make.noon + 1_000_000
    assert [remark.since_us for remark in sums.remarks(ledger.connection, second, second + 1)] == [second]


def test_touching_watches_become_one(ledger: Ledger, make) -> None:
    """A day of five-minute spans is one span; a gap, another status or another interval starts a new one."""
    spans = [
        make.watch(0, new_rows=2, living=1),
        make.watch(1, living=3),
        make.watch(2, status="ring-overflow"),
        make.watch(3),
        make.watch(5),
        make.watch(6, interval_ms=100),
        make.watch(0, device="GPU-b"),
        make.watch(0, source="process", device="", method="poll"),
    ]
    ledger.append(list(reversed(spans)), writer="w", at_us=1)

    def seconds(row: Watch) -> tuple:
        since, until = ((moment - make.noon) // 1_000_000 for moment in (row.since_us, row.until_us))
        return row.device, since, until, row.status, row.interval_ms

    found = ledger.coalesced_watches()
    assert [seconds(row) for row in found] == [
        ("GPU-a", 0, 2, "ok", 1000),
        ("GPU-a", 2, 3, "ring-overflow", 1000),
        ("GPU-a", 3, 4, "ok", 1000),
        ("GPU-a", 5, 6, "ok", 1000),
        ("GPU-a", 6, 7, "ok", 100),
        ("GPU-b", 0, 1, "ok", 1000),
    ]
    assert (found[0].readings, found[0].new_rows, found[0].living) == (2, 2, 3)
    assert [row.device for row in ledger.coalesced_watches(source="process")] == [""]
    assert len(ledger.coalesced_watches(make.noon + 5_500_000, make.noon + 6_000_000)) == 1


marks = st.tuples(st.sampled_from("ab"), st.integers(0, 30), st.integers(0, 6), st.sampled_from(["ok", "events-lost"]))


@settings(max_examples=40, deadline=None)
@given(
    st.lists(marks, max_size=12, unique=True),
    st.one_of(st.none(), st.integers(0, 30)),
    st.one_of(st.none(), st.integers(0, 36)),
)
def test_merging_agrees_with_merging_by_hand(tmp_path_factory, spans, since, until) -> None:
    """Any overlaps, nested spans and moments, in any window."""
    rows = [
        Watch(host="h", device=device, source="driver", method="nvml", interval_ms=1, since_us=start,
              until_us=start + length, status=status)
        for device, start, length, status in spans
    ]  # fmt: skip
    expected: list[list] = []
    for device, start, length, status in sorted(spans, key=lambda each: (each[0], each[3], each[1], each[1] + each[2])):
        end = start + length
        if until is not None and start >= until:
            continue
        if since is not None and not (end > since or start >= since):
            continue
        last = expected[-1] if expected else None
        if last and last[:2] == [device, status] and start <= last[3]:
            last[3] = max(last[3], end)
            last[4] += 1
        else:
            expected.append([device, status, start, end, 1])
    with Ledger.open(tmp_path_factory.mktemp("watches") / "l.db", mode="append") as ledger:
        ledger.append(rows, writer="w", at_us=1)
        found = ledger.coalesced_watches(since, until)
    assert sorted([row.device, row.status, row.since_us, row.until_us, row.readings] for row in found) == sorted(
        expected
    )


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 6), st.sampled_from(["ok", "watch-gap"])), max_size=12))
def test_watched_spans_cover_what_the_rows_cover(rows: list[tuple[int, int, str]]) -> None:
    """Unbroken, paused, overlapping or of several reasons: a moment is covered by the spans if by the rows."""
    with TemporaryDirectory() as folder, Ledger.open(Path(folder) / "ledger.db", mode="append") as ledger:
        watches = [
            Watch(host="box", device="GPU-a", source="driver", method="nvml", interval_ms=1, since_us=since,
                  until_us=since + length, status=status)
            for since, length, status in rows
        ]  # fmt: skip
        ledger.append(watches, writer="w", at_us=1)
        spans = ledger.watched_spans([("box", "GPU-a")], 0, 100)
    for status in ("ok", "watch-gap"):
        expected = {at for since, length, of in rows if of == status for at in range(since, since + length)}
        assert {at for row in spans if row.status == status for at in range(row.since_us, row.until_us)} == expected


def test_hours_meters_and_sums_below_nothing(tmp_path: Path) -> None:
    """What verify asks of records: where they begin and end, whose meters they are, and which add up to less than 0."""
    record = UsageRecord(
        meter="gpu.context", hour_us=3_600_000_000, host="h", device="d", subject="s", context="settled", quantity=5,
        evidence_count=1, evidence_hash="0", recorded_at_us=0,
    )  # fmt: skip
    taken = UsageCorrection(
        meter="gpu.busy", hour_us=7_200_000_000, host="h", device="d", subject="s", correction_number=1, delta=-2,
        reason="late-evidence", evidence_count=1, evidence_hash="0", recorded_at_us=0,
    )  # fmt: skip
    with Ledger.open(tmp_path / "sums.db", mode="append") as ledger:
        connection = ledger.connection
        assert all(isinstance(edge, Missing) for edge in sums.hours_of(connection, ["gpu.context"]))
        fine = replace(taken, meter="gpu.context", hour_us=3_600_000_000, delta=-5)
        ledger.append([record, taken, fine], writer="w", at_us=0)
        assert sums.hours_of(connection, ["gpu.context", "gpu.busy"]) == (3_600_000_000, 7_200_000_000)
        assert sums.recorded_meters(connection) == ["gpu.context"]
        assert sums.negative_sums(connection) == [("gpu.busy", 7_200_000_000, "h", "d", "s", -2)]
