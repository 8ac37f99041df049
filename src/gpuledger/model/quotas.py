"""Quotas: what a user, team or role may hold at once, or use in a period; and what came of asking for more.

Values only. ``devices`` count shares: a quarter of one device is 1/4. A role's quota is of each user who has the role,
a team's is the sum of all its people, a user's is their own.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from fractions import Fraction

from gpuledger.errors import Refused
from gpuledger.model.durations import decimal
from gpuledger.model.lifecycle import Placement
from gpuledger.model.missing import Missing
from gpuledger.model.moments import MINUTE_US, iso
from gpuledger.model.problem import Problem
from gpuledger.model.reserved import NO_TRANSITION, ReservedGap
from gpuledger.model.rounding import nearest
from gpuledger.model.workload_rows import Hold

EACH = "*"
"""The name of every user, team or role, each for itself."""

HOLD_US = 10 * MINUTE_US
"""How long what was admitted is held before ``provisioning`` confirms it (DESIGN section 6, Holds)."""

NO_END = Missing("nobody said when it will be done")
"""The end of a workload whose owner gave none."""

NEVER_FITS = Missing("never: it asks for more than is allowed at all")
"""When what is beyond a limit by itself will fit."""

OVER = "over-quota"
"""Code of the finding that somebody holds or has used more than a quota allows."""


class Scope(StrEnum):
    """Whose a quota is."""

    USER = "user"
    TEAM = "team"
    ROLE = "role"


class Per(StrEnum):
    """What a quota limits: devices at once, or device-hours in a period."""

    AT_ONCE = "at-once"
    DAY = "day"
    WEEK = "week"
    MONTH = "month"


@dataclass(frozen=True, slots=True, kw_only=True)
class Quota:
    """One entry of the policy's ``quotas``.

    Args:
        scope: user, team or role.
        name: which, or :data:`EACH`.
        per: at once, or the period of ``device_hours``.
        limit: devices, or device-hours; exact, 0 or more.
        class_glob: the classes it counts, ``H100*``; empty for every class.
    """

    scope: Scope
    name: str
    per: Per
    limit: Fraction
    class_glob: str = ""

    @property
    def unit(self) -> str:
        """``devices`` or ``device-hours``."""
        return "devices" if self.per is Per.AT_ONCE else "device-hours"

    @property
    def limit_words(self) -> str:
        """``8 devices at once``, ``2000 device-hours a month``."""
        if self.per is Per.AT_ONCE:
            return f"{self.limit} {'device' if 0 < self.limit <= 1 else 'devices'} at once"
        return f"{amount_words(self.limit)} device-hours a {self.per}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """A quota as it binds somebody.

    Args:
        quota: the entry.
        name: the user, team or role, never :data:`EACH`.
        user: of a role's quota, whose; else empty.
    """

    quota: Quota
    name: str
    user: str = ""

    @property
    def scope_words(self) -> str:
        """``team vision``, ``role student of alice``."""
        whose = f" of {self.user}" if self.user else ""
        return f"{self.quota.scope} {self.name}{whose}"

    @property
    def words(self) -> str:
        """``team vision, H100*: 8 devices at once``."""
        which = f", {self.quota.class_glob}" if self.quota.class_glob else ""
        return f"{self.scope_words}{which}: {self.quota.limit_words}"

    @property
    def holder(self) -> tuple[Scope, str]:
        """Whose holdings count: a team's, else a user's."""
        return (Scope.TEAM, self.name) if self.quota.scope is Scope.TEAM else (Scope.USER, self.user or self.name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Holder:
    """A workload that holds devices now, or was admitted to.

    Args:
        workload: its id.
        user, team: whose, by policy; ``-`` where nothing names one.
        class_name: what it holds; of one that is not placed, what it asks for.
        amount: devices x share; Missing where nothing says how many.
        since_us: since when.
        ends_us: when whoever was admitted said that it will be done; Missing where nobody said.
        lapses_us: when it is no longer held unless something comes: the expiry of an unconfirmed hold, a stop that
            lies ahead; Missing where none.
        is_confirmed: False while only ``admit`` holds it.
        devices: their UUIDs, where known.
    """

    workload: str
    user: str
    team: str
    class_name: str
    amount: Fraction | Missing
    since_us: int
    ends_us: int | Missing
    lapses_us: int | Missing
    is_confirmed: bool = True
    devices: tuple[str, ...] = ()

    def is_held(self, at_us: int) -> bool:
        """Whether it still is at a moment, if nothing more comes."""
        return isinstance(self.lapses_us, Missing) or self.lapses_us > at_us


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotaUse:
    """One quota, and what of it is used.

    Args:
        bound: which, and whose.
        since_us, until_us: its period; of devices at once the moment twice.
        used: devices held, or device-hours of the period until now, what was asked for not included.
        promised: device-hours that those who hold now will still use in the period, by the ends that they gave.
        asked: what was asked for on top; Missing for device-hours of who gave no end; 0 where nothing was asked for.
        fits: whether what was asked for fits.
        holders: who holds what of it now; the longest there first, save where more fits.
        unknown: workloads that hold nobody knows how much of it, or whether: of class ``gpu``, which is any.
        frees_us: when what was asked for would fit; Missing, with why, where that is not known or will never be.
            Of what fits: now.
    """

    bound: Bound
    since_us: int
    until_us: int
    used: Fraction
    promised: Fraction
    asked: Fraction | Missing
    fits: bool
    holders: tuple[Holder, ...]
    unknown: tuple[Holder, ...] = ()
    frees_us: int | Missing

    @property
    def left(self) -> Fraction:
        """What is left before anything was asked for; below 0 where more is used than allowed."""
        return self.bound.quota.limit - self.used - self.promised

    @property
    def is_over(self) -> bool:
        """Whether more is used than allowed: events and imports are facts, and no quota stops them."""
        return self.used > self.bound.quota.limit


@dataclass(frozen=True, slots=True, kw_only=True)
class FullDevice:
    """A device that was named and has no room.

    Args:
        device: its UUID.
        asked: the share asked for.
        holders: who holds it, the longest there first.
        frees_us: as in :class:`QuotaUse`.
    """

    device: str
    asked: Fraction
    holders: tuple[Holder, ...]
    frees_us: int | Missing


@dataclass(frozen=True, slots=True, kw_only=True)
class AdmitRequest:
    """Who asks for what.

    Args:
        workload: the control plane's own id.
        placement: class, number of devices or which, share; region, machine, pool where they matter.
        user, team, project, labels: whose it is; what is not said stays as it was told before.
        until_us: when it expects to be done, microseconds UTC; Missing where nobody says.
        span_us: the same as a time from its admission on; Missing where ``until_us`` says it, or nobody.
        source: who asks: the controller's name.
    """

    workload: str
    placement: Placement
    user: str = ""
    team: str = ""
    project: str = ""
    labels: tuple[tuple[str, str], ...] = field(default=())
    until_us: int | Missing = NO_END
    span_us: int | Missing = NO_END
    source: str = "admit"

    def ends_us(self, from_us: int) -> int | Missing:
        """When it expects to be done, if it is admitted at a moment."""
        return self.until_us if isinstance(self.span_us, Missing) else from_us + self.span_us

    @property
    def amount(self) -> Fraction:
        """Devices x share."""
        return self.placement.count * self.placement.share


@dataclass(frozen=True, slots=True, kw_only=True)
class AdmitReport:
    """The answer to "may this run?".

    Args:
        request: what was asked.
        at_us: when it was answered.
        user, team: whose it is, by policy.
        roles: that the user has.
        admitted: yes or no.
        known: it was admitted before by the same words, and holds; nothing was added.
        is_check: nothing was to be taken.
        hold: the row that holds it; Missing where nothing is held.
        ends_us: the end that it gave.
        uses: every quota that applies, the tightest first.
        full: devices that were named and have no room.
        frees_us: when all of it would fit; Missing, with why; of a yes: now.
        problems: what was imperfect.
    """

    request: AdmitRequest
    at_us: int
    user: str
    team: str
    roles: tuple[str, ...]
    admitted: bool
    known: bool = False
    is_check: bool = False
    hold: Hold | Missing
    ends_us: int | Missing
    uses: tuple[QuotaUse, ...]
    full: tuple[FullDevice, ...] = ()
    frees_us: int | Missing
    problems: tuple[Problem, ...] = ()

    @property
    def reasons(self) -> tuple[str, ...]:
        """Every reason against it, each a sentence."""
        found = [_quota_reason(use) for use in self.uses if not use.fits]
        return (*found, *(_device_reason(each) for each in self.full))

    def refusal(self) -> Refused:
        """The answer no, as the error of a door."""
        code = "quota" if any(not use.fits for use in self.uses) else "device-full"
        when = self.frees_us
        if when == NEVER_FITS:
            hint = "it never fits: ask for less, or have the quota raised: gpuledger apply FILE"
        elif isinstance(when, Missing):
            hint = f"a place comes free: unknown ({when.reason})"
        else:
            hint = f"a place comes free at {iso(when)}, if those who hold it end when they said"
        return Refused(code, f"{self.request.workload} is not admitted: {'; '.join(self.reasons)}", hint=hint)


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotaReport:
    """Who has what.

    Args:
        at_us: the moment.
        version: of the policy in force; 0 where there is none.
        uses: every quota with everybody it binds, in the order of the policy.
        unknown: what reservations do not tell in the longest period asked about, sized.
        told: whether any transition is known up to the moment.
        first_us: the first transition of the ledger, at any moment; Missing where none is known.
        problems: names that were asked about and that nothing knows.
    """

    at_us: int
    version: int
    uses: tuple[QuotaUse, ...]
    unknown: tuple[ReservedGap, ...]
    told: bool
    first_us: int | Missing = NO_TRANSITION
    problems: tuple[Problem, ...] = ()


def amount_words(amount: Fraction) -> str:
    """An amount of device-hours: three decimals, none where it is whole."""
    return decimal(nearest(amount * 1000), 3, trim=amount.denominator == 1)


def use_words(use: QuotaUse, amount: Fraction) -> str:
    """An amount in the unit of a quota: devices as exact shares, device-hours with three decimals."""
    return str(amount) if use.bound.quota.per is Per.AT_ONCE else amount_words(amount)


def _quota_reason(use: QuotaUse) -> str:
    promised = f" and {use_words(use, use.promised)} promised" if use.promised else ""
    asked = "more" if isinstance(use.asked, Missing) else f"{use_words(use, use.asked)} more"
    return f"{use.bound.words}, {use_words(use, use.used)} used{promised}, {asked} asked for"


def _device_reason(full: FullDevice) -> str:
    names = [f"{holder.workload} ({holder.amount}, since {iso(holder.since_us)})" for holder in full.holders[:3]]
    more = f" and {len(full.holders) - 3} more" if len(full.holders) > 3 else ""
    return f"{full.device} is held by {', '.join(names)}{more}: {full.asked} more is too much"
