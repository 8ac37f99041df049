"""``fairshare``: who used less of what they may, and in which order the waiting would be taken.

Usage is reserved time: what is recorded, with its corrections, and at once what no record says yet.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from gpuledger.accounting.amounts import Grain
from gpuledger.accounting.answering import Answering
from gpuledger.accounting.decay import Decay, Sums, add_decayed, epoch_of, joined, limbs
from gpuledger.accounting.explaining_share import explain_share
from gpuledger.accounting.fairshare import standings
from gpuledger.accounting.reserved import in_order
from gpuledger.accounting.share_places import Places
from gpuledger.accounting.share_usage import ShareUsage, weigh
from gpuledger.accounting.snapshot import LOST, standing
from gpuledger.accounting.waiting_line import Pools, Request, in_line
from gpuledger.errors import Misconfigured, NotFound, Unavailable
from gpuledger.ledger.share_reads import (
    HourWeight,
    admitted_until,
    events_of,
    first_hour,
    identity_values,
    make_relations,
    may_wait,
    open_history,
    weighted_sums,
)
from gpuledger.ledger.store import Ledger
from gpuledger.metering.waits import admissions
from gpuledger.model.capacity import Outcome
from gpuledger.model.durations import several
from gpuledger.model.explanation import Explanation
from gpuledger.model.fairshare import NOT_ADMITTED, FairShareReport, ShareLine, Waiting
from gpuledger.model.lifecycle import State
from gpuledger.model.meters import GPU_RESERVED
from gpuledger.model.missing import Missing
from gpuledger.model.moments import HOUR_US, hour_floor, iso
from gpuledger.model.policy import Policy
from gpuledger.model.problem import Problem, unknown_name
from gpuledger.model.reserved import PLACED, ReservedGap
from gpuledger.model.rows import DeviceEvent, Pass, PolicyVersion
from gpuledger.model.shares import Shares
from gpuledger.model.workload_rows import PlacementRow, WorkloadEvent
from gpuledger.operations.blind_reserved import reserved_gaps
from gpuledger.operations.capacity import known_until, last_beats
from gpuledger.operations.usage import policies
from gpuledger.operations.usage_reserved import unrecorded_amounts


@dataclass(frozen=True, slots=True, kw_only=True)
class FairShare:
    """The answer, and what its explanation needs beside it.

    Args:
        report: the answer.
        shares: the tree it was made with.
        usage: of every place, by class.
        decay: what an hour counts.
    """

    report: FairShareReport
    shares: Shares
    usage: ShareUsage
    decay: Decay


def fairshare(ledger: Ledger, *, at_us: int, now_us: int, pool: str = "", sized: bool = True) -> FairShare:
    """Where every account and user stands at a moment, and the order of those who wait.

    Args:
        ledger: open in either mode.
        at_us: the moment; usage, owners, shares and those who wait are those of it, as they are known by now.
        now_us: the time that is asked at.
        pool: only who waits for this pool; empty for all.
        sized: whether what reservations do not tell is sized; a control plane that only wants the order leaves it.

    Raises:
        Misconfigured: ``no-shares`` where the policy in effect gives none, ``future-moment``.
    """
    if at_us > now_us:
        raise Misconfigured("future-moment", f"{iso(at_us)} is not over yet", hint="--at takes now or a past moment")
    row, policy, versions = _in_effect(ledger, at_us=at_us, now_us=now_us)
    shares = policy.shares
    assert not isinstance(shares, Missing)
    decay = Decay(half_life_us=shares.half_life_us, at_us=at_us)
    changes_us = sorted({effective_us for effective_us, _ in versions})
    placements, sums = _sums(ledger, decay, changes_us, at_us=at_us, now_us=now_us)
    with ledger.snapshot():
        asking = _asking(ledger, at_us=at_us)
        subjects = {subject for subject, _, _ in sums} | {one.subject for one in asking}
        values = identity_values(ledger.connection, subjects)
        devices = list(ledger.scan(DeviceEvent))
        first_us, _ = ledger.span_of((WorkloadEvent,))
    answering = Answering(values=values, versions=versions)
    places = Places(shares)
    usage = weigh(sums, placements=placements, answering=answering, places=places, weights=shares.class_weights)
    lines = standings(shares, usage.by_place)
    pools = _pools(policy, devices, placements, at_us=at_us)
    waiting = in_line([_request(one, answering, places, pools, placements) for one in asking], lines)
    here = tuple(one for one in waiting if not pool or pool in one.pools)
    since_us = decay.first_us
    report = FairShareReport(
        at_us=at_us,
        algorithm=shares.algorithm,
        half_life_us=shares.half_life_us,
        class_weights=shares.class_weights,
        policy=row.version,
        policy_ref=row.ref,
        since_us=since_us,
        total=sum((line.usage for line in lines if not line.depth), start=_NOTHING),
        lines=lines,
        outside=usage.outside,
        waiting=here,
        poolless=sum(not one.pools for one in waiting) if pool else 0,
        pool=pool,
        gaps=tuple(_gaps(ledger, since_us=since_us, at_us=at_us, now_us=now_us)) if sized else (),
        first_us=first_us,
        told=not isinstance(first_us, Missing) and first_us <= at_us,
        problems=(*_unknown_pool(pool, pools, waiting), *(_problems(ledger, at_us=at_us) if sized else ())),
    )
    return FairShare(report=report, shares=shares, usage=usage, decay=decay)


def explain_fairshare(found: FairShare, user: str) -> Explanation:
    """How a user, or an account, came to stand where they stand: every factor, with its numbers.

    Raises:
        NotFound: ``no-such-share`` where neither the tree nor any usage names them.
    """
    explanation = explain_share(found.report, shares=found.shares, usage=found.usage, decay=found.decay, name=user)
    if isinstance(explanation, Missing):
        raise _nobody(user)
    return explanation


def of_user(report: FairShareReport, user: str) -> FairShareReport:
    """The answer for one user: their lines and the accounts above, with the ranks that they have among all.

    Raises:
        NotFound: ``no-such-share`` where neither the tree nor any usage names them.
    """
    own = [line for line in report.lines if line.place.user == user]
    outside = tuple(one for one in report.outside if one.user == user)
    waiting = tuple(one for one in report.waiting if one.user == user)
    if not own and not outside and not waiting:
        raise _nobody(user)
    shown = {line.place for line in own}
    kept: list[ShareLine] = []
    depth = -1
    for line in reversed(report.lines):
        if line.place in shown or line.depth < depth:
            kept.append(line)
            depth = line.depth
    return replace(report, lines=tuple(reversed(kept)), outside=outside, waiting=waiting)


def _nobody(name: str) -> NotFound:
    return NotFound(
        "no-such-share",
        f"the tree of shares has no {name!r}, and nothing was used by that name",
        hint="gpuledger fairshare   lists the accounts and users there are",
    )


_NOTHING = Fraction(0)


def _in_effect(ledger: Ledger, *, at_us: int, now_us: int) -> tuple[PolicyVersion, Policy, list[tuple[int, Policy]]]:
    """The version applied last of those in effect at a moment, which gives shares; and all, for their owners."""
    versions = policies(ledger, now_us=now_us)
    rows = sorted(ledger.scan(PolicyVersion), key=lambda row: row.version)
    applied = zip((row for row in rows if row.applied_at_us <= now_us), versions, strict=True)
    in_effect = [(row, policy) for row, (effective_us, policy) in applied if effective_us <= at_us]
    if not in_effect:
        raise Misconfigured("no-shares", f"no policy is in effect at {iso(at_us)}", hint=_HINT)
    row, policy = in_effect[-1]
    if isinstance(policy.shares, Missing):
        message = f"policy {row.version} gives no `shares`: nobody says who may use how much"
        raise Misconfigured("no-shares", message, hint=_HINT)
    return row, policy, versions


_HINT = "gpuledger apply FILE   with shares: {half_life: 7d, tree: {TEAM: {shares: 40, users: {NAME: 1}}}}"


def _sums(
    ledger: Ledger, decay: Decay, changes_us: Sequence[int], *, at_us: int, now_us: int
) -> tuple[dict[str, PlacementRow], Sums]:
    """All placements, and what still counts of all usage: recorded, and what no record says yet.

    Raises:
        Unavailable: ``ledger-busy`` where passes were booked all the while.
    """
    with ledger.mapped():
        make_relations(ledger.connection)
    for _ in range(_TRIES):
        booked = [row.ref for row in ledger.newest(Pass)]
        placements = {row.placement: row for row in ledger.scan(PlacementRow)}
        open_hours = [
            (amount.subject, f"{PLACED}{amount.placement.placement}", amount.at_us, amount.seconds)
            for amount in unrecorded_amounts(
                ledger, GPU_RESERVED, Grain.HOUR, known=placements,
                since_us=hour_floor(decay.first_us), until_us=at_us, now_us=now_us,
            )
        ]  # fmt: skip
        with ledger.snapshot():
            sums = _recorded(ledger, decay, changes_us, until_us=hour_floor(at_us))
            # what a pass has booked meanwhile would stand in both
            if booked == [row.ref for row in ledger.newest(Pass)]:
                return placements, add_decayed(sums, open_hours, decay, changes_us)
    raise Unavailable("ledger-busy", "hours were recorded all the while they were read", hint="run the command again")


def _recorded(ledger: Ledger, decay: Decay, changes_us: Sequence[int], *, until_us: int) -> Sums:
    """What still counts of the hours that are recorded and begin before ``until_us``."""
    first_us = first_hour(ledger.connection, GPU_RESERVED.name)
    if isinstance(first_us, Missing):
        return {}
    weights = [
        HourWeight(hour_us, epoch_of(hour_us, changes_us), *limbs(decay.weight(hour_us)))
        for hour_us in range(max(first_us, hour_floor(decay.first_us)), until_us, HOUR_US)
    ]
    sums: Sums = {}
    for subject, device, epoch_us, plain, *parts in weighted_sums(ledger.connection, GPU_RESERVED.name, weights):
        key = (subject, device, epoch_us)
        before = sums.get(key, (0, 0))
        sums[key] = (before[0] + plain, before[1] + joined(*parts))
    return sums


_TRIES = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asking:
    """A workload that waits at the moment asked about."""

    event: WorkloadEvent
    since_us: int
    known_until_us: int
    requested_class: str
    admitted_until_us: int | Missing

    @property
    def subject(self) -> str:
        return self.event.subject


def _asking(ledger: Ledger, *, at_us: int) -> list[_Asking]:
    told = events_of(ledger.connection, may_wait(ledger.connection, at_us=at_us), until_us=at_us)
    if not told:
        return []
    beats = last_beats(ledger)
    held = admitted_until(ledger.connection, list(told), at_us=at_us)
    found: list[_Asking] = []
    for workload, events in told.items():
        known_us = min(known_until(events, beats, at_us), at_us)
        asked = admissions(events, known_until_us=known_us, classes={})
        if not asked or asked[-1].outcome is not Outcome.WAITING or isinstance(asked[-1].asked_us, Missing):
            continue
        found.append(
            _Asking(
                event=[event for event in events if event.state == State.PENDING][-1],
                since_us=asked[-1].asked_us,
                known_until_us=asked[-1].until_us,
                requested_class=asked[-1].requested,
                admitted_until_us=held.get(workload, NOT_ADMITTED),
            )
        )
    return found


def _request(
    one: _Asking,
    answering: Answering,
    places: Places,
    pools: Pools,
    placements: Mapping[str, PlacementRow],
) -> Request:
    user, team, project = answering.of(one.subject, one.event.at_us)
    labels = answering.labels(one.subject)
    placement = placements.get(one.event.placement)
    return Request(
        workload=one.event.workload,
        user=user,
        team=team,
        project=project,
        place=places.of(user, team, project).place,
        since_us=one.since_us,
        known_until_us=one.known_until_us,
        requested_class=one.requested_class,
        pools=pools.of_request(
            pool=placement.pool if placement else "",
            machine=placement.machine if placement else "",
            labels=json.loads(labels) if labels else {},
            requested_class=one.requested_class or (placement.class_name if placement else ""),
        ),
        ref=one.event.ref,
        admitted_until_us=one.admitted_until_us,
    )


def _pools(
    policy: Policy, devices: Sequence[DeviceEvent], placements: Mapping[str, PlacementRow], *, at_us: int
) -> Pools:
    """The pools of the policy's machines, with the classes that agents saw there, or that were ever placed there."""
    of_host = {name: host.pool for name, host in policy.hosts.items() if host.pool}
    of_class: dict[str, set[str]] = defaultdict(set)
    for event in standing(devices, at_us=at_us).values():
        if event.event != LOST and event.host in of_host:
            of_class[event.class_name].add(of_host[event.host])
    for placement in placements.values():
        if pool := placement.pool or of_host.get(placement.machine, ""):
            of_class[placement.class_name].add(pool)
    return Pools(of_host=of_host, of_class={name: frozenset(pools) for name, pools in of_class.items()})


def _unknown_pool(pool: str, pools: Pools, waiting: Sequence[Waiting]) -> Iterator[Problem]:
    """A pool that was asked for and that neither policy, placements nor the waiting name."""
    known = {*pools.of_host.values(), *(name for one in pools.of_class.values() for name in one)}
    known |= {name for one in waiting for name in one.pools}
    if pool and pool not in known:
        yield unknown_name("pool", pool, known)


def _problems(ledger: Ledger, *, at_us: int) -> tuple[Problem, ...]:
    """Declared history that nothing ends: until when it held devices nobody tells."""
    with ledger.snapshot():
        held = open_history(ledger.connection, at_us=at_us)
        beats = last_beats(ledger) if held else {}
    number = sum(count for source, count in held.items() if source not in beats)
    if not number:
        return ()
    message = f"{several(number, 'workload')} of declared history still ran at the last that was told of it; what it "
    return (Problem(code="as-of-unknown", message=f"{message}held since is UNKNOWN, and in nobody's usage"),)


def _gaps(ledger: Ledger, *, since_us: int, at_us: int, now_us: int) -> list[ReservedGap]:
    """What reservations do not tell of the time that still counts; it begins with the first event."""
    first_us, _ = ledger.span_of((WorkloadEvent,))
    begins_us = at_us if isinstance(first_us, Missing) else max(since_us, first_us)
    return list(in_order(reserved_gaps(ledger, since_us=begins_us, until_us=at_us, now_us=now_us)))
