"""``gpuledger audit nodes``: statuses, and both ways to give nodes."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import pytest

LABELS = {"nvidia.com/gpu.product": "NVIDIA-L4", "nvidia.com/gpu.count": "1", "nvidia.com/gpu.replicas": "1"}
NODE = {
    "kind": "Node", "metadata": {"name": "n", "labels": LABELS},
    "status": {"allocatable": {"nvidia.com/gpu": "1"}, "capacity": {"nvidia.com/gpu": "1"}},
}  # fmt: skip


def test_agreeing_and_contradicting_nodes(gpuledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """0, and 1 with what does not add up; from a file, and from kubectl through a pipe."""
    file = tmp_path / "nodes.json"
    file.write_text(json.dumps({"kind": "List", "items": [NODE]}), encoding="utf-8")
    assert gpuledger("audit", "nodes", file).status == 0
    NODE["status"]["allocatable"] = NODE["status"]["capacity"] = {"nvidia.com/gpu": "4"}
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(json.dumps(NODE).encode())))
    done = gpuledger("audit", "nodes", "-")
    assert (done.status, "nodes/label-mismatch" in done.out) == (1, True)


def test_nothing_is_given(gpuledger) -> None:
    """Status 2, with both ways."""
    done = gpuledger("audit", "nodes", "--format", "json")
    assert (done.status, done.error["code"], "--live" in done.error["hint"]) == (2, "nothing-to-audit", True)
