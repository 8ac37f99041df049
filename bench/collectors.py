"""The contenders of the watcher's race, each a process of its own: ``collectors.py KIND``, until SIGTERM.

``watcher-ebpf`` and ``watcher-connector`` are the product's: source, thread, memory, and a look each second.
``bare-ebpf`` and ``bare-connector`` are the least that tells who ran: read the event, unpack its head, keep the
command line, as the spike did that proved the way. The bare eBPF reader reads the product's own programs, so both
are sent the same. Prints READY, and at the end a line of JSON: CPU from then to then, events, and losses.
"""

from __future__ import annotations

import ctypes
import json
import mmap
import os
import resource
import select
import signal
import socket
import struct
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from naming_box import cpu_split

from gpuledger.clock import SystemClock
from gpuledger.sources.bpf import system_call
from gpuledger.sources.bpf_object import BpfObject, read_built
from gpuledger.sources.connector import ConnectorSource
from gpuledger.sources.ebpf import RING_BYTES, EbpfSource
from gpuledger.sources.ebpf_host import NVIDIA_MAJOR, EbpfHost
from gpuledger.sources.ebpf_records import EXIT, HEAD
from gpuledger.sources.event_watcher import EventWatcher
from gpuledger.sources.process_events import EventSource

_STOP: list[int] = []
_NETLINK_CONNECTOR, _SO_RCVBUFFORCE = 11, 33
_FORK, _EXEC, _EXIT = 1, 2, 0x80000000


class Bill:
    """CPU time of this process, and of one beside it, from now on."""

    def __init__(self, beside: int | None) -> None:
        self._beside = beside
        self._began = self._now()

    def _now(self) -> tuple[float, float]:
        used = resource.getrusage(resource.RUSAGE_SELF)
        user, system = cpu_split(self._beside) if self._beside else (0.0, 0.0)
        return used.ru_utime + user, used.ru_stime + system

    def total(self) -> dict[str, float]:
        """Seconds so far."""
        (user, system), (user_before, system_before) = self._now(), self._began
        return {"user_s": user - user_before, "system_s": system - system_before}


def ready(beside: int | None = None) -> Bill:
    """Say that the race may begin."""
    print("READY", flush=True)
    return Bill(beside)


def watch(source: EventSource, beside: int | None) -> dict[str, Any]:
    """The product's way."""
    clock = SystemClock()
    watcher = EventWatcher(source, clock=clock)
    watcher.look((), clock.now_us())
    bill = ready(beside)
    told = 0
    lost: list[str] = []
    while True:
        stopping = bool(_STOP)
        names = watcher.look((), clock.now_us())
        told += len({(named.pid, named.start_ticks) for named in names.fresh})
        lost += [names.lost] if names.lost else []
        if stopping:
            break
        time.sleep(1)
    found = {**bill.total(), "told": told, "lost": "; ".join(lost)}
    watcher.close()
    return found


def bare_ring(descriptor: int, size: int) -> Iterator[bytes]:
    """Records of a ring, copied out one by one; ends when there is none for now, and goes on when asked again."""
    page, mask = mmap.PAGESIZE, size - 1
    ours = mmap.mmap(descriptor, page, mmap.MAP_SHARED, mmap.PROT_READ | mmap.PROT_WRITE, offset=0)
    theirs = mmap.mmap(descriptor, page + 2 * size, mmap.MAP_SHARED, mmap.PROT_READ, offset=page)
    consumed, unpack, wait = ctypes.c_uint64.from_buffer(ours), struct.Struct("=I").unpack_from, select.epoll()
    wait.register(descriptor, select.EPOLLIN)
    at = consumed.value
    while not _STOP:
        wait.poll(0.1)
        until = struct.unpack_from("=Q", theirs, 0)[0]
        while at < until:
            place = page + (at & mask)
            header = unpack(theirs, place)[0]
            if header & 0x80000000:
                break
            length = header & 0x3FFFFFFF
            if not header & 0x40000000:
                yield theirs[place + 8 : place + 8 + length]
            at += (length + 8 + 7) & ~7
            consumed.value = at
            if at >= until:
                until = struct.unpack_from("=Q", theirs, 0)[0]


def bare_ebpf() -> dict[str, Any]:
    """The spike's way: each record copied, its head unpacked, its command line kept with the times."""
    kernel = BpfObject(read_built(), call=system_call(), entries={"ring": RING_BYTES})
    kernel.put("majors", NVIDIA_MAJOR)
    for program in ("on_exit", "on_exec"):
        kernel.attach_tracepoint(program)
    kernel.attach_cgroup("on_open", EbpfHost().cgroup_root())
    bill = ready()
    kept: list[tuple[object, ...]] = []
    events = exits = 0
    now, unpack = time.monotonic_ns, HEAD.unpack_from
    for record in bare_ring(kernel.maps["ring"], RING_BYTES):
        at = now()
        events += 1
        if len(record) < HEAD.size:
            exits += len(record) == EXIT.size
            continue
        head = unpack(record)
        args = record[HEAD.size : HEAD.size + head[2]]
        kept.append((head[3], args, head[2] > 0, head[12] > 0, head[5] > 0, head[4], at, now()))
    return {**bill.total(), "events": events, "told": sum(row[0] > 0 for row in kept), "lost": ""}


def bare_connector() -> dict[str, Any]:
    """The spike's way: a netlink socket, and at each exec command line, cgroup and start from ``/proc``."""
    opened = socket.socket(socket.AF_NETLINK, socket.SOCK_DGRAM, _NETLINK_CONNECTOR)
    opened.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, 32 * 1024 * 1024)
    opened.bind((0, 1))
    opened.send(struct.pack("=IHHIIIIIIHHI", 40, 3, 0, 0, 0, 1, 1, 0, 0, 4, 0, 1))
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    except PermissionError:
        print("no real-time priority here", file=sys.stderr)
    bill = ready()
    kept: list[tuple[object, ...]] = []
    events = spells = 0
    now, event = time.monotonic_ns, struct.Struct("=IIQIIII").unpack_from
    poll = select.poll()
    poll.register(opened, select.POLLIN)
    opened.setblocking(False)
    while not _STOP:
        poll.poll(100)
        while True:
            try:
                told = opened.recv(4096)
            except BlockingIOError:
                break
            except OSError:
                spells += 1
                continue
            at = now()
            what, _, _, first, second, third, fourth = event(told, 36)
            if what == _EXEC:
                args, cgroup, start = read_proc(second)
                kept.append((second, args, args is not None, cgroup is not None, start is not None, start, at, now()))
                events += 1
            elif what == _EXIT:
                events += first == second
            elif what == _FORK:
                events += third == fourth
    return {**bill.total(), "events": events, "told": sum(bool(row[2]) for row in kept), "lost": spells or ""}


def read_proc(pid: int) -> tuple[bytes | None, bytes | None, int | None]:
    """Command line, cgroup and start of a process; None where it is gone."""
    place = f"/proc/{pid}/"
    args, cgroup, stat = read_file(place + "cmdline"), read_file(place + "cgroup"), read_file(place + "stat")
    start = int(stat[stat.rindex(b")") + 2 :].split()[19]) if stat else None
    return args, cgroup, start


def read_file(path: str) -> bytes | None:
    """One read of one file."""
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except OSError:
        return None
    try:
        return os.read(descriptor, 4096)
    except OSError:
        return None
    finally:
        os.close(descriptor)


def child() -> int:
    """The one process that this one has started."""
    return int(Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()[0])


def main(kind: str) -> None:
    """Run one contender."""
    signal.signal(signal.SIGTERM, lambda number, _: _STOP.append(number))
    if kind == "watcher-ebpf":
        found = watch(EbpfSource(), None)
    elif kind == "watcher-connector":
        source = ConnectorSource()
        found = watch(source, child())
    else:
        found = {"bare-ebpf": bare_ebpf, "bare-connector": bare_connector}[kind]()
    print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
