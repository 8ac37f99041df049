"""The waiting in the order that fair share gives, and the pools that each of them can run in.

A request belongs to the pool that it is placed in, or whose machine it is placed on; else to the one that its label
``pool`` or ``partition`` names; else to each pool with a device of the class that it asks for. Where nothing tells, it
belongs to none, and that is said.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction

from gpuledger.accounting.capacity import alternatives, is_any_card
from gpuledger.model.fairshare import NOT_ADMITTED, NOT_IN_TREE, ShareLine, Waiting
from gpuledger.model.missing import Missing
from gpuledger.model.shares import Place

LABELS = ("pool", "partition")
"""Labels of a workload that name its pool, the first that is there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pools:
    """Which pools there are, by policy and by the devices that are known.

    Args:
        of_host: machine to pool.
        of_class: class of a device to the pools that have one.
    """

    of_host: Mapping[str, str]
    of_class: Mapping[str, frozenset[str]]

    def of_request(
        self, *, pool: str, machine: str, labels: Mapping[str, object], requested_class: str
    ) -> tuple[str, ...]:
        """The pools of one request, sorted; none where nothing tells."""
        named = pool or self.of_host.get(machine, "")
        named = named or next((str(labels[each]) for each in LABELS if labels.get(each)), "")
        if named:
            return (named,)
        wanted = alternatives(requested_class)
        if any(is_any_card(each) for each in wanted):
            return tuple(sorted({each for pools in self.of_class.values() for each in pools}))
        return tuple(sorted({each for name in wanted for each in self.of_class.get(name, ())}))


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A workload that waits, and whose it is.

    Args:
        workload, user, team, project, since_us, known_until_us, requested_class, pools, ref, admitted_until_us: as in
            a :class:`~gpuledger.model.fairshare.Waiting`.
        place: its place in the tree.
    """

    workload: str
    user: str
    team: str
    project: str
    place: Place | Missing
    since_us: int
    known_until_us: int
    requested_class: str
    pools: tuple[str, ...]
    ref: str
    admitted_until_us: int | Missing = NOT_ADMITTED


def in_line(requests: Iterable[Request], lines: Iterable[ShareLine]) -> tuple[Waiting, ...]:
    """First the lowest rank, of equals who waits longest; who has no place in the tree comes last."""
    by_place = {line.place: line for line in lines}
    found: list[tuple[tuple[bool, int, int, str], Waiting]] = []
    for one in requests:
        line = None if isinstance(one.place, Missing) else by_place.get(one.place)
        rank: int | Missing = line.rank if line else NOT_IN_TREE
        factor: Fraction | Missing = line.factor if line else NOT_IN_TREE
        waiting = Waiting(
            workload=one.workload,
            user=one.user,
            team=one.team,
            project=one.project,
            place=one.place,
            rank=rank,
            factor=factor,
            since_us=one.since_us,
            known_until_us=one.known_until_us,
            requested_class=one.requested_class,
            pools=one.pools,
            ref=one.ref,
            admitted_until_us=one.admitted_until_us,
        )
        is_last, number = (True, 0) if isinstance(rank, Missing) else (False, rank)
        found.append(((is_last, number, one.since_us, one.workload), waiting))
    found.sort(key=lambda pair: pair[0])
    return tuple(waiting for _, waiting in found)
