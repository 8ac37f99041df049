"""``audit dashboards``: every query of dashboards, rules and lists judged, recording rules followed through all files.

Texts in, a report out. Three passes: find the queries, follow the rules, judge.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from gpuledger.audit import promql
from gpuledger.audit.branches import Branch
from gpuledger.audit.dashboard_checks import CHECKS, RULE_CYCLE
from gpuledger.audit.device_metrics import tells_device
from gpuledger.audit.extracted import Extracted
from gpuledger.audit.extraction import extract, extract_strings
from gpuledger.audit.gpu_words import tells_prof
from gpuledger.audit.helm_text import scan
from gpuledger.audit.judging import Judgement, judge, workload_marks
from gpuledger.audit.lineage import Lineage, Rule
from gpuledger.audit.plain import read
from gpuledger.audit.programs import OUT_OF_SCOPE, RENDERED, strings, suffix_of
from gpuledger.audit.promql_tree import Match, Node, Selector, Unparsable
from gpuledger.audit.queries import Query, Role
from gpuledger.audit.query_places import asks_at, language_of
from gpuledger.audit.query_text import Prepared, prepare
from gpuledger.audit.renaming import Rename
from gpuledger.audit.templates import MARK
from gpuledger.model.findings import AuditReport, Finding, Looked, Written
from gpuledger.model.problem import Problem

AUDIT = "dashboards"
OTHER = "other"
"""The verdict of a query in a language that is none of Prometheus' and names no profiling metric."""

_HELD = re.compile(rf"{MARK}\d+{MARK}")


@dataclass(frozen=True, slots=True)
class _Parsed:
    """A query with its tree; None where it could not be parsed, with the reason."""

    query: Query
    prepared: Prepared
    tree: Node | None
    dialect: promql.Dialect | None = None
    reason: str = ""


def audit_dashboards(texts: Iterable[Written]) -> AuditReport:
    """What the queries of some texts give to workloads that is a whole device's figure.

    Args:
        texts: dashboards, rule files, lists of queries: of any number of files, in any order.

    Returns:
        A report with every query in ``looked``, and everything that could not be read in ``unread``.
    """
    queries: list[Query] = []
    renames: list[Rename] = []
    made: dict[str, str] = {}
    panel_uids: set[str] = set()
    borrowed: list[tuple[str, Problem]] = []
    unread: list[Problem] = []
    files = 0
    silent: list[Written] = []
    for written in texts:
        files += 1
        if suffix_of(written.path) in RENDERED and not tells_device(written.text):
            silent.append(written)
            continue
        found, problems = _of_file(written)
        queries += found.queries
        renames += found.renames
        made |= found.made
        panel_uids |= found.panel_uids
        borrowed += found.borrowed
        unread += [*problems, *found.unread]
    unread += [*_not_rendered(silent), *(problem for uid, problem in borrowed if uid not in panel_uids)]
    kept = {id(query): _parse(query) for query in queries if query.record}
    lineage = Lineage([*_rules(kept.values()), *_renaming(renames)], made)
    beside = _beside(queries, lineage)
    judged = _Judged()
    for query in queries:  # one by one: trees and branches of thousands of queries would only be in the way
        if query.role is Role.FOREIGN:
            judged.foreign(query)
            continue
        each = kept.get(id(query)) or _parse(query)
        if each.tree is None:
            judged.unparsed(each)
            continue
        concerns = lineage.concerns(each.tree)
        branches = lineage.of(each.tree, each.prepared, query.variables) if concerns else ()
        judged.add(each, judge(query, branches, _joined(query, beside, branches)))
    judged.rings(lineage.rings, queries)
    return AuditReport(
        audit=AUDIT,
        looked=tuple(judged.looked),
        findings=tuple(judged.findings),
        unread=(*unread, *judged.unread),
        facts=_facts(files, judged),
        checks=CHECKS,
    )


def _not_rendered(silent: Sequence[Written]) -> list[Problem]:
    """Programs that name no metric of a device: how many there are."""
    if not silent:
        return []
    message = f"{len(silent):,} files of programs that name no metric of a device were not rendered"
    return [Problem(code="not-rendered", message=message, where=silent[0].path)]


def _of_file(written: Written) -> tuple[Extracted, list[Problem]]:
    if (why := RENDERED.get(suffix_of(written.path))) is not None:
        found = extract_strings(strings(written), written.path)
        told = f"{why}; {len(found.queries):,} queries of its strings are judged as they stand"
        return found, [Problem(code="not-rendered", message=told, where=written.path)]
    if suffix_of(written.path) in OUT_OF_SCOPE:
        return Extracted(), _out_of_scope(written)
    documents, unread = read(written)
    if any(problem.code == "not-yaml" for problem in unread) and (items := scan(written.text)):
        found = extract([*documents, *items], written.path)
        told = f"; {len(found.queries)} queries were found line by line"
        unread = [
            Problem(code=each.code, message=each.message + told, where=each.where) if each.code == "not-yaml" else each
            for each in unread
        ]
        return found, unread
    found = extract(documents, written.path)
    if found.queries or found.unread or unread or found.renames:
        return found, unread
    return found, _out_of_scope(written)


def _out_of_scope(written: Written) -> list[Problem]:
    """Of a text without a query that is known here: that it has one all the same, by the look of it."""
    line = asks_at(written.text)
    if not line:
        return []
    message = (
        "it reads like a query of a device's metric; prose, shell and source code are not audited: put it into a list "
        "of YAML, queries: [...]"
    )
    return [Problem(code="no-query", message=message, where=f"{written.path}:{line}")]


def _parse(query: Query) -> _Parsed:
    reason = ""
    if len(query.text) > promql.LONGEST:
        return _Parsed(query, Prepared(text=""), None, None, f"longer than {promql.LONGEST:,} characters")
    for function in ("avg", "max_over_time"):
        prepared = prepare(query.text, query.variables, function=function)
        try:
            tree, dialect = promql.parse(prepared.text)
        except Unparsable as error:
            reason = reason or error.reason
        else:
            return _Parsed(query, prepared, tree, dialect)
        if not prepared.held and prepared.text == query.text:
            break
    return _Parsed(query, Prepared(text=query.text), None, None, reason)


def _rules(parsed: Iterable[_Parsed]) -> list[Rule]:
    return [
        Rule(record=each.query.record, tree=each.tree, prepared=each.prepared, labels=each.query.labels)
        for each in parsed
        if each.query.record and each.tree is not None
    ]


def _renaming(renames: Sequence[Rename]) -> list[Rule]:
    """What relabelling makes of metrics: a name that stands for all that its pattern meets."""
    return [
        Rule(
            record=each.name, tree=Selector("", ((Match("__name__", "=~", each.pattern),),)), prepared=Prepared(text="")
        )
        for each in renames
        if tells_device(each.pattern)
    ]


def _beside(queries: Sequence[Query], lineage: Lineage) -> dict[str, dict[str, str]]:
    """Of each panel that joins its queries' rows, the workload labels that any of them names."""
    found: dict[str, dict[str, str]] = {}
    for query in queries:
        if not query.is_merged or query.role is Role.FOREIGN:
            continue
        parsed = _parse(query)
        if parsed.tree is not None:
            for label in workload_marks(lineage.of(parsed.tree, parsed.prepared, query.variables)):
                found.setdefault(query.panel, {}).setdefault(label, f"the table joins {label} of {query.where.name}")
    return found


def _joined(query: Query, beside: Mapping[str, Mapping[str, str]], own: Sequence[Branch]) -> list[tuple[str, str]]:
    """The labels that a table joins to a query's rows from others of its panel."""
    if not query.is_merged:
        return []
    named = workload_marks(own)
    labels = beside.get(query.panel, {})
    return [(label, why) for label, why in labels.items() if label not in query.shown.hidden and label not in named]


class _Judged:
    """What was found, as it grows."""

    def __init__(self) -> None:
        self.looked: list[Looked] = []
        self.findings: list[Finding] = []
        self.unread: list[Problem] = []
        self.metricsql = 0

    def add(self, parsed: _Parsed, judgement: Judgement) -> None:
        query = parsed.query
        self.metricsql += parsed.dialect is promql.Dialect.METRICSQL and query.role is not Role.VARIABLE
        text, why = _readable(query.text), _readable(judgement.why)
        self.looked.append(Looked(where=query.where, verdict=judgement.verdict, why=why, text=text))
        if judgement.check is not None:
            evidence = (_one_line(text), *(_readable(each) for each in judgement.evidence))
            self.findings.append(Finding(check=judgement.check, where=query.where, message=why, evidence=evidence))

    def unparsed(self, parsed: _Parsed) -> None:
        """A query that could not be parsed: told, unless its place says that it is something else."""
        query = parsed.query
        if language := language_of(query.text):
            self.foreign(replace(query, note=language))
            return
        is_told = query.is_certain or tells_prof(query.text)
        if query.role is Role.MENTION or not is_told:
            if is_told and query.role is Role.MENTION and _is_broken_query(query.text):
                self._broken(query, parsed.reason)
            return
        self._broken(query, parsed.reason)

    def _broken(self, query: Query, reason: str) -> None:
        name = f" ({query.where.name})" if query.where.name else ""
        place = f"{query.where.path}:{query.where.line}{name}" if query.where.line else f"{query.where.path}{name}"
        self.unread.append(Problem(code="not-promql", message=f"not a query that can be read: {reason}", where=place))

    def foreign(self, query: Query) -> None:
        """A query of another kind of data source: kept apart, told where it names a profiling metric."""
        if tells_prof(query.text):
            name = f" ({query.where.name})" if query.where.name else ""
            message = f"a query of {query.note}, which is not judged, names a profiling metric"
            self.unread.append(
                Problem(code="other-language", message=message, where=f"{query.where.path}:{query.where.line}{name}")
            )
        self.looked.append(Looked(where=query.where, verdict=OTHER, why=f"a query of {query.note}", text=query.text))

    def rings(self, rings: Sequence[tuple[str, ...]], queries: Sequence[Query]) -> None:
        """Recording rules that read each other; one that reads only itself carries its own past on, which is sound."""
        first = {query.record: query for query in reversed(queries) if query.record}
        for ring in rings:
            query = first.get(ring[0])
            if len(ring) < 3 or query is None:
                continue
            told = " <- ".join(ring if len(ring) <= 12 else (*ring[:10], "...", ring[-1]))
            message = (
                f"{ring[0]} is recorded from itself by way of {len(ring) - 2} other rules: a ring has no beginning"
            )
            self.findings.append(Finding(check=RULE_CYCLE, where=query.where, message=message, evidence=(told,)))


def _is_broken_query(text: str) -> bool:
    return "(" in text and ")" in text and "\n" not in text.strip() and text.count(",") < 20


def _readable(text: str) -> str:
    """With braces where a template's expression was held by a mark."""
    return _HELD.sub("{{…}}", text) if MARK in text else text


def _one_line(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 400 else f"{line[:399]}…"


def _facts(files: int, judged: _Judged) -> tuple[tuple[str, str], ...]:
    facts = [("files", f"{files:,}"), ("queries", f"{len(judged.looked):,}")]
    if judged.metricsql:
        facts.append(("in MetricsQL", f"{judged.metricsql:,}"))
    return tuple(facts)
