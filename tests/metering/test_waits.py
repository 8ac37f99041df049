"""Requests for devices, out of the events of one workload."""

from __future__ import annotations

from dataclasses import replace

from gpuledger.metering.waits import STARTED_AS_RUN, UNTOLD, admissions, is_start_as_run
from gpuledger.model.workload_rows import WorkloadEvent

CLASSES = {"p": "H100", "q": "L4"}


def told(*events: tuple[int, str] | tuple[int, str, str] | tuple[int, str, str, str]) -> list[WorkloadEvent]:
    """Events of (at, state, requested class, placement)."""
    return [
        WorkloadEvent(
            workload="w", event_id=str(number), sequence=number, state=event[1], at_us=event[0], recorded_at_us=99,
            source="lab", subject="s", requested_class="".join(event[2:3]), placement="".join(event[3:4]),
        )
        for number, event in enumerate(events, start=1)
    ]  # fmt: skip


def found(*events: tuple, until: int = 100) -> list[tuple]:
    return [
        (each.requested, each.asked_us, each.until_us, each.outcome.value, each.placed)
        for each in admissions(told(*events), known_until_us=until, classes=CLASSES)
    ]


def test_a_wait_runs_from_asking_to_the_first_state_that_holds() -> None:
    """Provisioning ends it; what follows in the same life is no second request."""
    assert found((1, "pending", "H100"), (5, "provisioning", "", "p"), (9, "running"), (20, "stopped")) == [
        ("H100", 1, 5, "started", "H100")
    ]


def test_running_ends_it_where_an_importer_tells_no_provisioning() -> None:
    """What a batch system says is enough."""
    assert found((1, "pending", "H100"), (5, "running", "", "q")) == [("H100", 1, 5, "started", "L4")]


def test_a_placement_that_comes_late_is_the_lifes() -> None:
    """Of several the first counts: a move later is no fallback."""
    assert found((1, "provisioning", "H100"), (2, "booting", "", "q"), (3, "running", "", "p")) == [
        ("H100", UNTOLD, 1, "started", "L4")
    ]


def test_a_request_told_again_began_when_it_was_first_told() -> None:
    """A dump says again that it waits."""
    assert found((1, "pending", "A|B"), (4, "pending"), (9, "running", "", "p")) == [("A|B", 1, 9, "started", "H100")]


def test_who_stops_before_a_start_gave_up() -> None:
    """And who still waits does so until that is known."""
    assert found((1, "pending", "H100"), (5, "stopped"), (7, "pending", "L4")) == [
        ("H100", 1, 5, "gave-up", ""),
        ("L4", 7, 100, "waiting", ""),
    ]


def test_each_life_asks_for_itself() -> None:
    """A second start that nobody told of before has no time of asking."""
    runs = found(
        (1, "pending", "H100"), (2, "running", "", "p"), (3, "failed"), (4, "provisioning", "", "q"), (9, "stopped")
    )
    assert runs == [("H100", 1, 2, "started", "H100"), ("", UNTOLD, 4, "started", "L4")]


def test_what_a_stop_voids_asks_for_nothing() -> None:
    """Running after a stop, without a provisioning, did not happen."""
    assert len(found((1, "provisioning", "", "p"), (3, "stopped"), (5, "running", "", "p"))) == 1


def test_nothing_told_is_nothing_asked() -> None:
    """No event, no request; a stop alone is none either."""
    assert found() == []
    assert found((4, "stopped")) == []


def test_who_started_under_another_name_neither_waits_nor_gave_up() -> None:
    """Only where the stop's own id says so, with the workload's name before it."""
    asked, gone = told((1, "pending", "H100"), (5, "stopped"))
    over = replace(gone, event_id=f"w{STARTED_AS_RUN}x")
    assert is_start_as_run(over)
    assert not is_start_as_run(replace(gone, event_id=f"v{STARTED_AS_RUN}x"))
    assert admissions([asked, over], known_until_us=100, classes=CLASSES) == []
    assert len(admissions([asked, gone], known_until_us=100, classes=CLASSES)) == 1
