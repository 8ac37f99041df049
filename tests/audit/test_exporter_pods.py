"""Pods on rows against the cluster's list."""

from __future__ import annotations

import json

import pytest

from exporter_texts import UUID, Exporter
from gpuledger.audit.exporter import audit_exporter
from gpuledger.audit.exporter_pods import parse_pods
from gpuledger.audit.exporter_rows import Pod
from gpuledger.errors import BadInput
from gpuledger.model.findings import AuditReport, Written


def pod(name: str, *, node: str = "node-1", phase: str = "Running", **limits: str) -> dict[str, object]:
    namespace, _, short = name.rpartition("/")
    asked = {f"nvidia.com/{key.replace('_', '.')}": value for key, value in limits.items()}
    return {
        "kind": "Pod",
        "metadata": {"namespace": namespace, "name": short},
        "spec": {"nodeName": node, "containers": [{"resources": {"limits": {**asked, "cpu": "2"}}}]},
        "status": {"phase": phase},
    }


def listing(*pods: dict[str, object]) -> Written:
    return Written(path="pods.json", text=json.dumps({"kind": "List", "items": list(pods)}))


def audit(exporter: Exporter, *pods: dict[str, object]) -> AuditReport:
    return audit_exporter(Written(path="scrape", text=exporter.text()), pods=listing(*pods))


def told(report: AuditReport, rule: str) -> list[str]:
    return [finding.message for finding in report.findings if finding.check.id == f"exporter/{rule}"]


SCRAPE = Exporter().pod("a/train", util=5)


def test_a_pod_that_is_gone_or_has_ended() -> None:
    """The kubelet lists it still, so the exporter names it still."""
    assert told(audit(SCRAPE, pod("a/other", gpu="1")), "stale-pod") == [
        "a/train is on rows of this scrape, and the cluster has no such pod"
    ]
    ended = audit(SCRAPE, pod("a/train", phase="Succeeded", gpu="1"))
    assert told(ended, "stale-pod") == ["a/train is on rows of this scrape, and has ended (Succeeded)"]
    place = next(each.where for each in ended.findings if each.check.id == "exporter/stale-pod")
    assert (place.name, place.line) == (f"{UUID} a/train", 3)
    assert not told(audit(SCRAPE, pod("a/train", gpu="1")), "stale-pod")


def test_a_list_of_another_namespace_calls_nobody_gone() -> None:
    """`kubectl get pods` without -A has one namespace."""
    report = audit(SCRAPE, pod("b/x", gpu="1"))
    assert not told(report, "stale-pod")
    assert [note.code for note in report.notes] == ["namespace-not-listed"]


def test_running_pods_without_a_row() -> None:
    """On this node only, with whatever resource; pods that wait or ask for none are not missed."""
    report = audit(
        SCRAPE,
        pod("a/train", gpu="1"),
        pod("a/hidden", gpu_shared="2"),
        pod("a/elsewhere", node="node-2", gpu="1"),
        pod("a/plain"),
        pod("a/waiting", node="", phase="Pending", gpu="1"),
    )
    assert told(report, "missing-pod") == ["a/hidden runs on node-1 with 2 of nvidia.com/*, and stands on no row"]
    assert "Set KUBERNETES_VIRTUAL_GPUS=true (--kubernetes-virtual-gpus) beside DCGM_EXPORTER_KUBERNETES=true." in (
        report.checklist
    )


def test_amounts_are_no_devices() -> None:
    """HAMi's pods ask for memory and cores beside their one device."""
    asks = {"gpu": "1", "gpumem": "3000", "gpucores": "30"}
    report = audit(SCRAPE, pod("a/train", gpu="1"), pod("a/hidden", **asks))
    assert told(report, "missing-pod") == ["a/hidden runs on node-1 with 1 of nvidia.com/*, and stands on no row"]


def test_the_host_label_may_be_the_exporters_pod() -> None:
    """As it is without NODE_NAME: its node is in the list."""
    exporter = Exporter(host="dcgm-exporter-x").pod("a/train", util=5)
    here = (pod("a/train", gpu="1"), pod("a/hidden", gpu="1"))
    assert told(audit(exporter, *here, pod("gpu/dcgm-exporter-x")), "missing-pod")
    unknown = audit(exporter, *here)
    assert not told(unknown, "missing-pod")
    assert [note.code for note in unknown.notes] == ["host-not-listed"]


def test_what_kubectl_prints() -> None:
    """A list, one pod, a bare array; limits of every NVIDIA resource added up."""
    one = pod("a/x", gpu="1") | {"spec": {"nodeName": "n", "containers": [
        {"resources": {"limits": {"nvidia.com/gpu.shared": "2", "nvidia.com/mig-1g.5gb": 1}}}, {"name": "no limits"},
    ]}}  # fmt: skip
    for text in (json.dumps(one), json.dumps([one]), json.dumps({"items": [one]})):
        (listed,) = parse_pods(Written(path="p", text=text))
        assert (listed.pod, listed.node, listed.devices) == (Pod("a", "x"), "n", 3)


@pytest.mark.parametrize(
    ("text", "code"),
    [("NAME READY", "pods-not-json"), ("3", "pods-not-list"), ('{"items": [{"kind": "Node"}]}', "pods-not-list")],
)
def test_what_is_no_list_of_pods(text: str, code: str) -> None:
    """Refused, with the command that prints one."""
    with pytest.raises(BadInput) as caught:
        parse_pods(Written(path="p", text=text))
    assert caught.value.code == code
    assert "kubectl get pods -A -o json" in caught.value.hint
