"""``audit exporter`` over whole texts: real scrapes and excerpts, argued one by one, and our own of what they lack."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from exporter_texts import OTHER_UUID, UUID, Exporter, arbitrary, duplicated, mapped
from gpuledger.audit.exporter import ANSWER_CUT, audit_exporter
from gpuledger.audit.exposition import decode
from gpuledger.model.findings import AuditReport, Written
from gpuledger.model.problem import Problem

REAL = Path(__file__).resolve().parents[3] / "shared" / "data" / "dcgm"
PODS = '{"items": []}'


def audit(text: str) -> AuditReport:
    return audit_exporter(Written(path="scrape", text=text))


def verdicts(report: AuditReport) -> set[str]:
    return {finding.check.id.removeprefix("exporter/") for finding in report.findings}


def facts(report: AuditReport) -> dict[str, str]:
    return dict(report.facts)


def scope(report: AuditReport) -> str:
    return facts(report)["scope of figures on pods"].partition(":")[0]


@pytest.fixture(scope="module")
def real() -> Path:
    """The real scrapes."""
    if not REAL.is_dir():
        if os.environ.get("CI"):
            pytest.fail("../shared/data is absent, and CI must try the real inputs")
        pytest.skip("../shared/data is absent: the real scrapes are not tried")
    return REAL


def audited(folder: Path, name: str) -> AuditReport:
    text, unread = decode((folder / name).read_bytes())
    return audit_exporter(Written(path=name, text=text), unread=unread)


def test_fraction_1_workload(real: Path) -> None:
    """38 samples, 2 GPUs, 133 MiB, 128 of it on a row whose pod is a scheduler's reservation, not the user.

    The scope is device: GPU 0 has one row of GPU_UTIL and of FB_USED, and it carries the pod. An exporter that maps
    processes would have left the device's own row beside it. One pod alone holds it, so this is a warning.
    """
    report = audited(real, "fraction_1_workload.prom")
    told = facts(report)
    assert (told["samples"], told["devices"], told["MIG instances"]) == ("38", "2", "0")
    assert told["DCGM_FI_DEV_FB_USED, all rows"] == "133 MiB in 2 rows"
    assert told["DCGM_FI_DEV_FB_USED, rows with a pod"] == "128 MiB in 1 row"
    assert told["pods"] == "1: runai-reservation/runai-reservation-gpu-qa-mig-worker-gpu-1-kvltw"
    assert told["labels in order"] == (
        "gpu, UUID, device, modelName, Hostname, DCGM_FI_DRIVER_VERSION, container, namespace, pod"
    )
    assert verdicts(report) == {"reservation-pod", "device-row-on-pod", "profiling-on-one-pod"}
    reservation = next(finding for finding in report.findings if finding.check.id == "exporter/reservation-pod")
    assert "128 MiB in use" in reservation.message
    assert scope(report) == "device"
    assert not report.unread


def test_mig_4_active_workloads(real: Path) -> None:
    """56 samples, 1 GPU, 4 instances, 4,409 MiB; a title line told; no pod on any row, so no scope.

    Instance 8 holds 4,384 MiB and its engine is active at 0.41: somebody computes there, and no row says who. Energy
    is the same 6,890,956 mJ on all four instances, which is one GPU's figure four times.
    """
    report = audited(real, "mig_4_active_workloads.prom")
    told = facts(report)
    assert (told["samples"], told["devices"], told["MIG instances"], told["pods"]) == ("56", "1", "4", "0")
    assert told["DCGM_FI_DEV_FB_USED, all rows"] == "4,409 MiB in 4 rows"
    assert verdicts(report) == {"cannot-tell", "busy-without-pod", "device-figure-on-instances"}
    busy = [finding for finding in report.findings if finding.check.id == "exporter/busy-without-pod"]
    assert [finding.where.name for finding in busy] == ["GPU-473571f2-fb37-ef7e-50fe-9885b74a23cd instance 8 (1g.5gb)"]
    assert [str(problem) for problem in report.unread] == [
        "mig_4_active_workloads.prom:1: no sample: `4 Active Workloads` [not-a-sample]"
    ]
    assert scope(report) == "cannot-tell"


def test_mig_active_1g5gb(real: Path) -> None:
    """One instance, fully busy, and no pod named; a title line before it."""
    report = audited(real, "mig_active_1g5gb.prom")
    assert (facts(report)["samples"], facts(report)["MIG instances"]) == ("14", "1")
    assert verdicts(report) == {"cannot-tell", "busy-without-pod"}
    assert len(report.unread) == 1


def test_empty_mig_disabled(real: Path) -> None:
    """Two scrapes of one idle GPU in one file: 46 samples are 23 series, and memory is added up once, not twice.

    The title and both rulers are told. Nothing is on pods and nothing is busy, so nothing else can be said.
    """
    report = audited(real, "empty_mig_disabled.prom")
    told = facts(report)
    assert (told["samples"], told["devices"]) == ("46 in 23 series", "1")
    assert told["DCGM_FI_DEV_FB_USED, all rows"] == "0 MiB in 1 row"
    assert verdicts(report) == {"cannot-tell", "repeated-series"}
    assert [problem.code for problem in report.unread] == ["not-a-sample", "ruler", "ruler"]


def test_188_old_1x_names(real: Path) -> None:
    """Metrics of the 1.x file; labels for pods are there and empty: it asks the kubelet, and finds nobody."""
    report = audited(real, "188_old_1x_names.prom")
    assert (facts(report)["samples"], facts(report)["devices"]) == ("7", "1")
    assert verdicts(report) == {"old-names", "cannot-tell"}
    assert facts(report)["pod labels"] == "pod, namespace, container, empty on every row"


def test_307_device_to_pod_mapping(real: Path) -> None:
    """The exporter's own log: nvidia0 is put on one pod, and four hold it. So its figures are the device's."""
    report = audited(real, "307_device_to_pod_mapping.log")
    assert scope(report) == "device"
    assert verdicts(report) == {"device-scope"}
    assert facts(report)["in the exporter's log"] == "1 device held by 4 pods"
    assert "gpu-pod-c69f6664f-vkkcb, one of 4 pods" in report.findings[0].message
    assert any("KUBERNETES_VIRTUAL_GPUS=true" in step for step in report.checklist)
    assert not report.unread


def test_340_exported_labels(real: Path) -> None:
    """Through Prometheus without honorLabels: pod is the exporter, the holders are in exported_pod; no figure is given.

    So the scope cannot be told. A temperature on two pods of one GPU is the device's all the same.
    """
    report = audited(real, "340_exported_labels_T_shared.promql-result.txt")
    assert verdicts(report) == {"exported-labels", "device-figures-on-pods", "cannot-tell"}
    assert facts(report)["samples"] == "2, 2 of them without a figure"
    assert facts(report)["pods"] == "2: default/pod1, default/pod2"
    assert any("honorLabels: true" in step for step in report.checklist)


def test_587_virtual_gpus_duplicated(real: Path) -> None:
    """Three pods at 0.714 each on one GPU: one device's figure three times; labels are elided, which is told."""
    report = audited(real, "587_virtual_gpus_duplicated_prof.txt")
    assert scope(report) == "device"
    assert verdicts(report) == {"device-scope", "profiling-on-pods"}
    assert facts(report)["pods"] == "3: gpu-workload-1, gpu-workload-2, gpu-workload-3"
    assert [note.code for note in report.notes] == ["elided-labels"]
    assert not report.unread


def test_process_scope() -> None:
    """After #594: pods with figures of their own; a sum counts the device beside them twice; the rest is device's."""
    report = audit(mapped().text())
    assert scope(report) == "process"
    assert verdicts(report) == {"device-row-beside-pods", "profiling-on-pods", "device-figures-on-pods"}
    beside = [each.message for each in report.findings if each.check.id == "exporter/device-row-beside-pods"]
    assert "sum(DCGM_FI_DEV_FB_USED) over this device gives 60500 MiB; the device reads 30500" in beside[1]
    told = facts(report)
    assert told["DCGM_FI_DEV_FB_USED, rows with a pod"] == "30,000 MiB in 2 rows"
    assert told["DCGM_FI_DEV_FB_USED, rows without a pod"] == "30,500 MiB in 1 row"
    assert told["also labelled"] == "vgpu, pod_uid"
    assert not any("hostPID" in step for step in report.checklist)


def test_a_scrape_as_in_587() -> None:
    """Before #594 with virtual GPUs: every pod of the GPU has its whole figure."""
    report = audit(duplicated().text())
    assert scope(report) == "device"
    assert {"device-scope", "profiling-on-pods", "device-figures-on-pods"} <= verdicts(report)
    assert [step.split()[0] for step in report.checklist[:3]] == ["Run", "Set", "Set"]


def test_a_scrape_as_in_307() -> None:
    """One of several pods on the device's own row: told by the shape, and proven by the list of pods."""
    report = audit(arbitrary().text())
    assert scope(report) == "device"
    assert "device-row-on-pod" in verdicts(report)


def test_mixed_exporters() -> None:
    """Two nodes in one text, one of each kind: neither verdict would be true of both."""
    other = Exporter(host="node-2")
    for pod in ("team-c/x", "team-d/y"):
        other.pod(pod, uuid=OTHER_UUID, util=55, used=900)
    report = audit(mapped().text() + other.text())
    assert scope(report) == "mixed"
    assert {each.where.name: each.verdict for each in report.looked if each.where.name.startswith("GPU-")} == {
        UUID: "process",
        OTHER_UUID: "device",
    }


def test_an_idle_shared_device_cannot_be_told() -> None:
    """Every figure is 0, with the device beside and without."""
    idle = Exporter().device(util=0, used=0).pod("a/x", util=0, used=0).pod("a/y", util=0, used=0)
    assert scope(audit(idle.text())) == "cannot-tell"
    bare = Exporter().pod("a/x", util=0, used=0).pod("a/y", util=0, used=0)
    report = audit(bare.text())
    assert scope(report) == "cannot-tell"
    assert "idle" in facts(report)["because"]


@settings(max_examples=15)
@given(st.integers(0, 10**6))
def test_the_order_of_lines_changes_no_verdict(seed: int) -> None:
    """Samples shuffled, whatever the exporter: the same rules strike at the same devices, and the scope is the same."""
    for exporter in (mapped(), duplicated(), arbitrary()):
        lines = exporter.text().splitlines()
        shuffled = list(lines)
        random.Random(seed).shuffle(shuffled)
        first, second = audit("\n".join(lines) + "\n"), audit("\n".join(shuffled) + "\n")
        assert scope(first) == scope(second)
        assert {(f.check.id, f.where.name, f.message) for f in first.findings} == {
            (f.check.id, f.where.name, f.message) for f in second.findings
        }


def test_an_answer_that_was_cut_is_an_error() -> None:
    """Half a page is judged as far as it goes, and the cut stands as a finding."""
    cut = Problem(code=ANSWER_CUT, message="the answer has 10 of 20 bytes", where="u")
    report = audit_exporter(Written(path="u", text=mapped().text()), unread=(cut,))
    assert "answer-cut" in verdicts(report)
    assert report.found()
    assert scope(report) == "process"


def test_text_without_any_figure() -> None:
    """An empty page, metrics of Go only, another exporter: each is told as what it is."""
    assert verdicts(audit("")) == {"no-gpu-figures"}
    assert verdicts(audit("go_goroutines 7\n")) == {"no-gpu-figures"}
    assert verdicts(audit("not metrics at all\n")) == {"no-gpu-figures"}
    other = audit('nvidia_smi_utilization_gpu_ratio{uuid="5a3c"} 0.4\n')
    assert verdicts(other) == {"other-exporter"}
    assert "nvidia_gpu_exporter" in other.findings[0].message
    hami = 'vGPU_device_memory_usage_in_bytes{podname="x",podnamespace="a",deviceuuid="GPU-1"} 5\n'
    assert facts(audit(hami))["exporter"] == "HAMi's monitor"


def test_two_scrapes_of_one_endpoint() -> None:
    """What moved is told; the second decides where the first could not; a still endpoint under power is stuck."""
    idle = Exporter().device(util=0, used=0, energy=5).pod("a/x", util=0, used=0).pod("a/y", util=0, used=0)
    busy = Exporter().device(util=50, used=900, energy=9).pod("a/x", util=40, used=600).pod("a/y", util=9, used=200)
    first, second = (Written(path="u", text=each.text()) for each in (idle, busy))
    report = audit_exporter(first, later=second, seconds=35)
    assert scope(report) == "process"
    assert facts(report)["moved between the scrapes"] == "7 of 7 figures, 1 of 1 counters of energy"
    still = audit_exporter(second, later=second, seconds=35)
    assert "nothing-moved" in verdicts(still)


def test_every_rule_is_named_in_the_report() -> None:
    """A clean report says of what."""
    assert len(audit(mapped().text()).checks) == len({check.id for check in audit("").checks}) > 20
