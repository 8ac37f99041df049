"""The terminal of a live view: keys one by one, signals as events, and everything as it was when it ends.

In: the terminal's descriptors. Out: what happened while waiting. Keys are read without echo and without
Enter; signals are not turned off, so Ctrl-C, Ctrl-Z and ``kill`` mean what they always mean.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import termios
import tty
from dataclasses import dataclass
from types import FrameType, TracebackType
from typing import Any

_ENDING = (signal.SIGINT, signal.SIGTERM)
_SEEN = (*_ENDING, signal.SIGTSTP, signal.SIGWINCH)
_ESCAPE = "\x1b"
_MOST_BYTES = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """What happened while the view waited.

    Args:
        keys: keys pressed, in order; arrow and function keys are no keys here.
        is_ending: told to end, or the terminal is gone.
        is_stopping: told to stop for a while (Ctrl-Z).
    """

    keys: str = ""
    is_ending: bool = False
    is_stopping: bool = False


class Terminal:
    """Holds the terminal for as long as the context lasts.

    Args:
        keyboard: descriptor of the terminal's input; where it is no terminal nothing is read from it.
    """

    def __init__(self, keyboard: int) -> None:
        self._keyboard = keyboard if os.isatty(keyboard) else -1
        self._before: list[Any] = []
        self._handlers: dict[int, Any] = {}
        self._read_end = self._write_end = self._wake_before = -1
        self._told = False

    def __enter__(self) -> Terminal:
        # a signal wakes the wait through this pipe: select(2) goes on after a handler that raises nothing (PEP 475)
        self._read_end, self._write_end = os.pipe()
        for end in (self._read_end, self._write_end):
            os.set_blocking(end, False)
        self._wake_before = signal.set_wakeup_fd(self._write_end, warn_on_full_buffer=False)
        self._handlers = {number: signal.signal(number, self._note) for number in _SEEN}
        self._hold()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._let_go()
        for number, handler in self._handlers.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(self._wake_before)
        os.close(self._read_end)
        os.close(self._write_end)

    def wait(self, us: int) -> Event:
        """What happens within so many microseconds; returns at once when something does, also a resize."""
        watched = [self._read_end, *([self._keyboard] if self._keyboard >= 0 else [])]
        ready, _, _ = select.select(watched, [], [], max(0, us) / 1_000_000)
        numbers = set(os.read(self._read_end, _MOST_BYTES)) if self._read_end in ready else set()
        keys: str | None = self._keys() if self._keyboard in ready else ""
        return Event(
            keys=keys or "",
            is_ending=keys is None or bool(numbers & set(_ENDING)),
            is_stopping=signal.SIGTSTP in numbers,
        )

    def stop(self) -> None:
        """Give the terminal back, stop as Ctrl-Z does, and take it again when told to go on."""
        self._let_go()
        signal.signal(signal.SIGTSTP, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGTSTP)  # returns after SIGCONT
        signal.signal(signal.SIGTSTP, self._note)
        self._hold()

    def _keys(self) -> str | None:
        """The keys that wait to be read; None when the terminal is gone."""
        try:
            read = os.read(self._keyboard, _MOST_BYTES)
        except OSError:  # EIO: hung up
            return None
        if not read:
            return None
        text = read.decode("utf-8", "replace")
        return text.partition(_ESCAPE)[0]

    def _hold(self) -> None:
        if self._keyboard >= 0:
            self._before = termios.tcgetattr(self._keyboard)
            tty.setcbreak(self._keyboard, termios.TCSADRAIN)

    def _let_go(self) -> None:
        if self._before:
            with contextlib.suppress(termios.error):  # a terminal that is gone has no state to give back
                termios.tcsetattr(self._keyboard, termios.TCSAFLUSH, self._before)
            self._before = []

    def _note(self, number: int, frame: FrameType | None) -> None:
        """A signal is told to the wait by its number in the pipe; a second Ctrl-C ends at once."""
        del frame
        if number == signal.SIGINT:
            if self._told:
                raise KeyboardInterrupt
            self._told = True
