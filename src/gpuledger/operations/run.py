"""``run``: runs a command, looks at the devices meanwhile if nobody else does, and writes its receipt.

The order: the command is forked and held at its gate; orphans are made to fall to this process; it gets
a cgroup of its own where that may be; the first look is made; only then it begins. While it runs this
process forwards signals, follows its descendants and reaps orphans. After it ended, looks are waited
for until they can have seen all of it. Nothing that goes wrong with the receipt touches the command.
"""

from __future__ import annotations

import os
import shlex
import signal
import traceback
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass

from gpuledger.clock import Clock
from gpuledger.errors import CommandNotExecutable, CommandNotFound, GpuledgerError, Unavailable
from gpuledger.ledger.places import is_there
from gpuledger.ledger.store import Ledger
from gpuledger.model.missing import Missing
from gpuledger.model.moments import SECOND_US
from gpuledger.model.receipt import Membership, Ran, Receipt, Watcher
from gpuledger.operations.held_command import (
    BY_SIGNAL,
    NOT_FOUND,
    Ended,
    HeldCommand,
    ended_child,
    reap,
    status_of,
)
from gpuledger.operations.own_watch import OwnWatch, WatchPlan
from gpuledger.operations.pulse import hear
from gpuledger.operations.receipt import receipt_of, receipt_without_a_ledger
from gpuledger.sources.command_tree import CommandTree, become_subreaper, has_the_drivers_pids
from gpuledger.sources.own_cgroup import OwnCgroup
from gpuledger.sources.procfs import boot_id
from gpuledger.sources.redaction import redact

_ITS_OWN = frozenset(
    {
        *(signal.SIGKILL, signal.SIGSTOP),  # nobody can hold them back
        *(signal.SIGCHLD, signal.SIGPIPE, signal.SIGXFSZ, signal.SIGURG, signal.SIGWINCH),
        *(signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU, signal.SIGCONT),
        *(signal.SIGSEGV, signal.SIGBUS, signal.SIGFPE, signal.SIGILL, signal.SIGTRAP, signal.SIGSYS, signal.SIGABRT),
    }
)
"""What befalls this process alone: faults, job control, and what the kernel tells it of its own files and children."""

FROM_THE_TERMINAL = (signal.SIGINT, signal.SIGQUIT)
"""Signals that a terminal sends to the command too; forwarded only where a process sent them."""

FORWARDED = signal.valid_signals() - _ITS_OWN - {*FROM_THE_TERMINAL}
"""Signals to this process that are meant for the command: all that would end this process and leave it running.

Batch systems warn by SIGUSR1, SIGXCPU or a real-time signal as often as by SIGTERM.
"""

_HEARD = frozenset((*FORWARDED, *FROM_THE_TERMINAL, signal.SIGCHLD))
_BY_THE_KERNEL = 0x80
"""``si_code`` SI_KERNEL (sigaction(2)): the terminal's own, which its whole foreground group has."""

SCAN_US = 30_000
"""Time between two scans of the tree, and longer where one costs more than a twentieth of it."""
_COST_SHARE = 20
_FIRST_LOOK_US = 10 * SECOND_US
"""A driver that does not answer by then does not hold the command back."""
_AFTER_EXIT_US = 2 * SECOND_US
"""An exit, a driver stamp and a look come from different clocks (DESIGN section 6)."""
_SPARE_US = 5 * SECOND_US
_LOOKS = 2
_PULSES = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPlan:
    """What to run, and how to look.

    Args:
        words: the command and its arguments.
        place: the ledger as it was asked for; empty for the default.
        watch: how to look where nobody else does.
    """

    words: tuple[str, ...]
    place: str
    watch: WatchPlan


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How a run ended.

    Args:
        status: the exit status that is the command's own.
        receipt: Missing says why there is none.
        notes: what went wrong beside the command, sentences.
    """

    status: int
    receipt: Receipt | Missing
    notes: tuple[str, ...] = ()


def run(
    plan: RunPlan,
    *,
    clock: Clock,
    waiting: Callable[[str], AbstractContextManager[object]],
    own: OwnWatch | None = None,
) -> Outcome:
    """Run a command and write its receipt.

    Args:
        plan: what and how.
        clock: the machine's own.
        waiting: shows a sentence while looks are waited for.
        own: looks where nobody else does; made from the plan by default.

    Raises:
        GpuledgerError: before the command begins, and it never begins: a ledger that cannot be used.
        CommandNotFound: ``no-command``; CommandNotExecutable: ``command-not-executable``.
    """
    # first of all, while there is one thread: a fork copies no other, but their locks
    command = HeldCommand(plan.words)
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _HEARD)
    try:
        return _Run(plan, command, clock, own or OwnWatch(plan.watch, clock=clock)).to_its_end(waiting)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class _Run:
    """One run, step by step."""

    def __init__(self, plan: RunPlan, command: HeldCommand, clock: Clock, own: OwnWatch) -> None:
        self._plan = plan
        self._command = command
        self._clock = clock
        self._own = own
        self._notes: list[str] = []
        self._cgroup: OwnCgroup | Missing = Missing("not tried")
        self._is_hurried = False
        self._ended_us = self._ended_boot_us = 0

    def to_its_end(self, waiting: Callable[[str], AbstractContextManager[object]]) -> Outcome:
        """From the gate to the receipt."""
        try:
            ended = self._prepare()
        except BaseException:
            self._command.abandon()
            self._let_go()
            raise
        if ended is not None:
            return ended
        clock = self._clock
        began_us, boot_us = clock.now_us(), clock.boot_us()
        error_number = self._command.release()
        if error_number:
            reap(self._command.pid)
            self._let_go()
            raise _not_begun(self._plan.words[0], error_number)
        done = self._follow()
        ran = Ran(
            command=redact(self._plan.words),
            pid=self._command.pid,
            began_us=began_us,
            ended_us=self._ended_us,
            wall_ms=(self._ended_boot_us - boot_us) // 1000,
            status=done.status,
            signal=done.signal,
        )
        try:
            receipt: Receipt | Missing = self._receipt(ran, waiting)
        except GpuledgerError as error:
            receipt = Missing(error.message)
        except Exception:  # noqa: BLE001 - the command has ended, and its status stands whatever happens here
            receipt = Missing(f"a bug in gpuledger, please report it with this text:\n{traceback.format_exc()}")
        finally:
            self._let_go()
        return Outcome(status=done.status, receipt=receipt, notes=(*self._own.notes, *self._notes))

    def _prepare(self) -> Outcome | None:
        """All that must be there before the command begins; an outcome where a signal came first."""
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # ignored, the kernel would reap, and tell nobody how it ended
        try:
            become_subreaper()
        except Unavailable as error:
            self._notes.append(error.message)
        try:
            self._cgroup = OwnCgroup.make(self._command.pid)
        except Unavailable as error:
            self._cgroup = Missing(error.message)
        self._own.begin()
        due_us = self._clock.boot_us() + _FIRST_LOOK_US
        while not self._own.ready.is_set() and self._clock.boot_us() < due_us:
            told = signal.sigtimedwait(_HEARD, SCAN_US / SECOND_US)
            if told is not None and told.si_signo != signal.SIGCHLD:
                self._command.abandon()
                self._let_go()
                return Outcome(status=BY_SIGNAL + told.si_signo, receipt=Missing("ended before the command began"))
        if self._own.refusal is not None:
            raise _not_run(self._own.refusal)
        if not self._own.ready.is_set():
            self._notes.append("the driver had not answered after 10 s, and the command began without a look")
        self._tree = CommandTree(self._command.pid, clock=self._clock)
        self._tree.scan()
        return None

    def _follow(self) -> Ended:
        """Until the command has ended: its signals, its orphans, its descendants."""
        due_us = 0
        while True:
            told = signal.sigtimedwait(_HEARD, max(0, due_us - self._clock.boot_us()) / SECOND_US)
            if told is not None and told.si_signo != signal.SIGCHLD:
                self._forward(told.si_signo, told.si_code)
            if (ended := self._reap()) is not None:
                self._scan()
                return ended
            if told is None:
                due_us = self._clock.boot_us() + self._scan()

    def _forward(self, number: int, code: int) -> None:
        if code != _BY_THE_KERNEL:
            os.kill(self._command.pid, number)  # not reaped yet, so the pid is still its own

    def _reap(self) -> Ended | None:
        """Reap whoever ended; how the command ended, where it is among them."""
        found: Ended | None = None
        while pid := ended_child():
            self._tree.note(pid)
            ended = reap(pid)
            if pid == self._command.pid:
                found = ended
                self._ended_us, self._ended_boot_us = self._clock.now_us(), self._clock.boot_us()
        return found

    def _scan(self) -> int:
        """Look at the tree; returns how long to wait until the next scan, microseconds."""
        also = [] if isinstance(self._cgroup, Missing) else self._cgroup.pids()
        return max(SCAN_US, _COST_SHARE * self._tree.scan(also))

    # After the end

    def _receipt(self, ran: Ran, waiting: Callable[[str], AbstractContextManager[object]]) -> Receipt:
        """The receipt, once enough looks came after the end; the last of them written."""
        pulses: list[int] = []
        began_us = self._clock.boot_us()
        if self._own.looker is not Watcher.NOBODY:
            with waiting("waiting for the agent's next look"), suppress(GpuledgerError):  # the last try says it
                self._settle(ran, pulses, began_us)
        looker, trouble = self._own.looker, self._own.trouble
        if not self._own.end():
            self._notes.append("the last look did not come to its end: the driver does not answer")
        told = "" if trouble is None else trouble.message
        looks_after = (
            sum(at_us >= ran.ended_us for at_us in self._own.looks_us) if looker is Watcher.RUN else len(pulses)
        )
        return self._written(ran, looker, looks_after, told)

    def _written(self, ran: Ran, looker: Watcher, looks_after: int, trouble: str) -> Receipt:
        place, membership = self._own.place, self._membership()
        unstored = self._own.unstored
        if not is_there(place):
            return receipt_without_a_ledger(ran=ran, membership=membership, host=self._plan.watch.host, trouble=trouble)
        with Ledger.open(place, mode="read") as ledger:
            return receipt_of(
                ledger,
                ran=ran,
                membership=membership,
                host=self._plan.watch.host,
                watched_by=looker,
                looks_after=looks_after,
                trouble=trouble,
                place=self._plan.place,
                now_us=self._clock.now_us(),
                unstored="" if unstored is None else unstored.message,
            )

    def _settle(self, ran: Ran, pulses: list[int], began_us: int) -> None:
        """Wait for looks until everything that ended is settled; at most three looks' time and five seconds."""
        pause_us = 0
        while not self._is_hurried:
            interval_us, looks = self._looked(ran, pulses)
            waited_us = self._clock.boot_us() - began_us
            if waited_us > _PULSES * interval_us + _SPARE_US or self._own.looker is Watcher.NOBODY:
                return
            is_seen = looks >= _LOOKS and (self._own.looker is Watcher.RUN or waited_us >= _AFTER_EXIT_US)
            if is_seen and pause_us <= 0:
                if not self._written(ran, self._own.looker, looks, "").is_awaiting:
                    return
                pause_us = interval_us
            pause_us -= self._wait_a_scan()

    def _looked(self, ran: Ran, pulses: list[int]) -> tuple[int, int]:
        """The interval of whoever looks, and how often that was after the end."""
        if self._own.looker is Watcher.RUN:
            looks = sum(at_us >= ran.ended_us for at_us in self._own.looks_us)
            return self._plan.watch.interval_us, looks
        interval_us = SECOND_US
        if is_there(self._own.place):
            with Ledger.open(self._own.place, mode="read") as ledger:
                pulse = hear(ledger, now_us=self._clock.now_us())
            if pulse is not None:
                interval_us = pulse.interval_us
                if pulse.looked_us >= ran.ended_us and pulse.looked_us not in pulses:
                    pulses.append(pulse.looked_us)
        return interval_us, len(pulses)

    def _wait_a_scan(self) -> int:
        """Wait until the next scan of what lives on; a signal now asks for the receipt at once."""
        began_us = self._clock.boot_us()
        told = signal.sigtimedwait(_HEARD, SCAN_US / SECOND_US)
        if told is not None and told.si_signo != signal.SIGCHLD:
            self._is_hurried = True
        self._reap()
        self._scan()
        return self._clock.boot_us() - began_us

    def _membership(self) -> Membership:
        return Membership(
            boot_id=boot_id(),
            members=self._tree.members,
            cgroup=self._cgroup if isinstance(self._cgroup, Missing) else self._cgroup.name,
            blind_us=self._tree.blind_us,
            are_the_drivers_pids=has_the_drivers_pids(),
        )

    def _let_go(self) -> None:
        """End the watch, and leave no cgroup behind unless something of the command lives in it."""
        self._own.end()
        self._own.forget()
        if not isinstance(self._cgroup, Missing):
            self._cgroup.remove()
            self._cgroup = Missing("removed")


def _not_run(refusal: GpuledgerError) -> GpuledgerError:
    """A refusal that says what it means for the command: who runs it unattended must not have to guess."""
    refusal.message = f"{refusal.message}; nothing was run"
    return refusal


def _not_begun(word: str, number: int) -> GpuledgerError:
    told = f"{word}: {os.strerror(number).lower()}; nothing was run"
    if status_of(number) == NOT_FOUND:
        return CommandNotFound("no-command", told, hint=f"command -v {shlex.quote(word)}")
    return CommandNotExecutable("command-not-executable", told, hint=f"ls -l {shlex.quote(word)}")
