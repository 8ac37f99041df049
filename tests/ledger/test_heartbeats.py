"""Heartbeats: whose, until when as far as marks go, and how often."""

from __future__ import annotations

from control_plane import ControlPlane
from gpuledger.ledger.engine import bare_cursor
from gpuledger.ledger.heartbeats import first, interval_us, last, last_before, sources
from gpuledger.model.missing import Missing

EVERY_STORE = True


def test_the_last_heartbeat_within_marks(new_place) -> None:
    """What was written later takes no part; who never beat has none."""
    plane = ControlPlane(new_place("plane.db"))
    plane.beat(1, interval_ms=60_000)
    marks = plane.ledger.marks()
    plane.beat(2, interval_ms=30_000)
    plane.beat(1, source="other")
    cursor = bare_cursor(plane.ledger.connection)
    assert sources(cursor) == ["cp", "other"]
    assert last(cursor, "cp", marks) == plane.at(1)
    assert last(cursor, "cp", plane.ledger.marks()) == plane.at(2)
    assert isinstance(last(cursor, "cp", {}), Missing)
    assert (interval_us(cursor, "cp"), interval_us(cursor, "nobody")) == (30_000_000, 0)
    plane.ledger.close()


def test_who_fell_silent_and_since_when(new_place) -> None:
    """By what stands within the marks: alive after the moment, silent before it, not heard of yet."""
    plane = ControlPlane(new_place("plane.db"))
    for hour in (1, 2):
        plane.beat(hour)
    early = plane.ledger.marks()
    plane.beat(6)
    cursor, late = bare_cursor(plane.ledger.connection), plane.ledger.marks()
    assert first(cursor, "cp") == plane.at(1)
    assert last_before(cursor, "cp", plane.at(4), early) == plane.at(2)
    for until_us, marks in ((plane.at(2), early), (plane.at(4), late), (plane.at(4), {})):
        assert isinstance(last_before(cursor, "cp", until_us, marks), Missing)
    assert last_before(cursor, "cp", plane.at(7), late) == plane.at(6)
    plane.ledger.close()
