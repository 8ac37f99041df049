"""What the policy says of pools, asked of one event: whose reservations count there, and when its devices are free.

In: an event that came for a workload, and what it stands on. Out: why it may not be, or nothing. Of whether devices are
free the word of the runtime or the kubelet counts, or that of the agent: it looked at each of them, at or after the
stop, and whoever had been there before the stop was gone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from gpuledger.errors import Refused
from gpuledger.ledger.store import Ledger
from gpuledger.model.lifecycle import ENDED, HOLDING, Placement
from gpuledger.model.missing import Missing
from gpuledger.model.moments import iso
from gpuledger.model.policy import Policy, PoolRule
from gpuledger.model.reasons import WATCHED
from gpuledger.model.rows import Sighting, Watch
from gpuledger.model.workload_rows import WorkloadEvent
from gpuledger.operations.lives import Life

AT_THE_DEVICE = frozenset({"runtime", "kubelet"})
"""Sources that see the devices themselves: they may tell of every pool, and their stop is the confirmation."""

_NO_RULE = PoolRule()


class Pools:
    """The rules of pools in one policy.

    Args:
        ledger: what the agents of the machines saw is read from here.
        policy: whose rules.
    """

    def __init__(self, ledger: Ledger, policy: Policy) -> None:
        self._ledger = ledger
        self._policy = policy

    def refusals(self, life: Life, event: WorkloadEvent, placements: Mapping[str, Placement]) -> Iterable[Refused]:
        """Why an event that is about to join a life breaks the rules of its pool; empty where it does not."""
        if not self._policy.pools or event.source in AT_THE_DEVICE:
            return ()
        if event.state in HOLDING:
            return self._source(event, placements.get(event.placement or life.placement))
        return self._release(life, event, placements) if event.state in ENDED else ()

    def _rule(self, where: Placement) -> tuple[str, PoolRule]:
        pool = self._policy.pool_of(where.pool, where.machine)
        return pool, self._policy.pools.get(pool, _NO_RULE)

    def _source(self, event: WorkloadEvent, where: Placement | None) -> Iterator[Refused]:
        pool, rule = ("", _NO_RULE) if where is None else self._rule(where)
        if rule.source not in ("", event.source):
            yield Refused(
                "other-source",
                f"{event.workload} {event.state}: in pool {pool} the reservations of {rule.source} count, "
                f"and this is told by {event.source}",
                hint=f"--source {rule.source}, if it is the same controller; or name {event.source} in `pools:` "
                "of the policy",
            )

    def _release(self, life: Life, event: WorkloadEvent, placements: Mapping[str, Placement]) -> Iterator[Refused]:
        for stay in life.stays():
            is_over = not isinstance(stay.until_us, Missing) and stay.until_us <= event.at_us
            where = placements.get(stay.placement)
            if is_over or stay.since_us > event.at_us or where is None:
                continue
            pool, rule = self._rule(where)
            why = self._not_free(where, stay.since_us, event.at_us) if rule.is_release_confirmed else ""
            if why:
                yield Refused(
                    "release-unconfirmed",
                    f"{event.workload} {event.state} at {iso(event.at_us)}: in pool {pool} devices are free once the "
                    f"runtime, the kubelet or the agent has said so, and {why}",
                    hint="gpuledger transition --from-runtime FILE   (or the same again, once the agent has looked)",
                )

    def _not_free(self, where: Placement, since_us: int, at_us: int) -> str:
        """Why it is not known that devices are free; empty where the agent saw that whoever was there is gone."""
        if where.count and not where.devices:
            return "it is not known which devices they are"
        for device in where.devices:
            looks = self._ledger.scan(Watch, devices=(device,), since_us=at_us)
            if not any(row.source == "driver" and row.status in WATCHED and row.until_us >= at_us for row in looks):
                return f"nobody has looked at {device} since"
            last: dict[tuple[str, int, str, int], Sighting] = {}
            for row in sorted(self._ledger.scan(Sighting, devices=(device,), since_us=since_us), key=_end):
                process = (row.host, row.pid, row.boot_id, row.start_ticks)
                if process in last or row.since_us <= at_us:  # who came after the stop is somebody else's
                    last[process] = row
            for row in last.values():
                if isinstance(row.gone_at_us, Missing):
                    return f"process {row.pid} was on {device} at {iso(row.until_us)}, and nobody saw it gone"
        return ""


def _end(row: Sighting) -> int:
    return row.until_us
