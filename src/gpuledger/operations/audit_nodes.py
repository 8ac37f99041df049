"""``audit nodes``: read files or ask a cluster, judge, lay waivers over it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from gpuledger.audit.nodes import audit_nodes
from gpuledger.errors import Misconfigured
from gpuledger.model.findings import AuditReport, Written
from gpuledger.model.problem import Problem
from gpuledger.operations.audit_files import gather, judged, waivers_of
from gpuledger.sources import kubernetes_nodes

SUFFIXES = (".yaml", ".yml", ".json")
"""Files of a folder that can hold objects of Kubernetes."""


def nodes(
    paths: Sequence[Path],
    *,
    configs: Sequence[Path],
    live: bool,
    context: str,
    pool_label: str,
    waivers: Path | None,
    now_us: int,
) -> AuditReport:
    """Judge nodes with what stands beside them.

    Args:
        paths: what ``kubectl get nodes -o json`` printed; folders; ``-`` for stdin.
        configs: sharing configs, pods, slices, workloads.
        live: ask the cluster for all of these.
        context: of the kubeconfig; empty for the current one.
        pool_label: the label that names pools.
        waivers: a file of waivers.
        now_us: the present.

    Raises:
        Misconfigured: ``nothing-to-audit`` with neither files nor ``--live``.
        BadInput: a path that is not there, or a waiver that lacks something.
        Unavailable: ``missing-extra``, ``cluster-unreachable`` or ``cluster-refused``.
    """
    given = waivers_of(waivers)
    if not paths and not live:
        hint = "kubectl get nodes -o json | gpuledger audit nodes -, or gpuledger audit nodes --live"
        raise Misconfigured("nothing-to-audit", "neither files nor a cluster is given", hint=hint)
    texts, unread = gather([*paths, *configs], suffixes=SUFFIXES)
    asked: tuple[Written, ...] = ()
    missed: tuple[Problem, ...] = ()
    if live:
        asked, missed = kubernetes_nodes.read(context=context)
    report = audit_nodes((*asked, *texts), pool_label=pool_label)
    return judged(report, texts=texts, waivers=given, unread=(*missed, *unread), now_us=now_us)
