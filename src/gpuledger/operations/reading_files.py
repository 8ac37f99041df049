"""Reads the files that people hand in: whole, within bounds, or not at all; as text, or as the bytes they are."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

from gpuledger.errors import BadInput

_MOST_BYTES = 64 * 1024 * 1024

_GZIP = b"\x1f\x8b"
"""How a file begins that gzip made (RFC 1952, section 2.3.1)."""

MOST_HISTORY_BYTES = 1024 * 1024 * 1024
"""A dump of Slurm's accounting has about 240 bytes a row: four million rows."""


def read_bytes(path: Path, *, most: int | None = None, split: str = "split it by day") -> bytes:
    """A file, or stdin for ``-``.

    Args:
        path: the file as the user named it.
        most: more bytes than this are refused; 64 MiB where not given.
        split: what helps then.

    Raises:
        BadInput: ``unreadable-file`` or ``too-large``; ``stdin-twice`` where ``-`` stands for two inputs.
    """
    bound = _MOST_BYTES if most is None else most
    if str(path) == "-" and sys.stdin is None:  # as Python has it, started with <&-
        raise BadInput("unreadable-file", "stdin is closed", path=str(path), hint="give the name of a file")
    if str(path) == "-" and sys.stdin.buffer.closed:
        message = "- stands twice, and what comes on stdin can be read once"
        raise BadInput("stdin-twice", message, path=str(path), hint="keep one of them in a file")
    try:
        with sys.stdin.buffer if str(path) == "-" else path.open("rb") as stream:
            content = stream.read(bound + 1)
    except OSError as error:
        raise BadInput("unreadable-file", error.strerror or str(error), path=str(path), hint="check the path") from None
    if len(content) > bound:
        raise BadInput("too-large", f"larger than {bound // 1024**2:,} MiB", path=str(path), hint=split)
    return content


def refuse_packed(content: bytes, path: Path) -> None:
    """Nothing, unless gzip made a file that should be text.

    Args:
        content: its bytes.
        path: the file as the user named it; ``-`` for stdin.

    Raises:
        BadInput: ``not-text``, with what unpacks it.
    """
    if content[:2] == _GZIP:
        unpack = "gunzip" if str(path) == "-" else f"gunzip -c {shlex.quote(str(path))}"
        message = "packed by gzip, and so no text"
        raise BadInput("not-text", message, path=str(path), hint=f"{unpack} | gpuledger ... -")


def read_text(path: Path, *, hint: str, most: int | None = None) -> str:
    """A text file, or stdin for ``-``.

    Args:
        path: the file as the user named it.
        hint: what text was meant.
        most: more bytes than this are refused; 64 MiB where not given.

    Raises:
        BadInput: ``unreadable-file``, ``too-large``, or ``not-text``.
    """
    content = read_bytes(path, most=most)
    refuse_packed(content, path)
    for encoding in ("utf-8-sig", "utf-16") if content[:2] in (b"\xff\xfe", b"\xfe\xff") else ("utf-8-sig",):
        try:
            return content.decode(encoding)
        except UnicodeDecodeError as error:
            line = content[: error.start].count(b"\n") + 1
    raise BadInput("not-text", "not UTF-8 text", path=str(path), line=line, hint=hint)
