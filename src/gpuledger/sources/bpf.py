"""bpf(2): the one system call through which programs, maps and links of the kernel are made.

In: a command and its attributes as ``linux/bpf.h`` lays them out. Out: a file descriptor or 0, and whatever
the kernel wrote into the attributes. Nothing is needed but the C library that Python already has.
"""

from __future__ import annotations

import ctypes
import os
import platform
import sys
from collections.abc import Callable
from enum import IntEnum

from gpuledger.errors import Unavailable

ATTRIBUTES = 128
"""Bytes handed over with each call: more than any command used here has. Zeroes behind what a kernel knows are fine."""

_NUMBERS = {"x86_64": 321, "aarch64": 280}
"""The call's number (``asm/unistd_64.h``, ``asm-generic/unistd.h``). Both are little-endian, as the object is."""


class Command(IntEnum):
    """The commands used here (``enum bpf_cmd``)."""

    MAP_CREATE = 0
    MAP_LOOKUP = 1
    MAP_UPDATE = 2
    MAP_DELETE = 3
    MAP_NEXT_KEY = 4
    PROGRAM_LOAD = 5
    PROGRAM_RUN = 10
    INFO = 15
    TRACEPOINT_OPEN = 17
    LINK_CREATE = 28
    ITERATOR_CREATE = 33


Call = Callable[[Command, bytearray], int]
"""What makes the call: :func:`system_call`'s, or a test's own."""


def system_call(machine: str | None = None) -> Call:
    """The call on this machine. It raises OSError with the kernel's errno.

    Args:
        machine: as uname(2) names it; this one by default.

    Raises:
        Unavailable: ``ebpf-machine`` where the call's number is not known.
    """
    machine = machine or platform.machine()
    number = _NUMBERS.get(machine)
    if number is None or sys.maxsize <= 2**32:
        raise Unavailable(
            "ebpf-machine",
            f"kernel programs are not made for this machine ({machine}): only for x86_64 and aarch64, 64 bits",
            hint="gpuledger agent --watch connector",
        )
    syscall = ctypes.CDLL(None, use_errno=True).syscall
    syscall.restype = ctypes.c_long
    syscall.argtypes = (ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_long)

    def call(command: Command, attributes: bytearray) -> int:
        attributes.extend(bytes(ATTRIBUTES - len(attributes)))
        answer: int = syscall(number, command, address(attributes), ATTRIBUTES)
        if answer < 0:
            errno = ctypes.get_errno()
            raise OSError(errno, f"bpf {command.name}: {os.strerror(errno)}")
        return answer

    return call


def address(of: bytearray) -> int:
    """Where it lies in memory, for as long as it lives and keeps its length."""
    return ctypes.addressof((ctypes.c_char * len(of)).from_buffer(of))
