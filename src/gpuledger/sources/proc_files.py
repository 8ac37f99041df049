"""What a process runs, read within the moment of its exec: raw, and with as few system calls as will do.

In: a pid that the kernel has just told of. Out: :class:`ProcessStat` and :class:`Program`, or None for a
process that died first. Its folder is opened once and its files through it: the kernel ties an open folder
of ``/proc`` to one process and never to a later one of the same pid (fs/proc/base.c), so whatever comes
through it is that process' own. :mod:`gpuledger.sources.procfs` reads what lives long, and says what it could
not read; here a process may be gone within a millisecond.
"""

from __future__ import annotations

import os
from typing import NamedTuple

from gpuledger.sources.process_events import Program

_FOLDER = os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_CLOEXEC

LARGEST_READ = 64 * 1024
"""Bytes read of one file, as of a process that lives long: sixteen times what is kept of a command line."""

TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
"""The unit of field 22 of ``stat`` (proc(5)); 100 on every common kernel."""

_GONE = (FileNotFoundError, ProcessLookupError, PermissionError)
"""The process is no more; or it is hidden, by a mount with ``hidepid`` or a security module."""

_STATE, _PARENT, _FLAGS, _THREADS, _STARTTIME = (field - 3 for field in (3, 4, 9, 20, 22))
"""Fields of ``stat`` (proc(5)), counted from the state, the first after the name's closing parenthesis."""

_EXITING = 0x4
"""PF_EXITING among the flags (include/linux/sched.h)."""


class ProcessStat(NamedTuple):
    """The little of ``/proc/PID/stat`` that events need.

    Attributes:
        start_ticks: field 22: start since boot in clock ticks.
        parent: pid of the parent.
        threads: threads that have not ended; the first one counts until its process is reaped.
        is_zombie: its first thread has ended; others may go on.
        is_exiting: the same, or about to.
    """

    start_ticks: int
    parent: int
    threads: int
    is_zombie: bool
    is_exiting: bool


def read_stat(pid: int, *, proc: str = "/proc") -> ProcessStat | None:
    """The stat of a process, living or a zombie; None where there is no such process."""
    return _parsed(_read(f"{proc}/{pid}/stat"))


def read_program(pid: int, latest_ticks: int, *, proc: str = "/proc") -> tuple[ProcessStat, Program] | None:
    """What a process runs.

    Args:
        pid: process id.
        latest_ticks: it was born no later; whoever has its pid and is younger is another process.
        proc: where ``/proc`` is; another folder in tests.

    Returns:
        None where it died before its command line and its user could be read.
    """
    try:
        folder = os.open(f"{proc}/{pid}", _FOLDER)
    except _GONE:
        return None
    try:
        stat = _parsed(_read("stat", folder))
        if stat is None or stat.start_ticks > latest_ticks:
            return None
        args = _read("cmdline", folder)  # the first to go, with the memory of a dying process
        cgroup = _read("cgroup", folder)
        uid = _uid(_read("status", folder))
        if args is None or cgroup is None or uid is None:
            return None
        cwd = _link(b"cwd", folder)
        exe = _link(b"exe", folder)
        if not exe:
            if not args:
                return None
            if not cgroup.startswith(b"0::"):
                cgroup = _certain_groups(cgroup, folder)
        return stat, Program(exe.removesuffix(b" (deleted)"), args, cwd, uid, cgroup)
    finally:
        os.close(folder)


def _certain_groups(cgroup: bytes, folder: int) -> bytes:
    """The lines of ``cgroup`` without those that a death may have made wrong.

    Version 1 hierarchies, and no others, show a process that exits in their root (kernel/cgroup/cgroup.c,
    ``proc_cgroup_show``). Who still has an executable after the reading had not begun to; of anyone else it
    is asked.
    """
    stat = _parsed(_read("stat", folder))
    if stat is not None and not stat.is_exiting:
        return cgroup
    return b"".join(line for line in cgroup.splitlines(keepends=True) if line.startswith(b"0::"))


def _parsed(raw: bytes | None) -> ProcessStat | None:
    if not raw:  # gone, or dying: such a file can be empty
        return None
    fields = raw[raw.rfind(b")") + 2 :].split(None, _STARTTIME + 1)
    state = fields[_STATE]
    is_zombie = state in (b"Z", b"X")
    return ProcessStat(
        int(fields[_STARTTIME]),
        int(fields[_PARENT]),
        int(fields[_THREADS]),
        is_zombie,
        is_zombie or bool(int(fields[_FLAGS]) & _EXITING),
    )


def _uid(status: bytes | None) -> int | None:
    """The real user id, the first of the four in ``Uid:``."""
    at = status.find(b"\nUid:\t") if status else -1
    return int(status[at + 6 : status.index(b"\t", at + 6)]) if status and at >= 0 else None


def _link(name: bytes, folder: int) -> bytes:
    """Where ``exe`` or ``cwd`` points; empty where it may not be seen, or no longer exists."""
    try:
        return os.readlink(name, dir_fd=folder)
    except _GONE:
        return b""


def _read(path: str, folder: int | None = None) -> bytes | None:
    """One file in one read: each of these is made whole at once (``single_open``). None where it is gone."""
    try:
        descriptor = os.open(path, _FILE, dir_fd=folder)
    except _GONE:
        return None
    try:
        return os.read(descriptor, LARGEST_READ)
    except ProcessLookupError:  # it died between open and read
        return None
    finally:
        os.close(descriptor)
