"""What is remembered for quotas catches up with whoever writes, and reads anew only where it must."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from gpuledger.ledger import Ledger
from gpuledger.model.lifecycle import Placement
from gpuledger.model.quotas import Bound, Per, Quota, Scope
from gpuledger.operations.meter import meter
from gpuledger.operations.quota_book import QuotaBook, book_of, forget_book
from quota_desk import Desk

EVERY_STORE = True

TEAM = Bound(quota=Quota(scope=Scope.TEAM, name="vision", per=Per.AT_ONCE, limit=3), name="vision")  # type: ignore[arg-type]


@pytest.fixture
def desk(new_place) -> Iterator[Desk]:
    made = Desk(new_place("l.db"), "{team: vision, devices: 3}\n{team: vision, device_hours: 9, per: day}")
    yield made
    made.ledger.close()


def test_others_writes_are_seen_by_their_marks(desk) -> None:
    """Of another connection, of this one's transitions, and of its own admissions."""
    book = QuotaBook(desk.ledger)
    book.prepare(desk.at(0))
    with Ledger.open(desk.ledger.place, mode="append") as other:
        desk.ask("w", "al", ledger=other)
    assert book.use(TEAM, now_us=desk.at(1)).used == 0
    assert book.catch_up(desk.ledger.marks(), desk.at(1))
    assert book.use(TEAM, now_us=desk.at(1)).used == 1
    assert book.use(TEAM, now_us=desk.at(1), without="w").used == 0
    desk.tell("v", "provisioning", 2, Placement(class_name="L4"), user="bo")
    assert book.catch_up(desk.ledger.marks(), desk.at(2))
    assert book.use(TEAM, now_us=desk.at(2)).used == 2
    assert book.owners(Per.AT_ONCE, desk.at(2)) == {("user", "al"), ("user", "bo"), ("team", "vision")}


def test_what_makes_it_read_anew(desk) -> None:
    """Another policy, late events for closed hours, a clock far behind, another period; a pass does not."""
    book = QuotaBook(desk.ledger)
    assert not book.catch_up(desk.ledger.marks(), desk.at(0))
    book.prepare(desk.at(0))
    assert book.catch_up(desk.ledger.marks(), desk.at(0))
    meter(desk.ledger, now_us=desk.at(1), writer="box.meter")
    assert book.catch_up(desk.ledger.marks(), desk.at(1))
    desk.tell("w", "provisioning", -90, Placement(class_name="L4"), user="al", now=2)
    assert not book.catch_up(desk.ledger.marks(), desk.at(2))
    book.prepare(desk.at(2))
    assert book.catch_up(desk.ledger.marks(), desk.at(2))
    assert not book.catch_up(desk.ledger.marks(), desk.at(-30))
    book.prepare(desk.at(2))
    desk.apply("{team: vision, devices: 1}", minute=3)
    assert not book.catch_up(desk.ledger.marks(), desk.at(3))
    book.prepare(desk.at(3))
    assert book.catch_up(desk.ledger.marks(), desk.at(3 + 60 * 100))


def test_hours_of_a_new_period_are_summed_when_it_begins(desk) -> None:
    """After midnight, and after more than a day without a question."""
    book = QuotaBook(desk.ledger)
    book.prepare(desk.at(0))
    assert book.catch_up(desk.ledger.marks(), desk.at(14 * 60 + 1))
    assert not book.catch_up(desk.ledger.marks(), desk.at(40 * 60))
    book.prepare(desk.at(40 * 60))
    assert book.catch_up(desk.ledger.marks(), desk.at(40 * 60))


def test_a_ledger_has_one_book_until_it_is_forgotten(desk) -> None:
    """As of what is remembered for transitions."""
    book = book_of(desk.ledger)
    assert book_of(desk.ledger) is book
    forget_book(desk.ledger)
    forget_book(desk.ledger)
    assert book_of(desk.ledger) is not book
