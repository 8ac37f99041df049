"""``capacity``: what is always queued, how often something else is given, how much is held and owned, by class."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import groupby
from operator import attrgetter

from gpuledger.accounting.capacity import capacity as answer
from gpuledger.accounting.snapshot import LOST, standing
from gpuledger.errors import Misconfigured
from gpuledger.ledger.store import Ledger
from gpuledger.metering.lifecycles import holdings
from gpuledger.metering.waits import admissions
from gpuledger.model.capacity import Admission, CapacityReport, HeldSpan
from gpuledger.model.missing import Missing
from gpuledger.model.moments import iso
from gpuledger.model.rows import DeviceEvent
from gpuledger.model.workload_rows import PlacementRow, WorkloadEvent
from gpuledger.operations.archived import archived_between, missing

_NO_DEVICES = Fraction(0)
_EARLIEST_US = -(2**62)


def capacity(
    ledger: Ledger, *, since_us: int | None, until_us: int | None, class_name: str = "", now_us: int
) -> CapacityReport:
    """Waits, fallbacks and what is held, by class.

    Time is known until now where a control plane tells it live, until its last heartbeat where it has any, and for
    history until its last event.

    Args:
        ledger: open in either mode.
        since_us: start of the window; None: the first event.
        until_us: its end; None: until when any of it is known.
        class_name: only this class, and requests that it meets; empty for all.
        now_us: the time that is asked at.

    Raises:
        Misconfigured: ``empty-window`` when it ends before it begins.
        Unavailable: ``archive-missing`` where events of the window are archived, and not at hand.
    """
    left = archived_between(
        ledger, _EARLIEST_US if since_us is None else since_us, now_us if until_us is None else until_us
    )
    left = [row for row in left if row.rows_of == WorkloadEvent.kind]
    if left:
        raise missing(
            left, "what was asked for and held then", f"gpuledger capacity --since {iso(left[-1].before_us)}, or"
        )  # fmt: skip
    with ledger.snapshot():
        events = sorted(ledger.scan(WorkloadEvent, until_us=now_us), key=attrgetter("workload", "at_us", "sequence"))
        placements = {row.placement: row for row in ledger.scan(PlacementRow)}
        devices = list(ledger.scan(DeviceEvent))
        beats = last_beats(ledger)
    ends = {workload: known_until(told, beats, now_us) for workload, told in _by_workload(events)}
    since_us, until_us = _window(events, ends, since_us, until_us, now_us)
    classes = {key: row.class_name for key, row in placements.items()}
    asked: list[Admission] = []
    held: list[HeldSpan] = []
    for workload, told in _by_workload(events):
        asked += admissions(told, known_until_us=ends[workload], classes=classes)
        for stay in holdings(told):
            placed = placements.get(stay.placement)
            held.append(
                HeldSpan(
                    class_name=placed.class_name if placed else "",
                    amount=Fraction(placed.count * placed.share_num, placed.share_den) if placed else _NO_DEVICES,
                    since_us=stay.since_us,
                    until_us=ends[workload] if isinstance(stay.until_us, Missing) else stay.until_us,
                )
            )
    owned = Counter(event.class_name for event in standing(devices, at_us=until_us).values() if event.event != LOST)
    return answer(since_us=since_us, until_us=until_us, admissions=asked, held=held, owned=owned, class_name=class_name)


def _by_workload(events: Sequence[WorkloadEvent]) -> Iterator[tuple[str, list[WorkloadEvent]]]:
    for workload, told in groupby(events, key=attrgetter("workload")):
        yield workload, list(told)


def last_beats(ledger: Ledger) -> dict[str, int]:
    """The last heartbeat of each source that has any."""
    beats: dict[str, int] = {}
    for watch in ledger.coalesced_watches(source="controller"):
        beats[watch.host] = max(watch.until_us, beats.get(watch.host, watch.until_us))
    return beats


def known_until(told: Sequence[WorkloadEvent], beats: dict[str, int], now_us: int) -> int:
    """Until when a workload is known to stand as its last event says."""
    last = told[-1]
    if last.source in beats:
        return max(last.at_us, beats[last.source])
    return last.at_us if last.is_declared else now_us


def _window(
    events: Sequence[WorkloadEvent], ends: dict[str, int], since_us: int | None, until_us: int | None, now_us: int
) -> tuple[int, int]:
    begins_us = since_us if since_us is not None else min((event.at_us for event in events), default=now_us)
    last_us = max(ends.values(), default=now_us)
    if until_us is None:
        until_us = last_us if last_us > begins_us else now_us
    ends_us = min(until_us, now_us)
    if begins_us > ends_us or (since_us is not None and begins_us == ends_us):
        raise Misconfigured(
            "empty-window",
            f"the window ends at {iso(ends_us)}, before it begins at {iso(begins_us)}",
            hint="--since must lie before --until, and before now",
        )
    return begins_us, ends_us
