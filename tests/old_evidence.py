"""A ledger with two months of evidence on one box, metered long ago: what every test of archives starts from."""

from __future__ import annotations

from pathlib import Path

from gpuledger.ledger.store import Ledger
from gpuledger.model.identity import IdentityText
from gpuledger.model.lifecycle import Placement, State, Transition
from gpuledger.model.missing import Missing
from gpuledger.model.moments import DAY_US, HOUR_US, MINUTE_US, SECOND_US, parse_moment
from gpuledger.model.rows import DeviceEvent, DriverRecord, ProcessIdentity, Row, Sighting, Watch
from gpuledger.operations.meter import meter
from gpuledger.operations.transition import record_transitions

GPU = "GPU-5a3c1f2e-1111-2222-3333-444455556666"
MAY_US = parse_moment("2026-05", now_us=0)
JUNE_US = parse_moment("2026-06", now_us=0)
JULY_US = parse_moment("2026-07", now_us=0)
NOW_US = parse_moment("2026-07-20", now_us=0)
_ALIVE = Missing("alive")


class OldBox:
    """One box: short jobs each day, a daemon that lives through June, and workloads of a control plane.

    Args:
        place: of the ledger.
        days: of evidence, from 1 May on.
        jobs: a day.
    """

    host = "box"

    def __init__(self, place: Path | str, *, days: int = 75, jobs: int = 6) -> None:
        self.place = place
        self.ledger = Ledger.open(place, mode="append")
        self.days, self.jobs = days, jobs

    def fill(self) -> None:
        """Evidence, a pass after each week, and a seal."""
        self._device()
        for day in range(self.days):
            self.ledger.append(self._day(day), writer="box.agent", at_us=MAY_US + (day + 1) * DAY_US)
            self._workloads(day)
            if day % 7 == 6:
                self.meter(MAY_US + (day + 1) * DAY_US + 10 * MINUTE_US)
        self.meter(NOW_US)
        self.ledger.seal(NOW_US, writer="box.agent")

    def meter(self, now_us: int) -> None:
        """One pass."""
        meter(self.ledger, now_us=now_us, writer="box.meter")

    def _device(self) -> None:
        seen = DeviceEvent(
            host="box", device=GPU, at_us=MAY_US, event="seen", class_name="L4-24GB", product="NVIDIA L4",
            memory_mib=23034, method="nvml",
        )  # fmt: skip
        self.ledger.append([seen], writer="box.agent", at_us=MAY_US)

    def _day(self, day: int) -> list[Row]:
        start_us = MAY_US + day * DAY_US
        rows: list[Row] = [
            Watch(host="box", device=device, source=source, method=method, interval_ms=1000, since_us=start_us,
                  until_us=start_us + DAY_US, status="ok", readings=86400)
            for device, source, method in (("", "process", "poll"), (GPU, "driver", "nvml"))
        ]  # fmt: skip
        for job in range(self.jobs):
            began_us = start_us + (job * 24 // self.jobs) * HOUR_US + 20 * MINUTE_US
            rows += self._job(1000 + (day * self.jobs + job) % 300, day * 1000 + job + 1, began_us, (job % 3 + 1) * 25)
        rows += self._daemon(day, start_us)
        return rows

    def _job(self, pid: int, ticks: int, began_us: int, minutes: int) -> list[Row]:
        text = self.ledger.key_of(IdentityText(exe=f"/bin/job{pid % 5}", command=f"job{pid % 5}", user="al"))
        ended_us = began_us + minutes * MINUTE_US
        return [
            ProcessIdentity(host="box", boot_id="boot", pid=pid, start_ticks=ticks, exec_number=0,
                            started_at_us=began_us - SECOND_US, seen_at_us=began_us, method="poll", grade="kernel",
                            text_key=text),
            Sighting(host="box", device=GPU, pid=pid, boot_id="boot", start_ticks=ticks, context_started_at_us=began_us,
                     since_us=began_us + SECOND_US, until_us=ended_us - SECOND_US, accounted="yes",
                     samples=minutes * 60,
                     memory_mib_ms=512 * minutes * 60_000, memory_ms=minutes * 60_000, peak_memory_mib=512,
                     gone_at_us=ended_us, process_died=1, method="nvml"),
            DriverRecord(host="box", device=GPU, pid=pid, started_at_us=began_us, context_ms=minutes * 60_000,
                         peak_memory_mib=512, gpu_percent=40, memory_percent=10, read_at_us=ended_us + SECOND_US,
                         method="nvml"),
        ]  # fmt: skip

    def _daemon(self, day: int, start_us: int) -> list[Row]:
        """Pid 77 opens the device on 20 May and closes it on 10 June; looks are merged by the hour."""
        opened_us, closed_us = MAY_US + 19 * DAY_US, JUNE_US + 9 * DAY_US
        rows: list[Row] = []
        if start_us == opened_us:
            text = self.ledger.key_of(IdentityText(exe="/bin/ollama", command="ollama serve", unit="ollama.service"))
            rows.append(
                ProcessIdentity(host="box", boot_id="boot", pid=77, start_ticks=7, exec_number=0,
                                started_at_us=opened_us, seen_at_us=opened_us, method="poll", grade="kernel",
                                text_key=text)
            )  # fmt: skip
        for hour in range(24):
            at_us = start_us + hour * HOUR_US
            if opened_us <= at_us < closed_us:
                rows.append(
                    Sighting(host="box", device=GPU, pid=77, boot_id="boot", start_ticks=7,
                             context_started_at_us=opened_us, since_us=at_us, until_us=at_us + HOUR_US, accounted="yes",
                             samples=3600, peak_memory_mib=100, method="nvml",
                             gone_at_us=_ALIVE if at_us + HOUR_US < closed_us else closed_us, process_died=0)
                )  # fmt: skip
        if start_us + DAY_US == closed_us:
            rows.append(
                DriverRecord(host="box", device=GPU, pid=77, started_at_us=opened_us,
                             context_ms=(closed_us - opened_us) // 1000, peak_memory_mib=100, gpu_percent=1,
                             memory_percent=1, read_at_us=closed_us, method="nvml")
            )  # fmt: skip
        return rows

    def _workloads(self, day: int) -> None:
        start_us = MAY_US + day * DAY_US
        self.tell(f"w{day}", start_us + HOUR_US, hours=5)
        if day == 29:  # 30 May to 3 June
            self.tell("across", start_us, hours=96)

    def tell(self, workload: str, at_us: int, *, hours: int) -> None:
        """One workload from its admission to its stop."""
        where = Placement(class_name="H100-80GB", machine="n1", count=1)
        stages = ((State.PENDING, 0), (State.PROVISIONING, 5), (State.RUNNING, 10), (State.STOPPED, hours * 60))
        for number, (state, minutes) in enumerate(stages):
            moment_us = at_us + minutes * MINUTE_US
            told = Transition(
                workload=workload, event_id=f"{workload}-{number}", state=state, at_us=moment_us, source="cp",
                user="al", team="vision", placement=where if state is State.PROVISIONING else None,
            )  # fmt: skip
            record_transitions(self.ledger, [told], writer="box.transition", now_us=moment_us)
