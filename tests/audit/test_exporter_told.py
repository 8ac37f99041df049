"""Facts, versions, and what was looked at."""

from __future__ import annotations

from exporter_texts import Exporter, duplicated, mapped
from gpuledger.audit.exporter import audit_exporter
from gpuledger.model.findings import AuditReport, Written

BUILD = 'dcgm_exporter_build_info{version="%s"} 1\n'


def audit(text: str) -> AuditReport:
    return audit_exporter(Written(path="scrape", text=text))


def facts(text: str) -> dict[str, str]:
    return dict(audit(text).facts)


def test_sums_by_kind_of_row() -> None:
    """Pods, the device beside them, instances; a series that stands twice counts once."""
    told = facts(mapped().text() * 2)
    assert told["DCGM_FI_DEV_FB_USED, all rows"] == "60,500 MiB in 3 rows"
    assert told["DCGM_FI_DEV_FB_USED, rows with a pod"] == "30,000 MiB in 2 rows"
    assert told["samples"] == "24 in 12 series"
    mig = facts(Exporter().instance(1, used=6).instance(2, used=4384).text())
    assert mig["DCGM_FI_DEV_FB_USED, MIG instances"] == "4,390 MiB in 2 rows"


def test_blanks_are_in_no_sum() -> None:
    """A blank added up would be 17 exabytes."""
    assert (
        facts(Exporter().pod("a/x", used=17592186044415).pod("a/y", used=5).text())["DCGM_FI_DEV_FB_USED, all rows"]
        == "5 MiB in 1 row"
    )


def test_labels_are_told_in_order_and_by_kind() -> None:
    """The exporter's own; those of pods, DRA and the scrape apart."""
    own = {"app": "x", "dra_claim_name": "c", "vgpu": "0", "pod_uid": "u"}
    told = facts(Exporter(spelled="hostname").device(util=1).pod("a/x", util=1, labels=own).text())
    assert told["labels in order"] == (
        "gpu, UUID, device, modelName, hostname, container, namespace, pod, vgpu, pod_uid"
    )
    assert told["labels of pods, DRA or the scrape"] == "app, dra_claim_name"
    assert told["also labelled"] == "vgpu, pod_uid, DRA"
    assert told["hints by labels"] == (
        "later than 4.5.3-4.8.2 (hostname), 4.5.3-4.8.2 or later (pod_uid), virtual GPUs on (vgpu)"
    )


def test_a_version_against_the_behaviour() -> None:
    """The version is told, and never decides: a contradiction is a finding of its own."""
    new, old = BUILD % "4.6.0-4.8.3", BUILD % "4.1.1-4.0.4"
    rules = [{finding.check.id for finding in audit(text).findings} for text in (
        duplicated().text() + new, duplicated().text() + old, mapped().text() + new, mapped().text() + old,
    )]  # fmt: skip
    assert ["exporter/version-against-behaviour" in found for found in rules] == [True, False, False, True]
    assert facts(duplicated().text() + new)["exporter version"] == "4.6.0-4.8.3"


def test_drivers_are_told() -> None:
    """Of every node in the text."""
    extra = {"DCGM_FI_DRIVER_VERSION": "570.86.15"}
    assert facts(Exporter(extra=extra).device(util=1).text())["driver version"] == "570.86.15"


def test_everything_that_was_looked_at() -> None:
    """Devices with their scope, then metrics with what they came to."""
    report = audit(mapped().text())
    assert [(each.where.name[:20], each.verdict) for each in report.looked] == [
        ("GPU-5a3c1f2e-1111-22", "process"),
        ("DCGM_FI_DEV_GPU_UTIL", "process"),
        ("DCGM_FI_DEV_FB_USED", "process"),
        ("DCGM_FI_DEV_POWER_US", "device-scope"),
        ("DCGM_FI_PROF_GR_ENGI", "misattribution"),
    ]
    assert [each.verdict for each in audit(Exporter().device(util=1).text()).looked] == ["no-pod", "fine"]
