"""Reserved time in plain Python, one workload and one moment after the other: what the statement must agree with.

Written from DESIGN section 6 alone, for tests: slow, and without any of the program's own rules.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping

from gpuledger.model.workload_rows import WorkloadEvent

HOUR = 3_600_000_000
Key = tuple[str, int, str, str]
"""(workload, hour, placement, subject)."""


def microseconds(
    events: Iterable[WorkloadEvent], *, until_us: int, beats: Mapping[str, int] | None = None
) -> dict[Key, int]:
    """What each workload ran in each hour on each placement; the placement is empty where none was named."""
    found: dict[Key, int] = defaultdict(int)
    for one in {event.workload for event in events}:
        ordered = sorted((e for e in events if e.workload == one), key=lambda e: (e.at_us, e.sequence))
        stand: list[WorkloadEvent] = []
        ended = False
        for event in ordered:
            if event.state == "provisioning":
                ended = False
            if not ended:
                stand.append(event)
            ended = ended or event.state in ("stopped", "failed")
        placement = subject = ""
        for place, event in enumerate(stand):
            if event.state == "provisioning":
                placement, subject = "", event.subject
            if event.placement:
                placement, subject = event.placement, event.subject
            elif not placement and event.state != "provisioning":
                subject = subject or event.subject
            if event.state != "running":
                continue
            if place + 1 < len(stand):
                end = stand[place + 1].at_us
            elif beats and event.source in beats:
                end = beats[event.source]
            else:
                end = event.at_us if event.is_declared else until_us
            at = event.at_us
            while at < end:
                stop = min(end, at - at % HOUR + HOUR)
                found[one, at - at % HOUR, placement, subject] += stop - at
                at = stop
    return dict(found)


def seconds(
    events: Iterable[WorkloadEvent], *, until_us: int, beats: Mapping[str, int] | None = None
) -> dict[Key, int]:
    """Whole seconds of what has a placement, rounded down once, of closed hours only."""
    whole = microseconds(list(events), until_us=until_us, beats=beats)
    return {
        key: amount // 1_000_000
        for key, amount in whole.items()
        if key[2] and key[1] + HOUR <= until_us and amount >= 1_000_000
    }
