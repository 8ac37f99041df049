"""What moves much at once, hurt at any statement: connections cut, backends and servers killed, and the command itself.

``archive``, ``copy``, ``export parquet``, ``migrate`` and ``meter --engine duckdb`` on PostgreSQL. Whatever the moment:
nothing is half done, the error says what to type next, and the same again ends well.
"""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psycopg
import pytest

from broken_line import Line
from gpuledger.errors import Unavailable
from gpuledger.ledger import Ledger, parquet, postgres
from gpuledger.ledger.lake import Lake
from gpuledger.ledger.laying import lay_under
from gpuledger.ledger.owning import bring_up_to_date
from gpuledger.ledger.places import Server as Place
from gpuledger.ledger.places import place_of
from gpuledger.ledger.schema import SCHEMA_VERSION
from gpuledger.model.archive import Archive
from gpuledger.model.lake import MANIFEST
from gpuledger.model.moments import DAY_US, iso
from gpuledger.model.rows import Pass, Sighting, UsageRecord
from gpuledger.operations.archive import archive
from gpuledger.operations.copy import copy
from gpuledger.operations.export_parquet import export_parquet
from gpuledger.operations.meter_duckdb import meter_duckdb
from gpuledger.operations.verify import verify
from old_evidence import JUNE_US, MAY_US, NOW_US, OldBox
from postgres_server import APPLICATION, OWNER, Server

COMMIT = "COMMIT\0"
"""As it travels: "READ COMMITTED" is another word."""

COMMAND = Path(sys.executable).with_name("gpuledger")


@pytest.fixture(scope="module")
def server(postgres: Server) -> Iterator[Server]:
    """A server of these tests alone, to be stopped and hurt."""
    own = Server(postgres.programs)
    yield own
    own.remove()


@pytest.fixture(scope="module")
def filled(server: Server, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """By name, ledgers that are copied for each test: URLs of the application, and a file."""
    places = {"old": server.new_ledger(), "backlog": server.new_ledger(), "empty": server.new_ledger()}
    places["nothing"] = server.url(APPLICATION, server.new_database())
    for name in ("old", "backlog"):
        box = OldBox(places[name], days=32, jobs=1)
        for day in range(28, 32):
            box.ledger.append(box._day(day), writer="box.agent", at_us=MAY_US + (day + 1) * DAY_US)
            box._workloads(day)
        if name == "old":
            box.meter(MAY_US + 40 * DAY_US)
            box.meter(NOW_US)
            box.ledger.seal(NOW_US, writer="box.agent")
        box.ledger.close()
    places["file"] = str(tmp_path_factory.mktemp("source") / "ledger.db")
    copy(places["old"], places["file"])
    return places


class Work:
    """One command that moves much at once.

    Attributes:
        begins: the name of the ledger that it is run on.
        role: who runs it.
        words: what is typed, with ``PLACE`` and ``FOLDER``.
    """

    begins = "old"
    role = APPLICATION
    words: tuple[str, ...]

    def __init__(self, filled: dict[str, str], folder: Path) -> None:
        self.filled, self.folder = filled, folder

    def typed(self, place: str) -> list[str]:
        """Its words, as somebody types them."""
        names = {"PLACE": place, "FILE": self.filled["file"]}
        words = [names.get(word, word) for word in self.words]
        now = [] if self.words[0] in ("copy", "migrate") else ["--now", iso(NOW_US)]
        return [*(word.replace("FOLDER", str(self.folder)) for word in words), *now, "--quiet"]

    def do(self, place: str) -> None:
        """The command itself."""
        raise NotImplementedError

    def check(self, place: str) -> None:
        """Nothing is half done."""
        raise NotImplementedError

    def check_done(self, place: str) -> None:
        """All of it is done, and nothing twice."""
        raise NotImplementedError


class Archiving(Work):
    """Rows leave for files."""

    role = OWNER
    words = ("archive", "--before", "2026-06", "--to", "FOLDER", "--yes", "--ledger", "PLACE")

    def do(self, place: str) -> None:
        with Ledger.open(place, mode="append") as ledger:
            done = archive(
                ledger, before_us=JUNE_US, folder=self.folder, done=True, now_us=NOW_US, writer="box.archive"
            )
        self.told_of = {Path(problem.where).name for problem in done.problems}

    def check(self, place: str) -> None:
        with Ledger.open(place, mode="read") as ledger, Ledger.open(self.filled["old"], mode="read") as before:
            assert verify(ledger, now_us=NOW_US).ok
            assert (ledger.count(Archive) > 0) == (ledger.count(Sighting) < before.count(Sighting))

    def check_done(self, place: str) -> None:
        with Ledger.open(place, mode="read") as ledger, Ledger.open(self.filled["old"], mode="read") as before:
            named = {row.file_name.partition("/")[0] for row in ledger.scan(Archive)}
            assert {each.name for each in self.folder.iterdir()} - named == self.told_of  # they may be deleted
            assert ledger.count(Sighting) < before.count(Sighting)
            laid = lay_under(ledger, folder=self.folder)
            assert laid.is_whole
            assert verify(ledger, now_us=NOW_US, laid=laid).ok
            assert ledger.count(Sighting) == before.count(Sighting)


class CopyingIn(Work):
    """A file to a server."""

    begins = "empty"
    words = ("copy", "FILE", "PLACE")

    def do(self, place: str) -> None:
        copy(self.filled["file"], place)

    def check(self, place: str) -> None:
        with Ledger.open(place, mode="read") as ledger:
            assert verify(ledger, now_us=NOW_US).ok

    def check_done(self, place: str) -> None:
        with Ledger.open(place, mode="read") as ledger, Ledger.open(self.filled["file"], mode="read") as source:
            there, here = verify(ledger, now_us=NOW_US), verify(source, now_us=NOW_US)
        assert (there.checks, there.counts, there.root) == (here.checks, here.counts, here.root)


class CopyingOut(CopyingIn):
    """A server to a file."""

    begins = "old"
    words = ("copy", "PLACE", "FOLDER/copy.db")

    def do(self, place: str) -> None:
        copy(place, str(self.folder / "copy.db"))

    def check(self, place: str) -> None:
        if (self.folder / "copy.db").exists():
            super().check(str(self.folder / "copy.db"))

    def check_done(self, place: str) -> None:
        super().check_done(str(self.folder / "copy.db"))


class Exporting(Work):
    """A ledger to a lake."""

    words = ("export", "parquet", "--to", "FOLDER", "--ledger", "PLACE")

    def do(self, place: str) -> None:
        with Ledger.open(place, mode="read") as ledger:
            export_parquet(ledger, self.folder, now_us=NOW_US)

    def check(self, place: str) -> None:
        for path in self.folder.rglob("[!.]*.parquet"):
            table = path.stem if path.parent == self.folder else path.parent.name
            assert list(parquet.read(path, table))
        if (self.folder / MANIFEST).exists():
            Lake.open(self.folder).look_over()

    def check_done(self, place: str) -> None:
        lake = Lake.open(self.folder)
        lake.look_over()
        with Ledger.open(place, mode="read") as ledger:
            assert sum(file.rows for file in lake.manifest.of("sighting")) == ledger.count(Sighting)
        assert not list(self.folder.rglob("*.part"))


class Migrating(Work):
    """Tables made, and granted."""

    begins = "nothing"
    role = OWNER
    words = ("migrate", "--ledger", "PLACE")

    def do(self, place: str) -> None:
        bring_up_to_date(Place(place), applications=[APPLICATION])

    def check(self, place: str) -> None:
        opened = postgres.connect(Place(place))
        assert postgres.stored_version(opened.connection) in (0, SCHEMA_VERSION)
        opened.connection.close()

    def check_done(self, place: str) -> None:
        with Ledger.open(place, mode="append") as ledger:
            assert verify(ledger, now_us=NOW_US).ok


class MigratingAFile(Work):
    """Tables made in a file."""

    begins = "no ledger"
    words = ("migrate", "--ledger", "PLACE")

    def do(self, place: str) -> None:
        bring_up_to_date(place_of(place))

    def check(self, place: str) -> None:
        with sqlite3.connect(place) as connection:
            assert connection.execute("PRAGMA user_version").fetchone() == (0,)
            assert connection.execute("SELECT count(*) FROM sqlite_master").fetchone() == (0,)
        connection.close()

    def check_done(self, place: str) -> None:
        with Ledger.open(place, mode="append") as ledger:
            assert verify(ledger, now_us=NOW_US).ok


class Metering(Work):
    """Hours booked, derived by DuckDB."""

    begins = "backlog"
    words = ("meter", "--engine", "duckdb", "--ledger", "PLACE")

    def do(self, place: str) -> None:
        with Ledger.open(place, mode="append") as ledger:
            meter_duckdb(ledger, now_us=NOW_US, writer="box.meter")

    def check(self, place: str) -> None:
        with Ledger.open(place, mode="read") as ledger:
            assert verify(ledger, now_us=NOW_US).ok
            assert (ledger.count(UsageRecord) > 0) == (ledger.count(Pass) > 0)

    def check_done(self, place: str) -> None:
        self.check(place)
        with Ledger.open(place, mode="append") as ledger:
            booked = ledger.count(UsageRecord)
            assert booked
            again = meter_duckdb(ledger, now_us=NOW_US, writer="box.meter")
            assert (len(again.records), len(again.corrections), ledger.count(UsageRecord)) == (0, 0, booked)


@dataclass(frozen=True)
class Moment:
    """When it happens: while a command says a statement.

    Args:
        work: the command.
        statement: what it says.
        turn: which time counts; from the last back where it is negative.
        heard: whether the server does it.
    """

    work: type[Work]
    statement: str
    turn: int = 1
    heard: bool = False

    def __str__(self) -> str:
        said = self.statement.strip("\0")
        return f"{self.work.__name__}, {said}, {self.turn}{', heard' if self.heard else ''}"


MOMENTS = (
    Moment(Archiving, "MAX(before_us)"),
    Moment(Archiving, "INSERT INTO staying_pair"),
    Moment(Archiving, "JOIN leaving_month"),
    Moment(Archiving, "SELECT count(*) FROM device_event"),
    Moment(Archiving, "FROM leaving_sighting JOIN sighting"),
    Moment(Archiving, "ISOLATION LEVEL READ COMMITTED"),
    Moment(Archiving, "ALTER TABLE sighting DISABLE", heard=True),
    Moment(Archiving, "DELETE FROM workload_event"),
    Moment(Archiving, "DELETE FROM workload_event", heard=True),
    Moment(Archiving, "INTO archive"),
    Moment(Archiving, COMMIT, turn=-2, heard=True),
    Moment(CopyingIn, "INTO identity_text"),
    Moment(CopyingIn, "INTO sighting"),
    Moment(CopyingIn, COMMIT, heard=True),
    Moment(CopyingIn, COMMIT, turn=-1, heard=True),
    Moment(CopyingOut, "FROM identity_text"),
    Moment(CopyingOut, "FROM usage_record"),
    Moment(Exporting, "FROM sighting", heard=True),
    Moment(Exporting, "FETCH FORWARD", turn=5),
    Moment(Exporting, "FROM identity_text"),
    Moment(Migrating, "CREATE TABLE usage_record"),
    Moment(Migrating, "CREATE TABLE archive", heard=True),
    Moment(Migrating, "GRANT INSERT"),
    Moment(Migrating, COMMIT, turn=-1, heard=True),
    Moment(Metering, "MAX(before_us)"),
    Moment(Metering, "INSERT INTO metered_workload"),
    Moment(Metering, "INTO metered_run", heard=True),
    Moment(Metering, "INTO usage_record"),
    Moment(Metering, COMMIT, turn=-1, heard=True),
)
"""Some of each command, from its first reading to its last transaction."""

LAST = (
    Moment(Archiving, "DELETE FROM workload_event"),
    Moment(CopyingIn, "INTO sighting"),
    Moment(CopyingOut, "FROM usage_record"),
    Moment(Exporting, "FROM sighting"),
    Moment(Migrating, "GRANT INSERT"),
    Moment(Metering, "INTO usage_record"),
)
"""One of each, in the middle of what it does."""


@pytest.fixture
def hurt(server: Server, filled: dict[str, str], tmp_path: Path) -> Callable[..., tuple[Work, str]]:
    """The command of a moment, and the place that it is to be run on: a ledger of its own."""

    def make(moment: Moment) -> tuple[Work, str]:
        folder = tmp_path / f"out-{len(list(tmp_path.iterdir()))}"
        folder.mkdir()
        work = moment.work(filled, folder)
        database = server.new_database(filled[work.begins].rpartition("/")[2])
        return work, server.url(work.role, database)

    return make


def told(work: Work, place: str) -> Unavailable:
    """The error that a command ends with, which names the way on."""
    with pytest.raises(Unavailable) as caught:
        work.do(place)
    assert (caught.value.code, caught.value.exit_status) == ("ledger-unreachable", 5)
    assert "run the same again" in caught.value.hint
    return caught.value


def ends_well(work: Work, place: str) -> None:
    """What there is is whole; the same again completes it."""
    work.check(place)
    work.do(place)
    work.check_done(place)


@pytest.mark.parametrize("moment", MOMENTS, ids=str)
def test_cut(server: Server, hurt: Callable[..., tuple[Work, str]], moment: Moment) -> None:
    """The line breaks before the server hears a statement, or after it has done it."""
    work, place = hurt(moment)
    turn = moment.turn
    if turn < 0:
        other, elsewhere = hurt(moment)
        with Line(server, moment.statement, turn=0) as line:
            other.do(line.through(elsewhere))
        turn += 1 + line.said
    with Line(server, moment.statement, turn=turn, heard=moment.heard) as line:
        told(work, line.through(place))
        assert line.happened.is_set()
        ends_well(work, line.through(place))
    if isinstance(work, Archiving):  # the server was there to ask: nothing lies about
        assert not work.told_of


def _terminate(server: Server, database: str) -> None:
    with server.superuser() as connection:
        connection.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", (database,))


def _kill_backends(server: Server, database: str) -> None:
    with server.superuser() as connection:
        found = connection.execute("SELECT pid FROM pg_stat_activity WHERE datname = %s", (database,)).fetchall()
        assert found
        for (pid,) in found:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        with suppress(psycopg.OperationalError):  # until the server has seen it: it then ends every other process too
            while True:
                connection.execute("SELECT pg_sleep(0.05)")


def _crash(server: Server, database: str) -> None:
    del database
    server.stop("immediate")


@pytest.mark.parametrize("harm", [_terminate, _kill_backends, _crash])
@pytest.mark.parametrize("moment", LAST, ids=str)
def test_the_server_hurt(
    server: Server, hurt: Callable[..., tuple[Work, str]], moment: Moment, harm: Callable[[Server, str], None]
) -> None:
    """Its connections ended by an administrator, its processes killed, all of it stopped at once and started again."""
    work, place = hurt(moment)
    with Line(server, moment.statement, do=lambda: harm(server, place.rpartition("/")[2])) as line:
        told(work, line.through(place))
        assert line.happened.is_set()
        if harm is _crash:
            told(work, place)  # nothing is there yet
            server.start()
        server.wait()
        ends_well(work, line.through(place))


@pytest.mark.parametrize("moment", LAST, ids=str)
def test_the_command_killed(
    server: Server, hurt: Callable[..., tuple[Work, str]], moment: Moment, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """kill -9 while the server does what it said; nothing is left behind, once the same was run again."""
    work, place = hurt(moment)
    aside = tmp_path / "aside"
    aside.mkdir()
    monkeypatch.setenv("TMPDIR", str(aside))
    monkeypatch.setattr(tempfile, "tempdir", str(aside))
    running: list[subprocess.Popen[bytes]] = []

    def kill() -> None:
        running[0].kill()
        running[0].wait()

    with Line(server, moment.statement, do=kill) as line:
        words = [str(COMMAND), *work.typed(line.through(place))]
        running.append(subprocess.Popen(words, stdout=subprocess.DEVNULL))
        assert running[0].wait(60) == -signal.SIGKILL
        ends_well(work, line.through(place))
    assert not list(aside.iterdir())


_TRACED = """
import os, signal, sqlite3, sys
connect, step = sqlite3.connect, sys.argv[1]

def traced(*words, **names):
    connection = connect(*words, **names)
    connection.set_trace_callback(lambda said: said.startswith(step) and os.kill(os.getpid(), signal.SIGKILL))
    return connection

sqlite3.connect = traced
from gpuledger.cli.main import main
main(sys.argv[2:])
"""


@pytest.mark.parametrize(
    "moment",
    [
        Moment(CopyingOut, "INSERT INTO sighting"),
        Moment(CopyingOut, "INSERT INTO link"),
        Moment(CopyingOut, "INSERT INTO seal"),
        Moment(Exporting, "SELECT sighting"),
        Moment(Exporting, "SELECT identity_text"),
        Moment(MigratingAFile, "CREATE TABLE archive"),
        Moment(MigratingAFile, "CREATE TRIGGER archive_no_delete"),
        Moment(MigratingAFile, "COMMIT"),
        Moment(Metering, "INSERT INTO metered_run"),
        Moment(Metering, "INSERT INTO usage_record"),
        Moment(Metering, "COMMIT"),
    ],
    ids=str,
)
def test_the_command_killed_on_a_file(
    filled: dict[str, str], moment: Moment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on a server: kill -9 at a statement of SQLite; archives are killed so in their own tests."""
    place, aside, out = tmp_path / "ledger.db", tmp_path / "aside", tmp_path / "out"
    for folder in (aside, out):
        folder.mkdir()
    if moment.work.begins in filled:
        copy(filled[moment.work.begins], str(place))
    monkeypatch.setenv("TMPDIR", str(aside))
    monkeypatch.setattr(tempfile, "tempdir", str(aside))
    work = moment.work(filled, out)
    words = [sys.executable, "-c", _TRACED, moment.statement, *work.typed(str(place))]
    assert subprocess.run(words, stdout=subprocess.DEVNULL, check=False).returncode == -signal.SIGKILL
    ends_well(work, str(place))
    assert not list(aside.iterdir())
