"""A person at a terminal: a pseudo-terminal with a shell's job control, keys to press, a screen to read.

In: a command and its environment. Out: the last screen that it drew, as lines. The shell is there for Ctrl-Z:
a program whose session has nobody to bring it back is not stopped.
"""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios

from e2e.machine import eventually

HOME = "\x1b[H"
"""Every screen begins so: the cursor goes to its first place."""
ALTERNATE, NORMAL = "\x1b[?1049h", "\x1b[?1049l"
CURSOR_SHOWN = "\x1b[?25h"
_SEQUENCE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


class Seat:
    """A terminal on which a shell runs.

    Args:
        script: what bash is to do, with job control.
        environment: of the shell.
        columns, lines: size of the terminal.
    """

    def __init__(self, script: str, environment: dict[str, str], *, columns: int = 80, lines: int = 24) -> None:
        self._person, self._program = pty.openpty()
        self.resize(columns, lines)
        self.before = termios.tcgetattr(self._program)
        self._read = ""
        tty = os.ttyname(self._program)  # the leader of a session that opens a terminal has it as its own
        self._shell = subprocess.Popen(
            ["bash", "--norc", "-c", f"exec <{tty} >{tty} 2>&1; set -m; {script}"],
            env={**environment, "TERM": "xterm-256color"},
            start_new_session=True,
        )

    def close(self) -> None:
        """End the shell and what it started."""
        if self._shell.poll() is None:
            os.killpg(self._shell.pid, signal.SIGKILL)
        self._shell.wait()
        os.close(self._person)
        os.close(self._program)

    def resize(self, columns: int, lines: int) -> None:
        """The window gets another size."""
        fcntl.ioctl(self._person, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    def press(self, keys: str) -> None:
        """Press keys."""
        os.write(self._person, keys.encode())

    @property
    def foreground(self) -> int:
        """The process that the shell runs on its terminal."""
        return os.tcgetpgrp(self._person)

    @property
    def modes(self) -> list[object]:
        """The terminal's modes now; without what no program changes."""
        return termios.tcgetattr(self._program)[:4]

    @property
    def written(self) -> str:
        """All that was written so far."""
        while select.select([self._person], [], [], 0)[0]:
            self._read += os.read(self._person, 65536).decode("utf-8", "replace")
        return self._read

    @property
    def screen(self) -> list[str]:
        """The lines of the last screen."""
        text = _SEQUENCE.sub("", self.written.rpartition(HOME)[2])
        return [line.rstrip() for line in text.replace("\r", "").split("\n")]

    def shows(self, words: str) -> list[str]:
        """Wait until a screen says this and is drawn to its end; returns its lines."""
        before: list[str] = []

        def whole() -> list[str]:
            lines, count = self.screen, len(before)
            before[:] = lines
            return lines if words in "\n".join(lines) and len(lines) == count else []

        return eventually(whole, f"the screen shows {words!r}: {self.screen}")

    def says(self, words: str) -> None:
        """Wait until this is written, on any screen."""
        eventually(lambda: words in self.written, f"{words!r} is written")

    def ended(self) -> int:
        """Wait until the shell has ended; its exit status."""
        eventually(lambda: self._shell.poll() is not None or not self.written, "the shell ends")
        return self._shell.wait(timeout=30)
