"""``meter --lake``: the events of a lake to records of reserved time, Parquet to Parquet.

A lake is a copy, so what is derived here is no record of the ledger: it stands in ``derived_record/``, by writer
``lake``, and says what the events come to now, late ones included, hour by hour. Exported records and corrections add
up to the same where every difference was booked; ``--check`` shows where they do not.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from gpuledger.errors import Misconfigured
from gpuledger.ledger import parquet
from gpuledger.ledger.duck import Duck
from gpuledger.ledger.lake import Lake, file_of, put_manifest, writing
from gpuledger.ledger.lake_rule import LakeRule
from gpuledger.ledger.lake_sums import differences
from gpuledger.metering.records import closed_until
from gpuledger.model.lake import DERIVED, LakeFile, LakeMeterReport, Manifest
from gpuledger.model.moments import SECOND_US

_RECORD = "usage_record"
_WRITER = "lake"
_READ = ("workload_event", "placement", "watch")
_LISTED = 20


def meter_lake(
    folder: Path,
    *,
    now_us: int | None = None,
    check: bool = False,
    progress: Callable[[int, int], None] | None = None,
    memory_mib: int | None = None,
) -> LakeMeterReport:
    """Derive every closed hour of a lake; where neither events nor time have changed nothing is written.

    Args:
        folder: the lake.
        now_us: the time it is run for, at most that of the export, which is the default: nothing is known after it.
        check: compare with the exported records too, and hash every file first.
        progress: called with parts done and parts in all.
        memory_mib: what DuckDB may hold, where not the usual.

    Raises:
        NotFound: ``no-lake``.
        Misconfigured: ``lake-incomplete``, ``lake-version``.
        Unavailable: ``missing-extra``, ``lake-busy``, ``lake-full``, ``lake-io``, ``lake-memory``.
        Corrupt: ``lake-damaged``.
    """
    Lake.open(folder)
    parquet.duckdb()
    parquet.arrow()
    with writing(folder):
        lake = Lake.open(folder, is_writer=True)
        if check:
            lake.look_over()
        _refuse_part(lake)
        lake.paths(*_READ)  # also where nothing has changed by the manifest's word
        until_us = _until(lake.manifest, now_us)
        digest = _digest(lake.manifest, until_us)
        standing = lake.manifest.of(DERIVED)
        with Duck(folder, **({} if memory_mib is None else {"memory_mib": memory_mib})) as duck:
            written: list[LakeFile] = []
            unplaced_us = 0
            if digest != lake.manifest.metered_of or not all(lake.stands(file) for file in standing):
                rule = LakeRule(lake, duck, until_us=until_us)
                for done, of in rule.find():
                    if progress is not None:
                        progress(done, of)
                unplaced_us = rule.unplaced_us()
                written = _write(folder, rule, recorded_at_us=lake.manifest.exported_at_us)
                lake = _replaced(lake, written, until_us=until_us, digest=digest, unplaced_us=unplaced_us)
            found = differences(lake, duck) if check else []
        return LakeMeterReport(
            place=str(folder),
            until_us=until_us,
            records=sum(file.rows for file in lake.manifest.of(DERIVED)),
            files=tuple(file.name for file in written),
            unplaced_s=lake.manifest.unplaced_us // SECOND_US,
            checked=check,
            differences=len(found),
            listed=tuple(found[:_LISTED]),
        )


def _refuse_part(lake: Lake) -> None:
    if not lake.manifest.whole:
        raise Misconfigured(
            "lake-incomplete",
            f"{lake.folder} holds a part of the ledger: what ran across its edge would be counted wrongly",
            hint=f"gpuledger export parquet --to {lake.folder}   (without --since, --until, --table)",
        )


def _until(manifest: Manifest, now_us: int | None) -> int:
    """The end of the last closed hour of which the lake can tell."""
    known_us = min(manifest.exported_at_us, now_us if now_us is not None else manifest.exported_at_us)
    closed_us = closed_until(known_us)
    return min(closed_us, manifest.until_us) if manifest.until_us else closed_us


def _digest(manifest: Manifest, until_us: int) -> str:
    read = [(file.name, file.sha256) for file in manifest.of(*_READ)]
    return hashlib.sha256(json.dumps([read, until_us]).encode()).hexdigest()


def _write(folder: Path, rule: LakeRule, *, recorded_at_us: int) -> list[LakeFile]:
    written: list[LakeFile] = []
    number = 1
    for month in rule.months():
        name = f"{DERIVED}/{month}.parquet"
        numbered = _Numbered(rule.records(month), first=number, recorded_at_us=recorded_at_us)
        schema = parquet.schema_of(_RECORD, named=DERIVED)
        file = parquet.write_arrow(folder / name, schema, numbered.tables(schema))
        if not file.rows:
            (folder / name).unlink()
            continue
        last = number + file.rows - 1
        written.append(file_of(name, DERIVED, month, {_WRITER: (number, last)}, file))
        number = last + 1
    return written


class _Numbered:
    """Batches of derived rows as whole records: with writer, number and time."""

    def __init__(self, batches: Iterator[Any], *, first: int, recorded_at_us: int) -> None:
        self._batches = batches
        self._next = first
        self._recorded_at_us = recorded_at_us

    def tables(self, schema: Any) -> Iterator[Any]:
        pyarrow = parquet.arrow()
        for batch in self._batches:
            rows = batch.num_rows
            columns = {name: batch.column(name) for name in batch.schema.names}
            columns["writer"] = pyarrow.repeat(_WRITER, rows)
            columns["number"] = pyarrow.array(range(self._next, self._next + rows), pyarrow.int64())
            columns["recorded_at_us"] = pyarrow.repeat(pyarrow.scalar(self._recorded_at_us, pyarrow.int64()), rows)
            self._next += rows
            yield pyarrow.Table.from_arrays([columns[field.name] for field in schema], schema=schema)


def _replaced(lake: Lake, written: list[LakeFile], *, until_us: int, digest: str, unplaced_us: int) -> Lake:
    """The lake with these derived files, and none that stood before."""
    names = {file.name for file in written}
    old = [file.name for file in lake.manifest.of(DERIVED) if file.name not in names]
    others = [file for file in lake.manifest.files if file.table != DERIVED]
    manifest = put_manifest(
        lake.folder,
        replace(
            lake.manifest, metered_at_us=lake.manifest.exported_at_us, metered_until_us=until_us, metered_of=digest,
            unplaced_us=unplaced_us,
        ),
        [*others, *written],
    )  # fmt: skip
    for name in old:
        (lake.folder / name).unlink(missing_ok=True)
    return Lake(lake.folder, manifest, is_writer=True)


def is_current(manifest: Manifest) -> bool:
    """Whether what was derived is of the events that now stand in the lake."""
    return bool(manifest.metered_of) and manifest.metered_of == _digest(manifest, manifest.metered_until_us)
