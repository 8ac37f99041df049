"""A restarted agent goes on where the one before stopped: no row twice, no context anew, and the gap is a row."""

from __future__ import annotations

from itertools import pairwise

from gpuledger.model.missing import Missing
from gpuledger.model.moments import SECOND_US
from gpuledger.model.rows import DriverRecord, Sighting, Watch
from gpuledger.operations.remembering import recall


def test_a_first_run_remembers_nothing(machine) -> None:
    """An empty ledger is no gap."""
    memory = recall(machine.ledger, host=machine.host, now_us=machine.clock.now_us())
    assert (memory.devices, memory.lists, memory.contexts, memory.looked_us) == ({}, {}, {}, {})


def test_rows_that_the_driver_still_lists_are_not_new_after_a_restart(machine) -> None:
    """They are known from the ledger, so the first look of the next run finds none new."""
    agent = machine.agent()
    machine.start(7, "whisper")
    machine.watch(agent, 2)
    machine.finish(7)
    machine.watch(agent, 1)
    agent.stop()
    again = machine.agent()
    machine.watch(again, 1)
    again.stop()
    assert len(machine.rows(DriverRecord)) == 1
    assert again._observer.most_fresh_rows == 0


def test_an_open_context_goes_on_over_a_restart(machine) -> None:
    """Its sightings follow each other without overlap, and it stays one context of one start."""
    agent = machine.agent()
    machine.start(7, "whisper")
    machine.watch(agent, 3)
    agent.stop()
    memory = recall(machine.ledger, host=machine.host, now_us=machine.clock.now_us())
    assert set(memory.contexts) == {(machine.gpu, 7)}
    again = machine.agent()
    machine.watch(again, 3)
    again.stop()
    rows = machine.rows(Sighting)
    assert len({row.context_started_at_us for row in rows}) == 1
    spans = sorted((row.since_us, row.until_us) for row in rows)
    assert all(before[1] <= after[0] for before, after in pairwise(spans))


def test_a_context_that_ended_while_nobody_looked_is_written_as_gone(machine) -> None:
    """The first look of the next run is the one that missed it."""
    agent = machine.agent()
    machine.start(7, "whisper")
    machine.watch(agent, 2)
    agent.stop()
    machine.finish(7)
    again = machine.agent()
    machine.watch(again, 1, every_s=60)
    gone = [row for row in machine.rows(Sighting) if not isinstance(row.gone_at_us, Missing)]
    assert [(row.pid, row.gone_at_us) for row in gone] == [(7, machine.clock.now_us())]


def test_the_time_between_two_runs_is_a_gap_row(machine) -> None:
    """From the last look of the one to the first of the other, for the driver and for names."""
    agent = machine.agent()
    machine.watch(agent, 3)
    agent.stop()
    stopped_us = machine.clock.now_us()
    again = machine.agent()
    machine.watch(again, 1, every_s=600)
    again.stop()
    gaps = {row.source: (row.since_us, row.until_us) for row in machine.rows(Watch) if row.status == "watch-gap"}
    assert gaps == dict.fromkeys(("driver", "process"), (stopped_us, stopped_us + 600 * SECOND_US))


def test_a_ring_that_went_round_between_two_runs_is_an_overflow(machine) -> None:
    """None of the rows known from the ledger survives in a full ring."""
    agent = machine.agent()
    for pid in (1, 2, 3):
        machine.driver.start(pid, machine.gpu, 1)
        machine.driver.finish(pid, machine.gpu)
    machine.watch(agent, 1)
    agent.stop()
    for pid in range(1000, 1128):
        machine.driver.start(pid, machine.gpu, 1)
        machine.driver.finish(pid, machine.gpu)
    again = machine.agent()
    machine.watch(again, 1)
    again.stop()
    assert [row.status for row in machine.rows(Watch) if row.status == "ring-overflow"] == ["ring-overflow"]


def test_a_reload_between_two_runs_is_seen(machine) -> None:
    """The mode was on when the run before looked last."""
    agent = machine.agent()
    machine.start(7, "whisper")
    machine.watch(agent, 2)
    agent.stop()
    machine.driver.reload()
    again = machine.agent()
    machine.watch(again, 2)
    again.stop()
    assert "accounting-reset" in {row.status for row in machine.rows(Watch)}


def test_a_dump_imported_for_this_machine_is_no_look_of_its_agent(box) -> None:
    """Neither its devices nor its rows nor its time are the driver's list of now."""
    box.append(
        box.device(0, method="import"),
        box.looking(0, 0, every_ms=0),
        box.settled(7, None, 500, read=0, method="import"),
        role="import",
    )
    memory = recall(box.ledger, host=box.host, now_us=box.at(5))
    assert (memory.devices, memory.lists, memory.contexts) == ({}, {}, {})


def test_another_host_of_the_same_ledger_is_another_memory(machine) -> None:
    """Two machines may write to one place, each remembers its own."""
    agent = machine.agent()
    machine.start(7, "whisper")
    machine.watch(agent, 2)
    agent.stop()
    memory = recall(machine.ledger, host="other", now_us=machine.clock.now_us())
    assert (memory.devices, memory.contexts, memory.looked_us) == ({}, {}, {})


def test_a_context_that_a_killed_agent_had_just_written_is_ended_by_the_next(machine) -> None:
    """It was seen after the last watch row: the next agent misses it all the same, and it is open no more."""
    machine.driver.reload()
    killed = machine.agent()
    machine.watch(killed, 1)
    machine.watch(killed, 1)
    machine.start(7, "whisper")
    machine.watch(killed, 1)
    machine.finish(7)
    machine.clock.advance(60 * SECOND_US)
    again = machine.agent()
    machine.watch(again, 1)
    last = machine.rows(Sighting)[-1]
    assert (last.pid, last.gone_at_us) == (7, machine.clock.now_us())
