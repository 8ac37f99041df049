"""What each fault of PostgreSQL is called."""

from __future__ import annotations

import psycopg
import pytest

from gpuledger.errors import Corrupt, GpuledgerError, Misconfigured, Refused, Unavailable
from gpuledger.ledger import postgres, postgres_errors
from gpuledger.ledger.places import Server
from gpuledger.ledger.postgres_errors import bad_url, error_for

PLACE = Server("postgresql://al:hush@h/d")


def error_of(state: str, text: str = "boom\nDETAIL: more") -> psycopg.Error:
    """An error as the server sends it."""
    try:
        kind = psycopg.errors.lookup(state)
    except KeyError:
        kind = psycopg.DatabaseError
    error = kind(text)
    if error.sqlstate != state:
        error.sqlstate = state
    return error


@pytest.mark.parametrize(
    ("state", "kind", "code"),
    [
        ("GL001", Refused, "append-only"),
        ("23505", Refused, "append-only"),
        ("55P03", Unavailable, "ledger-busy"),
        ("57014", Unavailable, "ledger-busy"),
        ("40001", Unavailable, "ledger-busy"),
        ("40P01", Unavailable, "ledger-busy"),
        ("42501", Unavailable, "ledger-permission"),
        ("25006", Unavailable, "ledger-permission"),
        ("28P01", Unavailable, "ledger-permission"),
        ("53100", Unavailable, "ledger-full"),
        ("53200", Unavailable, "ledger-memory"),
        ("53300", Unavailable, "ledger-busy"),
        ("57P01", Unavailable, "ledger-unreachable"),
        ("57P02", Unavailable, "ledger-unreachable"),
        ("57P03", Unavailable, "ledger-unreachable"),
        ("08006", Unavailable, "ledger-unreachable"),
        ("42P01", Corrupt, "ledger-damaged"),
        ("42703", Corrupt, "ledger-damaged"),
        ("XX001", Corrupt, "ledger-damaged"),
        ("XX002", Corrupt, "ledger-damaged"),
        ("58030", Unavailable, "ledger-io"),
        ("54000", Refused, "row-too-big"),
    ],
)
def test_every_fault_has_a_name(state: str, kind: type[GpuledgerError], code: str) -> None:
    """By its state: what a caller can do, and a hint; the first line of what the server said."""
    error = error_for(PLACE, error_of(state))
    assert error is not None
    assert (type(error), error.code) == (kind, code)
    assert error.hint
    assert "hush" not in error.message
    assert "DETAIL" not in error.message


def test_what_went_with_a_connection_is_no_damage(monkeypatch: pytest.MonkeyPatch) -> None:
    """A relation that this process made is missing because the connection was cut; a table of the ledger is gone."""
    monkeypatch.setattr(postgres_errors, "OF_ONE_CONNECTION", {"leaving_hold"})
    codes = {}
    for name in ("leaving_hold", "hold"):
        error = error_for(PLACE, error_of("42P01", f'relation "{name}" does not exist'))
        assert error is not None
        codes[name] = error.code
    assert codes == {"leaving_hold": "ledger-unreachable", "hold": "ledger-damaged"}


def test_a_short_password_mangles_no_message() -> None:
    """The server repeats no password, so nothing of what it says is taken for one."""
    said = 'FATAL:  password authentication failed for user "al"'
    for password in ("a", "al", "password"):
        error = error_for(Server(f"postgresql://al:{password}@h/d"), psycopg.OperationalError(said))
        assert error is not None
        assert error.message == f"postgresql://al@h/d cannot be reached: {said}"


@pytest.mark.parametrize("state", ["42601", "22P02", "25P02", "0A000", "42804"])
def test_bugs_pass_through(state: str) -> None:
    """A fault of our own statement is not dressed up."""
    assert error_for(PLACE, error_of(state)) is None


def test_what_the_driver_says_by_itself() -> None:
    """A connection that is gone has no state; a NUL byte never leaves this process; else it is a bug."""
    gone = error_for(PLACE, psycopg.OperationalError("the connection is closed"))
    assert gone is not None
    assert gone.code == "ledger-unreachable"
    odd = error_for(PLACE, psycopg.DataError("PostgreSQL text fields cannot contain NUL (0x00) bytes"))
    assert odd is not None
    assert odd.code == "row-not-text"
    assert error_for(PLACE, psycopg.ProgrammingError("no results to fetch")) is None


@pytest.mark.parametrize(
    ("said", "hint"),
    [
        ('FATAL:  password authentication failed for user "al"', "~/.pgpass"),
        ("fe_sendauth: no password supplied", "~/.pgpass"),
        ('FATAL:  database "d" does not exist', "role and database"),
        ("failed to resolve host 'h': Name or service not known", "the host in the URL"),
        ('FATAL:  no pg_hba.conf entry for host "1.2.3.4"', "pg_hba.conf"),
        ("Connection refused", "not added twice"),
    ],
)
def test_what_helps_where_a_connection_is_refused(said: str, hint: str) -> None:
    """Nobody is sent to look after a server that only asks for another password."""
    error = error_for(PLACE, psycopg.OperationalError(said))
    assert error is not None
    assert error.code == "ledger-unreachable"
    assert hint in error.hint


def test_a_url_that_libpq_cannot_read() -> None:
    """How letters are written."""
    error = bad_url(PLACE, psycopg.ProgrammingError('invalid percent-encoded token: "hush"'))
    assert isinstance(error, Misconfigured)
    assert "%40" in error.hint
    assert "hush" not in error.message
    assert "cannot read this URL" in error.message
    plain = bad_url(Server("postgresql://al:a@h/d"), psycopg.ProgrammingError('invalid URI query parameter: "foo"'))
    assert plain.message == 'postgresql://al@h/d: invalid URI query parameter: "foo"'


def test_what_can_be_tried_again() -> None:
    """A key that has just been added, a serialization failure, a deadlock; nothing else."""
    assert all(postgres.is_race(error_of(state)) for state in ("23505", "40001", "40P01"))
    assert not any(postgres.is_race(error) for error in (error_of("55P03"), error_of("GL001"), ValueError()))
