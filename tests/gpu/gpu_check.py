"""``make gpu-check``: on a machine with a GPU, as root, under five minutes: does the ledger say what the driver says?

Enables accounting (and restores it), runs the agent on a ledger of its own and four CUDA jobs, then compares
the ledger's rows with ``nvidia-smi``, names, times, and the ways of asking the driver. The report goes to
stdout, and to ``$OUT/gpu_check.txt`` where that folder is named. Exit: 0 all holds, 1 something does not,
5 there is no GPU to ask.
"""

from __future__ import annotations

import csv
import io
import json
import os
import platform
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pynvml

from gpuledger import __version__
from gpuledger.ledger.store import Ledger
from gpuledger.model.missing import Missing
from gpuledger.model.rows import DriverRecord, ProcessIdentity, Sighting

sys.path.insert(0, str(Path(__file__).parent))

from driver_calls import Finding, asked, compare_lists, compare_stats

JOBS = (("first_job", 64, 0.5), ("second_job", 128, 2.0), ("third_job", 256, 5.0))
"""Script name, MiB, seconds."""
RESIDENT = ("resident_job", 96, 12.0)
JOB = Path(__file__).with_name("cuda_job.py")
GPULEDGER = (str(Path(sys.executable).with_name("gpuledger")),)
NOT_A_GPU = 5
SETTLED_WITHIN_S = 10
CONTEXT_MORE_MS = 3000
"""A context outlasts the job's own measure by the loading of the driver and the end of the process."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """One job that ended: its name, and what it measured itself."""

    name: str
    pid: int
    own_ms: int
    mib: int


class Report:
    """Lines as they come, and the findings among them."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self.failed = 0

    def say(self, line: str) -> None:
        """A line of the report, at once."""
        self._lines.append(line)
        sys.stdout.write(f"{line}\n")
        sys.stdout.flush()

    def hold(self, found: Finding) -> None:
        """A comparison."""
        word = {True: "ok  ", False: "FAIL", None: "n/a "}[found.holds]
        self.failed += found.holds is False
        self.say(f"{word} {found.name}: {found.shown}")

    def check(self, name: str, holds: bool, shown: str) -> None:
        """A comparison made here."""
        self.hold(Finding(name=name, shown=shown, holds=holds))

    def write(self) -> None:
        """Also to ``$OUT``, where one is named."""
        if folder := os.environ.get("OUT"):
            Path(folder, "gpu_check.txt").write_text("\n".join(self._lines) + "\n")


def main() -> int:
    """Run the check."""
    try:
        pynvml.nvmlInit()
        count = pynvml.nvmlDeviceGetCount()
    except (pynvml.NVMLError, pynvml.NVMLLibraryMismatchError) as error:
        sys.stderr.write(f"there is no NVIDIA driver to ask here: {error}\n")
        sys.stderr.write("  try: run it on a machine with a GPU, in the host's pid namespace\n")
        return NOT_A_GPU
    if not count:
        sys.stderr.write("the NVIDIA driver lists no GPU\n")
        return NOT_A_GPU
    report = Report()
    handles = [pynvml.nvmlDeviceGetHandleByIndex(index) for index in range(count)]
    try:
        _say_what_this_is(report, handles)
        with _accounting(report, handles), tempfile.TemporaryDirectory() as folder:
            _check(report, handles[0], Path(folder))
    finally:
        report.say(f"{report.failed} comparisons failed")
        report.write()
        pynvml.nvmlShutdown()
    return 1 if report.failed else 0


def _say_what_this_is(report: Report, handles: list[Any]) -> None:
    report.say(f"gpuledger {__version__}, Python {platform.python_version()}, kernel {platform.release()}")
    binding = version("nvidia-ml-py")
    library, _ = asked(pynvml.nvmlSystemGetNVMLVersion)
    report.say(f"driver {pynvml.nvmlSystemGetDriverVersion()}, NVML {library}, nvidia-ml-py {binding}")
    for index, handle in enumerate(handles):
        mode, refused = asked(lambda handle=handle: pynvml.nvmlDeviceGetMigMode(handle))
        size, _ = asked(lambda handle=handle: pynvml.nvmlDeviceGetAccountingBufferSize(handle))
        report.say(
            f"GPU {index}: {pynvml.nvmlDeviceGetName(handle)} {pynvml.nvmlDeviceGetUUID(handle)}; "
            f"MIG {mode if mode is not None else refused}; accounting buffer {size}"
        )


@contextmanager
def _accounting(report: Report, handles: list[Any]) -> Iterator[None]:
    """Accounting on for the while, each device's mode restored after."""
    before = [asked(lambda handle=handle: pynvml.nvmlDeviceGetAccountingMode(handle)) for handle in handles]
    try:
        for index, (handle, (mode, why)) in enumerate(zip(handles, before, strict=True)):
            refused = why
            if mode == 0:
                _, refused = asked(lambda handle=handle: pynvml.nvmlDeviceSetAccountingMode(handle, 1))
            report.say(f"GPU {index}: accounting was {mode}, {'refused: ' + refused if refused else 'is on'}")
        yield
    finally:
        for index, (handle, (mode, _)) in enumerate(zip(handles, before, strict=True)):
            if mode == 0:
                _, refused = asked(lambda handle=handle: pynvml.nvmlDeviceSetAccountingMode(handle, 0))
                now, _ = asked(lambda handle=handle: pynvml.nvmlDeviceGetAccountingMode(handle))
                report.check(f"GPU {index}: accounting mode restored", now == mode, refused or f"mode {now}")


def _check(report: Report, handle: Any, folder: Path) -> None:
    uuid = pynvml.nvmlDeviceGetUUID(handle)
    mode, _ = asked(lambda: pynvml.nvmlDeviceGetAccountingMode(handle))
    report.check("accounting can be enabled", mode == 1, f"mode {mode}")
    ledger = folder / "ledger.db"
    agent = subprocess.Popen(
        [*GPULEDGER, "agent", "--interval", "200ms", "--ledger", str(ledger)],
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    resident: subprocess.Popen[str] | None = None
    try:
        _wait(lambda: _is_ledger(ledger), "the agent's first look")
        resident = _start(folder, RESIDENT, uuid)
        time.sleep(1.5)
        ran = [_finish(_start(folder, job, uuid), job[0]) for job in JOBS]
        _living(report, handle, ledger, resident.pid)
        ran.append(_finish(resident, RESIDENT[0]))
        resident = None
        if mode == 1:  # else no row will ever come
            _wait(lambda: {job.pid for job in ran} <= set(_rows(ledger)), "the driver's rows of all jobs", must=False)
        for found in compare_stats(handle, [job.pid for job in ran]):
            report.hold(found)
    finally:
        for process in (resident, agent):
            if process is not None and process.poll() is None:
                process.send_signal(signal.SIGTERM)
        talk = agent.communicate(timeout=30)[1]
    report.check("the agent ends with 0", agent.returncode == 0, f"status {agent.returncode}")
    for line in talk.splitlines():
        report.say(f"     agent: {line}")
    _settled(report, ledger, ran)
    _against_nvidia_smi(report, ledger, uuid, ran)
    _verbs(report, ledger)


def _is_ledger(path: Path) -> bool:
    return path.exists() and bool(_gpuledger(path, "journal", "--format", "json").stdout)


def _start(folder: Path, job: tuple[str, int, float], uuid: str) -> subprocess.Popen[str]:
    name, mib, seconds = job
    script = folder / f"{name}.py"
    shutil.copy(JOB, script)
    command = [sys.executable, str(script), str(mib), str(seconds), uuid]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def _finish(process: subprocess.Popen[str], name: str) -> Ran:
    said = process.communicate(timeout=120)[0]
    if process.returncode:
        raise SystemExit(f"the CUDA job {name} failed with {process.returncode}; is libcuda.so.1 here?")
    own = json.loads(said)
    return Ran(name=name, pid=own["pid"], own_ms=round((own["ended"] - own["started"]) * 1000), mib=own["mib"])


def _living(report: Report, handle: Any, ledger: Path, pid: int) -> None:
    """While the resident job lives: what the driver lists, and what usage says of it."""
    for name in ("Compute", "Graphics", "MPSCompute"):
        listed, refused = asked(lambda name=name: getattr(pynvml, f"nvmlDeviceGet{name}RunningProcesses")(handle))
        shown = refused or [(one.pid, one.usedGpuMemory) for one in listed]
        report.say(f"     living, {name}: {shown}")
    samples, refused = asked(lambda: pynvml.nvmlDeviceGetProcessUtilization(handle, time.time_ns() // 1000 - 10**7))
    shown = refused or [(one.pid, one.smUtil, one.memUtil) for one in samples]
    report.say(f"     utilisation samples of 10 s: {shown}")
    for found in compare_lists(handle):
        report.hold(found)
    told = _gpuledger(ledger, "usage", "--format", "json")
    open_pids = [row["pid"] for row in json.loads(told.stdout)["unsettled"]["rows"]] if not told.returncode else []
    report.check("usage lists the living job as unsettled", pid in open_pids, f"pid {pid} among {open_pids}")


def _rows(ledger: Path) -> dict[int, DriverRecord]:
    with Ledger.open(ledger, mode="read") as opened:
        return {row.pid: row for row in opened.scan(DriverRecord)}


def _settled(report: Report, ledger: Path, ran: list[Ran]) -> None:
    rows = _rows(ledger)
    with Ledger.open(ledger, mode="read") as opened:
        named = {row.pid: row.text_key for row in opened.scan(ProcessIdentity)}
        texts = opened.texts()
        seen = {row.pid for row in opened.scan(Sighting)}
    report.say(f"     the ledger holds {len(rows)} finished processes, {len(named)} named")
    for job in ran:
        row = rows.get(job.pid)
        command = texts[named[job.pid]].command if named.get(job.pid) in texts else "no name"
        report.check(f"{job.name} is named", job.name in command, command)
        report.check(f"{job.name} was seen alive", job.pid in seen, f"pid {job.pid}")
        if row is None:
            report.check(f"{job.name} is settled", False, f"no driver row of pid {job.pid}")
            continue
        ratio = row.context_ms / max(1, job.own_ms)
        holds = -200 <= row.context_ms - job.own_ms <= CONTEXT_MORE_MS
        report.check(
            f"{job.name} context time",
            holds,
            f"driver {row.context_ms} ms, the job itself {job.own_ms} ms, ratio {ratio:.3f}; "
            f"peak {row.peak_memory_mib} MiB of {job.mib} asked, SM {row.gpu_percent} %",
        )
        if not isinstance(row.peak_memory_mib, Missing) and row.peak_memory_mib:
            report.check(f"{job.name} peak memory", row.peak_memory_mib >= job.mib, f"{row.peak_memory_mib} MiB")


def _against_nvidia_smi(report: Report, ledger: Path, uuid: str, ran: list[Ran]) -> None:
    if shutil.which("nvidia-smi") is None:
        report.say("n/a  nvidia-smi is not installed: its listing is not compared")
        return
    query = "--query-accounted-apps=gpu_uuid,pid,gpu_util,mem_util,max_memory_usage,time"
    done = subprocess.run(["nvidia-smi", query, "--format=csv"], capture_output=True, text=True, check=False)
    report.say(f"     {query}, status {done.returncode}:")
    for line in done.stdout.splitlines():
        report.say(f"     | {line}")
    listed: dict[int, tuple[str, str]] = {}
    for cells in list(csv.reader(io.StringIO(done.stdout), skipinitialspace=True))[1:]:
        if len(cells) == 6 and cells[0] == uuid:
            listed[int(cells[1])] = (cells[4].split()[0], cells[5].split()[0])
    rows = _rows(ledger)
    for job in ran:
        row = rows.get(job.pid)
        ours = None if row is None else (str(row.peak_memory_mib), str(row.context_ms))
        theirs = listed.get(job.pid)
        report.check(f"{job.name} as nvidia-smi lists it", ours == theirs, f"(MiB, ms): {ours} and {theirs}")
    lines = [*GPULEDGER, "import", "nvidia-smi", "-", "--zone", "UTC", "--ledger", str(ledger), "--host", "imported"]
    took = subprocess.run(lines, input=done.stdout, capture_output=True, text=True, check=False)
    report.check("the same listing imports", took.returncode == 0, (took.stderr or took.stdout).strip()[-200:])


def _verbs(report: Report, ledger: Path) -> None:
    for verb in ("usage", "blind", "verify"):
        done = _gpuledger(ledger, verb)
        report.check(f"gpuledger {verb} answers", done.returncode == 0, f"status {done.returncode}")
        for line in (done.stdout if verb != "verify" or done.returncode else "").splitlines():
            report.say(f"     | {line}")


def _gpuledger(ledger: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [*GPULEDGER, *words, "--ledger", str(ledger)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)


def _wait(met: Any, what: str, *, must: bool = True) -> None:
    until = time.monotonic() + SETTLED_WITHIN_S
    while not met():
        if time.monotonic() > until:
            if must:
                raise SystemExit(f"gave up after {SETTLED_WITHIN_S} s: {what}")
            return
        time.sleep(0.2)


if __name__ == "__main__":
    sys.exit(main())
