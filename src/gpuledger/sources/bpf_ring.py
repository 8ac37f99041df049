"""Memory shared with the kernel: the ring of records, read where they lie, and its counters.

In: the descriptor of a map of type ``BPF_MAP_TYPE_RINGBUF``. Out: where committed records lie. Layout and
protocol are the kernel's (``kernel/bpf/ringbuf.c``): a page with our position, a page with the kernel's,
then the ring, mapped twice in a row so that no record is torn.
"""

from __future__ import annotations

import mmap
import select
import threading
from typing import Self

_BUSY, _DISCARDED, _LENGTH = 1 << 31, 1 << 30, (1 << 30) - 1
_HEADER = 8

MOST_AT_ONCE = 4096
"""Records between two times of giving room back."""


class Counters:
    """The global variables of an object: a page that the kernel writes and this process reads.

    Args:
        descriptor: of the map; stays the caller's.
    """

    def __init__(self, descriptor: int) -> None:
        self._page = mmap.mmap(descriptor, mmap.PAGESIZE, mmap.MAP_SHARED, mmap.PROT_READ)
        self._numbers = memoryview(self._page).cast("@Q")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._numbers.release()
        self._page.close()

    def first(self) -> int:
        """The first of them."""
        return self._numbers[0]


class Ring:
    """One ring, read by one thread at a time.

    Args:
        descriptor: of the map; stays the caller's.
        size: bytes, as the map was made.

    Attributes:
        memory: kernel's position, then the ring twice; offsets of :meth:`pending` are into this.
    """

    def __init__(self, descriptor: int, size: int) -> None:
        page = mmap.PAGESIZE
        self._mask = size - 1
        self._page = page
        self._ours = mmap.mmap(descriptor, page, mmap.MAP_SHARED, mmap.PROT_READ | mmap.PROT_WRITE, offset=0)
        self.memory = mmap.mmap(descriptor, page + 2 * size, mmap.MAP_SHARED, mmap.PROT_READ, offset=page)
        # items of a cast view are read and written by one instruction; struct with "=" goes byte by byte
        self._consumed = memoryview(self._ours).cast("@Q")
        self._produced = memoryview(self.memory).cast("@Q")
        self._headers = memoryview(self.memory).cast("@I")
        self._position = self._next = self._consumed[0]
        self._barrier = threading.Lock()
        self._epoll = select.epoll()
        self._epoll.register(descriptor, select.EPOLLIN)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._epoll.close()
        for view in (self._consumed, self._produced, self._headers):
            view.release()
        self._ours.close()
        self.memory.close()

    def wait(self, timeout_s: float) -> bool:
        """Whether records are there, after this long at most."""
        return bool(self._epoll.poll(timeout_s))

    def produced(self) -> int:
        """The kernel's position now: what is before it has been sent."""
        return self._produced[0]

    def pending(self, until: int) -> list[tuple[int, int]]:
        """Offset and length of the next committed records sent before a position, at most :data:`MOST_AT_ONCE`.

        They may be read until :meth:`release`. Empty where none is left, or the next is still being written.
        """
        found: list[tuple[int, int]] = []
        headers, page, mask, position = self._headers, self._page, self._mask, self._position
        while position < until and len(found) < MOST_AT_ONCE:
            at = page + (position & mask)
            header = headers[at >> 2]
            if header & _BUSY:
                break
            length = header & _LENGTH
            if not header & _DISCARDED:
                found.append((at + _HEADER, length))
            position += (length + _HEADER + 7) & ~7
        self._next = position
        self._order()
        return found

    def release(self) -> None:
        """Give back the room of all that :meth:`pending` told of."""
        self._order()
        self._consumed[0] = self._position = self._next

    def _order(self) -> None:
        """Reads and writes before this are done before those after it, also on machines that reorder them (aarch64):
        a lock is taken and let go with the barriers that this asks for."""
        with self._barrier:
            pass
