"""``journal``: what each reading found and what was done with it, oldest to newest."""

from __future__ import annotations

from gpuledger.model.journal import Level
from gpuledger.operations.journal import journal
from gpuledger.operations.meter import meter


def test_a_morning_reads_from_oldest_to_newest(box) -> None:
    """Devices, watches, passes and seals, each with a reference that explain takes."""
    box.tell_a_morning()
    meter(box.ledger, now_us=box.at(125), writer="box.meter")
    box.ledger.seal(box.at(126), writer="box.agent")
    lines = journal(box.ledger, since_us=box.at(0), until_us=box.at(130)).lines
    assert [line.at_us for line in lines] == sorted(line.at_us for line in lines)
    assert {line.source for line in lines} == {"device", "driver", "process", "pass", "seal"}
    assert all(box.ledger.get(line.ref).ref == line.ref for line in lines)


def test_the_newest_line_is_in_it(box) -> None:
    """A window's last moment belongs to it here."""
    box.append(box.looking(0, 10), box.looking(10, 10, status="accounting-disabled"))
    lines = journal(box.ledger, since_us=box.at(0), until_us=box.at(10)).lines
    assert [line.level for line in lines] == [Level.OK, Level.UNKNOWN]


def test_what_lies_outside_of_the_window_is_left_out(box) -> None:
    """Before and after."""
    box.append(box.looking(0, 10), box.looking(20, 30), box.looking(40, 50))
    lines = journal(box.ledger, since_us=box.at(15), until_us=box.at(35)).lines
    assert [(line.at_us, line.until_us) for line in lines] == [(box.at(20), box.at(30))]
