"""Device-hours of a period: the same as ``usage`` tells, remembered or summed anew, with everything that comes late."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from control_plane import ControlPlane
from gpuledger.accounting.owners import Naming
from gpuledger.model.meters import GPU_RESERVED
from gpuledger.model.quotas import Bound, Per, Quota, Scope
from gpuledger.model.rows import PolicyVersion
from gpuledger.operations.blind_reserved import reserved_gaps
from gpuledger.operations.correct import correct
from gpuledger.operations.quota_book import QuotaBook
from gpuledger.operations.usage_reserved import usage_reserved

POLICY = """
owners: {users: {al: {team: vision}, bo: {team: nlp}}}
quotas:
  - {team: "*", device_hours: 10, per: day}
  - {team: "*", device_hours: 10, per: week}
"""


def with_policy(place: Path) -> ControlPlane:
    """A control plane under a policy with a quota of hours."""
    plane = ControlPlane(place)
    row = PolicyVersion(version=1, effective_from_us=0, applied_at_us=0, document=POLICY, document_hash="1")
    plane.ledger.append([row], writer="box.apply", at_us=0)
    return plane


@pytest.fixture
def plane(tmp_path: Path) -> Iterator[ControlPlane]:
    """A control plane under a policy with a quota of hours."""
    made = with_policy(tmp_path / "plane.db")
    yield made
    made.ledger.close()


class Reader:
    """Somebody who goes on asking."""

    def __init__(self, plane: ControlPlane) -> None:
        self.plane = plane
        self.book = QuotaBook(plane.ledger)

    def hours(self, hour: float | Fraction, team: str = "vision", per: Per = Per.WEEK) -> Fraction:
        """Device-hours of the week until an hour, as remembered."""
        now_us = self.plane.at(hour)
        self.book.prepare(now_us)
        while not self.book.catch_up(self.plane.ledger.marks(), now_us):
            self.book.prepare(now_us)
        quota = Quota(scope=Scope.TEAM, name=team, per=per, limit=Fraction(10))
        return self.book.use(Bound(quota=quota, name=team), now_us=now_us, is_asked=False).used

    def told(self, hour: float | Fraction, team: str = "vision") -> Fraction:
        """The same as ``usage`` tells it; the week began at midnight."""
        now_us = self.plane.at(hour)
        if now_us <= self.plane.at(0):
            return Fraction(0)
        report = usage_reserved(
            self.plane.ledger, meter=GPU_RESERVED, by=("team",), since_us=self.plane.at(0), until_us=now_us,
            now_us=now_us,
        )  # fmt: skip
        rows = {row.key[0]: row.quantity for row in report.rows}
        return rows.get(team, Fraction(0)) * Fraction(1, 3600)


def test_open_time_counts_up_to_now(plane) -> None:
    """Recorded or not: each moment once."""
    reader = Reader(plane)
    plane.run("a", 1, None, plane.placement(count=2, share="1/4"))
    assert [reader.hours(hour) for hour in (1, 2, Fraction(5, 2))] == [0, Fraction(1, 2), Fraction(3, 4)]
    plane.meter(3)
    assert reader.hours(4) == reader.told(4) == Fraction(3, 2)
    plane.tell("a", "stopped", 5)
    assert reader.hours(30) == reader.told(30) == 2


def test_late_stops_and_moves_are_seen_at_once(plane) -> None:
    """Before a pass books them, by who has summed already."""
    reader = Reader(plane)
    plane.run("a", 1, None, plane.placement())
    plane.meter(10)
    assert reader.hours(12) == 11
    plane.tell("a", "stopped", 4)
    assert reader.hours(12) == reader.told(12) == 3
    plane.run("b", 6, 8, plane.placement(count=3))
    assert reader.hours(12) == reader.told(12) == 9


def test_corrections_of_final_hours_are_seen(plane) -> None:
    """What comes after two days changes nothing until somebody books it."""
    reader = Reader(plane)
    plane.run("a", 1, 5, plane.placement())
    plane.meter(6)
    assert reader.hours(90) == 4
    plane.tell("a", "stopped", 3)
    assert reader.hours(90) == reader.told(90) == 4
    correct(plane.ledger, why="log", by="al", since_us=plane.at(0), until_us=plane.at(10), is_done=True,
            now_us=plane.at(90), writer="box.correct", pass_writer="box.meter")  # fmt: skip
    assert reader.hours(90) == reader.told(90) == 2


def test_a_silent_controller_counts_to_its_last_beat(plane) -> None:
    """And in full again once it returns, also hours that were closed meanwhile."""
    reader = Reader(plane)
    plane.run("a", 1, None, plane.placement())
    plane.beat(2)
    assert reader.hours(Fraction(5, 2)) == reader.told(Fraction(5, 2)) == 1
    assert reader.hours(8) == reader.told(8) == 1
    plane.beat(9)
    assert reader.hours(10) == reader.told(10) == 8


def test_declared_history_counts_to_what_it_tells(plane) -> None:
    """An import of the past is used time; what it leaves open is not guessed."""
    reader = Reader(plane)
    assert reader.hours(10) == 0
    plane.run("old", 2, 4, plane.placement(), declared=True)
    plane.run("open", 3, None, plane.placement(), declared=True)
    assert reader.hours(10) == reader.told(10) == 2


def test_hours_are_of_the_team_of_their_time(plane) -> None:
    """Who changes teams while a workload runs takes the hours from then on along, and none of those before."""
    reader = Reader(plane)
    plane.run("a", 1, None, plane.placement(), team="")
    assert reader.hours(Fraction(7, 2)) == Fraction(5, 2)
    moved = POLICY.replace("al: {team: vision}", "al: {team: nlp}")
    row = PolicyVersion(
        version=2, effective_from_us=plane.at(4), applied_at_us=plane.at(3), document=moved, document_hash="2"
    )
    plane.ledger.append([row], writer="box.apply", at_us=plane.at(3))
    for hour in (Fraction(7, 2), 4, Fraction(9, 2), 6, 30):
        for team in ("vision", "nlp"):
            assert reader.hours(hour, team) == Reader(plane).hours(hour, team) == reader.told(hour, team)
    assert (reader.hours(6), reader.hours(6, "nlp")) == (3, 2)


def test_other_meters_and_classes_do_not_count(plane) -> None:
    """A fallback to the processor is no device-hour."""
    reader = Reader(plane)
    plane.run("a", 1, 3, plane.placement(class_name="cpu", count=0))
    assert reader.hours(4) == reader.told(4) == 0


def test_a_new_day_begins_with_nothing(plane) -> None:
    """What still runs counts from its midnight on."""
    reader = Reader(plane)
    plane.run("a", 20, None, plane.placement())
    assert reader.hours(Fraction(95, 4), per=Per.DAY) == Fraction(15, 4)
    assert reader.hours(24, per=Per.DAY) == 0
    assert reader.hours(25, per=Per.DAY) == 1
    assert reader.hours(Fraction(51, 2), per=Per.DAY) == Fraction(3, 2)


def test_who_tells_no_more_is_named(plane) -> None:
    """A controller that fell silent, and history that nothing ends: since when, of how many; others are not meant."""
    reader = Reader(plane)
    plane.beat(1)
    for name in "ab":
        plane.run(name, 1, None, plane.placement())
    plane.run("c", 1, None, plane.placement(class_name="cpu", count=0))
    plane.run("d", 1, Fraction(61, 60), plane.placement())
    plane.run("e", 1, None, plane.placement(), user="bo", team="nlp", source="other")

    def silent(hour: float | Fraction, team: str = "vision", of: str = "") -> dict[str, tuple[int, int]]:
        reader.hours(hour, team)
        quota = Quota(scope=Scope.TEAM, name=team, per=Per.WEEK, limit=Fraction(10), class_glob=of)
        return reader.book.silent([Bound(quota=quota, name=team)] * 2, plane.at(hour))

    assert silent(Fraction(61, 60)) == {}
    plane.tell("h", "running", 2, plane.placement(), source="history", declared=True)
    assert silent(4) == {"cp": (plane.at(1), 2), "history": (plane.at(2), 1)}
    assert silent(4, "nlp") == silent(4, of="L4") == {}
    plane.beat(4)
    assert silent(4) == {"history": (plane.at(2), 1)}
    assert silent(9) == {"cp": (plane.at(4), 2), "history": (plane.at(2), 1)}
    plane.beat(9, source="history")
    assert silent(9) == {"cp": (plane.at(4), 2)}


def test_an_import_has_its_hour(plane) -> None:
    """Its beat promises no next one: silent from the end of the hour on, and ``blind`` says the same."""
    reader = Reader(plane)
    plane.run("old", 2, None, plane.placement(), declared=True, source="history")
    plane.beat(Fraction(5, 2), source="history", interval_ms=0)
    plane.run("live", 2, None, plane.placement(), source="told")
    plane.beat(Fraction(5, 2), source="told", interval_ms=0)
    quota = Quota(scope=Scope.TEAM, name="vision", per=Per.WEEK, limit=Fraction(10))
    found = {"history": (plane.at(Fraction(5, 2)), 1)}
    for minute, expected in ((151, {}), (180, {}), (181, found), (600, found)):
        hour = Fraction(minute, 60)
        reader.hours(hour)
        said = reader.book.silent([Bound(quota=quota, name="vision")], plane.at(hour))
        assert {source: each for source, each in said.items() if source == "history"} == expected, minute
        assert said.keys() == ({"history", "told"} if expected else set())
        gaps = reserved_gaps(plane.ledger, since_us=plane.at(0), until_us=plane.at(hour), now_us=plane.at(hour))
        assert {gap.what for gap in gaps if gap.what == "history"} == set(expected)


def test_owners_are_looked_up_of_who_is_silent_only(plane, monkeypatch: pytest.MonkeyPatch) -> None:
    """One source that fell silent for good makes no question cost as much as there are workloads of others."""
    reader = Reader(plane)
    plane.beat(1)
    plane.run("lost", 1, None, plane.placement())
    for number in range(5):
        plane.run(f"w{number}", 1, None, plane.placement(), source="other")
    reader.hours(4)
    looked: list[str] = []
    answerer = Naming.answerer

    def counted(self: Naming, subject: str, at_us: int) -> tuple[str, str, str]:
        looked.append(subject)
        return answerer(self, subject, at_us)

    monkeypatch.setattr(Naming, "answerer", counted)
    quota = Quota(scope=Scope.TEAM, name="vision", per=Per.WEEK, limit=Fraction(10))
    assert reader.book.silent([Bound(quota=quota, name="vision")], plane.at(4)) == {"cp": (plane.at(1), 1)}
    assert len(looked) == 1


steps = st.lists(
    st.tuples(
        st.sampled_from(["provisioning", "running", "running", "stopped", "booting", "meter", "ask", "beat"]),
        st.sampled_from("ab"),
        st.integers(0, 16),
        st.integers(0, 8),
        st.booleans(),
    ),
    max_size=14,
)


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(steps=steps)
def test_who_remembers_tells_what_usage_tells(tmp_path_factory: pytest.TempPathFactory, steps) -> None:
    """Any events in any order, passes and questions between them."""
    plane = with_policy(tmp_path_factory.mktemp("spent") / "plane.db")
    reader = Reader(plane)
    now = Fraction(1)
    for what, name, quarter, ahead, moved in steps:
        now += Fraction(ahead, 4)
        if what == "meter":
            plane.meter(now)
        elif what == "ask":
            for team in ("vision", "nlp"):
                assert reader.hours(now, team) == reader.told(now, team)
        elif what == "beat":
            plane.beat(now)
        else:
            user = "al" if name == "a" else "bo"
            where = plane.placement("n2" if moved else "n1") if what in ("provisioning", "running") else None
            plane.tell(name, what, min(now, Fraction(quarter, 4)), where, user=user, team="")
    for team in ("vision", "nlp"):
        assert reader.hours(now, team) == reader.told(now, team)
        assert Reader(plane).hours(now, team) == reader.told(now, team)
    plane.ledger.close()
