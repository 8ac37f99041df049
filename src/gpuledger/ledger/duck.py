"""DuckDB as an engine: one bounded connection, and the metering rule run on it over its own relations.

In: the statement of ``metering/reserved.sql`` as :mod:`.metered` gives it, events as Arrow or Parquet. Out: its
relations. The text is the rule's own: only the mark before a parameter's name is DuckDB's. Nothing is kept: DuckDB is
an engine, never the store.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Any

from gpuledger.errors import Unavailable
from gpuledger.ledger import metered, parquet

MEMORY_MIB = 400
"""What DuckDB may hold itself; the rest of 1 GB is for Python, Arrow, and what an operator takes beyond it."""

THREADS = 4
"""At most: each has its own part of the sorts in memory."""

_SHORT_LIVED = ("SET force_compression = 'uncompressed'", "PRAGMA disable_checkpoint_on_shutdown")
"""The file of what is put aside is read once and thrown away: to compress it, and to tidy it at the end, took a tenth
of all CPU (DuckDB 2.0)."""

RULE_READS: tuple[str, ...] = (
    "writer", "number", "workload", "sequence", "state", "at_us", "source", "is_declared", "subject", "placement",
)  # fmt: skip
"""The columns of an event that the rule reads."""

_LEASE = "in-use"
"""A file in the folder of what is put aside, locked while its process lives: one that is not is of a process that was
killed, and whoever comes next to the same place takes it away."""

_RELATIONS = ("metered_workload", "metered_mark", "metered_hour", "metered_beat", "metered_run", "metered_amount")


class Duck:
    """One connection, with a folder for what does not fit into memory. A context manager.

    Args:
        beside: the folder in which that folder is made.
        memory_mib, threads: bounds.

    Attributes:
        folder: for what is put aside; it goes with the connection.
    """

    def __init__(self, beside: Path | None = None, *, memory_mib: int = MEMORY_MIB, threads: int | None = None) -> None:
        module = parquet.duckdb()
        self._error = module.Error
        place = beside or Path(tempfile.gettempdir())
        with parquet.mapped(place):
            _remove_left(place)
            self.folder = Path(tempfile.mkdtemp(prefix=parquet.ASIDE, dir=place))
            self._lease = _lease(self.folder)
        wanted = {
            "memory_limit": f"{memory_mib}MiB",
            "threads": threads or min(THREADS, os.cpu_count() or 1),
            "temp_directory": str(self.folder / "spill"),
            "preserve_insertion_order": False,
            "autoinstall_known_extensions": False,
            "autoload_known_extensions": False,
        }
        try:
            self._connection = module.connect(str(self.folder / "aside.duckdb"), config=wanted)
            for setting in _SHORT_LIVED:
                self._connection.execute(setting)
        except BaseException:
            self._let_go()
            raise

    def __enter__(self) -> Duck:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the connection and of what was put aside."""
        self._connection.close()
        self._let_go()

    def _let_go(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)
        os.close(self._lease)

    def run(self, statement: str, bound: dict[str, Any] | None = None) -> Any:
        """Run a statement; its result has ``fetchall`` and ``fetchmany``.

        Raises:
            Unavailable: ``lake-full``, ``lake-memory``.
        """
        with self._mapped():
            return self._connection.execute(statement, bound or {})

    def batches(self, statement: str, bound: dict[str, Any] | None = None) -> Iterator[Any]:
        """The rows of a statement as Arrow record batches, streamed."""
        with self._mapped():
            found = self._connection.sql(statement, params=bound or {})
            yield from found.to_arrow_reader(parquet.ROWS_AT_ONCE)

    @contextmanager
    def _mapped(self) -> Iterator[None]:
        try:
            yield
        except self._error as error:
            raise self._known(error) from error

    def _known(self, error: Exception) -> Exception:
        said = str(error)
        if "No space left" in said or "max_temp_directory_size" in said:
            return Unavailable(
                "lake-full", f"no room in {self.folder.parent} for what does not fit into memory",
                hint=f"make room: df -h {self.folder.parent}",
            )  # fmt: skip
        if type(error).__name__ == "OutOfMemoryException":
            return Unavailable(
                "lake-memory", "the memory that DuckDB may use is not enough for this", hint="ask for less time"
            )
        return error

    def rows(self, statement: str, bound: dict[str, Any] | None = None) -> list[tuple[Any, ...]]:
        """All rows of a statement."""
        return list(self.run(statement, bound).fetchall())

    def bring(self, name: str, table: Any) -> None:
        """Fill a relation from an Arrow table of the same columns."""
        self._connection.register("brought", table)
        try:
            self.run(f"INSERT INTO {name} BY NAME SELECT * FROM brought")  # noqa: S608 a name of this program
        finally:
            self._connection.unregister("brought")

    def fill(self, name: str, columns: Sequence[str], rows: Sequence[tuple[Any, ...]]) -> None:
        """Fill a relation from tuples."""
        if not rows:
            return
        pyarrow = parquet.arrow()
        values = [pyarrow.array(list(column)) for column in zip(*rows, strict=True)]
        self.bring(name, pyarrow.Table.from_arrays(values, names=list(columns)))

    # The rule

    def make_relations(self) -> None:
        """Make what the rule reads and fills, empty."""
        for name in _RELATIONS:
            self.run(f"CREATE OR REPLACE TEMP TABLE {name} ({_plain(metered.RELATIONS[name])})")
        types = ", ".join(
            f"{name} {'BIGINT' if name in ('number', 'sequence', 'at_us', 'is_declared') else 'VARCHAR'}"
            for name in RULE_READS
        )
        self.run(f"CREATE OR REPLACE TEMP TABLE workload_event ({types})")

    def clear(self, *names: str) -> None:
        """Empty relations."""
        for name in names:
            self.run(f"DELETE FROM {name}")  # noqa: S608 a name of this program

    def find_runs(self, until_us: int) -> None:
        """The rule's first part: events to ``metered_run``.

        Args:
            until_us: where time that nothing ends is cut.
        """
        self.clear("metered_run")
        self.run(_bound(metered.parts()[0]), {"until_us": until_us})

    def cut_runs(self) -> None:
        """The rule's second part: ``metered_run`` and ``metered_hour`` to ``metered_amount``."""
        self.clear("metered_amount")
        self.run(_bound(metered.parts()[1]))


def _lease(folder: Path) -> int:
    """Lock the lease of a folder; nobody ever sees it without."""
    fresh = folder / f"{_LEASE}.new"
    number = os.open(fresh, os.O_CREAT | os.O_RDWR, 0o600)
    fcntl.flock(number, fcntl.LOCK_EX)
    fresh.rename(folder / _LEASE)
    return number


def _remove_left(place: Path) -> None:
    """Take away what this user's killed processes left in a place."""
    for each in place.glob(f"{parquet.ASIDE}*"):
        with suppress(OSError):  # of another user, in use, or gone meanwhile
            if each.is_symlink() or each.stat().st_uid != os.geteuid():
                continue
            with (each / _LEASE).open("rb") as lease:
                fcntl.flock(lease, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(each)


def _bound(statement: str) -> str:
    return re.sub(r"(?<![:\w]):(\w+)", r"$\1", statement)


def _plain(columns: str) -> str:
    """Columns without keys, which DuckDB would keep an index for; every whole number has 64 bits."""
    return re.sub(r"\bINTEGER\b", "BIGINT", columns.replace(" PRIMARY KEY", "").replace(" NOT NULL", ""))
