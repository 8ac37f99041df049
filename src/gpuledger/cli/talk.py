"""How a sentence is said to the person at the terminal."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from gpuledger.reports.cells import Hanging, printable

_TALK_INDENT = 6
"""As wide as ``note: `` and as the demo's seconds."""


def say(console: Console, sentence: str) -> None:
    """A sentence for the person at the terminal; what it is folded into stands further in than its first line."""
    shown = Text(printable(sentence))
    if console.is_terminal:
        console.print(Hanging(shown, _TALK_INDENT))
    else:
        console.print(shown, soft_wrap=True)
