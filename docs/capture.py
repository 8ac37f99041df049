"""Draws docs/images/demo.svg: a real run of `gpuledger demo` in a real terminal, its first part as a picture.

Run it with `python -m docs.capture`; it takes as long as the demo. Look at the picture before keeping it.
"""

from __future__ import annotations

import os
import pty
import re
import sys
from html import escape
from pathlib import Path

from rich.console import Console
from rich.style import Style
from rich.terminal_theme import MONOKAI
from rich.text import Text

PICTURE = Path(__file__).resolve().parent / "images" / "demo.svg"
COLUMNS = 128
ENDS_BEFORE = "Blind spots"
"""The demo prints its blind spots after its usage; the README shows those as text."""

CELL, LINE, EDGE = 9, 20, 18
"""Width and height of a character's cell, and the margin, in pixels."""


def run(command: list[str]) -> str:
    """What a command prints on a terminal of COLUMNS, colours included."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.environ.update(TERM="xterm-256color", COLUMNS=str(COLUMNS), LINES="60", COLORTERM="truecolor")
        os.execv(command[0], command)  # noqa: S606 - our own program, no shell
    printed = b""
    while True:
        try:
            piece = os.read(terminal, 65536)
        except OSError:  # the other end of a pty that closed
            break
        if not piece:
            break
        printed += piece
    os.waitpid(pid, 0)
    return printed.decode("utf-8").replace("\r\n", "\n")


def draw(printed: str) -> str:
    """The picture. Every word is placed by its column, so that columns line up in whatever font is at hand."""
    console = Console(width=COLUMNS, force_terminal=True, color_system="truecolor")
    lines = console.render_lines(Text.from_ansi("$ gpuledger demo\n" + printed), pad=False)
    plain = ["".join(segment.text for segment in line) for line in lines]
    end = next(place for place, line in enumerate(plain) if line.startswith(ENDS_BEFORE))
    while not plain[end - 1].strip():
        end -= 1
    words: list[str] = []
    for row, line in enumerate(lines[:end]):
        column = 0
        for segment in line:
            for word in re.finditer(r"\S+", segment.text):
                x, y = EDGE + (column + word.start()) * CELL, EDGE + row * LINE + 15
                length = len(word[0]) * CELL
                place = f'x="{x}" y="{y}" textLength="{length}" lengthAdjust="spacingAndGlyphs"'
                words.append(f"<text {place}{_look(segment.style)}>{escape(word[0])}</text>")
            column += segment.cell_length
    width, height = 2 * EDGE + COLUMNS * CELL, 2 * EDGE + end * LINE
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-size="14.9" fill="#d9d9d9"'
    font = 'font-family="DejaVu Sans Mono, Menlo, Consolas, monospace"'
    back = f'<rect width="{width}" height="{height}" rx="8" fill="#0c0c0c"/>'
    title = "<title>gpuledger demo in a terminal</title>"
    return "\n".join([f"{head} {font}>", title, back, *words, "</svg>", ""])


def _look(style: Style | None) -> str:
    if style is None:
        return ""
    colour = f' fill="{style.color.get_truecolor(MONOKAI).hex}"' if style.color and not style.color.is_default else ""
    bold = ' font-weight="bold"' if style.bold else ""
    return colour + bold + (' opacity="0.65"' if style.dim else "")


def main() -> None:
    """Run the demo and keep its picture."""
    program = Path(sys.executable).with_name("gpuledger")
    PICTURE.parent.mkdir(parents=True, exist_ok=True)
    PICTURE.write_text(draw(run([str(program), "demo"])), encoding="utf-8")


if __name__ == "__main__":
    main()
