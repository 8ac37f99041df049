"""The driver asked in two ways: by direct ctypes calls, as the agent does, and by pynvml's own two-step calls.

In: an initialised pynvml and a handle. Out: findings as text, each with whether the two agree.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pynvml

from gpuledger.sources.nvml_lean import LeanBinding


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One comparison: what was compared, what came out, and whether it holds; None: it could not be asked."""

    name: str
    shown: str
    holds: bool | None


def asked(call: Callable[[], Any]) -> tuple[Any, str]:
    """A call's answer, or None and the driver's own word for why there is none."""
    try:
        return call(), ""
    except (pynvml.NVMLError, pynvml.NVMLLibraryMismatchError) as error:
        return None, str(error) or type(error).__name__


def compare_lists(handle: Any) -> list[Finding]:
    """Accounting pids and process lists by both ways."""
    lean = LeanBinding()
    findings = []
    for name, fields in (
        ("nvmlDeviceGetAccountingPids", ()),
        ("nvmlDeviceGetComputeRunningProcesses", ("pid", "usedGpuMemory")),
        ("nvmlDeviceGetGraphicsRunningProcesses", ("pid", "usedGpuMemory")),
        ("nvmlDeviceGetMPSComputeRunningProcesses", ("pid", "usedGpuMemory")),
    ):
        direct, refused = asked(lambda name=name: getattr(lean, name)(handle))
        two_step, refused_too = asked(lambda name=name: getattr(pynvml, name)(handle))
        if direct is None or two_step is None:
            holds = None if direct is None and two_step is None else False
            findings.append(Finding(name=name, shown=f"direct: {refused}; pynvml: {refused_too}", holds=holds))
            continue
        ours, theirs = _plain(direct, fields), _plain(two_step, fields)
        shown = f"{len(ours)} entries by both" if ours == theirs else f"direct {ours}, pynvml {theirs}"
        findings.append(Finding(name=name, shown=shown, holds=ours == theirs))
    return findings


def _plain(entries: Any, fields: tuple[str, ...]) -> list[Any]:
    if not fields:
        return sorted(int(pid) for pid in entries)
    none = 2**64 - 1
    rows = [tuple(getattr(entry, field) for field in fields) for entry in entries]
    return sorted(tuple(none if value is None else int(value) for value in row) for row in rows)


def compare_stats(handle: Any, pids: list[int]) -> list[Finding]:
    """GetAccountingStats by pynvml, by the direct call, and version 2 where driver and binding have it."""
    lean = LeanBinding()
    findings = []
    for pid in pids:
        first, refused = asked(lambda pid=pid: pynvml.nvmlDeviceGetAccountingStats(handle, pid))
        direct, refused_too = asked(lambda pid=pid: lean.nvmlDeviceGetAccountingStats(handle, pid))
        if first is None or direct is None:
            findings.append(Finding(name=f"stats of {pid}", shown=f"{refused} {refused_too}".strip(), holds=None))
            continue
        fields = ("time", "startTime", "maxMemoryUsage", "gpuUtilization", "memoryUtilization", "isRunning")
        differing = [name for name in fields if getattr(first, name) != getattr(direct, name)]
        shown = ", ".join(f"{name} {getattr(direct, name)}" for name in fields)
        findings.append(Finding(name=f"stats of {pid}, direct = pynvml", shown=shown, holds=not differing))
        findings.append(_version_2(handle, pid, direct))
    return findings


def _version_2(handle: Any, pid: int, first: Any) -> Finding:
    name = f"stats of {pid}, version 2 = version 1"
    structure = getattr(pynvml, "c_nvmlAccountingStats_v2_t", None)
    try:
        function = ctypes.CDLL("libnvidia-ml.so.1").nvmlDeviceGetAccountingStats_v2
    except (OSError, AttributeError):
        return Finding(name=name, shown="this driver has no version 2", holds=None)
    if structure is None:
        return Finding(name=name, shown="this binding has no version 2", holds=None)
    stats = structure()
    stats.pid = pid
    number = function(handle, ctypes.byref(stats))
    if number:
        return Finding(name=name, shown=f"the driver answers {number}", holds=None)
    fields = {field[0] for field in structure._fields_}
    shared = [field for field in ("time", "startTime", "maxMemoryUsage", "isRunning") if field in fields]
    differing = [field for field in shared if getattr(stats, field) != getattr(first, field)]
    more = ", ".join(f"{field} {getattr(stats, field)}" for field in sorted(fields) if field not in shared)
    return Finding(name=name, shown=f"{more}; differing: {differing or 'nothing'}", holds=not differing)
