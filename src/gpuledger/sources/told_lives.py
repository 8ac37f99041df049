"""What of a process was not told yet: its programs, and what it held, each from when to when.

In: :class:`Life`. Out: :class:`Named`, :class:`Unread`, :class:`Opened`. What is told is marked as told.
"""

from __future__ import annotations

from collections.abc import Iterator

from gpuledger.model.missing import Missing
from gpuledger.model.readings import Named, Opened, Unread
from gpuledger.sources.process_lives import Life

_STILL_LIVES = Missing("still alive")


def program_of(life: Life, place: int, seen_at_us: int) -> Named | Unread:
    """One program of a process."""
    text = life.ran[place].as_text() if life.ran else None
    number = life.let_go + max(place, 0)
    if text is None:
        return Unread(
            pid=life.pid, start_ticks=life.start_ticks, exec_number=number, started_at_us=life.born_us,
            seen_at_us=seen_at_us,
        )  # fmt: skip
    return Named(
        pid=life.pid, start_ticks=life.start_ticks, exec_number=number, started_at_us=life.born_us,
        seen_at_us=seen_at_us, text=text,
    )  # fmt: skip


def untold(life: Life, now_us: int) -> list[Named | Unread]:
    """What was not told of a process: each program from when it ran, the last also as of now or of its end."""
    is_over = life.died_us is not None
    if not life.ran or (life.told == len(life.ran) and life.told_dead == is_over):
        return []
    until_us = now_us if life.died_us is None else life.died_us
    told = [program_of(life, place, life.ran[place].since_us) for place in range(life.told, len(life.ran))]
    if len(life.ran) == 1 and not life.let_go:
        told = []  # its life is that of its one program: the row below says both
    told.append(program_of(life, len(life.ran) - 1, until_us))
    life.told, life.told_dead = len(life.ran), is_over
    return told


def untold_opens(life: Life) -> Iterator[Opened]:
    """Opens of devices not told yet, and ends not told yet of those that were."""
    for hold in life.holds:
        ended_us = life.died_us if hold.let_go_us is None else hold.let_go_us
        if hold.told is (ended_us is not None):
            continue
        hold.told = ended_us is not None
        yield Opened(
            pid=life.pid,
            start_ticks=life.start_ticks,
            minor=hold.minor,
            opened_at_us=hold.opened_us,
            exited_at_us=_STILL_LIVES if ended_us is None else ended_us,
            is_found=hold.is_found,
            number=hold.number,
            became=hold.let_go_us is not None,
        )
    life.holds = [hold for hold in life.holds if hold.let_go_us is None]
