"""The last hours of one workload: its runs, and their whole seconds; the same as the statement says."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from control_plane import ControlPlane
from gpuledger.ledger.reserved import reading
from gpuledger.metering.open_time import Run, runs, seconds
from gpuledger.model.lifecycle import State
from gpuledger.model.missing import Missing
from gpuledger.model.moments import HOUR_US, SECOND_US
from gpuledger.model.workload_rows import WorkloadEvent

OPEN = Missing("still open")


def life(text: str) -> list[WorkloadEvent]:
    """``1:provisioning@p 2:running``: events in the order in which they were learned of; each has its own subject."""
    events = []
    for sequence, word in enumerate(text.split(), 1):
        at, state = word.split(":")
        state, _, placement = state.partition("@")
        events.append(
            WorkloadEvent(
                workload="w", event_id=str(sequence), sequence=sequence, state=state, at_us=int(at), recorded_at_us=0,
                source="ctl", subject=f"s{sequence}", placement=placement,
            )
        )  # fmt: skip
    return events


def run(since: int, until: int | Missing, placement: str = "p", subject: str = "s1", *, declared: bool = False) -> Run:
    """A run of the source ``ctl``."""
    return Run(since_us=since, until_us=until, placement=placement, subject=subject, source="ctl", is_declared=declared)


@pytest.mark.parametrize(
    ("told", "found"),
    [
        ("1:provisioning@p 2:running 5:stopped", [run(2, 5)]),
        ("1:provisioning@p 2:running", [run(2, OPEN)]),
        ("1:provisioning@p 2:running 3:booting 4:running 5:failed", [run(2, 3), run(4, 5)]),
        ("1:provisioning@p 2:running 3:running@q 5:stopped", [run(2, 3), run(3, 5, "q", "s3")]),
        ("1:provisioning@p 2:running 3:stopped 4:running", [run(2, 3)]),
        ("1:provisioning 2:running", [run(2, OPEN, "")]),
        ("1:running", [run(1, OPEN, "")]),
        ("1:pending 2:running", [run(2, OPEN, "")]),
        ("1:pending 2:provisioning@p 2:running 2:stopped", []),
        ("", []),
    ],
)
def test_a_run_goes_from_running_to_the_next_event_that_stands(told: str, found: list[Run]) -> None:
    """On the placement, and of the subject, of its own admission."""
    assert runs(life(told)) == found


def test_a_run_is_counted_to_what_is_known() -> None:
    """Its end, the last heartbeat of its source, or now; declared history to its start."""
    assert run(2, 5).end({}, 9) == 5
    assert run(2, 5).end({}, 4) == 4
    assert run(2, OPEN).end({}, 9) == 9
    assert run(2, OPEN).end({"ctl": 6}, 9) == 6
    assert run(2, OPEN).end({"ctl": 60}, 9) == 9
    assert run(2, OPEN, declared=True).end({}, 9) == 2


def test_each_hour_is_rounded_down_once() -> None:
    """Two halves of a second within an hour are a second, over its edge none."""
    half = SECOND_US // 2
    within = [run(0, half), run(10 * half, 11 * half)]
    assert list(seconds(within, since_us=0, until_us=HOUR_US, beats={})) == [("p", "s1", 0, 1)]
    across = [run(HOUR_US - half, HOUR_US + half)]
    assert [part[2:] for part in seconds(across, since_us=0, until_us=2 * HOUR_US, beats={})] == [(0, 0), (HOUR_US, 0)]
    assert list(seconds([run(0, HOUR_US)], since_us=HOUR_US, until_us=2 * HOUR_US, beats={})) == []


def test_what_began_after_the_last_heartbeat_has_no_time_yet(tmp_path: Path) -> None:
    """And takes none away from what ran before it within the same hour, neither here nor in the statement."""
    plane = ControlPlane(tmp_path / "plane.db")
    where = plane.placement()
    plane.run("w", Fraction(1, 4), Fraction(1, 2), where)
    plane.beat(Fraction(1, 2))
    plane.run("w", Fraction(3, 4), None, where)
    with reading(plane.ledger, plane.ledger.marks()) as read:
        read.want(["w"], plane.at(0))
        times = list(read.times([(plane.at(0), plane.at(1))], until_us=plane.at(1)))
        found = runs(read.events("w"))
    assert sum(time.seconds for time in times) == 900
    beats = {"cp": plane.at(Fraction(1, 2))}
    assert sum(part[3] for part in seconds(found, since_us=plane.at(0), until_us=plane.at(1), beats=beats)) == 900
    plane.ledger.close()


steps = st.lists(
    st.tuples(st.sampled_from([*State, State.RUNNING, State.PROVISIONING]), st.integers(0, 11), st.booleans(),
              st.sampled_from(["al", "bo"]), st.booleans()),
    max_size=9,
)  # fmt: skip


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(steps=steps, beat=st.one_of(st.none(), st.integers(0, 13)))
def test_it_agrees_with_the_statement(tmp_path_factory: pytest.TempPathFactory, steps, beat: int | None) -> None:
    """Any events in any order: the same seconds of the same placement, subject and hour."""
    place: Path = tmp_path_factory.mktemp("open") / "plane.db"
    plane = ControlPlane(place)
    for state, half, placed, user, declared in steps:
        where = plane.placement(f"n{half}") if placed else None
        plane.tell("w", state, half / 2, where, user=user, declared=declared)
    if beat is not None:
        plane.beat(beat / 2)
    until_us = plane.at(7)
    hours = [(plane.at(hour), plane.at(hour + 1)) for hour in range(7)]
    with reading(plane.ledger, plane.ledger.marks()) as read:
        read.want(["w"], plane.at(0))
        expected = Counter(
            {
                (time.placement, time.subject, time.hour_us): time.seconds
                for time in read.times(hours, until_us=until_us)
            }
        )
        events = read.events("w")
        beats = {source: at_us for source, at_us in read.beats.items() if not isinstance(at_us, Missing)}
    found = Counter(
        {(where, subject, hour_us): amount for where, subject, hour_us, amount in
         seconds(runs(events), since_us=plane.at(0), until_us=until_us, beats=beats)}
    )  # fmt: skip
    assert +found == +expected
    plane.ledger.close()
