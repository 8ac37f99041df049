"""What is remembered of an open ledger for quotas: the policy in force, who holds what, what a period has used.

In: the ledger. Out: each quota with what of it is used. It catches up by each writer's mark, so that one question costs
what has changed and what the scope holds, however long the history is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from weakref import WeakKeyDictionary

from gpuledger.accounting.periods import period_of
from gpuledger.accounting.quota import use_of
from gpuledger.ledger.holders import standing
from gpuledger.ledger.news import News, news
from gpuledger.ledger.store import Ledger
from gpuledger.model.missing import Missing
from gpuledger.model.quotas import NO_END, Bound, Holder, Per, QuotaUse
from gpuledger.model.rows import Row
from gpuledger.operations.holdings import KEPT_US, Holdings
from gpuledger.operations.in_force import InForce
from gpuledger.operations.occupancy import follows
from gpuledger.operations.spent import Spent


class QuotaBook:
    """The state behind quotas.

    Args:
        ledger: open in either mode.
    """

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._marks: dict[str, int] = {}
        self._now_us = -1
        self.in_force = InForce(ledger)
        self.holdings = Holdings(ledger, self.in_force)
        self._spent = Spent(ledger, self.in_force)
        self._is_loaded = False

    def prepare(self, now_us: int) -> None:
        """Read all that is not remembered; outside of a transaction. Where all is, the store is not asked."""
        starts = self._starts(now_us)
        is_known = self._is_loaded and now_us >= self._now_us - KEPT_US
        if is_known and (not starts or self._spent.can_tell(now_us, starts)):
            return
        marks = self._ledger.marks()  # first: what is written while the rest is read will be looked at again
        self.in_force.look(now_us)
        starts = self._starts(now_us)
        self.holdings.load(now_us)
        if starts:
            self._spent.load(now_us, starts)
        self._marks, self._now_us, self._is_loaded = marks, now_us, True

    def catch_up(self, marks: Mapping[str, int], now_us: int, told: News | None = None) -> bool:
        """Take in what was written up to these marks; in the transaction that asks.

        Args:
            marks: the last number of each writer.
            now_us: the moment.
            told: what somebody else found to be new; used where it is between the same marks.

        Returns whether all is known: else :meth:`prepare` is to be called again, outside of it.
        """
        if not self._is_loaded or now_us < self._now_us - KEPT_US:
            self._is_loaded = False
            return False
        if told is None or told.seen != self._marks or told.marks != marks:
            told = None if marks == self._marks else news(self._ledger.connection, self._marks, marks)
        if self.in_force.look(now_us, is_newest_known=told is None or not told.has_policy):
            self._is_loaded = False
            return False
        if told is not None:
            self._spent.look(told)
            since_us = self._spent.since_us(now_us)
            found = standing(self._ledger.connection, dict.fromkeys(told.workloads, since_us))
            self.in_force.learn(found.texts)
            self.holdings.take_in(told.workloads, found, now_us)
            self._spent.take_in(told.workloads, found.events)
            self._marks = dict(marks)
        self._now_us = max(now_us, self._now_us)
        starts = self._starts(now_us)
        return not starts or self._spent.can_tell(now_us, starts)

    def took(self, holder: Holder, writer: str, added: Sequence[Row]) -> None:
        """What this process has just written is known, unless others of its name wrote between: then all is new."""
        self.holdings.put(holder.workload, holder)
        if follows(self._marks, writer, added):
            self._marks[writer] = added[-1].number

    def use(
        self,
        bound: Bound,
        *,
        now_us: int,
        asked: Fraction = Fraction(0),
        ends_us: int | Missing = NO_END,
        without: str = "",
        is_asked: bool = True,
    ) -> QuotaUse:
        """What of a quota is used, and whether so much more fits; ``without`` is left out of who holds."""
        mine = self.holdings.of(bound.holder)
        return use_of(
            bound,
            [holder for holder in mine if holder.workload != without] if without else mine,
            asked=asked,
            at_us=now_us,
            ends_us=ends_us,
            zone=self.in_force.zone,
            spent=lambda which, since_us: self._spent.seconds(which, since_us, now_us),
            is_asked=is_asked,
        )

    def silent(self, bounds: Iterable[Bound], now_us: int) -> dict[str, tuple[int, int]]:
        """Who tells no more of open workloads that these quotas of hours count: since when, of how many."""
        found: dict[str, tuple[int, int]] = {}
        for bound in bounds:
            if bound.quota.per is Per.AT_ONCE:
                continue
            for source, (told_us, number) in self._spent.silent(bound, now_us).items():
                before_us, most = found.get(source, (told_us, number))
                found[source] = (min(before_us, told_us), max(most, number))
        return found

    def owners(self, per: Per, now_us: int) -> set[tuple[str, str]]:
        """Users and teams that hold anything now, or have used anything in the period."""
        found = {(str(scope), name) for scope, name in self._holding()}
        if per is not Per.AT_ONCE:
            since_us, _ = period_of(now_us, per, self.in_force.zone)
            found |= {(str(scope), name) for scope, name in self._spent.owners(since_us)}
        return found

    def _holding(self) -> Iterable[tuple[str, str]]:
        for holder in self.holdings.everybody():
            yield "user", holder.user
            yield "team", holder.team

    def _starts(self, now_us: int) -> set[int]:
        """Where the periods begin that the quotas in force ask about."""
        periods = {quota.per for quota in self.in_force.policy.quotas} - {Per.AT_ONCE}
        return {period_of(now_us, per, self.in_force.zone)[0] for per in periods}


_BOOKS: WeakKeyDictionary[Ledger, QuotaBook] = WeakKeyDictionary()


def book_of(ledger: Ledger) -> QuotaBook:
    """What is remembered of a ledger for as long as it is open."""
    if ledger not in _BOOKS:
        _BOOKS[ledger] = QuotaBook(ledger)
    return _BOOKS[ledger]


def forget_book(ledger: Ledger) -> None:
    """Remember nothing of it: a call failed on the way."""
    _BOOKS.pop(ledger, None)
