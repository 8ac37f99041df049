"""What the owner of a ledger does: brings its tables up to date, and grants them to those who use them.

In: a place, and roles of its server. Out: what was done. On SQLite whoever opens the file to append does the first, and
there is nothing to grant.
"""

from __future__ import annotations

from collections.abc import Sequence

from gpuledger.errors import Misconfigured
from gpuledger.ledger.engine import engine_for
from gpuledger.ledger.places import Place, Server, is_there
from gpuledger.ledger.schema import SCHEMA_VERSION, VERSION_TABLES
from gpuledger.ledger.store import Ledger
from gpuledger.model.problem import Problem
from gpuledger.model.stores import Granted, MigrateReport

APPLICATION = "gpuledger"
"""The role that the application has where none is named."""

MAKE_ROLE = "psql -c \"CREATE ROLE {role} LOGIN PASSWORD '...'\"   (as a superuser), then gpuledger migrate again"


def bring_up_to_date(place: Place, *, applications: Sequence[str] = (), readers: Sequence[str] = ()) -> MigrateReport:
    """Make the tables of a ledger, or bring them up to date, all or nothing, and grant them to roles.

    Args:
        place: where it lies; on a server with the owner's name.
        applications: roles that add rows; :data:`APPLICATION` where none is named.
        readers: roles that only read.

    Raises:
        Misconfigured: ``no-such-role`` for a role that was named and is not there, ``no-roles`` for roles of a file,
            ``no-schema``.
        Unavailable: as opening a ledger says; ``ledger-permission`` where this role may not make tables or grant them.
    """
    if isinstance(place, Server):
        return _on_a_server(place, applications, readers)
    if applications or readers:
        raise Misconfigured("no-roles", f"{place} is a file: its mode and group say who may use it", hint="ls -l")
    before = 0
    if is_there(place) and place.stat().st_size:
        from gpuledger.ledger.sqlite_file import stored_version  # noqa: PLC0415 beside the other engine's, in this one place

        before = stored_version(place)
    Ledger.open(place, mode="append").close()
    return MigrateReport(ledger=str(place), by_itself=True, before=before, after=SCHEMA_VERSION)


def _on_a_server(place: Server, applications: Sequence[str], readers: Sequence[str]) -> MigrateReport:
    engine_for(place)  # says that the driver is missing, where it is
    from gpuledger.ledger import postgres, postgres_tables  # noqa: PLC0415 needs the driver
    from gpuledger.ledger.migrate import migrate  # noqa: PLC0415 Alembic is only paid for when needed

    wanted = dict.fromkeys(applications or (APPLICATION,), True) | dict.fromkeys(readers, False)
    problems: list[Problem] = []
    granted: list[Granted] = []
    opened = postgres.connect(place)
    connection = opened.connection
    try:
        with postgres.errors_of(opened), postgres.transaction(connection, write=True, alone=("migrate",)):
            postgres_tables.refuse_without_schema(connection)
            postgres_tables.refuse_without_ownership(connection)
            before = postgres.stored_version(connection)
            if not before:
                postgres_tables.refuse_without_room(connection)
            postgres.refuse_newer(place, before)
            roles = postgres_tables.look_at(connection, list(wanted))
            for role in roles:
                if not role.is_there and role.role in (*applications, *readers):
                    raise Misconfigured(
                        "no-such-role",
                        f"{place} has no role {role.role}; nothing was changed",
                        hint=MAKE_ROLE.format(role=role.role),
                    )
            migrate(connection)
            if before < SCHEMA_VERSION:
                postgres_tables.explain_tables(connection)
            for role in roles:
                may_append = wanted[role.role]
                granted.append(Granted(role=role.role, may_append=may_append, is_there=role.is_there))
                if role.is_there:
                    problems += _weakness(role)
                    postgres_tables.grant(
                        connection, role.role, version_table=VERSION_TABLES["postgresql"], may_append=may_append
                    )
                else:
                    message = (
                        f"the tables are there, and no role {role.role} to use them: {MAKE_ROLE.format(role=role.role)}"
                    )
                    problems.append(Problem(code="no-application-role", message=message, where=role.role))
    finally:
        connection.close()
    return MigrateReport(
        ledger=str(place), by_itself=False, before=before, after=SCHEMA_VERSION, granted=tuple(granted),
        problems=tuple(problems),
    )  # fmt: skip


def _weakness(role: object) -> list[Problem]:
    from gpuledger.ledger.postgres_tables import RoleNote  # noqa: PLC0415 as above

    assert isinstance(role, RoleNote)
    if not role.is_strong:
        return []
    message = f"{role.role} is a superuser or owns the tables: triggers refuse every change, but it can switch them off"
    return [Problem(code="role-too-strong", message=message, where=role.role)]
