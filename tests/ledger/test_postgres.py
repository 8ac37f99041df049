"""The PostgreSQL engine: who may open what, whom a writer waits for, and what each fault is called."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import psycopg
import pytest

from gpuledger.errors import GpuledgerError, Unavailable
from gpuledger.ledger import Ledger, postgres, verify_ledger
from gpuledger.ledger.places import Server
from gpuledger.ledger.schema import SCHEMA_VERSION
from gpuledger.model.identity import IdentityText
from gpuledger.model.rows import Row, Watch
from postgres_server import APPLICATION, OWNER, PASSWORD


@pytest.fixture
def place(postgres) -> str:
    """The URL of an empty ledger, as the application."""
    return str(postgres.new_ledger())


@pytest.fixture
def owner(postgres, place: str) -> Iterator[psycopg.Connection]:
    """Its owner."""
    with psycopg.connect(postgres.url(OWNER, place.rpartition("/")[2]), autocommit=True) as connection:
        yield connection


def refusal(place: str, mode: str) -> GpuledgerError:
    """What opening raises; it has a hint, names the place, and keeps the password to itself."""
    with pytest.raises(GpuledgerError) as caught:
        Ledger.open(place, mode=mode).close()
    assert caught.value.hint
    assert "postgresql://" in caught.value.message
    for told in (caught.value.message, caught.value.hint):
        assert PASSWORD not in told
        assert "a%20secret" not in told
    return caught.value


@pytest.mark.parametrize("mode", ["read", "append"])
def test_a_database_without_tables_waits_for_its_owner(postgres, mode: str) -> None:
    """The application is told what its owner types; it makes nothing itself."""
    place = postgres.url(APPLICATION, postgres.new_database())
    error = refusal(place, mode)
    assert (error.code, type(error)) == ("ledger-outdated", Unavailable)
    assert "no tables" in error.message
    assert "gpuledger migrate" in error.hint


@pytest.mark.parametrize("mode", ["read", "append"])
def test_tables_of_another_version_are_left_alone(place: str, owner, mode: str) -> None:
    """Older ones wait for the owner, newer ones for a newer program."""
    owner.execute("UPDATE gpuledger_version SET version_num = '0001'")
    error = refusal(place, mode)
    assert error.code == "ledger-outdated"
    assert f"version 1, this program needs {SCHEMA_VERSION}" in error.message
    owner.execute(f"UPDATE gpuledger_version SET version_num = '{SCHEMA_VERSION + 1:04}'")
    assert refusal(place, mode).code == "ledger-newer"


def test_a_server_that_is_not_there(postgres) -> None:
    """No server, no such database, no such role, a wrong password: unreachable, in the server's words."""
    url = postgres.url(APPLICATION, "postgres")
    for wrong in (
        url.replace(str(postgres.port), "1"),
        postgres.url(APPLICATION, "nowhere"),
        postgres.url("nobody", "postgres"),
        url.replace("a%20secret", "another"),
    ):
        error = refusal(wrong, "read")
        assert (error.code, error.exit_status) == ("ledger-unreachable", 5)


@pytest.mark.parametrize("url", ["postgresql://h/d?nosuchword=1", "postgresql://u:a b@h/d"])
def test_a_url_that_cannot_be_read(url: str) -> None:
    """libpq's own words, without the password."""
    with pytest.raises(GpuledgerError) as caught:
        Ledger.open(url, mode="read")
    assert caught.value.code == "bad-ledger-place"
    assert "a b" not in caught.value.message


def test_who_may_only_read(place: str, owner) -> None:
    """Told when it opens to append, and reads all the same."""
    owner.execute(f"REVOKE INSERT ON link FROM {APPLICATION}")
    assert refusal(place, "append").code == "ledger-permission"
    with Ledger.open(place, mode="read") as ledger:
        assert ledger.count(Watch) == 0
    owner.execute(f"REVOKE SELECT ON link FROM {APPLICATION}")
    assert refusal(place, "read").code == "ledger-permission"


def test_another_encoding_is_refused(postgres) -> None:
    """Some texts could not be stored."""
    with postgres.superuser() as connection:
        connection.execute(f"CREATE DATABASE latin OWNER {OWNER} ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0")
    assert refusal(postgres.url(OWNER, "latin"), "append").code == "not-utf8"


def test_a_missing_driver_is_said(tmp_path: Path) -> None:
    """Without psycopg: which extra to install."""
    (tmp_path / "psycopg.py").write_text("raise ModuleNotFoundError('No module named psycopg', name='psycopg')")
    code = """
import sys
from gpuledger.cli.main import main
main(["usage", "--ledger", "postgresql://u@h/d"])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60,
                          env={"PYTHONPATH": ":".join([str(tmp_path), *sys.path])})  # fmt: skip
    assert done.returncode == 5
    assert "[missing-extra]" in done.stderr
    assert "gpuledger[postgres]" in done.stderr


def test_a_ledger_in_a_file_never_loads_the_driver(tmp_path: Path) -> None:
    """Nobody waits for the code of the other engine."""
    code = "import sys; from gpuledger.ledger import Ledger; Ledger.open(sys.argv[1], mode='append').close()\n"
    code += "print([name for name in sys.modules if 'psycopg' in name or name.endswith('.postgresql')])"
    Ledger.open(tmp_path / "l.db", mode="append").close()  # to make the tables takes Alembic, and Alembic loads all
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path / "l.db")], capture_output=True, text=True,
                          check=True, timeout=60)  # fmt: skip
    assert done.stdout == "[]\n"


def test_a_ledger_in_a_schema_of_its_own(postgres, make) -> None:
    """The search path of the URL says which; no table of another schema answers in its place."""
    from gpuledger.ledger.owning import bring_up_to_date

    database = postgres.new_database()
    with psycopg.connect(postgres.url(OWNER, database), autocommit=True) as connection:
        connection.execute("CREATE SCHEMA one; CREATE SCHEMA two; CREATE TABLE public.watch (x int)")
    for name in ("one", "two"):
        inside = f"?options=-csearch_path%3D{name}"
        bring_up_to_date(Server(postgres.url(OWNER, database) + inside), applications=[APPLICATION])
        with Ledger.open(postgres.url(APPLICATION, database) + inside, mode="append") as ledger:
            ledger.append([make.watch(1)], writer=name, at_us=1)
            assert ledger.writers() == (name,)
            assert verify_ledger(ledger) == []
    with pytest.raises(GpuledgerError) as caught:
        bring_up_to_date(Server(postgres.url(OWNER, database) + "?options=-csearch_path%3Dnone"))
    assert caught.value.code == "no-schema"


@pytest.mark.parametrize("told", ["client_encoding=latin1", "options=-cclient_encoding%3Dlatin1"])
def test_no_url_chooses_the_encoding(place: str, make, told: str) -> None:
    """Texts go to the server as UTF-8, past the driver: it is told so, whatever the URL says."""
    text = IdentityText(exe="/opt/é日")
    with Ledger.open(f"{place}?{told}", mode="append") as ledger:
        assert postgres.driver_of(ledger.connection).info.parameter_status("client_encoding") == "UTF8"
        key = ledger.key_of(text)
        ledger.append([make.identity(text_key=key)], writer="w", at_us=1)
    with Ledger.open(place, mode="read") as ledger:
        assert ledger.texts() == {key: text}
        assert verify_ledger(ledger) == []


def test_text_is_ordered_by_its_bytes(place: str, make) -> None:
    """As SQLite does, whatever the database's own order."""
    writers = ["a", "B", "_", "é", "Z", "z", "日", "a-b", "aB", "ab"]
    with Ledger.open(place, mode="append") as ledger:
        for number, writer in enumerate(writers):
            ledger.append([make.watch(number)], writer=writer, at_us=1)
        assert [row.writer for row in ledger.scan(Watch)] == sorted(writers)
        assert ledger.writers() == tuple(sorted(writers))


def test_a_snapshot_stands_still(place: str, make) -> None:
    """What others append meanwhile is not in it; nothing can be written inside of it."""
    with Ledger.open(place, mode="append") as ledger, Ledger.open(place, mode="append") as other:
        with ledger.snapshot():
            assert ledger.count(Watch) == 0
            other.append([make.watch(1)], writer="w", at_us=1)
            assert ledger.count(Watch) == 0
        assert ledger.count(Watch) == 1
        with pytest.raises(Unavailable), ledger.snapshot():
            postgres.bare_cursor(ledger.connection).execute("DELETE FROM identity_text")
        with pytest.raises(AssertionError, match="nobody heard"), ledger.snapshot(), suppress(psycopg.Error):
            postgres.bare_cursor(ledger.connection).execute("SELECT 1 / 0")
        assert ledger.count(Watch) == 1


def test_a_scan_goes_on_whatever_is_appended_meanwhile(place: str, make) -> None:
    """It is streamed from the server, and holds nobody up; one left half-way does no harm."""
    with Ledger.open(place, mode="append") as ledger:
        ledger.append([make.driver(number) for number in range(5000)], writer="w", at_us=1)
        scan = ledger.scan(type(make.driver()), batch=100)
        first = next(scan)
        ledger.append([make.driver(9000)], writer="w", at_us=2)
        assert (first.number, sum(1 for _ in scan)) == (1, 4999)
        half = ledger.scan(type(make.driver()), batch=100)
        next(half)
        half.close()
        assert ledger.count(type(make.driver())) == 5001


@pytest.fixture
def two(place: str) -> Iterator[tuple[Ledger, Ledger]]:
    """The same ledger twice; the second does not wait long."""
    with Ledger.open(place, mode="append") as one, Ledger.open(place, mode="append", busy_timeout_ms=200) as other:
        yield one, other


def inside(one: Ledger, does: Callable[[], object], **words: object) -> object:
    """Do something while ``one`` judges; give what it came to."""
    came: list[object] = []

    def judge() -> None:
        came.append(does())

    assert one.append_made(judge, writer="one", at_us=1, **words) is None  # type: ignore[arg-type]
    return came[0]


def judges(ledger: Ledger, row: Row, *scopes: str) -> Callable[[], str]:
    """Another who judges: ``went`` or the code of the refusal."""

    def does() -> str:
        try:
            ledger.append_made(lambda: [row], writer="other", at_us=1, scopes=scopes)
        except Unavailable as error:
            return error.code
        return "went"

    return does


def test_whom_a_judge_waits_for(two, make) -> None:
    """One without scopes for all who judge; one with scopes for those who share one, and for those without."""
    one, other = two
    numbers = iter(range(100))
    for mine, theirs, came in [
        ((), (), "ledger-busy"),
        ((), ("user a",), "ledger-busy"),
        (("user a",), (), "ledger-busy"),
        (("user a", "team x"), ("user b", "team x"), "ledger-busy"),
        (("user a", "team x"), ("user b", "team y"), "went"),
    ]:
        assert inside(one, judges(other, make.watch(next(numbers)), *theirs), scopes=mine) == came, (mine, theirs)


def test_nobody_else_waits_for_a_judge(two, make) -> None:
    """Other chains are appended to, sealed, and passes booked, while one judges."""
    one, other = two
    assert inside(one, lambda: len(other.append([make.watch(1)], writer="other", at_us=1).added)) == 1
    assert inside(one, lambda: other.seal(5, writer="other").number) == 2
    assert inside(one, lambda: other.append_if(lambda: True, [make.watch(2)], writer="other", at_us=1) is not None)


def test_two_who_book_wait_for_each_other(two, make) -> None:
    """What the condition looked at holds until the rows are there."""
    one, other = two
    came: list[str] = []

    def provided() -> bool:
        try:
            other.append_if(lambda: True, [make.watch(2)], writer="b", at_us=1)
        except Unavailable as error:
            came.append(error.code)
        return True

    assert one.append_if(provided, [make.watch(1)], writer="a", at_us=1) is not None
    assert came == ["ledger-busy"]
    assert other.append_if(lambda: other.count(Watch) == 0, [make.watch(3)], writer="b", at_us=1) is None


def test_scopes_in_any_order_never_lock_each_other_out(place: str, make) -> None:
    """They are locked in one order, whatever order they are named in."""
    names = [f"scope {number}" for number in range(6)]
    failures: list[BaseException] = []

    def work(turn: int) -> None:
        try:
            with Ledger.open(place, mode="append", busy_timeout_ms=20_000) as ledger:
                for number in range(20):
                    scopes = [names[(turn * 5 + number * 7 + step) % 6] for step in range(3)]
                    row = make.watch(turn * 1000 + number)
                    ledger.append_made(lambda row=row: [row], writer=f"w{turn}", at_us=1, scopes=scopes)
        except BaseException as error:  # noqa: BLE001 - told below
            failures.append(error)

    threads = [threading.Thread(target=work, args=(turn,)) for turn in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    with Ledger.open(place, mode="read") as ledger:
        assert ledger.count(Watch) == 120
        assert verify_ledger(ledger) == []


def test_forgotten_text_is_gone_from_the_table_and_where_else_it_may_be_is_said(place: str, postgres, make) -> None:
    """The application cannot vacuum; the owner can, and does. Of the log and backups nobody can promise anything."""
    for url, pages in ((place, True), (postgres.url(OWNER, place.rpartition("/")[2]), False)):
        with Ledger.open(url, mode="append") as ledger:
            key = ledger.key_of(IdentityText(exe="/usr/bin/secret"), is_new=True)
            ledger.append([make.identity(int(pages), text_key=key)], writer="w", at_us=1)
            gone, left = ledger.forget([key])
            assert (gone, ledger.texts([key])) == (1, {})
            assert ("VACUUM identity_text" in left) is pages
            assert "write-ahead log" in left
            assert "backups" in left


def test_what_postgres_cannot_keep_is_refused_whole(place: str, make) -> None:
    """A NUL byte, or an integer of more than 64 bits: by name, or as the bug that it is; nothing is added."""
    with Ledger.open(place, mode="append") as ledger:
        for size in (2, 200):
            rows = [make.watch(number) for number in range(size)]
            with pytest.raises(GpuledgerError) as caught:
                ledger.append([*rows, make.watch(999, detail="a\0b")], writer="w", at_us=1)
            assert caught.value.code == "row-not-text"
            with pytest.raises(OverflowError):
                ledger.append([*rows, make.watch(999, living=2**63)], writer="w", at_us=1)
        assert ledger.marks() == {}
        assert len(ledger.append(rows, writer="w", at_us=1).added) == 200
