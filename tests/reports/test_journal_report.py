"""The journal report: lines for eyes, programs and sheets."""

from __future__ import annotations

import csv
import io

import pytest

from gpuledger.model.journal import JournalLine, JournalReport, Level
from gpuledger.model.moments import SECOND_US
from gpuledger.reports import journal_report


@pytest.fixture
def journal() -> JournalReport:
    lines = (
        JournalLine(
            at_us=1_500_000, until_us=3 * SECOND_US, host="box", device="GPU-5a3c1f2e-1111", source="driver",
            sentence="UNKNOWN watch-gap for 2 s", ref="watch:box.agent/1", level=Level.UNKNOWN,
        ),
        JournalLine(
            at_us=4 * SECOND_US, until_us=4 * SECOND_US, host="", device="", source="policy",
            sentence="policy version 1 [bold]applied", ref="policy:box.policy/1", level=Level.CHANGE,
        ),
    )  # fmt: skip
    return JournalReport(since_us=0, until_us=60 * SECOND_US, lines=lines)


def test_table_is_three_columns_and_refs_where_there_is_room(journal: JournalReport, printed) -> None:
    """Whole seconds, short device names, and references on wide terminals."""
    text = printed(journal_report.to_table(journal, width=99), 99)
    assert "1970-01-01T00:00:01Z  box GPU-5a3c1f2e  UNKNOWN watch-gap for 2 s" in text
    assert "1970-01-01T00:00:04Z  ledger            policy version 1 [bold]applied" in text
    assert "watch:box.agent/1" not in text
    assert "watch:box.agent/1" in printed(journal_report.to_table(journal, width=100), 100)


def test_json_and_csv_keep_every_digit(journal: JournalReport) -> None:
    """Programs get whole references and exact times."""
    lines = journal_report.to_json(journal)["lines"]
    assert lines[0]["at"] == "1970-01-01T00:00:01.5Z"
    assert [line["level"] for line in lines] == ["unknown", "change"]
    rows = list(csv.DictReader(io.StringIO(journal_report.to_csv(journal))))
    assert rows[1]["ref"] == "policy:box.policy/1"


def test_an_empty_journal_says_so(printed) -> None:
    """Nothing written is said, not shown as an empty table."""
    text = printed(journal_report.to_table(JournalReport(since_us=0, until_us=1, lines=())))
    assert "nothing was written in this time" in text
