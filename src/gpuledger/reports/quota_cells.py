"""Pieces that the answers of ``admit`` and ``quota`` share: amounts of a quota, who holds what, as text and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from rich.text import Text

from gpuledger.model.durations import decimal
from gpuledger.model.missing import Missing
from gpuledger.model.moments import SECOND_US, iso
from gpuledger.model.quotas import Holder, Per, QuotaUse
from gpuledger.model.rounding import largest_remainder
from gpuledger.reports import as_json
from gpuledger.reports.as_json import Json
from gpuledger.reports.cells import UNKNOWN, cell
from gpuledger.reports.columns import LEAST_NAME, Column

PLACES = 3
"""Decimals of device-hours."""


def amounts(use: QuotaUse) -> tuple[str, str, str]:
    """Used, promised and left: exact shares of devices; device-hours with three decimals that add up to the limit."""
    parts = [use.used, use.promised, use.left]
    if use.bound.quota.per is Per.AT_ONCE:
        used, promised, left = map(str, parts)
        return used, promised, left
    used, promised, left = (decimal(each, PLACES) for each in largest_remainder([part * 10**PLACES for part in parts]))
    return used, promised, left


def asked_words(use: QuotaUse) -> str:
    """What was asked for of a quota."""
    if isinstance(use.asked, Missing):
        return UNKNOWN
    if use.bound.quota.per is Per.AT_ONCE:
        return str(use.asked)
    (asked,) = largest_remainder([use.asked * 10**PLACES])
    return decimal(asked, PLACES)


def use_to_json(use: QuotaUse, *, told: bool = True) -> dict[str, Json]:
    """One quota with what of it is used: amounts as text, devices exact, device-hours with three decimals.

    Where no transition is known up to the moment (not ``told``), what is used is ``null``: nothing held is no zero.
    """
    quota = use.bound.quota
    used, promised, left = amounts(use)
    return {
        "scope": quota.scope,
        "name": use.bound.name,
        "user": use.bound.user,
        "class": quota.class_glob,
        "unit": quota.unit,
        "per": quota.per,
        "limit": str(quota.limit),
        "since": iso(use.since_us),
        "until": iso(use.until_us),
        "used": used if told else None,
        "promised": promised if told else None,
        "left": left if told else None,
        "over": use.is_over,
        "holders": [holder_to_json(holder) for holder in sorted(use.holders, key=_longest)],
        "not_counted": [holder_to_json(holder) for holder in use.unknown],
    }


def _longest(holder: Holder) -> tuple[int, str]:
    return holder.since_us, holder.workload  # of a quota with room left they come in any order


def holder_to_json(holder: Holder) -> dict[str, Json]:
    """Who holds what since when, until when it said, and until when nothing has confirmed it."""
    amount = holder.amount
    missing: dict[str, Json] = {
        name: value.reason
        for name, value in (("amount", amount), ("ends", holder.ends_us))
        if isinstance(value, Missing)
    }
    return {
        "workload": holder.workload,
        "user": holder.user,
        "team": holder.team,
        "class": holder.class_name,
        "devices": list(holder.devices),
        "amount": None if isinstance(amount, Missing) else str(amount),
        "since": iso(holder.since_us),
        "ends": as_json.moment(holder.ends_us),
        "confirmed": holder.is_confirmed,
        "lapses": as_json.moment(holder.lapses_us),
        **({"missing": missing} if missing else {}),
    }


def holder_columns(holders: Sequence[Holder]) -> list[Column]:
    """The columns of a table of holders."""
    return [
        Column(head="held by", cells=[cell(each.workload) for each in holders], justify="left", least=LEAST_NAME),
        Column(head="user", cells=[cell(each.user) for each in holders], justify="left", least=LEAST_NAME),
        Column(head="class", cells=[cell(each.class_name) for each in holders], justify="left", least=8, spare=3),
        Column(head="devices", cells=[_amount(each.amount) for each in holders]),
        Column(head="", cells=["" if each.is_confirmed else "admitted" for each in holders], justify="left", spare=1),
        Column(head="since", cells=[_second(each.since_us) for each in holders], justify="left", spare=2),
        Column(head="ends", cells=[_ends(each) for each in holders], justify="left"),
    ]


def holder_words(holder: Holder) -> str:
    """``train-7 (2)``, in one cell with others."""
    amount = UNKNOWN if isinstance(holder.amount, Missing) else str(holder.amount)
    return f"{holder.workload} ({amount})"


def _amount(amount: Fraction | Missing) -> str:
    return UNKNOWN if isinstance(amount, Missing) else str(amount)


def _ends(holder: Holder) -> Text:
    return cell("did not say", "dim") if isinstance(holder.ends_us, Missing) else cell(_second(holder.ends_us))


def _second(at_us: int) -> str:
    return iso(at_us - at_us % SECOND_US)
