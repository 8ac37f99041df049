"""``gpuledger demo``: what it refuses before it plays, and what it prints when it has."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gpuledger.clock import FixedClock
from gpuledger.ledger.store import Ledger
from gpuledger.model.moments import parse_moment
from gpuledger.operations.blind import blind
from gpuledger.operations.demo import DemoReport
from gpuledger.operations.meter import meter
from gpuledger.operations.usage import usage


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch, box) -> None:
    """A demo that is over at once: the morning of the box, answered as the demo answers."""
    box.tell_a_morning()
    box.ledger.close()
    now_us = FixedClock(parse_moment("2026-07-27T02:10:00Z", now_us=0)).now_us()

    def played(open_ledger: Any, folder: Path, *, clock: Any, host: str, talk: Any) -> DemoReport:
        open_ledger().close()
        talk("the story")
        with Ledger.open(box.place, mode="append") as ledger:
            window = {"since_us": box.at(0), "until_us": box.at(120), "now_us": now_us}
            return DemoReport(
                ledger=str(box.place), metered=meter(ledger, now_us=now_us, writer="box.meter"), sound=True,
                usage=usage(ledger, meter="gpu.context", by=("service", "user"), **window),
                blind=blind(ledger, **window), root="ab" * 32,
            )  # fmt: skip

    monkeypatch.setattr("gpuledger.cli.demo.demo", played)


def test_it_prints_usage_blind_spots_and_the_pass(gpuledger, short) -> None:
    """The story on stderr, the answer on stdout."""
    done = gpuledger("demo")
    assert done.status == 0
    assert "the story" in done.err
    for word in ("unit:chat.service", "between-samples", "records", "verify: nothing found"):
        assert word in done.out


def test_it_answers_as_json(gpuledger, short) -> None:
    """The shapes of usage, blind and meter under one roof."""
    answer = gpuledger("demo", "--format", "json", "--quiet").json
    assert answer["usage"]["total"] == 5_400_600
    assert (answer["sound"], answer["meter"]["records_added"]) == (True, 5)


def test_the_ledger_is_kept_where_told(gpuledger, short, tmp_path: Path) -> None:
    """And the next command is printed; a folder that holds something is refused."""
    folder = tmp_path / "kept"
    done = gpuledger("demo", "--keep", folder)
    assert (folder / "ledger.db").exists()
    assert f"gpuledger --ledger {folder / 'ledger.db'} journal" in done.err.replace("\n", "")
    again = gpuledger("demo", "--keep", folder)
    assert (again.status, "folder-not-empty" in again.err) == (2, True)


@pytest.mark.parametrize("words", [("--ledger", "x.db"), ("--now", "today")])
def test_it_plays_now_into_a_ledger_of_its_own(gpuledger, words: tuple[str, str]) -> None:
    """Never into somebody's records, and never at a made-up time."""
    done = gpuledger("demo", *words)
    assert (done.status, "demo-ledger" in done.err) == (2, True)
    assert gpuledger(*words, "demo").status == 2
