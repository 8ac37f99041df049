"""What copy brought over."""

from __future__ import annotations

import csv
import io
from dataclasses import replace

from rich.console import Console

from gpuledger.model.stores import CopyReport
from gpuledger.reports.copy_report import to_csv, to_json, to_table

REPORT = CopyReport(
    source="/l.db", target="postgresql://h/d", chains=3, rows=1167, links=1, texts=12, known_rows=5, root="ab" * 32
)


def test_sentences_for_eyes() -> None:
    """What is new, what was there, and the root that both sides have."""
    console = Console(width=200, file=io.StringIO())
    console.print(to_table(REPORT))
    told = console.file.getvalue()  # type: ignore[attr-defined]
    assert "/l.db to postgresql://h/d: 1,167 rows, 1 link and 12 identity texts copied, of 3 chains" in told
    assert "5 rows were there already" in told
    assert "ab" * 32 in told


def test_scripts_get_numbers() -> None:
    """The same in JSON and CSV."""
    assert to_json(REPORT)["rows"] == 1167
    (row,) = csv.DictReader(io.StringIO(to_csv(REPORT)))
    assert (row["from"], row["rows"], row["root"]) == ("/l.db", "1167", "ab" * 32)


def test_before_the_first_seal_there_is_no_root() -> None:
    """Nothing rather than an empty text, and said so for eyes."""
    unsealed = replace(REPORT, root="")
    assert to_json(unsealed)["root"] is None
    console = Console(width=200, file=io.StringIO())
    console.print(to_table(unsealed))
    assert "nothing is sealed yet, so there is no root" in console.file.getvalue()  # type: ignore[attr-defined]
    (row,) = csv.DictReader(io.StringIO(to_csv(unsealed)))
    assert row["root"] == ""
