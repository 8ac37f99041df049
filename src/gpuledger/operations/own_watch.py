"""Who looks while a command runs: the agent that works on the ledger, else this process, in a thread of its own.

In: where the ledger lies and how to look. Out: looks that are counted, and why there are none. The place
is asked for again and again, so that a run takes over from an agent, or from another run, that ends
meanwhile. A ledger stays in the thread that opened it.
"""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
import threading
import traceback
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from gpuledger.clock import Clock
from gpuledger.errors import GpuledgerError, Refused, Unavailable
from gpuledger.ledger.places import Place, is_there
from gpuledger.ledger.store import Ledger
from gpuledger.model.receipt import Watcher as Looker
from gpuledger.operations.agent import OneAgent, Source
from gpuledger.operations.pulse import Pulse, PulseTeller, hear
from gpuledger.operations.start_agent import choose_source, choose_watcher, start
from gpuledger.sources.watchers import Watcher

_BORNE = ("driver-unreachable", "watch-ended")
"""Why this process may not look, and the command runs all the same."""
_UNSTORED = ("ledger-full", "ledger-io", "ledger-unreachable")
"""Why nothing can be written: the command runs all the same, and what is seen of it is kept for its receipt only."""
_READ_ONLY = "ledger-read-only"
"""As above, unless an agent is heard that writes there: a container can have the ledger mounted to read only."""
_MEMORY = Path("/dev/shm")  # noqa: S108 - a folder of our own is made in it, for this user alone
"""A file system in memory, on every Linux: it is there when the disk is full."""
_PREFIX = "gpuledger-run-"
_LEFT_S = 60
"""A place of a run's own that is older and that nobody holds was left by a run that was killed."""
_ASK_AGAIN_S = 1.0
_STOP_S = 10.0
"""How long the last look may take before it is left alone: a driver that hangs holds nobody back."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchPlan:
    """How a run looks where it has to look itself.

    Args:
        ledger: where the ledger lies.
        host: name of this machine in it.
        interval_us: time between two looks.
        flush_us: longest time that spans stay unwritten.
        method: way of naming, ``auto`` or one of the agent's.
    """

    ledger: Place
    host: str
    interval_us: int
    flush_us: int
    method: str


class OwnWatch:
    """Looks for as long as a command runs, if nobody else does.

    Args:
        plan: how.
        clock: the machine's own.
        find_source: gives the driver.
    """

    def __init__(
        self,
        plan: WatchPlan,
        *,
        clock: Clock,
        find_source: Callable[[Callable[[str], None]], Source] = choose_source,
    ) -> None:
        self._plan = plan
        self._clock = clock
        self._find_source = find_source
        self._thread = threading.Thread(target=self._work, name="own-watch", daemon=True)
        self._ending = threading.Event()
        self.ready = threading.Event()
        """Set once the first look is written, or it is known who else looks, or that nobody can."""
        self.looker = Looker.NOBODY
        self.trouble: GpuledgerError | None = None
        """Why this process does not look, where nobody else does either."""
        self.refusal: GpuledgerError | None = None
        """What must be said before the command starts: a ledger that cannot be used at all."""
        self.notes: list[str] = []
        """What the agent in this process would have said; kept, so as not to disturb the command's own output."""
        self.looks_us: list[int] = []
        """The last looks, wall clock."""
        self.place = plan.ledger
        """Where what is seen is written: the ledger, or where it cannot be written a place for this run alone."""
        self.unstored: GpuledgerError | None = None
        """Why the ledger could not be written when the watch began."""
        self._aside: tempfile.TemporaryDirectory[str] | None = None

    def begin(self) -> None:
        """Start looking, or asking for the place."""
        self._thread.start()

    def forget(self) -> None:
        """Let go of what was kept for this run alone. Told last."""
        if self._aside is not None:
            self._aside.cleanup()

    def end(self) -> bool:
        """Look no more, write what is unwritten, seal. Returns whether that was done in time."""
        is_first = not self._ending.is_set()
        self._ending.set()
        if self._thread.ident is not None and is_first:
            self._thread.join(_STOP_S)
        return not self._thread.is_alive()

    def _work(self) -> None:
        try:
            while not self._ending.is_set():
                try:
                    self._look()
                except (Refused, Unavailable) as refused:
                    if self._is_unstored(refused):
                        self._step_aside(refused)
                        continue
                    self._stand_by(refused)
                    self.ready.set()
                    self._ending.wait(_ASK_AGAIN_S)
                else:
                    return
        except GpuledgerError as error:
            self._give_up(error)
        except Exception:  # noqa: BLE001 - said with the receipt: the command must not suffer for it
            self.notes.append(f"a bug in gpuledger, please report it with this text:\n{traceback.format_exc()}")
            self._give_up(Unavailable("watch-ended", "the watch of this run ended by a bug", hint=""))
        finally:
            self.ready.set()

    def _stand_by(self, refused: Refused | Unavailable) -> None:
        """Somebody else has the place, or may have it: this process asks again later; anything else is raised."""
        if refused.code == "agent-running":
            self.looker, self.trouble = Looker.AGENT, None
        elif refused.code in ("ledger-permission", _READ_ONLY):
            pulse = self._pulse(refused)
            is_beating = pulse is not None and pulse.is_beating(self._clock.now_us())
            told = f"no agent looks, and this user may not write the ledger to look itself ({refused.message})"
            self.looker = Looker.AGENT if is_beating else Looker.NOBODY
            self.trouble = None if is_beating else Unavailable(refused.code, told, hint=refused.hint)
        else:
            raise refused

    def _is_unstored(self, refused: Refused | Unavailable) -> bool:
        """Whether nothing can be written, and nobody else looks: what is read-only here need not be for an agent."""
        if refused.code not in (*_UNSTORED, _READ_ONLY) or self.unstored is not None or self.ready.is_set():
            return False
        if refused.code != _READ_ONLY:
            return True
        try:
            pulse = self._pulse(refused)
        except GpuledgerError:
            return True
        return pulse is None or not pulse.is_beating(self._clock.now_us())

    def _pulse(self, refused: Refused | Unavailable) -> Pulse | None:
        """The pulse of an agent whose lock this user may not ask for.

        Raises:
            GpuledgerError: the ledger cannot be read either, and why; ``refused`` where there is none.
        """
        try:
            with Ledger.open(self._plan.ledger, mode="read") as ledger:
                return hear(ledger, now_us=self._clock.now_us())
        except GpuledgerError as error:
            raise (refused if error.code == "no-ledger" else error) from None

    def _give_up(self, error: GpuledgerError) -> None:
        """Nobody looks: borne where at least the ledger can be read, or there is none and no driver to fill it."""
        self.looker, self.trouble = Looker.NOBODY, error
        if self.ready.is_set():
            return
        is_borne = error.code in (*_BORNE, *_UNSTORED)
        self.refusal = _reading_trouble(self._plan.ledger) if is_borne else error

    def _step_aside(self, error: GpuledgerError) -> None:
        """The ledger cannot be written: go on in a ledger of this run's own, which goes with it."""
        self.unstored = error
        folder = _MEMORY if os.access(_MEMORY, os.W_OK) else None
        if folder is not None:
            _clear(folder, older_than_s=self._clock.now_us() / 1_000_000 - _LEFT_S)
        try:
            self._aside = tempfile.TemporaryDirectory(prefix=_PREFIX, dir=folder)
        except OSError:  # nowhere is room: then nobody looks, and the receipt says so
            raise error from None
        self.place = Path(self._aside.name) / "ledger.db"

    def _look(self) -> None:
        """Be the agent until told to end."""
        path = self.place
        source = None if is_there(path) else self._find_source(self.notes.append)
        with ExitStack() as held:
            # where there is a ledger the place comes first: whoever may not have it must not touch the ledger
            place = held.enter_context(OneAgent(path)) if source is None else None
            source = source or self._find_source(self.notes.append)
            ledger = held.enter_context(Ledger.open(path, mode="append"))
            place = place or held.enter_context(OneAgent(path))
            watcher, refusals = choose_watcher(self._plan.method, clock=self._clock)
            note = "; ".join(f"not by {refusal}" for refusal in refusals)
            self._be_agent(ledger, place, source, watcher, note)

    def _be_agent(self, ledger: Ledger, place: OneAgent, source: Source, watcher: Watcher, note: str) -> None:
        plan = self._plan
        pulse = PulseTeller(host=plan.host, interval_us=plan.interval_us, say=place.tell)
        is_stuck = threading.Event()

        def stuck(at_us: int) -> None:
            pulse.stuck(at_us)
            if not self.ready.is_set():
                is_stuck.set()  # nothing has begun yet: the run has its looks kept elsewhere

        agent = start(
            ledger,
            source,
            watcher,
            host=plan.host,
            clock=self._clock,
            interval_us=plan.interval_us,
            flush_us=plan.flush_us,
            once=False,
            enable_accounting=False,
            naming_note=note,
            talk=self.notes.append,
            stopping=lambda: self._ending.is_set() or is_stuck.is_set(),
            looked=lambda at_us, answered: self._looked(pulse, at_us, answered),
            stuck=stuck,
        )
        self.looker, self.trouble = Looker.RUN, None
        agent.run()

    def _looked(self, pulse: PulseTeller, at_us: int, answered: bool) -> None:
        pulse.looked(at_us, answered)
        self.looks_us = [*self.looks_us[-7:], at_us]
        self.ready.set()


def _clear(folder: Path, *, older_than_s: float) -> None:
    """Remove what runs that were killed have left in memory; not what somebody works in, or may have just begun.

    Only folders of this user, for anyone may make something of such a name there, and wait for root to come by.
    """
    for left in folder.glob(f"{_PREFIX}*"):
        try:
            told = left.lstat()
            is_own = stat.S_ISDIR(told.st_mode) and told.st_uid == os.geteuid()
            if is_own and told.st_mtime < older_than_s:
                with OneAgent(left / "ledger.db"):
                    shutil.rmtree(left)
        except (OSError, Refused, Unavailable):
            continue  # in use, or none that a run has left


def _reading_trouble(path: Place) -> GpuledgerError | None:
    """Why a ledger that is there cannot be read; None where it can, or is not there."""
    if not is_there(path):
        return None
    try:
        Ledger.open(path, mode="read").close()
    except GpuledgerError as error:
        return None if error.code == "no-ledger" else error
    return None
