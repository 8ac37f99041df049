"""Who holds capacity now, by user and by team: all of it known once, and then only what changes is read anew.

In: events, claims and expected ends of workloads. Out: holders. The work of one look does not grow with history, nor
with those who hold elsewhere.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from heapq import heappop, heappush

from gpuledger.ledger import holders, workloads
from gpuledger.ledger.holders import Standing
from gpuledger.ledger.store import Ledger
from gpuledger.metering.lifecycles import Stay, since_begin
from gpuledger.model.lifecycle import Placement
from gpuledger.model.missing import Missing
from gpuledger.model.quotas import HOLD_US, NO_END, Holder, Scope
from gpuledger.model.workload_rows import Hold, WorkloadEvent
from gpuledger.operations.in_force import InForce
from gpuledger.operations.judging import MOST_AHEAD_US
from gpuledger.operations.occupancy import stays_of

UNPLACED = Missing("nothing says on how many devices")
KEPT_US = 2 * MOST_AHEAD_US
"""How long who no longer holds is remembered: callers' clocks differ."""


class Holdings:
    """The holders of capacity, from a moment on.

    Args:
        ledger: open in either mode.
        in_force: says whose a workload is.
    """

    def __init__(self, ledger: Ledger, in_force: InForce) -> None:
        self._ledger = ledger
        self._in_force = in_force
        self._by_workload: dict[str, Holder] = {}
        self._by_owner: dict[tuple[Scope, str], dict[str, Holder]] = {}
        self._lapsing: list[tuple[int, str]] = []
        self._placements: dict[str, Placement] = {}

    def load(self, now_us: int) -> None:
        """Read who holds, all of it."""
        self._by_workload.clear()
        self._by_owner.clear()
        self._lapsing.clear()
        connection = self._ledger.connection
        names = holders.holding_workloads(connection, now_us, until_us=now_us + MOST_AHEAD_US, longest_us=HOLD_US)
        self.take_in(names, holders.standing(connection, dict.fromkeys(names, now_us)), now_us)

    def take_in(self, names: Collection[str], told: Standing, now_us: int) -> None:
        """These workloads hold what follows from what is told of them, from now or from before on."""
        if not names:
            return
        events = {name: since_begin(rows, now_us) for name, rows in told.events.items()}
        claims = told.claims
        self._need({event.placement for told in events.values() for event in told})
        self._need({claim.placement for claim in claims.values()})
        self._in_force.need({told[-1].subject for told in events.values()})
        for name in names:
            self.put(name, self._holder(name, events.get(name, []), claims.get(name), told.ends, now_us))
        while self._lapsing and self._lapsing[0][0] <= now_us - KEPT_US:
            lapses_us, name = heappop(self._lapsing)
            held = self._by_workload.get(name)
            if held is not None and held.lapses_us == lapses_us:
                self.put(name, None)

    def put(self, name: str, holder: Holder | None) -> None:
        """This is what a workload holds; None: nothing."""
        before = self._by_workload.pop(name, None)
        if before is not None:
            for owner in _owners(before):
                self._by_owner[owner].pop(name, None)
        if holder is None:
            return
        self._by_workload[name] = holder
        for owner in _owners(holder):
            self._by_owner.setdefault(owner, {})[name] = holder
        if not isinstance(holder.lapses_us, Missing):
            heappush(self._lapsing, (holder.lapses_us, name))

    def get(self, workload: str) -> Holder | None:
        """What a workload holds; None where it holds nothing."""
        return self._by_workload.get(workload)

    def of(self, owner: tuple[Scope, str]) -> Collection[Holder]:
        """What a user, or a team, holds."""
        return self._by_owner.get(owner, {}).values()

    def everybody(self) -> Collection[Holder]:
        """Every holder."""
        return self._by_workload.values()

    def _need(self, keys: Iterable[str]) -> None:
        missing = {key for key in keys if key and key not in self._placements}
        if missing:
            for row in workloads.placement_rows(self._ledger.connection, missing):
                self._placements[row.placement] = row.read()

    def _holder(
        self,
        name: str,
        events: Sequence[WorkloadEvent],
        claim: Hold | None,
        ends: Mapping[str, tuple[int, int]],
        now_us: int,
    ) -> Holder | None:
        all_stays = stays_of(events, claim)
        stays = [stay for stay in all_stays if _lasts(stay, now_us) and stay.since_us <= now_us + MOST_AHEAD_US]
        if not stays or not events:
            return None
        stay = stays[-1]
        where = self._placements.get(stay.placement)
        user, team, _ = self._in_force.naming.answerer(events[-1].subject, now_us)
        is_claimed = claim is not None and claim.change == "taken" and not isinstance(claim.expires_at_us, Missing)
        is_confirmed = not (is_claimed and stay is all_stays[-1])
        asked = [event.requested_class for event in events if event.requested_class]
        return Holder(
            workload=name,
            user=user,
            team=team,
            class_name=where.class_name if where else (asked[-1] if asked else ""),
            amount=where.count * where.share if where else UNPLACED,
            since_us=all_stays[0].since_us if is_confirmed else stay.since_us,
            ends_us=ends[name][1] if name in ends else NO_END,
            lapses_us=stay.until_us,
            is_confirmed=is_confirmed,
            devices=where.devices if where else (),
        )


def _lasts(stay: Stay, now_us: int) -> bool:
    return isinstance(stay.until_us, Missing) or stay.until_us > now_us


def _owners(holder: Holder) -> tuple[tuple[Scope, str], tuple[Scope, str]]:
    return (Scope.USER, holder.user), (Scope.TEAM, holder.team)
