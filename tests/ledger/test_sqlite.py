"""The SQLite engine: what may be opened, by whom, and what each fault is called."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from gpuledger.errors import GpuledgerError, Misconfigured, Unavailable
from gpuledger.ledger import Ledger, sqlite, sqlite_file
from gpuledger.ledger.schema import SCHEMA_VERSION, WATCH
from gpuledger.model.rows import Watch

NOBODY = 65534


@contextmanager
def as_other_user() -> Iterator[None]:
    """Act as a user who owns none of these files; only root can, anybody else already has to obey modes."""
    if os.geteuid() != 0:
        yield
        return
    os.setegid(NOBODY)
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)
        os.setegid(0)


@pytest.fixture
def open_place() -> Iterator[Path]:
    """A ledger's path in a directory that any user can enter."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        yield Path(name) / "ledger.db"
        Path(name).chmod(0o755)


def code_of(path: Path, mode: str) -> str:
    """The code of the error that opening raises."""
    with pytest.raises(GpuledgerError) as caught:
        Ledger.open(path, mode=mode).close()
    assert caught.value.hint
    assert str(path) in caught.value.message
    return caught.value.code


def test_opening_creates_the_file_and_its_parents(tmp_path: Path) -> None:
    """Mode 0640 whatever the umask: a group may read, others may not."""
    path = tmp_path / "var" / "lib" / "ledger.db"
    before = os.umask(0o077)
    try:
        Ledger.open(path, mode="append").close()
    finally:
        os.umask(before)
    assert path.stat().st_mode & 0o777 == 0o640
    assert [each.name for each in path.parent.iterdir()] == ["ledger.db"]


def test_a_url_with_strange_letters_is_one_file(tmp_path: Path) -> None:
    """Question marks, hashes, percents and blanks in a path are part of the path."""
    path = tmp_path / "a b?c#d%41.db"
    Ledger.open(f"sqlite:///{path}", mode="append").close()
    assert [each.name for each in tmp_path.iterdir()] == [path.name]
    Ledger.open(path, mode="read").close()


def test_no_ledger_is_said_and_none_is_made(tmp_path: Path) -> None:
    """Reading what is not there creates nothing."""
    assert code_of(tmp_path / "none.db", "read") == "no-ledger"
    assert code_of(tmp_path / "no" / "dir.db", "read") == "no-ledger"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "content", [b"x", b"hello world\n" * 100, b"SQLite format 3\0", b"\0" * 4096, b"SQLite format 4\0" + b"\0" * 4080]
)
def test_what_is_no_database_is_damaged_and_untouched(place: Path, content: bytes) -> None:
    """Text, zeros, a header cut short: never opened, never written."""
    place.write_bytes(content)
    assert {code_of(place, mode) for mode in ("read", "append")} == {"ledger-damaged"}
    assert place.read_bytes() == content
    assert [each.name for each in place.parent.iterdir()] == [place.name]


@pytest.mark.parametrize("journal", ["delete", "wal"])
@pytest.mark.parametrize("application", [0, 0x42424242])
def test_another_applications_file_is_untouched(place: Path, journal: str, application: int) -> None:
    """An SQLite file that is no ledger is left byte for byte, whatever its journal."""
    connection = sqlite3.connect(place)
    connection.execute(f"PRAGMA journal_mode = {journal}")
    connection.execute(f"PRAGMA application_id = {application}")
    connection.execute("CREATE TABLE precious (x)")
    connection.commit()
    before = place.read_bytes()
    assert {code_of(place, mode) for mode in ("read", "append")} == {"not-a-ledger"}
    connection.close()
    if journal == "delete":
        assert place.read_bytes() == before
    before = place.read_bytes()
    assert {code_of(place, mode) for mode in ("read", "append")} == {"not-a-ledger"}
    assert place.read_bytes() == before
    assert [each.name for each in place.parent.iterdir()] == [place.name]


def test_an_empty_database_may_become_a_ledger(place: Path) -> None:
    """A file with nothing in it, as a creation that died leaves it, is filled."""
    connection = sqlite3.connect(place)
    connection.execute("PRAGMA journal_mode = wal")
    connection.close()
    assert code_of(place, "read") == "no-ledger"
    Ledger.open(place, mode="append").close()
    Ledger.open(place, mode="read").close()


@pytest.mark.parametrize("in_log", [False, True])
def test_a_newer_ledger_is_untouched(ledger: Ledger, place: Path, in_log: bool) -> None:
    """Tables of a later version: said, with the way out, and not one byte changes, also while its log is open."""
    ledger.close()
    connection = sqlite3.connect(place, isolation_level=None)
    connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION + 1}")
    connection.execute("CREATE TABLE later (x)")
    if not in_log:
        connection.close()
    files = {path: path.read_bytes() for path in place.parent.iterdir() if not path.name.endswith("-shm")}
    for mode in ("read", "append"):
        assert code_of(place, mode) == "ledger-newer"
    assert {path: path.read_bytes() for path in files} == files
    connection.close()


def test_an_older_ledger_waits_for_its_writer(ledger: Ledger, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A reader never migrates."""
    ledger.close()
    monkeypatch.setattr(sqlite_file, "SCHEMA_VERSION", SCHEMA_VERSION + 1)
    assert code_of(place, "read") == "ledger-older"


def test_an_older_sqlite_is_said(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """STRICT tables need 3.37."""
    monkeypatch.setattr(sqlite3, "sqlite_version_info", (3, 36, 0))
    with pytest.raises(Unavailable, match=r"3\.37 or newer"):
        Ledger.open(place, mode="append")


def test_a_reader_without_write_permission(open_place: Path, make) -> None:
    """It reads while the agent runs and when it does not, sees what was appended, and creates no file."""
    writer = Ledger.open(open_place, mode="append")
    writer.append([make.watch(1)], writer="w", at_us=1)
    for each in open_place.parent.iterdir():
        each.chmod(0o444)  # what the writer has open it may still write, whoever it is
    open_place.parent.chmod(0o555)
    try:
        names = {path.name for path in open_place.parent.iterdir()}
        with as_other_user(), Ledger.open(open_place, mode="read") as reader:
            assert reader.count(Watch) == 1
            writer.append([make.watch(2)], writer="w", at_us=2)
            assert reader.count(Watch) == 2
        assert {path.name for path in open_place.parent.iterdir()} == names
    finally:
        open_place.parent.chmod(0o755)
        writer.close()
    open_place.parent.chmod(0o555)
    with as_other_user(), Ledger.open(open_place, mode="read") as reader:
        assert reader.count(Watch) == 2
    assert [path.name for path in open_place.parent.iterdir()] == [open_place.name]


def test_a_reader_after_a_killed_writer(open_place: Path) -> None:
    """The log that a killed writer left is read, without permission to write and without changing it."""
    code = """
import os, sys
from gpuledger.ledger import Ledger
from gpuledger.model.rows import Watch
ledger = Ledger.open(sys.argv[1], mode="append")
ledger.append([Watch(host="h", device="", source="process", method="poll", interval_ms=1, since_us=1, until_us=2,
                     status="ok")], writer="w", at_us=1)
os._exit(9)
"""
    assert subprocess.run([sys.executable, "-c", code, str(open_place)], check=False).returncode == 9
    left = {path.name: path.read_bytes() for path in open_place.parent.iterdir()}
    assert set(left) == {open_place.name + suffix for suffix in ("", "-wal", "-shm")}
    for path in open_place.parent.iterdir():
        path.chmod(0o444)
    open_place.parent.chmod(0o555)
    with as_other_user(), Ledger.open(open_place, mode="read") as reader:
        assert reader.count(Watch) == 1
    open_place.parent.chmod(0o755)
    assert {path.name for path in open_place.parent.iterdir()} == set(left)
    for path in open_place.parent.iterdir():
        path.chmod(0o640)
    with Ledger.open(open_place, mode="append") as ledger:
        assert ledger.count(Watch) == 1


def test_a_reader_leaves_no_file_in_the_agents_way(ledger: Ledger, place: Path) -> None:
    """Also one that could: root looking at an agent's ledger must not own its log."""
    ledger.close()
    with Ledger.open(place, mode="read") as reader:
        assert reader.count(Watch) == 0
        assert [path.name for path in place.parent.iterdir()] == [place.name]


def test_a_torn_read_is_never_an_answer(ledger: Ledger, place: Path, make) -> None:
    """A reader without locks, overtaken by a writer, says so instead of mixing old and new."""
    ledger.close()
    with Ledger.open(place, mode="read") as reader:
        assert reader.count(Watch) == 0
        with Ledger.open(place, mode="append") as writer:
            writer.append([make.watch()], writer="w", at_us=1)
        with pytest.raises(Unavailable, match="was written while it was read") as caught:
            reader.count(Watch)
        assert caught.value.code == "ledger-busy"
        with pytest.raises(Unavailable):
            list(reader.scan(Watch))


def test_the_owner_of_a_read_only_ledger_is_told_when_it_opens(open_place: Path) -> None:
    """Not at the first append; and no empty log is left beside it."""
    open_place.parent.chmod(0o777)
    with as_other_user():
        Ledger.open(open_place, mode="append").close()
        open_place.chmod(0o444)
        assert code_of(open_place, "append") == "ledger-permission"
        assert [path.name for path in open_place.parent.iterdir()] == [open_place.name]
        Ledger.open(open_place, mode="read").close()
    assert [path.name for path in open_place.parent.iterdir()] == [open_place.name]


def test_permission_is_asked_for_by_name(open_place: Path) -> None:
    """A file or directory that this user may not use."""
    Ledger.open(open_place, mode="append").close()
    open_place.chmod(0o600 if os.geteuid() == 0 else 0o000)
    with as_other_user():
        assert {code_of(open_place, mode) for mode in ("read", "append")} == {"ledger-permission"}
    there = sorted(open_place.parent.iterdir())
    open_place.parent.chmod(0o555)
    with as_other_user():
        assert code_of(open_place.parent / "new.db", "append") == "ledger-permission"
        assert code_of(open_place.parent / "sub" / "new.db", "append") == "ledger-permission"
    assert sorted(open_place.parent.iterdir()) == there


def test_a_file_where_a_directory_should_be(tmp_path: Path) -> None:
    """A parent that is a file is an input-output fault with its reason."""
    (tmp_path / "file").touch()
    assert code_of(tmp_path / "file" / "ledger.db", "append") == "ledger-io"
    assert code_of(tmp_path / "file" / "ledger.db", "read") == "ledger-io"


def test_a_held_ledger_is_busy(place: Path, ledger: Ledger, make, bare) -> None:
    """Another writer that does not let go: said after the time-out, and nothing is added."""
    with bare(place) as other, Ledger.open(place, mode="append", busy_timeout_ms=50) as waiting:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(Unavailable, match="held by another writer") as caught:
            waiting.append([make.watch()], writer="w", at_us=1)
        assert caught.value.code == "ledger-busy"
        assert waiting.count(Watch) == 0
        other.execute("ROLLBACK")
        assert len(waiting.append([make.watch()], writer="w", at_us=1).added) == 1


def test_a_full_file_is_full(ledger: Ledger, make) -> None:
    """No room: nothing of the batch is added, and with room again the same batch goes in."""
    ledger.append([make.watch()], writer="w", at_us=1)
    run = ledger.connection.exec_driver_sql
    pages = run("PRAGMA page_count").scalar_one()
    run(f"PRAGMA max_page_count = {pages + 2}")
    rows = [make.driver(number) for number in range(3000)]
    with pytest.raises(Unavailable, match="no room") as caught:
        ledger.append(rows, writer="w", at_us=2)
    assert caught.value.code == "ledger-full"
    assert ledger.marks() == {"w": 1}
    run("PRAGMA max_page_count = 1073741823")
    assert len(ledger.append(rows, writer="w", at_us=3).added) == 3000


def test_the_settings_of_a_connection(ledger: Ledger) -> None:
    """What keeps acknowledged rows through a power cut and deleted text deleted."""
    expected = {"synchronous": 2, "foreign_keys": 1, "secure_delete": 1, "trusted_schema": 0, "journal_mode": "wal"}
    for name, value in expected.items():
        assert ledger.connection.exec_driver_sql(f"PRAGMA {name}").scalar_one() == value, name


def test_misplaced_urls_are_wrong_usage(tmp_path: Path) -> None:
    """Opening passes on what places say."""
    with pytest.raises(Misconfigured):
        Ledger.open("mysql://h/d", mode="append")
    with pytest.raises(Misconfigured):
        Ledger.open(tmp_path, mode="append")


@pytest.mark.parametrize("statement", [sa.select(WATCH), "SELECT * FROM watch"])
def test_a_stream_that_is_let_go_after_its_ledger_is_silent(
    place: Path, make, caplog: pytest.LogCaptureFixture, statement: Any
) -> None:
    """Whoever failed halfway says so once; there is no second error about a cursor."""
    with Ledger.open(place, mode="append") as ledger:
        ledger.append([make.watch(number) for number in range(5)], writer="w", at_us=1)
        rows = sqlite.stream(ledger.connection, statement, {}, 2)
        assert len(next(rows)) == 2
    rows.close()
    assert caplog.records == []
