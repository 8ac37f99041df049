"""``audit rates``: the rate cards of a policy against the classes, profiles and pools that exist.

A line that nobody priced is found before the bill is due, and a rate that prices nothing is found at all.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from gpuledger.audit import rate_checks as checks
from gpuledger.audit.documents import Document, documents, objects
from gpuledger.audit.node_others import shown_others
from gpuledger.audit.node_words import template_problem
from gpuledger.audit.rate_stock import Priced, stock
from gpuledger.model.devices import class_name
from gpuledger.model.durations import several
from gpuledger.model.findings import AuditReport, Finding, Looked, Where, Written
from gpuledger.model.missing import Missing
from gpuledger.model.moments import iso
from gpuledger.model.problem import Problem
from gpuledger.model.rates import RateCard, Rates, class_matches

CHECKS = checks.CHECKS

_DEVICES = frozenset({"gpu.reserved", "mig.memory"})


def audit_rates(
    rates: Rates | Missing,
    texts: Sequence[Written],
    *,
    path: str,
    now_us: int,
    pools: Mapping[str, str] | None = None,
    pool_label: str = "",
) -> AuditReport:
    """Judge a policy's rates against nodes.

    Args:
        rates: of the policy; overlapping ones among them.
        texts: Nodes, and ResourceSlices, as ``kubectl get ... -o json`` prints them.
        path: the policy's file, as the user named it.
        now_us: rates that hold at this moment are judged; those to come are only held against what exists.
        pools: pool by host, as the policy has it.
        pool_label: the label of nodes that names their pool, where the policy does not say it.
    """
    read: list[Document] = []
    unread: list[Problem] = []
    for written in texts:
        found, wrong = documents(written)
        read += (document for document in found if not _is_unfilled(document, unread))
        unread += wrong
    exists = stock(read, pools or {}, pool_label)
    judged = _Judgement(rates, exists, path, now_us)
    return AuditReport(
        audit="rates",
        looked=tuple(judged.looked),
        findings=tuple(judged.findings),
        unread=tuple(unread),
        facts=(*judged.facts(), *_others(read)),
        checklist=tuple(dict.fromkeys(finding.advice for finding in judged.findings)),
        checks=CHECKS,
    )


def _is_unfilled(document: Document, unread: list[Problem]) -> bool:
    """Whether a document is a template of Nodes, which is told; else it may be judged."""
    told = [problem for node in objects(document) if node.at("kind").text == "Node"
            for problem in template_problem(document, node)]  # fmt: skip
    unread += told
    return bool(told)


def _others(read: Sequence[Document]) -> Iterator[tuple[str, str]]:
    """Nodes with devices that no class names here, so that nobody takes them for priced."""
    for document in read:
        for node in objects(document):
            if node.at("kind").text == "Node" and (shown := shown_others(node)):
                yield f"not priced on {node.at('metadata', 'name').text}", shown


class _Judgement:
    """The rates held against what exists, and the other way round.

    Args:
        rates: of the policy.
        exists: what can be priced.
        path: the policy's file.
        now_us: the present.
    """

    def __init__(self, rates: Rates | Missing, exists: Sequence[Priced], path: str, now_us: int) -> None:
        self._rates = rates
        self._exists = exists
        self._path = path
        self._now_us = now_us
        self.findings: list[Finding] = []
        self.looked: list[Looked] = []
        if isinstance(rates, Missing):
            self.findings.append(Finding(check=checks.NO_RATES, where=Where(path=path), message="It has no rates."))
            return
        if rates.never:
            return
        if not exists:
            message = "No node or slice with GPUs is in these texts."
            self.findings.append(Finding(check=checks.NOTHING_EXISTS, where=Where(path=path), message=message))
        self.findings += self._overlapping(rates)
        for card in rates.cards:
            self._judge_card(card, rates)
        for one in exists:
            self._judge_line(one, rates)

    def facts(self) -> tuple[tuple[str, str], ...]:
        """What the rates are, and what exists."""
        if isinstance(self._rates, Missing):
            said = self._rates.reason
        elif self._rates.never:
            said = "money: never, so nothing is priced and nothing has to be"
        else:
            held = self._rates.at(self._now_us)
            said = f"{several(len(self._rates.cards), 'card')} in {self._rates.currency}, {len(held)} in force now"
        lines = [(f"exists on {', '.join(one.nodes[:3]) or 'the cluster'}", one.words) for one in self._exists]
        return (("rates", said), *lines)

    def _place(self, card: RateCard) -> Where:
        return Where(path=self._path, line=card.line, name=f"rate {card.words}")

    def _overlapping(self, rates: Rates) -> Iterator[Finding]:
        for first, second in rates.overlaps():
            both = [one.words for one in self._exists if _holds(first, one) and _holds(second, one)]
            meters = first.meter != second.meter
            message = (
                "A slice-hour would be priced by its memory and by its reservation."
                if meters
                else "Two cards can price the same line."
            )
            evidence = (f"line {first.line}: {first.words}", f"line {second.line}: {second.words}", *both[:5])
            yield Finding(check=checks.TWO_RATES, where=self._place(second), message=message, evidence=evidence)

    def _judge_card(self, card: RateCard, rates: Rates) -> None:
        where = self._place(card)
        if card.meter not in _DEVICES:
            why = "nodes do not tell what it prices"
            self.looked.append(Looked(where=where, verdict="not-judged", why=why, text=str(card.rate)))
            return
        if card not in rates.at(self._now_us) and card.effective_from_us <= self._now_us:
            self.looked.append(Looked(where=where, verdict="replaced", why="a later card of the same scope holds now"))
            return
        right = _accounting_class(card.class_pattern)
        if right != card.class_pattern:
            message = f"No class is ever spelled {card.class_pattern}."
            fix = f'Write class: "{right}"' + (
                ", with its pool and replicas." if "SHARED" in card.class_pattern else "."
            )
            meant = [one.words for one in self._exists if class_matches(right, one.class_name)]
            self._strike(
                Finding(check=checks.SPELLING, where=where, message=message, evidence=tuple(meant[:5]), fix=fix)
            )
            return
        held = [one for one in self._exists if _holds(card, one)]
        if not held and (unknown := [one for one in self._exists if _may_hold(card, one)]):
            why = f"it may price {unknown[0].words}"
            self.looked.append(Looked(where=where, verdict="cannot-tell", why=why, text=str(card.rate)))
            return
        if not held and self._exists:
            self._strike(
                Finding(
                    check=checks.MATCHES_NOTHING,
                    where=where,
                    message=self._why_nothing(card),
                    evidence=self._near(card),
                )
            )
            return
        parents = {one.class_name.split("/")[0] for one in held}
        if "/" in card.pattern and len(parents) > 1:
            message = f"One rate prices slices of {len(parents)} products: {', '.join(sorted(parents))}."
            evidence = tuple(one.words for one in held[:5])
            self._strike(Finding(check=checks.ONE_RATE_FOR_PARENTS, where=where, message=message, evidence=evidence))
            return
        if self._exists:
            self.looked.append(Looked(where=where, verdict="fine", text=str(card.rate)))

    def _strike(self, finding: Finding) -> None:
        self.findings.append(finding)
        self.looked.append(Looked(where=finding.where, verdict=finding.check.verdict, why=finding.message))

    def _why_nothing(self, card: RateCard) -> str:
        """The first word of it that meets nothing."""
        pools = sorted({one.pool for one in self._exists if one.pool})
        classes = [one for one in self._exists if class_matches(card.pattern, one.class_name)]
        if not classes:
            return f"No class that exists is {card.pattern}."
        if card.pool and card.pool not in pools:
            return f"No node is in pool {card.pool}; pools that exist: {', '.join(pools) or 'none is named'}."
        if card.replicas is not None and card.replicas not in {one.replicas for one in classes}:
            shares = sorted({one.replicas for one in classes})
            return f"Nothing of it has {card.replicas} replicas; there are {', '.join(map(str, shares))}."
        return "No pool has this class with these replicas."

    def _near(self, card: RateCard) -> tuple[str, ...]:
        del card
        return tuple(f"exists: {one.words}" for one in self._exists[:8])

    def _judge_line(self, one: Priced, rates: Rates) -> None:
        if not one.class_name:
            message = f"The class of {one.product} is UNKNOWN here, so no rate can be found for it."
            self._strike(Finding(check=checks.CLASS_UNKNOWN, where=one.where, message=message))
            return
        cards = [card for card in rates.at(self._now_us) if _holds(card, one)]
        if not cards:
            later = [card for card in rates.cards if _holds(card, one) and card.effective_from_us > self._now_us]
            said = f"; the first holds from {iso(min(card.effective_from_us for card in later))}" if later else ""
            message = f"{one.words} has no rate{said}."
            evidence = tuple(self._almost(one, rates))
            self._strike(Finding(check=checks.NO_RATE, where=one.where, message=message, evidence=evidence))
        elif len(cards) > 1:
            self.looked.append(Looked(where=one.where, verdict="two-rates", text=one.words))
        else:
            self.looked.append(Looked(where=one.where, verdict="fine", why=cards[0].words, text=one.words))

    def _almost(self, one: Priced, rates: Rates) -> Iterator[str]:
        """Cards of its class that miss it, and by what."""
        yield f"product label {one.product}, on {', '.join(one.nodes[:5]) or 'the cluster'}"
        for card in rates.cards:
            right = _accounting_class(card.class_pattern) or card.pattern
            if card.meter in _DEVICES and class_matches(right, one.class_name) and not _holds(card, one):
                misses = [
                    f"pool {card.pool}" if card.pool not in ("", one.pool) else "",
                    f"replicas {card.replicas}" if card.replicas not in (None, one.replicas) else "",
                    f"its spelling {card.class_pattern}" if right != card.pattern else "",
                ]
                yield f"line {card.line} misses it by {' and '.join(word for word in misses if word)}"


def _holds(card: RateCard, one: Priced) -> bool:
    return bool(one.class_name) and card.holds_for(one.class_name, pool=one.pool, replicas=one.replicas)


def _may_hold(card: RateCard, one: Priced) -> bool:
    """Whether a card prices something whose class no label tells, if its class is the one meant."""
    return not one.class_name and card.pool in ("", one.pool) and card.replicas in (None, one.replicas)


def _accounting_class(pattern: str) -> str:
    """A class pattern as accounting would spell it: of a product label, of the driver's name, of a resource."""
    if not pattern or pattern.startswith("nvidia.com/"):
        return (
            "*"
            if pattern.startswith("nvidia.com/gpu")
            else f"*/{pattern.removeprefix('nvidia.com/mig-')}"
            if pattern
            else ""
        )
    whole, _, profile = pattern.partition("/")
    parent, _, labelled = whole.removesuffix("-SHARED").partition("-MIG-")
    spelled = "*" if parent.strip("*") == "" else class_name(parent)
    return f"{spelled}/{(labelled or profile).removesuffix('-SHARED')}" if labelled or profile else spelled
