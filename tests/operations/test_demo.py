"""The demo: a simulated driver, real processes, and an answer that is the product's own."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from gpuledger.clock import SystemClock
from gpuledger.ledger.store import Ledger
from gpuledger.model.rows import UsageRecord
from gpuledger.operations.demo import DemoReport, demo


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> tuple[DemoReport, Path, list[str]]:
    """One demo, played once: it takes its 20 seconds."""
    folder = tmp_path_factory.mktemp("demo")
    said: list[str] = []
    report = demo(
        lambda: Ledger.open(folder / "ledger.db", mode="append"), folder, clock=SystemClock(), host="box",
        talk=said.append,
    )  # fmt: skip
    return report, folder, said


def test_it_ends_with_records_that_verify(played) -> None:
    """Not only provisional figures: its hours are closed, sealed and sound."""
    report, folder, _ = played
    assert report.sound
    assert report.root
    assert report.metered.records
    assert report.usage.provisional == 0
    with Ledger.open(folder / "ledger.db", mode="read") as ledger:
        assert ledger.count(UsageRecord) == len(report.metered.records)


def test_it_names_what_it_started_and_sizes_what_it_could_not_name(played) -> None:
    """Services by its policy; the job before the watch and the shortest ones by their cause."""
    report, _, _ = played
    assert {"chat-model", "speech-to-text", "thumbnails"} <= {row.key[0] for row in report.usage.rows}
    assert "before-watch" in {line.cause for line in report.usage.unattributed}
    assert report.usage.total == sum(row.quantity for row in report.usage.rows) + sum(
        line.quantity for line in report.usage.unattributed
    )


def test_the_reload_and_the_daemon_older_than_accounting_are_seen(played) -> None:
    """The story's two traps, in the answer."""
    report, _, _ = played
    assert "accounting-reset" in {span.reason for span in report.blind.unknown}
    assert "notebook" in " ".join(row.service for row in report.usage.never_accounted)


def test_it_tells_its_story_and_leaves_no_process(played) -> None:
    """What it started is gone when it ends."""
    _, folder, said = played
    assert any("driver is reloaded" in sentence for sentence in said)
    mine = os.fsencode(str(folder))
    left = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and mine in (entry / "cmdline").read_bytes():
                left.append(entry.name)
        except OSError:
            continue  # it ended while it was looked at
    assert left == []
