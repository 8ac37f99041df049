"""Rates of a policy file against nodes of files."""

from __future__ import annotations

import io
from pathlib import Path
from types import SimpleNamespace

import pytest

from gpuledger.model.moments import parse_moment
from gpuledger.operations.audit_rates import rates

NOW = parse_moment("2026-11-29", now_us=0)
NODE = (
    'kind: Node\nmetadata: {name: lab-3, labels: {nvidia.com/gpu.product: NVIDIA-L4, nvidia.com/gpu.count: "1"}}\n'
    'status: {allocatable: {nvidia.com/gpu: "1"}, capacity: {nvidia.com/gpu: "1"}}\n'
)
POLICY = """\
owners: {hosts: {lab-3: {owner: x, pool: shared}}}
rates:
  currency: EUR
  cards:
    - {meter: gpu.reserved, pool: shared, rate: "1", unit: device-hour}
    # gpuledger: waive rates/two-rates reason="renamed next month" owner=ana until=2027-01-31
    - {meter: gpu.reserved, class: L4, rate: "1", unit: device-hour}
"""


def test_pools_of_hosts_and_waivers_of_comments(tmp_path: Path) -> None:
    """The policy's own pools count, overlapping cards are told rather than refused, and a comment waives its card."""
    policy, nodes = tmp_path / "policy.yaml", tmp_path / "nodes.yaml"
    policy.write_text(POLICY, encoding="utf-8")
    nodes.write_text(NODE, encoding="utf-8")
    report = rates(policy, [nodes], pool_label="", waivers=None, now_us=NOW)
    assert [(finding.check.verdict, finding.stands) for finding in report.findings] == [("two-rates", False)]
    assert not report.found(strict=True)


def test_the_policy_may_come_on_stdin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As that of a template, or of a branch: `git show main:policy.yaml | gpuledger audit rates - nodes.json`."""
    nodes = tmp_path / "nodes.yaml"
    nodes.write_text(NODE, encoding="utf-8")
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(POLICY.encode())))
    report = rates(Path("-"), [nodes], pool_label="", waivers=None, now_us=NOW)
    assert [finding.where.path for finding in report.findings] == ["-"]
