"""Rows of the ledger in Parquet files, and back: the one place that knows how they stand there.

In: rows as tuples in the order of their table's columns, in batches. Out: a file under its final name, whole and on the
disk, or none; and the same rows again. Columns are those of the ledger, integers and text. ``export parquet`` and
``archive`` write nothing else. The libraries are an extra: they are imported where they are used.
"""

from __future__ import annotations

import errno
import hashlib
import os
import secrets
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from gpuledger.errors import Corrupt, Unavailable
from gpuledger.ledger.codec import CODECS
from gpuledger.ledger.kinds import KINDS
from gpuledger.ledger.schema import METADATA
from gpuledger.model.rows import Row

if TYPE_CHECKING:
    import pyarrow as pa

ROWS_AT_ONCE = 65_536
"""Rows of a batch and of a row group, about: what is held in memory at a time."""

TEMPORARY = ".part"
"""Ending of a file that is being written; one that is left over is of a process that was killed."""

ASIDE = ".gpuledger-duckdb-"
"""Beginning of a folder for what does not fit into memory; it goes with the process, or the next writer removes it."""

_RARELY_TWICE = frozenset(
    {
        "number", "subject", "evidence_hash", "event_id", "text_key", "salt", "digest", "json", "hash", "previous_hash",
        "natural_key", "document", "document_hash", "heads", "root", "previous_root", "evidence_marks",
    }
)  # fmt: skip

_TABLE = b"gpuledger.table"
_BLOCK = 1 << 20
_MODE = 0o640
"""As the ledger itself: it says who did what."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """A file as it stands on the disk.

    Args:
        rows: how many.
        size: bytes.
        sha256: of its bytes, hex.
        changed_ns: its time of change.
    """

    rows: int
    size: int
    sha256: str
    changed_ns: int


def arrow() -> Any:
    """The module ``pyarrow``, with its Parquet part.

    Raises:
        Unavailable: ``missing-extra``.
    """
    try:
        import pyarrow  # noqa: PLC0415, ICN001 an extra, named as its errors name it
        import pyarrow.parquet  # noqa: PLC0415
    except ImportError as error:
        raise _missing("Parquet files need pyarrow") from error
    return pyarrow


def duckdb() -> Any:
    """The module ``duckdb``.

    Raises:
        Unavailable: ``missing-extra``.
    """
    try:
        import duckdb  # noqa: PLC0415 an extra
    except ImportError as error:
        raise _missing("this engine needs duckdb") from error
    return duckdb


def _missing(why: str) -> Unavailable:
    return Unavailable("missing-extra", f"{why}, which is not installed", hint="pip install 'gpuledger[lake]'")


def columns_of(table: str) -> tuple[str, ...]:
    """The columns of a table of the ledger, in the order in which they stand in a file."""
    return tuple(column.name for column in METADATA.tables[table].columns)


def schema_of(table: str, *, named: str | None = None) -> pa.Schema:
    """The Arrow schema of a table's file: int64 and string.

    Args:
        table: of the ledger.
        named: what the file says that it holds, where that is not the table.
    """
    pyarrow = arrow()
    fields = [
        pyarrow.field(
            column.name,
            pyarrow.int64() if isinstance(column.type, sa.BigInteger) else pyarrow.string(),
            nullable=bool(column.nullable),
        )
        for column in METADATA.tables[table].columns
    ]
    return pyarrow.schema(fields, metadata={_TABLE: (named or table).encode()})


def write(path: Path, table: str, batches: Iterable[Sequence[tuple[Any, ...]]], *, named: str | None = None) -> Written:
    """Write rows into a file: under another name first, then renamed, so that no half file has the final one.

    Args:
        path: where; its folder is made.
        table: whose columns the tuples have.
        batches: of rows, as they come from a cursor; each becomes row groups of its own.
        named: as for :func:`schema_of`.

    Raises:
        Unavailable: ``missing-extra``, ``lake-full``, ``lake-io``; then the name has what it had before.
    """
    schema = schema_of(table, named=named)

    def tables() -> Iterator[Any]:
        for rows in batches:
            if rows:
                columns = zip(*rows, strict=True)
                yield arrow().Table.from_arrays(
                    [arrow().array(values, field.type) for values, field in zip(columns, schema, strict=True)],
                    schema=schema,
                )

    return write_arrow(path, schema, tables())


def write_arrow(path: Path, schema: pa.Schema, tables: Iterable[Any]) -> Written:
    """As :func:`write`, of Arrow tables or record batches of this schema."""
    pyarrow = arrow()

    def fill(temporary: Path) -> int:
        rows = 0
        with pyarrow.parquet.ParquetWriter(
            temporary, schema, compression="zstd", version="2.6", use_dictionary=_repeated(schema)
        ) as writer:
            for each in tables:
                whole = pyarrow.Table.from_batches([each]) if isinstance(each, pyarrow.RecordBatch) else each
                writer.write_table(whole, row_group_size=ROWS_AT_ONCE)
                rows += whole.num_rows
        return rows

    return put(path, fill)


def _repeated(schema: pa.Schema) -> list[str]:
    """Columns whose texts repeat within some thousand rows: a dictionary of the others would only be thrown away."""
    return [name for name in schema.names if name not in _RARELY_TWICE]


def put(path: Path, fill: Callable[[Path], int]) -> Written:
    """Let ``fill`` write a file under a temporary name and give its number of rows, then put it in its place.

    Raises:
        Unavailable: ``lake-full``, ``lake-io``.
    """
    with mapped(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}{TEMPORARY}")
        try:
            temporary.touch(_MODE)
            rows = fill(temporary)
            with temporary.open("rb+") as file:
                os.fsync(file.fileno())
            digest = digest_of(temporary)
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)
        flush_folder(path.parent)
        stands = path.stat()
    return Written(rows=rows, size=stands.st_size, sha256=digest, changed_ns=stands.st_mtime_ns)


def put_text(path: Path, text: str) -> None:
    """As :func:`put`, of a text."""

    def fill(temporary: Path) -> int:
        temporary.write_text(text, encoding="utf-8")
        return 0

    put(path, fill)


def flush_folder(folder: Path) -> None:
    """See to it that what was renamed in a folder is so on the disk."""
    with suppress(OSError):  # some file systems cannot: the rename is then as safe as they make it
        number = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(number)
        finally:
            os.close(number)


def digest_of(path: Path) -> str:
    """SHA-256 over the bytes of a file, hex."""
    sha = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(_BLOCK):
            sha.update(block)
    return sha.hexdigest()


def read(path: Path, table: str, *, named: str | None = None) -> Iterator[list[tuple[Any, ...]]]:
    """The rows of a file in batches, as tuples in the order of their table's columns.

    Raises:
        Corrupt: ``lake-damaged`` where the file is none of this table, or cannot be read to its end.
        Unavailable: ``missing-extra``, ``lake-io``.
    """
    for batch in read_arrow(path, table, named=named):
        columns = [column.to_pylist() for column in batch.columns]
        yield list(zip(*columns, strict=True))


def read_arrow(path: Path, table: str, *, named: str | None = None) -> Iterator[pa.RecordBatch]:
    """As :func:`read`, as Arrow."""
    with mapped(path), opened(path, table, named=named) as file:
        yield from file.iter_batches(batch_size=ROWS_AT_ONCE)


def read_rows(path: Path, kind: type[Row]) -> Iterator[Row]:
    """The rows of a file as the ledger gives them."""
    codec = CODECS[kind]
    table = next(each.table.name for each in KINDS if each.row is kind)
    width = len(codec.fields)
    for rows in read(path, table):
        yield from codec.decode([row[:width] for row in rows])


@contextmanager
def opened(path: Path, table: str, *, named: str | None = None) -> Iterator[Any]:
    """A file, open, its columns looked over.

    Raises:
        Corrupt: ``lake-damaged``.
    """
    pyarrow = arrow()
    try:
        file = pyarrow.parquet.ParquetFile(path)
    except pyarrow.ArrowInvalid as error:
        raise damaged(path, "it is no whole Parquet file") from error
    with file:
        wanted = schema_of(table, named=named)
        if not file.schema_arrow.equals(wanted):
            raise damaged(path, f"its columns are not those of {table}")
        if (file.schema_arrow.metadata or {}).get(_TABLE) != wanted.metadata[_TABLE]:
            raise damaged(path, f"it does not say that it holds {named or table}")
        try:
            yield file
        except (pyarrow.ArrowInvalid, OSError) as error:
            if isinstance(error, OSError) and error.errno is not None:
                raise
            raise damaged(path, "it cannot be read to its end") from error


def damaged(path: Path, why: str) -> Corrupt:
    """The error of a file that is not what it should be."""
    return Corrupt(
        "lake-damaged",
        f"{path} is damaged: {why}",
        hint="delete that file and export again: gpuledger export parquet --to FOLDER",
    )


@contextmanager
def mapped(path: Path) -> Iterator[None]:
    """Turn what the file system raises into the errors people meet."""
    try:
        yield
    except FileNotFoundError as error:
        raise damaged(path, "it is not there") from error
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            raise Unavailable(
                "lake-full", f"{path} could not be written: no room on the disk", hint=f"make room: df -h {path.parent}"
            ) from error
        raise Unavailable(
            "lake-io", f"{path}: {error.strerror or error}", hint="check the path, its owner and the disk"
        ) from error
