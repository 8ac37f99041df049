"""The rule in three parts: the same rows as the whole statement."""

from __future__ import annotations

from fractions import Fraction

from control_plane import ControlPlane
from gpuledger.ledger.metered import parts, rule
from gpuledger.ledger.reserved import Reading, make_relations, reading
from gpuledger.model.moments import HOUR_US

EVERY_STORE = True


def test_the_parts_are_the_rule(new_place) -> None:
    """Run one after the other they give what the statement gives alone."""
    plane = ControlPlane(new_place("plane.db"))
    plane.run("a", 0, 5, plane.placement())
    plane.tell("b", "running", Fraction(1, 3))
    plane.tell("b", "running", Fraction(1, 2), plane.placement("n2"))
    plane.run("b", Fraction(3, 2), None, plane.placement("n3"))
    hours = [(plane.at(hour), plane.at(hour) + HOUR_US) for hour in range(6)]
    make_relations(plane.ledger)
    with plane.ledger.snapshot():
        read = Reading(plane.ledger, plane.ledger.marks())
        read.want_living(plane.at(0), plane.at(6))
        read.derive(hours, until_us=plane.at(6))
        read.cursor.execute(parts()[2])
        apart = sorted(read.cursor.fetchall())
        read.cursor.execute(rule(), {"until_us": plane.at(6)})
        assert sorted(read.cursor.fetchall()) == apart
    assert len(apart) > 8
    plane.ledger.close()


def test_who_is_heard_again_is_asked_by_what_stood_then(new_place) -> None:
    """A stop that is told while a pass looks is beyond its marks: what ran until the heartbeat is asked for all the
    same, for the next pass asks from the stop on."""
    plane = ControlPlane(new_place("plane.db"))
    plane.run("a", 0, None, plane.placement())
    plane.beat(1)
    seen = plane.ledger.marks()
    plane.beat(4)
    marks = plane.ledger.marks()
    plane.tell("a", "stopped", Fraction(9, 2))
    with reading(plane.ledger, marks) as read:
        read.want_heard(seen, until_us=plane.at(5))
        assert read.wanted() == {"a"}
    plane.ledger.close()


def test_a_silence_is_asked_for_once_however_long(new_place, monkeypatch) -> None:
    """A source that retired, and one that came later: what follows a silence is looked for once, of each hour not."""
    plane = ControlPlane(new_place("plane.db"))
    plane.run("a", 0, None, plane.placement(), source="old")
    plane.beat(1, source="old")
    marks = plane.ledger.marks()
    plane.tell("a", "stopped", 9, source="old")
    plane.beat(30, source="new")
    asked: list[int] = []
    parts_of_day = [(plane.at(hour), plane.at(hour + 1), marks) for hour in reversed(range(24))]
    with reading(plane.ledger, plane.ledger.marks()) as read:
        see = read._see
        monkeypatch.setattr(read, "_see", lambda seen: (asked.append(1), see(seen)))
        read.want_late(marks, parts_of_day)
        assert read.wanted() == {"a"}
        assert read.first_hour() == plane.at(1)
    assert len(asked) == 2
    plane.ledger.close()
