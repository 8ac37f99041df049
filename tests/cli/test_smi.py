"""``gpuledger smi``: the machines at a moment, and its exit status."""

from __future__ import annotations

import csv
import io

import pytest


@pytest.mark.parametrize(
    ("at", "words", "status"),
    [
        ("2026-07-27T00:15Z", (), 0),
        ("2026-07-27T00:40:00.3Z", (), 0),
        ("2026-07-27T00:40:00.3Z", ("--strict",), 1),
        ("2026-07-27T00:41Z", ("--strict",), 0),
        ("2026-07-27T00:05Z", (), 3),
        ("5m", (), 3),
        ("3h", (), 3),
    ],
)
def test_status(gpuledger, morning, now: str, at: str, words: tuple[str, ...], status: int) -> None:
    """0 answered, 1 with --strict where a name is missing, 3 where nobody had looked."""
    assert gpuledger("smi", "--now", now, "--at", at, *words).status == status


def test_it_prints_devices_and_processes(gpuledger, morning, now: str) -> None:
    """As a person reads them, as a program, and as rows."""
    done = gpuledger("smi", "--now", now, "--at", "2026-07-27T00:30Z")
    for word in ("NVIDIA L4", "23,034 MiB", "unit:chat.service", "settled", "<= 178"):
        assert word in done.out
    document = gpuledger("smi", "--now", now, "--at", "2026-07-27T01:35Z", "--format", "json").json
    (process,) = document["devices"][0]["processes"]
    assert (process["pid"], process["memory_mib"], process["until"]) == (9, 100, None)
    explained = gpuledger("explain", process["ref"], "--now", now)
    assert explained.status == 0
    rows = csv.DictReader(
        io.StringIO(gpuledger("smi", "--now", now, "--at", "2026-07-27T00:30Z", "--format", "csv").out)
    )
    assert [row["kind"] for row in rows] == ["device", "process"]


def test_an_unwatched_moment_says_why(gpuledger, morning, now: str) -> None:
    """Never an empty list that reads as idle."""
    done = gpuledger("smi", "--now", now)
    assert done.status == 3
    assert "UNKNOWN watch-gap" in done.out
    assert "no process" not in done.out


@pytest.mark.parametrize(("at", "code"), [("2026-07-27T02:11Z", "at-in-future"), ("soon", "bad-time")])
def test_wrong_times_are_refused(gpuledger, morning, now: str, at: str, code: str) -> None:
    """The future, and what is no time."""
    done = gpuledger("smi", "--now", now, "--at", at, "--format", "json")
    assert (done.status, done.error["code"]) == (2, code)
