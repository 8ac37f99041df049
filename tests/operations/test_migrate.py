"""The operation behind migrate; its parts are tried in tests/ledger/test_owning.py."""

from __future__ import annotations

from pathlib import Path

from gpuledger.ledger.places import Server
from gpuledger.ledger.schema import SCHEMA_VERSION
from gpuledger.operations.migrate import migrate
from postgres_server import APPLICATION, OWNER


def test_both_engines_are_brought_up_to_date(tmp_path: Path, postgres) -> None:
    """A file by itself, a server's database with its roles."""
    report = migrate(tmp_path / "l.db", applications=(), readers=())
    assert (report.by_itself, report.before, report.after) == (True, 0, SCHEMA_VERSION)
    place = Server(postgres.url(OWNER, postgres.new_database()))
    report = migrate(place, applications=[APPLICATION], readers=())
    assert (report.by_itself, report.before, report.after) == (False, 0, SCHEMA_VERSION)
    assert [granted.role for granted in report.granted] == [APPLICATION]
