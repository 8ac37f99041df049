"""``gpuledger archive``: shown first, done with --yes, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from old_evidence import OldBox

NOW = "2026-07-20T00:00:00Z"


@pytest.fixture
def old(tmp_path: Path) -> None:
    box = OldBox(tmp_path / "box.db", days=35, jobs=6)
    box.fill()
    box.ledger.close()


def test_shown_then_done_then_verified(gpuledger, old, tmp_path: Path) -> None:
    """Nothing changes without --yes; afterwards verify passes with the folder, and says so without it."""
    shown = gpuledger("archive", "--before", "2026-06", "--now", NOW)
    assert shown.status == 0
    assert "Nothing has left yet" in shown.out
    total = gpuledger("usage", "--now", NOW, "--format", "json").json
    done = gpuledger(
        "archive", "--before", "2026-06-20", "--to", tmp_path / "a", "--yes", "--now", NOW, "--format", "json"
    )
    assert done.status == 0
    assert done.json["done"]
    assert done.json["before"] == "2026-06-01T00:00:00Z"
    assert gpuledger("usage", "--now", NOW, "--format", "json").json == total
    assert gpuledger("verify", "--now", NOW, "--strict").status == 0
    (tmp_path / "a").rename(tmp_path / "b")
    alone = gpuledger("verify", "--now", NOW)
    assert alone.status == 0
    assert "skipped" in alone.out
    assert "archived-rows" in alone.out
    assert gpuledger("verify", "--now", NOW, "--strict").status == 1
    assert gpuledger("verify", "--now", NOW, "--strict", "--archive", tmp_path / "b").status == 0
    file = next((tmp_path / "b").rglob("*.hold.parquet"))
    file.write_bytes(file.read_bytes()[:-1])
    damaged = gpuledger("verify", "--now", NOW, "--archive", tmp_path / "b")
    assert damaged.status == 6
    assert file.name in damaged.out


@pytest.mark.parametrize(
    ("words", "code", "status"),
    [
        ((), "no-bound", 2),
        (("--before", "soon"), "bad-time", 2),
        (("--before", "2026-06", "--yes"), "no-folder", 2),
        (("--before", "2026-07-20"), "not-final", 4),
    ],
)
def test_what_is_refused(gpuledger, old, words: tuple[str, ...], code: str, status: int) -> None:
    """No bound, none that is a time, no folder; and a month that is not final."""
    now = "2026-07-01T12:00:00Z" if code == "not-final" else NOW
    words = ("--before", "2026-07") if code == "not-final" else words
    done = gpuledger("archive", *words, "--now", now, "--format", "json")
    assert (done.error["code"], done.status) == (code, status)
