"""``audit exporter``: what an endpoint of GPU figures really emits, and which of its numbers cannot be defended.

In: what the endpoint answered or a file holds; perhaps a second scrape of it, and the cluster's pods. Out: a report.
Judged by the figures and rows that are there; versions are hints beside it.
"""

from __future__ import annotations

from dataclasses import replace

from gpuledger.audit.exporter_advice import checklist_of
from gpuledger.audit.exporter_checks import CHECKS, CUT
from gpuledger.audit.exporter_findings import findings_of
from gpuledger.audit.exporter_later import judged_together, moved_between, stuck
from gpuledger.audit.exporter_pods import compare_pods, parse_pods
from gpuledger.audit.exporter_rows import lay_out
from gpuledger.audit.exporter_scope import judge
from gpuledger.audit.exporter_scrape import Scrape
from gpuledger.audit.exporter_told import facts_of, looked_at, version_finding
from gpuledger.audit.exposition import read_exposition
from gpuledger.model.durations import count, several
from gpuledger.model.findings import AuditReport, Finding, Written
from gpuledger.model.problem import Problem

ANSWER_CUT = "answer-cut"
"""The code of a problem with which an answer is handed over that stopped before its end."""


def audit_exporter(
    scraped: Written,
    *,
    later: Written | None = None,
    seconds: int = 0,
    pods: Written | None = None,
    unread: tuple[Problem, ...] = (),
) -> AuditReport:
    """What one endpoint emits.

    Args:
        scraped: its text, with the file or address it came from.
        later: a second scrape of the same endpoint.
        seconds: between the two.
        pods: what ``kubectl get pods -A -o json`` printed, to tell rows of ended pods and pods without a row.
        unread: what was not read on the way here: bytes that are no text, an answer that was cut.

    Raises:
        BadInput: ``pods-not-json`` or ``pods-not-list``; everything else that is wrong with a text is in the report.
    """
    scrape = _made_of(scraped)
    others: list[Finding] = []
    notes: list[Problem] = list(scrape.exposition.notes)
    facts = []
    if later is not None:
        second = _made_of(later)
        moved = moved_between(scrape, second)
        others += stuck(scrape, second, moved, seconds)
        energy = f", {moved.energy[0]} of {moved.energy[1]} counters of energy" if moved.energy[1] else ""
        facts.append(("moved between the scrapes", f"{count(moved.moved)} of {several(moved.both, 'figure')}{energy}"))
        if moved.gone or moved.new:
            facts.append(("series that came or went", f"{count(moved.new)} came, {count(moved.gone)} went"))
        together = judged_together(scrape.judgement, second.judgement)
        scrape = replace(scrape, judgement=together)
    if pods is not None:
        compared, problems = compare_pods(scrape, parse_pods(pods))
        others += compared
        notes += problems
    others += version_finding(scrape)
    others += _cut(scrape, unread)
    findings = findings_of(scrape, others=others)
    return AuditReport(
        audit="exporter",
        looked=looked_at(scrape),
        findings=findings,
        unread=(*unread, *scrape.exposition.unread),
        notes=tuple(notes),
        facts=(*facts_of(scrape), *facts),
        checklist=checklist_of(scrape, findings),
        checks=CHECKS,
    )


def _cut(scrape: Scrape, unread: tuple[Problem, ...]) -> list[Finding]:
    """An answer that stopped before its end, told by who fetched it."""
    return [
        Finding(check=CUT, where=scrape.where("answer"), message=problem.message)
        for problem in unread
        if problem.code == ANSWER_CUT
    ]


def _made_of(written: Written) -> Scrape:
    exposition = read_exposition(written.text, path=written.path)
    rows = lay_out(exposition)
    return Scrape(path=written.path, exposition=exposition, rows=rows, judgement=judge(rows, exposition.holders))
