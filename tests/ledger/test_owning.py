"""What the owner of a ledger does: tables from every earlier version, and grants."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest
import sqlalchemy as sa
from alembic import command
from alembic.config import Config

from broken_line import Line
from gpuledger.errors import GpuledgerError, Misconfigured, Unavailable
from gpuledger.ledger import Ledger, appending, migrations, postgres, verify_ledger
from gpuledger.ledger.engine import Opened
from gpuledger.ledger.owning import bring_up_to_date
from gpuledger.ledger.places import Server
from gpuledger.ledger.schema import SCHEMA_VERSION
from gpuledger.ledger.texts import TextBook
from gpuledger.model.archive import Archive
from gpuledger.model.workload_rows import ExpectedEnd, Hold, PlacementRow, WorkloadEvent
from postgres_server import APPLICATION, OWNER

KINDS_SINCE: dict[int, tuple[type, ...]] = {2: (PlacementRow, WorkloadEvent, Hold), 3: (ExpectedEnd,), 4: (Archive,)}
"""By version, the kinds that a ledger of an earlier one has no table for."""

ASKED = "CREATE TEMP TABLE archive (before_us BIGINT)"
"""What an append of today asks of every ledger; those of earlier versions are filled by it here."""


def _upgrade(connection: sa.Connection, version: int) -> None:
    config = Config()
    config.set_main_option("script_location", str(Path(migrations.__file__).parent))
    config.set_main_option("path_separator", "os")
    config.attributes["connection"] = connection
    command.upgrade(config, f"{version:04}")


def ledger_of(version: int, place: Path | Server, rows: list) -> None:
    """A ledger as the program of an earlier version left it, with rows of each kind that it knew."""
    if isinstance(place, Server):
        opened: Opened = postgres.connect(place)
        connection = opened.connection
        with postgres.transaction(connection, write=True):
            _upgrade(connection, version)
        connection.exec_driver_sql(ASKED)
        appending.append_rows(connection, TextBook(connection), rows, writer="box.agent", at_us=1)
        connection.close()
        return
    engine = sa.create_engine(
        "sqlite://", creator=lambda: sqlite3.connect(place, isolation_level=None), poolclass=sa.NullPool
    )
    with engine.connect() as connection:
        _upgrade(connection, version)
        connection.exec_driver_sql(ASKED)
        appending.append_rows(connection, TextBook(connection), rows, writer="box.agent", at_us=1)


@pytest.fixture(params=["sqlite", "postgresql"])
def own_place(request: pytest.FixtureRequest, postgres, tmp_path: Path) -> Path | Server:
    """A place without tables, as its owner sees it."""
    if request.param == "sqlite":
        return tmp_path / "ledger.db"
    return Server(postgres.url(OWNER, postgres.new_database()))


@pytest.mark.parametrize("version", range(1, SCHEMA_VERSION))
def test_every_earlier_version_is_brought_up_to_date(own_place: Path | Server, make, version: int) -> None:
    """Rows, chain and links stand as they were, and what is new can be written."""
    later = tuple(kind for since, kinds in KINDS_SINCE.items() if since > version for kind in kinds)
    rows = [row for row in [make.archive(), *make.one_of_each()] if not isinstance(row, later)]
    ledger_of(version, own_place, rows)
    report = bring_up_to_date(own_place)
    assert (report.before, report.after) == (version, SCHEMA_VERSION)
    with Ledger.open(own_place, mode="append") as ledger:
        assert verify_ledger(ledger) == []
        assert [ledger.count(type(row)) for row in rows] == [1] * len(rows)
        ledger.append(
            [row for row in [make.archive(), *make.one_of_each()] if isinstance(row, later)],
            writer="box.agent",
            at_us=2,
        )
        ledger.seal(3, writer="box.agent")
        assert verify_ledger(ledger) == []


@pytest.mark.parametrize("said", ["COMMENT ON TABLE link", "GRANT INSERT", "COMMIT\0"])
@pytest.mark.parametrize("version", range(1, SCHEMA_VERSION))
def test_cut_in_the_middle_the_earlier_version_stands(postgres, make, version: int, said: str) -> None:
    """All or nothing; the error says what to type next, and the same again ends well."""
    place = Server(postgres.url(OWNER, postgres.new_database()))
    later = tuple(kind for since, kinds in KINDS_SINCE.items() if since > version for kind in kinds)
    rows = [row for row in [make.archive(), *make.one_of_each()] if not isinstance(row, later)]
    ledger_of(version, place, rows)
    with Line(postgres, said) as line, pytest.raises(Unavailable) as cut:
        bring_up_to_date(Server(line.through(place.url)), applications=[APPLICATION])
    assert cut.value.code == "ledger-unreachable"
    assert "run the same again" in cut.value.hint
    assert bring_up_to_date(place).before == version
    with Ledger.open(place, mode="append") as ledger:
        assert [ledger.count(type(row)) for row in rows] == [1] * len(rows)
        assert verify_ledger(ledger) == []


def test_again_it_changes_nothing(own_place: Path | Server) -> None:
    """And says so."""
    first, second = bring_up_to_date(own_place), bring_up_to_date(own_place)
    assert (first.before, first.after) == (0, SCHEMA_VERSION)
    assert (second.before, second.after) == (SCHEMA_VERSION, SCHEMA_VERSION)
    with Ledger.open(own_place, mode="append") as ledger:
        assert verify_ledger(ledger) == []


def test_a_step_that_fails_leaves_nothing(postgres, monkeypatch: pytest.MonkeyPatch) -> None:
    """All or nothing, in one transaction."""
    from gpuledger.ledger import postgres_tables

    place = Server(postgres.url(OWNER, postgres.new_database()))

    def fails(*_: object, **__: object) -> None:
        raise Unavailable("ledger-full", "no room", hint="make room")

    with monkeypatch.context() as patched:
        patched.setattr(postgres_tables, "grant", fails)
        with pytest.raises(Unavailable):
            bring_up_to_date(place, applications=[APPLICATION])
    with psycopg.connect(place.url) as connection:
        assert connection.execute("SELECT count(*) FROM pg_tables WHERE schemaname = 'public'").fetchone() == (0,)
    assert bring_up_to_date(place).before == 0


def test_a_file_needs_no_roles(tmp_path: Path) -> None:
    """Its mode and group say who may use it."""
    with pytest.raises(Misconfigured) as caught:
        bring_up_to_date(tmp_path / "l.db", applications=["al"])
    assert caught.value.code == "no-roles"


def test_who_is_granted_what(postgres) -> None:
    """The application adds and reads and deletes text, a reader reads; whatever else they had is taken away."""
    database = postgres.new_database()
    with postgres.superuser() as connection:
        connection.execute('CREATE ROLE "Strange \'reader" LOGIN')
    place = Server(postgres.url(OWNER, database))
    bring_up_to_date(place)
    with psycopg.connect(place.url, autocommit=True) as owner:
        owner.execute(f"GRANT ALL ON watch TO {APPLICATION}, PUBLIC")
        owner.execute(f"GRANT UPDATE (detail) ON watch TO {APPLICATION}")
    report = bring_up_to_date(place, applications=[APPLICATION], readers=["Strange 'reader"])
    assert [(each.role, each.may_append, each.is_there) for each in report.granted] == [
        (APPLICATION, True, True),
        ("Strange 'reader", False, True),
    ]
    assert report.problems == ()
    with psycopg.connect(place.url) as owner:
        found = owner.execute(
            "SELECT grantee, table_name, string_agg(privilege_type, ' ' ORDER BY privilege_type) "
            "FROM information_schema.role_table_grants WHERE grantee <> current_user AND table_schema = 'public' "
            "GROUP BY 1, 2"
        ).fetchall()
    may = {(role, table): words for role, table, words in found}
    assert may.pop((APPLICATION, "identity_text")) == "DELETE INSERT SELECT"
    assert may.pop((APPLICATION, "gpuledger_version")) == "SELECT"
    assert {words for (role, _), words in may.items() if role == APPLICATION} == {"INSERT SELECT"}
    assert {words for (role, _), words in may.items() if role != APPLICATION} == {"SELECT"}
    assert {role for role, _ in may} == {APPLICATION, "Strange 'reader"}


def test_a_role_that_is_not_there(postgres) -> None:
    """One that was named stops everything; the usual one is only told, with what a superuser types."""
    place = Server(postgres.url(OWNER, postgres.new_database()))
    with pytest.raises(Misconfigured) as caught:
        bring_up_to_date(place, applications=["nobody-there"])
    assert caught.value.code == "no-such-role"
    assert "CREATE ROLE nobody-there" in caught.value.hint
    assert bring_up_to_date(place).before == 0
    with postgres.superuser() as connection:
        connection.execute(f"ALTER ROLE {APPLICATION} RENAME TO away")
        try:
            report = bring_up_to_date(place)
        finally:
            connection.execute(f"ALTER ROLE away RENAME TO {APPLICATION}")
            connection.execute(f"ALTER ROLE {APPLICATION} PASSWORD 'a secret: @/%'")
    assert [problem.code for problem in report.problems] == ["no-application-role"]
    assert "CREATE ROLE gpuledger" in report.problems[0].message


def test_a_role_that_no_grant_binds_is_told(postgres) -> None:
    """A superuser, or the owner as its own application: triggers stand, and can be switched off."""
    place = Server(postgres.url(OWNER, postgres.new_database()))
    report = bring_up_to_date(place, applications=["postgres", OWNER])
    assert [(problem.code, problem.where) for problem in report.problems] == [
        ("role-too-strong", "postgres"),
        ("role-too-strong", OWNER),
    ]
    with Ledger.open(place, mode="append") as ledger:
        assert verify_ledger(ledger) == []


def test_the_application_cannot_make_tables(postgres) -> None:
    """It is told who can."""
    for database in (postgres.new_database(), postgres.new_ledger().rpartition("/")[2]):
        with pytest.raises(GpuledgerError) as caught:
            bring_up_to_date(Server(postgres.url(APPLICATION, database)))
        assert caught.value.code == "ledger-permission"
        assert APPLICATION in caught.value.message
        assert f"gpuledger migrate --ledger postgresql://{OWNER}@HOST/DATABASE" in caught.value.hint


def test_tables_of_a_newer_program_are_left_alone(postgres) -> None:
    """Nothing is granted either."""
    place = Server(postgres.url(OWNER, postgres.new_database()))
    bring_up_to_date(place)
    with psycopg.connect(place.url, autocommit=True) as owner:
        owner.execute("UPDATE gpuledger_version SET version_num = '0099'")
    with pytest.raises(Unavailable) as caught:
        bring_up_to_date(place)
    assert caught.value.code == "ledger-newer"


def test_two_owners_at_once(postgres) -> None:
    """The second waits, and finds the work done."""
    url = postgres.url(OWNER, postgres.new_database())
    code = "import sys; from gpuledger.cli.main import main; "
    code += "main(['migrate', '--format', 'json', '--ledger', sys.argv[1]])"
    started = [subprocess.Popen([sys.executable, "-c", code, url], stdout=subprocess.PIPE, text=True) for _ in range(3)]
    told = [json.loads(process.communicate(timeout=60)[0])["before"] for process in started]
    assert sorted(told) == [0, SCHEMA_VERSION, SCHEMA_VERSION]


def test_what_tables_mean_is_written_where_psql_shows_it(postgres) -> None:
    """The comments of the reference."""
    place = Server(postgres.url(OWNER, postgres.new_database()))
    bring_up_to_date(place)
    with psycopg.connect(place.url) as connection:
        assert connection.execute("SELECT obj_description('link'::regclass)").fetchone() == (
            "One transaction of one writer: a link of its hash chain.",
        )
