"""``archive`` as table, JSON and CSV."""

from __future__ import annotations

import pytest
from rich.console import Console

from gpuledger.model.archive import ArchiveReport, LeavingLine, StayingLine
from gpuledger.model.missing import Missing
from gpuledger.model.moments import parse_moment
from gpuledger.reports import archive_report

JULY_US = parse_moment("2026-07", now_us=0)
UNWRITTEN = Missing("nothing was written")


def made(*, done: bool, leaving: bool = True) -> ArchiveReport:
    line = LeavingLine(
        month="2026-05", rows_of="driver", row_count=1200, size=4096,
        file_name="archive-0001/2026-05.driver.parquet" if done else "", file_size=900 if done else UNWRITTEN,
    )  # fmt: skip
    return ArchiveReport(
        done=done, before_us=JULY_US, folder="/srv/archive" if done else "", leaving=(line,) if leaving else (),
        staying=(StayingLine(rows_of="event", row_count=1, reason="are the last of each workload"),),
        root="ab" * 32 if done else "",
    )  # fmt: skip


def shown(report: ArchiveReport, width: int) -> str:
    console = Console(width=width, color_system=None, record=True)
    with console.capture() as said:
        console.print(archive_report.to_table(report))
    return said.get()


@pytest.mark.parametrize("width", [80, 120])
def test_before_it_says_what_to_type(width: int) -> None:
    """What would leave, what stays and why, that nothing has left, and the command."""
    text = shown(made(done=False), width)
    assert "Would archive" in text
    assert "1,200" in text
    assert "finished processes" in text
    assert "last of each workload" in text
    assert "gpuledger archive --before 2026-07 --to FOLDER --yes" in text


def test_after_it_says_where_and_the_root() -> None:
    """The folder, the files, and the root to keep elsewhere."""
    text = shown(made(done=True), 120)
    assert "/srv/archive" in text
    assert "archive-0001/2026-05.driver.parquet" in text
    assert "ab" * 32 in text


def test_nothing_to_archive_is_said() -> None:
    """No row can leave: said, with what stays."""
    assert "no row of evidence" in shown(made(done=False, leaving=False), 80)


def test_json_and_csv_have_all_of_it() -> None:
    """Absent values are null or empty, never 0."""
    before, after = archive_report.to_json(made(done=False)), archive_report.to_json(made(done=True))
    assert before["leaving"] == [
        {"month": "2026-05", "kind": "driver", "rows": 1200, "bytes": 4096, "file": None, "file_bytes": None}
    ]
    assert (before["before"], before["rows"], before["root"]) == ("2026-07-01T00:00:00Z", 1200, None)
    assert after["root"] == "ab" * 32
    assert after["folder"] == "/srv/archive"
    lines = archive_report.to_csv(made(done=False)).splitlines()
    assert lines[1:] == ["leaves,2026-05,driver,1200,4096,,,", "stays,,event,1,,,,are the last of each workload"]
