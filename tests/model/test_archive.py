"""The words of archives."""

from __future__ import annotations

from gpuledger.model.archive import ArchiveReport, LeavingLine
from gpuledger.model.missing import Missing


def test_a_report_adds_its_files_up() -> None:
    """Rows and bytes of all months and kinds."""
    unwritten = Missing("nothing was written")
    lines = tuple(
        LeavingLine(month=month, rows_of="driver", row_count=count, size=10 * count, file_size=unwritten)
        for month, count in (("2026-05", 2), ("2026-06", 3))
    )
    report = ArchiveReport(done=False, before_us=0, folder="", leaving=lines, staying=())
    assert (report.row_count, report.size) == (5, 50)
