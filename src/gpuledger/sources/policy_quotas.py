"""The ``quotas`` and the ``billing`` of a policy document, understood with their line numbers.

In: the document's mapping. Out: :class:`~gpuledger.model.quotas.Quota` in the order of the document, and the zone in
which their periods begin.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from gpuledger.model.quotas import EACH, Per, Quota, Scope
from gpuledger.sources.yaml_nodes import MappingReader

_PERIODS = tuple(per.value for per in Per if per is not Per.AT_ONCE)
_YEARS = range(2020, 2038)
"""Years whose offsets are looked at: zones that were odd before matter to nobody."""

_OF_THE_MACHINE = ("localtime", "posixrules")
"""Names that Debian and others link to the zone that a machine was set to."""

_GLOB = frozenset("*?[]")
_NUMBER = re.compile(r"[0-9]{1,12}(?:\.[0-9]{1,9}|/[0-9]{1,12})?", re.ASCII)
"""Beyond every machine park for a century of hours; bounded, so that sums of them stay small."""

_HINT = "write {team: NAME, devices: 8} or {team: NAME, device_hours: 2000, per: month}"


def quotas(document: MappingReader) -> tuple[Quota, ...]:
    """The list under ``quotas``; empty where it is not written.

    Raises:
        BadInput: ``policy-unknown-key``, ``policy-missing-key`` or ``policy-bad-value``; each names the line.
    """
    return tuple(_quota(entry) for entry in document.mappings("quotas"))


def billing_zone(document: MappingReader, *, is_stored: bool = False) -> str:
    """The time zone of ``billing``; empty where none is written: UTC.

    Args:
        document: the policy.
        is_stored: whether it was understood before: what is refused since then is taken as it was.

    Raises:
        BadInput: ``policy-unknown-key``, or ``policy-bad-value`` for what is no zone, or one whose hours are not those
            of the UTC clock, so that no record could be cut at its midnight, or one that each machine has of its own.
    """
    billing = document.mapping("billing")
    if billing is None:
        return ""
    billing.refuse_unknown(("zone",))
    name = billing.text("zone", required=True)
    if name in _OF_THE_MACHINE and not is_stored:
        message = f"{name!r} is another zone on another machine, so that periods would differ"
        raise billing.error("policy-bad-value", message, "zone", "a name such as Europe/Berlin or UTC")
    try:
        zone = ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        message = f"{name!r} is not a time zone"
        raise billing.error("policy-bad-value", message, "zone", "a name such as Europe/Berlin or UTC") from None
    for year in _YEARS:
        for month in range(1, 13):
            moment = datetime(year, month, 1, tzinfo=UTC).astimezone(zone)
            offset = moment.utcoffset()
            if offset is None or offset % timedelta(hours=1):
                message = (
                    f"{name} is {moment:%z} from UTC: records are hours of the UTC clock, and its days begin within one"
                )
                raise billing.error("policy-bad-value", message, "zone", "choose a zone of whole hours")
    return name


def _quota(entry: MappingReader) -> Quota:
    entry.refuse_unknown((*(scope.value for scope in Scope), "devices", "device_hours", "per", "class"))
    given = [scope for scope in Scope if scope.value in entry.names]
    if len(given) != 1:
        message = "a quota is of one user, one team or one role" + (f", not of {len(given)}" if given else "")
        raise entry.error("policy-bad-value" if given else "policy-missing-key", message, _first(entry, given), _HINT)
    (scope,) = given
    name = entry.text(scope.value, required=True)
    if name != EACH and _GLOB & set(name):
        message = f"{name!r} is no name: only {EACH!r} alone stands for each {scope}"
        raise entry.error("policy-bad-value", message, scope.value, f'name it, or write {scope}: "{EACH}"')
    limits = [key for key in ("devices", "device_hours") if key in entry.names]
    if len(limits) != 1:
        message = "a quota limits devices at once, or device_hours in a period: one of the two"
        key = limits[-1] if limits else scope.value
        raise entry.error("policy-bad-value" if limits else "policy-missing-key", message, key, _HINT)
    return Quota(
        scope=scope,
        name=name,
        per=_per(entry, limits[0]),
        limit=_limit(entry, limits[0]),
        class_glob=entry.text("class"),
    )


def _per(entry: MappingReader, limit: str) -> Per:
    if limit == "devices":
        if "per" in entry.names:
            message = "`devices` are counted at once, so there is no `per`"
            raise entry.error("policy-bad-value", message, "per", "use device_hours with per: month")
        return Per.AT_ONCE
    if "per" not in entry.names:
        message = "`device_hours` lacks `per`: in which period"
        raise entry.error("policy-missing-key", message, "device_hours", f"add per: one of {', '.join(_PERIODS)}")
    written = entry.text("per", required=True)
    if written not in _PERIODS:
        message = f"{written!r} is no period"
        raise entry.error("policy-bad-value", message, "per", f"one of {', '.join(_PERIODS)}")
    return Per(written)


def _limit(entry: MappingReader, key: str) -> Fraction:
    written = entry.written(key, f"{key}: 8, {key}: 1/4 or {key}: 0.5")
    if written.startswith("-") and _NUMBER.fullmatch(written[1:]):
        raise entry.error("policy-bad-value", f"`{key}` is {written}: less than nothing", key, f"{key}: 0 allows none")
    _, slash, parts = written.partition("/")
    if not _NUMBER.fullmatch(written) or (slash and not int(parts)):
        message = f"`{key}` must be a number, not {written[:40]!r}"
        raise entry.error("policy-bad-value", message, key, f"{key}: 8, {key}: 1/4 or {key}: 0.5")
    return Fraction(written)


def _first(entry: MappingReader, given: list[Scope]) -> str:
    return given[1].value if len(given) > 1 else next(iter(entry.names), "")
