"""A command that is held at a gate between fork and exec: all is made ready for it, and only then it begins.

In: its words. Out: a process with the caller's own terminal, descriptors, group and signals, its exit
status as a shell has it. The fork comes first, while this process has one thread and holds nothing; if
it dies before the gate opens, the command never ran; if it dies later, the command goes on.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import signal
import sys
from collections.abc import Sequence
from dataclasses import dataclass

NOT_FOUND, NOT_EXECUTABLE = 127, 126
"""As shells have it (POSIX 2.8.2)."""

BY_SIGNAL = 128
"""Exit status of death by signal N is this and N (POSIX 2.8.2 leaves the rest; every shell has 128)."""

_OF_THIS_THREAD = 0x20000000
"""``__WNOTHREAD``: not the children of the thread that looks, which may run nvidia-smi."""
_UNTOUCHED = (signal.SIGPIPE, signal.SIGXFSZ)
"""Python ignores these for itself, and exec would hand that on."""
_ERRNO_BYTES = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How the command ended: exit status as a shell has it, and the name of the signal where one ended it."""

    status: int
    signal: str = ""


class HeldCommand:
    """A command between fork and exec.

    Args:
        words: the command and its arguments; the command is looked up in ``PATH``.
    """

    def __init__(self, words: Sequence[str]) -> None:
        self.words = tuple(words)
        gate_end, self._gate = os.pipe()
        self._told, told_end = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            os.close(self._gate)
            os.close(self._told)
            _wait_and_become(self.words, gate_end, told_end)
        os.close(gate_end)
        os.close(told_end)

    def release(self) -> int:
        """Let it begin. Returns 0, or the number of the error (``errno``) for which it could not."""
        with contextlib.suppress(BrokenPipeError):  # somebody has killed it at the gate
            os.write(self._gate, b"go")
        os.close(self._gate)
        told = os.read(self._told, _ERRNO_BYTES)  # nothing once exec has closed the other end
        os.close(self._told)
        return int.from_bytes(told, sys.byteorder)

    def abandon(self) -> None:
        """It shall not begin: the process goes away."""
        os.close(self._gate)
        os.close(self._told)
        os.waitpid(self.pid, 0)


def status_of(number: int) -> int:
    """The exit status of a shell for an error of exec."""
    return NOT_FOUND if number in (errno.ENOENT, errno.ENOTDIR) else NOT_EXECUTABLE


def ended_child() -> int:
    """Pid of a child of this thread that has ended and is not reaped yet; 0 where there is none."""
    try:
        found = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT | _OF_THIS_THREAD)
    except ChildProcessError:
        return 0
    return 0 if found is None else found.si_pid


def reap(pid: int) -> Ended:
    """How an ended child ended; it is gone then."""
    _, status = os.waitpid(pid, 0)
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        return Ended(status=BY_SIGNAL + number, signal=_signal_name(number))
    return Ended(status=os.WEXITSTATUS(status))


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:  # a real-time signal has no name of its own
        return f"signal {number}"


def _wait_and_become(words: Sequence[str], gate_end: int, told_end: int) -> None:
    """The child: wait for the gate, then exec. Never returns."""
    try:
        for number in _UNTOUCHED:
            signal.signal(number, signal.SIG_DFL)
        if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
            signal.signal(signal.SIGINT, signal.SIG_DFL)
        if os.read(gate_end, 2) != b"go":  # whoever would open it is gone
            os._exit(NOT_FOUND)
        # the C library's: it also runs a script without a first line, as shells do
        libc = ctypes.CDLL(None, use_errno=True)
        argv = (ctypes.c_char_p * (len(words) + 1))(*(os.fsencode(word) for word in words), None)
        libc.execvp(argv[0], argv)
        os.write(told_end, ctypes.get_errno().to_bytes(_ERRNO_BYTES, sys.byteorder))
    finally:
        os._exit(NOT_FOUND)
