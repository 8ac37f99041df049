"""What the verbs about the store itself have done: ``migrate`` and ``copy``."""

from __future__ import annotations

from dataclasses import dataclass

from gpuledger.model.problem import Problem


@dataclass(frozen=True, slots=True, kw_only=True)
class Granted:
    """A role and what it may do with the ledger's tables.

    Args:
        role: its name on the server.
        may_append: add rows and delete identity texts; else only read.
        is_there: whether the server has such a role; without it nothing was granted.
    """

    role: str
    may_append: bool
    is_there: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class MigrateReport:
    """A ledger brought up to date.

    Args:
        ledger: its place as text.
        by_itself: whether such a ledger does so whenever it is opened to append (SQLite).
        before: the version of its tables; 0 where there were none.
        after: their version now.
        granted: roles of a server, in the order asked for.
        problems: what was imperfect.
    """

    ledger: str
    by_itself: bool
    before: int
    after: int
    granted: tuple[Granted, ...] = ()
    problems: tuple[Problem, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CopyReport:
    """What one copy brought over, byte for byte.

    Args:
        source, target: their places as text.
        chains: hash chains of the source.
        rows, links, texts: what is new in the target.
        known_rows: rows that were there already.
        root: root of the target's last seal; empty before the first.
    """

    source: str
    target: str
    chains: int
    rows: int
    links: int
    texts: int
    known_rows: int
    root: str
