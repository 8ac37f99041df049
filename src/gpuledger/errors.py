"""The exceptions: what cannot be done, said to the person at the terminal.

Each class is chosen by what the caller can do next and owns its exit status and HTTP status.
Every instance carries a kebab-case ``code``, a sentence, and a hint with the command that helps.
A bug is none of these: it is an ordinary exception, and the door turns it into exit status 70.
"""

from __future__ import annotations

from typing import ClassVar


class GpuledgerError(Exception):
    """Something could not be done. Abstract: raise one of the subclasses.

    Args:
        code: kebab-case name of the exact refusal, listed in ``docs/reference/errors.md``.
        message: one sentence, what happened and what it means.
        hint: what to type or do next; may be empty only where nothing helps.
    """

    exit_status: ClassVar[int] = 70
    http_status: ClassVar[int] = 500

    def __init__(self, code: str, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.hint = hint


class Misconfigured(GpuledgerError):
    """Wrong usage: an option, file, policy or setting that cannot be understood."""

    exit_status = 2
    http_status = 400


class BadInput(Misconfigured):
    """An input file that cannot be understood; names the file and, where known, the line.

    Args:
        path: the file as the user named it.
        line: 1-based line number, or 0 when the whole file is meant.
    """

    def __init__(self, code: str, message: str, *, path: str, line: int = 0, hint: str = "") -> None:
        where = f"{path}:{line}" if line else path
        super().__init__(code, f"{where}: {message}", hint=hint)
        self.path = path
        self.line = line


class NotFound(GpuledgerError):
    """A reference, row or file that is not there."""

    exit_status = 2
    http_status = 404


class Unknown(GpuledgerError):
    """Nothing could be answered: no row at all, and the time was not watched."""

    exit_status = 3
    http_status = 404


class Refused(GpuledgerError):
    """Understood and forbidden: a quota, a transition, a change to what never changes."""

    exit_status = 4
    http_status = 409


class Unavailable(GpuledgerError):
    """Something needed is unreachable: a driver, a store, a disk with room, a permission."""

    exit_status = 5
    http_status = 503


class Corrupt(GpuledgerError):
    """The ledger is damaged: not a ledger, unreadable pages, or a broken chain."""

    exit_status = 6
    http_status = 500


class CommandNotExecutable(Unavailable):
    """The command of ``run`` was found and cannot be executed; status as shells have it (POSIX 2.8.2)."""

    exit_status = 126


class CommandNotFound(NotFound):
    """The command of ``run`` is not there; status as shells have it (POSIX 2.8.2)."""

    exit_status = 127


ERROR_CLASSES: tuple[type[GpuledgerError], ...] = (
    Misconfigured,
    BadInput,
    NotFound,
    Unknown,
    Refused,
    Unavailable,
    Corrupt,
    CommandNotExecutable,
    CommandNotFound,
)
"""Every class a caller can meet, in the order of the reference."""

EXIT_STATUSES: tuple[tuple[int, str], ...] = (
    (0, "answered; unknown parts are printed with it"),
    (1, "a check found something, or --strict and the answer has unknown parts"),
    (2, "wrong usage: an option, file, policy or reference that cannot be understood"),
    (3, "UNKNOWN: no row at all, and the time was not watched"),
    (4, "refused"),
    (5, "something needed is unreachable"),
    (6, "the ledger is damaged"),
    (70, "a bug in gpuledger"),
    (126, "run: the command cannot be executed; else run ends with the command's own status"),
    (127, "run: there is no such command"),
)
