"""Reserved time of the last hours, one workload at a time: what no pass has recorded yet, up to a moment.

In: the events of a workload. Out: its runs, and the whole seconds of each in a window. It must agree with the
statement ``reserved.sql``, which meters all workloads at once; this costs one workload, and reads nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from gpuledger.metering.lifecycles import OPEN, standing
from gpuledger.model.lifecycle import METERED, State
from gpuledger.model.missing import Missing
from gpuledger.model.moments import HOUR_US, SECOND_US, hour_floor
from gpuledger.model.workload_rows import WorkloadEvent


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A span in which a workload ran.

    Args:
        since_us: start, microseconds UTC.
        until_us: end; Missing while nothing has ended it.
        placement: key of what it ran on; empty where none is known.
        subject: key of the text of its admission.
        source: who says so.
        is_declared: whether an importer declares it: then it is known to its start only.
    """

    since_us: int
    until_us: int | Missing
    placement: str
    subject: str
    source: str
    is_declared: bool

    def end(self, beats: Mapping[str, int], now_us: int) -> int:
        """Until when it is counted: its end, else the last heartbeat of a source that has any, else now."""
        if not isinstance(self.until_us, Missing):
            return min(self.until_us, now_us)
        if self.source in beats:
            return min(beats[self.source], now_us)
        return self.since_us if self.is_declared else now_us


def runs(events: Iterable[WorkloadEvent]) -> list[Run]:
    """The runs of a workload, in order: from each ``running`` to the next event that stands."""
    stand = standing(events)
    found: list[Run] = []
    placement, subject = "", ""
    for place, event in enumerate(stand):
        if event.state == State.PROVISIONING or not subject:
            placement, subject = "", event.subject
        if event.placement:
            placement, subject = event.placement, event.subject
        if event.state not in METERED:
            continue
        until_us = stand[place + 1].at_us if place + 1 < len(stand) else OPEN
        if until_us != event.at_us:
            found.append(
                Run(
                    since_us=event.at_us, until_us=until_us, placement=placement, subject=subject,
                    source=event.source, is_declared=bool(event.is_declared),
                )
            )  # fmt: skip
    return found


def seconds(
    found: Iterable[Run], *, since_us: int, until_us: int, beats: Mapping[str, int]
) -> Iterator[tuple[str, str, int, int]]:
    """(placement, subject, hour, whole seconds) of runs in a window, rounded down once an hour as records are.

    Args:
        found: runs of one workload.
        since_us: start of the window, on an hour.
        until_us: its end: now.
        beats: the last heartbeat of each source that has any.
    """
    sums: dict[tuple[str, str, int], int] = {}
    for run in found:
        at_us, end_us = max(run.since_us, since_us), run.end(beats, until_us)
        while at_us < end_us:
            hour_us = hour_floor(at_us)
            part_us = min(end_us, hour_us + HOUR_US)
            key = (run.placement, run.subject, hour_us)
            sums[key] = sums.get(key, 0) + part_us - at_us
            at_us = part_us
    for (placement, subject, hour_us), amount_us in sums.items():
        yield placement, subject, hour_us, amount_us // SECOND_US
