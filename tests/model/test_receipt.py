"""The words of a receipt: what its total is, and when it is only the least it can be."""

from __future__ import annotations

import pytest

from gpuledger.model.missing import Missing
from gpuledger.model.receipt import (
    Doubt,
    Doubtful,
    Ran,
    Receipt,
    ReceiptContext,
    ReceiptDevice,
    State,
    UnknownTime,
    Watcher,
)


def held(context_ms: int | Missing, state: State = State.SETTLED) -> ReceiptContext:
    return ReceiptContext(
        device="GPU-1", pid=7, service="train", since_us=0, context_ms=context_ms, state=state,
        peak_memory_mib=Missing("never readable"), refs=("driver:box.agent/1",),
    )  # fmt: skip


def device(context_ms: int | Missing) -> ReceiptDevice:
    return ReceiptDevice(
        host="box", device="GPU-1", class_name="L4", contexts=0, unsized=0, context_ms=context_ms, settled_ms=0,
        observed_ms=0, peak_memory_mib=Missing("-"), busy_ms=Missing("-"),
    )  # fmt: skip


def receipt(**words: object) -> Receipt:
    given: dict[str, object] = {
        "host": "box", "watched_by": Watcher.RUN, "naming": "ebpf", "processes": 1, "alive": 0, "devices": (device(0),),
        "contexts": (), "neighbours": (), "unnamed": (), "unknown": (), "doubts": (), "explain": "",
        "ran": Ran(command="train", pid=7, began_us=0, ended_us=1, wall_ms=0, status=0),
    }  # fmt: skip
    return Receipt(**given | words)  # type: ignore[arg-type]


def test_the_total_is_the_sum_of_what_is_known() -> None:
    """A context without a length takes nothing from the others, and makes the sum the least it can be."""
    made = receipt(contexts=(held(5), held(7), held(Missing("seen once"))))
    assert (made.context_ms, made.is_at_least) == (12, True)
    assert isinstance(receipt(contexts=(held(Missing("seen once")),)).context_ms, Missing)


def test_nothing_is_zero_only_where_every_device_proves_it() -> None:
    """One that was not watched, or none at all, is UNKNOWN."""
    assert receipt().context_ms == 0
    assert receipt(devices=(device(0), device(Missing("off")))).context_ms == Missing("off")
    assert receipt(devices=()).context_ms == Missing("no device is known")


@pytest.mark.parametrize(
    ("words", "is_at_least"),
    [
        ({}, False),
        ({"unknown": (UnknownTime(reason="watch-gap", ms=1, devices=1, meaning="", command=""),)}, True),
        ({"doubts": (Doubtful(doubt=Doubt.COULD_BE_OURS, sentence=""),)}, True),
        ({"doubts": (Doubtful(doubt=Doubt.EVENTS_LOST, sentence=""),)}, False),
        ({"contexts": (held(3, State.RUNNING),)}, True),
        ({"contexts": (held(3, State.OBSERVED),)}, False),
    ],
)
def test_at_least(words: dict[str, object], is_at_least: bool) -> None:
    """Whatever can have hidden use, or goes on, makes it the least."""
    assert receipt(**words).is_at_least == is_at_least


def test_only_what_a_look_can_settle_is_waited_for() -> None:
    """A process that goes on is not."""
    assert receipt(contexts=(held(3, State.AWAITED),)).is_awaiting
    assert not receipt(contexts=(held(3, State.RUNNING), held(3))).is_awaiting
