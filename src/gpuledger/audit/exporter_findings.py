"""Every rule of ``audit exporter`` over one text, bounded and in order."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from gpuledger.audit import exporter_checks as checks
from gpuledger.audit.exporter_naming import NAMING
from gpuledger.audit.exporter_scrape import Scrape
from gpuledger.audit.exporter_sharing import SHARING
from gpuledger.audit.exporter_words import MEANINGS, OTHER_EXPORTERS
from gpuledger.model.durations import several
from gpuledger.model.findings import Finding

MOST_OF_ONE = 20
"""Findings of one rule told one by one; a scrape of a whole cluster would give thousands alike. The rest is counted."""

Rule = Callable[[Scrape], Iterator[Finding]]


def findings_of(scrape: Scrape, *, others: Sequence[Finding] = ()) -> tuple[Finding, ...]:
    """Where every rule strikes, in the order of the rules, and within a rule of the text.

    Args:
        scrape: the text.
        others: what comparing it with pods or a later scrape found.
    """
    found = [*others, *(finding for rule in RULES for finding in rule(scrape))]
    told: list[Finding] = []
    for check in checks.CHECKS:
        alike = [finding for finding in found if finding.check.id == check.id]
        told += _bounded(sorted(alike, key=lambda finding: (finding.where.line, finding.where.name)), scrape)
    return tuple(told)


def _bounded(alike: Sequence[Finding], scrape: Scrape) -> Iterator[Finding]:
    yield from alike[:MOST_OF_ONE]
    rest = alike[MOST_OF_ONE:]
    if rest:
        named = sorted({finding.where.name for finding in rest})
        message = f"{several(len(rest), 'more place')} of this rule: {', '.join(named[:3])} and so on"
        yield Finding(check=rest[0].check, where=scrape.where("more places", rest[0].where.line), message=message)


def _nothing(scrape: Scrape) -> Iterator[Finding]:
    if scrape.rows.samples or scrape.exposition.holders:
        return
    owners = {owner_of(name) for name in {sample.name for sample in scrape.rows.others}} - {"", "node_exporter"}
    if owners:
        message = f"the figures are those of {', '.join(sorted(owners))}; these rules know dcgm-exporter's"
        evidence = tuple(f"{owner}: {MEANINGS[owner]}" for owner in sorted(owners) if owner in MEANINGS)
        where = scrape.where("exporter")
        yield Finding(check=checks.OTHER_EXPORTER, where=where, message=message, evidence=evidence)
        return
    names = sorted({sample.name for sample in scrape.rows.others})
    seen = f"{several(len(names), 'metric')} such as {names[0]}" if names else "no sample at all"
    message = f"no figure of a GPU: {seen}"
    yield Finding(check=checks.NOTHING, where=scrape.where("exporter"), message=message)


def owner_of(name: str) -> str:
    """Which exporter a metric is of; empty where its name does not say."""
    return next((owner for start, owner in OTHER_EXPORTERS if name.startswith(start)), "")


RULES: tuple[Rule, ...] = (_nothing, *SHARING, *NAMING)
"""Every rule over one text; those that compare it with pods or a later scrape stand in their own modules."""
