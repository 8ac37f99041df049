"""What the ledger still knows of rows that left it."""

from __future__ import annotations

from gpuledger.ledger import archived
from gpuledger.ledger.engine import bare_cursor
from gpuledger.ledger.store import Ledger
from gpuledger.model.archive import Archive
from gpuledger.model.missing import Missing
from gpuledger.model.rows import DriverRecord, Sighting


def row(number: int, before_us: int, writers: str) -> Archive:
    return Archive(
        archived_at_us=9, before_us=before_us, month="2026-05", rows_of="driver", row_count=2, first_us=number,
        last_us=number + 5, writers=writers, rows_hash=str(number), file_name="f", file_hash="h", folder="/srv",
    )  # fmt: skip


def test_nothing_left(tmp_path) -> None:
    """No bound, no numbers, no edges."""
    with Ledger.open(tmp_path / "l.db", mode="append") as ledger:
        assert archived.archived_until(ledger) == 0
        assert archived.numbers(ledger.connection) == {}
        assert archived.edges(ledger.connection, ["driver"], "starts") == []


def test_what_left_is_known_by_bound_numbers_and_edges(tmp_path) -> None:
    """The latest bound; of each writer lowest, highest and how many; the span of a ledger reaches over it."""
    with Ledger.open(tmp_path / "l.db", mode="append") as ledger:
        rows = [row(10, 100, '{"a":[3,9,2]}'), row(40, 200, '{"a":[1,4,2],"b":[7,7,1]}')]
        ledger.append(rows, writer="a.archive", at_us=9)
        connection = ledger.connection
        assert archived.archived_until(ledger) == archived.bound(bare_cursor(connection)) == 200
        assert archived.numbers(connection) == {"a": (1, 9, 4), "b": (7, 7, 1)}
        assert archived.edges(connection, ["driver"], "starts") == [10]
        assert archived.edges(connection, ["driver"], "ends") == [45]
        assert ledger.span_of([DriverRecord]) == (10, 45)
        assert isinstance(ledger.span_of([Sighting])[0], Missing)
        for laid, until_us in ((1, 200), (2, 0)):  # one of them left since they were laid under, and all
            connection.info[archived.LAID] = laid
            assert archived.archived_until(ledger) == until_us


def test_a_number_may_have_left() -> None:
    """Between the lowest and the highest of its writer; what cannot be read holds nothing."""
    assert archived.may_hold('{"a":[3,9,2]}', "a", 5)
    assert not archived.may_hold('{"a":[3,9,2]}', "a", 2)
    assert not archived.may_hold('{"a":[3,9,2]}', "b", 5)
    assert not archived.may_hold("no json", "a", 5)


def test_rows_of_closed_time_are_left_out(tmp_path, make) -> None:
    """Processes that end before the bound are not added, and it is said how many; later ones are."""
    early, late = make.driver(0), make.driver(90)
    with Ledger.open(tmp_path / "l.db", mode="append") as ledger:
        bound_us = early.read_at_us + 30_000_000
        ledger.append([row(10, bound_us, "{}")], writer="a.archive", at_us=9)
        done = ledger.append([early, late], writer="box.agent", at_us=bound_us)
        assert [each.pid for each in done.added] == [late.pid]
        assert [problem.code for problem in done.conflicts] == ["archived"]
