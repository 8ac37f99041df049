"""Where a window of reserved time ends when nobody says so."""

from __future__ import annotations

from control_plane import ControlPlane
from gpuledger.operations.told_until import told_until
from gpuledger.operations.usage import window

EVERY_STORE = True


def test_history_ends_with_itself_and_a_control_plane_lives(new_place) -> None:
    """With the dump's own time where its import gives one; who asks for what came after it gets that."""
    plane = ControlPlane(new_place("plane.db"))
    assert told_until(plane.ledger, now_us=plane.at(50)) == plane.at(50)
    plane.run("old", 0, 2, plane.placement(), declared=True, source="slurm")
    assert told_until(plane.ledger, now_us=plane.at(50)) == plane.at(2)
    plane.beat(3, source="slurm")
    assert window(plane.ledger, since=None, until=None, now_us=plane.at(50), reserved=True) == (
        plane.at(0), plane.at(3),
    )  # fmt: skip
    assert window(plane.ledger, since=plane.at(9), until=None, now_us=plane.at(50), reserved=True) == (
        plane.at(9), plane.at(50),
    )  # fmt: skip
    plane.run("live", 10, None, plane.placement("n2"))
    assert told_until(plane.ledger, now_us=plane.at(50)) == plane.at(50)
    assert window(plane.ledger, since=None, until=None, now_us=plane.at(50)) == (plane.at(0), plane.at(50))
    plane.ledger.close()
