"""The text of ``nvidia-smi -q`` (whole, or ``-d ACCOUNTING``) and of ``nvidia-smi -L``.

Lines in, what they say out. The log is a tree by indentation; the few places that matter are found
by their path of labels, whatever else a driver version prints around them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from gpuledger.model.missing import Missing
from gpuledger.sources import nvidia_smi_values as values
from gpuledger.sources.nvidia_smi_blocks import LIST_GPU, LIST_SLICE
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
from gpuledger.sources.nvidia_smi_xml import accounted_row

_GPU = re.compile(r"GPU ([0-9A-Fa-f:.]{7,16})\s*")
DEEPEST = 12
"""Levels of indentation kept; a driver prints five."""


@dataclass(slots=True)
class _Node:
    """One line of the log: a label, a value that may be empty, and what is indented below it."""

    label: str
    value: str
    line: int
    depth: int
    below: list[_Node] = field(default_factory=list)

    def find(self, *labels: str) -> _Node | None:
        node: _Node | None = self
        for label in labels:
            node = next((child for child in node.below if child.label == label), None) if node else None
        return node

    def text(self, *labels: str) -> str:
        found = self.find(*labels)
        return found.value if found else ""


def parse_log(lines: Sequence[str], *, path: str, line: int, section: str) -> Output:
    """What one ``NVSMI LOG`` says.

    Args:
        lines: the lines after its title.
        path, line, section: where the title stands, for problems and for combining.
    """
    complaints = Complaints(path)
    root = _tree(lines, line + 1)
    at: datetime | Missing = NO_TIME
    try:
        at = values.local_time(root.text("timestamp"))
    except ValueError as problem:
        complaints.add(line, str(problem))
    gpus = [node for node in root.below if node.label == "gpu"]
    return Output(
        kind=Kind.LOG,
        line=line,
        section=section,
        at=at,
        driver_version=values.name(root.text("driver version")).partition(" ")[0],
        parts=tuple(_Gpu(gpu, complaints).part() for gpu in gpus),
        problems=complaints.taken(),
    )


def parse_list(lines: Sequence[str], *, line: int, section: str) -> Output:
    """What ``nvidia-smi -L`` says: names of GPUs and of their MIG instances, nothing of their use."""
    parts: list[DevicePart] = []
    found: list[Slice] = []
    for content in lines:
        if gpu := LIST_GPU.fullmatch(content):
            found = []
            parts.append(DevicePart(uuid=values.name(gpu[2]), product=values.name(gpu[1])))
        elif (mig := LIST_SLICE.fullmatch(content)) and parts:
            found.append(Slice(place=int(mig[2]), uuid=values.name(mig[3]), profile=mig[1]))
            last = parts[-1]
            parts[-1] = DevicePart(uuid=last.uuid, product=last.product, mig=True, slices=tuple(found))
    return Output(kind=Kind.LIST, line=line, section=section, parts=tuple(parts))


def _tree(lines: Sequence[str], first: int) -> _Node:
    root = _Node(label="", value="", line=first, depth=-1)
    path = [root]
    for number, content in enumerate(lines, start=first):
        node = _node(content, number)
        if node is None:
            continue
        while len(path) > 1 and path[-1].depth >= node.depth:
            path.pop()
        if len(path) <= DEEPEST:
            path[-1].below.append(node)
            path.append(node)
    return root


def _node(content: str, number: int) -> _Node | None:
    stripped = content.strip()
    if not stripped:
        return None
    if gpu := _GPU.fullmatch(content):
        return _Node(label="gpu", value=gpu[1], line=number, depth=0)
    label, _, value = stripped.partition(":")
    depth = len(content) - len(content.lstrip())
    return _Node(label=label[:80].rstrip().lower(), value=value.strip(), line=number, depth=depth)


class _Gpu:
    """Reads one GPU of the log; what it cannot understand becomes a problem at its line."""

    def __init__(self, gpu: _Node, complaints: Complaints) -> None:
        self._gpu = gpu
        self._complaints = complaints

    def part(self) -> DevicePart:
        gpu = self._gpu
        mode, mig = gpu.text("accounting mode"), gpu.text("mig mode", "current")
        return DevicePart(
            uuid=values.name(gpu.text("gpu uuid")),
            bus_id=values.bus_id(gpu.value) or values.bus_id(gpu.text("pci", "bus id")),
            serial=values.name(gpu.text("serial number")),
            product=values.name(gpu.text("product name")),
            memory_mib=self._memory(gpu.find("fb memory usage", "total")),
            accounting=accounting_word(self._switch("accounting mode"), mode),
            mig=self._switch("mig mode", "current") if mig else NOT_READ,
            slices=tuple(self._slices()),
            accounted=self._accounted(),
            processes=self._processes(),
        )

    def _switch(self, *labels: str) -> bool | Missing:
        node = self._gpu.find(*labels)
        if node is None:
            return NOT_READ
        try:
            return values.switch(node.value)
        except ValueError as problem:
            self._complaints.add(node.line, str(problem))
            return Missing(f"nvidia-smi: {node.value[:40]}")

    def _memory(self, node: _Node | None) -> int | Missing:
        if node is None:
            return NOT_READ
        try:
            return values.memory_mib(node.value)
        except ValueError as problem:
            self._complaints.add(node.line, str(problem))
            return Missing(f"nvidia-smi: {node.value[:40]}")

    def _slices(self) -> Iterator[Slice]:
        devices = [node for node in self._gpu.below if node.label == "mig device"]
        for place, node in enumerate(devices):
            memory = node.find("shared fb memory usage", "total") or node.find("fb memory usage", "total")
            try:
                said = values.figure(node.text("index"))
                yield Slice(
                    place=place if isinstance(said, Missing) else said[0],
                    gpu_instance=_instance(node.text("gpu instance id")),
                    compute_instance=_instance(node.text("compute instance id")),
                    memory_mib=self._memory(memory),
                )
            except ValueError as problem:
                self._complaints.add(node.line, f"MIG device {place}: {problem}")

    def _accounted(self) -> tuple[AccountedRow, ...] | Missing:
        held = self._gpu.find("accounted processes")
        if held is None:
            return NOT_READ
        rows = []
        for entry in held.below:
            if entry.label != "process id":
                continue
            try:
                pid = values.process_id(entry.value)
                if isinstance(pid, Missing):
                    continue
                row = accounted_row(
                    pid,
                    time=entry.text("time"),
                    is_running=entry.text("is running"),
                    max_memory=entry.text("max memory usage"),
                    gpu_util=entry.text("gpu utilization"),
                    memory_util=entry.text("memory utilization"),
                )
                rows.append(row)
            except ValueError as problem:
                self._complaints.add(entry.line, f"accounted process {entry.value[:20]}: {problem}")
        return tuple(rows)

    def _processes(self) -> tuple[ListedProcess, ...] | Missing:
        lists = [node for node in self._gpu.below if node.label in ("processes", "compute processes")]
        if not lists:
            return NOT_READ
        found = []
        gpu_instance: int | Missing = NOT_READ
        compute_instance: int | Missing = NOT_READ
        for entry in (entry for held in lists for entry in held.below):
            try:
                # the two ids stand before their process, one level above what is told of it
                if entry.label == "gpu instance id":
                    gpu_instance = _instance(entry.value)
                elif entry.label == "compute instance id":
                    compute_instance = _instance(entry.value)
                elif entry.label == "process id" and not isinstance(pid := values.process_id(entry.value), Missing):
                    process = ListedProcess(
                        pid=pid,
                        kinds=kinds_of(entry.text("type")),
                        memory_mib=values.memory_mib(entry.text("used gpu memory")),
                        process_name=values.name(entry.text("name")),
                        gpu_instance=gpu_instance,
                        compute_instance=compute_instance,
                    )
                    found.append(process)
            except ValueError as problem:
                self._complaints.add(entry.line, f"process {entry.value[:20]}: {problem}")
        return tuple(found)


def _instance(said: str) -> int | Missing:
    value = values.figure(said)
    return value if isinstance(value, Missing) else value[0]
