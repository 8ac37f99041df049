"""The XML of ``nvidia-smi -q -x``, every schema from v4 to v13: one document in, what it says out.

Elements are found by name, so that what a later schema adds does not matter. Where the accounting
list tells ``is_running``, that is believed; a time of 0 means running where it does not.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from xml.etree import ElementTree as ET

from gpuledger.model.missing import Missing
from gpuledger.sources import nvidia_smi_values as values
from gpuledger.sources.nvidia_smi_outputs import (
    NO_TIME,
    NOT_READ,
    AccountedRow,
    Complaints,
    DevicePart,
    Kind,
    ListedProcess,
    Output,
    Slice,
    accounting_word,
    kinds_of,
)


def parse_document(text: str, *, path: str, line: int, section: str) -> Output:
    """What one ``<nvidia_smi_log>`` element says.

    Args:
        text: the element, without prolog.
        path, line, section: where it stands, for problems and for combining.

    Raises:
        ValueError: not well-formed; the message names the line in the file.
    """
    try:
        root = ET.fromstring(text)  # noqa: S314 - entity declarations are refused before it comes here
    except ET.ParseError as error:
        row = line + error.position[0] - 1
        raise ValueError(f"the XML is broken at line {row}: {error.msg.partition(':')[0]}") from None
    complaints = Complaints(path)
    at: datetime | Missing = NO_TIME
    try:
        at = values.local_time(_text(root, "timestamp"))
    except ValueError as problem:
        complaints.add(line, str(problem))
    return Output(
        kind=Kind.XML,
        line=line,
        section=section,
        at=at,
        driver_version=values.name(_text(root, "driver_version")).partition(" ")[0],
        parts=tuple(_Gpu(gpu, complaints, line).part() for gpu in root.iterfind("gpu")),
        problems=complaints.taken(),
    )


def _text(element: ET.Element, where: str) -> str:
    return (element.findtext(where) or "").strip()


class _Gpu:
    """Reads one ``<gpu>`` element; what it cannot understand becomes a problem at the document's line."""

    def __init__(self, gpu: ET.Element, complaints: Complaints, line: int) -> None:
        self._gpu = gpu
        self._complaints = complaints
        self._line = line
        self._name = gpu.get("id", "") or _text(gpu, "uuid")

    def part(self) -> DevicePart:
        gpu = self._gpu
        mode, mig = _text(gpu, "accounting_mode"), _text(gpu, "mig_mode/current_mig")
        return DevicePart(
            uuid=values.name(_text(gpu, "uuid")),
            bus_id=values.bus_id(gpu.get("id", "")) or values.bus_id(_text(gpu, "pci/pci_bus_id")),
            serial=values.name(_text(gpu, "serial")),
            product=values.name(_text(gpu, "product_name")),
            memory_mib=self._memory(_text(gpu, "fb_memory_usage/total")),
            accounting=accounting_word(self._switch(mode), mode),
            mig=self._switch(mig) if mig else NOT_READ,
            slices=tuple(self._slices()),
            accounted=self._accounted(),
            processes=self._processes(),
        )

    def _complain(self, message: str) -> None:
        self._complaints.add(self._line, f"GPU {self._name[:80]}: {message}")

    def _switch(self, said: str) -> bool | Missing:
        try:
            return values.switch(said)
        except ValueError as problem:
            self._complain(str(problem))
            return Missing(f"nvidia-smi: {said[:40]}")

    def _memory(self, said: str) -> int | Missing:
        try:
            return values.memory_mib(said)
        except ValueError as problem:
            self._complain(str(problem))
            return Missing(f"nvidia-smi: {said[:40]}")

    def _slices(self) -> Iterator[Slice]:
        for place, device in enumerate(self._gpu.iterfind("mig_devices/mig_device")):
            try:
                said = values.figure(_text(device, "index"))
                yield Slice(
                    place=place if isinstance(said, Missing) else said[0],
                    gpu_instance=_instance(_text(device, "gpu_instance_id")),
                    compute_instance=_instance(_text(device, "compute_instance_id")),
                    memory_mib=values.memory_mib(_text(device, "fb_memory_usage/total")),
                    uuid=values.name(_text(device, "uuid")),
                )
            except ValueError as problem:
                self._complain(f"MIG device {place}: {problem}")

    def _accounted(self) -> tuple[AccountedRow, ...] | Missing:
        held = self._gpu.find("accounted_processes")
        if held is None:
            return NOT_READ
        rows = []
        for entry in held.iterfind("accounted_process_info"):
            try:
                if (row := _accounted_row(entry)) is not None:
                    rows.append(row)
            except ValueError as problem:
                self._complain(f"accounted process {_text(entry, 'pid')[:20]}: {problem}")
        return tuple(rows)

    def _processes(self) -> tuple[ListedProcess, ...] | Missing:
        lists = [held for held in self._gpu if held.tag in ("processes", "compute_processes")]
        if not lists:
            return NOT_READ
        found = []
        for entry in (entry for held in lists for entry in held.iterfind("process_info")):
            try:
                pid = values.process_id(_text(entry, "pid"))
                if isinstance(pid, Missing):
                    continue
                found.append(
                    ListedProcess(
                        pid=pid,
                        kinds=kinds_of(_text(entry, "type")),
                        memory_mib=values.memory_mib(_text(entry, "used_memory")),
                        process_name=values.name(_text(entry, "process_name")),
                        gpu_instance=_instance(_text(entry, "gpu_instance_id")),
                        compute_instance=_instance(_text(entry, "compute_instance_id")),
                    )
                )
            except ValueError as problem:
                self._complain(f"process {_text(entry, 'pid')[:20]}: {problem}")
        return tuple(found)


def _instance(said: str) -> int | Missing:
    value = values.figure(said)
    return value if isinstance(value, Missing) else value[0]


def _accounted_row(entry: ET.Element) -> AccountedRow | None:
    pid = values.process_id(_text(entry, "pid"))
    if isinstance(pid, Missing):
        return None
    return accounted_row(
        pid,
        time=_text(entry, "time"),
        is_running=_text(entry, "is_running"),
        max_memory=_text(entry, "max_memory_usage"),
        gpu_util=_text(entry, "gpu_util"),
        memory_util=_text(entry, "memory_util"),
    )


def accounted_row(
    pid: int, *, time: str, is_running: str, max_memory: str, gpu_util: str, memory_util: str
) -> AccountedRow:
    """An accounted process from the texts of its fields, as XML and log both have them.

    Raises:
        ValueError: a field is not what it should be, or there is no time.
    """
    context_ms = values.milliseconds(time)
    running = values.switch(is_running)
    if isinstance(context_ms, Missing) and running is not True:
        raise ValueError(f"it has no time ({context_ms.reason}), so it cannot be told finished from running")
    told_ms = 0 if isinstance(context_ms, Missing) else context_ms
    return AccountedRow(
        pid=pid,
        running=running if isinstance(running, bool) else told_ms == 0,
        context_ms=told_ms,
        peak_memory_mib=values.memory_mib(max_memory),
        gpu_percent=values.percent(gpu_util),
        memory_percent=values.percent(memory_util),
    )
