"""What a look should not wait for."""

from __future__ import annotations

import pytest

from gpuledger.sources import urgent_events
from gpuledger.sources.process_events import NVIDIA_MAJOR, Happened, ProcessEvent
from gpuledger.sources.urgent_events import UrgentEvents

EXEC, FORK, EXIT, OPEN, HOLD = Happened
OWN_PID = 42


def event(what: Happened, pid: int = 7, *, major: int = NVIDIA_MAJOR, minor: int = 0) -> ProcessEvent:
    return ProcessEvent(what, 0, pid, 1, 0, major, minor)


@pytest.mark.parametrize(
    ("events", "urgent"),
    [
        ([event(OPEN), event(EXEC)], True),
        ([event(HOLD), event(EXEC)], True),
        ([event(EXEC), event(OPEN)], False),
        ([event(OPEN), event(EXIT)], False),
        ([event(OPEN), event(EXIT), event(FORK), event(EXEC)], False),
        ([event(OPEN), event(EXEC, pid=8)], False),
        ([event(OPEN, minor=255), event(EXEC)], False),
        ([event(OPEN, major=234), event(EXEC)], False),
        ([event(OPEN, pid=OWN_PID), event(EXEC, pid=OWN_PID)], False),
    ],
)
def test_a_holder_of_a_device_that_becomes_another_program_is_urgent(events: list, urgent: bool) -> None:
    """Its row may be freed by the next one; nothing else is."""
    noticed = UrgentEvents(own_pid=OWN_PID)
    for one in events:
        noticed.note([one])
    assert noticed.told.is_set() is urgent


def test_a_program_is_urgent_once() -> None:
    """The next exec counts only if the device was opened again."""
    noticed = UrgentEvents(own_pid=OWN_PID)
    noticed.note([event(OPEN), event(EXEC)])
    noticed.told.clear()
    noticed.note([event(EXEC)])
    assert not noticed.told.is_set()
    noticed.note([event(OPEN), event(EXEC)])
    assert noticed.told.is_set()


def test_the_memory_of_holders_has_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever is beyond it is not urgent, and costs nothing."""
    monkeypatch.setattr(urgent_events, "MOST_HOLDERS", 2)
    noticed = UrgentEvents(own_pid=OWN_PID)
    noticed.note([event(OPEN, pid=pid) for pid in (1, 2, 3)])
    noticed.note([event(EXEC, pid=3)])
    assert not noticed.told.is_set()
