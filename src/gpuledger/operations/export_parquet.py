"""``export parquet``: the ledger as a lake, a Parquet file for each table and month, and a manifest that seals it.

A second export writes what is new or changed; months that stand as they were are left alone. Each file comes under its
final name whole, and the manifest last: after a killed export every file is whole, old or new, and the next export
mends what the manifest does not know yet. Texts are written anew each time: who was forgotten leaves the lake with the
next export.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from gpuledger.errors import Misconfigured
from gpuledger.ledger import months, parquet
from gpuledger.ledger.copying import hash_at
from gpuledger.ledger.kinds import KIND_OF
from gpuledger.ledger.lake import Lake, file_of, put_manifest, writing
from gpuledger.ledger.leaving import LEAVE
from gpuledger.ledger.months import TABLES, Held
from gpuledger.ledger.store import Ledger
from gpuledger.model.lake import TEXTS, ExportReport, Manifest, month_of, month_span
from gpuledger.model.missing import Missing
from gpuledger.operations.archived import archived_between, missing

_EARLIEST_US = -(2**62)


def export_parquet(
    ledger: Ledger,
    folder: Path,
    *,
    now_us: int,
    since_us: int | None = None,
    until_us: int | None = None,
    tables: Sequence[str] = (),
    progress: Callable[[int, int], None] | None = None,
) -> ExportReport:
    """Bring a lake up to what the ledger holds.

    Args:
        ledger: open in either mode; nothing is written to it.
        folder: where the lake lies or will lie.
        now_us: when.
        since_us, until_us: months that touch this window; all without.
        tables: which; all without. Texts go with them always.
        progress: called with files done and files in all.

    Raises:
        Misconfigured: ``unknown-table``, ``not-a-lake``, ``other-ledger``, ``lake-version``, ``empty-window``.
        Unavailable: ``archive-missing``, ``missing-extra``, ``lake-busy``, ``lake-full``, ``lake-io``.
        Corrupt: ``lake-damaged`` where the manifest cannot be understood.
    """
    parquet.arrow()
    if unknown := [table for table in tables if table not in TABLES]:
        raise Misconfigured("unknown-table", f"{unknown[0]!r} is no table", hint=f"one of {', '.join(TABLES)}")
    if since_us is not None and until_us is not None and since_us >= until_us:
        raise Misconfigured("empty-window", "the window ends before it begins", hint="--since must lie before --until")
    _refuse_archived(ledger, _window(since_us, until_us), tables)
    chosen = [table for table in TABLES if not tables or table in tables or table == TEXTS]
    with writing(folder):
        before = Lake.open_if_there(folder, is_writer=True)
        with ledger.snapshot():
            _refuse_archived(ledger, _window(since_us, until_us), tables)  # what left since it was looked at
            if before is not None:
                _refuse_another_ledgers(ledger, before)
            return _Export(ledger, folder, before, now_us=now_us).run(
                chosen, _window(since_us, until_us), progress or _nothing
            )


def _refuse_another_ledgers(ledger: Ledger, lake: Lake) -> None:
    """Raise where a lake is not of this ledger as it was before: its files would be mixed with others, or removed.

    Raises:
        Misconfigured: ``other-ledger``.
    """
    for writer, (number, digest) in lake.manifest.heads.items():
        if hash_at(ledger, writer, number) != digest:
            raise Misconfigured(
                "other-ledger",
                f"{lake.folder} is not a lake of {ledger.place}: the chain {writer} that it was made of stands at "
                f"{number} there, and is not this ledger's",
                hint="name another folder: --to FOLDER; or delete that one, if its ledger is gone",
            )


def _refuse_archived(ledger: Ledger, window: tuple[int, int], tables: Sequence[str]) -> None:
    """Raise where rows of the months left the ledger and do not lie under it: files that were whole would lose them.

    Raises:
        Unavailable: ``archive-missing``.
    """
    since_us, until_us = window
    left = archived_between(ledger, since_us or _EARLIEST_US, until_us or -_EARLIEST_US)
    names = {kind.kind: KIND_OF[kind].table.name for kind in LEAVE}
    left = [row for row in left if not tables or names[row.rows_of] in tables]
    if left:
        raise missing(left, "a lake without what left the ledger would not be whole", "gpuledger export parquet ...")


def _nothing(done: int, of: int) -> None:
    """Nobody is looking."""
    del done, of


def _window(since_us: int | None, until_us: int | None) -> tuple[int, int]:
    """The window as whole months; 0 at a side that is open."""
    first = month_span(month_of(since_us))[0] if since_us is not None else 0
    last = month_span(month_of(until_us - 1))[1] if until_us is not None else 0
    return first, last


class _Export:
    """One export, inside a snapshot of the ledger."""

    def __init__(self, ledger: Ledger, folder: Path, before: Lake | None, *, now_us: int) -> None:
        self._ledger = ledger
        self._folder = folder
        self._lake = before
        self._files = {file.name: file for file in before.manifest.files} if before else {}
        self._now_us = now_us
        self._written: list[str] = []
        self._removed: list[str] = []
        self._kept = 0
        self._months: dict[str, dict[str, Held]] = {}

    def _held(self, table: str) -> dict[str, Held]:
        if table not in self._months:
            self._months[table] = months.held(self._ledger, table)
        return self._months[table]

    def run(self, tables: Sequence[str], window: tuple[int, int], progress: Callable[[int, int], None]) -> ExportReport:
        heads = self._ledger.heads()
        root = self._ledger.latest_root()
        due = [
            (table, month, held)
            for table in tables
            for month, held in sorted(self._held(table).items())
            if self._is_asked(month, window)
        ]
        standing = {self._name(table, month) for table, month, _ in due}
        for done, (table, month, held) in enumerate(due):
            progress(done, len(due))
            self._bring(table, month, held)
        progress(len(due), len(due))
        for name in sorted(self._files):
            file = self._files[name]
            if file.table in tables and self._is_asked(file.month, window) and name not in standing:
                del self._files[name]
                self._removed.append(name)
        last = self._lake.manifest if self._lake else None
        manifest = put_manifest(
            self._folder,
            Manifest(
                exported_at_us=self._now_us,
                since_us=window[0],
                until_us=window[1],
                whole=self._is_whole(window),
                all_tables=set(TABLES) <= set(tables),
                marks={writer: number for writer, (number, _) in heads.items()},
                heads=heads,
                root="" if isinstance(root, Missing) else root,
                files=(),
                metered_at_us=last.metered_at_us if last else 0,
                metered_until_us=last.metered_until_us if last else 0,
                metered_of=last.metered_of if last else "",
                unplaced_us=last.unplaced_us if last else 0,
            ),
            self._files.values(),
        )
        for name in self._removed:
            (self._folder / name).unlink(missing_ok=True)
        return ExportReport(
            place=str(self._folder), manifest=manifest, written=tuple(self._written), kept=self._kept,
            removed=tuple(self._removed), strangers=tuple(Lake(self._folder, manifest).strangers()),
        )  # fmt: skip

    @staticmethod
    def _is_asked(month: str, window: tuple[int, int]) -> bool:
        if not month:
            return True
        since_us, until_us = month_span(month)
        return (not window[0] or until_us > window[0]) and (not window[1] or since_us < window[1])

    @staticmethod
    def _name(table: str, month: str) -> str:
        return f"{table}/{month}.parquet" if month else f"{table}.parquet"

    def _bring(self, table: str, month: str, held: Held) -> None:
        name = self._name(table, month)
        file = self._files.get(name)
        same = file is not None and (file.rows, dict(file.numbers)) == (held.rows, held.numbers)
        # a text that went and another that came leave the number of texts as it was
        if file is not None and same and table != TEXTS and self._lake is not None and self._lake.stands(file):
            self._kept += 1
            return
        if not held.rows and table != TEXTS:
            return
        written = parquet.write(self._folder / name, table, months.rows_of(self._ledger, table, month))
        self._files[name] = file_of(name, table, month, held.numbers, written)
        if table != TEXTS or file is None or file.sha256 != written.sha256:
            self._written.append(name)
        else:
            self._kept += 1

    def _is_whole(self, window: tuple[int, int]) -> bool:
        """Whether every event up to the end of the window is in the lake, with what the rule needs beside it."""
        for table in ("workload_event", "watch", "placement", "pass", "usage_record", "usage_correction"):
            for month, held in self._held(table).items():
                if month and window[1] and month_span(month)[0] >= window[1]:
                    continue
                file = self._files.get(self._name(table, month))
                if file is None and not held.rows:
                    continue
                if file is None or (file.rows, dict(file.numbers)) != (held.rows, held.numbers):
                    return False
        return True
