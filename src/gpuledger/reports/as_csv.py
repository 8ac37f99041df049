"""CSV: one header line, then values; written by Python's own csv module, lines ended by LF."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence

from gpuledger.model.missing import Missing

Value = str | int | Missing


def text(header: Sequence[str], rows: Iterable[Sequence[Value]]) -> str:
    """A whole CSV document. A value that is not known is an empty field, never a 0."""
    written = io.StringIO()
    writer = csv.writer(written, lineterminator="\n")
    writer.writerow(header)
    for row in rows:
        writer.writerow([_field(value) for value in row])
    return written.getvalue()


def _field(value: Value) -> str:
    if isinstance(value, Missing):
        return ""
    # Half characters (from file names that are not UTF-8) cannot be encoded: shown as escapes.
    return str(value).encode("utf-8", "backslashreplace").decode("utf-8")
