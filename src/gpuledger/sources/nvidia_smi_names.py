"""Which device is meant: the GPU that every part of a file speaks of, by one name.

In: all outputs of a file. Out: a name for each part. A UUID wins; else the file's own knowledge of
which UUID a bus id or serial belongs to; else what the person gave; else the bus id.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from gpuledger.errors import BadInput
from gpuledger.model.devices import class_name
from gpuledger.model.problem import Problem
from gpuledger.sources.nvidia_smi_outputs import DevicePart, Kind, Output, Slice
from gpuledger.sources.nvidia_smi_values import is_masked

UNIDENTIFIED = "GPU-unidentified"
"""The device of rows in which nothing says which GPU they are of."""


@dataclass(slots=True)
class DeviceNames:
    """What a file knows of its devices' names.

    Args:
        given: the UUID that the person named; may be empty.
    """

    given: str = ""
    slices: dict[str, tuple[Slice, ...]] = field(default_factory=dict)
    _by_bus: dict[str, str] = field(default_factory=dict)
    _by_serial: dict[str, str] = field(default_factory=dict)
    _buses: dict[str, set[str]] = field(default_factory=dict)
    _nameless: set[tuple[str, str]] = field(default_factory=set)

    @classmethod
    def of(cls, outputs: Iterable[Output], *, given: str, path: str) -> DeviceNames:
        """Learn the names of a file.

        Raises:
            BadInput: ``two-machines`` when one masked UUID is of two products, or two host names are told.
        """
        names = cls(given=given)
        products: dict[str, tuple[str, int]] = {}
        host_name = ""
        for output in outputs:
            if output.host_name and host_name and output.host_name != host_name:
                raise _two_machines(f"it names the hosts {host_name!r} and {output.host_name!r}", path, output.line)
            host_name = output.host_name or host_name
            for part in output.parts:
                names._learn(part, output.kind)
                if part.uuid and part.product:
                    product, line = products.setdefault(part.uuid, (part.product, output.line))
                    if class_name(product) != class_name(part.product):
                        message = f"{part.uuid} is a {product!r} at line {line} and a {part.product!r} here"
                        raise _two_machines(message, path, output.line)
        return names

    def _learn(self, part: DevicePart, kind: Kind) -> None:
        if not part.uuid:
            self._nameless.add((part.bus_id, part.serial))
            return
        self._buses.setdefault(part.uuid, set()).update({part.bus_id} - {""})
        if part.bus_id:
            self._by_bus.setdefault(part.bus_id, part.uuid)
        if part.serial and not is_masked(part.serial):
            self._by_serial.setdefault(part.serial, part.uuid)
        if kind is Kind.LIST and part.slices:
            self.slices[part.uuid] = part.slices

    def name(self, part: DevicePart) -> str:
        """The device that a part speaks of."""
        if part.uuid and not (self._is_shared(part.uuid) and part.bus_id):
            return part.uuid
        known = self._by_bus.get(part.bus_id) or self._by_serial.get(part.serial)
        if known and not self._is_shared(known):
            return known
        if self.given and len(self._nameless) <= 1:
            return self.given
        if part.bus_id:
            return f"PCI-{part.bus_id}"
        if part.serial and not is_masked(part.serial):
            return f"SERIAL-{part.serial}"
        return self.default

    @property
    def default(self) -> str:
        """The device of a list that names none and has no row."""
        return self.given or self.only or UNIDENTIFIED

    @property
    def only(self) -> str:
        """The one UUID that the file knows; empty when there are none or several."""
        return next(iter(self._buses)) if len(self._buses) == 1 and not self._is_shared(next(iter(self._buses))) else ""

    def _is_shared(self, uuid: str) -> bool:
        """Whether a mask gave several GPUs the same UUID."""
        return len(self._buses.get(uuid, ())) > 1


def naming_problem(device: str, *, where: str) -> Problem | None:
    """What is wrong with a device's name, if anything: it must hold for one device in the world."""
    if device == UNIDENTIFIED:
        message = "nothing says which GPU these rows are of; name it with --device UUID (nvidia-smi -L lists them)"
        return Problem(code="no-device-uuid", message=message, where=where)
    if device.startswith(("PCI-", "SERIAL-")):
        message = f"the GPU is known as {device} only, without a UUID, so its name holds on this host only"
        return Problem(code="no-device-uuid", message=message, where=where)
    if is_masked(device):
        message = f"the UUID {device} was masked, so it identifies a GPU only together with its host"
        return Problem(code="masked-device", message=message, where=where)
    return None


def _two_machines(message: str, path: str, line: int) -> BadInput:
    hint = "import the dump of each machine by itself, each with its --host NAME"
    return BadInput("two-machines", f"the file holds more than one machine: {message}", path=path, line=line, hint=hint)
