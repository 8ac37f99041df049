"""``/proc``: who a living process is, read while it lives.

A pid in, a :class:`ProcessReading` or the reason why there is none out. The files of a process are read
between two looks at its start time, so that a pid reused meanwhile cannot lend its name; what a foreign
user's process does not let be read stays empty. Command lines leave this module redacted.
"""

from __future__ import annotations

import os
import pwd
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from gpuledger.clock import SystemClock
from gpuledger.errors import BadInput
from gpuledger.model.identity import IdentityText
from gpuledger.model.missing import Missing
from gpuledger.model.moments import SECOND_US
from gpuledger.sources import cgroup
from gpuledger.sources.redaction import redact

PROC = Path("/proc")
GONE = Missing("gone")
"""There is no such process, or no longer."""

LARGEST_READ = 64 * 1024
"""Bytes read of one file: sixteen times what is kept of a command line."""

_PAGE_PART = 2048
"""A shorter read was the last: seq_file gives whole lines up to a page at a time (fs/seq_file.c)."""

TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
"""The unit of field 22 of ``/proc/PID/stat`` (proc(5)); 100 on every common kernel."""

_UID = re.compile(rb"^Uid:\s*([0-9]{1,10})\b", re.MULTILINE)
_DEAD_STATES = frozenset("ZXx")
_FLAGS, _STARTTIME = 9 - 3, 22 - 3
"""Fields 9 and 22, counted from the state (field 3), which is the first after the name's closing parenthesis."""

_PF_EXITING = 0x4
"""Of the kernel's flags of a task (include/linux/sched.h): it is ending, and its memory may be gone already."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessReading:
    """One process as read while it lived.

    Args:
        pid: process id in the namespace of ``/proc``.
        start_ticks: start since boot in clock ticks: with the pid and the boot id, the process itself.
        started_at_us: wall-clock start, microseconds UTC.
        text: what was read, redacted.
        program_mark: changes when the process becomes another program, or writes another command line.
        unread: what could not be read, each with the reason, such as ``exe: permission denied``.
    """

    pid: int
    start_ticks: int
    started_at_us: int
    text: IdentityText
    program_mark: int = 0
    unread: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Stat:
    """The little of ``/proc/PID/stat`` that is needed.

    Args:
        comm: short name; may hold blanks and parentheses.
        state: one letter, proc(5).
        start_ticks: field 22.
        is_ending: it has begun to exit; what it ran can no longer be read.
    """

    comm: str
    state: str
    start_ticks: int
    is_ending: bool = False

    @property
    def is_alive(self) -> bool:
        """False for a zombie: it has exited, and holds no device any more."""
        return self.state not in _DEAD_STATES


def boot_wall_us(now_us: int, boot_us: int) -> int:
    """The wall clock's time of boot, microseconds UTC, from both clocks read together.

    It moves when the wall clock is set, so the caller decides from which moment's clocks it is taken.
    """
    return now_us - boot_us


def boot_id(*, proc: Path = PROC) -> str:
    """The kernel's id of this boot; empty where it cannot be read, as a process identity has it."""
    try:
        return (proc / "sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError):
        return ""


def read_stat(pid: int, *, proc: Path = PROC) -> Stat | Missing:
    """A process' short name, state and start; Missing says ``gone`` or ``unreadable: ...``."""
    raw = _read(f"{proc}/{pid}/stat")
    if isinstance(raw, Missing):
        return _hidden(pid) if raw is GONE and proc == PROC else raw
    opening, closing = raw.find(b"("), raw.rfind(b")")
    fields = raw[closing + 2 :].split()
    ticks = fields[_STARTTIME] if len(fields) > _STARTTIME else b""
    if not 0 < opening < closing or not ticks.isdigit() or len(ticks) > 20:
        # a process that dies while it is read can give an empty file
        return GONE if not raw else Missing("unreadable: stat is not as proc(5) has it")
    return Stat(
        comm=raw[opening + 1 : closing].decode("utf-8", "replace"),
        state=fields[0].decode("ascii", "replace"),
        start_ticks=int(ticks),
        is_ending=fields[_FLAGS].isdigit() and bool(int(fields[_FLAGS]) & _PF_EXITING),
    )


def start_ticks(pid: int, *, proc: Path = PROC) -> int | Missing:
    """Field 22 of ``/proc/PID/stat``: one small read."""
    stat = read_stat(pid, proc=proc)
    return stat if isinstance(stat, Missing) else stat.start_ticks


def read_identity(
    pid: int,
    *,
    booted_at_us: int | None = None,
    proc: Path = PROC,
    user_name: Callable[[int], str] | None = None,
) -> ProcessReading | Missing:
    """Who a process is.

    Args:
        pid: process id.
        booted_at_us: wall-clock time of boot, as :func:`boot_wall_us` gives it; the machine's clocks by default.
        proc: where ``/proc`` is; another folder in tests.
        user_name: login name of a uid; the machine's own by default.

    Returns:
        The reading, or Missing: ``gone``, or ``unreadable: ...`` for a living process.
    """
    before = read_stat(pid, proc=proc)
    if isinstance(before, Missing):
        return before
    folder = f"{proc}/{pid}"
    unread: list[str] = []
    exe, raw, mark = _program(folder)
    if isinstance(exe, Missing):
        unread.append(f"exe: {exe.reason}")
    cwd = _link(f"{folder}/cwd")
    if isinstance(cwd, Missing):
        unread.append(f"cwd: {cwd.reason}")
    uid = _uid(_part(f"{folder}/status", unread))
    lines = _part(f"{folder}/cgroup", unread)
    after = read_stat(pid, proc=proc)
    if isinstance(after, Missing):
        return after
    if after.start_ticks != before.start_ticks or (after.is_ending and not raw):
        return GONE
    if booted_at_us is None:
        clock = SystemClock()
        booted_at_us = boot_wall_us(clock.now_us(), clock.boot_us())
    membership = _membership(lines, unread)
    text = identity_text(
        exe="" if isinstance(exe, Missing) else exe,
        args=raw,
        cwd="" if isinstance(cwd, Missing) else cwd,
        user=(user_name or login_name)(int(uid)) if uid else "",
        uid=uid,
        membership=membership,
        comm=after.comm,
    )
    return ProcessReading(
        pid=pid,
        start_ticks=after.start_ticks,
        started_at_us=booted_at_us + after.start_ticks * SECOND_US // TICKS_PER_SECOND,
        text=text,
        program_mark=mark,
        unread=tuple(unread),
    )


def identity_text(
    *, exe: str, args: bytes, cwd: str, user: str, uid: str, membership: cgroup.CgroupIdentity, comm: str
) -> IdentityText:
    """What was read of a process as the text of its identity, redacted. Empty where it was not read.

    Args:
        args: the command line, words ended by NUL; without one ``[comm]`` stands for it, as ps(1) shows it.
    """
    words = args.rstrip(b"\0").decode("utf-8", "replace").split("\0") if args else []
    return IdentityText(
        exe=exe,
        command=redact(words) or redact((f"[{comm}]",)),
        cwd=redact((cwd,)) if cwd.startswith("/") else "",
        user=user,
        uid=uid,
        cgroup=membership.path,
        unit=membership.unit,
        container=membership.container_id,
        runtime=membership.runtime,
        pod_uid=membership.pod_uid,
        slurm_job=membership.slurm_job_id,
    )


@lru_cache(maxsize=1024)
def login_name(uid: int) -> str:
    """The login name of a uid on this machine, or ``uid:N``. Kept, since a directory service may be slow."""
    try:
        return pwd.getpwuid(uid).pw_name
    except (KeyError, OverflowError):
        return f"uid:{uid}"


def program_mark(pid: int, *, proc: Path = PROC) -> int:
    """A number that changes when a process becomes another program: two small reads. As in a reading."""
    return _program(f"{proc}/{pid}")[2]


def presence(pid: int, *, proc: Path = PROC) -> tuple[int, int] | Missing:
    """A mark of the process behind a pid, at a fifth of the price of its stat file; Missing says ``gone``.

    The kernel makes a folder's inode for one process and never hands it to a later one of the same pid
    (fs/proc/base.c), so an unchanged mark proves the same process. A changed one proves nothing: inodes
    are made anew after memory was short. A zombie keeps its folder.
    """
    try:
        found = os.stat(f"{proc}/{pid}")  # noqa: PTH116 - once a process and look, and three times as fast
    except OSError:
        return GONE
    return found.st_ino, found.st_ctime_ns


def _program(folder: str) -> tuple[str | Missing, bytes, int]:
    """Executable, raw command line, and a mark of both: read again when an exec falls between the two."""
    for _ in range(3):
        exe = _link(f"{folder}/exe")
        raw = _part(f"{folder}/cmdline", [])
        if _link(f"{folder}/exe") == exe:
            break
    return exe, raw, hash((str(exe), raw))


def _link(path: str) -> str | Missing:
    """Where ``exe`` or ``cwd`` points."""
    try:
        link = os.readlink(path)  # noqa: PTH115 - ten times a second, and a fifth of the price
    except OSError as error:  # a kernel thread has none, a foreign user's is not shown, a zombie's is gone
        return Missing(_why(error))
    return os.fsencode(link).decode("utf-8", "replace").removesuffix(" (deleted)")


def _membership(lines: bytes, unread: list[str]) -> cgroup.CgroupIdentity:
    try:
        return _member_of(lines)
    except BadInput as error:
        unread.append(f"cgroup: {error.message}")
        return cgroup.CgroupIdentity()


@lru_cache(maxsize=256)
def _member_of(lines: bytes) -> cgroup.CgroupIdentity:
    """What a cgroup file says. Kept: what a unit or a pod starts, one after the other, shares it."""
    return cgroup.parse(lines.decode("utf-8", "replace").split("\n"))


def _uid(status: bytes) -> str:
    """The real user id, the first of the four in ``Uid:``; empty where there is none."""
    found = _UID.search(status)
    return found[1].decode("ascii") if found else ""


def _part(path: str, unread: list[str]) -> bytes:
    """One file of a process, empty where it cannot be read; then the reason is added to ``unread``."""
    raw = _read(path)
    if isinstance(raw, Missing):
        unread.append(f"{path.rpartition('/')[2]}: {raw.reason}")
        return b""
    return raw


def _read(path: str) -> bytes | Missing:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except (FileNotFoundError, ProcessLookupError, NotADirectoryError):
        return GONE
    except OSError as error:
        return Missing(f"unreadable: {_why(error)}")
    try:
        chunk = raw = os.read(descriptor, LARGEST_READ)
        while len(chunk) >= _PAGE_PART and len(raw) < LARGEST_READ:
            chunk = os.read(descriptor, LARGEST_READ - len(raw))
            raw += chunk
    except ProcessLookupError:  # it died between open and read
        return GONE
    except OSError as error:
        return Missing(f"unreadable: {_why(error)}")
    finally:
        os.close(descriptor)
    return raw


def _hidden(pid: int) -> Missing:
    """Tells a process that is gone from one that a mount with ``hidepid`` does not show."""
    try:
        os.kill(pid, 0)
    except PermissionError:
        return Missing("unreadable: /proc is mounted with hidepid")
    except (OSError, OverflowError):
        return GONE
    return GONE


def _why(error: OSError) -> str:
    return (error.strerror or str(error)).lower()
