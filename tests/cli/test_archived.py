"""Reading verbs find the archive: where it was written, by the option, or by the setting."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpuledger.operations.archive import archive
from old_evidence import JUNE_US, NOW_US, OldBox

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
