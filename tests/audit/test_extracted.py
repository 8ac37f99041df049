"""The words of extraction."""

from __future__ import annotations

from gpuledger.audit.extracted import Around, Extracted


def test_nothing_is_found_before_anything_was_walked() -> None:
    """Two of them share nothing."""
    one, other = Extracted(), Extracted()
    one.made["svc"] = "pod"
    one.panel_uids.add("uid")
    assert (other.made, other.panel_uids, other.queries, other.borrowed) == ({}, set(), [], [])


def test_what_stands_around_is_kept_by_value() -> None:
    """What an inner place learns is not told to the outer one."""
    outer = Around(name="board")
    assert outer._replace(name="panel", nested=1).nested == 1
    assert (outer.name, outer.nested, outer.panel) == ("board", 0, None)
