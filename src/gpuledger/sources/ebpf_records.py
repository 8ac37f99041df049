"""Records of the kernel's part, as events: the layout of ``struct head`` in ``kernel/processes.bpf.c``.

In: bytes and where records lie in them. Out: :class:`ProcessEvent`. What the kernel could not tell whole stays empty.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from mmap import mmap
from struct import Struct

from gpuledger.sources.process_events import Happened, ProcessEvent, Program
from gpuledger.sources.procfs import TICKS_PER_SECOND

TICK_NS = 1_000_000_000 // TICKS_PER_SECOND
"""Kernels make field 22 of ``/proc/PID/stat`` of nanoseconds so: divided, the rest dropped (``nsec_to_clock_t``)."""

HEAD = Struct("@BBHIQQIIIIHHHH")
"""kind, flags, args_len, tgid; boot_ns, start_ns; major, minor; parent, uid; lengths of exe, cwd, cgroup; hierarchy."""
SHORT = Struct("@BBHIQQII")
"""Up to the minor number: an OPEN by a process whose program was told, an EXEC that found no place to tell it in."""
EXIT = Struct("@BBHIQQ")
"""Up to the start."""

PROGRAM, ARGS_READ, ARGS_CUT, EXE_WHOLE, CWD_WHOLE, CGROUP_WHOLE = 1, 2, 4, 8, 16, 32
"""What ``flags`` says."""

_KINDS = {int(kind): kind for kind in Happened}
_EMPTY_V2 = b"0::/\n"
_Fields = tuple[Happened, int, int, int, int, int, int, Program | None]


class Records:
    """Reads records; remembers the paths of late, which are mostly the same.

    Args:
        hierarchies: cgroup hierarchies, number to controllers; asked again when a number is not known.
    """

    def __init__(self, hierarchies: Callable[[], Mapping[int, bytes]]) -> None:
        self._hierarchies = hierarchies
        self._controllers = dict(hierarchies())
        self._path = lru_cache(maxsize=4096)(path_of)
        self._cgroup = lru_cache(maxsize=4096)(self._cgroup_lines)

    def events(self, memory: bytes | mmap, places: Iterable[tuple[int, int]]) -> list[ProcessEvent]:
        """The events of records in the ring.

        Args:
            memory: where they lie.
            places: offset and length of each.
        """
        # the tuples are made without their class's own constructor: half of the time goes there otherwise
        make, kinds, exit_head, short_head = tuple.__new__, _KINDS, EXIT.unpack_from, SHORT.unpack_from
        found: list[ProcessEvent] = []
        note = found.append
        fields: _Fields
        for at, length in places:
            if length == EXIT.size:
                kind, _, _, pid, boot_ns, start_ns = exit_head(memory, at)
                fields = (kinds[kind], boot_ns // 1000, pid, start_ns // TICK_NS, 0, 0, 0, None)
            elif length == SHORT.size:
                kind, _, _, pid, boot_ns, start_ns, major, minor = short_head(memory, at)
                fields = (kinds[kind], boot_ns // 1000, pid, start_ns // TICK_NS, 0, major, minor, None)
            else:
                fields = self._whole(memory, at)[0]
            note(make(ProcessEvent, fields))
        return found

    def holds(self, told: bytes) -> list[ProcessEvent]:
        """The events of a snapshot, whose records stand one behind the other, one for each open descriptor.

        Their programs have no command line: a kernel reads only the running process's memory.
        """
        found: dict[tuple[int, int, int, int], ProcessEvent] = {}
        at = 0
        while at < len(told):
            fields, length = self._whole(told, at)
            event = ProcessEvent(*fields)
            found.setdefault((event.pid, event.start_ticks, event.major, event.minor), event)
            at += length
        return list(found.values())

    def _whole(self, memory: bytes | mmap, at: int) -> tuple[_Fields, int]:
        """One record with its program, and its length."""
        (
            kind, flags, args_len, pid, boot_ns, start_ns, major, minor, parent, uid,
            exe_len, cwd_len, cgroup_len, hierarchy,
        ) = HEAD.unpack_from(memory, at)  # fmt: skip
        args_at = at + HEAD.size
        exe_at = args_at + args_len
        cwd_at = exe_at + exe_len
        cgroup_at = cwd_at + cwd_len
        end = cgroup_at + cgroup_len
        program = None
        if flags & PROGRAM:
            args = memory[args_at:exe_at]
            if flags & ARGS_CUT:
                args = args[: args.rfind(b"\0") + 1]  # a secret that is cut in half is not known for one
            fields = (
                self._path(memory[exe_at:cwd_at]) if flags & EXE_WHOLE else b"",
                args,
                self._path(memory[cwd_at:cgroup_at]) if flags & CWD_WHOLE else b"",
                uid,
                self._cgroup(hierarchy, memory[cgroup_at:end]) if flags & CGROUP_WHOLE else b"",
            )
            program = tuple.__new__(Program, fields)
        told: _Fields = (_KINDS[kind], boot_ns // 1000, pid, start_ns // TICK_NS, parent, major, minor, program)
        return told, end - at

    def _cgroup_lines(self, hierarchy: int, names: bytes) -> bytes:
        """The lines of ``/proc/PID/cgroup`` that tell most: v2's, and one of v1 where v2 tells nothing."""
        path = path_of(names)
        if not hierarchy:
            return b"0::%b\n" % path
        if hierarchy not in self._controllers:
            self._controllers = dict(self._hierarchies())
        return b"%d:%b:%b\n%b" % (hierarchy, self._controllers.get(hierarchy, b""), path, _EMPTY_V2)


def path_of(names: bytes) -> bytes:
    """The path of names that stand innermost first, each ended by NUL; none is the root."""
    parts = names.split(b"\0")[-2::-1]
    return b"/" + b"/".join(parts)
