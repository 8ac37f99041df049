"""Cells: text from elsewhere made safe, shares drawn."""

from __future__ import annotations

import io
from fractions import Fraction

import pytest
from rich.console import Console
from rich.text import Text

from gpuledger.model.missing import Missing
from gpuledger.reports.cells import Hanging, ShareBar, device_name, indented, known, printable, reasons, stacked


@pytest.mark.parametrize(
    ("device", "name"),
    [
        ("GPU-5a3c1f2e-1111-2222-3333-444455556666", "GPU-5a3c1f2e"),
        ("MIG-aaaabbbb-1111", "MIG-aaaabbbb"),
        ("GPU-1", "GPU-1"),
        ("0000:01:00.0", "0000:01:00.0"),
        ("", ""),
    ],
)
def test_device_name(device: str, name: str) -> None:
    """UUIDs are shortened, anything else stands as it is."""
    assert device_name(device) == name


def test_control_characters_are_shown_not_sent() -> None:
    """Escapes, line ends and half characters become visible."""
    assert printable("a\x1b\n\t\u202e\ud800é") == r"a\x1b\n\t\u202e\ud800é"


def test_absence_is_a_word_with_its_reason_below() -> None:
    """A missing value is never blank, and each reason is told once."""
    assert known(Missing("x"), str).plain == "UNKNOWN"
    assert known(0, str).plain == "0"
    assert len(reasons(Missing("x"), 3, Missing("x"), Missing("y"))) == 2


@pytest.mark.parametrize(
    ("share", "bar"),
    [
        (Fraction(0), ""),
        (Fraction(1, 10_000), "▏"),
        (Fraction(1, 2), "████"),
        (Fraction(1), "█" * 8),
        (Fraction(9), "█" * 8),
    ],
)
def test_bars(share: Fraction, bar: str, printed) -> None:
    """What is some shows; what is all fills."""
    assert printed(ShareBar(share, 8)) == bar


def test_bars_on_a_terminal_without_unicode() -> None:
    """An ASCII terminal gets hashes, not an error."""
    out = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    console = Console(file=out, width=20, color_system=None)
    console.print(ShareBar(Fraction(1, 2), 8))
    out.seek(0)
    assert out.read().rstrip() == "####"


def test_what_a_sentence_is_folded_into_stands_further_in(printed) -> None:
    """Nobody takes the end of a line for the begin of another one."""
    sentence = Text("box GPU-5a3c1f2e  from here to there  4 min 29 s")
    assert printed(stacked(sentence), 40) == "box GPU-5a3c1f2e  from here to there\n  4 min 29 s"
    assert printed(indented(sentence), 40) == "  box GPU-5a3c1f2e  from here to there\n    4 min 29 s"
    assert printed(Hanging(sentence, 30), 30).splitlines()[1].startswith(" " * 15 + "GPU")
    assert printed(stacked(sentence), 80) == sentence.plain


def test_a_sentence_after_a_label_uses_the_whole_line(printed) -> None:
    """What stands under the label needs no margin at the right: each line has the same room."""
    told = Text("ok      chain  every row is the one that was hashed, in its place")
    lines = printed(Hanging(told, 15, starts_at=15), 40).splitlines()
    assert lines == ["ok      chain  every row is the one that", " " * 15 + "was hashed, in its place"]
    assert printed(Hanging(told, 15, starts_at=15), 80) == told.plain
