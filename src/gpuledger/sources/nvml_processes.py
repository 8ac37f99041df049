"""The driver's living processes: three lists, one utilisation buffer, merged by pid.

In: a device handle. Out: entries as listed, then contexts. :func:`read_entries` and :func:`read_busy`
touch the driver; :func:`merge`, :func:`busy_of` and :func:`living_contexts` are pure.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import pynvml

from gpuledger.model.missing import Missing
from gpuledger.model.moments import SECOND_US
from gpuledger.model.problem import Problem
from gpuledger.model.readings import LivingContext
from gpuledger.sources.nvml_accounting import EMPTY_LOOK, HIDDEN, AccountingLook, memory_of
from gpuledger.sources.nvml_binding import Binding, Handle, Trouble, meaning_of

PROCESS_LISTS: tuple[tuple[str, str], ...] = (
    ("C", "nvmlDeviceGetComputeRunningProcesses"),
    ("G", "nvmlDeviceGetGraphicsRunningProcesses"),
    ("M", "nvmlDeviceGetMPSComputeRunningProcesses"),
)
"""Letter of a list in ``LivingContext.kinds`` and the call that gives it."""

PID_MAX = 4_194_304
"""The kernel's largest pid limit (2^22, include/linux/threads.h): a larger one is garbage."""
LIST_CAP = 950
"""Most processes a list can hold (FACTS A.1.2): a list this long may be cut."""
LATE_US = 5 * SECOND_US
"""How far behind the look's own time a utilisation sample may be stamped: the look takes time too."""

SAMPLE_LAYOUT = struct.Struct("=I4xQI")
"""nvmlProcessUtilizationSample_t up to ``smUtil`` (nvml.h); a test holds it to the binding's."""
_SCRAMBLED = re.compile(r"535\.(\d+)")
_NO_SAMPLES = Missing("driver: no utilisation per process here")
_NOT_LISTED = Missing("driver: in the accounting list only")
_UNACCOUNTED = Missing("driver: not in the accounting list")


class Entry(NamedTuple):
    """One entry of one list: memory in bytes or None, and the MIG instance ids (4294967295: none)."""

    kind: str
    pid: int
    memory_bytes: int | None
    gpu_instance: int
    compute_instance: int


class Held(NamedTuple):
    """One process on one device: the letters of its lists and the most memory any of them names, MiB."""

    kinds: str
    memory_mib: int | Missing


@dataclass(frozen=True, slots=True, kw_only=True)
class Busy:
    """Utilisation per process since the last look.

    Args:
        percent: pid to SM percent, for the pids the driver sampled; Missing when it cannot tell at all.
        last_sample_us: stamp of the newest sample, to ask from at the next look.
        problems: samples that could not be believed.
    """

    percent: Mapping[int, int] | Missing
    last_sample_us: int
    problems: tuple[Problem, ...] = ()


NO_BUSY = Busy(percent=_NO_SAMPLES, last_sample_us=0)


def scrambles_processes(driver_version: str) -> bool:
    """Whether version 3 of the process lists has 32-byte records: 535.43 to 535.86 (nvitop #75, gpustat #161).

    The binding reads 24-byte ones, so all but the first entry would be another field's bytes. Version 2 of
    the same calls keeps its layout on these drivers too.
    """
    match = _SCRAMBLED.match(driver_version)
    return match is not None and 43 <= int(match[1]) <= 86


def read_entries(binding: Binding, handle: Handle, absent: set[str], *, version_2: bool) -> list[Entry]:
    """All entries of the lists that this device has.

    Args:
        binding, handle: whom to ask about what.
        absent: calls, and letters of whole lists, found not to exist here and not tried again; added to.
        version_2: ask the older version of the calls only.

    Raises:
        pynvml.NVMLError: any but "absent".
    """
    entries: list[Entry] = []
    for kind, name in PROCESS_LISTS:
        if kind in absent:
            continue
        listed = _read_list(binding, handle, kind, name, absent, version_2=version_2)
        entries.extend(
            Entry(kind, one.pid, one.usedGpuMemory, one.gpuInstanceId, one.computeInstanceId) for one in listed
        )
    return entries


def _read_list(
    binding: Binding, handle: Handle, kind: str, name: str, absent: set[str], *, version_2: bool
) -> Sequence[Any]:
    versions = (f"{name}_v2",) if version_2 else (name, f"{name}_v2")
    for version in versions:
        if version in absent:
            continue
        call: Callable[[Handle], Sequence[Any]] = getattr(binding, version)
        try:
            return call(handle)
        except (pynvml.NVMLError, pynvml.NVMLLibraryMismatchError) as error:
            if meaning_of(error).trouble is not Trouble.ABSENT:
                raise
            absent.add(version)
    absent.add(kind)
    return ()


def read_busy(binding: Binding, handle: Handle, last_sample_us: int, now_us: int, *, where: str) -> Busy:
    """SM utilisation per process since ``last_sample_us`` (0: never asked).

    Raises:
        pynvml.NVMLError: when the device is lost or the driver is.
    """
    # A clock set back leaves a last sample in the future, from which the driver would give nothing.
    since_us = min(last_sample_us or now_us - SECOND_US, now_us)
    try:
        samples = _read_samples(binding, handle, since_us)
    except pynvml.NVMLError as error:
        meaning = meaning_of(error)
        if meaning.trouble is Trouble.GONE:
            # Binding trap: NVMLError(0) when the first call finds no sample, NotFound when the second does.
            return Busy(percent={}, last_sample_us=since_us)
        if meaning.trouble in (Trouble.LOST, Trouble.UNREACHABLE):
            raise
        return Busy(percent=Missing(f"driver: {meaning.sentence}"), last_sample_us=since_us)
    return busy_of(samples, since_us, now_us, where=where)


def _read_samples(binding: Binding, handle: Handle, since_us: int) -> Sequence[Any]:
    try:
        return binding.nvmlDeviceGetProcessUtilization(handle, since_us)
    except pynvml.NVMLError_InsufficientSize:
        # The binding asks for the size first and for the samples next; more came in between.
        return binding.nvmlDeviceGetProcessUtilization(handle, since_us)


def busy_of(samples: Iterable[Any], since_us: int, now_us: int, *, where: str) -> Busy:
    """What utilisation samples say, the impossible ones left out. Pure.

    Garbage is known: 100 samples of pid 0 with SM 37100 (nvtop #110), 999 (HAMi #1089), 4294967295. A pid
    with several samples has their mean, cut to whole percent.
    """
    sums: dict[int, tuple[int, int]] = {}
    last_sample_us = since_us
    dropped: list[str] = []
    for sample in samples:
        if type(sample) is pynvml.c_nvmlProcessUtilizationSample_t:  # as in nvml_accounting: a field is a microsecond
            pid, at_us, percent = SAMPLE_LAYOUT.unpack_from(sample)
        else:
            pid, at_us, percent = sample.pid, sample.timeStamp, sample.smUtil
        if not 0 < pid <= PID_MAX:
            dropped.append(f"pid {pid}")
        elif percent > 100:
            dropped.append(f"pid {pid} at {percent} %")
        elif not since_us <= at_us <= now_us + LATE_US:
            dropped.append(f"pid {pid} at {at_us} us, outside the time asked for")
        else:
            total, count = sums.get(pid, (0, 0))
            sums[pid] = (total + percent, count + 1)
            last_sample_us = max(last_sample_us, at_us)
    problems: tuple[Problem, ...] = ()
    if dropped:
        told = f"{len(dropped)} utilisation samples cannot be and were left out, the first: {dropped[0]}"
        problems = (Problem(code="bad-utilisation", message=told, where=where),)
    percents = {pid: total // count for pid, (total, count) in sums.items()}
    return Busy(percent=percents, last_sample_us=last_sample_us, problems=problems)


def merge(
    placed: Iterable[tuple[str, Entry]], *, where: str, memory_mib: Mapping[str, int | Missing]
) -> tuple[dict[tuple[str, int], Held], tuple[Problem, ...]]:
    """Entries of all lists, one per device and pid. Pure.

    A process is in the compute and the graphics list with the same memory in each, and under MIG on both
    the parent's and the instance's: memory is the most that one of them says, never their sum.

    Args:
        placed: UUID of the device or MIG instance, and the entry.
        where: the GPU, for problems.
        memory_mib: total memory by UUID.
    """
    held: dict[tuple[str, int], Held] = {}
    problems: list[Problem] = []
    for uuid, entry in placed:
        kind, pid, memory_bytes = entry.kind, entry.pid, entry.memory_bytes
        if not 0 < pid <= PID_MAX:
            told = f"a process list names pid {pid}, which cannot be: left out"
            problems.append(Problem(code="bad-process-entry", message=told, where=where))
            continue
        memory = memory_of(memory_bytes, pid, where=where, memory_mib=memory_mib[uuid], problems=problems)
        key = (uuid, pid)
        before = held.get(key)
        if before is None:
            held[key] = Held(kind, memory)
            continue
        kinds = before.kinds if kind in before.kinds else before.kinds + kind
        if isinstance(before.memory_mib, Missing):
            held[key] = Held(kinds, memory)
        elif isinstance(memory, Missing):
            held[key] = Held(kinds, before.memory_mib)
        else:
            held[key] = Held(kinds, max(memory, before.memory_mib))
    return held, tuple(problems)


def living_contexts(
    held: Mapping[tuple[str, int], Held],
    busy: Busy,
    accounting: AccountingLook | Missing,
    *,
    gpu: str,
    before: Mapping[tuple[str, int], LivingContext],
) -> dict[tuple[str, int], LivingContext]:
    """Living contexts: the merged lists joined with the accounting list and with utilisation. Pure.

    Args:
        held: from :func:`merge`.
        busy: utilisation by pid; a pid without a sample was not busy, as far as the driver samples.
        accounting: the accounting list, or Missing when accounting is not enabled.
        gpu: UUID that running rows of the accounting list belong to.
        before: what this gave at the last look; what has not changed is the same object.
    """
    look = EMPTY_LOOK if isinstance(accounting, Missing) else accounting
    running, doubled = look.running, look.doubled
    unlisted: int | Missing = _UNACCOUNTED
    plain: bool | Missing = False
    if isinstance(accounting, Missing):
        unlisted = plain = accounting
    percents = busy.percent
    contexts: dict[tuple[str, int], LivingContext] = {}
    for key, (kinds, memory_mib) in held.items():
        pid = key[1]
        if pid in look.ended and key[0] == gpu:
            continue  # its row is read at the next look
        started_at_us, accounted = unlisted, plain
        if pid in running:
            started_at_us, accounted = running[pid], True
        elif pid in doubled:
            started_at_us = accounted = HIDDEN
        percent = percents if isinstance(percents, Missing) else percents.get(pid, 0)
        old = before.get(key)
        if (
            old is not None
            and old.busy_percent == percent
            and old.memory_mib == memory_mib
            and old.started_at_us == started_at_us
            and old.accounted is accounted
            and old.kinds == kinds
        ):
            contexts[key] = old
            continue
        contexts[key] = LivingContext(
            pid=pid,
            device=key[0],
            kinds=kinds,
            memory_mib=memory_mib,
            started_at_us=started_at_us,
            accounted=accounted,
            busy_percent=percent,
        )
    for pid, started_at_us in running.items():
        if (gpu, pid) not in contexts:
            contexts[gpu, pid] = LivingContext(
                pid=pid,
                device=gpu,
                kinds="A",
                memory_mib=_NOT_LISTED,
                started_at_us=started_at_us,
                accounted=True,
                busy_percent=percents if isinstance(percents, Missing) else percents.get(pid, 0),
            )
    return contexts
