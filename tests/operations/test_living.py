"""Open contexts: what the last looks saw alive and the driver has not settled."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from gpuledger.accounting.amounts import OpenContext
from gpuledger.model.missing import Missing
from gpuledger.operations.living import open_contexts


def alive(box, since: float = 0, until: float = 200) -> dict[int, OpenContext]:
    window = {"since_us": box.at(since), "until_us": box.at(until), "now_us": box.at(500)}
    found = list(open_contexts(box.ledger, **window))
    assert len({one.pid for one in found}) == len(found)
    return {one.pid: one for one in found}


def imported(box, pid: int, minute: float, **words: Any) -> None:
    look = box.seen(pid, minute, minute, boot_id="", start_ticks=0)
    box.append(replace(look, method="import", **words), minute=minute, role="import")


def test_what_was_missed_or_settled_is_not_open(box) -> None:
    """Gone by a look, or by the driver's row: either ends it."""
    box.append(
        box.device(0),
        box.naming(0, 60),
        box.seen(1, 10, 60, start=10),
        box.seen(2, 10, 40, start=10, gone=40),
        box.seen(3, 10, 60, start=10),
        box.settled(3, 10, 3_000_000, read=60),
    )
    assert set(alive(box)) == {1}


def test_what_lives_is_counted_inside_the_window_only(box) -> None:
    """From the driver's start to the last look, cut at the window's edges."""
    box.append(box.device(0), box.naming(0, 60), box.named(1, 5, "tts", seen=10), box.seen(1, 55, 60, start=10))
    one = alive(box)[1]
    assert (one.since_us, one.quantity, one.process_started_at_us) == (box.at(10), 50 * 60_000, box.at(5))
    assert alive(box, 30, 40)[1].quantity == 10 * 60_000
    assert not alive(box, 100, 200)
    assert not alive(box, 0, 10)


def test_a_context_without_a_start_is_known_by_its_looks(box) -> None:
    """From first sight, over all sightings of it, not only the last."""
    box.append(box.device(0), box.naming(0, 60))
    box.append(*(box.seen(1, minute, minute + 5, accounted="no") for minute in range(10, 60, 5)))
    one = alive(box)[1]
    assert (one.since_us, one.quantity, one.accounted) == (box.at(10), 50 * 60_000, "no")


def test_what_was_alive_when_the_watch_ended_long_before_another_look_is_not_open(box) -> None:
    """A crashed agent said nothing of the end; an hour of later looks without the context does."""
    box.append(box.device(0), box.naming(0, 300), box.seen(1, 10, 20, start=10), box.seen(2, 200, 300, start=200))
    assert set(alive(box, until=400)) == {2}


def test_a_dumps_living_are_open_with_what_the_dump_knows(box) -> None:
    """Each dump is a look of its own: seen once without a start, it lives, and nobody knows for how long."""
    box.append(box.device(0))
    imported(box, 5, 30)
    one = alive(box)[5]
    assert isinstance(one.quantity, Missing)
    assert isinstance(one.since_us, Missing)


def test_one_host_does_not_end_what_lives_on_another(box) -> None:
    """The last look of each host counts for that host."""
    other = {"host": "other", "device": "GPU-other"}
    box.append(box.device(0), box.naming(0, 30), box.seen(1, 10, 30, start=10))
    rows = [replace(box.device(0), **other), replace(box.seen(2, 100, 190, start=100), **other)]
    box.ledger.append(rows, writer="other.agent", at_us=box.at(190))
    assert set(alive(box)) == {1, 2}


def test_an_empty_ledger_has_nothing_open(box) -> None:
    """And says so without an error."""
    assert alive(box) == {}
