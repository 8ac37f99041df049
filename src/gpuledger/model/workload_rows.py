"""The rows of reserved time: transitions of workloads, the placements they name, holds on capacity, expected ends.

Frozen values as in :mod:`gpuledger.model.rows`. Whose a workload is stands in its subject, the key of an
identity text, so that it can be forgotten; what it held stands in its placement, which never changes.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from gpuledger.model.lifecycle import Placement
from gpuledger.model.missing import Missing
from gpuledger.model.quickly import quickly_made
from gpuledger.model.rows import Row


@quickly_made
@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadEvent(Row):
    """One transition of one workload. Key: (workload, event_id); the order of a workload is (at, sequence).

    Args:
        workload: the control plane's id.
        event_id: the event's own id; the same id with other content is a conflict.
        sequence: 1, 2, ... in the order in which the ledger learned of the workload's events.
        state: a ``State``.
        at_us: when it happened at the runtime, microseconds UTC.
        recorded_at_us: when the ledger learned of it.
        source: who says so: a controller's name, ``slurm``, ``trace``, ``runtime``.
        is_declared: 1 for the past that an importer declares, which is metered once; 0 for a live control plane.
        subject: key of its owner's identity text.
        requested_class: what was asked for; may be empty.
        placement: key of its placement; empty where the event names none.
    """

    kind: ClassVar[str] = "event"

    workload: str
    event_id: str
    sequence: int
    state: str
    at_us: int
    recorded_at_us: int
    source: str
    is_declared: int = 0
    subject: str
    requested_class: str = ""
    placement: str = ""


@quickly_made
@dataclass(frozen=True, slots=True, kw_only=True)
class PlacementRow(Row):
    """What a placement key stands for. Key: (placement).

    Args:
        placement: its key, see ``Placement.key``.
        class_name, region, machine, pool: as in a ``Placement``.
        devices: JSON list of UUIDs, sorted; ``[]`` where only their number is known.
        count: number of devices.
        share_num, share_den: the share of each, in lowest terms.
    """

    kind: ClassVar[str] = "placement"

    placement: str
    class_name: str
    region: str
    machine: str
    pool: str
    devices: str
    count: int
    share_num: int
    share_den: int

    @classmethod
    def of(cls, placement: Placement, *, key: str | None = None) -> PlacementRow:
        """The row of a placement, whose key may be known already.

        Raises:
            Misconfigured: ``bad-placement`` for names that no ledger should hold.
        """
        placement.refuse_odd_names()
        return cls(
            placement=key or placement.key,
            class_name=placement.class_name,
            region=placement.region,
            machine=placement.machine,
            pool=placement.pool,
            devices=json.dumps(list(placement.devices)),
            count=placement.count,
            share_num=placement.share.numerator,
            share_den=placement.share.denominator,
        )

    def read(self) -> Placement:
        """The placement of the row."""
        return Placement(
            class_name=self.class_name,
            region=self.region,
            machine=self.machine,
            pool=self.pool,
            devices=tuple(json.loads(self.devices)),
            count=self.count,
            share=Fraction(self.share_num, self.share_den),
        )


@quickly_made
@dataclass(frozen=True, slots=True, kw_only=True)
class Hold(Row):
    """A claim on capacity, or its end. Key: (workload, sequence, change).

    Args:
        workload: who holds.
        sequence: of the event that changed it; for a hold taken before any event, 0.
        change: ``taken``, ``confirmed`` or ``released``.
        at_us: when, microseconds UTC.
        placement: key of what is held; empty for a workload that is not placed yet: the class that its event asks for.
        expires_at_us: for a hold that is not confirmed; Missing when it does not expire.
    """

    kind: ClassVar[str] = "hold"

    workload: str
    sequence: int
    change: str
    at_us: int
    placement: str
    expires_at_us: int | Missing


@quickly_made
@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectedEnd(Row):
    """When whoever was admitted said that it will be done. Key: (workload, sequence).

    Nobody is held to it: it tells others when a place may come free. Evidence of a promise, never of use.

    Args:
        workload: who said so.
        sequence: of the event by which it was admitted.
        at_us: when it was said, microseconds UTC.
        until_us: the end that it expects, microseconds UTC.
    """

    kind: ClassVar[str] = "expected"

    workload: str
    sequence: int
    at_us: int
    until_us: int
