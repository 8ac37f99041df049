"""The rule of reserved time is written twice, as one statement and as plain Python: the two must agree."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

import gpuledger.metering
from gpuledger.metering.lifecycles import intervals
from gpuledger.model.lifecycle import State
from gpuledger.model.missing import Missing
from gpuledger.model.moments import HOUR_US
from gpuledger.model.workload_rows import WorkloadEvent

STATEMENT = (Path(gpuledger.metering.__file__).parent / "reserved.sql").read_text(encoding="utf-8")
HOURS = 5
TABLES = """
CREATE TABLE workload_event (writer, number, workload, event_id, sequence, state, at_us, recorded_at_us, source,
    is_declared, subject, requested_class, placement);
CREATE TABLE metered_workload (workload, from_us, since_us, until_us);
CREATE TABLE metered_mark (writer, number);
CREATE TABLE metered_hour (start_us, end_us);
CREATE TABLE metered_beat (source, until_us);
INSERT INTO metered_workload VALUES ('w', 0, 0, 9000000000000);
INSERT INTO metered_mark VALUES ('a', 1000);
"""

steps = st.lists(
    st.tuples(
        st.sampled_from([*State, State.RUNNING, State.RUNNING, State.PROVISIONING, State.STOPPED]),
        st.integers(0, 2 * HOURS - 1),
        st.sampled_from(["", "p", "q"]),
    ),
    max_size=10,
)


@settings(max_examples=200, deadline=None)
@given(steps)
def test_the_statement_and_the_plain_rule_agree(told: list[tuple[State, int, str]]) -> None:
    """Any events in any order, also at the same moment: the same amounts by hour and placement."""
    events = [
        WorkloadEvent(
            workload="w", event_id=str(number), sequence=number, state=state.value, at_us=half * HOUR_US // 2,
            recorded_at_us=0, source="ctl", subject="k", placement=placement,
        )
        for number, (state, half, placement) in enumerate(told, 1)
    ]  # fmt: skip
    expected: dict[tuple[int, str], int] = {}
    for stay in intervals(events):
        until_us = HOURS * HOUR_US if isinstance(stay.until_us, Missing) else stay.until_us
        for hour_us in range(0, HOURS * HOUR_US, HOUR_US):
            amount_us = min(until_us, hour_us + HOUR_US) - max(stay.since_us, hour_us)
            if amount_us > 0:
                key = (hour_us, stay.placement)
                expected[key] = expected.get(key, 0) + amount_us
    assert stated(events) == expected


def test_the_hour_of_an_edge_is_found_before_1970_too() -> None:
    """Remainders of negative numbers are negative: an interval over the turn of 1970 has the time of both its ends."""
    events = [
        WorkloadEvent(
            workload="w", event_id=str(number), sequence=number, state=state, at_us=at_us, recorded_at_us=0,
            source="ctl", subject="k", placement="p",
        )
        for number, (state, at_us) in enumerate(
            [("provisioning", -2 * HOUR_US), ("running", -HOUR_US - 7), ("stopped", 5)], 1
        )
    ]  # fmt: skip
    assert stated(events, first_hour=-3) == {(-2 * HOUR_US, "p"): 7, (-HOUR_US, "p"): HOUR_US, (0, "p"): 5}


def stated(events: list[WorkloadEvent], *, first_hour: int = 0) -> dict[tuple[int, str], int]:
    """What the statement says of some hours, from one of them on."""
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.executescript(TABLES.replace("'w', 0, 0", f"'w', {first_hour * HOUR_US}, {first_hour * HOUR_US}"))
        hours = [(hour * HOUR_US, (hour + 1) * HOUR_US) for hour in range(first_hour, HOURS)]
        connection.executemany("INSERT INTO metered_hour VALUES (?, ?)", hours)
        rows = [
            ("a", e.sequence, e.workload, e.event_id, e.sequence, e.state, e.at_us, 0, e.source, 0, e.subject, "",
             e.placement)
            for e in events
        ]  # fmt: skip
        connection.executemany(f"INSERT INTO workload_event VALUES ({', '.join('?' * 13)})", rows)
        found = connection.execute(STATEMENT, {"until_us": HOURS * HOUR_US})
        names = [column[0] for column in found.description]
        amounts: dict[tuple[int, str], int] = {}
        for row in found:
            told = dict(zip(names, row, strict=True))
            key = (told["hour_us"], told["placement"])
            amounts[key] = amounts.get(key, 0) + told["amount_us"]
        return amounts
