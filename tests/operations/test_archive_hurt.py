"""``archive`` killed at every step: all of it left, or nothing, and nothing is anywhere half."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from gpuledger.ledger.laying import lay_under
from gpuledger.ledger.store import Ledger
from gpuledger.model.archive import Archive
from gpuledger.model.checks import Verdict
from gpuledger.model.rows import Sighting
from gpuledger.operations.archive import archive
from gpuledger.operations.verify import verify
from old_evidence import JUNE_US, NOW_US, OldBox

CHILD = """
import os, signal, sys
from pathlib import Path
from gpuledger.ledger import archive_files
from gpuledger.ledger.store import Ledger
from gpuledger.operations.archive import archive

place, folder, step, before_us, now_us = sys.argv[1:]

def die(*_):
    os.kill(os.getpid(), signal.SIGKILL)

def after(function):
    def wrapped(*args, **words):
        function(*args, **words)
        die()
    return wrapped

if step == "first file":
    archive_files.Run.write = after(archive_files.Run.write)
if step == "all files":
    archive_files.Run.finish = lambda *_: die()
if step == "folder named":
    archive_files.Run.finish = after(archive_files.Run.finish)
with Ledger.open(Path(place), mode="append") as ledger:
    driver = ledger.connection.connection.driver_connection
    seen = []
    def look(statement):
        if statement.startswith("DROP TRIGGER"):
            seen.append(statement)
        if seen and statement.startswith(step):
            die()
    driver.set_trace_callback(look)
    archive(ledger, before_us=int(before_us), folder=Path(folder), done=True, now_us=int(now_us), writer="box.archive")
    if step == "done":
        die()
"""


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small ledger, made once."""
    place = tmp_path_factory.mktemp("old") / "ledger.db"
    box = OldBox(place, days=35, jobs=2)
    box.fill()
    box.ledger.close()
    return place


@pytest.mark.parametrize(
    ("step", "left"),
    [
        ("first file", False),
        ("all files", False),
        ("folder named", False),
        ("DROP TRIGGER sighting", False),
        ("DELETE FROM sighting", False),
        ("DELETE FROM hold", False),
        ("CREATE TRIGGER hold_no_delete", False),
        ("INSERT INTO archive", False),
        ("INSERT INTO link", False),
        ("COMMIT", False),
        ("INSERT INTO seal", True),
        ("done", True),
    ],
)
def test_killed_at_a_step(filled: Path, tmp_path: Path, step: str, left: bool) -> None:
    """Whatever the moment: the guards stand, the chain holds, and the command can be run again."""
    for each in filled.parent.glob("ledger.db*"):
        shutil.copy(each, tmp_path / each.name)
    place, folder = tmp_path / "ledger.db", tmp_path / "archive"
    with Ledger.open(place, mode="append") as ledger:
        before = ledger.count(Sighting)
    words = [sys.executable, "-c", CHILD, str(place), str(folder), step, str(JUNE_US), str(NOW_US)]
    assert subprocess.run(words, check=False).returncode == -signal.SIGKILL
    with Ledger.open(place, mode="append") as ledger:
        assert bool(ledger.count(Archive)) is left
        assert (ledger.count(Sighting) < before) is left
        report = verify(ledger, now_us=NOW_US)
        assert report.ok
        assert next(check for check in report.checks if check.name == "schema").verdict is Verdict.OK
        again = archive(
            ledger, before_us=JUNE_US, folder=folder, done=True, now_us=NOW_US, writer="box.archive"
        )  # fmt: skip
        assert again.done is not left
        over = [] if left else [folder / ("archive-0001.partial" if "file" in step else "archive-0001")]
        assert [Path(problem.where) for problem in again.problems] == over
    with Ledger.open(place, mode="read") as ledger:
        laid = lay_under(ledger, folder=None)
        assert laid.is_whole
        assert verify(ledger, now_us=NOW_US, laid=laid).ok
        assert ledger.count(Sighting) == before
