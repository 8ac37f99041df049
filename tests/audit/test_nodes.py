"""Nodes judged: ours, each thing wrong in turn, and the real ones argued one by one."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from gpuledger.audit.nodes import audit_nodes
from gpuledger.model.findings import AuditReport, Written

SHARED = Path(__file__).resolve().parents[3] / "shared" / "data"


def node(name: str, *, product: str = "NVIDIA-A100-SXM4-40GB", count: int = 2, replicas: int = 1, **words: Any) -> dict:
    """One Node as the API has it; offered is count times replicas unless given."""
    labels = {
        "nvidia.com/gpu.product": product, "nvidia.com/gpu.count": str(count), "nvidia.com/gpu.replicas": str(replicas),
        **words.get("labels", {}),
    }  # fmt: skip
    offered = words.get("offered", {"nvidia.com/gpu": str(count * replicas)})
    conditions = [{"type": "Ready", "status": words.get("ready", "True")}]
    images = [{"names": [f"nvcr.io/nvidia/k8s/dcgm-exporter:{tag}"]} for tag in words.get("images", ())]
    return {
        "kind": "Node", "metadata": {"name": name, "labels": {key: value for key, value in labels.items() if value}},
        "status": {
            "allocatable": offered, "capacity": words.get("capacity", offered), "conditions": conditions,
            "images": images,
        },
    }  # fmt: skip


def audited(*nodes: dict, beside: str = "", pool_label: str = "") -> AuditReport:
    texts = [Written(path="nodes.json", text=json.dumps({"kind": "List", "items": list(nodes)}, indent=1))]
    texts += [Written(path="beside.yaml", text=beside)] if beside else []
    return audit_nodes(texts, pool_label=pool_label)


def verdicts(*nodes: dict, **words: str) -> list[str]:
    return [finding.check.verdict for finding in audited(*nodes, **words).findings]


SHARED_BY_4 = {"product": "NVIDIA-A100-SXM4-40GB-SHARED", "replicas": 4}
MPS = {"nvidia.com/mps.capable": "true"}
POOL = {"labels": {"karpenter.sh/nodepool": "gpu"}}


def test_nodes_that_agree() -> None:
    """Whole, shared and marked, cut into slices, renamed and keyed on more than the product: all are fine."""
    mig = {
        "nvidia.com/mig-1g.5gb.count": "3", "nvidia.com/mig-1g.5gb.replicas": "1",
        "nvidia.com/mig-1g.5gb.product": "NVIDIA-A100-SXM4-40GB-MIG-1g.5gb",
    }  # fmt: skip
    report = audited(
        node("whole"), node("shared", **SHARED_BY_4),
        node("cut", count=1, replicas=0, labels=mig, offered={"nvidia.com/gpu": "0", "nvidia.com/mig-1g.5gb": "3"}),
        {"kind": "Node", "metadata": {"name": "cpu"}},
    )  # fmt: skip
    assert report.findings == ()
    assert {each.verdict for each in report.looked} == {"fine"}
    assert dict(report.facts) == {
        "nodes with GPUs": "3", "nodes without": "1", "offered of A100-SXM4-40GB": "10",
        "offered of A100-SXM4-40GB/1g.5gb": "3",
    }  # fmt: skip


def test_mixed_replicas_in_a_pool() -> None:
    """Told at the nodes that differ from most; whole ones among shared ones too."""
    pool = [node(f"a{place}", **SHARED_BY_4, **POOL) for place in range(3)]
    odd = node("odd", product="NVIDIA-A100-SXM4-40GB-SHARED", replicas=8, **POOL)
    report = audited(*pool, odd, node("whole", **POOL))
    assert [(finding.check.verdict, finding.where.name) for finding in report.findings] == [
        ("mixed-replicas", "node odd"),
        ("mixed-replicas", "node whole"),
    ]
    assert "4 on a0, a1, a2" in report.findings[0].evidence
    assert verdicts(*pool, node("other", labels={"karpenter.sh/nodepool": "whole"})) == []


def test_without_pool_labels() -> None:
    """The shared devices of one class are one pool; whole ones beside them are another."""
    eight = node("b", product="NVIDIA-A100-SXM4-40GB-SHARED", replicas=8)
    assert verdicts(node("a", **SHARED_BY_4), eight) == ["mixed-replicas"]
    assert verdicts(node("a", **SHARED_BY_4), node("whole")) == []
    mine = {"labels": {"team/pool": "x"}}
    assert verdicts(node("a", **SHARED_BY_4, **mine), node("whole", **mine), pool_label="team/pool") == [
        "mixed-replicas"
    ]


@pytest.mark.parametrize(
    ("words", "verdict"),
    [
        ({"offered": {"nvidia.com/gpu": "8"}}, ["label-mismatch"]),  # device-plugin #732: the labels know no sharing
        ({**SHARED_BY_4, "offered": {"nvidia.com/gpu": "2"}}, ["label-mismatch"]),  # #990: the config is not applied
        ({"offered": {"nvidia.com/gpu": "1"}}, ["label-mismatch"]),
        ({"offered": {"nvidia.com/gpu": "1"}, "capacity": {"nvidia.com/gpu": "2"}}, ["devices-missing"]),
        ({"replicas": 4}, ["contradiction"]),  # shared by label, and nothing says so
        ({"product": "X-SHARED"}, ["contradiction"]),  # marked, with one replica
        ({**SHARED_BY_4, "offered": {"nvidia.com/gpu": "0", "nvidia.com/gpu.shared": "8"}}, ["contradiction"]),
        ({"replicas": 4, "offered": {"nvidia.com/gpu": "0", "nvidia.com/gpu.shared": "8"}}, ["shared-unmarked"]),
        ({"product": "X-MIG-1g.5gb-SHARED", "count": 7, "replicas": 2}, ["mig-time-sliced"]),
        ({"product": "X-MIG-1g.5gb-SHARED", "replicas": 2, "labels": MPS}, ["mps-with-mig"]),
        ({"ready": "False"}, ["not-ready"]),
        ({"ready": "Unknown"}, ["not-ready"]),
        ({"product": ""}, ["unlabelled"]),
        ({"labels": {"nvidia.com/mig.config.state": "failed"}}, ["mig-unsettled"]),
        ({"offered": {}}, ["devices-missing"]),
    ],
)  # fmt: skip
def test_each_thing_that_can_be_wrong(words: dict, verdict: list[str]) -> None:
    """It strikes alone."""
    assert verdicts(node("n", **words)) == verdict


def test_slices_that_are_time_sliced() -> None:
    """By the labels of a mixed node: each profile."""
    labels = {
        "nvidia.com/mig-1g.5gb.count": "3", "nvidia.com/mig-1g.5gb.replicas": "2",
        "nvidia.com/mig-1g.5gb.product": "NVIDIA-A100-SXM4-40GB-MIG-1g.5gb-SHARED",
    }  # fmt: skip
    mixed = node("n", count=1, replicas=0, labels=labels, offered={"nvidia.com/gpu": "0", "nvidia.com/mig-1g.5gb": "6"})
    assert verdicts(mixed) == ["mig-time-sliced"]
    uncounted = node("n", count=1, replicas=0, offered={"nvidia.com/gpu": "0", "nvidia.com/mig-1g.5gb": "6"})
    assert verdicts(uncounted) == ["label-mismatch"]


def test_one_class_spelled_two_ways() -> None:
    """Marked on one node, renamed on another."""
    renamed = node("b", replicas=4, offered={"nvidia.com/gpu": "0", "nvidia.com/gpu.shared": "8"})
    assert set(verdicts(node("a", **SHARED_BY_4), renamed)) == {"two-spellings", "shared-unmarked"}


def test_a_config_that_is_not_applied() -> None:
    """The label of the node names it, and the replicas are others."""
    config = (
        "kind: ConfigMap\nmetadata: {name: m}\ndata:\n  gold: |\n    sharing:\n      timeSlicing:\n"
        "        failRequestsGreaterThanOne: true\n        resources: [{name: nvidia.com/gpu, replicas: 8}]\n"
    )
    named = {"labels": {"nvidia.com/device-plugin.config": "gold"}}
    assert verdicts(node("n", **SHARED_BY_4, **named), beside=config) == ["config-not-applied"]
    assert verdicts(node("n", **SHARED_BY_4), beside=config) == []


SLICE = (
    "kind: ResourceSlice\napiVersion: resource.k8s.io/v1\nmetadata: {name: s}\n"
    "spec: {driver: gpu.nvidia.com, nodeName: n}\n"
)
EXPORTER = (
    "kind: DaemonSet\nmetadata: {name: d}\n"
    "spec: {template: {spec: {containers: [{image: 'dcgm-exporter:4.5.3-4.8.2-u'}]}}}\n"
)


def test_exporters_that_lose_pods_where_slices_churn() -> None:
    """By what runs, else by the newest image on the node; without slices it does not matter."""
    assert verdicts(node("n"), beside=f"{SLICE}---\n{EXPORTER}") == ["dra-exporter-old"]
    assert verdicts(node("n"), beside=f"{SLICE}---\n{EXPORTER.replace('4.5.3-4.8.2', '4.6.0-4.8.3')}") == []
    assert verdicts(node("n", images=["4.5.3-4.8.2-u"]), beside=SLICE) == ["dra-exporter-old"]
    assert verdicts(node("n", images=["4.5.3-4.8.2-u", "4.6.0-4.8.3-u"]), beside=SLICE) == []
    assert verdicts(node("n", images=["4.5.3-4.8.2-u"]), beside=EXPORTER) == []
    assert "not in these texts" in dict(audited(node("n"), beside=SLICE).facts)["exporter beside the resource slices"]


def test_devices_that_come_by_claims() -> None:
    """The kubelet offers none, and that is right."""
    assert verdicts(node("n", offered={}), beside=SLICE) == []
    assert verdicts(node("m", offered={}), beside=SLICE) == ["devices-missing"]


def test_a_node_that_stands_twice() -> None:
    """Two moments in one audit would contradict each other."""
    assert verdicts(node("n"), node("n")) == ["seen-twice"]


def test_places_are_lines_of_the_text() -> None:
    """As kubectl printed it."""
    (finding,) = audited(node("n", replicas=4)).findings
    text = json.dumps({"kind": "List", "items": [node("n", replicas=4)]}, indent=1)
    assert "gpu.product" in text.splitlines()[finding.where.line - 1]


@pytest.mark.parametrize("text", ['{"kind": "List", "items": [{"kind": "No', "\x00", "[" * 400, "a: &a [*a]"])
def test_bad_texts_are_unread(text: str) -> None:
    """Truncated, binary, bottomless, cyclic: told, and the others are judged."""
    report = audited(node("n"), beside=text)
    assert (len(report.unread), [each.verdict for each in report.looked]) == (1, ["fine"])


def real(place: str) -> AuditReport:
    """The audit of one real input."""
    if not SHARED.exists():
        if os.environ.get("CI"):
            pytest.fail("../shared/data is not there")
        pytest.skip("../shared/data is not there")
    return audit_nodes([Written(path=place, text=(SHARED / "k8s" / place).read_text(encoding="utf-8"))])


def struck(place: str) -> list[tuple[str, int]]:
    return [(finding.check.verdict, finding.where.line) for finding in real(place).findings]


@pytest.mark.parametrize(
    ("place", "findings"),
    [
        # two T4, replicas 1, two offered; the exporter's images are old, but there are no slices it could lose
        ("runai-samples/node_fraction_1_workload.yaml", []),
        # cut into 2 x 1g.5gb and 1 x 2g.10gb, by labels as offered; the whole is offered 0 times, as replicas say
        ("runai-samples/node_mig_3_instances.yaml", []),
        # 3g.20gb has a capacity of 1 and is not given out: left of an older layout, which no label counts any more
        ("runai-samples/node_mig_4_instances.yaml", [("devices-missing", 144)]),
        # one 7g.40gb; the profiles of older layouts have capacity 0, so nothing is missing
        ("runai-samples/node_mig_7g40gb.yaml", []),
        # a pod with half a device, which the kubelet does not know; its reservation pod, which it does know
        ("runai-samples/pod_fractional.yaml", [("held-for-others", 34)]),
        ("runai-samples/pod_fractional_reservation.yaml", [("held-for-others", 16)]),
        # slices given by the scheduler through an environment variable
        ("runai-samples/pod_mig_1g5gb.yaml", [("held-for-others", 32)]),
        ("runai-samples/pod_mig_7g5gb.yaml", [("held-for-others", 30)]),
        # failRequestsGreaterThanOne is not set, which is false
        ("time-slicing/issue_dcgm-exporter-582_configmap.yaml", [("many-replicas-allowed", 8)]),
        ("time-slicing/issue_device-plugin-990_mixed_mig_config1.yaml", [("many-replicas-allowed", 14)]),
        ("time-slicing/issue_gpu-operator-835_helm_values.yaml", [("many-replicas-allowed", 21)]),
        ("time-slicing/nvidia-docs_time-slicing-config-all.yaml", [("many-replicas-allowed", 14)]),
        # it is false in so many words
        ("time-slicing/issue_gpu-operator-684_12_replicas.yaml", [("many-replicas-allowed", 16)]),
        ("time-slicing/nvidia-docs_time-slicing-config-sample.yaml", [("many-replicas-allowed", 16)]),
        # it is true here, and renameByDefault too, so the product label does not tell a replica from a device
        ("time-slicing/issue_device-plugin-321_renameByDefault.yaml", [("shared-unmarked", 15)]),
        # four profiles are time-sliced, by 2, 2, 3 and 7; the whole A100 by 8 and the T4 by 4 are not slices
        (
            "time-slicing/nvidia-docs_time-slicing-config-fine.yaml",
            [("many-replicas-allowed", 14)]
            + [(verdict, line) for line in (16, 18, 20, 22) for verdict in ("many-replicas-allowed", "mig-time-sliced")]
            + [("many-replicas-allowed", 31)],
        ),
        # a claim that two containers share, and a MIG claim with time-slicing
        ("dra/bats_gpu-timeslicing.yaml", [("claim-shared", 22)]),
        ("dra/bats_gpu-simple-mig-ts.yaml", [("mig-time-sliced", 28)]),
        # four containers with a claim of their own each; slices without an exporter beside them
        ("dra/demo_v1_gpu-test4.yaml", []),
        ("dra/resourceslices_2x8_h100.yaml", []),
        # layouts of the MIG manager, a device plugin and a cluster definition share nothing
        ("mig-manager_0400_configmap.yaml", []),
        ("device-plugin/nvidia-device-plugin.yml", []),
        ("device-plugin/kind-cluster-config.yaml", []),
        ("gpu-operator-values.yaml", []),
    ],
)  # fmt: skip
def test_real_inputs(place: str, findings: list[tuple[str, int]]) -> None:
    """Each with its reason above."""
    assert struck(place) == findings
    assert real(place).unread == ()


def test_snippets_that_are_no_objects_are_unread() -> None:
    """What kubectl describe and issue threads show is told as unread, not guessed at."""
    assert [problem.code for problem in real("time-slicing/node_allocatable_snippets.txt").unread] == ["not-yaml"]


def test_slices_with_an_exporter_of_their_time() -> None:
    """The real slices are of resource.k8s.io/v1; the exporter of the real manifest, 4.5.3-4.8.2, forgets them."""
    real("dra/resourceslices_2x8_h100.yaml")
    texts = [
        Written(path=place, text=(SHARED / place).read_text(encoding="utf-8"))
        for place in ("k8s/dra/resourceslices_2x8_h100.yaml", "dcgm/dcgm-exporter-conf/dcgm-exporter.yaml")
    ]
    (finding,) = audit_nodes(texts).findings
    assert finding.check.verdict == "dra-exporter-old"
    assert any("resource.k8s.io/v1 at" in line for line in finding.evidence)


def test_shares_of_a_cloud_are_shares() -> None:
    """GKE's own plugin shares devices, and says so in labels of its own."""

    def gke(name: str, shares: int) -> dict:
        labels = {
            "cloud.google.com/gke-nodepool": "p", "cloud.google.com/gke-accelerator": "nvidia-tesla-t4",
            "cloud.google.com/gke-max-shared-clients-per-gpu": str(shares),
        }  # fmt: skip
        offered = {"nvidia.com/gpu": str(shares)}
        metadata = {"name": name, "labels": labels}
        return {"kind": "Node", "metadata": metadata, "status": {"allocatable": offered, "capacity": offered}}

    alone = audited(gke("a", 4))
    assert [(finding.check.verdict, finding.evidence) for finding in alone.findings] == [
        ("unlabelled", ("cloud.google.com/gke-accelerator: nvidia-tesla-t4",))
    ]
    assert alone.looked[0].text == "4 x unknown (1/4 each)"
    assert sorted(verdicts(gke("a", 4), gke("b", 8))) == ["mixed-replicas", "unlabelled", "unlabelled"]


UNCOUNTED = {"nvidia.com/gpu.count": "", "nvidia.com/gpu.replicas": ""}


def test_numbers_that_are_none() -> None:
    """A share is UNKNOWN then, and never one whole device in silence."""
    odd = node("a", labels={"nvidia.com/gpu.count": "two", "nvidia.com/gpu.replicas": "4x"})
    assert [(each.check.verdict, each.message.split(",")[0]) for each in audited(odd).findings] == [
        ("unreadable-number", "nvidia.com/gpu.count is two"),
        ("unreadable-number", "nvidia.com/gpu.replicas is 4x"),
    ]
    assert verdicts(node("a", offered={"nvidia.com/gpu": "two"})) == ["unreadable-number"]
    assert verdicts(node("a", labels={"nvidia.com/gpu.replicas": "-4"})) == ["unreadable-number"]
    assert verdicts(node("a", count=1000, offered={"nvidia.com/gpu": "1k"})) == []


def test_parts_are_no_replicas() -> None:
    """HAMi offers each device ten times: labels are not to blame, pools are not mixed, and a pod's two are of two."""
    register = {"hami.io/node-nvidia-register": '[{"id": "GPU-1", "type": "V"}, {"id": "GPU-2", "type": "V"}]'}
    parts = node("parts", offered={"nvidia.com/gpu": "20"}, **POOL)
    parts["metadata"]["annotations"] = register
    pod = (
        "kind: Pod\nmetadata: {name: p}\nspec: {nodeName: parts, containers: "
        "[{name: c, resources: {limits: {nvidia.com/gpu: 2}}}]}\n"
    )
    report = audited(parts, node("whole", **POOL), beside=pod)
    assert [finding.check.verdict for finding in report.findings] == ["parts-by-memory"]
    assert dict(report.facts)["offered of parts of A100-SXM4-40GB"] == "20"
    bare = node("bare", product="", labels=UNCOUNTED, offered={"nvidia.com/gpu": "20"})
    bare["metadata"]["annotations"] = register
    assert verdicts(bare) == ["parts-by-memory"]
    assert dict(audited(bare).facts)["offered of parts of V"] == "20"


def test_a_name_that_somebody_gave() -> None:
    """Its devices are not missing; they are counted by the labels as others are."""
    given = node("a", count=8, offered={"nvidia.com/a100": "8"})
    report = audited(given)
    assert [finding.check.verdict for finding in report.findings] == ["given-name"]
    assert dict(report.facts)["offered of A100-SXM4-40GB"] == "8"
    assert verdicts(node("a", count=8, offered={"nvidia.com/a100": "7"})) == ["given-name", "label-mismatch"]


def test_other_devices_are_told() -> None:
    """Each kind of node is counted as what it is."""
    amd = {"kind": "Node", "metadata": {"name": "m"}, "status": {"allocatable": {"amd.com/gpu": "8"}}}
    report = audited(node("a"), amd, {"kind": "Node", "metadata": {"name": "cpu"}})
    assert [(each.where.name, each.verdict) for each in report.looked] == [
        ("node a", "fine"),
        ("node m", "other-makers"),
    ]
    facts = dict(report.facts)
    assert (facts["nodes with GPUs"], facts["nodes with other devices alone"], facts["nodes without"]) == (
        "1",
        "1",
        "1",
    )


def test_a_node_of_virtual_machines_misses_nothing() -> None:
    """Its labels speak of GPUs, and machines get them."""
    machines = node("kv", labels=UNCOUNTED, offered={"nvidia.com/GRID_P40-1Q": "1"})
    assert verdicts(machines) == ["to-virtual-machines"]


def test_texts_without_nodes() -> None:
    """Told with what to type; a clean report of nothing would be none."""
    assert [note.code for note in audited().notes] == ["no-nodes"]
    assert audited(node("a")).notes == ()
    assert audited({"kind": "Node", "metadata": {"name": "cpu"}}).notes == ()


def test_slices_are_counted_by_class() -> None:
    """Those of NVIDIA's driver; another driver is not judged, and said so."""
    device = "{name: gpu-0, attributes: {productName: {string: NVIDIA H100}}}"
    text = (
        f"kind: ResourceSlice\nmetadata: {{name: s}}\nspec: {{driver: gpu.nvidia.com, devices: [{device}]}}\n"
        "---\nkind: ResourceSlice\nmetadata: {name: c}\nspec: {driver: compute-domain.nvidia.com}\n"
    )
    report = audited(node("a"), beside=text)
    assert dict(report.facts)["in resource slices of H100"] == "1"
    assert [(each.verdict, each.text) for each in report.looked[1:]] == [("fine", "1 x H100"), ("not-judged", "")]


TEMPLATE = """\
{{- range .Values.nodes }}
kind: Node
metadata: {name: "{{ .name }}", labels: {nvidia.com/gpu.count: "{{ .count }}"}}
status: {allocatable: {nvidia.com/gpu: "{{ .offered }}"}}
{{- end }}
"""


def test_a_template_says_nothing_yet() -> None:
    """Its numbers are not unreadable, they are not there; and no sign of ours stands in what is told."""
    report = audit_nodes([Written(path="t.yaml", text=TEMPLATE)])
    assert (report.findings, [problem.code for problem in report.unread]) == ((), ["template"])


def test_what_describe_prints_is_no_object() -> None:
    """Told with the command that prints one."""
    text = "Name: gpu-1\nLabels: nvidia.com/gpu.count=1\nAllocatable:\n  nvidia.com/gpu: 1\n"
    report = audit_nodes([Written(path="d.txt", text=text)])
    assert [problem.code for problem in report.unread] == ["described"]
    assert report.found()


def test_a_node_without_its_status() -> None:
    """Labels alone, as pages and issues show them: what it offers is UNKNOWN, and not none."""
    bare = {key: value for key, value in node("a").items() if key != "status"}
    report = audited(bare)
    assert report.findings == ()
    assert [(each.verdict, "UNKNOWN" in each.why) for each in report.looked] == [("cannot-tell", True)]


def test_partitions_that_shut_each_other_out() -> None:
    """A slice may publish every partition that a device could be cut into; they are not there all at once."""
    part = "{name: m, consumesCounters: [{counterSet: c}], attributes: {productName: {string: NVIDIA A100}, "
    text = (
        "kind: ResourceSlice\nmetadata: {name: s}\nspec: {driver: gpu.nvidia.com, devices: "
        f"[{part}profile: {{string: 1g.5gb}}}}}}, {part}profile: {{string: 7g.40gb}}}}}}]}}\n"
    )
    facts = dict(audited(node("a"), beside=text).facts)
    assert facts["in resource slices of A100/1g.5gb, possible partitions"] == "1"


def test_configs_of_a_kustomization_are_judged_as_built() -> None:
    """A base that shares by four, and an overlay that makes it refuse requests for several."""
    config = (
        "kind: ConfigMap\napiVersion: v1\nmetadata: {name: m}\ndata:\n  any: |-\n    sharing: {timeSlicing: {%s%s}}\n"
    )
    shares = "resources: [{name: nvidia.com/gpu, replicas: 4}]"
    texts = [
        Written(path="base/kustomization.yaml", text="resources: [c.yaml]\n"),
        Written(path="base/c.yaml", text=config % (shares, "")),
        Written(path="over/kustomization.yaml", text="resources: [../base]\npatches: [{path: p.yaml}]\n"),
        Written(path="over/p.yaml", text=config % (shares, ", failRequestsGreaterThanOne: true")),
    ]
    assert [finding.check.verdict for finding in audit_nodes(texts[:2]).findings] == ["many-replicas-allowed"]
    assert audit_nodes(texts).findings == ()
