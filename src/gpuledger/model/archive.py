"""What has left the ledger for an archive, and what ``archive`` says before and after it.

Old evidence leaves as one file for each month and kind; the row :class:`Archive` stays in its place: how much left,
from which chains, and the hashes by which the file is known again. It is chained and sealed like every row.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from gpuledger.model.missing import Missing
from gpuledger.model.problem import Problem
from gpuledger.model.rows import Row


@dataclass(frozen=True, slots=True, kw_only=True)
class Archive(Row):
    """The rows of one kind and month that left the ledger. Key: (rows_hash).

    Args:
        archived_at_us: when they left, microseconds UTC.
        before_us: hours before this are closed for good: what comes later of them is not counted.
        month: the UTC month in which they end, ``2026-07``.
        rows_of: their kind, the first word of their references: ``driver``, ``sighting``, ``event``, ``hold``,
            ``expected``.
        row_count: how many.
        first_us, last_us: earliest start and latest end of what they tell.
        writers: JSON object, writer to [lowest number, highest number, rows], keys sorted.
        rows_hash: SHA-256, hex, over the rows in the order of writer and number, as a link hashes them.
        file_name: the file inside the archive's folder.
        file_hash: SHA-256, hex, of the file's bytes.
        folder: where the folder lay when it was written; it may have moved since.
    """

    kind: ClassVar[str] = "archive"

    archived_at_us: int
    before_us: int
    month: str
    rows_of: str
    row_count: int
    first_us: int
    last_us: int
    writers: str
    rows_hash: str
    file_name: str
    file_hash: str
    folder: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LeavingLine:
    """The rows of one kind and month that leave.

    Args:
        month: the UTC month, ``2026-07``.
        rows_of: their kind.
        row_count: how many.
        size: bytes of their canonical text: what the hash is over, and about what the ledger gives back.
        file_name: the file they are in; empty as long as nothing is written.
        file_size: its bytes; Missing as long as nothing is written.
    """

    month: str
    rows_of: str
    row_count: int
    size: int
    file_name: str = ""
    file_size: int | Missing


@dataclass(frozen=True, slots=True, kw_only=True)
class StayingLine:
    """Rows from before the bound that stay, and why.

    Args:
        rows_of: their kind.
        row_count: how many of them end before the bound.
        reason: a clause: what needs them.
    """

    rows_of: str
    row_count: int
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchiveReport:
    """What ``archive`` would move, or has moved.

    Args:
        done: whether it was; else this is what would be.
        before_us: the bound, microseconds UTC.
        folder: where it goes; empty where none was named.
        leaving: by month, then kind.
        staying: by kind.
        root: of the seal made after it; empty unless done.
        problems: what is worth knowing beside it.
    """

    done: bool
    before_us: int
    folder: str
    leaving: tuple[LeavingLine, ...]
    staying: tuple[StayingLine, ...]
    root: str = ""
    problems: tuple[Problem, ...] = ()

    @property
    def row_count(self) -> int:
        """Rows that leave."""
        return sum(line.row_count for line in self.leaving)

    @property
    def size(self) -> int:
        """Bytes of their canonical text."""
        return sum(line.size for line in self.leaving)
