"""Waivers: a reason, an owner and an expiry, or nothing; what each covers, and what becomes of those that are over."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuledger.audit.waivers import apply_waivers, matches, parse_waivers, waivers_in
from gpuledger.errors import BadInput
from gpuledger.model.findings import AuditCheck, AuditReport, Finding, Level, Looked, Waiver, Where, Written
from gpuledger.model.missing import Missing
from gpuledger.model.moments import parse_moment

NOW = parse_moment("2026-11-29", now_us=0)
WRONG = AuditCheck(id="dashboards/misattribution", verdict="misattribution", rule="R.", fix="F.", level=Level.ERROR)
SAID = 'gpuledger: waive dashboards/misattribution reason="one pod a GPU" owner=ana until=2027-01-31'
ENTRY = "{check: dashboards/misattribution, where: '*', reason: r, owner: o, until: 2027-01-31}"


def finding(line: int, name: str = "", path: str = "rules.yaml") -> Finding:
    return Finding(check=WRONG, where=Where(path=path, line=line, name=name), message="M.")


def report(*findings: Finding, texts: tuple[str, ...] = ()) -> AuditReport:
    looked = tuple(
        Looked(where=each.where, verdict="misattribution", text=text)
        for each, text in zip(findings, [*texts, *[""] * len(findings)], strict=False)
    )
    return AuditReport(audit="dashboards", findings=findings, looked=looked)


def waived(given_report: AuditReport, *waivers: Waiver, now_us: int = NOW) -> tuple[list[bool], list[str]]:
    applied = apply_waivers(given_report, waivers, now_us)
    return [not each.stands for each in applied.findings], [note.code for note in applied.notes]


def test_a_file_of_waivers() -> None:
    """A list, or a list under `waivers`; each knows where it stands."""
    for text in (f"# why\n- {ENTRY}\n", f"waivers:\n- {ENTRY}\n"):
        (waiver,) = parse_waivers(Written(path="w.yaml", text=text))
        assert (waiver.owner, waiver.origin) == ("o", Where(path="w.yaml", line=2))
        assert waiver.expires_us == parse_moment("2027-01-31", now_us=0)


@pytest.mark.parametrize(
    ("text", "code", "line"),
    [
        ("- {check: c, where: w, owner: o, until: 2027-01-01}", "waiver-missing-key", 1),
        ("\n- {check: c, where: w, reason: r, owner: '', until: 2027-01-01}", "waiver-missing-key", 2),
        ("- {check: c, where: w, reason: r, owner: o}", "waiver-missing-key", 1),
        ("- check: c\n  where: w\n  reason: r\n  owner: o\n  until: soon", "waiver-bad-until", 5),
        ("- {check: c, where: w, reason: r, owner: o, until: 7d}", "waiver-bad-until", 1),
        ("- check: c\n  why: r", "waiver-unknown-key", 2),
        ("check: c", "waivers-not-list", 1),
        ("waivers: 3", "waivers-not-list", 1),
        ("- [", "waivers-not-yaml", 2),
        ("- oops", "waiver-missing-key", 1),
    ],
)
def test_a_waiver_that_lacks_something_is_refused(text: str, code: str, line: int) -> None:
    """The line is named, and nothing is waived."""
    with pytest.raises(BadInput) as refused:
        parse_waivers(Written(path="w.yaml", text=text))
    assert refused.value.code == code
    assert f"w.yaml:{line}" in refused.value.message


@pytest.mark.parametrize(
    "row",
    [
        f"# {SAID}",
        f"  expr: x # {SAID}",
        f'  "description": "{SAID}",'.replace('reason="one pod a GPU"', r"reason=\"one pod a GPU\""),
        f'"description": "{SAID}\\nmore: words", "a": 1'.replace('"one pod a GPU"', "'one pod a GPU'"),
    ],
)
def test_a_comment_is_a_waiver(row: str) -> None:
    """After a hash, in PromQL as in YAML, and in a string of JSON."""
    (waiver,), refused = waivers_in(f"a\n{row}\n", "rules.yaml")
    assert refused == []
    assert (waiver.check, waiver.reason, waiver.owner) == ("dashboards/misattribution", "one pod a GPU", "ana")
    assert (waiver.where, waiver.origin.line) == ("", 2)


@pytest.mark.parametrize(
    ("row", "lacks"),
    [
        ("# gpuledger: waive dashboards/x owner=ana until=2027-01-31", "reason"),
        ('# gpuledger: waive dashboards/x reason="r" until=2027-01-31', "owner"),
        ('# gpuledger: waive dashboards/x reason="r" owner=ana', "until"),
        ('# gpuledger: waive dashboards/x reason="r" owner=ana until=later', "later"),
        ('# gpuledger: waive dashboards/x reason="r" owner=ana until=2027-01-31 team=x', "team"),
        ("# gpuledger: waive", "its check"),
        ("gpuledger: waive dashboards/x reason=r owner=ana until=2027-01-31", "no comment"),
    ],
)
def test_a_comment_that_lacks_something_waives_nothing(row: str, lacks: str) -> None:
    """It is told with its line."""
    found, (problem,) = waivers_in(row, "rules.yaml", first_line=9)
    assert found == []
    assert (problem.code, problem.where) == ("waiver-refused", "rules.yaml:9")
    assert lacks in problem.message


def comment(line: int, check: str = "dashboards/*") -> Waiver:
    return Waiver(
        check=check, where="", reason="r", owner="o", expires_us=NOW + 1, origin=Where(path="rules.yaml", line=line)
    )


@pytest.mark.parametrize(
    ("line", "lines", "covered"),
    [
        (5, (5, 9), [True, False]),  # on its own line
        (4, (5, 9), [True, False]),  # the nearest below
        (6, (5, 9), [False, True]),
        (10, (5, 9), [False, False]),  # nothing below
    ],
)
def test_what_a_comment_stands_at(line: int, lines: tuple[int, int], covered: list[bool]) -> None:
    """Its own line, else the nearest place below; never one above."""
    marks, notes = waived(report(*(finding(each) for each in lines)), comment(line))
    assert marks == covered
    assert notes == ([] if any(covered) else ["waiver-unused"])


def test_a_comment_inside_an_expression() -> None:
    """It is a part of it, though the expression begins above."""
    given_report = report(finding(5), finding(9), texts=(f"sum(x)\n# {SAID}\nby (pod)", "y"))
    assert waived(given_report, comment(7))[0] == [True, False]


def test_a_comment_of_a_panel() -> None:
    """A description stands above the targets of its panel, and covers all of them; not the next panel's."""
    given_report = report(finding(5, "Tensor / A"), finding(8, "Tensor / B"), finding(20, "Memory / A"))
    assert waived(given_report, comment(3))[0] == [True, True, False]


def test_a_comment_on_a_line_of_many_places_covers_none() -> None:
    """Nobody can tell which one was meant; the note says so."""
    given_report = report(finding(1, "Tensor / A"), finding(1, "Memory / A"))
    assert waived(given_report, comment(1)) == ([False, False], ["waiver-unused"])


def test_a_comment_of_another_file_or_check() -> None:
    """It covers nothing here."""
    assert waived(report(finding(5, path="other.yaml")), comment(4))[0] == [False]
    assert waived(report(finding(5)), comment(4, check="dashboards/laundered"))[0] == [False]


@pytest.mark.parametrize(
    ("where", "covered"),
    [
        ("*", True),
        ("rules.yaml", True),
        ("./team/rules.yaml", True),
        ("team/*", True),
        ("/srv/team/rules.yaml:5", True),
        ("Tensor*", True),
        ("other.yaml", False),
        ("ules.yaml", False),
    ],
)
def test_the_places_of_a_file(where: str, covered: bool) -> None:
    """A pattern over path, path and line, or name; a relative path is met wherever the command was run."""
    given_report = report(finding(5, "Tensor / A", path="/srv/team/rules.yaml"))
    assert waived(given_report, replace(comment(1), where=where))[0] == [covered]


def test_an_expired_waiver_does_not_count() -> None:
    """From its day on the finding stands again, and the note names who signed."""
    over = replace(comment(4), expires_us=NOW)
    assert waived(report(finding(5)), over) == ([False], ["waiver-expired"])
    applied = apply_waivers(report(finding(5)), (over, comment(4)), NOW)
    assert isinstance(applied.findings[0].waiver, Waiver)


def test_waivers_of_other_audits_are_left_alone() -> None:
    """One file may hold those of all five."""
    others = (replace(comment(4), check="nodes/*", where="*"), replace(comment(4), check="rates/x", where="*"))
    assert waived(report(finding(5)), *others) == ([False], [])


@pytest.mark.parametrize(
    ("check", "said"),
    [
        ("dashboards/misatribution", "is dashboards/misattribution meant?"),
        ("dashbords/misattribution", "is dashboards/misattribution meant?"),
        ("misattribution", "is dashboards/misattribution meant?"),
        ("dashboards/x*", "lists them all"),
    ],
)
def test_a_waiver_of_a_check_that_there_is_not_is_told(check: str, said: str) -> None:
    """By a name that is near; it waives nothing, and is not told as unused on top."""
    with_checks = replace(report(finding(5)), checks=(WRONG,))
    applied = apply_waivers(with_checks, [comment(4, check=check)], NOW)
    assert [note.code for note in applied.notes] == ["waiver-unknown-check"]
    assert said in applied.notes[0].message
    assert waived(with_checks, comment(4, check="dashboards/mis*"))[0] == [True]
    assert waived(with_checks, replace(comment(4, check="exporter/x"), where="*")) == ([False], [])
    assert waived(with_checks, comment(4, check="*/x")) == ([False], [])


def test_a_comment_knows_the_objects_it_is_in() -> None:
    """So that one below an expression is its, and not the next one's."""
    text = f"- expr: x\n  labels: {{a: b}}  # {SAID}\n- expr: y\n"
    (waiver,), _ = waivers_in(text, "rules.yaml")
    assert waiver.within == ((1, 2),)
    assert waived(report(finding(1), finding(3)), waiver) == ([True, False], [])


def test_an_unwaived_finding_says_so() -> None:
    """Absence has a reason."""
    assert isinstance(apply_waivers(report(finding(5)), (), NOW).findings[0].waiver, Missing)


@given(st.lists(st.sampled_from(["a", "b", "*"]), max_size=8), st.text(alphabet="ab", max_size=10))
def test_patterns_are_as_the_shell_has_them(parts: list[str], text: str) -> None:
    """Against the plain definition of a star."""
    pattern = "".join(parts)

    def plain(pattern: str, text: str) -> bool:
        if not pattern:
            return not text
        if pattern[0] == "*":
            return any(plain(pattern[1:], text[cut:]) for cut in range(len(text) + 1))
        return bool(text) and pattern[0] == text[0] and plain(pattern[1:], text[1:])

    assert matches(pattern, text) == plain(pattern, text)
