"""The rules of quotas: which apply to a request, and whether it fits. When it will, says :mod:`.room`.

Pure: holders and amounts in, verdicts out. Every quota that matches applies, so the smallest decides; all are told.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from datetime import tzinfo
from fnmatch import fnmatchcase
from fractions import Fraction

from gpuledger.accounting.capacity import is_any_card
from gpuledger.accounting.periods import period_of
from gpuledger.accounting.room import Wish, amount_of, first_room, hours_room, still_us
from gpuledger.model.lifecycle import CPU
from gpuledger.model.missing import Missing
from gpuledger.model.moments import HOUR_US
from gpuledger.model.quotas import EACH, NEVER_FITS, Bound, FullDevice, Holder, Per, Quota, QuotaUse, Scope

NONE = Fraction(0)


def bounds(
    quotas: Iterable[Quota], *, user: str, team: str, roles: Collection[str], class_name: str
) -> tuple[Bound, ...]:
    """The quotas that bind a request, in the order of the policy.

    Args:
        quotas: of the policy in force.
        user, team: whose it is; ``-`` or empty where nothing names one: then no quota of that kind binds.
        roles: that the user has.
        class_name: of what is asked for.
    """
    names = {Scope.USER: _named(user), Scope.TEAM: _named(team), Scope.ROLE: sorted(set(roles)) if _named(user) else []}
    return tuple(
        Bound(quota=quota, name=name, user=user if quota.scope is Scope.ROLE else "")
        for quota in quotas
        if counts(quota, class_name)
        for name in names[quota.scope]
        if quota.name in (EACH, name)
    )


def counts(quota: Quota, class_name: str) -> bool:
    """Whether a quota counts devices of a class. A pattern that fits no class counts none."""
    return not quota.class_glob or fnmatchcase(class_name, quota.class_glob)


def use_of(
    bound: Bound,
    holders: Iterable[Holder],
    *,
    asked: Fraction,
    at_us: int,
    ends_us: int | Missing,
    zone: tzinfo,
    spent: Callable[[Bound, int], Fraction],
    is_asked: bool = True,
) -> QuotaUse:
    """What of a quota is used, and whether a request fits into what is left.

    Devices at once: the sum of what is held, confirmed or not, with what is asked for. Device-hours: those used in the
    period, those that holders will still use by the ends that they gave, and those asked for, each until the end of
    the period; who gives no end asks only that something is left.

    Args:
        bound: the quota, and whose.
        holders: everybody of that user or team, the asking workload itself left out.
        asked: devices asked for; 0 where nothing is.
        at_us: now.
        ends_us: when who asks expects to be done.
        zone: where periods begin.
        spent: device-seconds that a bound has used from a moment until now.
        is_asked: whether anything is asked for; else the state is told.
    """
    quota = bound.quota
    since_us, until_us = period_of(at_us, quota.per, zone)
    known, unknown, held = _counted(quota, holders, at_us, until_us)
    wish = Wish.until(ends_us, asked, at_us=at_us)
    wanted: Fraction | Missing
    if quota.per is Per.AT_ONCE:
        used, promised, wanted = held, NONE, asked
        fits = used + asked <= quota.limit or not asked
    else:
        used = spent(bound, since_us) * Fraction(1, 3600)
        promised = held * Fraction(1, HOUR_US)
        fits = wish.fits(quota.limit - used - promised, at_us, until_us)
        wanted = Missing("it gave no end") if isinstance(ends_us, Missing) and asked else wish.hours(at_us, until_us)
    if not is_asked:
        wanted, fits = NONE, True
    if not (fits and is_asked):  # who is shown to people; a yes is given many times a second
        known.sort(key=_longest)
    frees_us: int | Missing = at_us
    if not fits and quota.per is Per.AT_ONCE:
        frees_us = NEVER_FITS if asked > quota.limit else first_room(known, used + asked - quota.limit, at_us=at_us)
    elif not fits:
        left = quota.limit - used - promised
        frees_us = hours_room(quota, known, wish, left=left, at_us=at_us, from_us=at_us, zone=zone)
    return QuotaUse(
        bound=bound,
        since_us=since_us,
        until_us=until_us,
        used=used,
        promised=promised,
        asked=wanted,
        fits=fits,
        holders=tuple(known),
        unknown=tuple(sorted(unknown, key=_longest)),
        frees_us=frees_us,
    )


def full_device(device: str, asked: Fraction, holders: Sequence[Holder], *, at_us: int) -> FullDevice | None:
    """A named device that has no room for a share; None where it has."""
    held = sum((amount_of(each) for each in holders), NONE)
    if held + asked <= 1:
        return None
    return FullDevice(
        device=device,
        asked=asked,
        holders=tuple(sorted(holders, key=_longest)),
        frees_us=first_room(holders, held + asked - 1, at_us=at_us),
    )


def _named(name: str) -> list[str]:
    return [name] if name not in ("", "-") else []


def _counted(
    quota: Quota, holders: Iterable[Holder], at_us: int, until_us: int
) -> tuple[list[Holder], list[Holder], Fraction]:
    """Who holds what a quota counts now, who holds nobody knows whether or how much of it, and the sum of the known.

    That is devices of a quota at once; else device-microseconds until they end, within the period.
    """
    known, unknown = list[Holder](), list[Holder]()
    fitting: dict[str, bool] = {}
    whole: dict[int, int] = {}  # by denominator: to add fractions one by one costs ten times as much
    at_once = quota.per is Per.AT_ONCE
    for holder in holders:  # one flat loop: a team may hold thousands, and each request asks
        lapses_us, name, amount = holder.lapses_us, holder.class_name, holder.amount
        if isinstance(lapses_us, int) and lapses_us <= at_us:
            continue
        if name not in fitting:
            fitting[name] = counts(quota, name)
        if not fitting[name]:
            if quota.class_glob != CPU and is_any_card(name):  # whatever card it is, it is no cpu
                unknown.append(holder)
            continue
        if isinstance(amount, Missing):
            unknown.append(holder)
            continue
        if not amount:
            continue  # of class cpu: it holds no device
        known.append(holder)
        number, of = amount.as_integer_ratio()
        whole[of] = whole.get(of, 0) + (number if at_once else number * still_us(holder.ends_us, at_us, until_us))
    return known, unknown, sum((Fraction(number, of) for of, number in whole.items()), NONE)


def _longest(holder: Holder) -> tuple[int, str]:
    return holder.since_us, holder.workload
