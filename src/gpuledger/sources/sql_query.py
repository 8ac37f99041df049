"""A query on somebody else's database: the rows of a control plane that writes its own.

``read`` touches the world, inside a transaction that is rolled back: nothing is changed there, whatever the query says.
"""

from __future__ import annotations

import re
import sqlite3
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from gpuledger.errors import GpuledgerError, Misconfigured, Unavailable

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,62}")


def read(url: str, query: str, *, cursor: str = "", after: int | str | None = None) -> list[dict[str, Any]]:
    """All rows of a query, by column name.

    Args:
        url: ``sqlite:///PATH`` or ``postgresql+psycopg://...``.
        query: a SELECT.
        cursor: a column of it that only rises; rows are sorted by it, and those before ``after`` left out.
        after: its last value before; None at the first time. Rows of that very value come again.

    Raises:
        Misconfigured: ``bad-database``, ``bad-cursor``, ``bad-query``.
        Unavailable: ``database-unreachable``; ``database-driver`` where Python has none for it.
    """
    if cursor and not _NAME.fullmatch(cursor):
        raise Misconfigured("bad-cursor", f"{cursor!r} is not the name of a column", hint="--cursor id")
    try:
        address = sa.make_url(url)
        _refuse_absent(address)
        engine = sa.create_engine(address, poolclass=sa.NullPool)
    except (sa.exc.NoSuchModuleError, ModuleNotFoundError) as error:
        raise Unavailable("database-driver", f"this database needs a driver: {error}", hint=_driver_hint(url)) from None
    except sa.exc.ArgumentError:
        raise Misconfigured("bad-database", "--database is not the URL of a database", hint="sqlite:///PATH") from None
    # the user's own colons (::text, '12:00') are no parameters
    text, values = query.strip().rstrip(";").replace(":", r"\:"), {}
    if cursor:
        # on lines of its own: the query may end with a comment
        text = f"SELECT * FROM (\n{text}\n) AS told"  # noqa: S608 the query is the user's own, the name was checked
        if after is not None:
            text, values = f"{text} WHERE told.{cursor} >= :after", {"after": after}
        text = f"{text} ORDER BY told.{cursor}"
    try:
        with engine.connect() as connection:
            try:
                result = connection.execute(sa.text(text), values)
                if not result.returns_rows:
                    raise Misconfigured("bad-query", "the query gives no rows", hint='--sql "SELECT ..."')
                return [dict(row) for row in result.mappings()]
            finally:
                connection.rollback()
    except sa.exc.DBAPIError as error:
        raise _named(error) from None
    except sa.exc.StatementError as error:
        raise _bad_query(error) from None


def _refuse_absent(address: sa.URL) -> None:
    """A query must not make a new, empty database of a mistyped path."""
    path = address.database
    if address.get_backend_name() == "sqlite" and (not path or not Path(path).is_file()):
        raise Unavailable("database-unreachable", f"there is no database at {path or address}", hint="check --database")


def _named(error: sa.exc.DBAPIError) -> GpuledgerError:
    """What a database's own error means for the person: SQLite tells by a number, others by the kind of exception."""
    number = getattr(error.orig, "sqlite_errorcode", None)
    if number == sqlite3.SQLITE_NOTADB:
        return Misconfigured(
            "bad-database", "the file that --database names is no SQLite database", hint="--database sqlite:///PATH"
        )
    is_query = not isinstance(error, sa.exc.OperationalError) if number is None else number == sqlite3.SQLITE_ERROR
    if is_query:
        return _bad_query(error)
    return Unavailable(
        "database-unreachable", f"the database does not answer: {_first_line(error)}", hint="check --database"
    )


def _driver_hint(url: str) -> str:
    if url.startswith("postgres"):
        return "pip install psycopg, and postgresql+psycopg://..."
    return "install the driver that SQLAlchemy has for it: pip install pymysql, and mysql+pymysql://..., for one"


def _bad_query(error: sa.exc.SQLAlchemyError) -> Misconfigured:
    return Misconfigured(
        "bad-query",
        f"the database refuses the query: {_first_line(error)}",
        hint='--sql "SELECT ..." as it stands, without parameters: what --cursor reached is asked for around it',
    )


def _first_line(error: sa.exc.SQLAlchemyError) -> str:
    cause = getattr(error, "orig", None) or error
    return str(cause).strip().splitlines()[0]
