"""What a file is, before SQLite looks at it."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpuledger.errors import Corrupt, Misconfigured, Unavailable
from gpuledger.ledger import Ledger, sqlite_file
from gpuledger.ledger.schema import SCHEMA_VERSION
from gpuledger.ledger.sqlite_file import Signature, judge, signature_in, stored_version


def test_a_ledgers_header_says_so(ledger: Ledger, place: Path) -> None:
    """Application, version, and that there are tables; read without SQLite."""
    ledger.close()
    assert signature_in(place, "read") == Signature(
        application_id=sqlite_file.APPLICATION_ID, version=SCHEMA_VERSION, empty=False
    )
    assert stored_version(place) == SCHEMA_VERSION


def test_an_empty_file_has_no_version(place: Path) -> None:
    """It may become a ledger."""
    place.touch()
    assert (stored_version(place), signature_in(place, "append").empty) == (0, True)


def test_what_is_no_database_is_damage(place: Path) -> None:
    """Also to who only asks for its version."""
    place.write_text("hello world")
    with pytest.raises(Corrupt):
        stored_version(place)


@pytest.mark.parametrize(
    ("application", "version", "mode", "error", "code"),
    [
        (0, 0, "read", Unavailable, "no-ledger"),
        (7, 0, "append", Misconfigured, "not-a-ledger"),
        (sqlite_file.APPLICATION_ID, SCHEMA_VERSION + 1, "append", Unavailable, "ledger-newer"),
        (sqlite_file.APPLICATION_ID, SCHEMA_VERSION - 1, "read", Unavailable, "ledger-older"),
    ],
)
def test_whose_file_it_is(place: Path, application: int, version: int, mode: str, error: type, code: str) -> None:
    """Not ours, too new, or too old for a reader, who never migrates."""
    with pytest.raises(error) as caught:
        judge(place, Signature(application_id=application, version=version, empty=application == 0), mode)
    assert caught.value.code == code
    assert caught.value.hint
