"""``top``: one look after the other at who holds a device, named. Writes nothing, and works without a ledger.

The order of one look: the driver, then the names of what it lists, then what a readable ledger knows
beside them. How long a context is held is the driver's own answer where it has one; else it is at least
what the ledger's agent has seen without a break, else at least what this very command has.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

from gpuledger.accounting.holders import arrange
from gpuledger.accounting.owners import Naming, Owner
from gpuledger.clock import Clock
from gpuledger.errors import GpuledgerError
from gpuledger.ledger.store import Ledger
from gpuledger.model.devices import class_name
from gpuledger.model.holders import Arrangement, HeldDevice, HoldersLook, HoldersReport, Holding, Unnamed
from gpuledger.model.identity import IdentityText, short_program
from gpuledger.model.missing import Missing
from gpuledger.model.moments import SECOND_US
from gpuledger.model.policy import Policy
from gpuledger.model.problem import Problem
from gpuledger.model.readings import DeviceReading, LivingContext, Named, NamesLook, Reading
from gpuledger.model.reasons import UNATTRIBUTED
from gpuledger.model.usage import NO_NAME
from gpuledger.operations.agent import Source
from gpuledger.operations.known_holders import Held, HolderPlace, KnownHolder, known_holders
from gpuledger.operations.usage import policies
from gpuledger.sources.procfs import boot_id
from gpuledger.sources.watchers import PollWatcher, Watcher

ASK_AGAIN_US = 10 * SECOND_US
"""The ledger is asked when somebody new holds a device, and this often otherwise."""

_NO_START = Missing("seen once, and no start is known")
_NOT_LISTED = "process-list-unsupported"
_LEFT_OUT = frozenset({"device-lost", "device-unreadable", "duplicate-uuid"})
"""Problems of a reading that say why a device is not in it."""
_LATE_US = 2 * SECOND_US
"""A driver's start further ahead than this is of a clock that was set meanwhile."""
_KEY = "it"


def report(look: HoldersLook, arrangement: Arrangement) -> HoldersReport:
    """One look, arranged: the same look can be arranged anew without looking again."""
    return arrange(look, arrangement)


def looker(source: Source, *, host: str, clock: Clock, open_ledger: Callable[[], Ledger]) -> Looker:
    """A looker at this machine that names by reading ``/proc``; its arguments are those of :class:`Looker`."""
    return Looker(
        source=source,
        watcher=PollWatcher(clock=clock),
        clock=clock,
        host=host,
        boot_id=boot_id(),
        open_ledger=open_ledger,
    )


class Looker:
    """Looks at who holds what, look after look.

    Args:
        source, watcher, clock: the seams to the outside.
        host: name of this machine, also in the ledger.
        boot_id: the kernel's boot id; empty where it cannot be read.
        open_ledger: opens the ledger for reading; what it raises is said in the look, and changes nothing else.
    """

    def __init__(
        self,
        *,
        source: Source,
        watcher: Watcher,
        clock: Clock,
        host: str,
        boot_id: str,
        open_ledger: Callable[[], Ledger],
    ) -> None:
        self._source = source
        self._watcher = watcher
        self._clock = clock
        self._host = host
        self._boot_id = boot_id
        self._open_ledger = open_ledger
        self._first_us: dict[HolderPlace, tuple[int, int]] = {}
        self._asked: frozenset[Held] | None = None
        self._asked_us = 0
        self._known: dict[HolderPlace, KnownHolder] = {}
        self._versions: list[tuple[int, Policy]] = []
        self._ledger: str | Missing = Missing("not asked yet")
        self._owners: dict[IdentityText, Owner] = {}

    def look(self) -> HoldersLook:
        """One look.

        Raises:
            Unavailable: the driver as a whole gave no answer; the next look may.
        """
        at_us, boot_us = self._clock.now_us(), self._clock.boot_us()
        reading = self._source.read(at_us)
        living = [context for device in reading.devices.values() for context in device.living]
        new = {context.pid for context in living if (context.device, context.pid) not in self._first_us}
        names = self._watcher.look({context.pid for context in living}, at_us, restarted=new)
        held = {(context.device, context.pid): _held(context, names) for context in living}
        self._note_first_sights(held.values(), boot_us)
        self._ask_ledger(held.values(), at_us=at_us, boot_us=boot_us)
        return HoldersLook(
            at_us=at_us,
            host=self._host,
            method=reading.method,
            driver_version=reading.driver_version,
            devices=tuple(_devices(reading)),
            holdings=tuple(
                self._holding(context, held[context.device, context.pid], names, at_us, boot_us) for context in living
            ),
            ledger=self._ledger,
            problems=reading.problems,
        )

    def close(self) -> None:
        """Let go of the watcher; the looker is not used again."""
        self._watcher.close()

    def _note_first_sights(self, held: Collection[Held], boot_us: int) -> None:
        """Keep since when each has been seen at every look; one that a look misses begins anew."""
        first_us: dict[HolderPlace, tuple[int, int]] = {}
        for one in held:
            ticks, since_us = self._first_us.get(one.place, (one.start_ticks, boot_us))
            if ticks and one.start_ticks and ticks != one.start_ticks:
                since_us = boot_us  # another process under the same pid
            first_us[one.place] = (one.start_ticks or ticks, since_us)
        self._first_us = first_us

    def _ask_ledger(self, held: Collection[Held], *, at_us: int, boot_us: int) -> None:
        now = frozenset(held)
        if now == self._asked and boot_us - self._asked_us < ASK_AGAIN_US:
            return
        self._asked, self._asked_us = now, boot_us
        self._owners.clear()
        try:
            with self._open_ledger() as ledger:
                known = known_holders(ledger, [*held], host=self._host, boot_id=self._boot_id, now_us=at_us)
                self._versions = policies(ledger, now_us=at_us)
                self._ledger = str(ledger.place)
        except GpuledgerError as error:
            self._ledger = Missing(error.message)
            self._known = {one.place: self._known[one.place] for one in held if one.place in self._known}
            return
        self._known = known

    def _holding(self, context: LivingContext, one: Held, names: NamesLook, at_us: int, boot_us: int) -> Holding:
        known = self._known.get(one.place)
        if known is not None and one.start_ticks and known.start_ticks != one.start_ticks:
            known = None
        text = _text(names.current.get(context.pid), known)
        held_us, is_at_least = self._held_for(one, known, at_us, boot_us)
        owner = self._owner(text, at_us) if text is not None else None
        cause = "" if text is not None else _cause(context.pid, names)
        return Holding(
            device=context.device,
            pid=context.pid,
            service=owner.service if owner else f"{UNATTRIBUTED}{cause}",
            user=owner.user if owner else NO_NAME,
            team=owner.team if owner else NO_NAME,
            program=short_program(text) if text is not None else context.process_name,
            cause=cause,
            held_us=held_us,
            is_at_least=is_at_least,
            memory_mib=context.memory_mib,
            busy_percent=context.busy_percent,
        )

    def _held_for(self, one: Held, known: KnownHolder | None, at_us: int, boot_us: int) -> tuple[int | Missing, bool]:
        """How long, in microseconds, and whether it can be longer."""
        if not isinstance(one.started_at_us, Missing) and one.started_at_us <= at_us + _LATE_US:
            return max(0, at_us - one.started_at_us), False
        own_us = boot_us - self._first_us[one.place][1]
        if known is not None and not isinstance(known.since_us, Missing):
            return max(at_us - known.since_us, own_us), known.is_at_least
        return (own_us, True) if own_us else (_NO_START, False)

    def _owner(self, text: IdentityText, at_us: int) -> Owner:
        if text not in self._owners:
            self._owners[text] = Naming(texts={_KEY: text}, versions=self._versions).owner(_KEY, at_us)
        return self._owners[text]


def _held(context: LivingContext, names: NamesLook) -> Held:
    named = names.current.get(context.pid)
    return Held(
        device=context.device,
        pid=context.pid,
        start_ticks=named.start_ticks if named is not None else 0,
        started_at_us=context.started_at_us,
    )


def _text(named: Named | None, known: KnownHolder | None) -> IdentityText | None:
    """What names a process: what was read of it now, unless an agent with more rights read more of the same."""
    stored = known.text if known is not None else None
    if named is None:
        return stored
    is_partial = not named.text.exe or not named.text.cwd
    if is_partial and stored is not None and stored.command == named.text.command:
        return stored
    return named.text


def _cause(pid: int, names: NamesLook) -> str:
    return Unnamed.UNREADABLE if pid in names.unreadable else Unnamed.NOT_IN_PROC


def _devices(reading: Reading) -> list[HeldDevice]:
    unlisted = _told(reading.problems, {_NOT_LISTED})
    devices = [part for device in reading.devices.values() for part in _parts(device, unlisted.get(device.uuid, ""))]
    left_out = _told(reading.problems, _LEFT_OUT)
    unknown = Missing("the device did not answer")
    return [
        *devices,
        *(
            HeldDevice(uuid=where, class_name="", memory_mib=unknown, silence=told)
            for where, told in left_out.items()
            if where not in reading.devices
        ),
    ]


def _told(problems: Sequence[Problem], codes: frozenset[str] | set[str]) -> Mapping[str, str]:
    return {problem.where: problem.message for problem in problems if problem.code in codes}


def _parts(device: DeviceReading, silence: str) -> list[HeldDevice]:
    """A GPU, or its MIG instances; the GPU itself too where something is booked on the whole of it."""
    whole = HeldDevice(
        uuid=device.uuid, class_name=class_name(device.product), memory_mib=device.memory_mib, silence=silence
    )
    slices = [
        HeldDevice(
            uuid=part.uuid,
            class_name=class_name(device.product, part.profile),
            memory_mib=part.memory_mib,
            silence=silence,
        )
        for part in device.slices
    ]
    is_booked = any(context.device == device.uuid for context in device.living)
    return [whole, *slices] if is_booked or not slices else slices
