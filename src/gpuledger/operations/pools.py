"""What the policy says of pools, asked of one event: whose reservations count there, and when its devices are free.

In: an event that came for a workload, and what it stands on. Out: why it may not be, or nothing. Of whether devices are
free the word of the runtime or the kubelet counts, or that of the agent: a look at each of them, at or after the
stop, that found nobody there.
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
        policy: whose rules; Missing where no policy is in force.
    """

    def __init__(self, ledger: Ledger, policy: Policy | Missing) -> None:
        self._ledger = ledger
        self._policy = Policy(effective_from_us=0) if isinstance(policy, Missing) else policy

    def refusals(self, life: Life, event: WorkloadEvent, placements: Mapping[str, Placement]) -> Iterable[Refused]:
        """Why an event that is about to join a life breaks the rules of its pool; empty where it does not."""
        if not self._policy.pools or event.source in AT_THE_DEVICE:
            return ()
        where = placements.get(event.placement or life.placement)
        return () if where is None else self._of(life, event, where)

    def _of(self, life: Life, event: WorkloadEvent, where: Placement) -> Iterator[Refused]:
        pool = self._policy.pool_of(where.pool, where.machine)
        rule = self._policy.pools.get(pool, _NO_RULE)
        if event.state in HOLDING and rule.source and event.source != rule.source:
            yield Refused(
                "other-source",
                f"{event.workload} {event.state}: in pool {pool} the reservations of {rule.source} count, "
                f"and this is told by {event.source}",
                hint=f"--source {rule.source}, if it is the same controller; or name {event.source} in `pools:` "
                "of the policy",
            )
        if event.state in ENDED and rule.is_release_confirmed and life.holds:
            why = self._not_free(where, event.at_us)
            if why:
                yield Refused(
                    "release-unconfirmed",
                    f"{event.workload} {event.state} at {iso(event.at_us)}: in pool {pool} devices are free once the "
                    f"runtime, the kubelet or the agent has said so, and {why}",
                    hint="gpuledger transition --from-runtime FILE   (or the same again, once the agent has looked)",
                )

    def _not_free(self, where: Placement, at_us: int) -> str:
        """Why it is not known that devices are free; empty where the agent saw that they are."""
        if where.count and not where.devices:
            return "it is not known which devices they are"
        for device in where.devices:
            looks = self._ledger.scan(Watch, devices=(device,), since_us=at_us)
            if not any(row.source == "driver" and row.status in WATCHED and row.until_us >= at_us for row in looks):
                return f"nobody has looked at {device} since"
            seen = sorted(self._ledger.scan(Sighting, devices=(device,), since_us=at_us), key=_end)
            for row in {(row.host, row.pid, row.boot_id, row.start_ticks): row for row in seen}.values():
                if isinstance(row.gone_at_us, Missing):
                    return f"process {row.pid} was on {device} at {iso(row.until_us)}"
        return ""


def _end(row: Sighting) -> int:
    return row.until_us
