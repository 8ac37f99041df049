"""What labels and metrics stand for."""

from __future__ import annotations

import pytest

from gpuledger.audit import gpu_words
from gpuledger.audit.gpu_words import LabelKind, MetricKind

WORKLOADS = (
    "pod namespace container exported_pod exported_namespace pod_name container_name pod_namespace kubernetes_pod_name "
    "k8s_pod_name pod_uid workload deployment app convox_app label_app label_team team user project owner_name "
    "app_kubernetes_io_name dra_claim_name process_name created_by_name tenant"
)
JOBS = "job hpc_job slurm_job_id job_id exported_job jobset_name ray_cluster label_batch_job_name"
OTHERS = (
    "gpu UUID device modelName Hostname hostname instance node GPU_I_PROFILE GPU_I_ID cluster pci_bus_id le err_msg "
    "label_nvidia_com_gpu_product label_node_pool label_topology_kubernetes_io_zone service endpoint model"
)


@pytest.mark.parametrize("label", WORKLOADS.split())
def test_labels_of_workloads(label: str) -> None:
    """Pods, their owners, and who answers for them; old spellings too."""
    assert gpu_words.label_kind(label) is LabelKind.WORKLOAD


@pytest.mark.parametrize("label", JOBS.split())
def test_labels_of_jobs(label: str) -> None:
    """Batch jobs, and Prometheus' own label, which is looked at again where it stands."""
    assert gpu_words.label_kind(label) is LabelKind.JOB


@pytest.mark.parametrize("label", OTHERS.split())
def test_other_labels(label: str) -> None:
    """Devices, hosts, and labels that Prometheus' targets have."""
    assert gpu_words.label_kind(label) is LabelKind.OTHER


@pytest.mark.parametrize(
    ("metric", "kind"),
    [
        ("DCGM_FI_PROF_SM_ACTIVE", MetricKind.PROF),
        ("dcgm_fi_prof_sm_active", MetricKind.PROF),
        ("pod:DCGM_FI_PROF_SM_ACTIVE:avg", MetricKind.PROF),
        ("DCGM_FI_DEV_GPU_UTIL", MetricKind.DEVICE),
        ("DCGM_EXP_XID_ERRORS_COUNT", MetricKind.DEVICE),
        ("dcgm_gpu_utilization", MetricKind.DEVICE),
        ("GPU_I_PROFILE", MetricKind.OTHER),
        ("DCGM_FI_DEV_PROFILE", MetricKind.DEVICE),
        ("up", MetricKind.OTHER),
    ],
)
def test_metrics_by_name(metric: str, kind: MetricKind) -> None:
    """The prefix tells whose figure it is."""
    assert gpu_words.metric_kind(metric) is kind


def test_the_exporters_own_values() -> None:
    """What Prometheus puts on every series of a target that it does not honour the labels of."""
    assert gpu_words.is_the_exporter("nvidia-dcgm-exporter-.*")
    assert gpu_words.is_the_exporter("gpu-operator")
    assert not gpu_words.is_the_exporter("team-a")


def test_patterns_of_names() -> None:
    """A field that the list does not know counts where it is written out; ``up`` says that all get through."""
    assert gpu_words.metrics_matching("DCGM_FI_PROF_NEW_FIELD", frozenset()) == {"DCGM_FI_PROF_NEW_FIELD"}
    assert "up" in (gpu_words.metrics_matching(".+", frozenset()) or ())
    assert gpu_words.metrics_matching("(", frozenset()) is None
    assert gpu_words.metrics_matching("a.*", frozenset({"ab"})) == {"ab"}
