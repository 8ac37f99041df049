"""The receipt of one command, out of contexts, membership and coverage.

In: contexts of the time of the run, which processes are the command's, and what was watched. Out:
:class:`Receipt`. Whose a context is, is decided in :mod:`gpuledger.accounting.ownership`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from gpuledger.accounting.meanings import cause_sentence, meaning_of
from gpuledger.accounting.owners import Naming
from gpuledger.accounting.ownership import SCANS_TO_MEET, Ownership, is_unnamed, is_unsized
from gpuledger.model.durations import duration_ms, duration_us, several
from gpuledger.model.identity import IdentityText
from gpuledger.model.missing import Missing
from gpuledger.model.moments import CLOCK_TOLERANCE_US
from gpuledger.model.quantities import Context, Coverage
from gpuledger.model.reasons import IDLE_MEANING, UNATTRIBUTED, UnknownReason
from gpuledger.model.receipt import (
    Doubt,
    Doubtful,
    Membership,
    Neighbour,
    Ran,
    Receipt,
    ReceiptContext,
    ReceiptDevice,
    State,
    UnknownTime,
    Watcher,
)
from gpuledger.model.rows import DriverRecord, ProcessIdentity, Sighting
from gpuledger.model.usage import NO_NAME

ENOUGH_LOOKS = 2
"""Looks after the end until the driver's rows are all there: it settles at the last close, after the exit."""

NO_PEAK = Missing("its memory was never readable")
NO_SAMPLE = Missing("no memory sample lies in the time of the command")
NO_BUSY = Missing("no SM activity was sampled")
UNSIZED = Missing("seen once, and no start is known")
NOT_OURS = Missing("the driver speaks of other pids than this pid namespace does")

PROVEN = "its time was watched without loss, and no process of the command held it"
"""Why the 0 of a device is one."""

_NO_ROWS = (UnknownReason.ACCOUNTING_DISABLED, UnknownReason.ACCOUNTING_UNSUPPORTED, UnknownReason.ACCOUNTING_UNREAD)
_UNWRITTEN = ":/0"


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What was seen of the time of the run.

    Args:
        host: name of this machine.
        contexts: every context that touches the time from the command's start to now.
        looks: the sightings behind them.
        coverage: spans of every device, filling the time from start to end.
        classes: accounting class by (host, device).
        naming, texts: resolve subjects.
        watched_by: who looked; ``method``: how processes were named.
        looks_after: looks after the command's end.
        lost: what was said of lost process events, sentences.
        trouble: why nobody looked, or why the looking ended; may be empty.
        unstored: why what was seen is in no ledger; empty where it is in one.
    """

    host: str
    contexts: Sequence[Context]
    looks: Sequence[Sighting]
    coverage: Sequence[Coverage]
    classes: Mapping[tuple[str, str], str]
    naming: Naming
    texts: Mapping[str, IdentityText]
    watched_by: Watcher
    method: str
    looks_after: int
    lost: Sequence[str] = ()
    trouble: str = ""
    unstored: str = ""


def receipt(seen: Seen, *, ran: Ran, membership: Membership, explain: str) -> Receipt:
    """The receipt of a command.

    Args:
        seen: what was seen.
        ran: what the command did.
        membership: which processes are its own.
        explain: the command line that explains the whole window.
    """
    return _Receipt(seen, ran, membership).write(explain)


class _Receipt:
    """One receipt while it is written."""

    def __init__(self, seen: Seen, ran: Ran, membership: Membership) -> None:
        self._seen = seen
        self._ran = ran
        self._membership = membership
        self._ownership = Ownership(ran, membership, seen.texts)
        self._looks: dict[tuple[str, int, str], list[Sighting]] = {}
        for look in seen.looks:
            self._looks.setdefault((look.device, look.pid, look.ref), []).append(look)
        self._reasons: dict[str, dict[str, None]] = {}
        for span in seen.coverage:
            if span.host == seen.host and span.reason:
                self._reasons.setdefault(span.device, {})[span.reason] = None

    def write(self, explain: str) -> Receipt:
        """All of it."""
        here = [one for one in self._seen.contexts if one.host == self._seen.host]
        ours = [one for one in here if self._ownership.is_ours(one)]
        near = [
            one
            for one in here
            if not self._ownership.is_ours(one) and self._ownership.overlaps(one, CLOCK_TOLERANCE_US)
        ]
        others = [one for one in near if self._ownership.overlaps(one)]
        doubtful = [one for one in near if self._ownership.could_be_ours(one)]
        lines = tuple(sorted((self._context(one) for one in ours), key=lambda one: (one.since_us, one.device, one.pid)))
        held = {one.device for one in ours}
        neighbours = self._neighbours(one for one in others if one.device in held)
        return Receipt(
            host=self._seen.host,
            ran=self._ran,
            watched_by=self._seen.watched_by,
            naming=self._seen.method,
            processes=len(
                {(one.pid, one.start_ticks) for one in self._membership.members}
                | {(one.pid, one.process[1]) for one in ours if one.process[1]}
            ),
            alive=sum(one.is_alive for one in self._membership.members),
            devices=self._devices(ours, lines, {one.device for one in doubtful}),
            contexts=lines,
            neighbours=tuple(one for one in neighbours if not one.meaning),
            unnamed=tuple(one for one in neighbours if one.meaning),
            unknown=self._unknown(),
            doubts=tuple(self._doubts(doubtful, lines)),
            explain=explain,
        )

    # What was held

    def _context(self, context: Context) -> ReceiptContext:
        peak = context.peak_memory_mib
        return ReceiptContext(
            device=context.device,
            pid=context.pid,
            service=self._service(context),
            since_us=context.spans[0][0],
            context_ms=UNSIZED if is_unsized(context) else context.context_ms,
            state=self._state(context),
            peak_memory_mib=NO_PEAK if peak == 0 or isinstance(peak, Missing) else peak,
            refs=() if self._seen.unstored else _refs(context),
        )

    def _state(self, context: Context) -> State:
        if context.settled:
            return State.SETTLED
        ticks = context.process[1]
        members = self._ownership.members_of(context.pid)
        if context.open and any(one.is_alive and ticks in (0, one.start_ticks) for one in members):
            return State.RUNNING
        keeps_none = set(self._reasons.get(context.device, ())) & set(_NO_ROWS)
        is_listed = context.accounted == "yes" or (context.accounted == "unknown" and not keeps_none)
        return State.AWAITED if is_listed or context.open else State.OBSERVED

    def _service(self, context: Context) -> str:
        return self._seen.naming.owner(context.subject, self._ran.began_us).service

    def _devices(
        self, ours: Sequence[Context], lines: Sequence[ReceiptContext], doubtful: set[str]
    ) -> tuple[ReceiptDevice, ...]:
        physical = {span.device for span in self._seen.coverage if span.host == self._seen.host}
        names = sorted(physical | {one.device for one in ours})
        devices = [
            self._device(
                name,
                [one for one in ours if one.device == name],
                [one for one in lines if one.device == name],
                is_doubtful=name in doubtful,
            )
            for name in names
        ]
        return tuple(sorted(devices, key=lambda one: not one.contexts))

    def _device(
        self, name: str, ours: Sequence[Context], lines: Sequence[ReceiptContext], *, is_doubtful: bool
    ) -> ReceiptDevice:
        sized = [one for one in lines if not isinstance(one.context_ms, Missing)]
        settled_ms = sum(one.context_ms for one in ours if one.settled)
        total: int | Missing = sum(int(one.context_ms) for one in sized)
        peaks = [one.peak_memory_mib for one in lines if not isinstance(one.peak_memory_mib, Missing)]
        why = ""
        if not lines:
            total = self._none(name, is_doubtful=is_doubtful)
            why = "" if isinstance(total, Missing) else self._proof(name)
        elif not sized:
            total = UNSIZED
        return ReceiptDevice(
            host=self._seen.host,
            device=name,
            class_name=self._seen.classes.get((self._seen.host, name), NO_NAME),
            contexts=len(lines),
            unsized=len(lines) - len(sized),
            context_ms=total,
            settled_ms=settled_ms,
            observed_ms=0 if isinstance(total, Missing) else total - settled_ms,
            peak_memory_mib=max(peaks) if peaks else (NO_PEAK if lines else NO_SAMPLE),
            busy_ms=self._busy(ours),
            why=why,
        )

    def _none(self, device: str, *, is_doubtful: bool) -> int | Missing:
        """What no context of ours on a device is worth: 0 where the time was watched, else UNKNOWN."""
        if not self._membership.are_the_drivers_pids:
            return NOT_OURS
        if self._seen.watched_by is Watcher.NOBODY and self._seen.trouble:
            return Missing(self._seen.trouble)
        if reasons := self._reasons.get(device):
            return Missing("; ".join(f"{reason}: {meaning_of(reason)[0]}" for reason in reasons))
        if is_doubtful:
            return Missing("a short context, without a name or under another name, could be the command's")
        return 0

    def _proof(self, device: str) -> str:
        is_idle = all(span.idle for span in self._seen.coverage if span.device == device)
        return f"proven idle: {IDLE_MEANING}" if is_idle else PROVEN

    def _busy(self, ours: Iterable[Context]) -> int | Missing:
        # the driver's 0 also says that it sampled none, so it is no evidence of idleness
        return sum(look.busy_ms for one in ours for look in self._looks_of(one)) or NO_BUSY

    def _looks_of(self, context: Context) -> Iterable[Sighting]:
        for ref in context.evidence:
            yield from self._looks.get((context.device, context.pid, ref), ())

    # Who else

    def _neighbours(self, others: Iterable[Context]) -> list[Neighbour]:
        grouped: dict[tuple[str, str], list[Context]] = {}
        for one in others:
            grouped.setdefault((one.device, self._service(one)), []).append(one)
        found: list[Neighbour] = []
        for (device, service), same in grouped.items():
            sized = [one for one in same if not is_unsized(one)]
            peaks = [peak for one in same if not isinstance(peak := self._peak(one), Missing)]
            is_named = not service.startswith(UNATTRIBUTED)
            found.append(
                Neighbour(
                    device=device,
                    service=service,
                    meaning="" if is_named else cause_sentence(service.removeprefix(UNATTRIBUTED)),
                    contexts=len(same),
                    context_ms=sum(self._overlap_ms(one) for one in sized) if sized else UNSIZED,
                    peak_memory_mib=max(peaks) if peaks else NO_SAMPLE,
                )
            )
        return sorted(found, key=_most_first)

    def _overlap_ms(self, context: Context) -> int:
        since_us, until_us = self._ran.began_us, self._ran.ended_us
        parts = [(max(low, since_us), min(high, until_us)) for low, high in context.spans]
        return sum(high // 1000 - low // 1000 for low, high in parts if low < high)  # as metering counts a span's ms

    def _peak(self, context: Context) -> int | Missing:
        """Highest sample of the run; the driver's own figure where the whole context lies in it."""
        since_us, until_us = self._ran.began_us, self._ran.ended_us
        peaks = [
            look.peak_memory_mib
            for look in self._looks_of(context)
            if look.since_us < until_us and look.until_us >= since_us and not isinstance(look.peak_memory_mib, Missing)
        ]
        is_within = context.spans[0][0] >= since_us and context.spans[-1][1] <= until_us
        if context.settled and is_within and not isinstance(context.peak_memory_mib, Missing):
            peaks.append(context.peak_memory_mib)
        return max(peaks, default=0) or NO_SAMPLE

    # What is unknown

    def _unknown(self) -> tuple[UnknownTime, ...]:
        us: dict[str, int] = {}
        devices: dict[str, set[str]] = {}
        for span in self._seen.coverage:
            if span.host == self._seen.host and span.reason:
                us[span.reason] = us.get(span.reason, 0) + span.until_us - span.since_us
                devices.setdefault(span.reason, set()).add(span.device)
        found = []
        for reason, length_us in us.items():
            meaning, command = meaning_of(reason)
            ms, count = length_us // 1000, len(devices[reason])
            found.append(UnknownTime(reason=reason, ms=ms, devices=count, meaning=meaning, command=command))
        return tuple(sorted(found, key=lambda one: (-one.ms, one.reason)))

    def _doubts(self, doubtful: Sequence[Context], lines: Sequence[ReceiptContext]) -> Iterable[Doubtful]:
        seen, membership = self._seen, self._membership
        if seen.trouble or seen.watched_by is Watcher.NOBODY:
            yield Doubtful(doubt=Doubt.NOT_WATCHED, sentence=seen.trouble or "nobody looked at the devices")
        elif seen.looks_after < ENOUGH_LOOKS:
            came = f"only {several(seen.looks_after, 'look')}" if seen.looks_after else "no look"
            told = f"{came} came after the end: what ended last can be missing"
            yield Doubtful(doubt=Doubt.NOT_SEEN_AFTER, sentence=told)
        if seen.unstored:
            told = f"not stored, this receipt is all that is kept of it: {seen.unstored}"
            yield Doubtful(doubt=Doubt.NOT_STORED, sentence=told)
        if not membership.are_the_drivers_pids:
            told = f"{NOT_OURS.reason}: only what carries the name of the command's cgroup is told as its own"
            yield Doubtful(doubt=Doubt.OTHER_PIDS, sentence=told)
        for sentence in dict.fromkeys(seen.lost):
            yield Doubtful(doubt=Doubt.EVENTS_LOST, sentence=f"process events were lost: {sentence}")
        unnamed = [one for one in doubtful if is_unnamed(one)]
        if unnamed:
            size = duration_ms(sum(one.context_ms for one in unnamed))
            told = f"{several(len(unnamed), 'context')} without a name ({size}) could be the command's own"
            yield Doubtful(doubt=Doubt.COULD_BE_OURS, sentence=told, refs=_all_refs(unnamed))
        named = [one for one in doubtful if not is_unnamed(one)]
        if named and isinstance(membership.cgroup, Missing):
            short = duration_us(SCANS_TO_MEET * membership.blind_us)
            told = (
                f"{several(len(named), 'context')} of others began after the command and lasted less than {short}, "
                f"which a scan of its processes can miss; {membership.cgroup.reason}"
            )
            yield Doubtful(doubt=Doubt.SHORT_LIVED, sentence=told, refs=_all_refs(named))
        yield from _not_settled(lines)


def _not_settled(lines: Sequence[ReceiptContext]) -> Iterable[Doubtful]:
    for state, told in (
        (State.RUNNING, "not settled, the process goes on: its time is that up to the last look"),
        (State.AWAITED, "not settled by the driver yet: its time is what looks saw"),
    ):
        same = [one for one in lines if one.state is state]
        if same:
            refs = tuple(ref for one in same for ref in one.refs)
            yield Doubtful(doubt=Doubt.NOT_SETTLED, sentence=f"{several(len(same), 'context')} {told}", refs=refs)


def _refs(context: Context) -> tuple[str, ...]:
    """Rows of the ledger behind a context: the driver's own first, then looks, then who it was."""
    written = [ref for ref in context.evidence if not ref.endswith(_UNWRITTEN)]
    kinds = [DriverRecord.kind, Sighting.kind, ProcessIdentity.kind]
    return tuple(sorted(written, key=lambda ref: kinds.index(ref.partition(":")[0])))


def _all_refs(contexts: Iterable[Context]) -> tuple[str, ...]:
    return tuple(ref for one in contexts for ref in _refs(one)[:1])


def _most_first(one: Neighbour) -> tuple[bool, int, str, str]:
    missing = isinstance(one.context_ms, Missing)
    return (missing, 0 if isinstance(one.context_ms, Missing) else -one.context_ms, one.service, one.device)
