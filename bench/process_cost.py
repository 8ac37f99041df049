"""What a running process costs: CPU time and resident memory, as the kernel counts them."""

from __future__ import annotations

import os
import statistics
from dataclasses import dataclass, field
from pathlib import Path

TICK = os.sysconf("SC_CLK_TCK")


def cpu_seconds(pid: int) -> float:
    """User and system time of all threads of a process.

    From ``schedstat``, in nanoseconds, where the kernel keeps it: a minute of a light process is only a dozen of the
    ticks in fields 14 and 15 of ``/proc/PID/stat``, which are taken else.
    """
    try:
        spent = [path.read_text() for path in Path(f"/proc/{pid}/task").glob("*/schedstat")]
    except FileNotFoundError:  # a thread that ended just now
        return cpu_seconds(pid)
    if spent:
        return sum(int(one.split()[0]) for one in spent) / 1e9
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICK


def resident_mb(pid: int) -> float:
    """``VmRSS`` in MB (10^6 bytes)."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024 / 1e6
    raise ProcessLookupError(f"{pid} has no memory any more")


def own_peak_mib() -> int:
    """``VmHWM`` of this process in MiB. ``ru_maxrss`` would not do: a child begins with what its parent held."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) // 1024
    raise ProcessLookupError("no peak is told")


@dataclass(slots=True, kw_only=True)
class Cost:
    """One process over a window.

    Args:
        name: for the table.
        pid: the process.
        began_cpu: CPU time at the window's start.
        ended_cpu: CPU time when last looked at.
        resident: (second, MB) samples.
    """

    name: str
    pid: int
    began_cpu: float
    ended_cpu: float = 0.0
    resident: list[tuple[float, float]] = field(default_factory=list)

    def sample(self, second: float) -> None:
        """Look at the process now."""
        self.ended_cpu = cpu_seconds(self.pid)
        self.resident.append((second, resident_mb(self.pid)))

    @property
    def cpu_an_hour(self) -> float:
        """CPU seconds an hour, from the start to the last sample."""
        return (self.ended_cpu - self.began_cpu) * 3600 / self.resident[-1][0]

    @property
    def most_mb(self) -> float:
        """Most resident memory seen."""
        return max(megabytes for _, megabytes in self.resident)

    @property
    def slope_mb_an_hour(self) -> float:
        """Least squares over the second half of the window, when it is warm."""
        half = self.resident[len(self.resident) // 2 :]
        slope, _ = statistics.linear_regression([second for second, _ in half], [mb for _, mb in half])
        return slope * 3600

    @property
    def growth_mb(self) -> float:
        """From the median of the middle third to that of the last: 0 is level."""
        third = len(self.resident) // 3
        middle = statistics.median(mb for _, mb in self.resident[third : 2 * third])
        return statistics.median(mb for _, mb in self.resident[2 * third :]) - middle
