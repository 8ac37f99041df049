"""What is said to the person: folded for eyes, whole for a pipe."""

from __future__ import annotations

import pytest
from rich.console import Console

from gpuledger.cli.talk import say


def test_talk_is_folded_at_words_on_a_terminal_only(capsys: pytest.CaptureFixture[str]) -> None:
    """What it is folded into stands further in; a pipe gets one line."""
    sentence = "note: " + "word " * 20 + "[red]end"
    say(Console(stderr=True, force_terminal=True, color_system=None, width=40), sentence)
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) > 2
    assert all(len(line) <= 40 for line in lines)
    assert all(line.startswith("      word") for line in lines[1:])
    say(Console(stderr=True, color_system=None, width=40), sentence)
    assert capsys.readouterr().err == sentence + "\n"
