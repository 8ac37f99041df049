"""The exceptions: each class owns its exit status, and every instance says what, why and what next."""

from __future__ import annotations

import pytest

from gpuledger.errors import (
    ERROR_CLASSES,
    EXIT_STATUSES,
    BadInput,
    CommandNotExecutable,
    CommandNotFound,
    Corrupt,
    GpuledgerError,
    Misconfigured,
    NotFound,
    Refused,
    Unavailable,
    Unknown,
)


def test_an_error_carries_code_sentence_and_hint() -> None:
    """The door prints all three; ``str`` is the sentence alone."""
    error = Unavailable("ledger-full", "no room on the disk", hint="free some space")
    assert (error.code, error.message, error.hint, str(error)) == (
        "ledger-full", "no room on the disk", "free some space", "no room on the disk",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "exit_status", "http_status"),
    [
        (Misconfigured, 2, 400),
        (BadInput, 2, 400),
        (NotFound, 2, 404),
        (Unknown, 3, 404),
        (Refused, 4, 409),
        (Unavailable, 5, 503),
        (Corrupt, 6, 500),
        (CommandNotExecutable, 126, 503),
        (CommandNotFound, 127, 404),
    ],
)
def test_the_class_owns_the_statuses(kind: type[GpuledgerError], exit_status: int, http_status: int) -> None:
    """Scripts match on the exit status, so it is a contract (DESIGN, Exit status)."""
    assert (kind.exit_status, kind.http_status) == (exit_status, http_status)


@pytest.mark.parametrize(
    ("line", "message"), [(0, "map.tsv: three columns expected"), (12, "map.tsv:12: three columns expected")]
)
def test_bad_input_names_the_file_and_the_line(line: int, message: str) -> None:
    """Line 0 means the whole file, and is not printed as a line."""
    error = BadInput("bad-pid-map", "three columns expected", path="map.tsv", line=line)
    assert (error.message, error.path, error.line) == (message, "map.tsv", line)


def test_every_status_a_class_owns_is_explained() -> None:
    """The reference's table has a sentence for each, and for 0, 1 and a bug."""
    explained = {status for status, _ in EXIT_STATUSES}
    assert explained == {kind.exit_status for kind in ERROR_CLASSES} | {0, 1, GpuledgerError.exit_status}
