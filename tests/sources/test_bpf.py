"""bpf(2) itself: asked with zeroes behind what is said, refusals as errno, and machines that are not known."""

from __future__ import annotations

import ctypes
import errno

import pytest

from gpuledger.errors import Unavailable
from gpuledger.sources import bpf
from gpuledger.sources.bpf import ATTRIBUTES, Command, address, system_call


def test_a_refusal_is_the_kernels_errno() -> None:
    """No such descriptor, or no right to ask: never an answer."""
    with pytest.raises(OSError, match="bpf MAP_LOOKUP: ") as raised:
        system_call()(Command.MAP_LOOKUP, bytearray(b"\xff" * 4))
    assert raised.value.errno in (errno.EBADF, errno.EPERM, errno.EINVAL, errno.ENOSYS)


def test_a_call_says_how_long_it_is() -> None:
    """What is not said is zero, and every command is of the same length."""
    asked = bytearray(b"\xff" * 4)
    with pytest.raises(OSError, match="bpf"):
        system_call()(Command.MAP_DELETE, asked)
    assert asked == b"\xff" * 4 + bytes(ATTRIBUTES - 4)


@pytest.mark.parametrize("machine", ["riscv64", "i686", "armv7l", ""])
def test_an_unknown_machine_is_refused(machine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A call's number differs from machine to machine; a wrong one would be another call."""
    monkeypatch.setattr(bpf.platform, "machine", lambda: "nothing")
    with pytest.raises(Unavailable) as raised:
        system_call(machine)
    assert (raised.value.code, raised.value.hint) == ("ebpf-machine", "gpuledger agent --watch connector")


def test_a_32_bit_python_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its pointers are not those of the kernel's structures."""
    monkeypatch.setattr(bpf.sys, "maxsize", 2**31 - 1)
    with pytest.raises(Unavailable, match="64 bits"):
        system_call("x86_64")


def test_an_address_is_where_the_bytes_are() -> None:
    """The kernel reads and writes there."""
    asked = bytearray(b"abc")
    place = address(asked)
    ctypes.memmove(place, b"x", 1)
    assert asked == b"xbc"
    assert ctypes.string_at(place, 3) == b"xbc"
