"""``quota``: who has what of each quota in force, what is left of it, and what reservations do not tell."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from gpuledger.accounting.quota import counts
from gpuledger.ledger.store import Ledger
from gpuledger.model.missing import Missing
from gpuledger.model.moments import HOUR_US
from gpuledger.model.problem import Problem, unknown_name
from gpuledger.model.quotas import EACH, Bound, Per, Quota, QuotaReport, Scope
from gpuledger.model.rows import DeviceEvent
from gpuledger.model.usage import NO_NAME
from gpuledger.model.workload_rows import PlacementRow, WorkloadEvent
from gpuledger.operations.blind_reserved import reserved_gaps
from gpuledger.operations.quota_book import QuotaBook


def quota(
    ledger: Ledger, *, user: str = "", team: str = "", role: str = "", class_name: str = "", now_us: int
) -> QuotaReport:
    """Each quota in force, with everybody whom it binds.

    Args:
        ledger: open in either mode.
        user: only those that bind this user, the team's among them; empty for all.
        team: only those of this team; empty for all.
        role: only those of this role; empty for all.
        class_name: only those that count this class; empty for all.
        now_us: the moment.
    """
    book = QuotaBook(ledger)
    book.prepare(now_us)
    policy = book.in_force.policy
    found = [
        bound
        for entry in policy.quotas
        if not class_name or counts(entry, class_name)
        for bound in _bound(book, entry, now_us, user=user, team=team)
        if _is_asked(book, bound, user=user, team=team, role=role)
    ]
    uses = tuple(book.use(bound, now_us=now_us, is_asked=False) for bound in found)
    first_us, _ = ledger.span_of((WorkloadEvent,))
    since_us = min([now_us - HOUR_US, *(use.since_us for use in uses)])
    return QuotaReport(
        at_us=now_us,
        version=book.in_force.number,
        uses=uses,
        unknown=tuple(reserved_gaps(ledger, since_us=max(0, since_us), until_us=now_us, now_us=now_us)),
        first_us=first_us,
        told=not isinstance(first_us, Missing) and first_us <= now_us,
        problems=tuple(_unknown_names(ledger, book, now_us, user=user, team=team, role=role, class_name=class_name)),
    )


def _unknown_names(
    ledger: Ledger, book: QuotaBook, now_us: int, *, user: str, team: str, role: str, class_name: str
) -> Iterator[Problem]:
    """Names that were asked about and that nothing knows: a slip of the pen would read as "has nothing"."""
    policy = book.in_force.policy
    periods = {entry.per for entry in policy.quotas}
    owners = {owner for per in (*periods, Per.AT_ONCE) for owner in book.owners(per, now_us)}

    def known(scope: Scope, listed: Iterable[str]) -> set[str]:
        quotas = {entry.name for entry in policy.quotas if entry.scope is scope}
        return {*listed, *quotas, *(name for kind, name in owners if kind == scope)} - {EACH, NO_NAME, ""}

    roles = [each for one in policy.users.values() for each in one.roles]
    users, teams = known(Scope.USER, policy.users), known(Scope.TEAM, policy.teams)
    if user not in {*users, ""} or team not in {*teams, ""}:  # whoever ran at any time is known too; texts can be many
        texts = ledger.texts().values()
        users |= {text.user for text in texts} - {""}
        teams |= {text.team for text in texts} - {""}
    asked = (
        ("user", user, users),
        ("team", team, teams),
        ("role", role, known(Scope.ROLE, roles)),
        ("class", class_name, _classes(ledger, book) if class_name else set[str]()),
    )
    for what, name, there in asked:
        if name and name not in there:
            yield unknown_name(what, name, there)


def _classes(ledger: Ledger, book: QuotaBook) -> set[str]:
    """Every class that a device has, that anything was placed on, or that who holds asked for."""
    placed = {row.class_name for row in ledger.scan(PlacementRow)}
    seen = {row.class_name for row in ledger.scan(DeviceEvent)}
    return placed.union(seen, (holder.class_name for holder in book.holdings.everybody())) - {""}


def _bound(book: QuotaBook, entry: Quota, now_us: int, *, user: str, team: str) -> Iterator[Bound]:
    """A quota for everybody whom it binds: whom it names, or each who is known to the policy, holds, or is asked about.

    A team that the policy does not list is nobody's, unless it lists none: then each may name its own.
    """
    policy = book.in_force.policy
    if entry.scope is Scope.ROLE:
        for name in sorted(policy.users):
            for role in sorted(set(policy.users[name].roles)):
                if entry.name in (EACH, role):
                    yield Bound(quota=entry, name=role, user=name)
        return
    if entry.name != EACH:
        yield Bound(quota=entry, name=entry.name)
        return
    names = {name for scope, name in book.owners(entry.per, now_us) if scope == entry.scope}
    if entry.scope is Scope.USER:
        names |= {*policy.users, user}
    else:
        names |= policy.teams or {team}
    for name in sorted(names - {NO_NAME, ""}):
        yield Bound(quota=entry, name=name)


def _is_asked(book: QuotaBook, bound: Bound, *, user: str, team: str, role: str) -> bool:
    if role and (bound.quota.scope is not Scope.ROLE or bound.name != role):
        return False
    if team and bound.holder != (Scope.TEAM, team):
        return False
    if not user:
        return True
    known = book.in_force.policy.users.get(user)
    return bound.holder in ((Scope.USER, user), (Scope.TEAM, known.team if known else ""))
