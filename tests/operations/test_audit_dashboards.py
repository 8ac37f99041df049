"""Dashboards of files and folders: read, judged, waived."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gpuledger.errors import BadInput
from gpuledger.model.moments import parse_moment
from gpuledger.operations.audit_dashboards import dashboards

NOW = parse_moment("2026-11-29", now_us=0)
RULE = """\
groups:
- name: g
  rules:
  {comment}
  - record: team_busy
    expr: avg by (namespace) (DCGM_FI_PROF_SM_ACTIVE)
"""
WAIVER = '# gpuledger: waive dashboards/misattribution reason="one pod a GPU" owner=ana until=2027-01-31'


def test_rules_and_dashboards_of_a_folder_belong_together(tmp_path: Path) -> None:
    """The rule in one folder launders what the dashboard of another reads; other files are left out."""
    (tmp_path / "rules").mkdir()
    (tmp_path / "boards").mkdir()
    (tmp_path / "rules" / "r.yml").write_text(RULE.format(comment="# none"), encoding="utf-8")
    board = {"panels": [{"title": "p", "targets": [{"expr": "team_busy", "refId": "A"}]}]}
    (tmp_path / "boards" / "b.json").write_text(json.dumps(board), encoding="utf-8")
    (tmp_path / "notes.md").write_text("DCGM_FI_PROF_SM_ACTIVE by pod", encoding="utf-8")
    report = dashboards([tmp_path], waivers=None, now_us=NOW)
    assert [(each.check.verdict, Path(each.where.path).name) for each in report.findings] == [
        ("laundered", "b.json"),
        ("misattribution", "r.yml"),
    ]


def test_a_comment_in_the_rule_waives_it_until_its_day(tmp_path: Path) -> None:
    """Beyond it the finding stands again, and the waiver is told as over."""
    file = tmp_path / "r.yaml"
    file.write_text(RULE.format(comment=WAIVER), encoding="utf-8")
    report = dashboards([file], waivers=None, now_us=NOW)
    assert [each.stands for each in report.findings] == [False]
    assert not report.found()
    later = dashboards([file], waivers=None, now_us=parse_moment("2027-02-01", now_us=0))
    assert later.found()
    assert [problem.code for problem in later.notes] == ["waiver-expired"]


def test_a_panels_description_is_such_a_comment(tmp_path: Path) -> None:
    """JSON has no others."""
    target = {"expr": "avg by (pod) (DCGM_FI_PROF_SM_ACTIVE)", "refId": "A"}
    board = {"panels": [{"description": WAIVER.removeprefix("# "), "title": "p", "targets": [target]}]}
    file = tmp_path / "b.json"
    file.write_text(json.dumps(board, indent=1), encoding="utf-8")
    assert [each.stands for each in dashboards([file], waivers=None, now_us=NOW).findings] == [False]


def test_a_file_of_waivers_names_place_and_end(tmp_path: Path) -> None:
    """By pattern of the path."""
    (tmp_path / "r.yaml").write_text(RULE.format(comment="#"), encoding="utf-8")
    waivers = tmp_path / "waivers.yml"
    waivers.write_text(
        '- {check: dashboards/*, where: "*/r.yaml", reason: whole GPUs, owner: ana, until: 2027-01-31}\n',
        encoding="utf-8",
    )
    assert not dashboards([tmp_path / "r.yaml"], waivers=waivers, now_us=NOW).found()


def test_what_cannot_be_read_as_text_is_told(tmp_path: Path) -> None:
    """Not UTF-8, and 50 MB of values; the others are judged."""
    (tmp_path / "a.json").write_bytes(b'{"panels": "\xff\xfe"}')
    (tmp_path / "b.json").write_text("[" + "{}," * 17_000_000 + "{}]", encoding="ascii")  # 50 MB
    (tmp_path / "c.yaml").write_text(RULE.format(comment="#"), encoding="utf-8")
    report = dashboards([tmp_path], waivers=None, now_us=NOW)
    assert [problem.code for problem in report.unread] == ["not-text", "too-many-values"]
    assert len(report.findings) == 1


def test_links_that_go_round_end(tmp_path: Path) -> None:
    """A folder that links to itself is read once."""
    (tmp_path / "c.yaml").write_text(RULE.format(comment="#"), encoding="utf-8")
    (tmp_path / "again").symlink_to(tmp_path)
    assert len(dashboards([tmp_path], waivers=None, now_us=NOW).findings) == 1


def test_a_path_that_is_not_there_is_refused(tmp_path: Path) -> None:
    """A mistyped folder is no clean report."""
    with pytest.raises(BadInput):
        dashboards([tmp_path / "none"], waivers=None, now_us=NOW)
