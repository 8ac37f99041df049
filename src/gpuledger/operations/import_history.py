"""A history into the ledger: the past that a batch system or a trace declares, metered once, added once.

In: a ``History`` of a source. Out: what came of it. What a history leaves open is told once more as of the history's
own time: declared time is metered to its workload's last event, so each open workload is metered to where this
history knows of it, and no further, whatever other dump of the same source is imported before or after.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from gpuledger.errors import Misconfigured
from gpuledger.ledger.store import Ledger
from gpuledger.model.lifecycle import ENDED, HOLDING, History, State, Transition
from gpuledger.model.missing import Missing
from gpuledger.model.moments import iso
from gpuledger.model.outcomes import HistoryReport
from gpuledger.model.problem import Problem
from gpuledger.operations.known_otherwise import refuse_known_otherwise
from gpuledger.operations.overlapping_runs import without_overlapping
from gpuledger.operations.transition import record_transitions
from gpuledger.operations.waits_over import waits_over

AT_ONCE = 10_000
"""Transitions of one transaction: a kill loses little, and a transaction's own cost is spread."""

_BY = ("user", "team", "project")
_NOTHING_OPEN = Missing("nothing is open")
_NOTHING_TOLD = Missing("it tells of nothing")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Open:
    """What a history leaves open: its workloads' last transitions, holding devices or waiting for them."""

    running: tuple[Transition, ...]
    waiting: tuple[Transition, ...]


def import_history(
    open_ledger: Callable[[], Ledger],
    history: History,
    *,
    path: str,
    as_of_us: int | None,
    now_us: int,
    writer: str,
    progress: Callable[[int, int], None] | None = None,
) -> HistoryReport:
    """Append what is new of a history, in transactions of some thousand transitions each.

    Killed in the middle, it has appended a part; imported again, it appends the rest.

    Args:
        open_ledger: opens the ledger to append; not called where the history is refused.
        history: what a source found.
        path: the file as the user named it.
        as_of_us: until when the history can tell of what is open, where it does not say so itself; None: not given.
        now_us: microseconds UTC.
        writer: chain to write to, ``HOST.import``.
        progress: called with transitions done and in all.

    Raises:
        Misconfigured: ``cluster-differs``, ``times-differ`` where the ledger knows runs of it under another name;
            ``as-of-needed`` where something holds devices and nothing tells until when; ``bad-as-of``
            where the time given lies before what the history itself tells, or ahead of now.
    """
    problems = list(history.problems)
    left = _left_open(history.transitions)
    until_us = _as_of(history, left, as_of_us, now_us, path, problems)
    added = known = conflicts = 0
    with open_ledger() as ledger:
        refuse_known_otherwise(ledger, history, path=path)
        kept = without_overlapping(ledger, history, path=path)
        problems += kept.problems[len(history.problems) :]
        left = _left_open(kept.transitions)
        seen = (
            [] if isinstance(until_us, Missing) else [_seen(each, until_us) for each in (*left.running, *left.waiting)]
        )
        transitions = [*kept.transitions, *seen]
        transitions += waits_over(ledger, transitions, seen[len(left.running) :] or left.waiting)
        for start in range(0, len(transitions), AT_ONCE):
            part = transitions[start : start + AT_ONCE]
            recorded = record_transitions(ledger, part, writer=writer, now_us=now_us, imported=True)
            refused = sum(problem.code == "conflict" for problem in recorded.problems)
            added += len(recorded.added)
            known += len(recorded.known) + refused
            conflicts += refused
            problems += recorded.problems
            if progress is not None:
                progress(start + len(part), len(transitions))
    moments = [each.at_us for each in transitions]
    return HistoryReport(
        path=path,
        source=history.source,
        rows_read=history.rows_read,
        added=added,
        known=known,
        conflicts=conflicts,
        since_us=min(moments, default=_NOTHING_TOLD),
        until_us=max(moments, default=_NOTHING_TOLD),
        running=len(left.running),
        waiting=len(left.waiting),
        as_of_us=until_us,
        by=next((word for word in _BY if any(getattr(each, word) for each in transitions)), "class"),
        problems=tuple(problems),
    )


def begun_anew(history: History) -> History:
    """The history with a ``provisioning`` at the start of each run, which is when its devices are taken.

    A stop voids what follows it until the next ``provisioning``, so the second run of a workload that only says
    ``running`` would be lost.
    """
    stands: dict[str, State] = {}
    transitions: list[Transition] = []
    for each in history.transitions:
        if each.state is State.RUNNING and stands.get(each.workload) not in HOLDING:
            anew = replace(each, state=State.PROVISIONING, event_id=f"{each.event_id}#provisioning")
            transitions.append(anew)
        stands[each.workload] = each.state
        transitions.append(each)
    return replace(history, transitions=tuple(transitions))


def _left_open(transitions: Iterable[Transition]) -> _Open:
    last: dict[str, Transition] = {}
    for each in transitions:
        last[each.workload] = each
    still = [each for each in last.values() if each.state not in ENDED]
    return _Open(
        running=tuple(each for each in still if each.state in HOLDING),
        waiting=tuple(each for each in still if each.state not in HOLDING),
    )


def _as_of(
    history: History, left: _Open, given_us: int | None, now_us: int, path: str, problems: list[Problem]
) -> int | Missing:
    """Until when the history can tell of what it leaves open."""
    if not (left.running or left.waiting):
        return _NOTHING_OPEN
    if not isinstance(history.as_of_us, Missing):
        if given_us is not None and given_us != history.as_of_us:
            message = f"it tells itself that it was taken at {iso(history.as_of_us)}, which counts; --as-of does not"
            problems.append(Problem(code="as-of-known", message=message, where=path))
        return history.as_of_us
    if given_us is not None:
        last_us = max(each.at_us for each in history.transitions)
        if not last_us <= given_us <= now_us:
            message = f"{iso(given_us)} is not between the last it tells, {iso(last_us)}, and now"
            raise Misconfigured("bad-as-of", f"{path}: {message}", hint=f"--as-of {iso(min(last_us, now_us))} or later")
        return given_us
    if left.running:
        raise Misconfigured(
            "as-of-needed",
            f"{path}: {len(left.running):,} workloads have no end, and nothing tells until when they surely ran "
            f"({history.as_of_us.reason})",
            hint="--as-of TIME, when the file was written",
        )
    return history.as_of_us


def _seen(last: Transition, as_of_us: int) -> Transition:
    """The workload once more as it last stood, at the time until which that is known."""
    at_us = max(as_of_us, last.at_us)
    return replace(last, event_id=f"{last.workload}#seen@{iso(at_us)}", at_us=at_us)
