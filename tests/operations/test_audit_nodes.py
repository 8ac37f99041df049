"""Nodes of files or of a cluster, with what stands beside them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gpuledger.errors import Misconfigured
from gpuledger.model.findings import Written
from gpuledger.model.problem import Problem
from gpuledger.operations import audit_nodes

NODE = {"kind": "Node", "metadata": {"name": "n"}, "status": {"allocatable": {"nvidia.com/gpu": "1"}}}
WORDS = {"configs": (), "live": False, "context": "", "pool_label": "", "waivers": None, "now_us": 0}


def test_files_and_configs(tmp_path: Path) -> None:
    """Both are read; a config is judged with the nodes."""
    nodes, config = tmp_path / "nodes.json", tmp_path / "config.yaml"
    nodes.write_text(json.dumps(NODE), encoding="utf-8")
    config.write_text("sharing: {timeSlicing: {resources: [{name: nvidia.com/gpu, replicas: 4}]}}", encoding="utf-8")
    report = audit_nodes.nodes([nodes], **WORDS | {"configs": (config,)})
    assert [finding.check.verdict for finding in report.findings] == ["many-replicas-allowed", "unlabelled"][::-1]


def test_a_live_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its lists are texts like others, and what it refuses is unread."""
    answer = (Written(path="cluster:nodes", text=json.dumps(NODE)),), (Problem(code="cluster-refused", message="403"),)
    monkeypatch.setattr(audit_nodes.kubernetes_nodes, "read", lambda *, context: answer)
    report = audit_nodes.nodes([], **WORDS | {"live": True})
    assert [(finding.check.verdict, finding.where.path) for finding in report.findings] == [
        ("unlabelled", "cluster:nodes")
    ]
    assert [problem.code for problem in report.unread] == ["cluster-refused"]


def test_nothing_is_given() -> None:
    """Neither files nor a cluster: refused, with both ways."""
    with pytest.raises(Misconfigured, match="neither files nor a cluster"):
        audit_nodes.nodes([], **WORDS)
