"""One row of a trace: its cells read as the map declares, or the problem that keeps it out.

In: cells and a ``TraceMap``. Out: a ``Run``, one stay of a workload on its devices. Exact throughout: times in
microseconds, shares as fractions.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from gpuledger.errors import Misconfigured
from gpuledger.model.addresses import indexed, is_index
from gpuledger.model.lifecycle import CPU, Placement
from gpuledger.model.moments import CLOCK_TOLERANCE_US, SECOND_US
from gpuledger.model.problem import Problem
from gpuledger.sources.device_lists import NamedTwice, devices_in
from gpuledger.sources.trace_map import TraceMap
from gpuledger.sources.trace_times import ZoneNeeded

_AMOUNT = re.compile(
    r"((?:[0-9]{1,15}(?:\.[0-9]{0,18})?|\.[0-9]{1,18})(?:[eE][+-]?[0-9]{1,2})?|[0-9]{1,15}/0*[1-9][0-9]{0,8}) ?(%?)"
)


class LeftOut(Exception):
    """A row that is left out, with its problem."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.message)
        self.problem = problem


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One stay of a workload on its devices, as one row tells it.

    Args:
        line: where its row begins, 1-based.
        workload: its id.
        pending_us: when it was asked for; None where nothing tells.
        start_us: when it began to hold devices; None where it only ever waited.
        end_us: when it let go, or gave up waiting; None where it is open.
        failed: how it ended.
        placement: None where nothing tells its class, or where it only ever waited.
        owner: user, team, project.
        requested_class: may be empty.
        labels: sorted by name.
        told: what was imperfect about it although it is kept.
    """

    line: int
    workload: str
    pending_us: int | None
    start_us: int | None
    end_us: int | None
    failed: bool
    placement: Placement | None
    owner: tuple[str, str, str]
    requested_class: str
    labels: tuple[tuple[str, str], ...]
    told: tuple[Problem, ...]

    @property
    def since_us(self) -> int:
        """When it begins, waiting included only where it never did more."""
        since_us = self.start_us if self.start_us is not None else self.pending_us
        assert since_us is not None
        return since_us


class RowReader:
    """Reads rows of one file.

    Args:
        trace_map: what its columns say.
        header: the names of its columns; each that the map names is among them.
    """

    def __init__(self, trace_map: TraceMap, header: Sequence[str]) -> None:
        self._map = trace_map
        self._times = trace_map.times
        self._choice = trace_map.rows
        place = {name: index for index, name in enumerate(header)}
        self._columns = {word: tuple(place[name] for name in names) for word, names in trace_map.columns.items()}
        self._labels = tuple((name, place[column]) for name, column in trace_map.labels)
        self._placing = tuple(place for word in _PLACING for place in self._columns.get(word, ()))
        self._placements: dict[tuple[str, ...], tuple[Placement, Problem | None]] = {}
        ends = trace_map.times.read(trace_map.censored_at) if trace_map.censored_at else (None,)
        self.censored_us: int | None = ends[-1]
        """The end of the trace, where it was declared."""
        begins = trace_map.times.read(trace_map.begins_at) if trace_map.begins_at else (None,)
        self.begins_us: int | None = begins[0]
        """Its beginning, where rows without a start ran already."""

    def read(self, cells: Sequence[str], line: int) -> Run:
        """The run that a row tells.

        Raises:
            LeftOut: it tells none.
            ZoneNeeded: its times are local, and the map names no zone.
        """
        workload = self._cell("id", cells)
        if not workload:
            raise LeftOut(Problem(code="no-id", message="a row without an id: nobody could be said to have run"))
        told: list[Problem] = []
        pending_us, start_us, end_us = self._span(cells, told)
        requested = self._cell("requested_class", cells)
        placement = self._placement(cells, told) if start_us is not None else None
        owner = (self._cell("user", cells), self._cell("team", cells), self._cell("project", cells))
        labels = self._labelled(cells)
        for text in (workload, requested, *owner, *(text for _, text in labels)):
            if not text.isprintable():
                raise LeftOut(Problem(code="bad-name", message=f"{text[:40]!r} holds characters that no name has"))
        return Run(
            line=line,
            workload=f"{self._map.prefix}{workload}",
            pending_us=pending_us,
            start_us=start_us,
            end_us=end_us,
            failed=self._cell("outcome", cells) in self._map.failed,
            placement=placement,
            owner=owner,
            requested_class=requested,
            labels=labels,
            told=tuple(told),
        )

    def _cell(self, word: str, cells: Sequence[str]) -> str:
        """What a row says of a word: its cell, else the constant, else empty."""
        places = self._columns.get(word)
        if places is not None:
            text = cells[places[0]].strip() if len(places) == 1 else "/".join(cells[i].strip() for i in places)
            if text.strip("/") and text not in self._map.missing.get(word, ()):
                return text
        return self._map.constants.get(word, "")

    def _labelled(self, cells: Sequence[str]) -> tuple[tuple[str, str], ...]:
        found = dict(self._map.constant_labels)
        found |= {name: text for name, place in self._labels if (text := cells[place].strip())}
        return tuple(sorted(found.items()))

    def _span(self, cells: Sequence[str], told: list[Problem]) -> tuple[int | None, int | None, int | None]:
        pending = self._moments("pending", cells, told)
        starts = self._moments("start", cells)
        if not starts and not pending and self.begins_us is not None:
            starts = (self.begins_us,)
        if not starts and self._choice["without_start"] != "pending":
            raise LeftOut(Problem(code="not-scheduled", message="no start: it never ran, so nothing was held"))
        since = starts or pending
        if not since:
            raise LeftOut(Problem(code="no-times", message="neither a start nor a time of asking"))
        start_us, end_us = self._ends(since, cells, told, ran=bool(starts))
        if not starts:
            return start_us, None, self._at_trace_end(end_us, start_us, told)
        pending_us = pending[0] if pending else None
        if pending_us is not None and pending_us > start_us:
            message = "asked for after it had started, so its waiting is unknown; its run is kept"
            told.append(Problem(code="pending-after-start", message=message))
            pending_us = None
        return pending_us, start_us, self._at_trace_end(end_us, start_us, told)

    def _moments(self, word: str, cells: Sequence[str], told: list[Problem] | None = None) -> tuple[int, ...]:
        """The moments of a word, none where it is not told; with ``told`` a bad one costs the word, not the row."""
        text = self._cell(word, cells)
        try:
            moments = self._times.read(text) if text else ()
        except ZoneNeeded:
            raise
        except ValueError as error:
            problem = Problem(code="bad-time", message=f"{word}: {error}")
            if told is None:
                raise LeftOut(problem) from None
            told.append(problem)
            return ()
        if told is not None and len(moments) > 1:
            told.append(
                Problem(code="ambiguous-local-time", message=f"{word}: {text!r} {_TWICE}; its waiting is unknown")
            )
            return ()
        return moments

    def _ends(
        self, since: tuple[int, ...], cells: Sequence[str], told: list[Problem], *, ran: bool
    ) -> tuple[int, int | None]:
        """Start and end, of those that the local clock leaves possible; the end None where it is not told.

        The row's own facts tell which hour of two is meant: start + duration = end, and no end before its start. Of
        what never ran the duration says nothing: it is how long devices were held, and not how long it waited.
        """
        ends = self._moments("end", cells) if "end" in self._columns else ()
        lasted_us = self._lasted(cells) if ran and "duration" in self._columns else None
        pairs: list[tuple[int, int | None]] = [(at_us, end_us) for at_us in since for end_us in ends]
        if not ends:
            pairs = [(at_us, None if lasted_us is None else at_us + lasted_us) for at_us in since]
        if pairs[0][1] is None and self._choice["without_end"] == "left-out":
            raise LeftOut(Problem(code="no-end", message="no end, and the map does not say that such rows are open"))
        possible = [pair for pair in pairs if pair[1] is None or pair[0] <= pair[1]]
        if not possible:
            raise LeftOut(Problem(code="end-before-start", message="it ends before it starts"))
        if ends and lasted_us is not None:
            fits = [pair for pair in possible if abs((pair[1] or 0) - pair[0] - lasted_us) <= CLOCK_TOLERANCE_US]
            if not fits:
                message = (
                    f"from start to end it is {_seconds(possible[0])} s, and its duration says "
                    f"{lasted_us // SECOND_US:,} s; start and end count"
                )
                told.append(Problem(code="elapsed-differs", message=message))
            possible = fits or possible
        if len(possible) == 1:
            return possible[0]
        if (
            len({None if pair[1] is None else pair[1] - pair[0] for pair in possible}) == 1
            and possible[0][1] is not None
        ):
            message = (
                f"an hour {_TWICE}, and it may lie in either; how long it was is sure, so it is counted, in the first"
            )
            told.append(Problem(code="ambiguous-local-time", message=message))
            return possible[0]
        message = f"its local times can mean {len(possible)} spans: an hour {_TWICE}; declare `repeated_hour`"
        raise LeftOut(Problem(code="ambiguous-local-time", message=message))

    def _lasted(self, cells: Sequence[str]) -> int | None:
        text = self._cell("duration", cells)
        if not text:
            return None
        try:
            return self._times.lasting(text, self._map.duration_unit)
        except ValueError as error:
            told = f"duration: {error}" + ("; write units: {duration: clock}" if ":" in text else "")
            raise LeftOut(Problem(code="bad-time", message=told)) from None

    def _at_trace_end(self, end_us: int | None, since_us: int, told: list[Problem]) -> int | None:
        last_us = self.censored_us
        if last_us is None:
            return end_us
        if end_us is None and since_us > last_us:
            raise LeftOut(Problem(code="after-trace-end", message="it starts after the declared end of the trace"))
        if end_us is not None and end_us > last_us:
            told.append(Problem(code="after-trace-end", message="it ends after the declared end of the trace; kept"))
        return None if end_us == last_us and self._choice["censored"] == "open" else end_us

    def _placement(self, cells: Sequence[str], told: list[Problem]) -> Placement | None:
        key = tuple(cells[place] for place in self._placing)
        found = self._placements.get(key) or self._placed(*(self._cell(word, cells) for word in _PLACING))
        if found is None:
            message = "nothing tells its class, so it is kept without a placement and not metered"
            told.append(Problem(code="no-class", message=message))
            return None
        self._placements[key] = found
        placement, unnamed = found
        if placement.count and unnamed is not None:
            told.append(unnamed)
        return placement

    def _placed(
        self, devices: str, device_ids: str, instances: str, share: str,
        class_name: str, region: str, machine: str, pool: str,
    ) -> tuple[Placement, Problem | None] | None:  # fmt: skip
        """What a row holds, and why its devices are counted and not named; None where nothing tells their class."""
        names, unnamed = _named(device_ids, machine, is_counted=bool(devices))
        try:
            ids = tuple(sorted({indexed(name, machine) for name in names})) if unnamed is None else ()
        except Misconfigured as error:
            raise LeftOut(Problem(code="bad-placement", message=error.message)) from None
        count, part = self._counted(devices, ids or names, instances, share)
        class_name = self._map.classes.get(class_name, class_name)
        if not count:
            if self._choice["without_devices"] == "left-out":
                raise LeftOut(Problem(code="no-devices", message="no device, so no device was held"))
            class_name, part = CPU, Fraction(1)
        if not class_name:
            return None
        for text in (class_name, region, machine, pool, *ids):
            if not text.isprintable():
                raise LeftOut(Problem(code="bad-name", message=f"{text[:40]!r} holds characters that no name has"))
        try:
            placement = Placement(
                class_name=class_name, region=region, machine=machine, pool=pool, devices=ids, count=count, share=part
            )
        except Misconfigured as error:
            raise LeftOut(Problem(code="bad-placement", message=error.message)) from None
        return placement, unnamed

    def _counted(self, devices: str, ids: tuple[str, ...], instances: str, share: str) -> tuple[int, Fraction]:
        """How many devices, and how much of each."""
        amount = self._number(devices, self._map.devices_per) if devices else Fraction(len(ids))
        if amount is None or not (devices or ids):
            told = f"{devices[:40]!r} is not a number of devices" if devices else "nothing tells how many devices"
            raise LeftOut(Problem(code="bad-devices", message=told))
        if devices and ids and amount != len(ids):
            message = f"{devices[:40]} devices are counted, and {len(ids)} are named"
            raise LeftOut(Problem(code="bad-devices", message=message))
        part = Fraction(1)
        if "share" in self._columns or "share" in self._map.constants:
            part = self._part(share) if amount else part
        elif 0 < amount < 1:
            amount, part = Fraction(1), amount
        if amount.denominator != 1:
            message = f"{devices[:40]!r}: more than one device and not whole, so the share of each is not told"
            raise LeftOut(Problem(code="bad-devices", message=message))
        times = self._number(instances, 1) if instances else Fraction(1)
        if times is None or times.denominator != 1:
            raise LeftOut(Problem(code="bad-devices", message=f"{instances[:40]!r} is not a number of instances"))
        return int(amount * times), part

    def _part(self, share: str) -> Fraction:
        part = self._number(share, self._map.share_per) if share else None
        if part is None or not 0 < part <= 1:
            said = f"a share of {share[:40]!r}" if share else "no share"
            message = f"{said}: above 0 and at most {self._map.share_per} of {self._map.share_per} is possible"
            raise LeftOut(Problem(code="bad-share", message=message))
        return part

    def _number(self, text: str, per: int) -> Fraction | None:
        """A number of units, ``per`` of which are one; None where it is none or below 0."""
        match = _AMOUNT.fullmatch(text.replace(",", ".") if self._times.decimal_comma else text)
        if match is None or (match[2] and per != 100):
            return None
        return Fraction(match[1]) / per


_PLACING = ("devices", "device_ids", "instances", "share", "class", "region", "machine", "pool")
_TWICE = "was shown twice by the local clock"


def _named(device_ids: str, machine: str, *, is_counted: bool) -> tuple[tuple[str, ...], Problem | None]:
    """The devices of a cell, and why they cannot be named though they count.

    Args:
        device_ids: the cell.
        machine: whose numbers they are; may be empty.
        is_counted: whether the row tells their number beside their names.

    Raises:
        LeftOut: ``bad-devices``.
    """
    try:
        names = devices_in(device_ids)
    except NamedTwice as error:
        if is_counted:
            return (), Problem(code="device-twice", message=f"{error}; counted as `devices` says, and not named")
        way_out = "map the column of their number as `devices`, and it is counted"
        raise LeftOut(Problem(code="bad-devices", message=f"{error}; {way_out}")) from None
    except ValueError as error:
        raise LeftOut(Problem(code="bad-devices", message=str(error))) from None
    if machine or not any(is_index(name) for name in names):
        return names, None
    message = "its devices are numbers, and of which machine nothing tells: counted, and not named"
    return names, Problem(code="no-machine", message=message)


def _seconds(span: tuple[int, int | None]) -> str:
    return f"{((span[1] or span[0]) - span[0]) // SECOND_US:,}"
