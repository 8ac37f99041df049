"""Queries found line by line."""

from __future__ import annotations

from gpuledger.audit.helm_text import scan
from gpuledger.audit.plain import line_of


def test_keys_and_blocks_are_found_with_their_lines() -> None:
    """A quoted value, a block, a comment behind."""
    text = '- alert: A\n  expr: "x{a=\\"b\\"}" # why\n - broken\n- record: b\n  expr: |\n    y\n    + z\n  labels: {}\n'
    first, second = scan(text)
    assert isinstance(first, dict)
    assert isinstance(second, dict)
    assert first == {"alert": "A", "expr": 'x{a="b"}'}
    assert second["expr"] == "y\n+ z"
    assert (line_of(first["expr"]), line_of(second["expr"])) == (2, 6)


def test_other_text_gives_nothing() -> None:
    """Neither prose nor a long line of blanks takes time."""
    assert scan("hello\nworld: " + " " * 100_000 + "x\n") == []
