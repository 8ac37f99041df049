"""Appending: what is new gets a number and a link; what is known adds nothing; what differs is reported."""

from __future__ import annotations

import gc
import time
from dataclasses import replace
from pathlib import Path

import pytest

from gpuledger.errors import Refused, Unavailable
from gpuledger.ledger import Ledger, verify_ledger
from gpuledger.ledger.chain import GENESIS
from gpuledger.model.identity import IdentityText
from gpuledger.model.missing import Missing
from gpuledger.model.rows import DeviceEvent, DriverRecord, Pass, Row, UsageRecord, Watch

EVERY_STORE = True


class _Stranger(Row):
    """No row of the ledger."""


def links(bare, place: Path) -> list[tuple]:
    """The links as they stand."""
    with bare(place) as connection:
        return connection.execute("SELECT * FROM link ORDER BY writer, first_number").fetchall()


def test_numbers_count_over_all_tables_in_the_order_of_the_chain(ledger: Ledger, make) -> None:
    """Whatever order the rows are given in, evidence comes before records, and each kind keeps its order."""
    appended = ledger.append(make.one_of_each(), writer="box.agent", at_us=1)
    kinds = [row.kind for row in appended.added]
    assert kinds == [
        "device", "watch", "identity", "driver", "sighting", "placement", "event", "hold", "expected", "record",
        "correction", "pass", "policy",
    ]  # fmt: skip
    assert [row.number for row in appended.added] == list(range(1, 14))
    more = ledger.append([make.watch(2), make.watch(1), make.device(1)], writer="box.agent", at_us=2)
    assert [row.ref for row in more.added] == ["device:box.agent/14", "watch:box.agent/15", "watch:box.agent/16"]
    assert more.added[1:] == (make.watch(2), make.watch(1))
    assert ledger.marks() == {"box.agent": 16}


def test_each_writer_has_its_own_chain(ledger: Ledger, place: Path, make, bare) -> None:
    """Numbers and links of two writers do not meet."""
    ledger.append([make.watch(1)], writer="box.agent", at_us=1)
    ledger.append([make.watch(2), make.watch(3)], writer="box.import", at_us=2)
    ledger.append([make.watch(4)], writer="box.agent", at_us=3)
    found = links(bare, place)
    assert [link[:4] for link in found] == [("box.agent", 1, 1, 1), ("box.agent", 2, 2, 3), ("box.import", 1, 2, 2)]
    assert [link[4] for link in found] == [GENESIS, found[0][5], GENESIS]
    assert ledger.heads() == {"box.agent": (2, found[1][5]), "box.import": (2, found[2][5])}


def test_what_is_known_adds_nothing_and_no_link(ledger: Ledger, place: Path, make, bare) -> None:
    """The same evidence again, from anybody, leaves the ledger as it is."""
    rows = [row for row in make.one_of_each() if not isinstance(row, Pass)]
    ledger.append(rows, writer="box.agent", at_us=1)
    again = ledger.append(rows, writer="box.import", at_us=2)
    assert (again.added, again.known, again.conflicts) == ((), len(rows), ())
    assert len(links(bare, place)) == 1
    assert ledger.append([], writer="box.agent", at_us=3).added == ()
    assert len(links(bare, place)) == 1


def test_every_pass_is_its_own(ledger: Ledger, make) -> None:
    """A pass has no key but its number: it happened."""
    assert len(ledger.append([make.metering_pass()] * 2, writer="w", at_us=1).added) == 2
    assert ledger.append([make.metering_pass()], writer="w", at_us=1).known == 0


def test_duplicates_inside_a_batch_count_once(ledger: Ledger, make) -> None:
    """One reading may list the same row twice."""
    appended = ledger.append([make.driver(1), make.driver(2), make.driver(1)], writer="w", at_us=1)
    assert (len(appended.added), appended.known, appended.conflicts) == (2, 1, ())


def test_another_reading_time_or_method_is_no_conflict(ledger: Ledger, make) -> None:
    """The same driver row read later by another tool is the same row."""
    ledger.append([make.driver()], writer="w", at_us=1)
    later = make.driver(read_at_us=make.noon + 10**9, method="nvidia-smi", driver_epoch="e")
    again = ledger.append([later], writer="w", at_us=2)
    assert (again.known, again.conflicts) == (1, ())


def test_other_figures_under_a_known_key_are_a_conflict(ledger: Ledger, make) -> None:
    """The first stays; the difference is said, with the row that stands."""
    ledger.append([make.driver()], writer="w", at_us=1)
    again = ledger.append([make.driver(context_ms=501, gpu_percent=Missing("x"))], writer="w", at_us=2)
    assert (again.added, again.known) == ((), 1)
    (problem,) = again.conflicts
    assert (problem.code, problem.where) == ("conflict", "driver:w/1")
    assert "context_ms 500, now 501; gpu_percent 0, now not recorded" in problem.message
    assert [row.context_ms for row in ledger.scan(DriverRecord)] == [500]


def test_a_conflict_inside_one_batch_names_the_first(ledger: Ledger, make) -> None:
    """Also when both come together."""
    rows = [make.watch(), make.driver(), make.driver(context_ms=9)]
    (problem,) = ledger.append(rows, writer="w", at_us=1).conflicts
    assert problem.where == "driver:w/2"


def test_two_servers_may_record_one_hour(ledger: Ledger, make) -> None:
    """The same figure recorded at another time is no conflict; another figure is one."""
    ledger.append([make.record()], writer="a.meter", at_us=1)
    same = ledger.append([make.record(recorded_at_us=make.noon + 5, evidence_hash="other")], writer="b.meter", at_us=2)
    assert (same.known, same.conflicts) == (1, ())
    other = ledger.append([make.record(quantity=11)], writer="b.meter", at_us=3)
    assert [problem.where for problem in other.conflicts] == ["record:a.meter/1"]


def test_a_bug_in_one_row_adds_none(ledger: Ledger, make) -> None:
    """A float among good rows: a TypeError, and nothing of the batch is there."""
    with pytest.raises(TypeError, match="float"):
        ledger.append([make.watch(1), make.device(), replace(make.watch(2), living=0.5)], writer="w", at_us=1)
    with pytest.raises(TypeError, match="not rows of the ledger"):
        ledger.append([make.watch(1), _Stranger()], writer="w", at_us=1)
    with pytest.raises(ValueError, match="needs a name"):
        ledger.append([make.watch(1)], writer="", at_us=1)
    with pytest.raises(OverflowError):
        ledger.append([make.device(), make.watch(1, living=2**63)], writer="w", at_us=1)
    assert (ledger.count(Watch), ledger.count(DeviceEvent), ledger.marks()) == (0, 0, {})
    assert ledger.append([make.watch(1)], writer="w", at_us=1).added[0].number == 1
    assert verify_ledger(ledger) == []


def test_text_is_kept_to_the_last_character(ledger: Ledger, make, engine: str) -> None:
    """Quotes, other scripts and a long line come back as they went, and hash as they stand."""
    details = ["'; DROP TABLE watch; --", "日本語 \U0001f680", "x" * 100_000, "\r\n\t", ":since_us ? %s $1 \\"]
    ledger.append([make.watch(n, detail=text) for n, text in enumerate(details)], writer="w'\"", at_us=1)
    assert [row.detail for row in ledger.scan(Watch)] == details
    assert verify_ledger(ledger) == []


@pytest.mark.parametrize("odd", ["a\0b", "a\ud800b"])
def test_what_one_store_could_not_keep_no_store_takes(ledger: Ledger, make, engine: str, odd: str) -> None:
    """Refused by name, with all of its batch: else a ledger could not be copied, and texts would end early in SQL."""
    with pytest.raises(Refused, match=r"watch\.detail") as refused:
        ledger.append([make.watch(1), make.watch(2, detail=odd)], writer="w", at_us=1)
    assert refused.value.code == "row-not-text"
    assert ledger.marks() == {}


def test_a_reader_cannot_append(ledger: Ledger, place: Path, make) -> None:
    """A ledger opened to read refuses by name."""
    with Ledger.open(place, mode="read") as reader:
        for forbidden in (
            lambda: reader.append([make.watch()], writer="w", at_us=1),
            lambda: reader.seal(1, writer="w"),
            lambda: reader.forget(["k"]),
        ):
            with pytest.raises(Refused, match="opened to read"):
                forbidden()


def test_four_thousand_rows_are_appended_at_once(ledger: Ledger, make) -> None:
    """A whole nvidia-smi dump, first and again, each well under a second."""
    rows = [make.driver(number) for number in range(4000)]
    started = time.process_time()
    assert len(ledger.append(rows, writer="w", at_us=1).added) == 4000
    assert ledger.append(rows, writer="w", at_us=1).known == 4000
    assert time.process_time() - started < 0.6


def test_large_keys_are_looked_up_in_pieces(ledger: Ledger, make) -> None:
    """A known row is found wherever it stands in a long batch."""
    ledger.append([make.record(number) for number in (0, 199, 200, 201, 1033)], writer="w", at_us=1)
    appended = ledger.append([make.record(number) for number in range(1034)], writer="w", at_us=2)
    assert (len(appended.added), appended.known) == (1029, 5)
    assert ledger.count(UsageRecord) == 1034


def test_made_rows_are_made_once_nobody_else_can_judge(place: Path, make) -> None:
    """What they rest on is read inside the transaction: of two that count, none misses the other."""
    with Ledger.open(place, mode="append") as one, Ledger.open(place, mode="append", busy_timeout_ms=1) as other:

        def count() -> list[Row]:
            with pytest.raises(Unavailable, match=r"busy|another"):
                other.append_made(lambda: [make.watch(9)], writer="b.agent", at_us=1)
            return [make.watch(one.count(Watch))]

        appended = [one.append_made(count, writer="a.agent", at_us=1) for _ in range(2)]
        assert [row.ref for each in appended if each for row in each.added] == ["watch:a.agent/1", "watch:a.agent/2"]


def test_made_rows_may_be_none_or_refused(ledger: Ledger, make) -> None:
    """None, or an error, and nothing is written, also of a text; the next append is as if nothing had been."""

    def refuse() -> list[Row]:
        ledger.key_of(IdentityText(user="al"))
        raise Refused("no", "not this one")

    assert ledger.append_made(lambda: None, writer="a.agent", at_us=1) is None
    with pytest.raises(Refused, match="not this one"):
        ledger.append_made(refuse, writer="a.agent", at_us=1)
    assert ledger.append_made(list, writer="a.agent", at_us=1) is not None
    assert (ledger.marks(), ledger.texts()) == ({}, {})
    ledger.append([make.watch(1)], writer="a.agent", at_us=2)
    assert ledger.marks() == {"a.agent": 1}


def test_rows_said_to_be_new_are_guarded(ledger: Ledger, make) -> None:
    """Who says so wrongly is refused by the table itself, and all of the call with it."""
    ledger.append([make.watch(1)], writer="a.agent", at_us=1)
    with pytest.raises(Refused) as caught:
        ledger.append_made(lambda: [make.watch(2), make.watch(1)], writer="a.agent", at_us=2, are_new=True)
    assert caught.value.code == "append-only"
    assert ledger.count(Watch) == 1
    added = ledger.append_made(lambda: [make.watch(2)], writer="a.agent", at_us=2, are_new=True)
    assert added is not None
    assert [row.ref for row in added.added] == ["watch:a.agent/2"]


def test_nothing_is_collected_while_others_wait(ledger: Ledger, make) -> None:
    """Python's garbage waits until the transaction has ended, also a failed one; whoever collects none is let be."""
    seen: list[bool] = []

    def made() -> list[Row]:
        seen.append(gc.isenabled())
        return [make.watch(len(seen))]

    def failing() -> list[Row]:
        seen.append(gc.isenabled())
        raise ValueError("ours")

    assert gc.isenabled()
    ledger.append_made(made, writer="box.agent", at_us=1)
    assert gc.isenabled()
    with pytest.raises(ValueError, match="ours"):
        ledger.append_made(failing, writer="box.agent", at_us=1)
    assert gc.isenabled()
    gc.disable()
    try:
        ledger.append_made(made, writer="box.agent", at_us=2)
        assert not gc.isenabled()
    finally:
        gc.enable()
    assert seen == [False, False, False]
