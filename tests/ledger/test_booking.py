"""Records booked from relations: the same bytes in the chain, and the same sums, as records made one by one."""

from __future__ import annotations

import pytest
import sqlalchemy as sa

from control_plane import ControlPlane
from gpuledger.errors import Refused
from gpuledger.ledger import booking
from gpuledger.ledger.booking import make_ready, ready_rows, ready_sums, stand_already
from gpuledger.ledger.reserved import Reading, make_relations
from gpuledger.ledger.verify import verify_ledger
from gpuledger.model.moments import DAY_US, HOUR_US
from gpuledger.model.rows import UsageRecord

EVERY_STORE = True


def derived(plane: ControlPlane, hours: int) -> Reading:
    """Everybody's time in so many hours, none of which was covered."""
    starts = [plane.at(hour) for hour in range(hours)]
    make_relations(plane.ledger)
    with plane.ledger.snapshot():
        read = Reading(plane.ledger, plane.ledger.marks())
        read.want_living(plane.at(0), plane.at(hours))
        read.derive([(at, at + HOUR_US) for at in starts], until_us=plane.at(hours), open_hours=starts)
    return read


def heads(read: Reading, plane: ControlPlane) -> list[booking.Head]:
    """One head for each interval."""
    return [
        (run, "gpu.reserved", "n1", f"placement:{placement}", subject, 3, "h")
        for run, _, placement, subject, *_ in read.runs(plane.at(0), plane.at(99))
    ]


def test_the_chain_holds_what_was_booked_whatever_the_names(plane) -> None:
    """Quotes, signs of other scripts, two meters of one slice: each record hashes as it reads."""
    plane.run('a "quoted"', 0, 3, plane.placement('n"1\\'))
    plane.run("\u00fc\u4e2d", 0, 2, plane.placement("\u00fcber", class_name="A100-SXM4-40GB/1g.5gb"))
    assert len(plane.meter(4).records) == 3 + 2 * 2
    assert verify_ledger(plane.ledger) == []
    assert {row.host for row in plane.ledger.scan(UsageRecord)} == {'n"1\\', "\u00fcber"}


def test_records_stand_ready_in_the_order_of_their_key(plane) -> None:
    """Hour by hour; an interval without a head has none, and less than a second is none."""
    plane.run("a", 0, 2, plane.placement("n1"))
    plane.run("b", 1, 2, plane.placement("n2"))
    read = derived(plane, 3)
    ready = make_ready(read, heads(read, plane), recorded_at_us=9)
    rows = list(ready_rows(read))
    assert ready.count == len(rows) == 3
    assert [row[1] for row in rows] == [plane.at(0), plane.at(1), plane.at(1)]
    assert {row[5] for row in rows} == {3600}
    assert make_ready(read, [], recorded_at_us=9).count == 0


def test_sums_of_what_stands_ready(plane) -> None:
    """As finely as they are asked for, and of one meter alone."""
    plane.run("a", 20, 28, plane.placement("n1"))
    read = derived(plane, 30)
    make_ready(read, heads(read, plane), recorded_at_us=9)

    def sums(step_us: int, meter: str = "gpu.reserved") -> list[tuple[int, int]]:
        found = ready_sums(plane.ledger, meter, plane.at(0), plane.at(99), step_us)
        return sorted((step, seconds) for _, _, step, seconds in found)

    assert sums(0) == [(0, 8 * 3600)]
    assert sums(DAY_US) == [(plane.at(0), 4 * 3600), (plane.at(24), 4 * 3600)]
    assert len(sums(HOUR_US)) == 8
    assert sums(0, "cpu.reserved") == []


def test_what_stands_ready_and_was_written_meanwhile_is_refused(plane) -> None:
    """Nothing of the transaction is written, whoever was faster."""
    plane.run("a", 0, 2, plane.placement("n1"))
    read = derived(plane, 3)
    ready = make_ready(read, heads(read, plane), recorded_at_us=9)
    plane.meter(3)
    before = plane.ledger.heads()
    derived(plane, 3)
    with pytest.raises((Refused, sa.exc.DBAPIError)):
        plane.ledger.append_if(lambda: True, [], writer="late.meter", at_us=9, ready=ready)
    assert plane.ledger.heads() == before


def test_what_stands_already_is_seen(plane) -> None:
    """Whoever wrote it."""
    plane.run("a", 0, 2, plane.placement("n1"))
    read = derived(plane, 3)
    make_ready(read, heads(read, plane), recorded_at_us=9)
    assert not stand_already(read)
    plane.meter(3)
    read = derived(plane, 3)
    make_ready(read, heads(read, plane), recorded_at_us=9)
    assert stand_already(read)
