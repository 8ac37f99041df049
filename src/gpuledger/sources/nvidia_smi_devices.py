"""One GPU of one look: what several outputs say of it, merged into a device reading. Pure.

Lists are merged by pid, never added: a process that stands in the compute list, in ``-q`` and in the
accounting list is one context. Newer drivers give whole command lines as names: they are redacted here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from gpuledger.model.missing import Missing
from gpuledger.model.readings import DeviceReading, FinishedRow, LivingContext, SliceReading
from gpuledger.sources.nvidia_smi_outputs import NOT_READ, AccountedRow, DevicePart, Kind, ListedProcess, Slice
from gpuledger.sources.redaction import redact

NO_START = Missing("nvidia-smi: gives no start time")
_NO_BUSY = Missing("nvidia-smi: no utilisation since the last look")
_PEAK_ONLY = Missing("nvidia-smi: the accounting list gives the peak, not what is held")
_NOT_ON = Missing("nvidia-smi: accounting is not on, or its list was not read")


@dataclass(slots=True)
class DeviceLook:
    """Collects parts of one device, in the order of the file."""

    product: str = ""
    bus_id: str = ""
    memory_mib: int | Missing = NOT_READ
    modes: set[str] = field(default_factory=set)
    mig: bool = False
    slices: dict[int, Slice] = field(default_factory=dict)
    listed_finished: dict[AccountedRow, None] = field(default_factory=dict)
    listed_running: dict[int, AccountedRow] | Missing = NOT_READ
    processes: list[ListedProcess] = field(default_factory=list)

    def add(self, part: DevicePart) -> None:
        """Take what one output says."""
        self.product = self.product or part.product
        self.bus_id = self.bus_id or part.bus_id
        self.memory_mib = part.memory_mib if isinstance(self.memory_mib, Missing) else self.memory_mib
        self.modes |= {part.accounting} - {""}
        self.mig = self.mig or part.mig is True
        for one in part.slices:
            self.slices.setdefault(one.place, one)
        if not isinstance(part.accounted, Missing):
            # identical rows are one row: the driver keeps one dead row a pid
            self.listed_finished |= dict.fromkeys(row for row in part.accounted if not row.running)
            # a later list of the same look knows better what still runs
            self.listed_running = {row.pid: row for row in part.accounted if row.running}
        if not isinstance(part.processes, Missing):
            self.processes += part.processes

    def was_listed(self, kind: Kind) -> None:
        """A CSV list is of all GPUs: that a GPU has no row in it says that its list is empty."""
        if kind is Kind.ACCOUNTED and isinstance(self.listed_running, Missing):
            self.listed_running = {}

    @property
    def accounting(self) -> str:
        """The mode as a reading names it; two outputs that contradict each other make it unknown."""
        if self.mig or "unsupported" in self.modes:
            return "unsupported"
        return next(iter(self.modes)) if len(self.modes) == 1 else "unknown"

    @property
    def is_contradicted(self) -> bool:
        """Whether one output says Enabled and another Disabled."""
        return {"enabled", "disabled"} <= self.modes

    def reading(self, uuid: str, listed_slices: Sequence[Slice]) -> DeviceReading:
        """The device reading.

        Args:
            uuid: the device's name.
            listed_slices: its MIG instances as ``nvidia-smi -L`` names them; may be empty.
        """
        slices = self._slices(uuid, listed_slices)
        running = {} if isinstance(self.listed_running, Missing) else self.listed_running
        finished = tuple(
            FinishedRow(
                pid=row.pid,
                started_at_us=NO_START,
                context_ms=row.context_ms,
                peak_memory_mib=row.peak_memory_mib,
                gpu_percent=row.gpu_percent,
                memory_percent=row.memory_percent,
            )
            for row in self.listed_finished
        )
        return DeviceReading(
            uuid=uuid,
            product=self.product,
            memory_mib=self.memory_mib,
            pci_bus_id=self.bus_id,
            accounting=self.accounting,
            mig=self.mig,
            slices=slices,
            finished=finished,
            living=tuple(self._living(uuid, slices, running)),
            listed=NOT_READ if isinstance(self.listed_running, Missing) else len(finished) + len(running),
        )

    def _slices(self, uuid: str, listed: Sequence[Slice]) -> tuple[SliceReading, ...]:
        named = {one.place: one for one in listed}
        found = []
        for place, one in sorted(self.slices.items()):
            if isinstance(one.gpu_instance, Missing) or isinstance(one.compute_instance, Missing):
                continue
            known = named.get(place, one)
            found.append(
                SliceReading(
                    # -q names instances by numbers; the spelling is the driver's own before R470
                    uuid=known.uuid or f"MIG-{uuid}/{one.gpu_instance}/{one.compute_instance}",
                    gpu_instance=one.gpu_instance,
                    compute_instance=one.compute_instance,
                    profile=known.profile,
                    memory_mib=one.memory_mib,
                )
            )
        return tuple(found)

    def _living(
        self, uuid: str, slices: Sequence[SliceReading], running: dict[int, AccountedRow]
    ) -> list[LivingContext]:
        places = {(one.gpu_instance, one.compute_instance): one.uuid for one in slices}
        held: dict[tuple[int, str], ListedProcess] = {}
        on_slice: dict[int, str] = {}
        for process in self.processes:
            device = uuid
            if not isinstance(process.gpu_instance, Missing) and not isinstance(process.compute_instance, Missing):
                device = places.get((process.gpu_instance, process.compute_instance), uuid)
            if device != uuid:
                on_slice.setdefault(process.pid, device)
            key = (process.pid, device)
            held[key] = _merged(held[key], process) if key in held else process
        for pid, device in list(held):
            if device == uuid and pid in on_slice:
                # CSV under MIG names the parent only; -q of the same look knows the instance
                key = (pid, on_slice[pid])
                held[key] = _merged(held[key], held.pop((pid, uuid)))
        is_on = self.accounting == "enabled" or (self.accounting == "unknown" and bool(running))
        absent: bool | Missing = False if is_on and not isinstance(self.listed_running, Missing) else _NOT_ON
        living = [
            LivingContext(
                pid=pid,
                device=device,
                kinds=process.kinds,
                memory_mib=process.memory_mib,
                started_at_us=NO_START,
                accounted=True if pid in running else absent,
                busy_percent=_NO_BUSY,
                process_name=redact((process.process_name,)),
            )
            for (pid, device), process in held.items()
        ]
        seen = {pid for pid, _ in held}
        living += [
            LivingContext(
                pid=pid,
                device=uuid,
                kinds="A",
                memory_mib=_PEAK_ONLY,
                started_at_us=NO_START,
                accounted=True,
                busy_percent=_NO_BUSY,
            )
            for pid in running
            if pid not in seen
        ]
        return living


def _merged(one: ListedProcess, other: ListedProcess) -> ListedProcess:
    """One context listed twice: letters of both, the larger memory, the name that is known."""
    memory = one.memory_mib
    if not isinstance(other.memory_mib, Missing):
        memory = other.memory_mib if isinstance(memory, Missing) else max(memory, other.memory_mib)
    kinds = "".join(letter for letter in "CGM" if letter in one.kinds + other.kinds)
    return replace(one, kinds=kinds, memory_mib=memory, process_name=one.process_name or other.process_name)
