"""The driver's accounting list, look after look: what is new, and what a changed list proves."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from gpuledger.model.missing import Missing
from gpuledger.model.readings import DeviceReading, FinishedRow, LivingContext
from gpuledger.watching.accounting import RING_ROWS, AccountingList, device_status, pids, remembered, row_key

GPU = "GPU-0"


def row(pid: int, start: int | None = 1, ms: int = 100) -> FinishedRow:
    return FinishedRow(
        pid=pid, started_at_us=Missing("CSV") if start is None else start, context_ms=ms, peak_memory_mib=1,
        gpu_percent=0, memory_percent=0,
    )  # fmt: skip


def device(
    rows: Iterable[FinishedRow] = (), accounting: str = "enabled", living: Iterable[int] = (), listed: int | None = None
) -> DeviceReading:
    rows = tuple(rows)
    alive = tuple(
        LivingContext(
            pid=pid, device=GPU, kinds="C", memory_mib=1, started_at_us=1, accounted=True, busy_percent=0
        )
        for pid in living
    )  # fmt: skip
    return DeviceReading(
        uuid=GPU, product="NVIDIA L4", memory_mib=1, accounting=accounting, finished=rows, living=alive,
        listed=len(rows) + len(alive) if listed is None else listed,
    )  # fmt: skip


def looks(*devices: DeviceReading, held: AccountingList | None = None) -> list[tuple[str, str, int]]:
    """(status, loss, number of fresh rows) of each look."""
    held = held or AccountingList()
    found = [held.look(each) for each in devices]
    return [(look.status, look.loss, len(look.fresh)) for look in found]


def test_a_row_is_new_once() -> None:
    """Only what the look before did not show is fresh."""
    assert looks(device([row(1)]), device([row(1), row(2)]), device([row(1), row(2)])) == [
        ("ok", "", 1),
        ("ok", "", 1),
        ("ok", "", 0),
    ]


def test_without_a_start_the_content_tells_rows_apart() -> None:
    """Two stints of one pid from CSV differ by their figures."""
    assert row_key(row(1, None, 100)) != row_key(row(1, None, 101))
    assert row_key(row(1, 5, 100)) == row_key(row(1, 5, 101))


def test_the_first_full_ring_is_no_loss_by_itself() -> None:
    """An agent that starts finds 128 rows, and has not watched before: nothing was lost since a look before."""
    assert looks(device(row(pid) for pid in range(RING_ROWS))) == [("ok", "", RING_ROWS)]


def test_a_ring_of_new_rows_is_an_overflow() -> None:
    """128 new rows in one look: the oldest of them may be the second to go, not the first."""
    full = [row(pid) for pid in range(1000, 1000 + RING_ROWS)]
    assert looks(device([row(1)]), device(full))[1] == ("ok", "ring-overflow", RING_ROWS)


def test_127_new_rows_beside_one_known_are_no_overflow() -> None:
    """The known row was the oldest, and it is still there."""
    full = [row(1), *(row(pid) for pid in range(1000, 1000 + RING_ROWS - 1))]
    assert looks(device([row(1)]), device(full))[1] == ("ok", "", RING_ROWS - 1)


def test_every_known_row_gone_from_a_list_with_room_is_a_reload() -> None:
    """Rows do not vanish while the ring has room."""
    assert looks(device([row(1), row(2)]), device([row(9)]))[1] == ("ok", "accounting-reset", 1)
    assert looks(device([row(1)]), device([]))[1] == ("empty-ledger", "accounting-reset", 0)


def test_a_mode_found_off_is_a_reload_though_its_rows_are_still_there() -> None:
    """Stale rows are kept; the span is UNKNOWN all the same."""
    assert looks(device([row(1)]), device([row(1)], "disabled"))[1] == ("accounting-disabled", "accounting-reset", 0)


def test_a_row_freed_by_its_own_pid_is_no_reload() -> None:
    """The driver keeps one row a pid: its second stint, alive or dead, frees the older one."""
    assert looks(device([row(1, 5)]), device([], living=[1]))[1] == ("ok", "", 0)
    assert looks(device([row(1, 5)]), device([row(1, 9)]))[1] == ("ok", "", 1)


def test_what_was_read_back_is_known_after_a_restart() -> None:
    """The rows of the run before are not fresh, and an overflow while nobody looked is seen."""
    held = AccountingList(known=remembered([row(1), row(2)]), mode="enabled")
    assert looks(device([row(1), row(2), row(3)]), held=held) == [("ok", "", 1)]
    held = AccountingList(known=remembered([row(1)]), mode="enabled")
    assert looks(device(row(pid) for pid in range(500, 500 + RING_ROWS)), held=held)[0][1] == "ring-overflow"


@pytest.mark.parametrize(
    ("reading", "status"),
    [
        (device(accounting="unsupported"), "accounting-unsupported"),
        (device([row(1)], accounting="disabled"), "accounting-disabled"),
        (device(), "empty-ledger"),
        (device(listed=1), "ok"),
        (device([row(1)]), "ok"),
    ],
)
def test_a_list_says_what_it_can_prove(reading: DeviceReading, status: str) -> None:
    """Off, unsupported and empty are three different answers, none of them zero."""
    assert device_status(reading) == status


def test_pids_of_rows_that_were_not_known() -> None:
    """A device never seen, a new row, and the very list of the last look."""
    first = device([row(1), row(2)])
    held = AccountingList()
    assert held.unknown_pids(first) == {1, 2}
    held.look(first)
    assert held.unknown_pids(first) == set()
    assert held.unknown_pids(device([row(1), row(2), row(3)])) == {3}


def test_the_living_are_counted_by_pid() -> None:
    """Once each."""
    assert pids(device(living=[5, 6])) == {5, 6}
