"""What PostgreSQL and its driver raise, as the errors people meet.

In: an exception, and the place without its password. Out: an error of :mod:`gpuledger.errors`, or nothing where the
fault is this program's own. States are those of PostgreSQL's appendix A, "Error Codes".
"""

from __future__ import annotations

import re

import psycopg

from gpuledger.errors import Corrupt, GpuledgerError, Misconfigured, Refused, Unavailable
from gpuledger.ledger.places import Server

REFUSED = "GL001"
"""The state that this program's own triggers raise."""

OF_ONE_CONNECTION: set[str] = set()
"""Names of the temporary relations that this process has made: one that is missing went with its connection."""

RACES = ("23505", "40001", "40P01")
"""A key that another transaction has just added, a serialization failure, a deadlock."""

_AGAIN = "look after the server, then run the same again: what is there already is not added twice"
_WAYS_IN = (
    (
        "password",
        "check the password of this role: in ~/.pgpass, PGPASSWORD, or the URL with @ : / % as %40 %3A %2F %25",
    ),
    (
        "no pg_hba.conf entry",
        "the server lets this role in from nowhere like here: its administrator adds it to pg_hba.conf",
    ),
    ("does not exist", "check role and database in the URL; to make them: docs/guides/postgresql.md"),
    ("resolve host", "check the host in the URL: postgresql://USER@HOST/DATABASE"),
)
"""What is said of a connection that is refused, and what helps; by words, since no state comes with it."""

_QUOTED = re.compile(r'"[^"]*"?')
_BUSY = ("55P03", "57014", "40001", "40P01")
_CUT = ("57P01", "57P02", "57P03", "57P05")
_BROKEN = ("42P01", "42703", "42883", "3F000")


def error_for(place: Server, error: psycopg.Error) -> GpuledgerError | None:
    """The error a caller can act on; None when the fault is this program's own."""
    state = error.sqlstate or ""
    said = _said(error)
    if (not state and isinstance(error, psycopg.OperationalError)) or state in _CUT or state.startswith("08"):
        return unreachable(place, said)
    if state == REFUSED:
        return Refused("append-only", said, hint="a late fact is appended as a correction: gpuledger meter")
    if state == "23505":
        return Refused(
            "append-only", f"a row of this key is there: {said}", hint="run it again: what is known adds nothing"
        )
    if state in _BUSY:
        return Unavailable(
            "ledger-busy",
            f"{place} is held by another writer; nothing was added",
            hint="try again; see who: psql -c 'SELECT * FROM pg_stat_activity'",
        )
    if state in ("42501", "25006") or state.startswith("28"):
        return Unavailable(
            "ledger-permission",
            f"{place} may not be used so by this role: {said}",
            hint="as the owner of the tables: gpuledger migrate --application ROLE",
        )
    if state == "53100":
        return Unavailable(
            "ledger-full", f"{place} has no room left on its disk; nothing was added", hint="make room on the server"
        )
    if state == "53200":
        return Unavailable("ledger-memory", f"{place}: the server has not enough memory", hint="ask for less time")
    if state.startswith("53"):
        return Unavailable("ledger-busy", f"{place} takes no more connections: {said}", hint="try again later")
    if state == "42P01" and any(f'relation "{name}"' in said for name in OF_ONE_CONNECTION):
        return unreachable(place, "the connection was cut, and with it what had been derived")
    if state in _BROKEN:
        return damaged(place, said)
    if state.startswith("XX"):
        return damaged(place, said)
    if state.startswith("58"):
        return Unavailable("ledger-io", f"{place}: {said}", hint="look into the server's log")
    if state.startswith("54") or state == "22001":
        return Refused("row-too-big", f"a row holds more text than PostgreSQL keeps: {said}", hint="shorten the text")
    if isinstance(error, psycopg.DataError) and "NUL" in str(error):
        return Refused("row-not-text", "a row holds a NUL byte, which PostgreSQL keeps in no text", hint="leave it out")
    return None


def unreachable(place: Server, said: str) -> Unavailable:
    """The error for a server that does not answer, or no longer does.

    What was being appended is there as a whole or not at all.
    """
    hint = next((hint for word, hint in _WAYS_IN if word in said), _AGAIN)
    return Unavailable("ledger-unreachable", f"{place} cannot be reached: {said}", hint=hint)


def damaged(place: Server, why: str) -> Corrupt:
    """The error for a ledger that cannot be read as what it should be."""
    return Corrupt(
        "ledger-damaged", f"{place} is damaged: {why}", hint="gpuledger verify   (then restore from a backup)"
    )


def bad_url(place: Server, error: psycopg.Error) -> Misconfigured:
    """The error for a URL that libpq cannot read. It quotes what it could not read, so a password can be in that."""
    said = _said(error)
    if any(secret in quoted for quoted in _QUOTED.findall(said) for secret in place.secrets):
        said = "PostgreSQL's library cannot read this URL"
    return Misconfigured(
        "bad-ledger-place",
        f"{place}: {said}",
        hint="postgresql://USER@HOST:PORT/DATABASE; letters such as @ : / % in a part are written as %40 %3A %2F %25",
    )


def _said(error: psycopg.Error) -> str:
    """The server's own words on one line. Neither it nor the driver repeats a password: see :func:`bad_url`."""
    return next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
