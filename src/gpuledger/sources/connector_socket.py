"""The kernel's process connector: a socket on which every birth, exec and death of a process is told.

In: nothing. Out: a :class:`Connection`, bound, listening and answered, or :class:`Unavailable` with the reason
why this host, container or user cannot have one. The protocol is that of ``linux/cn_proc.h`` and
``linux/connector.h``: one message a datagram, in the machine's own byte order.
"""

from __future__ import annotations

import ctypes
import errno
import importlib
import importlib.util
import os
import select
import socket
import struct
import sys
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import ModuleType

from gpuledger.clock import SystemClock
from gpuledger.errors import Unavailable

NONE, FORK, EXEC, EXIT = 0, 0x1, 0x2, 0x80000000
"""``enum proc_cn_event``: an answer to us, and the events that are asked for."""

EVERYTHING = frozenset((FORK, EXEC, EXIT))

EVENT_AT = 36
"""Where ``struct proc_event`` starts: behind a netlink header of 16 bytes and a connector header of 20."""

EVENT = struct.Struct("=IIQIIII")
"""What, which CPU, nanoseconds of the monotonic clock, and four words that depend on what."""

LONGEST_DATAGRAM = 4096

BUFFER_BYTES = 32 * 1024 * 1024
"""Asked of the kernel, which gives twice as much for its own bookkeeping: a storm of 20,000 processes fits."""

ANSWER_US = 1_000_000
"""The kernel answers at once or never."""

_CN_IDX_PROC = _CN_VAL_PROC = 1
_LISTEN, _IGNORE = 1, 2
_NETLINK_CONNECTOR, _NLMSG_DONE = 11, 3
_ACK = struct.Struct("=I")
_ACK_AT = 28
"""Of the connector header. The kernel answers with one more than it was sent; its sequence number is its own."""
_SO_RCVBUFFORCE, _SO_ATTACH_FILTER = 33, 26

_INITIAL = {"pid": 0xEFFFFFFC, "user": 0xEFFFFFFD, "time": 0xEFFFFFFA}
"""Numbers of the first namespaces, the same on every kernel (include/linux/proc_ns.h).

The connector is mute to any other pid or user namespace (``cn_proc_mcast_ctl``); another time namespace has
other clocks than the events.
"""

_LIBRARY = "pyroute2"
_MODULE = "pyroute2.netlink.connector.cn_proc"
_INSIDE = "run the agent on the host itself, or its container with: --pid=host --network=host --cap-add=NET_ADMIN"


class Connection:
    """A listening socket of the process connector.

    Args:
        kinds: which of FORK, EXEC and EXIT are told.
        buffer_bytes: how much the kernel may keep for us.

    Attributes:
        overruns: spells in which the buffer was full and events were lost, so far.

    Raises:
        Unavailable: there is none here; the code says why.
    """

    def __init__(self, kinds: frozenset[int] = EVERYTHING, *, buffer_bytes: int = BUFFER_BYTES) -> None:
        for name, number in _INITIAL.items():
            _assert_initial(name, number)
        self.overruns = 0
        self._kinds = kinds
        self._early: deque[bytes] = deque()
        library = _library()
        with _foreign_errors():
            self._socket = _bound(library)
        self._poll = select.poll()
        self._poll.register(self._socket, select.POLLIN)
        try:
            _attach_filter(self._socket, self._kinds, with_threads=False)
            number = int.from_bytes(os.urandom(3), "big")
            with _foreign_errors():
                listen, self._ignore = (_control(library, action, number) for action in (_LISTEN, _IGNORE))
            self._send(listen)
            self._await_answer(number + 1)
            _resize(self._socket, buffer_bytes)
        except BaseException:
            self._socket.close()
            raise

    def fileno(self) -> int:
        """The descriptor, for poll(2)."""
        return self._socket.fileno()

    def receive(self) -> bytes | None:
        """The next datagram; None where there is none yet."""
        if self._early:
            return self._early.popleft()
        while True:
            try:
                return self._socket.recv(LONGEST_DATAGRAM)
            except BlockingIOError:
                return None
            except OSError as error:
                if error.errno != errno.ENOBUFS:
                    raise
                # told once for each spell, which lasts until the buffer is empty (net/netlink/af_netlink.c)
                self.overruns += 1

    def tell_of_threads(self, told: bool) -> None:
        """Whether the end of each thread is told, or only that of the first thread of each process."""
        _attach_filter(self._socket, self._kinds, with_threads=told)

    def close(self) -> None:
        """Stop listening. Kernels before 6.6 go on counting a listener that only closes its socket."""
        with suppress(OSError):  # it goes away all the same
            self._socket.send(self._ignore)
        self._socket.close()

    def _send(self, message: bytes) -> None:
        try:
            self._socket.send(message)
        except ConnectionRefusedError as error:
            raise Unavailable(
                "connector-namespace",
                "the kernel's process connector is only to be had in the host's own network namespace",
                hint=_INSIDE,
            ) from error
        except PermissionError as error:
            raise _forbidden() from error

    def _await_answer(self, number: int) -> None:
        """The kernel answers to all listeners at once: ours is the one with our number."""
        clock = SystemClock()
        until_us = clock.boot_us() + ANSWER_US
        early: deque[bytes] = deque()
        while (left_us := until_us - clock.boot_us()) > 0:
            datagram = self.receive()
            if datagram is None:
                self._poll.poll(left_us / 1000)
                continue
            what, _, _, refusal, *_ = EVENT.unpack_from(datagram, EVENT_AT)
            if what != NONE:
                early.append(datagram)
            elif _ACK.unpack_from(datagram, _ACK_AT)[0] == number:
                if not refusal:
                    self._early = early
                    return
                raise Unavailable(
                    "connector-unsupported",
                    f"the kernel's process connector refuses to tell of processes: {os.strerror(refusal)}",
                    hint="gpuledger agent --watch poll",
                )
        raise Unavailable(
            "connector-unsupported",
            "the kernel's process connector does not answer: this kernel is built without CONFIG_PROC_EVENTS",
            hint="gpuledger agent --watch poll",
        )


def _assert_initial(name: str, number: int) -> None:
    try:
        found = Path(f"/proc/self/ns/{name}").stat().st_ino
    except FileNotFoundError:  # a kernel without such namespaces: nobody is in another one
        return
    if found != number:
        raise Unavailable(
            "connector-namespace",
            f"the kernel's process connector is mute here: this is not the host's own {name} namespace",
            hint=_INSIDE,
        )


def _library() -> ModuleType:
    """The connector of pyroute2, without what else its package brings in.

    Importing the package runs its list of all it has: 186 modules, 12.6 MB and 0.3 s (0.9.7). The connector's
    own needs are 22 modules, 4.6 MB and 0.06 s; so the package is named to the import system, but not run.
    """
    if _MODULE in sys.modules:
        return sys.modules[_MODULE]
    spec = importlib.util.find_spec(_LIBRARY)
    if spec is None:
        raise Unavailable(
            "connector-library",
            "the process connector needs the Python package pyroute2, which is not installed",
            hint="pip install pyroute2",
        )
    is_there = _LIBRARY in sys.modules
    sys.modules.setdefault(_LIBRARY, importlib.util.module_from_spec(spec))
    try:
        return importlib.import_module(_MODULE)
    except ImportError as error:
        raise _unfit(error) from error
    finally:
        if not is_there:  # whoever imports the package after us shall have all of it
            sys.modules.pop(_LIBRARY)


@contextmanager
def _foreign_errors() -> Iterator[None]:
    """Turns what the library raises into our words."""
    try:
        yield
    except (AttributeError, TypeError, struct.error) as error:
        raise _unfit(error) from error
    except PermissionError as error:
        raise _forbidden() from error
    except OSError as error:
        raise Unavailable(
            "connector-unsupported",
            f"the kernel has no process connector: {error.strerror or error}",
            hint="gpuledger agent --watch poll",
        ) from error


def _bound(library: ModuleType) -> socket.socket:
    """A socket of the connector's group, made and bound by the library, and its alone no longer.

    The library reads and parses within an event loop, at some 100 us a message and into a queue of its own,
    waits for answers without end, and hides why it could not bind. So it sets up, and is let go.
    """
    opened = library.ProcEventSocket()
    try:
        opened.bind()
        ours = socket.socket(fileno=os.dup(opened.fileno()))
    except KeyError as error:  # "no free address available", whatever it was: a plain socket is told what
        with socket.socket(socket.AF_NETLINK, socket.SOCK_DGRAM, _NETLINK_CONNECTOR) as plain:
            plain.bind((0, _CN_IDX_PROC))
        raise _unfit(error) from error
    finally:
        opened.close()
    ours.setblocking(False)
    return ours


def _resize(opened: socket.socket, size: int) -> None:
    try:
        opened.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, size)
    except PermissionError:  # then as much as net.core.rmem_max allows anyone
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, size)


def _attach_filter(opened: socket.socket, kinds: frozenset[int], *, with_threads: bool) -> None:
    """Let pass answers, execs, and births and ends of processes; threads come by the hundred in a GPU job.

    A socket filter does so on every kernel. The event mask of 6.6 knows nothing of threads, and would keep
    the kernel's answer from us. Words are compared as the filter loads them: big-endian (classic BPF).

    Args:
        kinds: of events; an answer passes always.
        with_threads: let the end of each thread pass too.
    """
    load, to_x, same_as, same_as_x, answer = 0x20, 0x07, 0x15, 0x1D, 0x06
    what, pid, tgid, child_pid, child_tgid = (EVENT_AT + at for at in (0, 16, 20, 24, 28))
    birth, accept, drop = 9, 13, 14
    steps = (  # code, value, where to go if the same, where otherwise
        (load, what, 0, 0),
        (same_as, _loaded(EXEC), accept if EXEC in kinds else drop, 2),
        (same_as, _loaded(NONE), accept, 3),
        (same_as, _loaded(FORK), birth if FORK in kinds else drop, 4),
        (same_as, _loaded(EXIT), 5 if EXIT in kinds else drop, drop),
        (load, pid, 0, 0),
        (to_x, 0, 0, 0),
        (load, tgid, 0, 0),
        (same_as_x, 0, accept, accept if with_threads else drop),
        (load, child_pid, 0, 0),
        (to_x, 0, 0, 0),
        (load, child_tgid, 0, 0),
        (same_as_x, 0, accept, drop),
        (answer, LONGEST_DATAGRAM, 0, 0),
        (answer, 0, 0, 0),
    )
    code = b"".join(
        struct.pack("=HBBI", step, *(target - here - 1 if target else 0 for target in targets), value)
        for here, (step, value, *targets) in enumerate(steps)
    )
    kept = ctypes.create_string_buffer(code, len(code))
    opened.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_FILTER, struct.pack("@HP", len(steps), ctypes.addressof(kept)))


def _loaded(event: int) -> int:
    """An event's word as a filter sees it."""
    return int.from_bytes(event.to_bytes(4, sys.byteorder), "big")


def _control(library: ModuleType, action: int, number: int) -> bytes:
    """``PROC_CN_MCAST_LISTEN`` or ``_IGNORE``, as a datagram."""
    message = library.proc_event_control()
    message["action"] = action
    message["idx"], message["val"], message["ack"], message["len"] = _CN_IDX_PROC, _CN_VAL_PROC, number, 4
    message["header"]["type"] = _NLMSG_DONE
    message["header"]["flags"] = message["header"]["sequence_number"] = message["header"]["pid"] = 0
    message.reset()
    message.encode()
    return bytes(message.data)


def _forbidden() -> Unavailable:
    return Unavailable(
        "connector-forbidden",
        "the kernel's process connector may not be heard by this user: it takes CAP_NET_ADMIN",
        hint="run the agent as root, or give it the capability: AmbientCapabilities=CAP_NET_ADMIN in its unit",
    )


def _unfit(error: Exception) -> Unavailable:
    return Unavailable(
        "connector-library",
        f"the installed pyroute2 is not one that gpuledger knows how to use: {error}",
        hint="pip install --upgrade gpuledger pyroute2",
    )
