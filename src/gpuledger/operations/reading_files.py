"""Reads the files that people hand in: whole, as text, within bounds, or not at all."""

from __future__ import annotations

import sys
from pathlib import Path

from gpuledger.errors import BadInput

_MOST_BYTES = 64 * 1024 * 1024


def read_text(path: Path) -> str:
    """A text file, or stdin for ``-``.

    Raises:
        BadInput: ``unreadable-file``, ``too-large``, or ``not-text``.
    """
    try:
        with sys.stdin.buffer if str(path) == "-" else path.open("rb") as stream:
            content = stream.read(_MOST_BYTES + 1)
    except OSError as error:
        raise BadInput("unreadable-file", error.strerror or str(error), path=str(path), hint="check the path") from None
    if len(content) > _MOST_BYTES:
        raise BadInput("too-large", "larger than 64 MiB", path=str(path), hint="split it by day")
    for encoding in ("utf-8-sig", "utf-16") if content[:2] in (b"\xff\xfe", b"\xfe\xff") else ("utf-8-sig",):
        try:
            return content.decode(encoding)
        except UnicodeDecodeError as error:
            line = content[: error.start].count(b"\n") + 1
    raise BadInput(
        "not-text", "not UTF-8 text", path=str(path), line=line, hint="give the text that nvidia-smi printed"
    )
