"""Unseen: long lists are counted, sections keep apart."""

from __future__ import annotations

from rich.console import Group

from gpuledger.model.usage import UnknownSize, UnknownSpan, Watched
from gpuledger.reports import unseen


def test_many_spans_are_counted(printed) -> None:
    """Eight spans are listed, the rest counted; the size is that of all."""
    spans = tuple(
        UnknownSpan(reason="watch-gap", host="box", device="GPU-1", since_us=n, until_us=n + 1, seconds=1)
        for n in range(20)
    )
    size = UnknownSize(reason="watch-gap", seconds=20, spans=20, devices=2, meaning="m", command="c")
    text = printed(Group(*unseen.not_seen([size], Watched(seconds=0, of=20), spans)))
    assert "UNKNOWN watch-gap  20 s, 20 spans on 2 devices" in text
    assert text.count("box GPU-1") == 8
    assert "and 12 more" in text


def test_sections_are_spaced_and_empty_ones_leave_no_trace() -> None:
    """One blank line between two sections, none around nothing."""
    assert unseen.spaced([[], ["a"], [], ["b", "c"]]) == ["a", "", "b", "c"]


def test_idle_time_says_why_it_is_a_zero(printed) -> None:
    """Part of what was watched; nothing is said where none is proven."""
    text = " ".join(printed(unseen.watched_line(Watched(seconds=3600, of=7200, idle=600)), 200).split())
    assert text.startswith("Watched 1 h of 2 h device time (50.0 %); 10 min of it proven idle: accounting was on")
    assert "idle" not in printed(unseen.watched_line(Watched(seconds=3600, of=7200)), 200)
