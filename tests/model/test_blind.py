"""The blind report: sums that stay absent where nothing is known."""

from __future__ import annotations

from typing import Any

from gpuledger.model.blind import BlindReport
from gpuledger.model.missing import Missing
from gpuledger.model.usage import UnattributedLine, UnsettledRow, Watched

NOTHING = Missing("nothing known")


def report(**words: Any) -> BlindReport:
    line = {"meaning": "m", "settled": 0, "observed": 0, "provisional": 0, "busy_ms": NOTHING}
    base: dict[str, Any] = {
        "since_us": 0, "until_us": 10, "total_ms": 1000, "sizes": (), "unknown": (), "never_accounted": (),
        "watched": Watched(seconds=5, of=10), "nameless": (), "named": Watched(seconds=9, of=9),
        "chances": (), "looked_once": False, "seen_once": (), "problems": (),
        "unattributed": (
            UnattributedLine(cause="before-watch", quantity=30, **line),
            UnattributedLine(cause="between-samples", quantity=12, **line),
        ),
        "unsettled": (open_context(700), open_context(NOTHING)),
    }  # fmt: skip
    return BlindReport(**base | words)


def open_context(quantity: int | Missing) -> UnsettledRow:
    return UnsettledRow(service="s", pid=1, host="box", device="GPU-0", since_us=0, quantity=quantity)


def test_causes_add_up() -> None:
    """The size of what has no name is the sum over its causes."""
    assert report().unattributed_ms == 42


def test_what_is_known_of_open_contexts_adds_up() -> None:
    """A context of which nothing is known adds nothing, and does not make the rest unknown."""
    assert report().unsettled_ms == 700


def test_nothing_known_is_no_zero() -> None:
    """No line of any cause is not 0 ms unnamed where nobody looked."""
    bare = report(total_ms=NOTHING, unattributed=(), unsettled=())
    assert isinstance(bare.unattributed_ms, Missing)
    assert isinstance(bare.unsettled_ms, Missing)
    assert report(unattributed=(), unsettled=()).unattributed_ms == 0
