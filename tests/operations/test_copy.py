"""The operation behind copy; its parts are tried in tests/ledger/test_copying.py."""

from __future__ import annotations

import psycopg
import pytest

from gpuledger.errors import Misconfigured, Unavailable
from gpuledger.ledger.owning import bring_up_to_date
from gpuledger.ledger.places import place_of
from gpuledger.operations.copy import copy
from gpuledger.operations.verify import verify
from postgres_server import APPLICATION, OWNER


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


def test_both_ends_are_not_one(box, postgres, tmp_path, monkeypatch) -> None:
    """Whatever its spelling: a URL, a link, a path from where one stands."""
    (tmp_path / "linked.db").symlink_to(box.place)
    monkeypatch.chdir(box.place.parent)
    for spelling in (f"sqlite:///{box.place}", str(tmp_path / "linked.db"), box.place.name):
        with pytest.raises(Misconfigured) as caught:
            copy(str(box.place), spelling)
        assert caught.value.code == "same-ledger"
    place = postgres.new_ledger()
    for spelling in (place.replace("postgresql:", "postgres:"), f"{place}?application_name=copy"):
        with pytest.raises(Misconfigured):
            copy(place, spelling)


def test_two_schemas_of_one_database_are_two_ledgers(box, postgres) -> None:
    """As two databases are."""
    box.append(box.device())
    place = postgres.new_ledger()
    owner = postgres.url(OWNER, place.rpartition("/")[2])
    with psycopg.connect(owner, autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA second AUTHORIZATION {OWNER}")
    second = f"{owner}?options=-csearch_path%3Dsecond"
    bring_up_to_date(place_of(second), applications=[APPLICATION])
    assert copy(str(box.place), place).rows == copy(place, f"{place}?options=-csearch_path%3Dsecond").rows == 1


def test_nothing_is_copied_from_nothing(tmp_path, postgres) -> None:
    """A source that is not there is said, and no target is made."""
    with pytest.raises(Unavailable) as caught:
        copy(str(tmp_path / "none.db"), str(tmp_path / "new.db"))
    assert caught.value.code == "no-ledger"
    assert list(tmp_path.iterdir()) == []
