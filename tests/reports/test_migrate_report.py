"""What migrate did."""

from __future__ import annotations

import csv
import io

from rich.console import Console

from gpuledger.model.problem import Problem
from gpuledger.model.stores import Granted, MigrateReport
from gpuledger.reports.migrate_report import to_csv, to_json, to_table

ROLES = (
    Granted(role="agents", may_append=True, is_there=True),
    Granted(role="grafana", may_append=False, is_there=True),
    Granted(role="later", may_append=True, is_there=False),
)


def shown(before: int, *, by_itself: bool = False, granted: tuple[Granted, ...] = ()) -> str:
    console = Console(width=120, file=io.StringIO())
    console.print(
        to_table(
            MigrateReport(ledger="postgresql://o@h/d", by_itself=by_itself, before=before, after=2, granted=granted)
        )
    )
    return console.file.getvalue()  # type: ignore[attr-defined]


def test_what_was_done_and_who_may_what() -> None:
    """A sentence for the tables, one for each role."""
    told = shown(0, granted=ROLES)
    assert "postgresql://o@h/d: tables of version 2 made" in told
    assert "agents: adds and reads rows, deletes identity texts, and nothing else" in told
    assert "grafana: reads rows" in told
    assert "later: not there yet" in told
    assert "brought from version 1 to 2" in shown(1)
    assert "as they should be" in shown(2)


def test_a_file_does_it_by_itself() -> None:
    """That is said."""
    assert "by whoever opens it to append" in shown(2, by_itself=True)


def test_scripts_get_all_of_it() -> None:
    """Problems too."""
    report = MigrateReport(ledger="l", by_itself=False, before=1, after=2, granted=ROLES,
                           problems=(Problem(code="c", message="m"),))  # fmt: skip
    told = to_json(report)
    assert (told["before"], told["after"], len(told["granted"])) == (1, 2, 3)  # type: ignore[arg-type]
    assert told["problems"] == [{"code": "c", "message": "m", "where": ""}]
    assert [row["role"] for row in csv.DictReader(io.StringIO(to_csv(report)))] == ["agents", "grafana", "later"]
