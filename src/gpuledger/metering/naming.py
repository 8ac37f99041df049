"""The name of a context: the process identity whose life contains its start, joined by pid AND time.

A process is (host, boot id, pid, start ticks). Its proven life runs from its start P to the last moment
L that an identity row or a look saw it; a look that found it gone proves its death by D. Pids come
back, so for a context that started at S, of the processes with its pid on its host:

1. a look that is part of the context names it: the agent saw that very process on that device;
2. a process is possible when P <= S + 2 s, S <= L + 2 s (or two polls, where that is longer), and S < D;
3. one is possible: that one. Several: the one born last, if it was born more than 2 s before S and no
   other was seen alive after its birth. Born within 2 s of S, it can be too young: then the one
   other that was seen alive at or after S, and where none was, nobody: ``pid-ambiguous``. Born after
   S, it is too young unless the clocks disagree: then every earlier life not proven dead is possible;
4. without a kernel identity, claims count: a pid map or the driver's process name, seen within the
   context (2 s either side); a pid map before a process name; two different claims are ``pid-ambiguous``.

A context without a start can be any process born early enough, whose life is long enough for it, and
that no look proves dead before the context can have ended: only one possible answer is an answer
(:meth:`Names.sometime`).

Possible identities with the same text are one answer. Of a process that became another program
(exec), the program in force at S counts. Kernel facts beat claims throughout.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Container, Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import NamedTuple

from gpuledger.metering.stints import ProcessKey
from gpuledger.model.missing import Missing
from gpuledger.model.moments import CLOCK_TOLERANCE_US
from gpuledger.model.reasons import UNATTRIBUTED, Cause
from gpuledger.model.rows import ProcessIdentity, Sighting


class Name(NamedTuple):
    """The answer to "who": a subject, the process behind it, and the identity row that says so.

    Args:
        subject: key of the identity text, or ``unattributed:CAUSE``.
        process: (boot_id, start_ticks); ("", 0) where unknown.
        ref: the identity row; empty where unnamed.
    """

    subject: str
    process: tuple[str, int]
    ref: str


def unnamed(cause: Cause, process: tuple[str, int] = ("", 0)) -> Name:
    """No name, and why."""
    return Name(UNATTRIBUTED + cause, process, "")


@dataclass(slots=True)
class Life:
    """One process, as far as its life is proven.

    Args:
        process: (boot_id, start_ticks).
        born_us: its start; ``None`` where no row knows it.
        last_us: the last moment it was seen alive.
        dead_us: the look that found it gone; ``None`` while none did.
        programs: its rows as (exec number, seen at, text key, reference), sorted.
    """

    process: tuple[str, int]
    born_us: int | None
    last_us: int
    dead_us: int | None
    programs: list[tuple[int, int, str, str]]

    def can_hold(self, length_us: int) -> bool:
        """Whether the life is long enough for a context; an unknown birth or death leaves room for any."""
        return (
            self.born_us is None
            or self.dead_us is None
            or self.dead_us - self.born_us >= length_us - CLOCK_TOLERANCE_US
        )

    def may_live(self, at_us: int) -> bool:
        """Whether no look proves that it was gone by then."""
        return self.dead_us is None or at_us < self.dead_us

    def name(self, at_us: int) -> Name:
        """The program in force at a moment: the highest exec number read by then, else the lowest."""
        programs = self.programs
        program = programs[0]
        if len(programs) > 1:
            program = max((row for row in programs if row[1] <= at_us), default=program)
        if not program[2]:
            return Name(UNATTRIBUTED + Cause.IDENTITY_UNREADABLE, self.process, program[3])
        return Name(program[2], self.process, program[3])


_CLAIM_RANK = {"pid-map": 1, "nvidia-smi": 2}
_KERNEL_RANK = 0
_OTHER_CLAIM_RANK = 3


@dataclass(slots=True)
class Lives:
    """The processes known to have had one pid.

    Args:
        each: in the order of birth.
        births: their births, or first sights.
        furthest: for each the latest moment that it or an earlier one was seen alive.
    """

    each: tuple[Life, ...] = ()
    births: tuple[int, ...] = ()
    furthest: tuple[int, ...] = ()

    def until(self, at_us: int) -> tuple[Life, ...]:
        """Those born by ``at_us`` plus the tolerance."""
        return self.each[: bisect_right(self.births, at_us + CLOCK_TOLERANCE_US)]

    def around(self, at_us: int, late_us: int) -> list[Life]:
        """Those born by ``at_us`` plus the tolerance that were seen alive within ``late_us`` before it, or later."""
        found: list[Life] = []
        place = bisect_right(self.births, at_us + CLOCK_TOLERANCE_US) - 1
        while place >= 0 and self.furthest[place] >= at_us - late_us:
            if self.each[place].last_us >= at_us - late_us:
                found.append(self.each[place])
            place -= 1
        found.reverse()
        return found


_NO_LIVES = Lives()
_AMBIGUOUS = unnamed(Cause.PID_AMBIGUOUS)


class Names:
    """Every identity, ready to be asked.

    Args:
        identities: all identities of the pids in question, any order, duplicates allowed.
        sightings: looks that prove lives and deaths.
        interval_us: the interval of the polling of a host at a moment; 0 where it did not poll.
    """

    def __init__(
        self,
        identities: Iterable[ProcessIdentity],
        sightings: Iterable[Sighting],
        interval_us: Callable[[str, int], int],
    ) -> None:
        self._interval_us = interval_us
        self._rows: dict[tuple[str, int], list[ProcessIdentity]] = {}
        self._claims: dict[tuple[str, int], list[ProcessIdentity]] = {}
        for row in identities:
            kind = self._claims if _is_claim(row) else self._rows
            kind.setdefault((row.host, row.pid), []).append(row)
        self._seen_us: dict[ProcessKey, int] = {}
        self._dead_us: dict[ProcessKey, int] = {}
        self._deaths_us: dict[tuple[str, int], set[int]] = {}
        for look in sightings:
            if look.process_died and not isinstance(look.gone_at_us, Missing):
                self._deaths_us.setdefault((look.host, look.pid), set()).add(look.gone_at_us)
            if look.start_ticks:
                key = (look.host, look.boot_id, look.pid, look.start_ticks)
                self._seen_us[key] = max(look.until_us, self._seen_us.get(key, look.until_us))
                if look.process_died and not isinstance(look.gone_at_us, Missing):
                    self._dead_us[key] = min(look.gone_at_us, self._dead_us.get(key, look.gone_at_us))
        self._lives: dict[tuple[str, int], Lives] = {}

    def lives(self, host: str, pid: int) -> Lives:
        """The processes known to have had a pid."""
        rows = self._rows.get((host, pid))
        if rows is None:
            return _NO_LIVES
        if len(rows) == 1:  # by far the most; not kept, so that memory does not grow with the pids asked for
            life = self._life(rows[0])
            return Lives((life,), (_birth(life),), (life.last_us,))
        found = self._lives.get((host, pid))
        if found is None:
            found = self._lives[host, pid] = self._build(rows)
        return found

    def born(self, key: ProcessKey) -> int | None:
        """When a process started; ``None`` where no identity says."""
        host, boot_id, pid, start_ticks = key
        return next(
            (life.born_us for life in self.lives(host, pid).each if life.process == (boot_id, start_ticks)), None
        )

    def died(self, key: ProcessKey) -> bool:
        """Whether a look proved the death of a process."""
        return key in self._dead_us

    def _life(self, row: ProcessIdentity) -> Life:
        """What one row, and the looks at its process, prove."""
        born_us = row.started_at_us
        last_us = row.seen_at_us
        dead_us: int | None = None
        if self._seen_us:
            key = (row.host, row.boot_id, row.pid, row.start_ticks)
            last_us = max(last_us, self._seen_us.get(key, last_us))
            dead_us = self._dead_us.get(key)
        return Life(
            (row.boot_id, row.start_ticks),
            None if isinstance(born_us, Missing) else born_us,
            last_us,
            dead_us,
            [(row.exec_number, row.seen_at_us, row.text_key, row.ref)],
        )

    def _build(self, rows: Iterable[ProcessIdentity]) -> Lives:
        lives: dict[tuple[object, ...], Life] = {}
        for row in rows:
            other = self._life(row)
            # one that ended before its start could be read is told from the next by the moment it was met
            key = other.process if row.start_ticks else (*other.process, other.born_us)
            life = lives.setdefault(key, other)
            if life is not other:
                births = [born for born in (life.born_us, other.born_us) if born is not None]
                life.born_us = min(births, default=None)
                life.last_us = max(life.last_us, other.last_us)
                life.programs += other.programs
        for life in lives.values():
            life.programs.sort()
        each = tuple(sorted(lives.values(), key=lambda life: (_birth(life), life.process)))
        births_us = tuple(_birth(life) for life in each)
        return Lives(each, births_us, tuple(accumulate((life.last_us for life in each), max)))

    def of_process(self, host: str, pid: int, process: tuple[str, int], at_us: int) -> Name | None:
        """The name of a process that a look saw; ``None`` where no identity row of it is there."""
        return next((life.name(at_us) for life in self.lives(host, pid).each if life.process == process), None)

    def knows_any(self, host: str, pid: int, processes: Container[tuple[str, int]]) -> bool:
        """Whether an identity row of one of these processes is there."""
        return any(life.process in processes for life in self.lives(host, pid).each)

    def proven(self, host: str, pid: int, processes: Container[tuple[str, int]], start_us: int) -> Name | None:
        """The name by the looks that are part of a context, unless they contradict its start or each other."""
        found = [
            life
            for life in self.lives(host, pid).each
            if life.process in processes
            and _birth(life) <= start_us + CLOCK_TOLERANCE_US
            and (life.dead_us is None or start_us <= life.dead_us + CLOCK_TOLERANCE_US)
        ]
        return _one_answer([life.name(start_us) for life in found])

    def at(self, host: str, pid: int, start_us: int, end_us: int) -> Name | None:
        """The name of what held a device from ``start_us`` to ``end_us``; ``None`` where nobody is possible."""
        lives = self.lives(host, pid)
        if len(lives.each) == 1:  # by far the most
            life = lives.each[0]
            late_us = start_us - life.last_us
            if (
                lives.births[0] <= start_us + CLOCK_TOLERANCE_US
                and life.may_live(start_us)
                and (late_us <= CLOCK_TOLERANCE_US or late_us <= 2 * self._interval_us(host, start_us))
            ):
                return life.name(start_us)
        elif lives.each:
            around = lives.around(start_us, max(CLOCK_TOLERANCE_US, 2 * self._interval_us(host, start_us)))
            possible = [life for life in around if life.may_live(start_us)]
            if possible and _birth(possible[-1]) > start_us:  # then any life before it will do as well
                possible = [life for life in lives.until(start_us) if life.may_live(start_us)]
            if possible:
                return _born_last(possible, start_us)
        return self.claimed(host, pid, start_us, end_us)

    def claimed(self, host: str, pid: int, start_us: int, end_us: int) -> Name | None:
        """The name that somebody claimed for a pid within a span; ``None`` without a claim."""
        return self._claim(
            host, pid, lambda row: start_us - CLOCK_TOLERANCE_US <= row.seen_at_us <= end_us + CLOCK_TOLERANCE_US
        )

    def sometime(
        self, host: str, pid: int, start_us: int, read_us: int, *, length_us: int = 0, lasted_us: int | None = None
    ) -> Name | None:
        """The name of a context without a start; ``None`` where nobody is possible, which is ``no-start-time``.

        Every process can be it that was born early enough, lived long enough and was not proven dead by
        ``lasted_us``; only one possible answer is an answer. A claim counts that is not older than the
        last death of the pid by ``lasted_us``, because it was about that process. A pid map is older or
        younger than the file it goes with, so its times do not count otherwise.

        Args:
            start_us: the context had begun by then.
            read_us: it had ended by then, or was seen alive.
            length_us: how long it lasted.
            lasted_us: no look by then can have proved the death of its process; ``None`` where the
                source does not look regularly (one dump), so that it can have ended at any time.
        """
        possible = [
            life.name(start_us)
            for life in self.lives(host, pid).each
            if _birth(life) <= start_us + CLOCK_TOLERANCE_US
            and (life.born_us is not None or life.programs[0][1] <= read_us + CLOCK_TOLERANCE_US)
            and (lasted_us is None or life.may_live(lasted_us))
            and life.can_hold(length_us)
        ]
        if possible:
            return _one_answer(possible) or _AMBIGUOUS
        deaths = [] if lasted_us is None else [at for at in self._deaths_us.get((host, pid), ()) if at <= lasted_us]
        buried_us = max(deaths, default=None)

        def fits(row: ProcessIdentity) -> bool:
            if buried_us is not None and row.seen_at_us <= buried_us:
                return False
            return row.method == "pid-map" or row.seen_at_us <= read_us + CLOCK_TOLERANCE_US

        return self._claim(host, pid, fits)

    def _claim(self, host: str, pid: int, fits: Callable[[ProcessIdentity], bool]) -> Name | None:
        """The strongest claim that fits; two different ones of one strength are ambiguous."""
        rows = [row for row in self._claims.get((host, pid), ()) if fits(row)]
        if not rows:
            return None
        rank = min(_rank(row) for row in rows)
        rows.sort(key=lambda row: (row.seen_at_us, row.start_ticks, row.boot_id, row.text_key, row.ref))
        return _one_answer([_claimed_name(row) for row in rows if _rank(row) == rank]) or _AMBIGUOUS


def _is_claim(row: ProcessIdentity) -> bool:
    """A row that no process start backs is somebody's word, whoever wrote it."""
    return row.method in _CLAIM_RANK or (row.grade != "kernel" and isinstance(row.started_at_us, Missing))


def _rank(row: ProcessIdentity) -> int:
    return _KERNEL_RANK if row.grade == "kernel" else _CLAIM_RANK.get(row.method, _OTHER_CLAIM_RANK)


def _claimed_name(row: ProcessIdentity) -> Name:
    return Name(row.text_key, (row.boot_id, row.start_ticks), row.ref)


def _birth(life: Life) -> int:
    """The birth, or the first sight of a process whose birth no row knows."""
    return life.programs[0][1] if life.born_us is None else life.born_us


def _one_answer(names: Sequence[Name]) -> Name | None:
    """The one subject that all names give (by its first row), else ``None``."""
    if not names or any(name.subject != names[0].subject for name in names):
        return None
    return names[0]


def _born_last(possible: Sequence[Life], start_us: int) -> Name:
    """Rule 3 of the module. ``possible`` is in the order of birth."""
    last = possible[-1]
    if len(possible) == 1:
        return last.name(start_us)
    others = possible[:-1]
    if not any(life.last_us > _birth(last) + CLOCK_TOLERANCE_US for life in others):
        if start_us - _birth(last) > CLOCK_TOLERANCE_US:
            return last.name(start_us)
        alive = [life for life in others if life.last_us >= start_us]
        if len(alive) == 1:
            return alive[0].name(start_us)
    same = _one_answer([life.name(start_us) for life in possible])
    return _AMBIGUOUS if same is None else last.name(start_us)
