"""Names that change before any query reads them."""

from __future__ import annotations

import pytest

from gpuledger.audit.renaming import aggregated, made_label, renamed


def test_a_metric_with_a_new_name() -> None:
    """By relabelling to a fixed name, and by OpenTelemetry's collector."""
    step = {"regex": "DCGM_FI_PROF_.*", "target_label": "__name__", "replacement": "busy"}
    assert list(renamed(step)) == [("DCGM_FI_PROF_.*", "busy")]
    assert list(renamed({"include": "DCGM_FI_PROF_X", "action": "update", "new_name": "busy"})) == [
        ("DCGM_FI_PROF_X", "busy")
    ]
    assert list(renamed({"regex": "a", "target_label": "b", "replacement": "c"})) == []


@pytest.mark.parametrize(
    ("regex", "new", "name"),
    [
        ("DCGM_FI_PROF_(.*)", "gpu_$1", "gpu_SM_ACTIVE"),
        ("^DCGM_FI_PROF_(.+)_ACTIVE$", "gpu_${1}_busy", "gpu_SM_busy"),
        ("DCGM_FI_PROF_(SM_ACTIVE|DRAM_ACTIVE)", "$1", "SM_ACTIVE"),
    ],
)
def test_a_family_with_new_names(regex: str, new: str, name: str) -> None:
    """Each metric of it by its own."""
    step = {"sourceLabels": ["__name__"], "regex": regex, "targetLabel": "__name__", "replacement": new}
    assert dict(renamed(step))["DCGM_FI_PROF_SM_ACTIVE"] == name


def test_a_label_made_of_a_pod_is_the_pod_s() -> None:
    """Whatever it is called; what is a place, or a workload by its name, needs no such knowledge."""
    step = {"source_labels": ["exported_namespace", "exported_pod"], "target_label": "svc"}
    assert made_label(step) == ("svc", "exported_namespace, exported_pod")
    assert made_label({**step, "replacement": "fixed"}) is None
    for target in ("instance", "pod", "__tmp_pod", "", "${1}"):
        assert made_label({**step, "target_label": target}) is None
    assert made_label({"source_labels": ["gpu"], "target_label": "svc"}) is None


def test_streams_are_aggregated_by_labels() -> None:
    """Each selector that a step matches."""
    step = {"match": ["a", 'b{c="d"}'], "by": ["pod", "no label"], "outputs": ["avg"]}
    assert aggregated(step) == ["avg by (pod) (a)", 'avg by (pod) (b{c="d"})']
    assert aggregated({"match": "a", "without": ["pod"], "outputs": ["sum_samples"]}) == ["avg without (pod) (a)"]
    assert aggregated({"match": "a", "by": ["pod"]}) == []
