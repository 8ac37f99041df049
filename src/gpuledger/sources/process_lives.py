"""One process as kernel events tell it: its programs, its opens, its end.

In: :class:`ProcessEvent`, and what ``/proc`` says. Out: :class:`Life`. Order is taken from the boot-time
clock, which nobody sets; what is told has the wall clock. Raw programs stay here until they are asked for.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath

from gpuledger.errors import BadInput
from gpuledger.model.identity import IdentityText
from gpuledger.model.moments import SECOND_US
from gpuledger.sources import cgroup
from gpuledger.sources.process_events import Happened, ProcessEvent, Program
from gpuledger.sources.procfs import TICKS_PER_SECOND, identity_text, login_name

MOST_PROGRAMS = 32
"""Programs of one process kept at most, the latest: one that execs itself for ever has no end of them."""

TICK_US = SECOND_US // TICKS_PER_SECOND
"""A start in ticks is cut: the process may be born so much later."""

MOST_HOLDS = 64
"""Holds of one process that wait to be told, at most: one that opens and execs for ever has no end of them."""

MONITORS = frozenset((
    "nvidia-smi", "nvidia-persistenced", "nvidia-modprobe", "nvidia-settings", "nv-hostengine", "dcgm-exporter",
    "dcgmi",
))  # fmt: skip
"""The driver's own tools, by the name of their executable: they open the nodes to look, and the driver drops them
from its accounting because they allocate nothing. Their opens are no touch."""


@dataclass(slots=True)
class Ran:
    """One program of a process.

    Args:
        since_us: wall clock of its exec, or when it was first seen.
        since_boot_us: the same by the boot-time clock.
        raw: as the kernel has it; None once it is read from ``/proc``, or where nothing is known of it.
        text: the same, redacted; made when it is first asked for.
        doubted: no program, but the moment from which an exec can have been lost.
    """

    since_us: int
    since_boot_us: int
    raw: Program | None
    text: IdentityText | None = None
    doubted: bool = False

    def as_text(self) -> IdentityText | None:
        """What is known of the program, redacted; None where nothing is."""
        if self.text is None and self.raw is not None:
            self.text = text_of(self.raw)
        return self.text

    def is_like(self, text: IdentityText) -> bool:
        """Whether what is known of it, told by an event, can be the beginning of what is known now."""
        mine = self.as_text()
        return mine is not None and _is_same_exe(mine, text) and text.command.startswith(mine.command)


@dataclass(slots=True)
class Hold:
    """One program's holding of one device's node, as far as events tell: from its first open to its exec or exit.

    Args:
        number: counted up over the life of the process.
        minor: of the device node.
        opened_us, opened_boot_us: first open, or when a snapshot found it, by either clock.
        is_found: a snapshot found it: it was opened earlier.
        let_go_us: the exec that let go of it, wall clock; None where the program did not become another one.
        told: whether its end was told; None where nothing of it was.
    """

    number: int
    minor: int
    opened_us: int
    opened_boot_us: int
    is_found: bool
    let_go_us: int | None = None
    told: bool | None = None


@dataclass(slots=True, eq=False)
class Life:
    """One process, as events told of it.

    Args:
        pid, start_ticks: the process; its ticks are 0 where it ended before they could be read.
        born_us, born_boot_us: its start, by either clock.
        seen_us: wall clock of the last event of it, or reading.
        ran: its programs, in order, the latest :data:`MOST_PROGRAMS`; empty where events never said.
        let_go: how many before them.
        holds: holdings of device nodes that are not over, or not told to their end, in order.
        held: how many there were.
        open_boot_us: its last open, by the boot-time clock.
        died_us, died_boot_us: its exit; None and 0 while it lives. Where no event told its exit, the last it was seen.
        exit_seen: an event told its exit.
        died_look: the number of the look that came next.
        told: how many of its programs were told.
        told_dead: that it ended was told.
        read_us: when ``/proc`` was last compared, wall clock; 0 before.
        read_boot_us: no later than that, by the boot-time clock.
        mark: what was compared.
    """

    pid: int
    start_ticks: int
    born_us: int
    born_boot_us: int
    seen_us: int = 0
    ran: list[Ran] = field(default_factory=list)
    let_go: int = 0
    holds: list[Hold] = field(default_factory=list)
    held: int = 0
    open_boot_us: int = 0
    died_us: int | None = None
    died_boot_us: int = 0
    exit_seen: bool = False
    died_look: int = 0
    told: int = 0
    told_dead: bool = False
    read_us: int = 0
    read_boot_us: int = 0
    mark: int | None = None

    @property
    def is_monitor(self) -> bool:
        """Whether its present program is one of the driver's own tools."""
        last = self.ran[-1] if self.ran else None
        if last is None:
            return False
        exe = last.raw.exe.decode("utf-8", "replace") if last.raw is not None else last.text.exe if last.text else ""
        return exe.rpartition("/")[2] in MONITORS

    def became(self, program: Ran) -> None:
        """It is another program from now on."""
        self.ran.append(program)
        if len(self.ran) > MOST_PROGRAMS:
            del self.ran[0]
            self.let_go += 1
            self.told = max(0, self.told - 1)

    def opens(self, minor: int, at_us: int, boot_us: int, *, is_found: bool) -> bool:
        """It asks for a device's node, or is found holding it; False where its present program has it already."""
        if any(hold.minor == minor and hold.let_go_us is None for hold in self.holds):
            return False
        self.holds.append(Hold(self.held, minor, at_us, boot_us, is_found))
        self.held += 1
        return True

    def lets_go(self, at_us: int, boot_us: int) -> bool:
        """An exec closes what its program had open (libcuda and NVML open with O_CLOEXEC); whether there was any.

        What is inherited all the same, the next snapshot finds.
        """
        closed = [hold for hold in self.holds if hold.let_go_us is None and hold.opened_boot_us <= boot_us]
        for hold in closed:
            hold.let_go_us = at_us
        return bool(closed)

    def settles_doubt(self) -> bool:
        """Its program is seen to be what it was: the doubt goes, where it was not told yet. False if it was."""
        if not self.ran or not self.ran[-1].doubted:
            return True
        if self.told >= len(self.ran):
            return False
        del self.ran[-1]
        return True

    def _is_still(self, at_us: int, boot_us: int) -> None:
        """Its program is the one last known: whatever was doubted, from now on that is sure."""
        if not self.settles_doubt():
            known = next((ran for ran in reversed(self.ran) if not ran.doubted), None)
            if known is not None:
                self.became(Ran(at_us, boot_us, known.raw, known.text))

    def renew(self, text: IdentityText, at_us: int, boot_us: int, *, most_titles: int) -> None:
        """Take over what ``/proc`` says of its program now: in an event's place until that is told, else as a new one.

        Args:
            at_us, boot_us: when it was read, by either clock.
            most_titles: the most programs of one executable that differ in their command line only.
        """
        known = next((ran for ran in reversed(self.ran) if not ran.doubted), None)
        last = None if known is None else known.as_text()
        if last is not None and known is self.ran[-1]:
            text = filled(text, last)  # no event told another program, so it is the same executable
        if known is None:
            self.became(
                Ran(at_us if self.ran else self.born_us, boot_us if self.ran else self.born_boot_us, None, text)
            )
            return
        is_untold = self.told < len(self.ran)
        if known is not self.ran[-1]:
            is_same = last is not None and _is_same_exe(last, text) and last.command == text.command
            if not is_same or not self.settles_doubt():
                self.became(Ran(at_us, boot_us, None, text))
            return
        if last is None:
            if is_untold:
                known.text = text
            else:
                self.became(Ran(at_us, boot_us, None, text))
            return
        is_same_exe = _is_same_exe(last, text)
        if is_same_exe and (last.command == text.command or len(self.ran) + self.let_go >= most_titles):
            return
        if is_untold and known.is_like(text):
            known.text = text  # an event carries the beginning of a long command line
            return
        self.became(Ran(at_us, boot_us, None, text))

    def can_be_of(self, event: ProcessEvent) -> bool:
        """Whether an event can be of a process that is known and not known to have ended."""
        if event.start_ticks and self.start_ticks:
            return event.start_ticks == self.start_ticks
        if event.start_ticks:  # of a process whose start could not be read: it was born by its first event
            return event.start_ticks * TICK_US <= self.born_boot_us + TICK_US
        if event.happened is Happened.FORK:  # a new process, unless it was met in /proc before its event was read
            return self.read_boot_us >= event.boot_us or self.born_boot_us == event.boot_us
        return True

    def at(self, boot_us: int) -> Ran:
        """The program of a process at a moment."""
        return next((ran for ran in reversed(self.ran) if ran.since_boot_us <= boot_us), self.ran[0])

    def execs(self, event: ProcessEvent, at_us: int) -> None:
        """It became another program; where ``/proc`` was read later than that, its word stands."""
        last = self.ran[-1] if self.ran else None
        if last is not None and (last.since_boot_us, last.raw) == (event.boot_us, event.program):
            return  # told twice
        new = Ran(at_us, event.boot_us, event.program)
        if last is None or event.boot_us > self.read_boot_us or last.doubted:
            self.became(new)
            return
        text, read = new.as_text(), last.as_text()
        is_untold = self.told < len(self.ran)
        if text is None or (read is not None and new.is_like(read)):
            if is_untold:
                last.since_us, last.since_boot_us = at_us, event.boot_us
                last.text = read if read is None or text is None else filled(read, text)
        elif is_untold:
            self.ran.insert(-1, new)
            last.since_us, last.since_boot_us = max(last.since_us, at_us), max(last.since_boot_us, event.boot_us)

    def says(self, event: ProcessEvent, at_us: int) -> None:
        """What an open or a snapshot says of a program: news where the process forked, or its exec was lost."""
        if event.program is None:
            if event.happened is Happened.OPEN:
                self._is_still(at_us, event.boot_us)  # only an open by a program that was told comes without it
            return
        last = self.ran[-1] if self.ran else None
        if last is not None and not last.doubted and last.raw is not None and last.raw == event.program:
            self._is_still(at_us, event.boot_us)  # nearly always, and redacting both to see it is dear
            return
        new = Ran(at_us, event.boot_us, event.program)
        if last is None or (last.as_text() is None and not last.doubted):
            self.became(new)
            return
        is_snapshot = event.happened is Happened.HOLD
        if is_snapshot and not event.program.args:
            return  # its command line could not be read
        known = next((ran for ran in reversed(self.ran) if not ran.doubted), None)
        text, told = (None if known is None else known.as_text()), new.as_text()
        if known is None or text is None or told is None or not new.is_like(text):
            if last.doubted or not is_snapshot:
                self.became(new)
            return
        whole = filled(text, told)
        if whole != text and self.ran.index(known) < self.told:
            self.settles_doubt()
            self.became(Ran(at_us, event.boot_us, None, whole))
            return
        known.text = whole
        self._is_still(at_us, event.boot_us)


def text_of(raw: Program) -> IdentityText:
    """A raw program as the text of an identity, redacted."""
    try:
        membership = cgroup.parse(raw.cgroup.decode("utf-8", "replace").split("\n"))
    except BadInput:
        membership = cgroup.CgroupIdentity()  # what a kernel writes there that is no cgroup line names nothing
    exe = raw.exe.decode("utf-8", "replace")
    return identity_text(
        exe=exe,
        args=raw.args,
        cwd=raw.cwd.decode("utf-8", "replace"),
        user=login_name(raw.uid),
        uid=str(raw.uid),
        membership=membership,
        comm=PurePosixPath(exe).name,
    )


def filled(text: IdentityText, by: IdentityText) -> IdentityText:
    """What is known of a program, with what only ``by`` knows of the same one.

    ``/proc`` shows executable and directory of a foreign process only to who may trace it (CAP_SYS_PTRACE);
    events carry both.
    """
    if text.exe and text.cwd:
        return text
    return replace(text, exe=text.exe or by.exe, cwd=text.cwd or by.cwd)


def _is_same_exe(one: IdentityText, other: IdentityText) -> bool:
    return one.exe == other.exe or not one.exe or not other.exe
