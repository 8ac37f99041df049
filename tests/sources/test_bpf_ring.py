"""The ring's protocol, with the kernel's side played by the test: busy, discarded and wrapped records."""

from __future__ import annotations

import mmap
import os
import struct
from collections.abc import Iterator

import pytest

from gpuledger.sources import bpf_ring
from gpuledger.sources.bpf_ring import MOST_AT_ONCE, Counters, Ring

SIZE, PAGE = 4096 * 4, mmap.PAGESIZE
BUSY, DISCARDED = 1 << 31, 1 << 30


class Epoll:
    """Stands in for epoll, which takes no ordinary file."""

    def __init__(self) -> None:
        self.ready: list[tuple[int, int]] = []

    def register(self, descriptor: int, events: int) -> None:
        """Any descriptor."""

    def poll(self, timeout: float) -> list[tuple[int, int]]:
        """As it was told."""
        return self.ready

    def close(self) -> None:
        """Nothing."""


class KernelSide:
    """A file laid out like a ring map, written as the kernel writes.

    Args:
        ring: the other side.
        memory: the file's bytes.
    """

    def __init__(self, ring: Ring, memory: mmap.mmap) -> None:
        self.ring = ring
        self.memory = memory
        self.position = 0

    def send(self, text: bytes, mark: int = 0) -> int:
        """One record, at the kernel's position; where it lies."""
        at = 2 * PAGE + self.position % SIZE
        self.memory[at : at + 8 + len(text)] = struct.pack("=II", len(text) | mark, 0) + text
        tail = at + 8 + len(text) - (2 * PAGE + SIZE)
        if tail > 0:  # the pages are mapped twice
            self.memory[2 * PAGE : 2 * PAGE + tail] = self.memory[2 * PAGE + SIZE : 2 * PAGE + SIZE + tail]
        self.position += (8 + len(text) + 7) & ~7
        self.memory[PAGE : PAGE + 8] = struct.pack("=Q", self.position)
        return at

    @property
    def given_back(self) -> int:
        """How far the reader says it has read."""
        return int(struct.unpack("=Q", self.memory[:8])[0])

    def texts(self) -> list[bytes]:
        """What the reader sees."""
        return [
            self.ring.memory[at : at + length] for at, length in self.ring.pending(self.ring.produced())
        ]  # fmt: skip


@pytest.fixture
def kernel(monkeypatch: pytest.MonkeyPatch) -> Iterator[KernelSide]:
    """An empty ring and who fills it."""
    monkeypatch.setattr(bpf_ring.select, "epoll", Epoll)
    descriptor = os.memfd_create("ring")
    os.ftruncate(descriptor, 2 * PAGE + 2 * SIZE)
    with mmap.mmap(descriptor, 0) as memory, Ring(descriptor, SIZE) as ring:
        yield KernelSide(ring, memory)
    os.close(descriptor)


def test_records_come_in_order_and_room_is_given_back_when_told(kernel: KernelSide) -> None:
    """Until then the kernel does not write over what is being read."""
    for text in (b"one", b"twotwotwo", b""):
        kernel.send(text)
    assert kernel.texts() == [b"one", b"twotwotwo", b""]
    assert kernel.given_back == 0
    kernel.ring.release()
    assert kernel.given_back == kernel.position == 16 + 24 + 8
    assert kernel.texts() == []


def test_a_record_that_is_being_written_is_waited_for(kernel: KernelSide) -> None:
    """And nothing behind it is read before, since order is all that tells causes from effects."""
    kernel.send(b"one")
    at = kernel.send(b"two", BUSY)
    kernel.send(b"three")
    assert kernel.texts() == [b"one"]
    kernel.ring.release()
    assert kernel.texts() == []
    kernel.memory[at : at + 4] = struct.pack("=I", 3)
    assert kernel.texts() == [b"two", b"three"]


def test_a_discarded_record_is_passed_over(kernel: KernelSide) -> None:
    """Its room is given back with the others."""
    kernel.send(b"one", DISCARDED)
    kernel.send(b"two")
    assert kernel.texts() == [b"two"]
    kernel.ring.release()
    assert kernel.given_back == kernel.position


def test_a_long_run_goes_round_the_end(kernel: KernelSide) -> None:
    """Records that lie across the end are read in one piece, from the second mapping."""
    for number in range(500):
        text = b"%04d" % number * 57
        kernel.send(text)
        # the test's file is not mapped twice by itself: what the reader sees behind the end is what was written there
        assert kernel.texts() == [text]
        kernel.ring.release()
    assert kernel.given_back == kernel.position > 6 * SIZE


def test_room_is_given_back_while_reading(kernel: KernelSide) -> None:
    """A reader who is far behind does not keep all of the ring until it is done."""
    for _ in range(SIZE // 16):
        kernel.send(b"x")
    until = kernel.ring.produced()
    count, at_once = 0, []
    while places := kernel.ring.pending(until):
        at_once.append(len(places))
        count += len(places)
        kernel.ring.release()
    assert count == SIZE // 16
    assert max(at_once) <= MOST_AT_ONCE


def test_waiting_says_whether_something_is_there(kernel: KernelSide) -> None:
    """Once the time is over, or at once."""
    assert kernel.ring.wait(0) is False
    kernel.ring._epoll.ready = [(0, 1)]  # type: ignore[attr-defined]
    assert kernel.ring.wait(0) is True


def test_a_counter_is_read_where_the_kernel_writes_it() -> None:
    """No call is made, and the figure is that of now."""
    descriptor = os.memfd_create("counters")
    os.ftruncate(descriptor, PAGE)
    with mmap.mmap(descriptor, 0) as memory, Counters(descriptor) as counters:
        assert counters.first() == 0
        memory[:8] = struct.pack("=Q", 2**40 + 1)
        assert counters.first() == 2**40 + 1
    os.close(descriptor)
