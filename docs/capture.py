"""Draws docs/images/demo.svg: a real run of `gpuledger demo` in a real terminal, its first part as a picture.

Run it with `python -m docs.capture`; it takes as long as the demo. Look at the picture before keeping it.
"""

from __future__ import annotations

import io
import os
import pty
import re
import sys
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import MONOKAI
from rich.text import Text

PICTURE = Path(__file__).resolve().parent / "images" / "demo.svg"
COLUMNS = 112
ENDS_BEFORE = "Blind spots"
"""The demo prints its blind spots after its usage; the README shows those as text."""


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
    """The picture, without any font or file from elsewhere."""
    shown = Text.from_ansi("$ gpuledger demo\n" + printed)
    lines = shown.split("\n", allow_blank=True)
    plain = [line.plain for line in lines]
    end = next(place for place, line in enumerate(plain) if line.startswith(ENDS_BEFORE))
    console = Console(record=True, width=COLUMNS, file=io.StringIO(), force_terminal=True, highlight=False)
    for line in lines[:end]:
        line.rstrip()
        console.print(line)
    picture = console.export_svg(title="gpuledger demo", theme=MONOKAI)
    picture = re.sub(r"@font-face \{.*?\}\s*", "", picture, flags=re.DOTALL)
    return picture.replace("Fira Code", "DejaVu Sans Mono")


def main() -> None:
    """Run the demo and keep its picture."""
    program = Path(sys.executable).with_name("gpuledger")
    PICTURE.parent.mkdir(parents=True, exist_ok=True)
    PICTURE.write_text(draw(run([str(program), "demo"])), encoding="utf-8")


if __name__ == "__main__":
    main()
