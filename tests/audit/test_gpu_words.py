"""What labels and metrics stand for."""

from __future__ import annotations

import pytest

from gpuledger.audit import gpu_words
from gpuledger.audit.gpu_words import LabelKind, MetricKind

WORKLOADS = (
    "pod namespace container exported_pod exported_namespace pod_name container_name pod_namespace kubernetes_pod_name "
    "k8s_pod_name pod_uid workload deployment app convox_app label_app label_team team user project owner_name "
    "app_kubernetes_io_name dra_claim_name process_name created_by_name tenant podname podnamespace ctrname workspace "
    "user_id email organization cost_center cluster_queue service_account exported_service experiment_id dag_id "
    "container_label_com_docker_compose_service workflow_name"
)
JOBS = "job hpc_job slurm_job_id job_id exported_job jobset_name ray_cluster label_batch_job_name compute_unit"
OTHERS = (
    "gpu UUID device modelName Hostname hostname instance node GPU_I_PROFILE GPU_I_ID cluster pci_bus_id le err_msg "
    "label_nvidia_com_gpu_product label_node_pool label_topology_kubernetes_io_zone service endpoint model "
    "node_group aws_account_id project_id tenant_id service_name partition resource_group"
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
        ("dcgm_sm_active", MetricKind.PROF),
        ("dcgm_pipe_tensor_active", MetricKind.PROF),
        ("dcgm_tensor_active", MetricKind.PROF),
        ("dcgm_active_pods", MetricKind.DEVICE),
        ("nvidia_smi_utilization_gpu_ratio", MetricKind.DEVICE),
        ("DCGM_CUSTOM_PROCESS_SM_UTIL", MetricKind.OTHER),
        ("GPU_I_PROFILE", MetricKind.OTHER),
        ("DCGM_FI_DEV_PROFILE", MetricKind.DEVICE),
        ("up", MetricKind.OTHER),
    ],
)
def test_metrics_by_name(metric: str, kind: MetricKind) -> None:
    """The prefix tells whose figure it is."""
    assert gpu_words.metric_kind(metric) is kind


def test_profiling_fields_in_the_spelling_of_other_collectors() -> None:
    """Datadog's agent writes dots; a MIG profile and a word with PROF in it are none."""
    assert gpu_words.tells_prof("avg:dcgm.gr_engine_active{*} by {pod_name}")
    assert gpu_words.tells_prof("dcgm.dram.active")
    assert not gpu_words.tells_prof("avg:dcgm.power_usage{*}")
    assert not gpu_words.tells_prof("dcgm GPU_I_PROFILE")


@pytest.mark.parametrize("label", [*WORKLOADS.split(), *JOBS.split(), *OTHERS.split(), "DCGM_FI_DRIVER_VERSION"])
def test_labels_that_are_known(label: str) -> None:
    """By what they name."""
    assert gpu_words.is_known_label(label)


@pytest.mark.parametrize("label", ["purpose", "lab", "flavor", "group"])
def test_labels_that_nobody_can_tell(label: str) -> None:
    """The exporter writes any label of a pod on a device, if it is told to."""
    assert not gpu_words.is_known_label(label)


def test_metrics_with_a_series_for_each_workload() -> None:
    """And by which labels they tell them apart."""
    assert gpu_words.workloads_of("kube_pod_info") == ("pod", "namespace")
    assert gpu_words.workloads_of("kube_namespace_labels") == ("namespace",)
    assert gpu_words.workloads_of("ceems_compute_unit_gpu_index_flag") == ("uuid",)
    assert gpu_words.workloads_of("batchjob_slurm_job_gpu_index_flag") == ("jobid",)
    assert gpu_words.workloads_of("kube_node_labels") == ()


def test_metrics_with_a_series_for_each_node() -> None:
    """What somebody wrote on a node is no workload; a device's figure is none of them."""
    assert gpu_words.is_of_nodes("kube_node_labels")
    assert not gpu_words.is_of_nodes("node_drm_gpu_busy_percent")
    assert not gpu_words.is_of_nodes("kube_pod_labels")
    assert gpu_words.is_label_of_object("label_team")
    assert not gpu_words.is_label_of_object("team")


def test_patterns_that_choose_nothing() -> None:
    """However they are written; one that needs a letter first chooses."""
    for pattern in (".*", ".+|", "(?i).+", "[^|]+", "(a|.+)"):
        assert gpu_words.is_anything(pattern)
    for pattern in ("", "a.*", "[a-z].*", "(", "team-.*|q"):
        assert not gpu_words.is_anything(pattern)


def test_a_pattern_of_another_exporter_is_tried_on_its_metrics() -> None:
    """One that speaks of none of them is not."""
    assert "nvidia_smi_memory_used_bytes" in (gpu_words.metrics_matching("nvidia_smi_.*", frozenset()) or ())
    assert not gpu_words.metrics_matching("container_.*", frozenset())


def test_the_exporters_own_values() -> None:
    """What Prometheus puts on every series of a target that it does not honour the labels of."""
    assert gpu_words.is_the_exporter("nvidia-dcgm-exporter-.*")
    assert gpu_words.is_the_exporter("gpu-operator")
    assert gpu_words.is_the_exporter("exporter")
    assert not gpu_words.is_the_exporter("team-a")
    assert not gpu_words.is_the_exporter("my-exporter")


def test_patterns_of_names() -> None:
    """A field that the list does not know counts where it is written out; ``up`` says that all get through."""
    assert gpu_words.metrics_matching("DCGM_FI_PROF_NEW_FIELD", frozenset()) == {"DCGM_FI_PROF_NEW_FIELD"}
    assert "up" in (gpu_words.metrics_matching(".+", frozenset()) or ())
    assert gpu_words.metrics_matching("(", frozenset()) is None
    assert gpu_words.metrics_matching("a.*", frozenset({"ab"})) == {"ab"}
