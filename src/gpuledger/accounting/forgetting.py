"""Which identity texts a choice means, and what loses its name with them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from gpuledger.accounting.amounts import Amount, OpenContext
from gpuledger.accounting.owners import Naming
from gpuledger.model.forgetting import Choice, ForgottenLine
from gpuledger.model.identity import IdentityText
from gpuledger.model.meters import GPU_CONTEXT
from gpuledger.model.missing import Missing
from gpuledger.model.policy import Policy
from gpuledger.model.problem import Problem, unknown_name

NEVER_READ = Missing("no identity row names it")
"""When a text was last read that only a record refers to."""


def chosen(
    choice: Choice, texts: Mapping[str, IdentityText], naming: Naming, seen_us: Mapping[str, int], *, now_us: int
) -> frozenset[str]:
    """The keys of the texts that fit everything that was given.

    Args:
        choice: what was asked for.
        texts: every text by key.
        naming: resolves them.
        seen_us: by key, the last moment that one of its processes was seen alive.
        now_us: owners are those of now.
    """

    def fits(key: str, text: IdentityText) -> bool:
        owner = naming.owner(key, now_us)
        before_us = choice.before_us
        return (
            (not choice.user or text.user == choice.user)
            and (not choice.subject or owner.subject == choice.subject)
            and (not choice.service or owner.service == choice.service)
            and (isinstance(before_us, Missing) or (key in seen_us and seen_us[key] < before_us))
        )

    return frozenset(key for key, text in texts.items() if fits(key, text))


def lines(
    keys: Iterable[str],
    naming: Naming,
    *,
    read_us: Mapping[str, int],
    amounts: Iterable[Amount],
    open_contexts: Iterable[OpenContext],
    now_us: int,
) -> tuple[ForgottenLine, ...]:
    """The chosen texts by subject, service and user, most context time first.

    Args:
        keys: of the texts.
        naming: resolves them.
        read_us: by key, when it was last read.
        amounts: of ``gpu.context``, of all time.
        open_contexts: contexts that may still be open.
        now_us: owners are those of now.
    """
    quantities: dict[str, int] = {}
    for amount in amounts:
        if amount.meter == GPU_CONTEXT.name:
            quantities[amount.subject] = quantities.get(amount.subject, 0) + amount.quantity
    living: dict[str, int] = {}
    for context in open_contexts:
        living[context.subject] = living.get(context.subject, 0) + 1
    groups: dict[tuple[str, str, str], list[str]] = {}
    for key in sorted(keys):
        owner = naming.owner(key, now_us)
        groups.setdefault((owner.subject, owner.service, owner.user), []).append(key)
    found = [
        ForgottenLine(
            subject=subject,
            service=service,
            user=user,
            texts=len(same),
            read_us=max((read_us[key] for key in same if key in read_us), default=NEVER_READ),
            quantity=sum(quantities.get(key, 0) for key in same),
            open=sum(living.get(key, 0) for key in same),
        )
        for (subject, service, user), same in groups.items()
    ]
    return tuple(sorted(found, key=lambda line: (-line.quantity, line.subject, line.service, line.user)))


def unknown_names(
    choice: Choice, texts: Mapping[str, IdentityText], naming: Naming, *, now_us: int
) -> Iterator[Problem]:
    """Names asked for that no text has: a slip of the pen must not read as "nothing is kept of them".

    Args:
        choice, texts, naming, now_us: as in :func:`chosen`.
    """
    owners = [naming.owner(key, now_us) for key in texts]
    asked = (
        ("user", choice.user, {text.user for text in texts.values()}),
        ("subject", choice.subject, {owner.subject for owner in owners}),
        ("service", choice.service, {owner.service for owner in owners}),
    )
    for what, name, there in asked:
        if name and name not in there:
            yield unknown_name(what, name, there - {""})


def still_named(choice: Choice, versions: Sequence[tuple[int, Policy]]) -> Iterator[Problem]:
    """Where the name itself stands that no ``forget`` reaches: policy versions are never changed."""
    if choice.user and any(choice.user in policy.users for _, policy in versions):
        yield Problem(
            code="named-by-policy",
            message=f"a policy version names the user {choice.user}: it is kept, and gpuledger policy shows it",
            where=choice.user,
        )
