"""What each fault of SQLite is called."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest
import sqlalchemy as sa

from gpuledger.errors import Corrupt, Refused, Unavailable
from gpuledger.ledger import sqlite_errors


def sqlite_error(code: int, text: str = "boom") -> sqlite3.Error:
    """An error as the driver raises it, with its extended code."""
    error = sqlite3.OperationalError(text)
    error.sqlite_errorcode = code
    return error


def test_every_fault_of_sqlite_has_a_name() -> None:
    """Each primary result code is mapped to what a caller can do, or is left alone as a bug of ours."""
    mapped = {
        "SQLITE_PERM": (Unavailable, "ledger-permission"),
        "SQLITE_BUSY": (Unavailable, "ledger-busy"),
        "SQLITE_LOCKED": (Unavailable, "ledger-busy"),
        "SQLITE_NOMEM": (Unavailable, "ledger-memory"),
        "SQLITE_READONLY": (Unavailable, "ledger-permission"),
        "SQLITE_IOERR": (Unavailable, "ledger-io"),
        "SQLITE_CORRUPT": (Corrupt, "ledger-damaged"),
        "SQLITE_FULL": (Unavailable, "ledger-full"),
        "SQLITE_CANTOPEN": (Unavailable, "ledger-permission"),
        "SQLITE_PROTOCOL": (Unavailable, "ledger-busy"),
        "SQLITE_TOOBIG": (Refused, "row-too-big"),
        "SQLITE_AUTH": (Unavailable, "ledger-permission"),
        "SQLITE_FORMAT": (Corrupt, "ledger-damaged"),
        "SQLITE_NOTADB": (Corrupt, "ledger-damaged"),
        "SQLITE_IOERR_WRITE": (Unavailable, "ledger-full"),
        "SQLITE_IOERR_READ": (Unavailable, "ledger-io"),
        "SQLITE_CORRUPT_INDEX": (Corrupt, "ledger-damaged"),
        "SQLITE_BUSY_SNAPSHOT": (Unavailable, "ledger-busy"),
        "SQLITE_CONSTRAINT_TRIGGER": (Refused, "append-only"),
    }
    ours = {
        "ERROR",
        "INTERNAL",
        "ABORT",
        "INTERRUPT",
        "NOTFOUND",
        "EMPTY",
        "SCHEMA",
        "CONSTRAINT",
        "MISMATCH",
        "MISUSE",
    }
    ours |= {"NOLFS", "RANGE"}
    path = Path("/l.db")
    for name, (kind, code) in mapped.items():
        error = sqlite_errors.error_for(path, sqlite_error(getattr(sqlite3, name)))
        assert error is not None, name
        assert (type(error), error.code) == (kind, code), name
        assert error.hint, name
    for name in ours:
        assert sqlite_errors.error_for(path, sqlite_error(getattr(sqlite3, f"SQLITE_{name}"))) is None, name
    known = {getattr(sqlite3, name) for name in mapped} | {getattr(sqlite3, f"SQLITE_{name}") for name in ours}
    assert set(range(1, 27)) <= known


@pytest.mark.parametrize(
    "text", ["no such table: watch", "malformed database schema (x)", "unsupported file format", "no such column: t.x"]
)
def test_a_changed_schema_is_damage(text: str) -> None:
    """What is not there any more was taken away by somebody."""
    assert isinstance(sqlite_errors.error_for(Path("/l"), sqlite_error(sqlite3.SQLITE_ERROR, text)), Corrupt)


def test_text_that_is_no_utf8_is_damage() -> None:
    """The driver raises this one without a code."""
    error = sqlite3.OperationalError("Could not decode to UTF-8 column 'detail' with text 'x'")
    assert isinstance(sqlite_errors.error_for(Path("/l"), error), Corrupt)
    assert sqlite_errors.error_for(Path("/l"), sqlite3.ProgrammingError("Cannot operate on a closed database.")) is None


def test_bugs_pass_through() -> None:
    """A fault of our own statement is not dressed up."""
    with pytest.raises(sa.exc.OperationalError), sqlite_errors.mapped(Path("/l")):
        raise sa.exc.OperationalError("SELEC", None, sqlite_error(sqlite3.SQLITE_ERROR, "syntax error"))
    with pytest.raises(sqlite3.OperationalError), sqlite_errors.mapped(Path("/l")):
        raise sqlite_error(sqlite3.SQLITE_MISUSE)
