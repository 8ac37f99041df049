"""What of an answer of ``admit`` was imperfect, in sentences: nobody's quota, and what is held or used untold."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gpuledger.accounting.capacity import is_any_card
from gpuledger.model.durations import several
from gpuledger.model.missing import Missing
from gpuledger.model.moments import iso
from gpuledger.model.problem import Problem
from gpuledger.model.quotas import AdmitRequest, QuotaUse, Scope
from gpuledger.operations.quota_book import QuotaBook


def notes(
    book: QuotaBook, request: AdmitRequest, *, user: str, team: str, uses: Sequence[QuotaUse], now_us: int
) -> Iterator[Problem]:
    """Each as a value beside the answer.

    Args:
        book: what is known of quotas, caught up.
        request: what was asked.
        user, team: whose it is, by policy.
        uses: every quota that applies.
        now_us: the moment.
    """
    quotas, class_name = book.in_force.policy.quotas, request.placement.class_name
    if not uses:
        why = "the policy in force has none" if not quotas else "none of the policy in force is of them"
        message = f"no quotas apply to user {user}, team {team}, class {class_name}: {why}"
        yield Problem(code="no-quotas", message=message, where=request.workload)
    if any(quota.scope is Scope.ROLE for quota in quotas) and user not in book.in_force.policy.users:
        message = f"the policy does not list user {user}, so no quota of a role applies"
        yield Problem(code="no-roles", message=message, where=request.workload)
    if is_any_card(class_name) and any(quota.class_glob for quota in quotas):
        message = f"{class_name} is any class, so quotas of a class do not apply"
        yield Problem(code="any-class", message=message, where=request.workload)
    for holder in {holder.workload: holder for use in uses for holder in use.unknown}.values():
        what = "how many" if isinstance(holder.amount, Missing) else "of which class"
        message = f"{holder.workload} holds {holder.class_name or 'devices'}, and nothing says {what}: not counted"
        yield Problem(code="unplaced", message=message, where=holder.workload)
    silent = book.silent((use.bound for use in uses), now_us)
    for source, (told_us, number) in sorted(silent.items()):
        message = (
            f"nothing told since {iso(told_us)}: what {several(number, 'open workload')} used since is UNKNOWN, "
            "and in no quota's hours"
        )
        yield Problem(code="controller-silent", message=message, where=source)
