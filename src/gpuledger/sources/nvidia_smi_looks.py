"""Combines the outputs of one moment into a reading, one reading for each look at the machine.

In: the outputs of a file in their order. Out: readings. A capture that ran every query idle and again
under load gives two; a file that a loop appended to gives one for each turn.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta, tzinfo

from gpuledger.errors import Misconfigured
from gpuledger.model.missing import Missing
from gpuledger.model.moments import to_us
from gpuledger.model.problem import Problem
from gpuledger.model.readings import DeviceReading, Reading
from gpuledger.sources.nvidia_smi_devices import DeviceLook
from gpuledger.sources.nvidia_smi_names import DeviceNames, naming_problem
from gpuledger.sources.nvidia_smi_outputs import NO_TIME, Kind, Output

NEIGHBOURHOOD = timedelta(seconds=30)
"""Outputs further apart are not of one look. The slowest of the known captures took 2 s for one."""


@dataclass(slots=True)
class Look:
    """Outputs of one moment, in the order of the file."""

    outputs: list[Output] = field(default_factory=list)
    section: str = ""
    at: datetime | Missing = NO_TIME

    def takes(self, output: Output) -> bool:
        """Whether an output can be of this moment."""
        if output.section and self.section and output.section != self.section:
            return False
        if isinstance(output.at, Missing) or isinstance(self.at, Missing):
            is_near = True
        else:
            is_near = abs(output.at - self.at) <= NEIGHBOURHOOD
        return is_near and not any(held.kind is output.kind and _overlap(held, output) for held in self.outputs)

    def add(self, output: Output) -> None:
        """Take an output of this moment."""
        self.outputs.append(output)
        self.section = output.section or self.section
        if not isinstance(output.at, Missing):
            self.at = output.at if isinstance(self.at, Missing) else max(self.at, output.at)

    @property
    def tells(self) -> bool:
        """Whether any of its outputs is of use."""
        return any(output.tells for output in self.outputs)

    @property
    def shows_devices(self) -> bool:
        """Whether one of its outputs is of everything that the driver knows."""
        return any(output.kind in (Kind.XML, Kind.LOG) and output.parts for output in self.outputs)


def _overlap(one: Output, other: Output) -> bool:
    """Whether two outputs of one command speak of one device, so that the second is of a later look."""
    if one.kind is Kind.GPU and not (one.tells and other.tells):
        return False
    known = {(part.uuid, part.bus_id, part.serial) for part in one.parts}
    return not known or not other.parts or any((part.uuid, part.bus_id, part.serial) in known for part in other.parts)


def group(outputs: Iterable[Output]) -> list[Look]:
    """The outputs by look, in the order of the file.

    Looks that tell nothing are left out; where none tells anything, those that at least show devices stay,
    so that a ``-q`` of a driver too old for accounting is UNKNOWN and not an error.
    """
    looks: list[Look] = []
    for output in outputs:
        if output.kind is Kind.LIST:
            continue
        if not looks or not looks[-1].takes(output):
            looks.append(Look())
        looks[-1].add(output)
    return [look for look in looks if look.tells] or [look for look in looks if look.shows_devices]


def read_look(
    look: Look, names: DeviceNames, *, path: str, zone: tzinfo | None, taken_at_us: int | Missing, method: str
) -> Reading:
    """One reading from the outputs of one moment.

    Args:
        look: as :func:`group` gives them.
        names: of the whole file.
        path: for problems.
        zone: of the local times in it; None when not given.
        taken_at_us: when it was taken, for outputs without times.
        method: of the reading.

    Raises:
        Misconfigured: ``zone-needed`` when there are local times and no zone.
    """
    where = f"{path}:{look.outputs[0].line}"
    problems = [problem for output in look.outputs for problem in output.problems]
    at_us = _at_us(look, zone, taken_at_us, where=where, problems=problems)
    merged: dict[str, DeviceLook] = {}
    for part in (part for output in look.outputs for part in output.parts):
        merged.setdefault(names.name(part), DeviceLook()).add(part)
    if not merged:  # lists without a row: the device is known from elsewhere, or unidentified
        merged[names.default] = DeviceLook()
    for output in look.outputs:
        # a list with broken lines may have had rows of any device: it proves none empty
        if not any(problem.code == "broken-line" for problem in output.problems):
            for device in merged.values():
                device.was_listed(output.kind)
    devices = {uuid: device.reading(uuid, names.slices.get(uuid, ())) for uuid, device in merged.items()}
    for uuid, device in merged.items():
        problems += _doubts(devices[uuid], contradicted=device.is_contradicted, where=where)
    return Reading(
        at_us=at_us,
        method=method,
        driver_version=next((output.driver_version for output in look.outputs if output.driver_version), ""),
        devices=devices,
        problems=tuple(problems),
    )


def _at_us(
    look: Look, zone: tzinfo | None, taken_at_us: int | Missing, *, where: str, problems: list[Problem]
) -> int | Missing:
    """The moment of a look: its latest time, so that every finished row had ended by then."""
    if isinstance(look.at, Missing):
        return taken_at_us
    if zone is None:
        message = f"{where}: times in nvidia-smi's output are local and carry no zone ({look.at:%Y-%m-%d %H:%M:%S})"
        raise Misconfigured("zone-needed", message, hint="say where it was taken: --zone UTC or --zone Europe/Berlin")
    first, second = (look.at.replace(tzinfo=zone, fold=fold) for fold in (0, 1))
    if first.utcoffset() != second.utcoffset():
        message = f"{look.at:%Y-%m-%d %H:%M:%S} happened twice or never in that zone; the first reading of it is taken"
        problems.append(Problem(code="ambiguous-local-time", message=message, where=where))
    return to_us(first)


def _doubts(reading: DeviceReading, *, contradicted: bool, where: str) -> list[Problem]:
    found = []
    if (problem := naming_problem(reading.uuid, where=where)) is not None:
        found.append(problem)
    if contradicted:
        message = f"one output says that accounting is on, another that it is off ({reading.uuid})"
        found.append(Problem(code="mode-contradicted", message=message, where=where))
    if reading.finished and reading.accounting in ("disabled", "unsupported"):
        rows = len(reading.finished)
        message = f"accounting is {reading.accounting} on {reading.uuid}; its list still holds {rows} rows from before"
        found.append(Problem(code="frozen-rows", message=message, where=where))
    return found
