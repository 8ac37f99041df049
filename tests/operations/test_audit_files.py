"""Files and folders of an audit: within bounds, none left out in silence; waivers of files and comments together."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from gpuledger.errors import BadInput
from gpuledger.model.findings import AuditCheck, AuditReport, Finding, Level, Where, Written
from gpuledger.model.moments import parse_moment
from gpuledger.model.problem import Problem
from gpuledger.operations import audit_files
from gpuledger.operations.audit_files import gather, judged, waivers_of

NOW = parse_moment("2026-11-29", now_us=0)
CHECK = AuditCheck(id="nodes/x", verdict="x", rule="R.", fix="F.", level=Level.ERROR)


def test_files_and_folders(tmp_path: Path) -> None:
    """Folders by name and suffix, hidden ones left out; a named file whatever it is called."""
    for place in ("b/two.yaml", "b/one.YML", "b/.git/three.yaml", "b/note.md", "named.txt"):
        (tmp_path / place).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / place).write_text(place, encoding="utf-8")
    texts, unread = gather([tmp_path / "named.txt", tmp_path / "b"], suffixes=(".yaml", ".yml"))
    assert [written.text for written in texts] == ["named.txt", "b/one.YML", "b/two.yaml"]
    assert unread == ()


def test_what_is_no_text_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Binary and oversized files are unread, with their reason; the others are read."""
    (tmp_path / "a.yaml").write_bytes(b"ok: 1\n\xff\xfe\x00")
    (tmp_path / "b.yaml").write_text("x" * 200, encoding="utf-8")
    (tmp_path / "c.yaml").write_text("c: 1", encoding="utf-8")
    monkeypatch.setattr(audit_files, "MOST_BYTES", 100)
    texts, unread = gather([tmp_path], suffixes=(".yaml",))
    assert [written.text for written in texts] == ["c: 1"]
    assert [(problem.code, Path(problem.where).name) for problem in unread] == [
        ("not-text", "a.yaml:2"),
        ("too-large", "b.yaml"),
    ]
    assert str(tmp_path) not in unread[0].message


def test_a_path_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    """A mistyped name is no clean audit."""
    with pytest.raises(BadInput, match="no such file"):
        gather([tmp_path / "nothing"], suffixes=(".yaml",))


def test_too_many_files_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A whole disk is not read, and not passed over either."""
    for number in range(3):
        (tmp_path / f"{number}.yaml").write_text("a: 1", encoding="utf-8")
    monkeypatch.setattr(audit_files, "MOST_FILES", 2)
    texts, unread = gather([tmp_path], suffixes=(".yaml",))
    assert (len(texts), [problem.code for problem in unread]) == (2, ["too-many-files"])


def test_waivers_of_a_file_and_of_comments(tmp_path: Path) -> None:
    """Both are laid over the report; a comment that lacks something is a note."""
    file = tmp_path / "w.yaml"
    file.write_text("- {check: nodes/*, where: 'a.yaml:9', reason: r, owner: o, until: 2027-01-31}", encoding="utf-8")
    text = '# gpuledger: waive nodes/x reason="r" owner=o until=2027-01-31\na: 1\n# gpuledger: waive nodes/x\n'
    report = AuditReport(
        audit="nodes",
        findings=tuple(
            Finding(check=CHECK, where=Where(path="a.yaml", line=line), message="M.") for line in (2, 9, 12)
        ),
        unread=(Problem(code="not-yaml", message="later"),),
    )
    done = judged(
        report,
        texts=(Written(path="a.yaml", text=text),),
        waivers=waivers_of(file),
        unread=(Problem(code="not-text", message="first"),),
        now_us=NOW,
    )
    assert [finding.stands for finding in done.findings] == [False, False, True]
    assert [problem.code for problem in done.unread] == ["not-text", "not-yaml"]
    assert [problem.code for problem in done.notes] == ["waiver-refused"]
    assert waivers_of(None) == ()


def test_what_is_no_file_is_told_and_not_waited_for(tmp_path: Path) -> None:
    """A pipe that nobody writes to would never end."""
    os.mkfifo(tmp_path / "a.yaml")
    (tmp_path / "b.yaml").symlink_to(tmp_path / "nothing")
    (tmp_path / "c.yaml").write_text("c: 1")
    texts, unread = gather([tmp_path], suffixes=[".yaml"])
    assert [Path(text.path).name for text in texts] == ["c.yaml"]
    assert [(problem.code, Path(problem.where).name) for problem in unread] == [
        ("unreadable-file", "a.yaml"),
        ("unreadable-file", "b.yaml"),
    ]


def test_all_texts_together_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is beyond is told; memory does not grow with a folder."""
    monkeypatch.setattr("gpuledger.operations.audit_files.MOST_SIGNS", 10)
    for name in ("a", "b", "c"):
        (tmp_path / f"{name}.yaml").write_text("a: 12")
    texts, unread = gather([tmp_path], suffixes=[".yaml"])
    assert [Path(text.path).name for text in texts] == ["a.yaml", "b.yaml"]
    assert [(problem.code, Path(problem.where).name) for problem in unread] == [("too-many-files", "c.yaml")]
