"""``import transitions``: the events of a control plane that writes its own file or database, each once.

In: JSON lines, or a query. Out: what came of them. They are facts: what breaks a rule is kept, and told.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import tzinfo
from hashlib import sha256
from pathlib import Path

from gpuledger.errors import Misconfigured
from gpuledger.ledger.store import Ledger
from gpuledger.model.durations import several
from gpuledger.model.lifecycle import ENDED, HOLDING, Transition
from gpuledger.model.missing import Missing
from gpuledger.model.moments import iso
from gpuledger.model.outcomes import HistoryReport
from gpuledger.model.problem import Problem
from gpuledger.model.rows import Watch
from gpuledger.operations.reading_files import read_text
from gpuledger.operations.transition import HEARTBEAT, record_transitions
from gpuledger.sources import sql_query, transition_lines
from gpuledger.sources.trace_times import zone_named
from gpuledger.sources.transition_lines import Lines

AT_ONCE = 10_000
"""Transitions of one transaction, so that others who write never wait for long."""

_BY = ("user", "team", "project")
_METHOD = "sql"
_NOT_TOLD = Missing("nothing says until when")
_NOTHING = Missing("it tells of nothing")
_LINES = "give JSON lines in UTF-8, one transition a line"


def read_lines(path: Path, *, source: str, keep_going: bool, zone: str | None = None) -> Lines:
    """The transitions of a file of JSON lines, or of stdin for ``-``.

    Args:
        path, source, keep_going: as :func:`gpuledger.sources.transition_lines.parse` takes them.
        zone: name of the zone of times that carry none.

    Raises:
        BadInput: the first line that cannot be understood, unless ``keep_going``.
        Misconfigured: ``unknown-zone``.
    """
    declared = _zone(zone)
    return transition_lines.parse(
        read_text(path, hint=_LINES), path=str(path), source=source, keep_going=keep_going, zone=declared
    )


def read_query(
    open_ledger: Callable[[], Ledger], query: str, *, database: str, cursor: str, source: str, keep_going: bool,
    zone: str | None = None,
) -> tuple[Lines, str]:  # fmt: skip
    """The transitions of a query, and the cursor's last value as JSON; empty without a cursor, or without rows.

    Raises:
        Misconfigured: ``bad-query``, ``bad-cursor``, ``bad-database``, ``unknown-zone``.
        Unavailable: ``database-unreachable``, ``database-driver``.
        BadInput: the first row that cannot be understood, unless ``keep_going``.
    """
    after: int | str | None = None
    declared = _zone(zone)
    if cursor:
        with open_ledger() as ledger:
            after = _remembered(ledger, source, _query_key(query, cursor)).value
    rows = sql_query.read(database, query, cursor=cursor, after=after)
    if cursor and rows and cursor not in rows[0]:
        raise Misconfigured("bad-cursor", f"the query has no column {cursor!r}", hint="--cursor COLUMN of the query")
    lines = transition_lines.parse_rows(
        rows, path="row of the query", source=source, keep_going=keep_going, beside=(cursor,), zone=declared
    )
    return lines, json.dumps(_plain(rows[-1][cursor])) if cursor and rows else ""


def import_transitions(
    open_ledger: Callable[[], Ledger],
    lines: Lines,
    *,
    path: str,
    source: str,
    as_of_us: int | None,
    now_us: int,
    writer: str,
    reached: tuple[str, str, str] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> HistoryReport:
    """Append what is new.

    Args:
        open_ledger: opens the ledger to append.
        lines: what was read.
        path: the file or query, as the user named it.
        source: who says so where a line does not.
        as_of_us: until when all is told; what is open is metered to then. None: not known, so each open workload is
            metered to its last event.
        now_us: microseconds UTC.
        writer: the chain, ``HOST.import``.
        reached: (query, cursor column, its last value as JSON), remembered for the next time.
        progress: called with transitions done and in all.

    Raises:
        Misconfigured: ``bad-as-of`` for one that is ahead of now, or before what is told.
    """
    told = lines.transitions
    _refuse_as_of(as_of_us, told, now_us, path)
    problems = list(lines.problems)
    added = known = conflicts = 0
    with open_ledger() as ledger:
        for start in range(0, len(told), AT_ONCE):
            part = told[start : start + AT_ONCE]
            recorded = record_transitions(ledger, part, writer=writer, now_us=now_us, imported=True)
            refused = sum(problem.code == "conflict" for problem in recorded.problems)
            added += len(recorded.added)
            known += len(recorded.known) + refused
            conflicts += refused
            problems += recorded.problems
            if progress is not None:
                progress(start + len(part), len(told))
        sources = {source, *_sources(told)}
        if reached is not None and reached[1]:
            before = _remembered(ledger, source, _query_key(*reached[:2]))
            sources |= before.sources  # also of those that have nothing new to tell: what they left open runs on
        beats = [] if as_of_us is None else [_beat(name, as_of_us) for name in sorted(sources)]
        if reached is not None and reached[2]:
            beats.append(_remember(source, reached, sources, now_us))
        ledger.append(beats, writer=writer, at_us=now_us)
    last = {each.workload: each for each in sorted(told, key=lambda each: each.at_us)}
    running = sum(each.state in HOLDING for each in last.values())
    if running and as_of_us is None:
        open_ones = several(running, "workload")
        message = f"nothing says until when {open_ones} still ran: metered to the last event of each; --as-of TIME"
        problems.append(Problem(code="as-of-unknown", message=message, where=path))
    return HistoryReport(
        path=path,
        source=", ".join(sorted(_sources(told))) or source,
        rows_read=lines.rows_read,
        added=added,
        known=known,
        conflicts=conflicts,
        since_us=min((each.at_us for each in told), default=_NOTHING),
        until_us=max((each.at_us for each in told), default=_NOTHING),
        running=running,
        waiting=sum(each.state not in HOLDING and each.state not in ENDED for each in last.values()),
        as_of_us=_NOT_TOLD if as_of_us is None else as_of_us,
        by=next((word for word in _BY if any(getattr(each, word) for each in told)), "class"),
        problems=tuple(problems),
    )


def _sources(told: tuple[Transition, ...]) -> set[str]:
    return {each.source for each in told}


def _beat(source: str, as_of_us: int) -> Watch:
    return Watch(
        host=source, device="", source="controller", method=HEARTBEAT, interval_ms=0, since_us=as_of_us,
        until_us=as_of_us, status="ok", readings=0, detail=f"all that {source} told until {iso(as_of_us)} was imported",
    )  # fmt: skip


def _query_key(query: str, cursor: str) -> str:
    return sha256(f"{cursor}\n{query}".encode()).hexdigest()[:16]


def _remember(source: str, reached: tuple[str, str, str], sources: Collection[str], now_us: int) -> Watch:
    query, cursor, value = reached
    detail = json.dumps(
        {
            "query": _query_key(query, cursor), "cursor": cursor, "value": json.loads(value),
            "sources": sorted(sources),
        }
    )  # fmt: skip
    return Watch(
        host=source, device="", source="controller", method=_METHOD, interval_ms=0, since_us=now_us, until_us=now_us,
        status="ok", readings=0, detail=detail,
    )  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class _Reached:
    """What is remembered of a query.

    Args:
        value: where its cursor stood last; None before the first time.
        sources: all that its rows ever named.
    """

    value: int | str | None = None
    sources: frozenset[str] = frozenset()


def _remembered(ledger: Ledger, source: str, key: str) -> _Reached:
    """What the last import by the same query left; a row that names no sources is older, and all is read once more."""
    for row in ledger.scan(Watch, hosts=[source], order="time", descending=True):
        if row.source == "controller" and row.method == _METHOD:
            told = json.loads(row.detail)
            if told["query"] == key and "sources" in told:
                return _Reached(value=told["value"], sources=frozenset(told["sources"]))
    return _Reached()


def _refuse_as_of(as_of_us: int | None, told: Sequence[Transition], now_us: int, path: str) -> None:
    """Raise where a time given is none until when all can have been told."""
    if as_of_us is None:
        return
    last_us = min(max((each.at_us for each in told), default=as_of_us), now_us)
    if not last_us <= as_of_us <= now_us:
        message = f"{path}: {iso(as_of_us)} is not between the last it tells, {iso(last_us)}, and now, {iso(now_us)}"
        raise Misconfigured("bad-as-of", message, hint=f"--as-of {iso(last_us)} or later")


def _zone(name: str | None) -> tzinfo | None:
    try:
        return None if name is None else zone_named(name)
    except ValueError as error:
        raise Misconfigured("unknown-zone", str(error), hint="--zone UTC, --zone Europe/Berlin") from None


def _plain(value: object) -> int | str:
    return value if isinstance(value, int) and not isinstance(value, bool) else str(value)
