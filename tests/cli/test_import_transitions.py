"""``gpuledger import transitions``: files, stdin and queries, each event once."""

from __future__ import annotations

import io
import json
import sqlite3
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace

import pytest

NOW = "2026-11-29T16:00:00Z"
LINES = [
    {"workload": "w", "state": "running", "at": "2026-11-29T10:00:00Z", "class": "L4", "user": "al"},
    {"workload": "w", "state": "stopped", "at": "2026-11-29T12:00:00Z"},
]


@pytest.fixture
def events(tmp_path: Path) -> Path:
    """Two events of one workload."""
    path = tmp_path / "events.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in LINES))
    return path


def imported(gpuledger, *words: object):
    """One import, as JSON."""
    return gpuledger("import", "transitions", *words, "--now", NOW, "--format", "json")


def test_a_file_twice(gpuledger, events: Path) -> None:
    """Added once; the second time all is known; the usage is there."""
    assert imported(gpuledger, events).json["added"] == 2
    again = imported(gpuledger, events).json
    assert (again["added"], again["known"]) == (0, 2)
    words = ("usage", "--meter", "gpu.reserved", "--by", "user", "--since", "2026-11-29", "--now", NOW)
    assert "7,200.000" in gpuledger(*words).out


def test_stdin(gpuledger, events: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a pipe gives it."""
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(events.read_bytes())))
    assert imported(gpuledger, "-").json["added"] == 2


def test_a_broken_line_is_named(gpuledger, events: Path, tmp_path: Path) -> None:
    """And nothing of the file is written, not even a ledger."""
    events.write_text(events.read_text() + '{"workload": "w", "state": "flying", "at": "2026-11-29T10:00:00Z"}\n')
    done = imported(gpuledger, events)
    assert (done.status, done.error["code"], "events.jsonl:3" in done.error["message"]) == (2, "unknown-state", True)
    assert not (tmp_path / "box.db").exists()
    assert imported(gpuledger, events, "--keep-going").json["added"] == 2


def test_a_query(gpuledger, tmp_path: Path) -> None:
    """With a cursor; what is open is known until now."""
    place = tmp_path / "cp.db"
    with closing(sqlite3.connect(place)) as connection:
        connection.execute("CREATE TABLE ev (n INTEGER, workload, state, at, class)")
        connection.execute("INSERT INTO ev VALUES (1, 'w', 'running', '2026-11-29T10:00:00Z', 'L4')")
        connection.commit()
    words = ("--sql", "SELECT * FROM ev", "--database", f"sqlite:///{place}", "--cursor", "n", "--source", "cp")
    done = imported(gpuledger, *words).json
    assert (done["added"], done["running"], done["as_of"]) == (1, 1, NOW)
    assert imported(gpuledger, *words).json["known"] == 1


def test_either_a_file_or_a_query(gpuledger, events: Path) -> None:
    """Anything else is wrong usage."""
    for words in ((), (events, "--sql", "SELECT 1"), ("--sql", "SELECT 1"), (events, "--cursor", "n")):
        done = imported(gpuledger, *words)
        assert (done.status, done.error["code"]) == (2, "bad-usage")
