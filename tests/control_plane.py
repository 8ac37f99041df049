"""A control plane that tells the ledger what its workloads do: the outer edge of every test of reserved time."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

from gpuledger.ledger.store import Ledger
from gpuledger.model.identity import IdentityText
from gpuledger.model.lifecycle import Placement
from gpuledger.model.moments import HOUR_US, parse_moment
from gpuledger.model.outcomes import MeterReport
from gpuledger.model.rows import UsageCorrection, UsageRecord, Watch
from gpuledger.model.workload_rows import PlacementRow, WorkloadEvent
from gpuledger.operations.meter import meter

MIDNIGHT_US = parse_moment("2026-07-27", now_us=0)


class ControlPlane:
    """One ledger and those who write to it. Times are hours after midnight of 2026-07-27, UTC."""

    host = "box"

    def __init__(self, place: Path) -> None:
        self.place = place
        self.ledger = Ledger.open(place, mode="append")
        self._sequences: dict[str, int] = {}

    def at(self, hour: float | Fraction) -> int:
        """Microseconds UTC of an hour."""
        return MIDNIGHT_US + round(Fraction(hour) * HOUR_US)

    def placement(
        self, machine: str = "n1", *, class_name: str = "H100-80GB", count: int = 1, share: str = "1",
        devices: tuple[str, ...] = (), region: str = "",
    ) -> Placement:  # fmt: skip
        """Where a workload runs."""
        return Placement(
            class_name=class_name, machine=machine, count=len(devices) or count, share=Fraction(share),
            devices=devices, region=region,
        )  # fmt: skip

    def tell(
        self, workload: str, state: str, hour: float | Fraction, placement: Placement | None = None, *,
        source: str = "cp", declared: bool = False, user: str = "al", team: str = "vision", labels: str = "",
        event_id: str = "",
    ) -> WorkloadEvent:  # fmt: skip
        """One transition, appended."""
        number = self._sequences[workload] = self._sequences.get(workload, 0) + 1
        text = IdentityText(workload=workload, user=user, team=team, labels=labels)
        event = WorkloadEvent(
            workload=workload, event_id=event_id or f"{workload}-{number}", sequence=number, state=state,
            at_us=self.at(hour), recorded_at_us=self.at(hour), source=source, is_declared=int(declared),
            subject=self.ledger.key_of(text), placement=placement.key if placement else "",
        )  # fmt: skip
        rows = [as_row(placement), event] if placement else [event]
        self.ledger.append(rows, writer=f"{self.host}.transition", at_us=self.at(hour))
        return event

    def run(
        self, workload: str, since: float | Fraction, until: float | Fraction | None, placement: Placement | None,
        **words: object,
    ) -> None:  # fmt: skip
        """A whole life: admitted, running at once, stopped; open without an end."""
        self.tell(workload, "provisioning", since, placement, **words)  # type: ignore[arg-type]
        self.tell(workload, "running", since, **words)  # type: ignore[arg-type]
        if until is not None:
            self.tell(workload, "stopped", until, **words)  # type: ignore[arg-type]

    def beat(self, hour: float | Fraction, source: str = "cp", interval_ms: int = 60_000) -> None:
        """A heartbeat of a controller."""
        watch = Watch(
            host=source, device="", source="controller", method="heartbeat", interval_ms=interval_ms,
            since_us=self.at(hour), until_us=self.at(hour), status="ok",
        )  # fmt: skip
        self.ledger.append([watch], writer=f"{self.host}.transition", at_us=self.at(hour))

    def meter(self, hour: float | Fraction, ledger: Ledger | None = None, writer: str = "box.meter") -> MeterReport:
        """A metering pass."""
        return meter(ledger or self.ledger, now_us=self.at(hour), writer=writer)

    def held(self, meter_name: str = "gpu.reserved") -> dict[tuple[int, str, str], int]:
        """(hour after midnight, workload, machine) to recorded and corrected seconds; nothing for none."""
        texts = self.ledger.texts(None)
        found: dict[tuple[int, str, str], int] = {}
        rows: list[UsageRecord | UsageCorrection] = [
            *self.ledger.scan(UsageRecord), *self.ledger.scan(UsageCorrection),
        ]  # fmt: skip
        for row in rows:
            if row.meter == meter_name:
                key = ((row.hour_us - MIDNIGHT_US) // HOUR_US, texts[row.subject].workload, row.host)
                found[key] = found.get(key, 0) + (row.quantity if isinstance(row, UsageRecord) else row.delta)
        return {key: seconds for key, seconds in found.items() if seconds}


def as_row(placement: Placement) -> PlacementRow:
    """A placement as the ledger keeps it."""
    return PlacementRow(
        placement=placement.key, class_name=placement.class_name, region=placement.region,
        machine=placement.machine, pool=placement.pool, devices=json.dumps(list(placement.devices)),
        count=placement.count, share_num=placement.share.numerator, share_den=placement.share.denominator,
    )  # fmt: skip
