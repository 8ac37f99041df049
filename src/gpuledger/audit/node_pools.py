"""Nodes of ``audit nodes`` beside each other: replicas in a pool, spellings of a class, configs, nodes seen twice."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gpuledger.audit import node_checks as checks
from gpuledger.audit.node_configs import Sharing
from gpuledger.audit.node_words import GpuNode, Offer, class_of, product_parts
from gpuledger.model.durations import several
from gpuledger.model.findings import AuditCheck, Finding, Where


def _strike(check: AuditCheck, where: Where, message: str, *evidence: str) -> Finding:
    return Finding(check=check, where=where, message=message, evidence=evidence)


def judge_pools(nodes: Sequence[GpuNode]) -> Iterator[Finding]:
    """Replicas inside a pool, by kind; without pool labels, all shared devices of a class are one."""
    pools: dict[tuple[str, str], dict[int, list[tuple[GpuNode, Offer]]]] = {}
    for node in nodes:
        for offer in node.offers if node.parts is None else ():
            if offer.unread or (not offer.offered and not (offer.count and offer.replicas)):
                continue
            kind = offer.key if offer.key != "gpu" or not offer.is_slice else "mig"
            alone = f"class {_parent(node, offer)}, {'shared' if offer.shares > 1 else 'whole'}"
            pool = (f"pool {node.pool}" if node.pool else alone, kind)
            pools.setdefault(pool, {}).setdefault(offer.shares, []).append((node, offer))
    for (name, kind), by_shares in pools.items():
        if len(by_shares) < 2:
            continue
        said = tuple(
            f"{shares} on {', '.join(sorted({node.name for node, _ in members})[:5])}"
            for shares, members in sorted(by_shares.items())
        )
        usual = max(by_shares, key=lambda shares: (len(by_shares[shares]), shares))
        for shares, members in by_shares.items():
            for node, offer in members if shares != usual else ():
                what = f"{name}: {several(shares, 'replica')} of {kind} here, {usual} on most of its nodes"
                yield _strike(
                    checks.MIXED_REPLICAS, node.at(offer.line), f"A replica is no fixed share in {what}.", *said
                )


def _parent(node: GpuNode, offer: Offer) -> str:
    return product_parts(offer.product or node.label("gpu.product"))[0] or "UNKNOWN"


def judge_spellings(nodes: Sequence[GpuNode]) -> Iterator[Finding]:
    """One class spelled two ways, on different nodes."""
    ways: dict[str, dict[str, list[tuple[GpuNode, Offer]]]] = {}
    for node in nodes:
        for offer in node.offers:
            if offer.product and offer.shares > 1 and (offer.marked or offer.renamed):
                way = "-SHARED in the product" if offer.marked else ".shared in the resource"
                ways.setdefault(class_of(offer, ""), {}).setdefault(way, []).append((node, offer))
    for name, spelled in ways.items():
        if len(spelled) > 1:
            said = tuple(
                f"{way}: {', '.join(sorted({n.name for n, _ in found})[:5])}" for way, found in spelled.items()
            )
            rarer = min(spelled, key=lambda way: len(spelled[way]))
            node, offer = spelled[rarer][0]
            message = f"Shared devices of {name} are spelled in two ways; a rate for one does not meet the other."
            yield _strike(checks.SPELLING, node.at(offer.line), message, *said)


def judge_configs(nodes: Sequence[GpuNode], shared: Sequence[Sharing]) -> Iterator[Finding]:
    """Replicas of the config that a node's label names."""
    for node in nodes:
        wanted = node.label("device-plugin.config")
        for sharing in shared:
            if not wanted or sharing.config != wanted or sharing.replicas is None:
                continue
            offer = next((each for each in node.offers if each.key == sharing.key), None)
            if offer is not None and (offer.offered or offer.count) and offer.shares != sharing.replicas:
                message = f"Its config {wanted} gives {sharing.replicas} replicas, and it has {offer.shares}."
                yield _strike(checks.CONFIG_NOT_APPLIED, node.at(offer.line), message, str(sharing.where))


def judge_twice(nodes: Sequence[GpuNode]) -> Iterator[Finding]:
    """A node that stands more than once: its devices would be counted as often."""
    first: dict[str, GpuNode] = {}
    for node in nodes:
        if node.name in first:
            message = f"The node stands at {first[node.name].where.path}:{first[node.name].where.line} too."
            yield _strike(checks.TWICE, node.where, message)
        first.setdefault(node.name, node)
