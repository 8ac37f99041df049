"""Which identities are kept: of processes that touched a device, and no others.

In: what a watcher tells, who is alive on a device, which finished rows are new, who opened a device. Out:
:class:`ProcessIdentity` rows. A process that has only the pid of a row is remembered for a while, because
it may open a device, or its row may come, later.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import replace

from gpuledger.model.identity import IdentityText
from gpuledger.model.moments import CLOCK_TOLERANCE_US
from gpuledger.model.readings import Named, NamesLook, Unread
from gpuledger.model.rows import ProcessIdentity

MOST_UNTOUCHED = 4096
"""Told processes that touched nothing yet, remembered at most."""


class Identities:
    """Decides for one host what of names goes into the ledger.

    Args:
        host, boot_id: as in a :class:`ProcessIdentity`.
        key_of: gives the ledger's key of an identity text.
    """

    def __init__(self, *, host: str, boot_id: str, key_of: Callable[[IdentityText], str]) -> None:
        self._host = host
        self._boot_id = boot_id
        self._key_of = key_of
        self._untouched: deque[Named | Unread] = deque(maxlen=MOST_UNTOUCHED)

    def look(
        self,
        names: NamesLook,
        living: Collection[int],
        starts: Mapping[int, list[int]],
        touched: Collection[tuple[int, int]],
        *,
        at_us: int,
    ) -> Iterator[ProcessIdentity]:
        """The identities that one look makes worth keeping.

        Args:
            living: pids with a context alive.
            starts: by pid, the starts of finished rows that are new, microseconds UTC.
            touched: (pid, start_ticks) of processes that opened a device.
        """

        def is_kept(told: Named | Unread) -> bool:
            alive = names.current.get(told.pid)
            return (
                (told.pid in living and (alive is None or alive.start_ticks == told.start_ticks))
                or (told.pid, told.start_ticks) in touched
                or _fits(told.started_at_us, starts.get(told.pid, ()))
            )

        fresh: tuple[Named | Unread, ...] = (*names.fresh, *names.unread)
        untouched = (*self._untouched, *fresh) if self._concerns(living, starts, touched) else fresh
        waiting = self._untouched if untouched is fresh else deque(maxlen=MOST_UNTOUCHED)
        kept: set[tuple[int, int]] = set()
        for told in untouched:
            if is_kept(told):
                kept.add((told.pid, told.start_ticks))
                yield self._identity(told, names.method)
            else:
                waiting.append(told)
        self._untouched = waiting
        for pid, started in starts.items():
            alive = names.current.get(pid)
            # a row of a process that goes on: it was alive until now, which no row of it may say yet
            if alive is not None and (pid, alive.start_ticks) not in kept and _fits(alive.started_at_us, started):
                yield self._identity(replace(alive, seen_at_us=at_us), names.method)

    def _concerns(
        self, living: Collection[int], starts: Mapping[int, list[int]], touched: Collection[tuple[int, int]]
    ) -> bool:
        """Whether one of those remembered may have touched a device now."""
        return any(
            told.pid in living or told.pid in starts or (told.pid, told.start_ticks) in touched
            for told in self._untouched
        )

    def _identity(self, told: Named | Unread, method: str) -> ProcessIdentity:
        """The row; of a program of which nothing was read without a text: no name, and that is known."""
        return ProcessIdentity(
            host=self._host,
            boot_id=self._boot_id,
            pid=told.pid,
            start_ticks=told.start_ticks,
            exec_number=told.exec_number,
            started_at_us=told.started_at_us,
            seen_at_us=told.seen_at_us,
            method=method,
            grade="kernel",
            text_key="" if isinstance(told, Unread) else self._key_of(told.text),
        )


def _fits(started_us: int, starts: Collection[int]) -> bool:
    """Whether a process is old enough for one of these rows."""
    return any(started_us <= start_us + CLOCK_TOLERANCE_US for start_us in starts)
