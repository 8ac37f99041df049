"""Processes to rows: nothing is lost, nothing is spread, what is not known stays so."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuledger.accounting.holders import arrange
from gpuledger.model.holders import (
    Arrangement,
    Figure,
    Grouping,
    HeldDevice,
    HoldersLook,
    HoldersReport,
    Holding,
    Order,
    Unnamed,
)
from gpuledger.model.missing import Missing

A, B = "GPU-aaaaaaaa", "GPU-bbbbbbbb"
FORBIDDEN = Missing("driver: no permission")
UNREAD = Missing("seen once, and no start is known")


def holding(pid: int, service: str = "ollama", memory: int | Missing = 100, **words: Any) -> Holding:
    fields: dict[str, Any] = {
        "device": A, "pid": pid, "service": service, "user": "al", "team": "home", "held_us": pid * 1000,
        "memory_mib": memory, "busy_percent": 10,
    }  # fmt: skip
    return Holding(**fields | words)


def unnamed(pid: int, cause: str = Unnamed.UNREADABLE, **words: Any) -> Holding:
    return holding(pid, f"unattributed:{cause}", user="-", team="-", cause=cause, **words)


def look(*holdings: Holding, silent: str = "") -> HoldersLook:
    return HoldersLook(
        at_us=0, host="box", method="nvml", driver_version="1", holdings=holdings, ledger=Missing("none"),
        devices=(
            HeldDevice(uuid=A, class_name="L4", memory_mib=1000),
            HeldDevice(uuid=B, class_name="L4", memory_mib=1000, silence=silent),
        ),
    )  # fmt: skip


def arranged(*holdings: Holding, silent: str = "", **words: Any) -> HoldersReport:
    return arrange(look(*holdings, silent=silent), Arrangement(**words))


def test_a_service_is_one_row_with_its_processes_devices_and_sums() -> None:
    """The longest held counts; a process on two devices is one process and two contexts."""
    told = arranged(holding(7), holding(7, device=B), holding(9, memory=50), holding(8, "whisper", 3))
    (ollama, whisper) = told.rows
    assert (ollama.label, ollama.pids, ollama.devices, ollama.contexts) == ("ollama", (7, 9), (A, B), 3)
    assert (ollama.held_us, ollama.is_at_least, ollama.capacity_mib) == (9000, False, 2000)
    assert (ollama.memory, ollama.busy) == (Figure(value=250), Figure(value=30))
    assert (whisper.label, whisper.memory.value) == ("whisper", 3)


@pytest.mark.parametrize(
    ("by", "labels"),
    [
        (Grouping.SERVICE, ["ollama", "whisper"]),
        (Grouping.USER, ["al", "bo"]),
        (Grouping.TEAM, ["home"]),
        (Grouping.PROCESS, ["ollama", "ollama", "whisper"]),
    ],
)
def test_rows_are_what_is_asked_for_and_the_unnamed_apart(by: Grouping, labels: list[str]) -> None:
    """Whatever they are grouped by, one row a reason stands after the named, with the count and the memory."""
    told = arranged(
        holding(7), holding(9), holding(8, "whisper", user="bo"), unnamed(1), unnamed(2, Unnamed.NOT_IN_PROC),
        by=by, order=Order.NAME,
    )  # fmt: skip
    assert [row.label for row in told.rows] == labels
    assert [(row.label, row.cause, row.pids) for row in told.unnamed] == [
        ("unattributed:identity-unreadable", "identity-unreadable", (1,)),
        ("unattributed:not-in-proc", "not-in-proc", (2,)),
    ]
    assert (told.unnamed_contexts, told.contexts) == (2, 5)
    assert (told.unnamed_memory.value, told.memory.value) == (200, 500)


def test_by_process_each_unnamed_has_its_own_line_and_a_process_says_its_program_and_user() -> None:
    """So that somebody can ask root about the pid."""
    told = arranged(holding(7, program="serve.py"), unnamed(1), unnamed(2), by=Grouping.PROCESS)
    assert [(row.detail, row.user, row.pids) for row in told.rows] == [("serve.py", "al", (7,))]
    assert [row.pids for row in told.unnamed] == [(1,), (2,)]


def test_by_device_also_those_that_nobody_holds_or_that_did_not_answer() -> None:
    """Nobody is a proven zero only where the device said so."""
    told = arranged(holding(7), unnamed(1), by=Grouping.DEVICE)
    assert [(row.label, row.detail, row.contexts, row.unnamed) for row in told.rows] == [
        (A, "L4", 2, 1), (B, "L4", 0, 0),
    ]  # fmt: skip
    assert (told.unnamed, told.rows[1].memory.value) == ((), 0)
    silent = arranged(holding(7), by=Grouping.DEVICE, silent="the GPU is lost").rows[1]
    lost = Missing("the GPU is lost")
    assert (silent.contexts, silent.held_us, silent.memory.value, silent.busy.value) == (lost, lost, lost, lost)
    assert silent.capacity_mib == 1000


def test_a_context_on_a_device_that_is_not_listed_has_its_row_too() -> None:
    """Nothing that holds memory disappears."""
    told = arranged(holding(7, device="MIG-1"), by=Grouping.DEVICE)
    assert [row.label for row in told.rows] == ["MIG-1", A, B]
    assert isinstance(told.rows[0].capacity_mib, Missing)


def test_a_figure_that_is_not_known_makes_a_sum_the_least_it_can_be() -> None:
    """And where none is known the sum is not known: never 0."""
    (row,) = arranged(holding(7), holding(8, memory=FORBIDDEN), holding(9, memory=FORBIDDEN)).rows
    assert row.memory == Figure(value=100, left_out=2, why=("driver: no permission",))
    told = arranged(holding(7, memory=FORBIDDEN))
    assert told.rows[0].memory.value == FORBIDDEN
    assert (told.memory.value, told.unnamed_memory) == (FORBIDDEN, Figure(value=0))


def test_held_for_is_at_least_where_one_of_them_may_be_longer() -> None:
    """Also where one was only just seen."""
    assert not arranged(holding(7), holding(8)).rows[0].is_at_least
    assert arranged(holding(7, is_at_least=True), holding(8)).rows[0].is_at_least
    (row,) = arranged(holding(7, held_us=UNREAD), holding(8)).rows
    assert (row.held_us, row.is_at_least) == (8000, True)
    (row,) = arranged(holding(7, held_us=UNREAD)).rows
    assert (row.held_us, row.is_at_least) == (UNREAD, False)


@pytest.mark.parametrize(
    ("words", "labels"),
    [
        ({"order": Order.MEMORY}, ["b", "a", "c", "d"]),
        ({"order": Order.MEMORY, "is_reversed": True}, ["c", "a", "b", "d"]),
        ({"order": Order.HELD}, ["d", "c", "b", "a"]),
        ({"order": Order.BUSY}, ["c", "a", "b", "d"]),
        ({"order": Order.NAME}, ["a", "b", "c", "d"]),
        ({"order": Order.NAME, "is_reversed": True}, ["d", "c", "b", "a"]),
    ],
)
def test_most_first_and_what_is_not_known_last(words: dict[str, Any], labels: list[str]) -> None:
    """Also in reverse; equals stand by name."""
    told = arranged(
        holding(1, "a", 20), holding(2, "b", 30), holding(3, "c", 10, busy_percent=90), holding(4, "d", FORBIDDEN),
        **words,
    )  # fmt: skip
    assert [row.label for row in told.rows] == labels


HOLDINGS = st.lists(
    st.builds(
        holding,
        st.integers(1, 6),
        st.sampled_from(["a", "b"]),
        st.one_of(st.integers(0, 99), st.just(FORBIDDEN)),
        device=st.sampled_from([A, B]),
        cause=st.sampled_from(["", Unnamed.UNREADABLE, Unnamed.NOT_IN_PROC]),
    ),
    unique_by=lambda one: (one.device, one.pid),
)


@settings(max_examples=100)
@given(HOLDINGS, st.sampled_from(Grouping), st.sampled_from(Order), st.booleans())
def test_rows_add_up_to_everything_however_they_are_made(
    holdings: list[Holding], by: Grouping, order: Order, is_reversed: bool
) -> None:
    """Contexts and memory: named and unnamed together are all there is."""
    told = arranged(*holdings, by=by, order=order, is_reversed=is_reversed)
    rows = [*told.rows, *told.unnamed]
    assert sum(row.contexts for row in rows if not isinstance(row.contexts, Missing)) == len(holdings)
    held = sum(row.memory.value for row in rows if not isinstance(row.memory.value, Missing))
    assert held == (0 if isinstance(told.memory.value, Missing) else told.memory.value)
    assert sum(row.memory.left_out for row in rows) == told.memory.left_out
    assert told.unnamed_contexts == sum(row.unnamed for row in rows)
