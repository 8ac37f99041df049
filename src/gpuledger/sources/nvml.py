"""The live driver: one look at every device through NVIDIA's library.

In: a binding (:mod:`gpuledger.sources.nvml_binding`), the real one or the simulated driver. Out: a
:class:`~gpuledger.model.readings.Reading`. This room knows the order of the calls and what is kept from
look to look; what the answers mean stands in ``nvml_accounting``, ``nvml_processes`` and ``nvml_slices``.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pynvml

from gpuledger.errors import NotFound, Refused
from gpuledger.model.missing import Missing
from gpuledger.model.problem import Problem
from gpuledger.model.readings import DeviceReading, LivingContext, Reading
from gpuledger.sources.nvml_accounting import EMPTY_LOOK, MIB, UNREAD_LOOK, AccountingList, AccountingLook
from gpuledger.sources.nvml_binding import Binding, Handle, Trouble, initialise, meaning_of, unavailable
from gpuledger.sources.nvml_lean import load_binding
from gpuledger.sources.nvml_processes import (
    LIST_CAP,
    NO_BUSY,
    Busy,
    Entry,
    Held,
    living_contexts,
    merge,
    read_busy,
    read_entries,
    scrambles_processes,
)
from gpuledger.sources.nvml_slices import Slice, place_of, read_slices, slice_of

__all__ = ["Binding", "NvmlSource", "load_binding"]

REFRESH_LOOKS = 60
"""Every so many looks what hardly changes is read again: names, memory sizes, MIG instances, versions."""

NVML_ERRORS = (pynvml.NVMLError, pynvml.NVMLLibraryMismatchError)
_FEATURE_ENABLED = 1
_MODULE = Path("/sys/module/nvidia")
_NOT_ACCOUNTED = {mode: Missing(f"accounting: {mode}") for mode in ("disabled", "unsupported", "unknown")}


class _Device:
    """What is kept of one GPU between looks."""

    __slots__ = (
        "absent", "accounting", "contexts", "handle", "held", "held_problems", "last_sample_us", "living",
        "memory_mib", "mig", "mig_capable", "minor", "pci_bus_id", "placed", "product", "slices", "slices_due", "uuid",
    )  # fmt: skip

    def __init__(self, uuid: str, memory_mib: int | Missing) -> None:
        self.uuid = uuid
        self.memory_mib = memory_mib
        self.accounting = AccountingList(uuid, memory_mib)
        self.last_sample_us = 0
        self.mig = False
        self.slices: tuple[Slice, ...] = ()
        self.contexts: frozenset[tuple[int, int, int]] = frozenset()
        self.placed: list[tuple[str, Entry]] = []
        self.held: Mapping[tuple[str, int], Held] = {}
        self.held_problems: tuple[Problem, ...] = ()
        self.living: Mapping[tuple[str, int], LivingContext] = {}
        self.handle: Handle = None
        self.product = ""
        self.pci_bus_id = ""
        self.minor: int | Missing = Missing("not read")
        self.absent: set[str] = set()
        self.mig_capable = True
        self.slices_due = True


class NvmlSource:
    """The driver's devices, look after look.

    Args:
        binding: started, see :func:`~gpuledger.sources.nvml_lean.load_binding`.
        method: what readings say they were read by: ``nvml`` or ``simulated``.
    """

    def __init__(self, binding: Binding, *, method: str = "nvml") -> None:
        self._binding = binding
        self._method = method
        self._started = True
        self._sessions = 1
        self._enumerated = False
        self._lost = False
        self._looks = 0
        self._count = 0
        self._devices: dict[str, _Device] = {}
        self._unnamed: tuple[Problem, ...] = ()
        self._driver_version = ""
        self._scrambled = False

    @property
    def method(self) -> str:
        """What readings say they were read by."""
        return self._method

    def read(self, now_us: int) -> Reading:
        """Look once at all devices.

        A device that cannot be read is left out, with a problem that says why; it is never read as idle.

        Args:
            now_us: the wall clock just before, microseconds UTC; the driver stamps by the same clock.

        Raises:
            Unavailable: ``driver-unreachable``, ``driver-forbidden``, ``driver-unsupported``: the driver
                as a whole gave no answer. The next look starts its library anew.
        """
        try:
            self._prepare()
        except NVML_ERRORS as error:
            self._started = False
            raise unavailable(error, "listing the devices") from error
        problems = list(self._unnamed)
        devices: dict[str, DeviceReading] = {}
        for device in self._devices.values():
            try:
                devices[device.uuid] = self._read_device(device, now_us, problems)
            except NVML_ERRORS as error:
                meaning = meaning_of(error)
                if meaning.trouble is Trouble.UNREACHABLE:
                    self._started = False
                    raise unavailable(error, f"reading {device.uuid}") from error
                if meaning.trouble is Trouble.LOST:
                    self._lost, self._enumerated = True, False
                problems.append(_left_out(error, device.uuid))
        if self._scrambled:
            told = (
                f"driver {self._driver_version} lists processes in a layout of its own; "
                "they are read by the older call, and an update of the driver mends it"
            )
            problems.append(Problem(code="process-list-scrambled", message=told))
        self._looks += 1
        return Reading(
            at_us=now_us,
            method=self._method,
            driver_version=self._driver_version,
            devices=devices,
            problems=tuple(problems),
            load=f"{self._sessions}:{_module_mark()}",
        )

    def enable_accounting(self, uuid: str) -> None:
        """Switch the driver's accounting on for one device. Only root may.

        Contexts that are already open stay unaccounted until they are opened again.

        Raises:
            NotFound: ``no-device``.
            Refused: ``needs-root``, or ``accounting-unsupported`` (MIG mode, or a device without it).
            Unavailable: when the driver does not answer.
        """
        try:
            if not (self._started and self._enumerated):
                self._prepare()
            device = self._devices.get(uuid)
            if device is None:
                raise NotFound("no-device", f"the driver has no device {uuid}", hint="nvidia-smi -L")
            self._binding.nvmlDeviceSetAccountingMode(device.handle, _FEATURE_ENABLED)
        except NVML_ERRORS as error:
            trouble = meaning_of(error).trouble
            if trouble is Trouble.FORBIDDEN:
                told = f"only root may enable the driver's accounting on {uuid}"
                raise Refused("needs-root", told, hint="sudo gpuledger agent --enable-accounting") from error
            if trouble is Trouble.ABSENT:
                told = f"the driver keeps no accounting on {uuid}: MIG mode is on, or the device has none"
                hint = "nothing enables it; living processes are still metered as observed"
                raise Refused("accounting-unsupported", told, hint=hint) from error
            raise unavailable(error, f"enabling accounting on {uuid}") from error

    def close(self) -> None:
        """Give the library back. A driver that is gone has nothing left to be given back to."""
        with contextlib.suppress(pynvml.NVMLError):
            self._binding.nvmlShutdown()
        self._started = False

    def _prepare(self) -> None:
        due = self._looks % REFRESH_LOOKS == 0
        if not self._started or (due and self._lost):
            # A device that was reset answers again only to a library that is started anew.
            self.close()
            initialise(self._binding)
            self._started, self._enumerated, self._lost = True, False, False
            self._sessions += 1
        count = self._binding.nvmlDeviceGetCount()
        if due or not self._enumerated or count != self._count:
            self._enumerate(count)

    def _enumerate(self, count: int) -> None:
        self._driver_version = self._binding.nvmlSystemGetDriverVersion()
        self._scrambled = scrambles_processes(self._driver_version)
        devices: dict[str, _Device] = {}
        unnamed: list[Problem] = []
        for index in range(count):
            where = f"GPU {index}"
            try:
                device = self._describe(self._binding.nvmlDeviceGetHandleByIndex(index))
            except NVML_ERRORS as error:
                meaning = meaning_of(error)
                if meaning.trouble is Trouble.UNREACHABLE:
                    raise
                self._lost = self._lost or meaning.trouble is Trouble.LOST
                unnamed.append(_left_out(error, where))
                continue
            if device.uuid in devices:
                told = f"a second device has the UUID {device.uuid}; it cannot be told apart and is left out"
                unnamed.append(Problem(code="duplicate-uuid", message=told, where=where))
                continue
            devices[device.uuid] = device
        self._devices, self._unnamed = devices, tuple(unnamed)
        self._count, self._enumerated = count, True

    def _describe(self, handle: Handle) -> _Device:
        uuid = self._binding.nvmlDeviceGetUUID(handle)
        memory = _unless_absent(self._binding.nvmlDeviceGetMemoryInfo, handle)  # absent where it is the CPU's
        memory_mib = memory if isinstance(memory, Missing) else memory.total // MIB
        device = self._devices.get(uuid)
        if device is None or device.memory_mib != memory_mib:
            device = _Device(uuid, memory_mib)
        device.handle = handle
        device.product = self._binding.nvmlDeviceGetName(handle)
        pci = _unless_absent(self._binding.nvmlDeviceGetPciInfo, handle)
        device.pci_bus_id = "" if isinstance(pci, Missing) else pci.busId
        device.minor = _unless_absent(self._binding.nvmlDeviceGetMinorNumber, handle)
        device.absent = set()
        device.mig_capable = device.slices_due = True
        return device

    def _read_device(self, device: _Device, now_us: int, problems: list[Problem]) -> DeviceReading:
        accounting = self._read_mode(device)  # before anything else: rows mean nothing without it
        device.mig = self._read_mig(device)
        if device.mig:
            accounting = "unsupported"
        look = self._read_accounting(device, accounting, now_us, problems)
        if look is None:
            accounting, look = "unknown", UNREAD_LOOK
        if device.mig:
            placed = self._read_slice_entries(device, problems)
            busy = NO_BUSY  # the driver samples no process under MIG
        else:
            device.slices, device.slices_due = (), True
            placed = [(device.uuid, entry) for entry in self._read_entries(device, device.handle)]
            busy = self._read_busy(device, now_us)
        if "C" in device.absent:
            told = "the driver gives no list of living processes here; only its accounting list shows who is alive"
            problems.append(Problem(code="process-list-unsupported", message=told, where=device.uuid))
        if placed != device.placed:
            device.placed = placed
            device.held, device.held_problems = _merge(device)
        if device.held_problems or look.problems or busy.problems:
            problems.extend((*look.problems, *busy.problems, *device.held_problems))
        if accounting == "enabled":
            new = {pid for place, pid in device.held.keys() - device.living.keys() if place == device.uuid}
            look = device.accounting.with_late(look, self._binding, device.handle, new) if new else look
        accounted = look if accounting == "enabled" else _NOT_ACCOUNTED[accounting]
        device.living = living_contexts(device.held, busy, accounted, gpu=device.uuid, before=device.living)
        return DeviceReading(
            uuid=device.uuid,
            product=device.product,
            memory_mib=device.memory_mib,
            pci_bus_id=device.pci_bus_id,
            accounting=accounting,
            mig=device.mig,
            slices=tuple(one.reading for one in device.slices),
            finished=look.finished,
            living=tuple(device.living.values()),
            listed=look.listed,
            minor=device.minor,
        )

    def _read_mode(self, device: _Device) -> str:
        try:
            mode = self._binding.nvmlDeviceGetAccountingMode(device.handle)
        except NVML_ERRORS as error:
            if meaning_of(error).trouble is not Trouble.ABSENT:
                raise
            return "unsupported"
        return "enabled" if mode == _FEATURE_ENABLED else "disabled"

    def _read_mig(self, device: _Device) -> bool:
        if not device.mig_capable:
            return False
        try:
            return self._binding.nvmlDeviceGetMigMode(device.handle)[0] == _FEATURE_ENABLED
        except NVML_ERRORS as error:
            if meaning_of(error).trouble is not Trouble.ABSENT:
                raise
            device.mig_capable = False
            return False

    def _read_accounting(
        self, device: _Device, accounting: str, now_us: int, problems: list[Problem]
    ) -> AccountingLook | None:
        """The list; also with the mode off, since stale rows survive it. None: the mode contradicts the list."""
        if accounting == "unsupported" and not device.mig:
            return EMPTY_LOOK
        try:
            return device.accounting.look(self._binding, device.handle, now_us)
        except NVML_ERRORS as error:
            meaning = meaning_of(error)
            if meaning.trouble is not Trouble.ABSENT:
                raise
            if accounting != "enabled":
                return EMPTY_LOOK
            told = f"accounting is on, but its list cannot be read: {meaning.sentence}"
            problems.append(Problem(code="accounting-unreadable", message=told, where=device.uuid))
            return None

    def _read_busy(self, device: _Device, now_us: int) -> Busy:
        busy = read_busy(self._binding, device.handle, device.last_sample_us, now_us, where=device.uuid)
        device.last_sample_us = busy.last_sample_us
        return busy

    def _read_entries(self, device: _Device, handle: Handle) -> list[Entry]:
        return read_entries(self._binding, handle, device.absent, version_2=self._scrambled)

    def _read_slice_entries(self, device: _Device, problems: list[Problem]) -> list[tuple[str, Entry]]:
        """Living entries with the MIG instance each is on.

        Instances are read again when a context is new: a place can only have been given to another
        instance after the contexts on it ended, so one seen at the last look still has its own.
        """
        try:
            entries = self._read_entries(device, device.handle)
        except pynvml.NVMLError as error:
            if meaning_of(error).trouble is not Trouble.FORBIDDEN:
                raise
            return self._read_each_slice(device)  # only root is told of all instances at once
        contexts = frozenset((one.pid, one.gpu_instance, one.compute_instance) for one in entries)
        if device.slices_due or not contexts <= device.contexts:
            device.slices = read_slices(self._binding, device.handle, device.memory_mib)
            device.slices_due = False
        device.contexts = contexts
        placed: list[tuple[str, Entry]] = []
        for entry in entries:
            uuid = slice_of(device.slices, entry.gpu_instance, entry.compute_instance)
            if not uuid:
                where = place_of(entry.gpu_instance, entry.compute_instance)
                told = f"pid {entry.pid} is on {where}: booked on the whole GPU"
                problems.append(Problem(code="unresolved-slice", message=told, where=device.uuid))
            placed.append((uuid or device.uuid, entry))
        return placed

    def _read_each_slice(self, device: _Device) -> list[tuple[str, Entry]]:
        device.slices = read_slices(self._binding, device.handle, device.memory_mib)
        return [(one.reading.uuid, entry) for one in device.slices for entry in self._read_entries(device, one.handle)]


def _unless_absent(call: Callable[[Handle], Any], handle: Handle) -> Any:
    """The answer of a call that not every device knows; Missing where this one does not."""
    try:
        return call(handle)
    except pynvml.NVMLError as error:
        if meaning_of(error).trouble is not Trouble.ABSENT:
            raise
        return Missing(f"driver: {meaning_of(error).sentence}")


def _merge(device: _Device) -> tuple[Mapping[tuple[str, int], Held], tuple[Problem, ...]]:
    memory_mib = {one.reading.uuid: one.reading.memory_mib for one in device.slices}
    memory_mib[device.uuid] = device.memory_mib
    held, problems = merge(device.placed, where=device.uuid, memory_mib=memory_mib)
    if len(device.placed) >= LIST_CAP:
        told = f"the process lists hold {len(device.placed)} entries, as many as the driver gives: there may be more"
        problems = (*problems, Problem(code="process-list-capped", message=told, where=device.uuid))
    return held, problems


def _left_out(error: Exception, where: str) -> Problem:
    meaning = meaning_of(error)
    code = "device-lost" if meaning.trouble is Trouble.LOST else "device-unreadable"
    told = f"{meaning.sentence}; the device is left out of this look ({meaning.hint})"
    return Problem(code=code, message=told, where=where)


def _module_mark() -> str:
    """A mark of this load of the kernel module. While a library session is open the module cannot be unloaded, so
    the session's number says most; a folder made anew says the rest."""
    try:
        found = _MODULE.stat()
    except OSError:
        return ""
    return f"{found.st_ino}.{found.st_ctime_ns}"
