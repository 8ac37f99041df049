"""Parquet files: whole under their name or not there, and what they hold comes back as it was."""

from __future__ import annotations

import errno
import sys
from pathlib import Path

import pytest

from gpuledger.errors import Corrupt, Unavailable
from gpuledger.ledger import parquet
from gpuledger.ledger.codec import CODECS
from gpuledger.ledger.kinds import KINDS


def stored(ledger, kind) -> list[tuple[object, ...]]:
    """The rows of a kind as the table has them."""
    table = next(each.table for each in KINDS if each.row is kind)
    return [tuple(row) for row in ledger.connection.execute(table.select())]


def test_every_kind_of_row_comes_back_as_it_was(ledger, make, tmp_path: Path) -> None:
    """All tables, absent readings too, as tuples and as the ledger's own rows."""
    ledger.append(make.one_of_each(), writer="box.agent", at_us=1)
    ledger.seal(2, writer="box.agent")
    for kind, codec in CODECS.items():
        rows = stored(ledger, kind)
        if not rows:
            continue
        name = codec.kind.table.name
        path = tmp_path / f"{name}.parquet"
        written = parquet.write(path, name, [rows[:1], rows[1:]])
        assert (written.rows, written.size) == (len(rows), path.stat().st_size)
        assert written.sha256 == parquet.digest_of(path)
        assert [row for batch in parquet.read(path, name) for row in batch] == rows
        assert sorted(row.ref for row in parquet.read_rows(path, kind)) == sorted(row.ref for row in ledger.scan(kind))


def test_the_same_rows_are_the_same_bytes(tmp_path: Path) -> None:
    """So that a hash tells whether a file says the same."""
    rows = [("w", number, 1, 2, number) for number in range(10)]
    one, other = (
        parquet.write(tmp_path / name, "pass", [[("w", row[1], 1, 2, 3, "{}", 0, 0) for row in rows]]).sha256
        for name in ("a", "b")
    )
    assert one == other


def test_foreign_and_broken_files_are_told_by_name(tmp_path: Path) -> None:
    """Text, another program's Parquet, another table's, a file cut short."""
    pyarrow = parquet.arrow()
    text, foreign, other, cut = (tmp_path / f"{name}.parquet" for name in ("text", "foreign", "other", "cut"))
    text.write_text("hello")
    pyarrow.parquet.write_table(pyarrow.table({"a": [1]}), foreign)
    parquet.write(other, "pass", [[("w", 1, 1, 2, 3, "{}", 0, 0)]])
    parquet.write(cut, "policy", [[("w", 1, 1, 2, 3, "x" * 5000, "h")]])
    cut.write_bytes(cut.read_bytes()[:-9])
    for path in (text, foreign, other, cut, tmp_path / "nothing.parquet"):
        with pytest.raises(Corrupt, match=path.name) as refused:
            list(parquet.read(path, "policy"))
        assert refused.value.code == "lake-damaged"


def test_bytes_that_changed_inside_do_not_pass_as_rows(tmp_path: Path) -> None:
    """Where the column itself cannot be unpacked, it is damage and no crash."""
    path = tmp_path / "p.parquet"
    parquet.write(path, "policy", [[("w", n, 1, n, 3, f"{n}" * 99, "h") for n in range(1, 999)]])
    broken = bytearray(path.read_bytes())
    broken[40:400] = bytes(360)
    path.write_bytes(bytes(broken))
    with pytest.raises(Corrupt, match=r"p\.parquet"):
        list(parquet.read(path, "policy"))


def test_a_full_disk_leaves_what_stood(tmp_path: Path) -> None:
    """The old file, no half one, and an error that says what to do."""
    path = tmp_path / "a.parquet"
    parquet.write(path, "pass", [[("w", 1, 1, 2, 3, "{}", 0, 0)]])
    before = path.read_bytes()

    def fill(temporary: Path) -> int:
        temporary.write_bytes(b"half")
        raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(Unavailable) as refused:
        parquet.put(path, fill)
    assert refused.value.code == "lake-full"
    assert (path.read_bytes(), [each.name for each in tmp_path.iterdir()]) == (before, ["a.parquet"])


def test_without_the_extra_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both libraries."""
    for name, ask in (("pyarrow", parquet.arrow), ("duckdb", parquet.duckdb)):
        monkeypatch.setitem(sys.modules, name, None)
        with pytest.raises(Unavailable, match=name) as refused:
            ask()
        assert (refused.value.code, refused.value.hint) == ("missing-extra", "pip install 'gpuledger[lake]'")
