"""Which rows of an append are new: those of a key that neither stands nor came before in the same append."""

from __future__ import annotations

from gpuledger.ledger import Ledger
from gpuledger.ledger.codec import CODECS
from gpuledger.ledger.engine import bare_cursor
from gpuledger.ledger.fresh_rows import Sorted, problems_of, sort_out, take_all
from gpuledger.model.rows import Row

EVERY_STORE = True


def sorted_of(ledger: Ledger, rows: list[Row]) -> Sorted:
    codec = CODECS[type(rows[0])]
    return sort_out(bare_cursor(ledger.connection), codec, rows, codec.encode(rows))


def test_new_known_and_in_conflict(ledger: Ledger, make) -> None:
    """Each with what it differs in, and from which row: one that stands by its reference, else the one before it."""
    ledger.append([make.driver(1), make.driver(2)], writer="box.agent", at_us=1)
    rows = [make.driver(1), make.driver(2, context_ms=7), make.driver(3), make.driver(3), make.driver(3, context_ms=8)]
    found = sorted_of(ledger, rows)
    assert found.rows == [make.driver(3)]
    assert [cells[3] for cells in found.cells] == [found.rows[0].started_at_us]
    assert found.known == 4
    assert found.conflicts == [
        ("driver:box.agent/2", ["context_ms 500, now 7"]), (rows[2], ["context_ms 500, now 8"]),
    ]  # fmt: skip
    numbered = found.codec.number(found.rows, "box.agent", 3)
    problems = problems_of([found], [numbered])
    assert [(each.code, each.where) for each in problems] == [
        ("conflict", "driver:box.agent/2"), ("conflict", "driver:box.agent/3"),
    ]  # fmt: skip
    assert "context_ms 500, now 8" in problems[1].message


def test_rows_without_a_key_and_rows_that_were_looked_at_are_all_new(ledger: Ledger, make) -> None:
    """A pass has no other of its kind; whoever judged has looked."""
    passes = [make.metering_pass(), make.metering_pass()]
    assert sorted_of(ledger, passes).rows == passes
    ledger.append([make.driver(1)], writer="box.agent", at_us=1)
    rows, codec = [make.driver(1)], CODECS[type(make.driver(1))]
    found = take_all(bare_cursor(ledger.connection), codec, rows, codec.encode(rows))
    assert (found.rows, found.known, found.are_ours) == (rows, 0, True)


def test_more_keys_than_one_statement_takes(ledger: Ledger, make) -> None:
    """Hundreds of them are looked up in parts."""
    ledger.append([make.watch(number) for number in range(0, 700, 7)], writer="box.agent", at_us=1)
    found = sorted_of(ledger, [make.watch(number) for number in range(700)])
    assert (len(found.rows), found.known) == (600, 100)
