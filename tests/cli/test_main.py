"""The door: the list of verbs, the shape of an error, and the statuses that scripts rely on."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from gpuledger import __version__
from gpuledger.cli.main import VERBS
from gpuledger.errors import Corrupt, GpuledgerError, Misconfigured, NotFound, Refused, Unavailable, Unknown

PROGRAM = [sys.executable, "-c", "from gpuledger.cli.main import main; main()"]


def test_the_version_is_printed_alone(gpuledger) -> None:
    """For scripts: on stdout, status 0."""
    assert gpuledger("--version") == (0, f"gpuledger {__version__}\n", "")


def test_help_lists_every_verb(gpuledger) -> None:
    """What a person sees first."""
    done = gpuledger("--help")
    assert done.status == 0
    verbs = re.findall(r"^  ([a-z]+)  ", done.out.split("Commands:")[1], re.MULTILINE)
    assert verbs == list(dict.fromkeys(words.split()[0] for words, _ in VERBS))
    assert {"demo", "agent", "usage", "doctor", "import"} < set(verbs)


def test_help_flows_and_shows_no_types_of_flags(gpuledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """A paragraph is one paragraph, whatever its lines in the source; no verb is cut off with dots."""
    monkeypatch.setenv("COLUMNS", "80")
    done = gpuledger("agent", "--help")
    assert "seals. It works as any user. Root, or three capabilities (see the guide to\n" in done.out
    assert "<bool>" not in done.out
    assert "..." not in gpuledger("--help").out.split("Commands:")[1]


@pytest.mark.parametrize(
    ("words", "message", "hint"),
    [
        (("frobnicate",), "no such command 'frobnicate'", "gpuledger --help"),
        (("usage", "--frobnicate"), "no such option: --frobnicate", "gpuledger usage --help"),
        (("top", "--once", "--json"), "no such option: --json", "gpuledger top --format json"),
        (("import", "slurm", "--csv", "x"), "no such option: --csv", "gpuledger import slurm --format csv"),
        (("usage", "--format", "xml"), "--format: 'xml' is not one of", "gpuledger usage --help"),
        (("explain",), "missing argument 'REF'", "gpuledger explain --help"),
        (("policy", "one"), "VERSION takes a whole number", "gpuledger policy --help"),
        (("import", "nvidia-smi"), "missing argument 'FILE'", "gpuledger import nvidia-smi --help"),
        (("agent", "--interval"), "option '--interval' requires an argument", "gpuledger agent --help"),
    ],
)
def test_what_the_parser_cannot_read_is_wrong_usage(gpuledger, words: tuple[str, ...], message: str, hint: str) -> None:
    """Status 2, the answer's place stays empty, and the error has our shape, for eyes and for scripts."""
    done = gpuledger(*words)
    assert (done.status, done.out) == (2, "")
    assert done.err.startswith(f"error: {message}")
    assert done.err.endswith(f" [bad-usage]\n  try: {hint}\n")
    done = gpuledger("--format", "json", *words)
    assert (done.status, done.out, done.error["code"], done.error["hint"]) == (2, "", "bad-usage", hint)
    assert message in done.error["message"]


def test_nothing_asked_is_answered_with_the_help(gpuledger) -> None:
    """On stderr: no answer was asked for."""
    done = gpuledger()
    assert (done.status, done.out) == (2, "")
    assert "Commands:" in done.err


@pytest.mark.parametrize(
    ("kind", "status"), [(Misconfigured, 2), (NotFound, 2), (Unknown, 3), (Refused, 4), (Unavailable, 5), (Corrupt, 6)]
)
def test_an_error_says_what_why_and_what_next(
    gpuledger, monkeypatch: pytest.MonkeyPatch, kind: type[GpuledgerError], status: int
) -> None:
    """On stderr, as a person reads it or as JSON; the class owns the status."""

    def fail(**words: object) -> None:
        raise kind("some-code", "it could not be done", hint="do this")

    monkeypatch.setattr("gpuledger.cli.doctor.doctor", fail)
    done = gpuledger("doctor")
    assert done == (status, "", "error: it could not be done [some-code]\n  try: do this\n")
    expected = {"code": "some-code", "message": "it could not be done", "hint": "do this"}
    for words in (("--format", "json", "doctor"), ("doctor", "--format=json")):
        done = gpuledger(*words)
        assert (done.status, done.error) == (status, expected)


def test_a_bug_is_status_70_and_asks_to_be_reported(gpuledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the whole traceback: nobody has to reproduce it to report it."""

    def fail(**words: object) -> None:
        raise ZeroDivisionError("oops")

    monkeypatch.setattr("gpuledger.cli.doctor.doctor", fail)
    done = gpuledger("doctor")
    assert done.status == 70
    assert "please report" in done.err
    assert "ZeroDivisionError: oops" in done.err


def test_ctrl_c_is_no_bug(gpuledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """128 + SIGINT, as shells expect, without a traceback."""

    def fail(**words: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("gpuledger.cli.doctor.doctor", fail)
    done = gpuledger("doctor")
    assert (done.status, "Traceback" in done.err) == (130, False)


@pytest.mark.parametrize("lines", [1, 5000])
def test_a_reader_that_goes_away_is_no_bug(tmp_path: Path, box, lines: int) -> None:
    """`gpuledger journal | head -1`: 128 + SIGPIPE, and not a word on stderr."""
    box.append(box.device(0), *(box.looking(minute, minute + 1) for minute in range(lines)))
    box.ledger.close()
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        [*PROGRAM, "--ledger", str(box.place), "journal", "--format", "csv"], stdout=writer, stderr=subprocess.PIPE,
        timeout=60, check=False,
    )  # fmt: skip
    os.close(writer)
    assert (done.returncode, done.stderr) == (141, b"")
