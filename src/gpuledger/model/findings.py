"""What ``audit`` finds: numbers that cannot be defended, and what was looked at to find them.

Values only. A check is a rule that never changes its id; a finding is one place where it struck; a waiver is
somebody's signed word that one place may stay as it is, until a day.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from gpuledger.model.missing import Missing
from gpuledger.model.problem import Problem


class Level(StrEnum):
    """How much a check weighs; the words are SARIF's own (SARIF 2.1.0, 3.27.10)."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditCheck:
    """One rule of an audit.

    Args:
        id: what names it for good: ``dashboards/misattribution``.
        verdict: its one word in tables: ``misattribution``, ``laundered``, ``device-scope``.
        rule: what must hold, in one sentence.
        fix: what to change where it does not, in one sentence.
        level: ``error`` makes the command exit with 1; ``warning`` only with ``--strict``; ``note`` never.
    """

    id: str
    verdict: str
    rule: str
    fix: str
    level: Level


@dataclass(frozen=True, slots=True, kw_only=True)
class Where:
    """One place in a text.

    Args:
        path: the file as the user named it, or the address of an endpoint.
        line: 1-based; 0 where the whole file is meant.
        name: what stands there, for people: ``Tensor active per pod / A``, ``pod ns/name``; may be empty.
    """

    path: str
    line: int = 0
    name: str = ""

    def __str__(self) -> str:
        place = f"{self.path}:{self.line}" if self.line else self.path
        return f"{place} ({self.name})" if self.name else place


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiver:
    """Somebody's word that a finding may stay.

    Args:
        check: the id it waives, or a pattern of ids with ``*``.
        where: a pattern with ``*`` over path and name of the place; empty for the rule that it is a comment of.
        reason: why the figure is right all the same.
        owner: who answers for that.
        expires_us: until when, microseconds UTC.
        origin: where the waiver itself stands.
        within: of a comment, the first and last line of each object that it stands in, the innermost first.
    """

    check: str
    where: str
    reason: str
    owner: str
    expires_us: int
    origin: Where
    within: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One place where a check struck.

    Args:
        check: the rule.
        where: the place.
        message: what stands there and why it cannot be defended, in one sentence.
        evidence: what the sentence rests on, exact: the expression, the chain of rules, the two equal figures.
        fix: what to change here, where more exact than the check's own; may be empty.
        waiver: the word that lets it stay; Missing without one. An expired one does not count.
    """

    check: AuditCheck
    where: Where
    message: str
    evidence: tuple[str, ...] = ()
    fix: str = ""
    waiver: Waiver | Missing = field(default_factory=lambda: Missing("not waived"))

    @property
    def stands(self) -> bool:
        """Whether nobody has waived it."""
        return isinstance(self.waiver, Missing)

    @property
    def advice(self) -> str:
        """What to change: the place's own, else the rule's."""
        return self.fix or self.check.fix


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """One text that is handed to an audit.

    Args:
        path: the file as the user named it, or the address it came from.
        text: the whole of it.
    """

    path: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Looked:
    """One thing that was looked at, struck or not: what makes an empty list of findings worth something.

    Args:
        where: the place: an expression, a sample's family, a manifest's container, a node.
        verdict: what it came to; of a finding that of its check, else ``fine`` or another word of the audit.
        why: in one sentence; may be empty for ``fine``.
        text: the expression or figure itself; may be empty.
    """

    where: Where
    verdict: str
    why: str = ""
    text: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditReport:
    """What one audit found.

    Args:
        audit: which one: ``dashboards``, ``exporter``, ``manifests``, ``nodes``, ``rates``.
        looked: everything that was looked at, in the order of the texts.
        findings: where a check struck, in the same order, waived ones among them.
        unread: what could not be parsed, and so was not judged: never left out in silence.
        notes: what else to know: expired waivers, waivers that match nothing.
        facts: short figures and words for people, name and value: process scope, label set.
        checklist: what to do, in order, each one sentence; may be empty.
        draft: a text to hand over: a manifest of an exception; may be empty.
        checks: every rule that was applied, struck or not, so that a clean report says of what.
    """

    audit: str
    looked: tuple[Looked, ...] = ()
    findings: tuple[Finding, ...] = ()
    unread: tuple[Problem, ...] = ()
    notes: tuple[Problem, ...] = ()
    facts: tuple[tuple[str, str], ...] = ()
    checklist: tuple[str, ...] = ()
    draft: str = ""
    checks: tuple[AuditCheck, ...] = ()

    @property
    def rules(self) -> tuple[AuditCheck, ...]:
        """Every rule that was applied; where the audit does not list them, those that struck. Each once."""
        applied = {check.id: check for check in self.checks}
        return tuple((applied | {finding.check.id: finding.check for finding in self.findings}).values())

    def found(self, *, strict: bool = False) -> bool:
        """Whether anything stands that must make the command exit with 1.

        Args:
            strict: warnings, and what could not be read, count too; so it does where nothing else was looked at, since
                a text that nobody judged is not a clean one.
        """
        weighs = {Level.ERROR, Level.WARNING} if strict else {Level.ERROR}
        standing = any(finding.stands and finding.check.level in weighs for finding in self.findings)
        return standing or bool(self.unread and (strict or not (self.looked or self.findings)))
