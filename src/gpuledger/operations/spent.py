"""Device-hours used in a period, by user and by team, for whoever asks many times a second.

Recorded hours, and what the next pass will book of closed ones, are summed once; the hours since then are counted
workload by workload, open time included. What comes late for the closed hours makes the sums be made again.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from fractions import Fraction

from gpuledger.accounting.amounts import grain_for
from gpuledger.accounting.quota import counts
from gpuledger.ledger import holders, workloads
from gpuledger.ledger.news import News
from gpuledger.ledger.reserved import reading
from gpuledger.ledger.store import Ledger
from gpuledger.metering.lifecycles import MISSED_BEATS, is_hour_over
from gpuledger.metering.open_time import Run, runs, seconds
from gpuledger.metering.records import closed_until
from gpuledger.model.meters import GPU_RESERVED
from gpuledger.model.missing import Missing
from gpuledger.model.moments import HOUR_US, hour_floor
from gpuledger.model.quotas import HOLD_US, Bound, Scope
from gpuledger.model.reserved import factor, meters_of
from gpuledger.model.workload_rows import PlacementRow, WorkloadEvent
from gpuledger.operations.in_force import InForce
from gpuledger.operations.judging import MOST_AHEAD_US
from gpuledger.operations.usage_reserved import reserved_amounts

_LONGEST_US = 26 * HOUR_US
"""How far the hours that are counted one by one reach back before the sums are made again."""

_NONE = Fraction(0)


class Spent:
    """Device-seconds since the beginning of periods.

    Args:
        ledger: open in either mode.
        in_force: says whose a subject is, hour by hour.
    """

    def __init__(self, ledger: Ledger, in_force: InForce) -> None:
        self._ledger = ledger
        self._in_force = in_force
        self._closed_us = -1
        self._sums: dict[int, dict[tuple[Scope, str], dict[str, Fraction]]] = {}
        self._runs: dict[str, list[Run]] = {}
        self._of: dict[tuple[Scope, str], set[str]] = {}
        self._beats: dict[str, int] = {}
        self._intervals_us: dict[str, int] = {}
        self._declared: set[str] = set()
        self._placements: dict[str, PlacementRow] = {}
        self.is_stale = True
        """Whether what is remembered may be wrong, and is to be summed again."""

    def can_tell(self, now_us: int, starts: Iterable[int]) -> bool:
        """Whether periods that begin at these moments can be told of now."""
        if self.is_stale or not self._closed_us <= now_us <= self._closed_us + _LONGEST_US:
            return False
        return all(start_us in self._sums or start_us >= self._closed_us for start_us in starts)

    def load(self, now_us: int, starts: Iterable[int]) -> None:
        """Sum all of it up to now. Outside of a transaction: the rule of metering takes a snapshot of its own.

        Args:
            now_us: the moment.
            starts: where the periods begin that will be asked about.
        """
        self._closed_us = closed_until(now_us)
        with reading(self._ledger, self._ledger.marks()) as read:
            self._beats = {source: beat for source, beat in read.beats.items() if not isinstance(beat, Missing)}
            self._intervals_us = {source: read.interval_us(source) for source in self._beats}
        self._sums = {start_us: self._summed(start_us, now_us) for start_us in starts if start_us < self._closed_us}
        self._runs.clear()
        self._of.clear()
        self._declared.clear()
        connection = self._ledger.connection
        names = holders.holding_workloads(
            connection, self._closed_us, until_us=now_us + MOST_AHEAD_US, longest_us=HOLD_US
        )
        self.is_stale = False
        self.take_in(names, workloads.events_since_begin(connection, dict.fromkeys(names, self._closed_us)))

    def look(self, news: News) -> None:
        """Look at what is new: late for closed hours it makes the sums stale."""
        if self.is_stale:
            return
        self.is_stale = news.can_change(self._closed_us)
        for source, beat_us in news.beats.items():
            if self._beats.get(source, beat_us) < self._closed_us or source not in self._intervals_us:
                self.is_stale = True  # hours that were closed without it get their time now
            self._beats[source] = max(beat_us, self._beats.get(source, beat_us))

    def since_us(self, now_us: int) -> int:
        """From when on it wants to know of workloads."""
        return now_us if self.is_stale else min(now_us, self._closed_us)

    def take_in(self, names: Collection[str], told: Mapping[str, Sequence[WorkloadEvent]]) -> None:
        """These workloads ran when their events say, in the hours that are counted one by one."""
        if self.is_stale or not names:
            return
        self._need({event.placement for events in told.values() for event in events})
        self._in_force.need({event.subject for events in told.values() for event in events})
        for name in names:
            late = [run for run in runs(told.get(name, ())) if _reaches(run, self._closed_us)]
            if late:
                self._runs[name] = late
            else:
                self._runs.pop(name, None)
            self._declared.discard(name)
            if any(run.is_declared and isinstance(run.until_us, Missing) for run in late):
                self._declared.add(name)
            for run in late:
                for at_us in (hour_floor(run.since_us), self._closed_us, *self._in_force.changes_us):
                    for owner in self._owners(run.subject, at_us):
                        self._of.setdefault(owner, set()).add(name)

    def seconds(self, bound: Bound, since_us: int, now_us: int) -> Fraction:
        """Device-seconds that a bound has used from the beginning of a period until now.

        Of a pattern that fits no class they are 0, exactly as its quota never fills.
        """
        by_class = self._sums.get(since_us, {}).get(bound.holder, {})
        total = sum((amount for name, amount in by_class.items() if counts(bound.quota, name)), _NONE)
        since_us = max(since_us, self._closed_us)
        by_placement: dict[str, int] = {}
        for name in self._of.get(bound.holder, ()):
            parts = seconds(self._runs.get(name, ()), since_us=since_us, until_us=now_us, beats=self._beats)
            for placement, subject, hour_us, amount in parts:
                if amount and bound.holder in self._owners(subject, hour_us):
                    by_placement[placement] = by_placement.get(placement, 0) + amount
        for placement, amount in by_placement.items():
            where = self._placements.get(placement)
            if where is None or GPU_RESERVED not in meters_of(where.class_name):
                continue
            if counts(bound.quota, where.class_name):
                total += amount * factor(GPU_RESERVED.name, where)
        return total

    def silent(self, bound: Bound, now_us: int) -> dict[str, tuple[int, int]]:
        """Who should have told of open runs of a bound and did not: its source, until when it told, of how many.

        What these used since is in no sum: nobody knows whether they go on. Whoever promises no next time, an import
        or declared history, has the hour in which it told last, as in ``blind``.
        """
        late = {source for source, beat_us in self._beats.items() if self._is_late(source, beat_us, now_us)}
        if not late and not self._declared:
            return {}
        found: dict[str, tuple[int, int]] = {}
        for name in self._of.get(bound.holder, ()):
            run = next(reversed(self._runs.get(name, ())), None)
            if run is None or not isinstance(run.until_us, Missing):
                continue
            told_us = run.end(self._beats, now_us)
            is_silent = run.source in late or (run.source not in self._beats and is_hour_over(told_us, now_us))
            if is_silent and self._is_counted(bound, run, now_us):  # last: of each it looks up whose it is
                before_us, number = found.get(run.source, (told_us, 0))
                found[run.source] = (min(before_us, told_us), number + 1)
        return found

    def _is_late(self, source: str, beat_us: int, now_us: int) -> bool:
        interval_us = self._intervals_us.get(source, 0)
        return beat_us + MISSED_BEATS * interval_us < now_us if interval_us else is_hour_over(beat_us, now_us)

    def _is_counted(self, bound: Bound, run: Run, now_us: int) -> bool:
        where = self._placements.get(run.placement)
        if where is None or GPU_RESERVED not in meters_of(where.class_name):
            return False
        return counts(bound.quota, where.class_name) and bound.holder in self._owners(run.subject, now_us)

    def owners(self, since_us: int) -> set[tuple[Scope, str]]:
        """Every user and team that has used anything since the beginning of a period."""
        running = {owner for owner, names in self._of.items() if not names.isdisjoint(self._runs)}
        return running.union(self._sums.get(since_us, {}))

    def _summed(self, since_us: int, now_us: int) -> dict[tuple[Scope, str], dict[str, Fraction]]:
        grain = grain_for(
            by=("team",), changes_us=self._in_force.changes_us, since_us=since_us, until_us=self._closed_us
        )
        amounts = list(
            reserved_amounts(
                self._ledger, GPU_RESERVED, grain, since_us=since_us, until_us=self._closed_us, now_us=now_us
            )
        )
        self._in_force.need({amount.subject for amount in amounts})
        found: dict[tuple[Scope, str], dict[str, Fraction]] = {}
        for amount in amounts:
            product = amount.seconds * factor(GPU_RESERVED.name, amount.placement)
            for owner in self._owners(amount.subject, amount.at_us):
                by_class = found.setdefault(owner, {})
                by_class[amount.placement.class_name] = by_class.get(amount.placement.class_name, _NONE) + product
        return found

    def _owners(self, subject: str, at_us: int) -> tuple[tuple[Scope, str], tuple[Scope, str]]:
        user, team, _ = self._in_force.naming.answerer(subject, at_us)
        return (Scope.USER, user), (Scope.TEAM, team)

    def _need(self, keys: Iterable[str]) -> None:
        missing = {key for key in keys if key and key not in self._placements}
        if missing:
            rows = workloads.placement_rows(self._ledger.connection, missing)
            self._placements.update((row.placement, row) for row in rows)


def _reaches(run: Run, since_us: int) -> bool:
    return isinstance(run.until_us, Missing) or run.until_us > since_us
