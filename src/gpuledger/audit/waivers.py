"""Waivers: somebody's signed word, with an expiry, that a finding may stay; read and laid over a report.

A file holds a list of them (or ``waivers:`` with such a list)::

    - {check: dashboards/misattribution, where: "*/whole.json", reason: one pod a GPU, owner: ana, until: 2027-01-31}

A comment holds one, for what it stands at::

    # gpuledger: waive dashboards/misattribution reason="one pod a GPU there" owner=ana until=2027-01-31

What it covers is told in :mod:`gpuledger.audit.waiver_places`. A JSON description is such a comment too. On a line with
several places (a dashboard without line breaks) it covers none, since nobody can tell which: the file is for these.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from difflib import get_close_matches

from gpuledger.audit.documents import Kind, Node, documents
from gpuledger.audit.waiver_places import around, covered
from gpuledger.errors import BadInput, Misconfigured
from gpuledger.model.findings import AuditReport, Finding, Looked, Waiver, Where, Written
from gpuledger.model.missing import Missing
from gpuledger.model.moments import iso, parse_moment
from gpuledger.model.problem import Problem

AUDITS = frozenset({"dashboards", "exporter", "manifests", "nodes", "rates"})
KEYS = ("check", "where", "reason", "owner", "until")
"""What a waiver of a file consists of; all of it is asked for."""

_HINT = 'a waiver is {check: ID, where: PATTERN, reason: "...", owner: NAME, until: 2027-01-31}'
_WORD = "gpuledger: waive"
_COMMENT = re.compile(r"gpuledger:[ \t]+waive\b[ \t]*([^\s\"',]*)(.*)")
_PART = re.compile(r"[ \t]*,?[ \t]*(\w+)=(?:\"([^\"]*)\"|'([^']*)'|([^\s\"',}]+))")


def parse_waivers(written: Written) -> tuple[Waiver, ...]:
    """The waivers of a file.

    Raises:
        BadInput: ``waivers-not-yaml``, ``waivers-not-list``, ``waiver-unknown-key``, ``waiver-missing-key`` or
            ``waiver-bad-until``; each names the line.
    """
    found, unread = documents(written)
    if unread:
        raise BadInput("waivers-not-yaml", unread[0].message, path=unread[0].where, hint=_HINT)
    given: list[Waiver] = []
    for document in found:
        entries = document.root if document.root.kind is Kind.LIST else document.root.at("waivers")
        stray = [key for key, _ in document.root.pairs if key != "waivers"]
        if entries.kind is not Kind.LIST or stray:
            message = "the document is not a list of waivers"
            raise BadInput("waivers-not-list", message, path=written.path, line=document.root.line, hint=_HINT)
        given += [_of_entry(entry, written.path, number) for number, entry in enumerate(entries.entries, 1)]
    return tuple(given)


def _of_entry(entry: Node, path: str, number: int) -> Waiver:
    def bad_waiver(code: str, message: str, line: int = 0) -> BadInput:
        return BadInput(code, f"waiver {number} {message}", path=path, line=line or entry.line, hint=_HINT)

    for key, value in entry.pairs:
        if key not in KEYS:
            raise bad_waiver("waiver-unknown-key", f"has the unknown key {key!r}", value.line)
    words = {key: entry.at(key).text.strip() for key in KEYS}
    for key, word in words.items():
        if not word:
            raise bad_waiver("waiver-missing-key", f"lacks `{key}`", entry.at(key).line)
    expires_us = _expiry(words["until"])
    if expires_us is None:
        message = f"ends at no date: {words['until']!r}"
        raise bad_waiver("waiver-bad-until", message, entry.at("until").line)
    return Waiver(
        check=words["check"], where=words["where"], reason=words["reason"], owner=words["owner"],
        expires_us=expires_us, origin=Where(path=path, line=entry.line),
    )  # fmt: skip


def waivers_in(text: str, path: str, *, first_line: int = 1) -> tuple[list[Waiver], list[Problem]]:
    """The waivers that stand in a text as comments: after ``#``, or in a JSON string.

    Args:
        text: a whole file, or a part of it.
        path: the file as the user named it.
        first_line: where the text begins in that file.

    Returns:
        The waivers, and a problem (``waiver-refused``) for each that lacks its check, reason, owner or expiry, or
        stands where it is no comment: such a word waives nothing.
    """
    found: list[Waiver] = []
    refused: list[Problem] = []
    if _WORD not in text:
        return found, refused
    rows = text.split("\n")
    objects = around(text, [line for line, row in enumerate(rows, 1) if _WORD in row]) if first_line == 1 else {}
    for line, row in enumerate(rows, first_line):
        comment = _COMMENT.search(row)
        if comment is None:
            continue
        before = row[: comment.start()]
        waiver = _of_comment(comment, Where(path=path, line=line)) if "#" in before or '"' in before else "no comment"
        if isinstance(waiver, Waiver):
            found.append(replace(waiver, within=objects.get(line, ())))
        else:
            message = f'this waives nothing: {waiver}; write {_WORD} CHECK reason="..." owner=NAME until=2027-01-31'
            refused.append(Problem(code="waiver-refused", message=message, where=f"{path}:{line}"))
    return found, refused


def _of_comment(comment: re.Match[str], origin: Where) -> Waiver | str:
    """The waiver, or what is wrong with it."""
    rest = comment[2].replace('\\"', '"').split("\\n")[0]
    words: dict[str, str] = {}
    at = 0
    while part := _PART.match(rest, at):
        words[part[1]] = (part[2] or part[3] or part[4] or "").strip()
        at = part.end()
    lacking = [key for key in ("reason", "owner", "until") if not words.get(key)]
    if not comment[1] or lacking:
        return f"it lacks {', '.join(lacking if comment[1] else ['its check', *lacking])}"
    if unknown := set(words) - set(KEYS):
        return f"it has the unknown word {min(unknown)}"
    expires_us = _expiry(words["until"])
    if expires_us is None:
        return f"{words['until']!r} is no date"
    return Waiver(
        check=comment[1], where=words.get("where", ""), reason=words["reason"], owner=words["owner"],
        expires_us=expires_us, origin=origin,
    )  # fmt: skip


def _expiry(text: str) -> int | None:
    """The start of a date, or a time of it; None for anything else, an age from now among it."""
    if not re.match(r"\d{4}-\d\d-\d\d", text):
        return None
    try:
        return parse_moment(text, now_us=0)
    except Misconfigured:
        return None


def apply_waivers(report: AuditReport, waivers: Sequence[Waiver], now_us: int) -> AuditReport:
    """A report with its waived findings marked; waivers that are over or meet nothing become notes.

    Args:
        report: as the audit gave it.
        waivers: of files and comments; the first that meets a finding counts.
        now_us: what an expiry is compared with, microseconds UTC; at its own moment a waiver is over.
    """
    concerned = [waiver for waiver in waivers if _concerns(waiver, report.audit) and _is_known(waiver, report)]
    places = {path: _places(report, path) for path in {waiver.origin.path for waiver in concerned if not waiver.where}}
    by_comment = {
        place: covered(waiver.origin.line, waiver.within, places[waiver.origin.path], _WORD)
        for place, waiver in enumerate(concerned)
        if not waiver.where
    }
    used: set[int] = set()
    findings = []
    for finding in report.findings:
        marked = finding
        for place, waiver in enumerate(concerned):
            if not matches(waiver.check, finding.check.id) or not _meets(waiver, finding, by_comment.get(place)):
                continue
            used.add(place)
            if waiver.expires_us > now_us and isinstance(marked.waiver, Missing):
                marked = replace(finding, waiver=waiver)
        findings.append(marked)
    notes = [*report.notes, *_unknown(waivers, report), *_notes(concerned, used, now_us)]
    return replace(report, findings=tuple(findings), notes=tuple(notes))


def matches(pattern: str, text: str) -> bool:
    """Whether a text is as a pattern in which ``*`` stands for anything; in time that grows with the text alone."""
    head, *rest = pattern.split("*")
    if not rest:
        return head == text
    if not text.startswith(head):
        return False
    at = len(head)
    for part in rest[:-1]:
        found = text.find(part, at)
        if found < 0:
            return False
        at = found + len(part)
    return text.endswith(rest[-1]) and len(text) - len(rest[-1]) >= at


def _concerns(waiver: Waiver, audit: str) -> bool:
    """Whether it can be meant for this audit: a file may hold the waivers of all of them."""
    audit_of = waiver.check.split("/")[0]
    return matches(audit_of, audit) or "*" in audit_of or "/" not in waiver.check


def _is_known(waiver: Waiver, report: AuditReport) -> bool:
    """Whether its pattern means any check of this audit; a report without its checks cannot tell."""
    return not report.checks or any(matches(waiver.check, check.id) for check in report.checks)


def _unknown(waivers: Sequence[Waiver], report: AuditReport) -> Iterable[Problem]:
    """Waivers of checks that there are not: of this audit, or of an audit that there is not."""
    hints: dict[str, str] = {}
    for waiver in waivers:
        audit_of = waiver.check.split("/")[0]
        if audit_of in AUDITS and audit_of != report.audit:
            continue  # that audit tells
        if _is_known(waiver, report) or (report.audit not in audit_of and "*" in audit_of):
            continue
        if waiver.check not in hints:
            ids = {check.id.split("/")[-1]: check.id for check in report.checks}
            near = get_close_matches(waiver.check.split("/")[-1][:100], ids, 1)
            hints[waiver.check] = f"is {ids[near[0]]} meant?" if near else "the reference of audits lists them all"
        told = f"{waiver.check}; {hints[waiver.check]}"
        message = f"the waiver by {waiver.owner} names no check that there is: {told}"
        yield Problem(code="waiver-unknown-check", message=message, where=f"{waiver.origin.path}:{waiver.origin.line}")


def _meets(waiver: Waiver, finding: Finding, covered: frozenset[Where] | None) -> bool:
    where = finding.where
    if covered is not None:
        return where in covered
    spellings = (where.path, f"{where.path}:{where.line}", where.name, str(where))
    pattern = waiver.where.removeprefix("./")
    return any(matches(pattern, text) or matches(f"*/{pattern}", text) for text in spellings)


def _places(report: AuditReport, path: str) -> list[tuple[Where, str]]:
    """Every place of a file with its text, by line."""
    seen: Iterable[Looked | Finding] = (*report.looked, *report.findings)
    found = {(each.where, each.text if isinstance(each, Looked) else "") for each in seen if each.where.path == path}
    return sorted(found, key=lambda place: (place[0].line, place[0].name, place[1]))


def _notes(waivers: Sequence[Waiver], used: set[int], now_us: int) -> Iterable[Problem]:
    for place, waiver in enumerate(waivers):
        origin = f"{waiver.origin.path}:{waiver.origin.line}"
        if waiver.expires_us <= now_us:
            message = (
                f"the waiver of {waiver.check} by {waiver.owner} ended at {iso(waiver.expires_us)}: it counts no more"
            )
            yield Problem(code="waiver-expired", message=message, where=origin)
        elif place not in used:
            message = f"the waiver of {waiver.check} by {waiver.owner} meets no finding: remove it, or mend its place"
            yield Problem(code="waiver-unused", message=message, where=origin)
