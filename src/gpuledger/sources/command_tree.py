"""Which processes are a command's: the one that was started and all its descendants, scan after scan.

In: ``/proc``. Out: :class:`Member` values, by (pid, start ticks). This process is made the one that
orphans fall to, so that a command whose parent ends first stays in the tree. What is born and dies
between two scans is met only if it ends as our own child; the longest time between two scans says what
can have been missed.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from gpuledger.clock import Clock
from gpuledger.errors import Unavailable
from gpuledger.model.missing import Missing
from gpuledger.model.moments import SECOND_US
from gpuledger.model.receipt import Member
from gpuledger.sources import procfs
from gpuledger.sources.procfs import PROC, TICKS_PER_SECOND

_PR_SET_CHILD_SUBREAPER = 36
"""include/uapi/linux/prctl.h; Linux 3.4."""
_INIT_PID_NAMESPACE = 0xEFFFFFFC
"""PROC_PID_INIT_INO in include/linux/proc_ns.h: the inode of the init pid namespace is fixed."""

INIT_NAMESPACE = Path("/proc/self/ns/pid")


def become_subreaper() -> None:
    """Let orphaned descendants fall to this process instead of to init.

    Raises:
        Unavailable: ``no-subreaper``.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0):
        reason = os.strerror(ctypes.get_errno())
        raise Unavailable("no-subreaper", f"orphans of the command cannot be followed: {reason}", hint="Linux 3.4")


def has_the_drivers_pids(namespace: Path = INIT_NAMESPACE) -> bool:
    """Whether pids here are those of the host, which the driver speaks of."""
    try:
        return namespace.stat().st_ino == _INIT_PID_NAMESPACE
    except OSError:
        return False


@dataclass(slots=True)
class _Seen:
    """A member while it is followed; ``seen_us`` and ``is_alive`` as in :class:`Member`."""

    born_us: int
    seen_us: int
    is_alive: bool = True


class CommandTree:
    """The tree below one process of ours.

    Args:
        root: the command's own process, a child of this one's main thread.
        clock: both clocks.
        proc: where ``/proc`` is; another folder in tests.
        own: this process, whose main thread orphans fall to.
    """

    def __init__(self, root: int, *, clock: Clock, proc: Path = PROC, own: int | None = None) -> None:
        self._clock = clock
        self._proc = proc
        self._own = os.getpid() if own is None else own
        self._seen: dict[tuple[int, int], _Seen] = {}
        self._scanned_us = 0
        self._has_lists = (proc / str(self._own) / "task" / str(self._own) / "children").exists()
        self.blind_us = 0
        """The longest time between two scans: what lived shorter can have been missed."""
        self.note(root)

    def scan(self, also: Iterable[int] = ()) -> int:
        """Look at the whole tree once; returns what it cost, microseconds.

        Args:
            also: pids known otherwise to be the command's, such as those in its cgroup.
        """
        began_us = self._clock.boot_us()
        found = {key for pid in {*self._below(), *also} if (key := self.note(pid)) is not None}
        for key, one in self._seen.items():
            one.is_alive = key in found
        ended_us = self._clock.boot_us()
        if self._scanned_us:
            self.blind_us = max(self.blind_us, ended_us - self._scanned_us)
        self._scanned_us = began_us
        return ended_us - began_us

    def note(self, pid: int) -> tuple[int, int] | None:
        """Remember one process of the command; None where it is gone or hidden. A zombie is still remembered."""
        stat = procfs.read_stat(pid, proc=self._proc)
        if isinstance(stat, Missing):
            return None
        key, now_us = (pid, stat.start_ticks), self._clock.now_us()
        one = self._seen.get(key)
        if one is None:
            booted_us = procfs.boot_wall_us(now_us, self._clock.boot_us())
            born_us = booted_us + stat.start_ticks * SECOND_US // TICKS_PER_SECOND
            self._seen[key] = _Seen(born_us=born_us, seen_us=now_us, is_alive=stat.is_alive)
        else:
            one.seen_us, one.is_alive = now_us, stat.is_alive
        return key if stat.is_alive else None

    @property
    def members(self) -> tuple[Member, ...]:
        """Every process of the command that was seen, by pid."""
        return tuple(
            Member(pid=pid, start_ticks=ticks, born_us=one.born_us, seen_us=one.seen_us, is_alive=one.is_alive)
            for (pid, ticks), one in sorted(self._seen.items())
        )

    def _below(self) -> list[int]:
        """Pids of all descendants of this process' main thread."""
        parents = None if self._has_lists else _children_by_parent(self._proc)
        found: list[int] = []
        waiting = self._children(self._own, parents, only_main=True)
        known = {self._own}
        while waiting:
            pid = waiting.pop()
            if pid in known:
                continue
            known.add(pid)
            found.append(pid)
            waiting += self._children(pid, parents)
        return found

    def _children(self, pid: int, parents: dict[int, list[int]] | None, *, only_main: bool = False) -> list[int]:
        if parents is not None:
            return list(parents.get(pid, ()))
        folder = f"{self._proc}/{pid}/task"
        try:
            # the thread that looks may run nvidia-smi, which is no descendant of the command
            threads = [str(pid)] if only_main else os.listdir(folder)  # noqa: PTH208 - thirty times a second
        except OSError:
            return []
        children: list[int] = []
        for thread in threads:
            try:
                with open(f"{folder}/{thread}/children", "rb") as listed:  # noqa: PTH123 - the same
                    children += [int(child) for child in listed.read().split()]
            except OSError:  # the thread has ended
                continue
        return children


def _children_by_parent(proc: Path) -> dict[int, list[int]]:
    """Children by parent from every process' stat, where the kernel keeps no lists (CONFIG_PROC_CHILDREN)."""
    found: dict[int, list[int]] = {}
    for entry in os.scandir(proc):
        if not entry.name.isdigit():
            continue
        try:
            with open(f"{proc}/{entry.name}/stat", "rb") as stat:  # noqa: PTH123 - once a process and scan
                fields = stat.read().rpartition(b")")[2].split()
        except OSError:
            continue
        if len(fields) > 1:
            found.setdefault(int(fields[1]), []).append(int(entry.name))
    return found
