"""``doctor``: what is missing on this machine, and the command that mends it. Changes nothing."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator
from pathlib import Path

from gpuledger.errors import GpuledgerError, Unavailable
from gpuledger.ledger.places import SYSTEM_LEDGER, Place, is_there
from gpuledger.ledger.store import Ledger
from gpuledger.model.checks import Check, DoctorReport, Verdict
from gpuledger.model.durations import duration_us, several
from gpuledger.model.missing import Missing
from gpuledger.model.moments import MINUTE_US, SECOND_US, iso
from gpuledger.model.readings import DeviceReading
from gpuledger.model.rows import Watch
from gpuledger.operations.pulse import Pulse, hear
from gpuledger.operations.start_agent import METHODS, best_method, choose_source
from gpuledger.sources import procfs

_QUIET_US = 10 * MINUTE_US
"""An agent whose pulse cannot be read writes every few minutes; longer without a word is trouble."""
_SLACK_US = 10 * SECOND_US
"""A look can be late on a busy machine."""


def doctor(*, host: str, place: Place, now_us: int) -> DoctorReport:
    """Every check, in the order of the river: driver, naming, ledger, agent."""
    checks = [*_driver(now_us), *_naming(), *_ledger(place, host, now_us)]
    return DoctorReport(host=host, at_us=now_us, checks=tuple(checks))


def _driver(now_us: int) -> Iterator[Check]:
    notes: list[str] = []
    try:
        source = choose_source(notes.append)
        reading = source.read(now_us)
    except Unavailable as error:
        yield Check(
            name="driver", verdict=Verdict.FOUND, sentence=error.message,
            hint="install NVIDIA's driver, or try `gpuledger demo`, which needs no GPU",
        )  # fmt: skip
        return
    devices, version = several(len(reading.devices), "device"), reading.driver_version or "unknown"
    yield Check(
        name="driver",
        verdict=Verdict.NOTE if notes else Verdict.OK,
        sentence=f"{devices}, driver {version}, by {reading.method}",
        findings=tuple(notes),
    )
    for device in reading.devices.values():
        yield _accounting(device)
    for problem in reading.problems:
        yield Check(name="reading", verdict=Verdict.NOTE, sentence=str(problem))


def _accounting(device: DeviceReading) -> Check:
    name, where = "accounting", f"{device.product} {device.uuid}"
    if device.accounting == "enabled":
        alive = several(len(device.living), "context")
        sentence = f"enabled on {where}: {len(device.finished)} of 128 finished rows, {alive} alive"
        return Check(name=name, verdict=Verdict.OK, sentence=sentence)
    if device.mig or device.accounting == "unsupported":
        return Check(
            name=name, verdict=Verdict.NOTE,
            sentence=f"none on {where} (MIG, or a device without it): the living are still metered",
        )  # fmt: skip
    return Check(
        name=name, verdict=Verdict.FOUND, sentence=f"off on {where}: what ran and exited leaves no row",
        hint="sudo gpuledger agent --enable-accounting   (or once: sudo nvidia-smi -am 1)",
    )  # fmt: skip


def _naming() -> Iterator[Check]:
    try:
        inode = Path("/proc/self/ns/pid").stat().st_ino
    except OSError as error:
        yield Check(
            name="proc", verdict=Verdict.FOUND, sentence=f"/proc cannot be read: {error.strerror}", hint="mount /proc"
        )
        return
    # PROC_PID_INIT_INO in include/linux/proc_ns.h: the inode of the init pid namespace is fixed
    if inode != 0xEFFFFFFC:
        yield Check(
            name="pid-namespace", verdict=Verdict.FOUND,
            sentence="not the host's pid namespace: the driver hides other pids, or numbers them otherwise",
            hint="run on the host, or the container with --pid=host",
        )  # fmt: skip
    else:
        yield Check(name="pid-namespace", verdict=Verdict.OK, sentence="the host's own: the driver's pids are ours")
    naming, other = _method(), procfs.read_identity(1)
    if isinstance(other, Missing):
        yield Check(
            name="proc", verdict=Verdict.FOUND, sentence=f"other people's processes cannot be read ({other.reason})",
            hint="run the agent as root, or mount /proc without hidepid",
        )  # fmt: skip
    elif other.unread and naming.verdict is Verdict.OK:
        parts = " and ".join(part.partition(":")[0] for part in other.unread)
        sentence = f"other people's processes can be read; their {parts} come with the kernel's events"
        yield Check(name="proc", verdict=Verdict.OK, sentence=sentence)
    elif other.unread:
        parts = ", ".join(part.partition(":")[0] for part in other.unread)
        yield Check(
            name="proc",
            verdict=Verdict.NOTE,
            sentence=f"other people's processes can be read, but for their {parts}: rules that match on it miss them",
            hint="run the agent as root, or with CAP_SYS_PTRACE",
        )
    else:
        yield Check(name="proc", verdict=Verdict.OK, sentence="other people's processes can be read")
    yield naming


def _method() -> Check:
    """The best way of naming that this machine lets; tried, and let go again."""
    method, refusals = best_method()
    if method == METHODS[0]:
        sentence = "by kernel events (eBPF): every process that opens a GPU, however short it lives"
        return Check(name="naming", verdict=Verdict.OK, sentence=sentence)
    short = "a process that lives shorter than the interval can be missed, and is counted as such"
    sentence = f"by polling: {short}" if method == "poll" else "by the process connector: opens of a GPU are not seen"
    return Check(
        name="naming",
        verdict=Verdict.NOTE,
        sentence=sentence,
        hint=refusals[0].hint,
        findings=tuple(f"not by {refusal.method}: {refusal.message}" for refusal in refusals),
    )


def _last_look(ledger: Ledger, host: str) -> Watch | Missing:
    """The last row of this host's agent: dumps and devices are no look of its own."""
    rows = ledger.scan(Watch, hosts=[host], devices=[""], order="time", descending=True, limit=20)
    return next((row for row in rows if row.source == "process"), Missing("no agent has looked yet"))


def _ledger(path: Place, host: str, now_us: int) -> Iterator[Check]:
    if not is_there(path) and path != SYSTEM_LEDGER and is_there(SYSTEM_LEDGER):
        yield Check(
            name="ledger",
            verdict=Verdict.FOUND,
            sentence=f"this machine's ledger, {SYSTEM_LEDGER}, is there, and you may not read it",
            hint="sudo gpuledger doctor, or join its group",
        )
        return
    if isinstance(path, Path) and not is_there(path):
        parent = next(folder for folder in path.parents if is_there(folder))
        writable = os.access(parent, os.W_OK)
        yield Check(
            name="ledger",
            verdict=Verdict.NOTE if writable else Verdict.FOUND,
            sentence=f"none yet at {path}"
            + ("; the agent makes it" if writable else f", and {parent} cannot be written"),
            hint="gpuledger agent" if writable else "run as the owner of that folder, or --ledger PLACE",
        )
        return
    try:
        with Ledger.open(path, mode="read") as ledger:
            last, pulse = _last_look(ledger, host), hear(ledger, now_us=now_us)
            yield Check(name="ledger", verdict=Verdict.OK, sentence=f"{path} can be read")
    except GpuledgerError as error:
        yield Check(name="ledger", verdict=Verdict.FOUND, sentence=error.message, hint=error.hint)
        return
    yield _agent(path, host, last, pulse if pulse is not None and pulse.host == host else None, now_us)


def _agent(place: Place, host: str, last: Watch | Missing, pulse: Pulse | None, now_us: int) -> Check:
    """Whether an agent looks, and writes what it sees: by its pulse, and where none is told by what it wrote last."""
    if pulse is not None and pulse.stuck_us:
        return Check(
            name="agent",
            verdict=Verdict.FOUND,
            sentence=f"it looks, and since {iso(pulse.stuck_since_us)} it cannot write what it sees: it keeps that",
            hint=f"df -h {shlex.quote(str(place.parent))}   (a full disk is the usual cause; the agent says which)"
            if isinstance(place, Path)
            else "look after the server (the agent says why it cannot write)",
        )
    if pulse is not None and pulse.is_beating(now_us - _SLACK_US):
        every = f"it looks every {duration_us(pulse.interval_us)}, last at {iso(pulse.looked_us)}"
        if pulse.answered:
            return Check(name="agent", verdict=Verdict.OK, sentence=every)
        return Check(
            name="agent", verdict=Verdict.FOUND, sentence=f"{every}, and the driver does not answer it",
            hint="nvidia-smi   (if it answers: start the agent again)",
        )  # fmt: skip
    if pulse is None and isinstance(last, Missing):
        return Check(
            name="agent", verdict=Verdict.FOUND, sentence=f"no agent has looked at {host} yet", hint="gpuledger agent"
        )
    looked_us = max(0 if isinstance(last, Missing) else last.until_us, 0 if pulse is None else pulse.looked_us)
    if pulse is None and now_us - looked_us <= _QUIET_US:
        return Check(name="agent", verdict=Verdict.OK, sentence=f"last look written at {iso(looked_us)}")
    return Check(
        name="agent", verdict=Verdict.FOUND,
        sentence=f"none looks now: the last look was at {iso(looked_us)}, {duration_us(now_us - looked_us)} ago",
        hint="gpuledger agent",
    )  # fmt: skip
