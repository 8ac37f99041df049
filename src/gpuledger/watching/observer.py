"""The observer: one look at a driver and at names goes in, rows of evidence come out.

In: :class:`Reading`, :class:`NamesLook` and the two clocks. Out: rows not yet in the ledger. The
observer remembers only what it needs to tell new from known; what it returned is the caller's to
append, again and again if need be, since appending twice changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping

from gpuledger.model.identity import IdentityText
from gpuledger.model.missing import Missing
from gpuledger.model.moments import CLOCK_TOLERANCE_US, hour_floor, iso
from gpuledger.model.readings import DeviceReading, LivingContext, Named, NamesLook, Reading
from gpuledger.model.reasons import BY_EVENTS, UnknownReason
from gpuledger.model.rows import Row, Sighting, Watch
from gpuledger.watching.accounting import AccountingList, driver_record
from gpuledger.watching.contexts import LiveContext, first_look
from gpuledger.watching.devices import changes, device_rows, losses
from gpuledger.watching.identities import Identities
from gpuledger.watching.memory import Beat, Memory
from gpuledger.watching.opens import Opens
from gpuledger.watching.spans import WatchSpan

SLOW_US = 1_000_000
"""Who reads longer than this does not know when what is new to it began: half of what a look and a row may differ."""

_NOTHING_LISTED = AccountingList()
"""What is remembered of a device that was never seen."""

_NAMES = ""
"""The device of the naming watch: it watches the whole host."""


class Observer:
    """Turns looks into rows.

    Args:
        host: name of this machine in the ledger.
        boot_id: the kernel's boot id.
        key_of: gives the ledger's key of an identity text.
        beat: the rhythm of looking; may be changed between looks.
        memory: what an earlier run left.
        naming_note: a sentence for the first row of the naming watch, such as why a better method is not used.
    """

    def __init__(
        self,
        *,
        host: str,
        boot_id: str,
        key_of: Callable[[IdentityText], str],
        beat: Beat,
        memory: Memory,
        naming_note: str = "",
    ) -> None:
        self.beat = beat
        self._naming_note = naming_note
        self.most_fresh_rows = 0
        self._host = host
        self._boot_id = boot_id
        self._devices = memory.devices
        self._lists = memory.lists
        self._contexts = memory.contexts
        self._looked_us = memory.looked_us
        self._spans: dict[tuple[str, str], WatchSpan] = {}
        self._identities = Identities(host=host, boot_id=boot_id, key_of=key_of)
        self._opens = Opens(host=host, boot_id=boot_id)
        self._load = ""
        self._last_us = 0
        self._offset_us: int | None = None
        self._flushed_at_us = 0

    def pids_to_name(self, reading: Reading) -> set[int]:
        """Pids whose identity this look needs: the living, the vanished, and those of rows not known yet."""
        pids = {pid for _, pid in self._contexts}
        for device in reading.devices.values():
            pids.update(context.pid for context in device.living)
            pids |= self._lists.get(device.uuid, _NOTHING_LISTED).unknown_pids(device)
        return pids

    def restarted(self, reading: Reading) -> set[int]:
        """Pids with a context that was not there at the last look: the process may have become another program."""
        return {
            seen.pid
            for device in reading.devices.values()
            for seen in device.living
            if (seen.device, seen.pid) not in self._contexts
        }

    def look(self, reading: Reading, names: NamesLook, *, at_us: int, boot_us: int, lasted_us: int = 0) -> list[Row]:
        """One look: every row that it makes known.

        Args:
            at_us, boot_us: when it began: what had happened by then, it saw.
            lasted_us: how long the driver took to be read; on a busy machine seconds.
        """
        rows: list[Row] = []
        stepped = self._clock_step(at_us, boot_us, reading.method, rows)
        status = UnknownReason.EVENTS_LOST if names.lost else "ok"
        note, self._naming_note = "; ".join(told for told in (names.lost, self._naming_note) if told), ""
        self._watch(_NAMES, "process", names.method, at_us, status, rows, detail=note, stepped=stepped)
        starts: dict[int, list[int]] = {}
        self.most_fresh_rows = 0
        touched = self._opens.take(names, reading.devices.values(), at_us=at_us)
        for device in reading.devices.values():
            rows.extend(changes(self._devices, device_rows(device, reading, host=self._host, at_us=at_us)))
            self._finished(device, reading, names, at_us, starts, rows, stepped=stepped)
        self._load, self._last_us = reading.load, at_us
        present = set(reading.devices) | {part.uuid for whole in reading.devices.values() for part in whole.slices}
        rows.extend(losses(self._devices, present, at_us=at_us))
        for uuid, event in self._devices.items():
            if event.event == "lost" and not event.parent:
                self._watch(uuid, "driver", reading.method, at_us, UnknownReason.DEVICE_LOST, rows, stepped=stepped)
        living = {(seen.device, seen.pid): seen for whole in reading.devices.values() for seen in whole.living}
        self._gone(living, present, names, reading.method, at_us, rows)
        settling = {whole.uuid for whole in reading.devices.values() if whole.accounting == "enabled"}
        self._alive(
            living, names, reading.method, at_us, rows, stepped=stepped, undated=settling if lasted_us > SLOW_US else ()
        )
        rows.extend(self._identities.look(names, {pid for _, pid in living}, starts, touched, at_us=at_us))
        due_us = self._flushed_at_us + self.beat.flush_us
        if at_us >= due_us or hour_floor(at_us) != hour_floor(self._flushed_at_us):
            rows.extend(self.flush(reading.method, at_us))
        return rows

    def unreachable(self, *, at_us: int, method: str, sentence: str) -> list[Row]:
        """The driver did not answer at this look: UNKNOWN for every device known so far, or for the host."""
        rows: list[Row] = []
        for uuid in [uuid for uuid, event in self._devices.items() if not event.parent] or [""]:
            self._watch(uuid, "driver", method, at_us, UnknownReason.DRIVER_UNREACHABLE, rows, detail=sentence)
        rows.extend(self._unwritten(self._contexts.values(), method))
        if at_us >= self._flushed_at_us + self.beat.flush_us:
            rows.extend(self.flush(method, at_us))
        return rows

    def flush(self, method: str, at_us: int) -> list[Row]:
        """Write everything unwritten; spans go on from the last look."""
        rows: list[Row] = []
        for span in self._spans.values():
            rows.extend(span.cut(span.until_us))
        rows.extend(self._unwritten(self._contexts.values(), method))
        self._flushed_at_us = at_us
        return rows

    def _unwritten(self, contexts: Iterable[LiveContext], method: str) -> list[Sighting]:
        """What looks have seen of these contexts and is not written."""
        return [context.write(host=self._host, method=method) for context in contexts if context.samples]

    def _clock_step(self, at_us: int, boot_us: int, method: str, rows: list[Row]) -> bool:
        """Whether the wall clock was set since the last look; every span then ends at the last look."""
        offset_us, before_us = at_us - boot_us, self._offset_us
        self._offset_us = offset_us
        if before_us is None or abs(offset_us - before_us) > CLOCK_TOLERANCE_US:
            rows.append(self._clocks(at_us, offset_us))
        if before_us is None or abs(offset_us - before_us) <= CLOCK_TOLERANCE_US:
            return False
        moved_s = (offset_us - before_us) // 1_000_000
        sentence = f"the clock was set {'forward' if moved_s > 0 else 'back'} {abs(moved_s)} s"
        rows.extend(self.flush(method, at_us))
        # the wall-clock time that was lived twice, or skipped, is what nobody can tell apart
        rows.extend(
            span.gap(min(at_us, span.until_us), max(at_us, span.until_us), UnknownReason.CLOCK_STEP, sentence)
            for span in self._spans.values()
        )
        for span in self._spans.values():
            span.cut(at_us)
        for context in self._contexts.values():
            context.since_us = context.last_look_us = at_us
        self._opens.step(at_us)
        return True

    def _clocks(self, at_us: int, offset_us: int) -> Watch:
        """How the boot-time clock of events stands to the wall clock: a look of no length, when it is first known."""
        told = f"by the wall clock the machine booted at {iso(offset_us)}, {offset_us} us ahead of the boot-time clock"
        return Watch(
            host=self._host, device="", source="clock", method="clock", interval_ms=0, since_us=at_us, until_us=at_us,
            status="ok", readings=0, detail=told,
        )  # fmt: skip

    def _watch(
        self,
        device: str,
        source: str,
        method: str,
        at_us: int,
        status: str,
        rows: list[Row],
        *,
        loss: str = "",
        fresh: int = 0,
        living: int = 0,
        detail: str = "",
        stepped: bool = False,
    ) -> None:
        """One look of one source: continues its span, or begins one, with the gap before it as a row."""
        span = self._spans.get((source, device))
        earlier_us = self._looked_us.pop((source, device), None) if span is None else span.until_us
        if span is None:
            since_us = at_us if earlier_us is None else earlier_us
            span = WatchSpan(
                host=self._host, device=device, source=source, method=method, interval_ms=self.beat.interval_ms,
                since_us=since_us, until_us=since_us, status=loss or status,
            )  # fmt: skip
            self._spans[source, device] = span
            first = True
        else:
            first = False
        listened = source == "process" and method in BY_EVENTS and not first  # events are taken up between looks too
        deaf = source == "process" and method in BY_EVENTS and first  # events from before it began went unheard
        is_late = earlier_us is not None and not 0 <= at_us - earlier_us <= (0 if deaf else self.beat.gap_us)
        paused = is_late and not stepped and not listened
        if paused and earlier_us is not None:
            rows.extend(span.cut(at_us))
            if at_us > earlier_us:
                rows.append(span.gap(earlier_us, at_us))
                if loss:
                    rows.append(span.gap(earlier_us, at_us, loss, detail))
            loss = ""
        rows.extend(
            span.look(
                at_us, loss or status, interval_ms=self.beat.interval_ms, new_rows=fresh, living=living, detail=detail
            )
        )
        if first or paused:
            rows.extend(span.cut(at_us))

    def _finished(
        self,
        device: DeviceReading,
        reading: Reading,
        names: NamesLook,
        at_us: int,
        starts: dict[int, list[int]],
        rows: list[Row],
        *,
        stepped: bool,
    ) -> None:
        found = self._lists.setdefault(device.uuid, AccountingList()).look(device)
        self.most_fresh_rows = max(self.most_fresh_rows, len(found.fresh))
        for row in found.fresh:
            rows.append(driver_record(row, host=self._host, device=device.uuid, reading=reading, at_us=at_us,
                                      driver_epoch=self._boot_id))  # fmt: skip
            starts.setdefault(row.pid, []).append(
                at_us if isinstance(row.started_at_us, Missing) else row.started_at_us
            )
        span = self._spans.get(("driver", device.uuid))
        # a look that left this device out told of opens all the same, and broke what can be proven
        is_next = span is not None and span.until_us == self._last_us and 0 <= at_us - span.until_us <= self.beat.gap_us
        told = self._opens.judge(
            device, found, names, at_us=at_us, since_us=span.until_us if span and is_next and not stepped else None,
            before="" if span is None else span.status, is_same_load=bool(reading.load) and reading.load == self._load,
            last_look_us=span.until_us if span and not stepped else None,
        )  # fmt: skip
        rows.extend(told.sightings)
        self._watch(
            device.uuid, "driver", reading.method, at_us, told.status, rows,
            loss=told.loss, fresh=len(found.fresh), living=len(device.living), detail=told.detail, stepped=stepped,
        )  # fmt: skip
        span = self._spans["driver", device.uuid]
        rows.extend(span.gap(low, high, UnknownReason.ROW_FREED, sentence) for low, high, sentence in told.freed)

    def _gone(
        self,
        living: Mapping[tuple[str, int], LivingContext],
        present: set[str],
        names: NamesLook,
        method: str,
        at_us: int,
        rows: list[Row],
    ) -> None:
        """Contexts no longer there, or followed by another of the same pid: written with the look that missed them."""
        for key, context in list(self._contexts.items()):
            seen, named = living.get(key), names.current.get(context.pid)
            # while a pid's later context runs, the driver shows the row of the one before (gpu_acct.c)
            is_settled = self._lists.get(context.device, _NOTHING_LISTED).has(context.pid, context.started_at_us)
            let_go_us = self._opens.lets_go(
                context.device, context.pid, context.start_ticks, since_us=context.last_look_us, until_us=at_us
            )
            if seen is not None and context.is_same(seen, named) and not is_settled and let_go_us is None:
                continue
            if seen is None and context.device not in present:
                rows.extend(self._unwritten([context], method))
                continue  # the device itself was not read: that says nothing about its contexts
            lives_on = context.pid in names.unreadable or (
                named is not None and context.start_ticks in (0, named.start_ticks)
            )
            lives_on |= let_go_us is not None
            exited_us = names.exits.get((context.pid, context.start_ticks)) if let_go_us is None else let_go_us
            gone_us = context.ends(exited_us, at_us)
            rows.append(context.write(host=self._host, method=method, gone_at_us=gone_us, died=not lives_on))
            del self._contexts[key]

    def _alive(
        self,
        living: Mapping[tuple[str, int], LivingContext],
        names: NamesLook,
        method: str,
        at_us: int,
        rows: list[Row],
        *,
        stepped: bool,
        undated: Collection[str],
    ) -> None:
        """Contexts that are there.

        Args:
            undated: devices whose rows tell of a new context, and on which this look cannot say when one began: it
                waits for the next look, or for its row, beside which it would count.
        """
        gap_us, longest_us = self.beat.gap_us, self.beat.longest_sample_us
        for key, seen in living.items():
            named = names.current.get(seen.pid)
            held = self._contexts.get(key)
            if held is not None and (proven := held.learns_start(seen)) is not None:
                rows.append(proven.write(host=self._host, method=method))
            if held is not None and (stepped or at_us - held.last_look_us <= gap_us):
                held.look(seen, named, boot_id=self._boot_id, at_us=at_us, longest_us=longest_us)
                continue
            if held is None and seen.device in undated and isinstance(seen.started_at_us, Missing):
                continue
            self._contexts[key] = self._begin(seen, named, held, method, at_us, rows)

    def _opened_us(self, seen: LivingContext, named: Named | None) -> int | None:
        """When an event saw the process of a context open its GPU."""
        event = self._devices.get(seen.device)
        if named is None or event is None:
            return None
        return self._opens.begins(event.parent or event.device, named.pid, named.start_ticks)

    def _begin(
        self,
        seen: LivingContext,
        named: Named | None,
        held: LiveContext | None,
        method: str,
        at_us: int,
        rows: list[Row],
    ) -> LiveContext:
        """A context new to this watch, or seen again after a gap: written at once."""
        if held is not None and held.samples:
            rows.append(held.write(host=self._host, method=method))
        context, proven = first_look(
            seen, named, boot_id=self._boot_id, at_us=at_us, longest_us=self.beat.longest_sample_us,
            known_until_us=0 if held is None else held.last_look_us,
            opened_us=self._opened_us(seen, named) if held is None else None,
        )  # fmt: skip
        if held is not None:
            context.accounted, context.absent_readings = held.accounted, held.absent_readings
        if proven is not None:
            rows.append(proven.write(host=self._host, method=method))
        rows.append(context.write(host=self._host, method=method))
        return context
