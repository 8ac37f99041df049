"""The operation behind copy; its parts are tried in tests/ledger/test_copying.py."""

from __future__ import annotations

import pytest

from gpuledger.errors import Misconfigured, Unavailable
from gpuledger.operations.copy import copy
from gpuledger.operations.verify import verify


def test_a_box_moves_to_a_server(box, postgres) -> None:
    """What it answers is the same there, and verify says the same of both."""
    box.tell_a_morning()
    box.ledger.seal(box.at(125), writer="box.agent")
    target = postgres.new_ledger()
    told: list[tuple[int, int]] = []
    report = copy(str(box.place), target, progress=lambda done, of: told.append((done, of)))
    assert told[-1] == (report.rows, report.rows)
    from gpuledger.ledger import Ledger

    with Ledger.open(target, mode="read") as there:
        ours, theirs = verify(box.ledger, now_us=box.at(130)), verify(there, now_us=box.at(130))
    assert ours.ok
    assert (ours.checks, ours.counts, ours.root) == (theirs.checks, theirs.counts, theirs.root)


def test_both_ends_are_not_one(box, postgres) -> None:
    """Whatever its spelling."""
    with pytest.raises(Misconfigured) as caught:
        copy(str(box.place), f"sqlite:///{box.place}")
    assert caught.value.code == "same-ledger"
    place = postgres.new_ledger()
    with pytest.raises(Misconfigured):
        copy(place, place.replace("postgresql:", "postgres:"))


def test_nothing_is_copied_from_nothing(tmp_path, postgres) -> None:
    """A source that is not there is said, and no target is made."""
    with pytest.raises(Unavailable) as caught:
        copy(str(tmp_path / "none.db"), str(tmp_path / "new.db"))
    assert caught.value.code == "no-ledger"
    assert list(tmp_path.iterdir()) == []
