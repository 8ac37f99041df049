"""Watch spans: looks of one status merged into rows that touch and never overlap."""

from __future__ import annotations

from gpuledger.model.rows import Watch
from gpuledger.watching.spans import WatchSpan


def span(status: str = "ok") -> WatchSpan:
    return WatchSpan(
        host="box", device="GPU-0", source="driver", method="nvml", interval_ms=1000, since_us=0, until_us=0,
        status=status,
    )  # fmt: skip


def told(rows: list[Watch]) -> list[tuple[int, int, str, int]]:
    return [(row.since_us, row.until_us, row.status, row.readings) for row in rows]


def test_looks_of_one_status_are_one_row() -> None:
    """With their number, the rows they found, and the most contexts seen alive."""
    watch = span()
    for at_us, living in ((0, 1), (10, 4), (20, 2)):
        assert watch.look(at_us, "ok", interval_ms=1000, new_rows=2, living=living) == []
    (row,) = watch.cut(20)
    assert (row.since_us, row.until_us, row.readings, row.new_rows, row.living) == (0, 20, 3, 6, 4)


def test_the_time_between_two_looks_belongs_to_what_the_later_found() -> None:
    """The row of the old status ends at its last look, and the next begins there."""
    watch = span()
    watch.look(0, "ok", interval_ms=1000)
    ended = watch.look(10, "accounting-disabled", interval_ms=1000)
    assert told(ended + watch.cut(10)) == [(0, 0, "ok", 1), (0, 10, "accounting-disabled", 1)]


def test_another_interval_begins_another_row() -> None:
    """The interval says what could be missed, so it must hold for the whole row."""
    watch = span()
    watch.look(10, "ok", interval_ms=1000)
    assert told(watch.look(10, "ok", interval_ms=100)) == [(0, 10, "ok", 1)]


def test_two_sentences_are_two_rows() -> None:
    """Neither pushes the other out of the journal."""
    watch = span()
    watch.look(0, "ok", interval_ms=1000, detail="one")
    assert [row.detail for row in watch.look(10, "ok", interval_ms=1000, detail="two")] == ["one"]
    assert [row.detail for row in watch.cut(10)] == ["two"]


def test_one_sentence_said_at_every_look_is_one_row() -> None:
    """A driver that is gone for a day says the same at each of 86,400 looks."""
    watch = span()
    for at_us in (0, 10, 20):
        assert watch.look(at_us, "ok", interval_ms=1000, detail="driver not loaded") == []
    assert told(watch.cut(20)) == [(0, 20, "ok", 3)]


def test_what_was_cut_is_not_written_again() -> None:
    """The next row begins where the last ended; without a look in between there is none."""
    watch = span()
    watch.look(10, "ok", interval_ms=1000)
    assert told(watch.cut(10)) == [(0, 10, "ok", 1)]
    assert watch.cut(10) == []
    watch.look(20, "ok", interval_ms=1000)
    assert told(watch.cut(20)) == [(10, 20, "ok", 1)]


def test_a_gap_has_no_reading() -> None:
    """It says that nobody looked, by whose watch, and from when to when."""
    gap = span().gap(10, 700)
    assert (gap.status, gap.readings, gap.since_us, gap.until_us, gap.detail) == (
        "watch-gap", 0, 10, 700, "no agent was looking",
    )  # fmt: skip
