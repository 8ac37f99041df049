"""``audit nodes``: labels, offered resources and sharing configs that must agree before a share can be billed.

Text in, findings out: Nodes as ``kubectl get nodes -o json`` prints them, with configs of the device plugin, pods and
resource slices beside them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from dataclasses import replace

from gpuledger.audit import node_checks as checks
from gpuledger.audit.documents import Document, documents, objects
from gpuledger.audit.kustomize import built
from gpuledger.audit.node_configs import (
    Sharing,
    judge_pods,
    judge_sharing,
    running_exporters,
    sharings,
    sliced,
    slices_by_node,
)
from gpuledger.audit.node_others import is_other, other_devices, shown_others, to_machines
from gpuledger.audit.node_pools import judge_configs, judge_pools, judge_spellings, judge_twice
from gpuledger.audit.node_words import (
    CLOUD_PRODUCTS,
    DOMAIN,
    GpuNode,
    Offer,
    class_of,
    described,
    gpu_node,
    template_problem,
)
from gpuledger.audit.versions import FOLLOWS_SLICES
from gpuledger.model.durations import several
from gpuledger.model.findings import AuditCheck, AuditReport, Finding, Looked, Where, Written
from gpuledger.model.problem import Problem

CHECKS = checks.CHECKS

_NO_NODES = Problem(
    code="no-nodes", message="no Node is in these texts: kubectl get nodes -o json | gpuledger audit nodes -"
)


def audit_nodes(texts: Sequence[Written], *, pool_label: str = "") -> AuditReport:
    """Judge the nodes of the texts together with the configs, pods and slices that stand beside them.

    Args:
        texts: Nodes, and whatever belongs to them.
        pool_label: the label of nodes that names their pool, before the known ones; may be empty.
    """
    read: list[Document] = []
    unread: list[Problem] = []
    for written in texts:
        found, wrong = documents(written)
        read += found
        unread += wrong
    made = built(read, audit="nodes")
    read, unread = list(made.documents), [*unread, *made.unread]
    nodes: list[GpuNode] = []
    looked: list[Looked] = []
    without = others = 0
    for document in read:
        for node in objects(document):
            if node.at("kind").text != "Node":
                unread += described(document, node)
                continue
            if unfilled := template_problem(document, node):
                unread += unfilled
                continue
            known = gpu_node(document, node, pool_label)
            without += known is None and not is_other(node)
            others += known is None and is_other(node)
            nodes += [known] if known is not None else []
    shared = [sharing for document in read for sharing in sharings(document)]
    slices = slices_by_node(read)
    findings = [
        *(finding for node in nodes for finding in _judge_node(node, by_claims=node.name in slices)),
        *other_devices(read),
        *judge_pools(nodes),
        *judge_spellings(nodes),
        *judge_configs(nodes, shared),
        *judge_twice(nodes),
        *(finding for sharing in shared for finding in judge_sharing(sharing)),
        *(finding for document in read for finding in judge_pods(document, _shared_nodes(nodes))),
        *_judge_slices(read, nodes),
    ]
    findings = list({(each.check.id, each.where, each.message, each.evidence): each for each in findings}.values())
    findings.sort(key=lambda finding: (_order(texts, finding.where.path), finding.where.line))
    struck: dict[tuple[str, str], str] = {}
    for finding in findings:
        struck.setdefault((finding.where.path, finding.where.name), finding.check.verdict)
    for gpu in nodes:
        silent = not gpu.allocatable.is_there
        verdict = struck.get((gpu.where.path, gpu.where.name), "cannot-tell" if silent else "fine")
        why = "the text has no status of it: what it offers is UNKNOWN" if silent else ""
        looked.append(Looked(where=gpu.where, verdict=verdict, why=why, text=_shown(gpu)))
    for sharing in shared:
        verdict = struck.get((sharing.where.path, sharing.where.name), "fine")
        looked.append(Looked(where=sharing.where, verdict=verdict, text=f"{sharing.resource} x {sharing.replicas}"))
    looked += [
        Looked(where=where, verdict=struck.get((where.path, where.name), verdict), why=why, text=text)
        for where, verdict, why, text in _beside(read, {gpu.name for gpu in nodes})
    ]
    return AuditReport(
        audit="nodes",
        looked=tuple(looked),
        findings=tuple(findings),
        unread=tuple(unread),
        notes=() if looked or without or unread else (_NO_NODES,),
        facts=_facts(read, nodes, shared, without, others, _exporter_fact(read, nodes)),
        checklist=tuple(dict.fromkeys(finding.advice for finding in findings)),
        checks=CHECKS,
    )


def _order(texts: Sequence[Written], path: str) -> int:
    return next((place for place, written in enumerate(texts) if written.path == path), len(texts))


def _product(node: GpuNode) -> str:
    """What its devices are, by the label, else by the register of who gives out their parts."""
    told = node.parts.products if node.parts else ()
    return node.label("gpu.product") or (told[0] if len(told) == 1 else "")


def _shown(node: GpuNode) -> str:
    return ", ".join(
        f"{offer.offered} x {class_of(offer, _product(node))}"
        + (" (parts)" if node.parts else f" (1/{offer.shares} each)" if offer.shares > 1 else "")
        for offer in node.offers
        if offer.offered or offer.count
    )


def _beside(read: Sequence[Document], known: Set[str]) -> Iterator[tuple[Where, str, str, str]]:
    """What else was looked at, with a word for what no rule struck: pods, claims, slices, nodes of other devices."""
    for document in read:
        for node in objects(document):
            kind, name = node.at("kind").text, node.at("metadata", "name")
            where = Where(path=document.path, line=name.line or node.line, name=f"{kind} {document.shown(name.text)}")
            driver = node.at("spec", "driver").text
            if kind == "ResourceSlice" and driver != "gpu.nvidia.com":
                yield where, "not-judged", f"{driver} is not NVIDIA's driver of GPUs", ""
            elif kind == "ResourceSlice":
                yield where, "fine", "", ", ".join(f"{many} x {name}" for name, many in sorted(sliced(node).items()))
            elif kind in ("Pod", "ResourceClaim", "ResourceClaimTemplate"):
                yield where, "fine", "", ""
            elif kind == "Node" and name.text not in known and is_other(node):
                yield replace(where, name=f"node {name.text}"), "other-devices", "", shown_others(node)


def _exporter_fact(read: Sequence[Document], nodes: Sequence[GpuNode]) -> list[tuple[str, str]]:
    """That nothing tells of the exporter, where there are slices that it must follow."""
    if not slices_by_node(read) or any(node.exporters for node in nodes) or any(running_exporters(read)):
        return []
    return [("exporter beside the resource slices", "not in these texts; give its DaemonSet with --configs")]


def _facts(
    read: Sequence[Document],
    nodes: Sequence[GpuNode],
    shared: Sequence[Sharing],
    without: int,
    others: int,
    more: list[tuple[str, str]],
) -> tuple[tuple[str, str], ...]:
    facts = [("nodes with GPUs", str(len(nodes))), *more]
    if others:
        facts.append(("nodes with other devices alone", str(others)))
    if without:
        facts.append(("nodes without", str(without)))
    if shared:
        facts.append(("sharing configs", str(len({(each.where.path, each.where.name) for each in shared}))))
    classes: dict[str, int] = {}
    for node in nodes:
        for offer in node.offers:
            name = class_of(offer, _product(node))
            name = f"UNKNOWN class (nvidia.com/{offer.key})" if name.startswith("unknown") else name
            name = f"parts of {name}" if node.parts else name
            if offer.offered:
                classes[name] = classes.get(name, 0) + offer.offered
    facts += [(f"offered of {name}", str(number)) for name, number in sorted(classes.items())]
    in_slices: dict[str, int] = {}
    for document in read:
        for each in objects(document):
            for name, number in sliced(each).items():
                in_slices[name] = in_slices.get(name, 0) + number
    facts += [(f"in resource slices of {name}", str(number)) for name, number in sorted(in_slices.items())]
    return tuple(facts)


def _strike(check: AuditCheck, where: Where, message: str, *evidence: str) -> Finding:
    return Finding(check=check, where=where, message=message, evidence=evidence)


def _judge_node(node: GpuNode, *, by_claims: bool) -> Iterator[Finding]:
    """One node by itself; where devices come by resource claims, the kubelet offers none."""
    if node.ready is False:
        yield _strike(checks.NOT_READY, node.where, "The kubelet is not ready: what it offers is what it last knew.")
    state = node.label("mig.config.state")
    if state not in ("", "success"):
        line = node.labels[f"{DOMAIN}mig.config.state"][1]
        message = (
            f"The MIG manager says {state}, so the slices are not those of {node.label('mig.config') or 'its config'}."
        )
        yield _strike(checks.MIG_UNSETTLED, node.at(line), message)
    for offer in node.offers:
        for key, said, line in offer.unread:
            message = f"{key} is {said or 'empty'}, which is no whole number: what a share is here is UNKNOWN."
            yield _strike(checks.UNREADABLE, node.at(line), message)
        if offer.alias:
            message = f"Its GPUs are offered as {offer.offered} x {offer.alias}."
            yield _strike(checks.GIVEN_NAME, node.at(offer.offered_line), message)
    if node.parts is not None or not node.allocatable.is_there:
        return  # told by itself: labels know nothing of parts
    if any(offer.offered for offer in node.offers) and not node.label("gpu.product"):
        message = "It offers GPUs, and no label of gpu-feature-discovery says which: their class is UNKNOWN."
        clouds = [f"{key}: {node.labels[key][0]}" for key in CLOUD_PRODUCTS if key in node.labels]
        yield _strike(checks.UNLABELLED, node.where, message, *clouds[:2])
    elif not node.offers or not any(offer.offered or offer.capacity or offer.unread for offer in node.offers):
        if not by_claims and not any(to_machines(node.allocatable)):
            message = "Its labels speak of GPUs, and the kubelet offers none."
            yield _strike(checks.DEVICES_MISSING, node.where, message)
        return
    for offer in node.offers:
        yield from _judge_count(node, offer)
        yield from _judge_marks(node, offer)


def _judge_count(node: GpuNode, offer: Offer) -> Iterator[Finding]:
    """Devices times replicas against what is offered."""
    name = f"{DOMAIN}{offer.key}"
    if offer.unread:
        return
    said = f"{name}.count {_number(offer.count)}, .replicas {_number(offer.replicas)}; offered {offer.offered}"
    held = f"; capacity {offer.capacity}"
    where = node.at(offer.offered_line)
    if offer.capacity > offer.offered:
        message = f"Of {offer.capacity} x {name} the kubelet gives out {offer.offered}: the rest is unhealthy or stale."
        yield _strike(checks.DEVICES_MISSING, where, message, said + held)
        return
    if offer.count is None:
        if offer.key != "gpu" and offer.offered and node.label("gpu.product"):
            message = f"It offers {name}, and no label counts these slices."
            yield _strike(checks.LABEL_MISMATCH, where, message, said)
        return
    cut = offer.key == "gpu" and any(other.key != "gpu" for other in node.offers)
    expected = offer.count * (1 if offer.replicas is None else offer.replicas)
    if (
        offer.offered == expected
        or (cut and offer.offered < expected)
        or (cut and not offer.replicas and not offer.offered)
    ):
        return
    if offer.offered > expected and offer.offered % max(offer.count, 1) == 0 and offer.count:
        times = offer.offered // offer.count
        message = f"Each device is offered {several(times, 'time')}, and the labels know of {_number(offer.replicas)}."
    else:
        message = f"By the labels there are {expected}, and {offer.offered} are offered."
    yield _strike(checks.LABEL_MISMATCH, where, message, said)


def _number(value: int | None) -> str:
    return "not set" if value is None else str(value)


def _judge_marks(node: GpuNode, offer: Offer) -> Iterator[Finding]:
    """Whether label, resource and replicas tell the same."""
    where = node.at(offer.line)
    said = f"product {offer.product or 'not set'}, replicas {_number(offer.replicas)}, offered as " + (
        f"{DOMAIN}{offer.key}.shared" if offer.renamed else f"{DOMAIN}{offer.key}"
    )
    shared = offer.shares > 1
    if offer.unread:
        return
    if shared and offer.is_slice:
        check = checks.MPS_WITH_MIG if node.sharing == "mps" else checks.MIG_TIME_SLICED
        message = f"{offer.shares} pods share each slice; their memory is one, and no figure tells them apart."
        yield _strike(check, where, message, said)
    if offer.marked and offer.renamed:
        message = "The product says -SHARED and the resource .shared; a device plugin does one of them."
        yield _strike(checks.CONTRADICTION, where, message, said)
    elif offer.marked and not shared and offer.replicas is not None:
        message = "The product says -SHARED, and there is one replica of each device."
        yield _strike(checks.CONTRADICTION, where, message, said)
    elif (offer.replicas or 0) > 1 and offer.product and not offer.marked and not offer.renamed:
        message = "It is shared, and neither product nor resource says so: a replica looks like a whole device."
        yield _strike(checks.CONTRADICTION, where, message, said)
    elif offer.renamed and offer.product and not offer.marked:
        message = (
            "The resource is renamed and the product is not: a rate keyed on the product bills a replica as a whole."
        )
        yield _strike(checks.UNMARKED, where, message, said)
    if offer.plain and offer.shared:
        message = "It offers the plain and the shared name at once, and the labels tell one of them."
        yield _strike(checks.CONTRADICTION, where, message, f"{offer.plain} plain, {offer.shared} shared")


def _shared_nodes(nodes: Sequence[GpuNode]) -> dict[str, set[str]]:
    return {
        node.name: {f"{DOMAIN}{offer.key}" for offer in node.offers if offer.shares > 1 and not offer.renamed}
        for node in nodes
        if node.parts is None
    }


def _judge_slices(read: Sequence[Document], nodes: Sequence[GpuNode]) -> Iterator[Finding]:
    """Exporters older than today's slices, where slices are."""
    slices = slices_by_node(read)
    if not slices:
        return
    told: set[str] = set()
    for where, version, image, on in running_exporters(read):
        if version is not None and version < FOLLOWS_SLICES and (not on or on in slices):
            told.add(on)
            slice_at, api = slices.get(on) or next(iter(slices.values()))
            yield _too_old(where, image, slice_at, api)
    for node in nodes:
        if (
            node.name in slices
            and not told & {node.name, ""}
            and node.exporters
            and node.exporters[-1] < FOLLOWS_SLICES
        ):
            slice_at, api = slices[node.name]
            newest = ".".join(map(str, node.exporters[-1]))
            yield _too_old(node.where, f"the newest image of the exporter on the node is of {newest}", slice_at, api)


def _too_old(where: Where, image: str, slice_at: Where, api: str) -> Finding:
    message = "It remembers devices of slices and forgets them when slices are replaced, so pods lose their labels."
    return _strike(checks.DRA_EXPORTER, where, message, image, f"{api} at {slice_at.path}:{slice_at.line}")
