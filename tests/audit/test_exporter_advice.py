"""What to change, and nothing that is in order already."""

from __future__ import annotations

from exporter_texts import UTIL, UUID, Exporter, duplicated, mapped, row
from gpuledger.audit.exporter import audit_exporter
from gpuledger.model.findings import Written


def steps(text: str) -> str:
    return "\n".join(audit_exporter(Written(path="x", text=text)).checklist)


def test_device_scope_needs_version_settings_pids_and_access() -> None:
    """In this order, and the proof at the end."""
    told = steps(duplicated().text())
    words = [
        "4.5.3-4.8.2",
        "KUBERNETES_VIRTUAL_GPUS=true",
        "hostPID: true",
        "ENABLE_POD_UID=true",
        "NVIDIA_RESOURCE_NAMES",
    ]
    places = [told.index(word) for word in words]
    assert places == sorted(places)
    assert told.splitlines()[-1].startswith("Then audit again")


def test_process_scope_needs_none_of_that() -> None:
    """Only how to read what is there."""
    told = steps(mapped().text())
    assert "hostPID" not in told
    assert 'METRIC{pod!=""}' in told
    assert "DCGM_FI_PROF_.*" in told


def test_each_finding_of_names_has_its_step() -> None:
    """Labels behind Prometheus, old names, no labels."""
    behind = row(UTIL, 5, gpu="0", UUID=UUID, instance="i", exported_pod="x", pod="dcgm-exporter-1")
    assert "honorLabels: true" in steps(behind + "\n")
    assert "USE_OLD_NAMESPACE" in steps(row("dcgm_gpu_utilization", 5, gpu="0", UUID=UUID, pod="") + "\n")
    assert "pod-resources" in steps(Exporter().device(util=5).text())
    assert steps("") == steps("go_goroutines 7\n")


def test_a_clean_idle_exporter_has_nothing_to_change() -> None:
    """No step without a finding."""
    assert steps(row(UTIL, 0, gpu="0", UUID=UUID, pod="", namespace="", container="") + "\n") == ""
