"""``gpuledger audit dashboards``: statuses and formats."""

from __future__ import annotations

from pathlib import Path

import pytest

NOW = ("--now", "2026-11-29T12:00:00Z")
RULES = """\
groups:
- rules:
  - {record: busy, expr: DCGM_FI_PROF_SM_ACTIVE}
  - {alert: Idle, expr: 'avg by (pod) (busy) < 0.1'}
"""


@pytest.fixture
def rules(tmp_path: Path) -> Path:
    """A metric renamed, and an alert that gives it to pods."""
    file = tmp_path / "rules.yaml"
    file.write_text(RULES, encoding="utf-8")
    return file


def test_findings_end_with_1(gpuledger, rules: Path) -> None:
    """The table names check, place, chain and what to change."""
    done = gpuledger("audit", "dashboards", rules, *NOW)
    assert done.status == 1
    assert "dashboards/laundered" in done.out
    assert "rules.yaml:4 (alert Idle)" in done.out
    assert "busy <- DCGM_FI_PROF_SM_ACTIVE" in done.out


def test_the_contract_of_json(gpuledger, rules: Path) -> None:
    """Everything looked at is in it, struck or not."""
    done = gpuledger("audit", "dashboards", rules, *NOW, "--format", "json")
    assert done.status == 1
    assert done.json["audit"] == "dashboards"
    assert done.json["standing"] == {"error": 1, "warning": 1, "note": 0}
    assert [each["verdict"] for each in done.json["looked"]] == ["laundered", "laundered"]
    assert [each["line"] for each in done.json["findings"]] == [3, 4]


@pytest.mark.parametrize(
    ("format_", "part"), [("sarif", '"ruleId": "dashboards/laundered"'), ("github", "::error "), ("csv", "check,")]
)
def test_other_formats(gpuledger, rules: Path, format_: str, part: str) -> None:
    """For code review, for annotations, for sheets."""
    done = gpuledger("audit", "dashboards", rules, *NOW, "--format", format_)
    assert done.status == 1
    assert part in done.out


def test_warnings_and_unread_parts_count_where_asked(gpuledger, tmp_path: Path) -> None:
    """``--strict``; without it they are told and pass."""
    file = tmp_path / "q.yaml"
    file.write_text(
        "- {name: a, expr: 'sum by (pod) (DCGM_FI_DEV_POWER_USAGE)'}\n- {name: b, expr: 'sum('}\n", encoding="utf-8"
    )
    plain = gpuledger("audit", "dashboards", file, *NOW)
    assert plain.status == 0
    assert "1 part could not be read" in plain.err
    assert gpuledger("audit", "dashboards", file, *NOW, "--strict").status == 1


def test_a_clean_file_says_what_was_looked_at(gpuledger, tmp_path: Path) -> None:
    """No finding, and the number of queries that make it worth something."""
    file = tmp_path / "q.yaml"
    file.write_text("queries: {cluster: avg(DCGM_FI_PROF_SM_ACTIVE)}\n", encoding="utf-8")
    done = gpuledger("audit", "dashboards", file, *NOW)
    assert done.status == 0
    assert "looked at 1" in done.out
