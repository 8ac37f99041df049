"""Reading verbs find the archive: where it was written, by the option, or by the setting."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpuledger.model.moments import DAY_US, MINUTE_US
from gpuledger.operations.archive import archive
from old_evidence import JUNE_US, MAY_US, NOW_US, OldBox

NOW = "2026-07-20T00:00:00Z"


@pytest.fixture
def moved(tmp_path: Path) -> Path:
    """A ledger whose evidence of May left for a folder that has moved since."""
    box = OldBox(tmp_path / "box.db", days=35, jobs=6)
    box.fill()
    archive(box.ledger, before_us=JUNE_US, folder=tmp_path / "a", done=True, now_us=NOW_US, writer="box.archive")
    box.ledger.close()
    (tmp_path / "a").rename(tmp_path / "b")
    return tmp_path / "b"


@pytest.mark.parametrize(
    "words",
    [
        ("explain", "driver:box.agent/15"),
        ("smi", "--at", "2026-05-03T01:00Z"),
        ("capacity", "--since", "2026-05"),
        ("usage", "--until", "2026-05-03T00:30Z"),
    ],
)
def test_what_needs_it_says_so_and_finds_it(
    gpuledger, moved: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    """Without it an error names it; with the option, or the setting, the verb answers."""
    gone = gpuledger(*words, "--now", NOW, "--format", "json")
    assert (gone.status, gone.error["code"]) == (5, "archive-missing")
    if words[0] != "usage":
        assert gpuledger(*words, "--now", NOW, "--archive", moved).status == 0
    monkeypatch.setenv("GPULEDGER_ARCHIVE", str(moved))
    assert gpuledger(*words, "--now", NOW).status == 0


@pytest.mark.parametrize(
    "words",
    [
        ("explain", "driver:box.agent/15"),
        ("smi", "--at", "2026-05-03T01:00Z"),
        ("capacity", "--since", "2026-05"),
        ("export", "parquet", "--to", "lake"),
        ("usage", "--until", "2026-05-03T00:30Z"),
    ],
)
def test_what_of_it_is_wrong_is_said(
    gpuledger, moved: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    """A folder in which it is not is named, with the file; a file that is another is damage, and not "missing"."""
    monkeypatch.chdir(moved.parent)
    monkeypatch.setenv("GPULEDGER_ARCHIVE", "elsewhere")
    elsewhere = gpuledger(*words, "--now", NOW, "--format", "json")
    assert (elsewhere.status, elsewhere.error["code"]) == (5, "archive-missing")
    assert "archive-0001/2026-05.driver.parquet is not in elsewhere, nor are" in elsewhere.error["message"]
    monkeypatch.setenv("GPULEDGER_ARCHIVE", str(moved))
    file = moved / "archive-0001" / "2026-05.hold.parquet"
    file.write_bytes(file.read_bytes()[:-1])
    damaged = gpuledger(*words, "--now", NOW, "--format", "json")
    assert (damaged.status, damaged.error["code"]) == (6, "archive-damaged")
    assert str(file) in damaged.error["message"]


def test_a_record_is_explained_without_it_and_says_what_is_wrong(gpuledger, moved: Path) -> None:
    """What stands in the ledger is told; beside it, why the way ends there."""
    file = moved / "archive-0001" / "2026-05.driver.parquet"
    words = ("explain", "record:box.meter/1", "--now", NOW, "--archive")
    assert "archive-0001/2026-05.driver.parquet is not in" in gpuledger(*words, moved / "x").err
    file.write_bytes(b"")
    done = gpuledger(*words, moved)
    assert done.status == 0
    assert "is archived" in done.out
    assert "[archive-damaged]" in done.err


def test_without_a_window_nothing_of_it_is_needed(gpuledger, tmp_path: Path) -> None:
    """A history that began within an hour: its first hour is recorded whole, and before it was nothing."""
    box = OldBox(tmp_path / "box.db", days=0)
    for day in range(35):
        box.tell(f"w{day}", MAY_US + day * DAY_US + 20 * MINUTE_US, hours=5)
    box.meter(MAY_US + 36 * DAY_US)
    before = gpuledger("usage", "--meter", "gpu.reserved", "--now", NOW, "--format", "json").json
    archive(box.ledger, before_us=JUNE_US, folder=tmp_path / "a", done=True, now_us=NOW_US, writer="box.archive")
    box.ledger.close()
    (tmp_path / "a").rename(tmp_path / "b")
    for words in (("usage", "--meter", "gpu.reserved"), ("usage",), ("blind",), ("journal",)):
        assert gpuledger(*words, "--now", NOW).status in (0, 3), words
    assert gpuledger("correct", "--reason", "x", "--by", "y", "--now", NOW).status == 0
    assert gpuledger("usage", "--meter", "gpu.reserved", "--now", NOW, "--format", "json").json == before
