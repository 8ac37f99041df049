"""The demo: a simulated driver, real processes, and an answer that is the product's own."""

from __future__ import annotations

import os
from pathlib import Path

from gpuledger.ledger.store import Ledger
from gpuledger.model.rows import UsageRecord


def test_it_ends_with_records_that_verify(played_demo) -> None:
    """Not only provisional figures: its hours are closed, sealed and sound."""
    report = played_demo.report
    assert report["sound"] is True
    assert report["root"]
    assert report["meter"]["records_added"] > 0
    assert report["usage"]["provisional"]["quantity"] == 0
    with Ledger.open(played_demo.folder / "ledger.db", mode="read") as ledger:
        assert ledger.count(UsageRecord) == report["meter"]["records_added"]


def test_it_names_what_it_started_and_sizes_what_it_could_not_name(played_demo) -> None:
    """Services by its policy; the job before the watch and the shortest ones by their cause."""
    usage = played_demo.report["usage"]
    assert {"chat-model", "speech-to-text", "thumbnails"} <= {row["service"] for row in usage["rows"]}
    assert "before-watch" in usage["unattributed"]["causes"]
    assert usage["total"] == sum(row["quantity"] for row in usage["rows"]) + usage["unattributed"]["quantity"]


def test_the_reload_and_the_daemon_older_than_accounting_are_seen(played_demo) -> None:
    """The story's two traps, in the answer."""
    report = played_demo.report
    assert "accounting-reset" in {span["reason"] for span in report["blind"]["unknown"]}
    assert "notebook" in {row["service"] for row in report["usage"]["never_accounted"]}


def test_it_tells_its_story_and_leaves_no_process(played_demo) -> None:
    """What it started is gone when it ends."""
    assert any("driver is reloaded" in sentence for sentence in played_demo.talk)
    mine = os.fsencode(str(played_demo.folder))
    left = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and mine in (entry / "cmdline").read_bytes():
                left.append(entry.name)
        except OSError:
            continue  # it ended while it was looked at
    assert left == []
