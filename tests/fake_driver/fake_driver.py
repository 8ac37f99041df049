"""The fake driver's Python side: builds the two libraries and tells their state file what processes do.

In: what a test wants the driver to hold. Out: ``libnvidia-ml.so.1`` and ``libcuda.so.1`` in a folder, a
state file (its format stands in ``state.h``), and the environment that makes a process find both.
Standard library only, and no pytest, so that benches and end-to-end tests use it too.
"""

from __future__ import annotations

import fcntl
import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

HERE = Path(__file__).parent
MIB = 1024 * 1024
RING = 128
STATE_VARIABLE = "GPULEDGER_FAKE_DRIVER_STATE"
LIBRARIES = {"nvml.c": "libnvidia-ml.so.1", "cuda.c": "libcuda.so.1"}

Line = list[str]


def build(directory: Path) -> Path:
    """Compile both libraries into ``directory`` with gcc and return it; built once per source text."""
    directory.mkdir(parents=True, exist_ok=True)
    sources = sorted((*HERE.glob("*.c"), *HERE.glob("*.h")))
    newest = max(path.stat().st_mtime_ns for path in sources)
    for source, library in LIBRARIES.items():
        target = directory / library
        if target.exists() and target.stat().st_mtime_ns > newest:
            continue
        fresh = directory / f"{library}.{os.getpid()}"  # renamed when whole, so that two builders never clash
        command = ["gcc", "-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-o", str(fresh)]
        subprocess.run([*command, str(HERE / source), "-lpthread"], check=True)
        fresh.rename(target)
    return directory


def lines_of(text: str) -> list[Line]:
    """The lines of a state file, each as its words."""
    return [line.split("\t") for line in text.splitlines() if line and not line.startswith("#")]


def now_us() -> int:
    """The wall clock that the libraries stamp by, microseconds."""
    return time.time_ns() // 1000


class FakeDriver:
    """A driver's state in a file. Every method changes the file at once, whole, and under its lock.

    Nothing is kept in memory: what the libraries wrote meanwhile (accounting switched on, a CUDA job that
    came or went) is what the next method finds.

    Args:
        state: path of the state file; its folder must exist.
        libraries: folder from :func:`build`.
        driver_version: what the driver calls itself.
        root: whether callers may change modes; None leaves it to their uid.
    """

    def __init__(
        self, state: Path, libraries: Path, *, driver_version: str = "595.45.04", root: bool | None = None
    ) -> None:
        self.state = state
        self.libraries = libraries
        with self._changed() as lines:
            lines.clear()
            lines.append(["driver", driver_version])
            if root is not None:
                lines.append(["root", str(int(root))])

    def environment(self) -> dict[str, str]:
        """Variables that a process needs from its start to find the fake libraries."""
        before = os.environ.get("LD_LIBRARY_PATH", "")
        path = f"{self.libraries}:{before}" if before else str(self.libraries)
        return {"LD_LIBRARY_PATH": path, STATE_VARIABLE: str(self.state)}

    def add_gpu(
        self,
        uuid: str,
        *,
        product: str = "NVIDIA H100 80GB HBM3",
        memory_mib: int = 81559,
        pci: str = "",
        accounting: bool | None = False,
        mig: bool | None = False,
    ) -> None:
        """Plug in a device; a mode of None is not supported by it."""
        with self._changed() as lines:
            count = sum(line[0] == "gpu" for line in lines)
            address = pci or f"00000000:{count + 1:02X}:00.0"
            lines.append(["gpu", uuid, product, str(memory_mib), address, _mode(accounting), _mode(mig)])

    def remove_gpu(self, uuid: str) -> None:
        """Take a device out of the list: handles to it are lost."""
        with self._changed() as lines:
            lines[:] = [line for line in lines if line[:2] != ["gpu", uuid]]

    def add_slice(
        self, gpu: str, uuid: str, *, profile: str, memory_mib: int, gpu_instance: int, compute_instance: int = 0
    ) -> None:
        """Create a MIG instance. Switch MIG on with :meth:`set_mig`."""
        with self._changed() as lines:
            ids = [str(gpu_instance), str(compute_instance)]
            lines.append(["slice", gpu, uuid, *ids, profile, str(memory_mib)])

    def remove_slice(self, uuid: str) -> None:
        """Destroy a MIG instance."""
        with self._changed() as lines:
            lines[:] = [line for line in lines if not (line[0] == "slice" and line[2] == uuid)]

    def set_accounting(self, uuid: str, on: bool | None) -> None:
        """Set the mode; off clears the running rows only, as the driver does."""
        with self._changed() as lines:
            _gpu(lines, uuid)[5] = _mode(on)
            if not on:
                lines[:] = [line for line in lines if line[:2] != ["live", uuid]]

    def accounting(self, uuid: str) -> bool | None:
        """The mode now, whoever set it; None: not supported."""
        with self._changed() as lines:
            return {"1": True, "0": False, "-1": None}[_gpu(lines, uuid)[5]]

    def set_mig(self, uuid: str, on: bool | None) -> None:
        """Set MIG mode; on forces accounting off, and stale finished rows stay."""
        with self._changed() as lines:
            gpu = _gpu(lines, uuid)
            gpu[6] = _mode(on)
            if on:
                gpu[5] = "0"
                lines[:] = [line for line in lines if line[:2] != ["live", uuid]]

    def start(
        self,
        pid: int,
        gpu: str,
        memory_mib: int | None = 184,
        *,
        at_us: int | None = None,
        kinds: str = "C",
        instance: tuple[int, int] | None = None,
        follow: bool = False,
    ) -> None:
        """A process opens a device; accounted if the mode is on.

        Args:
            pid, gpu: who and where.
            memory_mib: memory it holds; None: the driver has no figure.
            at_us: when; now if not given.
            kinds: the process lists it is in, of C, G, M; ``-`` for none.
            instance: MIG GPU instance and compute instance id.
            follow: close the context when the process is seen to be gone.
        """
        memory = "-" if memory_mib is None else str(memory_mib * MIB)
        ids = ["-", "-"] if instance is None else [str(instance[0]), str(instance[1])]
        with self._changed() as lines:
            lines.append(["process", gpu, str(pid), kinds, memory, *ids, str(int(follow))])
            if _gpu(lines, gpu)[5] == "1":
                started = now_us() if at_us is None else at_us
                lines.append(["live", gpu, str(pid), str(started), memory, "0", "0"])

    def hold(self, pid: int, gpu: str, memory_mib: int) -> None:
        """A process now holds this much memory on a device; its peak follows."""
        with self._changed() as lines:
            for line in lines:
                if line[0] in ("process", "live") and line[1:3] == [gpu, str(pid)]:
                    line[4] = str(memory_mib * MIB if line[0] == "process" else max(memory_mib * MIB, int(line[4])))

    def work(self, pid: int, gpu: str, percent: int) -> None:
        """The driver samples a process at this SM percent at every look from now on; 0: no more."""
        with self._changed() as lines:
            lines[:] = [line for line in lines if line[:3] != ["sample", gpu, str(pid)]]
            if percent:
                lines.append(["sample", gpu, str(pid), "now", str(percent), "0"])
            for line in lines:
                if line[:3] == ["live", gpu, str(pid)]:
                    line[5] = str(percent)

    def finish(self, pid: int, gpu: str, *, at_us: int | None = None) -> None:
        """A process closes a device: settled if it was accounted, else gone without a trace."""
        key = [gpu, str(pid)]
        with self._changed() as lines:
            rows = [line for line in lines if line[0] == "live" and line[1:3] == key]
            lines[:] = [line for line in lines if not (line[0] in ("process", "live", "sample") and line[1:3] == key)]
            for row in rows:
                ended = now_us() if at_us is None else at_us
                context_ms = (ended - int(row[3])) % 2**64 // 1000
                _settle(lines, ["dead", *row[1:4], str(context_ms), *row[4:]])

    def add_finished(
        self,
        pid: int,
        gpu: str,
        *,
        started_at_us: int,
        context_ms: int,
        memory_mib: int | None = 184,
        percent: int | None = 0,
        memory_percent: int | None = 0,
    ) -> None:
        """Put a finished row into the ring as if it had ended last; None: the driver has no figure."""
        memory = "-" if memory_mib is None else str(memory_mib * MIB)
        figures = ["-" if figure is None else str(figure) for figure in (percent, memory_percent)]
        with self._changed() as lines:
            _settle(lines, ["dead", gpu, str(pid), str(started_at_us), str(context_ms), memory, *figures])

    def add_sample(self, pid: int, gpu: str, *, percent: int, stamp_us: int) -> None:
        """One utilisation sample as it stands, believable or not."""
        with self._changed() as lines:
            lines.append(["sample", gpu, str(pid), str(stamp_us), str(percent), "0"])

    def list_without_row(self, pid: int, gpu: str) -> None:
        """The accounting list names a pid whose row is gone when it is asked for."""
        with self._changed() as lines:
            lines.append(["gone", gpu, str(pid)])

    def fail(self, function: str, number: int | None, *, gpu: str = "*") -> None:
        """An exported function (its C name) returns this NVML number, also 0; None mends it."""
        with self._changed() as lines:
            lines[:] = [line for line in lines if not (line[:2] == ["error", function] and line[3] == gpu)]
            if number is not None:
                lines.append(["error", function, str(number), gpu])

    def reload(self) -> None:
        """The driver is loaded anew: modes off, rows gone, living contexts go on unaccounted."""
        with self._changed() as lines:
            lines[:] = [line for line in lines if line[0] not in ("live", "dead", "gone")]
            for line in lines:
                if line[0] == "gpu" and line[5] == "1":
                    line[5] = "0"

    def unload(self) -> None:
        """No driver: the state file goes away. The next change brings back one without devices."""
        self.state.unlink()

    def lines(self) -> list[Line]:
        """The state as it stands, for what a test wants to see with its own eyes."""
        with self._changed() as lines:
            return [list(line) for line in lines]

    @contextmanager
    def _changed(self) -> Iterator[list[Line]]:
        with Path(f"{self.state}.lock").open("a") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            text = self.state.read_text() if self.state.exists() else ""
            lines = lines_of(text)
            yield lines
            written = "".join("\t".join(line) + "\n" for line in lines)
            if written != text:
                fresh = Path(f"{self.state}.{os.getpid()}")
                fresh.write_text(written)
                fresh.rename(self.state)


def _mode(on: bool | None) -> str:
    return "-1" if on is None else str(int(on))


def _gpu(lines: list[Line], uuid: str) -> Line:
    return next(line for line in lines if line[:2] == ["gpu", uuid])


def _settle(lines: list[Line], dead: Line) -> None:
    """Append to the ring: a second stint of a pid frees its older row, a full ring loses its oldest."""
    lines[:] = [line for line in lines if line[:3] != dead[:3]]
    ring = [line for line in lines if line[:2] == dead[:2]]
    if len(ring) >= RING:
        lines.remove(ring[0])
    lines.append(dead)
