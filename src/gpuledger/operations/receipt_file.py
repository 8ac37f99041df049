"""A receipt in a file: whole under its name, or not there at all.

In: a path and a text. Out: a file, written beside its name, synced and renamed. What is no regular file
(a pipe, ``/dev/stderr``, a process substitution) is written straight: it has no name to take.
"""

from __future__ import annotations

import contextlib
import os
import stat
from pathlib import Path

from gpuledger.errors import Misconfigured, Unavailable


def check_place(path: Path) -> None:
    """Refuse before anything runs a place where no receipt can be written.

    Raises:
        Misconfigured: ``bad-receipt-place``; Unavailable: ``receipt-not-written``.
    """
    if path.is_dir():
        raise Misconfigured("bad-receipt-place", f"{path} is a directory", hint=f"--receipt {path / 'receipt.json'}")
    folder = _named(path).parent
    if not folder.is_dir():
        raise Misconfigured("bad-receipt-place", f"{folder} is no directory", hint=f"mkdir -p {folder}")
    if not os.access(path if _is_special(path) else folder, os.W_OK):
        raise Unavailable("receipt-not-written", f"{path} may not be written", hint="--receipt with another place")


def write_receipt(path: Path, text: str) -> None:
    """Write a receipt.

    Raises:
        Unavailable: ``receipt-not-written``; nothing, or what was there before, stands under the name.
    """
    try:
        if _is_special(path):
            path.write_text(text, encoding="utf-8")
        else:
            _replace(_named(path), text)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise Unavailable("receipt-not-written", f"{path}: {reason}", hint="the receipt stands above") from None


def _named(path: Path) -> Path:
    """Where a name leads: a link stays, and what it points at is written."""
    return Path(os.path.realpath(path))


def _is_special(path: Path) -> bool:
    try:
        return not stat.S_ISREG(path.stat().st_mode)
    except OSError:
        return False


def _replace(path: Path, text: str) -> None:
    beside = path.with_name(f".{path.name}.{os.getpid()}.part")
    descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o666)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())
        beside.rename(path)
    except BaseException:
        with contextlib.suppress(OSError):
            beside.unlink()
        raise
