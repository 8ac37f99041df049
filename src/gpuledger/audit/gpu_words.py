"""What labels and metrics of GPU dashboards mean: which labels name a workload, which figures are a whole device's.

In: names and matcher values as rules and dashboards spell them. Out: what they stand for.
Sources: dcgm-exporter's label order and old names (``pkg/rendermetrics``, issues #27, #340, #655), its HPC job
mapping, Prometheus' ``exported_`` prefix for labels that clash with those of the target.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from enum import StrEnum
from functools import lru_cache

from gpuledger.audit.device_metrics import OF_OTHERS, is_device_metric, tells_device
from gpuledger.audit.name_patterns import UnreadablePattern, compiled


class LabelKind(StrEnum):
    """What a label names."""

    WORKLOAD = "workload"
    JOB = "job"
    OTHER = "other"


class MetricKind(StrEnum):
    """Whose figure a metric is."""

    PROF = "prof"
    DEVICE = "device"
    OTHER = "other"


PLACES = frozenset({"pod", "namespace", "container"})
"""Without ``honorLabels`` these are the exporter's own, and the workload's stand under ``exported_``."""

ON_EVERY_DEVICE = ("pod", "namespace", "container", "exported_pod", "exported_namespace", "exported_container")
"""What the exporter, or Prometheus beside it, puts on every row of a device that a pod holds."""

_DEVICE_LABELS_WORDS = (
    "gpu uuid UUID device pci_bus_id modelName GPU_I_ID GPU_I_PROFILE gpu_uuid gpu_id GPU minor_number"
)
DEVICE_LABELS = frozenset(_DEVICE_LABELS_WORDS.split())
_HOST_LABELS_WORDS = (
    "Hostname hostname instance node nodename kubernetes_node exported_instance host host_name cluster "
    "cluster_id cluster_name rack region zone az datacenter"
)
HOST_LABELS = frozenset(_HOST_LABELS_WORDS.split())

_WORKLOAD = re.compile(
    r"(exported_)?("
    r"(k8s_|kubernetes_|kube_|io_kubernetes_|container_label_io_kubernetes_|src_|resource_|metric_|target_)*"
    r"(pod|namespace|container|ctr|pods|namespaces|containers)(_?name|_?uid|_?id|_?namespace)?"
    r"|ns|uid|podname|vgpu|dra_claim\w*|dra_pool"
    r"|(workload|deployment|statefulset|stateful_set|replicaset|replica_set|daemonset|inferenceservice|isvc|notebook)\w*"
    r"|created_by_(name|kind)|owner_(name|kind)"
    r"|(\w+_)?app(lication)?(_?name)?|app_kubernetes_io_\w+"
    r"|(\w+_)?(user|username|team|project|tenant|account|workspace|department|customer|cost_?center|business_unit"
    r"|organi[sz]ation|owner)(_?name)?|(\w+_)?(user|team|workspace|department|customer|owner)_?id"
    r"|((user|unix|slurm|project|team|research)_group|group)(_?name|_?id)"
    r"|(dcgm_fi_)?process(_?name)?|pid|(\w+_)?(email|experiment\w*|dag_?id|task_?id|served_model\w*|workflow\w*)"
    r"|exported_service|\w+_compose_service|(\w+_)?service_?account|(\w+_)?queue(_?name)?"
    r")",
    re.IGNORECASE,
)
_JOB = re.compile(
    r"(exported_)?(compute_unit|(\w+_)?(hpc_?job|slurm_?job|batch_?job|training_?job|cron_?job|job_?set|ray_?cluster|ray_?job)\w*"
    r"|(\w+_)?job_?(id|name|uid)|jobid|jobs?)",
    re.IGNORECASE,
)
_KUBE_LABEL = re.compile(r"(label|annotation)_\w+")
_NODE_LABEL = re.compile(
    r"label_(nvidia|node|topology|beta_kubernetes|kubernetes_io|cloud|eks|failure|feature|karpenter|gpu|agentpool"
    r"|instance|accelerator|machine|zone|region|rack|product|insights|cost_management)\w*"
)


@lru_cache(maxsize=4096)
def label_kind(name: str) -> LabelKind:
    """What a label names: a workload (pod, namespace, container, app, team), a batch job, or something else.

    ``job`` alone is Prometheus' own label of the scrape; it counts as a job here, and the place where it matters
    (:mod:`gpuledger.audit.judging`) looks at what stands beside it.
    """
    if name in DEVICE_LABELS or name in HOST_LABELS:
        return LabelKind.OTHER
    if _JOB.fullmatch(name):
        return LabelKind.JOB
    if _WORKLOAD.fullmatch(name):
        return LabelKind.WORKLOAD
    if _KUBE_LABEL.fullmatch(name) and not _NODE_LABEL.fullmatch(name):
        return LabelKind.JOB if "job" in name else LabelKind.WORKLOAD
    return LabelKind.OTHER


def names_workload(name: str) -> bool:
    """Whether a label stands for a workload or a job."""
    return label_kind(name) is not LabelKind.OTHER


def names_place(name: str) -> bool:
    """Whether a label stands for a device, a host or what a host is part of."""
    return name in DEVICE_LABELS or name in HOST_LABELS or bool(_NODE_LABEL.fullmatch(name))


_OF_FLEETS = re.compile(
    r"(\w+_)?(node\w*|host\w*|(node|gpu|host)?_?pool|partition|instance\w*|server\w*|machine\w*|zone|region|rack\w*|row"
    r"|site|location|cluster\w*|data_?cent(er|re)|dc|env(ironment)?|stage|tier|provider|cloud\w*|gpu\w*|device\w*"
    r"|card\w*|accelerator\w*|model\w*|product\w*|type|class|series|version|vendor|driver\w*|cuda\w*|bus\w*|pci\w*"
    r"|index|idx|minor\w*|serial\w*|uuid|slot|socket|numa\w*|link\w*|lane|port|board|brand|arch\w*|os|kernel|mig\w*"
    r"|profile|endpoint|service(_?name)?|prometheus\w*|replica|receive\w*|monitor|scrape\w*|exporter\w*|source|address|ip|name"
    r"|(node|host|gpu|instance|autoscaling|resource|server|machine)_?group\w*|(project|account|subscription|tenant)_?id"
    r"|sku|tray|chassis|blade|sled|rail|switch|fabric|asset\w*|az|country|city|building|floor|room|hall|fleet|farm|worker"
    r"|fqdn|dns|role|platform|component|chart|release|revision|origin|color|threshold|interval|window|mode|scope"
    r"|kind|unit|le|quantile|metric|field|err\w*|xid|code|reason|severity|state|status|vbios\w*)"
    r"|__\w+|DCGM_\w+",
    re.IGNORECASE,
)


@lru_cache(maxsize=4096)
def is_known_label(name: str) -> bool:
    """Whether it can be told what a label names; the exporter puts any label of a pod on a device, if told to."""
    return names_workload(name) or names_place(name) or bool(_OF_FLEETS.fullmatch(name))


_PROF = re.compile(
    r"(?<![A-Z])DCGM_FI_PROF(?:_|$|(?=[^A-Za-z]))"
    r"|(?<![A-Z])dcgm[_.](gr_engine_active|sm_(active|occupancy)|dram[_.]active|(pipe[_.])?(tensor|fp\d\d)\w*[_.]active)",
    re.IGNORECASE,
)
"""As dcgm-exporter spells them, and as collectors without its prefix do (Datadog's agent, the first exporters)."""

_PROF_FIELDS = (
    "GR_ENGINE_ACTIVE SM_ACTIVE SM_OCCUPANCY PIPE_TENSOR_ACTIVE DRAM_ACTIVE PIPE_FP64_ACTIVE PIPE_FP32_ACTIVE "
    "PIPE_FP16_ACTIVE PIPE_INT_ACTIVE PIPE_TENSOR_IMMA_ACTIVE PIPE_TENSOR_HMMA_ACTIVE PIPE_TENSOR_DFMA_ACTIVE "
    "PCIE_TX_BYTES PCIE_RX_BYTES NVLINK_TX_BYTES NVLINK_RX_BYTES NVLINK_L0_TX_BYTES NVLINK_L0_RX_BYTES "
    "NVDEC0_ACTIVE NVJPG0_ACTIVE NVOFA0_ACTIVE HOSTMEM_CACHE_HIT HOSTMEM_CACHE_MISS PEERMEM_CACHE_HIT"
)
PROF_METRICS = tuple(f"DCGM_FI_PROF_{field}" for field in _PROF_FIELDS.split())
"""The profiling fields (dcgm_fields.h, 1001 and up); a name of that prefix that is not here counts as well."""

_DEV_FIELDS = (
    "GPU_UTIL FB_USED FB_FREE FB_TOTAL FB_USED_PERCENT FB_RESERVED MEM_COPY_UTIL ENC_UTIL DEC_UTIL POWER_USAGE "
    "TOTAL_ENERGY_CONSUMPTION GPU_TEMP MEMORY_TEMP SM_CLOCK MEM_CLOCK XID_ERRORS PCIE_REPLAY_COUNTER "
    "NVLINK_BANDWIDTH_TOTAL ECC_DBE_VOL_TOTAL ECC_SBE_VOL_TOTAL MIG_MAX_SLICES CLOCK_THROTTLE_REASONS"
)
DEV_METRICS = tuple(f"DCGM_FI_DEV_{field}" for field in _DEV_FIELDS.split())

PER_PROCESS = frozenset({"DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_DEV_FB_USED"})
"""What the exporter can tell per pod since 4.5.3 with KUBERNETES_VIRTUAL_GPUS (dcgm-exporter #594)."""

KNOWN_RENAMES = {
    "accelerator_gpu_utilization": "DCGM_FI_DEV_GPU_UTIL",
    "accelerator_memory_used_bytes": "DCGM_FI_DEV_MEM_COPY_UTIL",
    "accelerator_memory_total_bytes": "DCGM_FI_DEV_FB_TOTAL",
    "accelerator_power_usage_watts": "DCGM_FI_DEV_POWER_USAGE",
    "accelerator_temperature_celsius": "DCGM_FI_DEV_GPU_TEMP",
    "accelerator_sm_clock_hertz": "DCGM_FI_DEV_SM_CLOCK",
    "accelerator_memory_clock_hertz": "DCGM_FI_DEV_MEM_CLOCK",
}
"""What NVIDIA's operator records on OpenShift (its PrometheusRule ``dcgm.accelerator.metrics``)."""

_RECORDED_GPU = re.compile(r"gpu|dcgm|tensor|accelerator|sm_active|sm_occupancy|dram_active|gr_engine", re.IGNORECASE)
_OF_WORKLOADS = (
    (re.compile(r"kube_namespace_\w+"), ("namespace",)),
    (re.compile(r"kube_job_\w+"), ("job_name", "namespace")),
    (re.compile(r"kube_(deployment|statefulset|daemonset|replicaset)_\w+"), ("deployment", "namespace")),
    (re.compile(r"vGPU_device_\w+|Device_\w+_of_container"), ("podname", "podnamespace")),
    (re.compile(r"kube_pod_\w+|container_\w+|kubelet_\w*pod\w*|namespace_workload_pod\w*|pod:\w+"
                r"|hami_(vgpu|container)_\w+"), ("pod", "namespace")),
    (re.compile(r"ceems_compute_unit_\w+"), ("uuid",)),
    (re.compile(r"slurm_job_\w+|\w+_slurm_job_\w+"), ("jobid",)),
)  # fmt: skip
"""Metrics with one series for each workload, by which labels: kube-state-metrics, cAdvisor, HAMi, CEEMS, Slurm's."""

_OF_NODES = re.compile(r"kube_node_\w+|node_\w+|machine_\w+|karpenter_nodes\w*")
_LABELS_OF_OBJECTS = ("label_", "annotation_")


@lru_cache(maxsize=4096)
def is_of_nodes(name: str) -> bool:
    """Whether a metric has a series for each node, so that its ``label_*`` are those that somebody put on the node."""
    return bool(_OF_NODES.fullmatch(name)) and metric_kind(name) is MetricKind.OTHER


def is_label_of_object(label: str) -> bool:
    """Whether kube-state-metrics made a label out of one of the object's own."""
    return label.startswith(_LABELS_OF_OBJECTS)


JOB_NUMBERS = frozenset({"nvidia_gpu_jobId", "nvidia_gpu_jobUid"})
"""Of jobstats' exporter: their value is the job, or the user, that has the device."""


@lru_cache(maxsize=4096)
def metric_kind(name: str) -> MetricKind:
    """Whose figure a metric is, by its name: the profiling counters are a device's, whoever holds it."""
    if _PROF.search(name):
        return MetricKind.PROF
    return MetricKind.DEVICE if is_device_metric(name) else MetricKind.OTHER


def tells_prof(text: str) -> bool:
    """Whether a text names a profiling metric (``GPU_I_PROFILE`` does not)."""
    return "dcgm" in text.lower() and bool(_PROF.search(text))


_WORD = re.compile(r"[A-Za-z_:][\w:]*")


def names_device(text: str) -> bool:
    """Whether a text names a metric of a device; an image that is called ``dcgm-exporter`` names none."""
    return tells_device(text) and any(metric_kind(word) is not MetricKind.OTHER for word in _WORD.findall(text))


def sounds_recorded(name: str) -> bool:
    """Whether a name is spelled as recording rules spell theirs (``level:metric:operation``) and is about GPUs."""
    return ":" in name and bool(_RECORDED_GPU.search(name))


@lru_cache(maxsize=4096)
def may_be_device(name: str) -> bool:
    """Whether a name is that of a device metric, or may stand for one that is recorded elsewhere."""
    return metric_kind(name) is not MetricKind.OTHER or name in KNOWN_RENAMES or sounds_recorded(name)


@lru_cache(maxsize=4096)
def workloads_of(name: str) -> tuple[str, ...]:
    """The labels by which a metric has one series for each workload; none for any other metric.

    ``uuid`` of a CEEMS metric is that of the compute unit, which is a job, a machine or a pod, and of no device.
    """
    return next((labels for pattern, labels in _OF_WORKLOADS if pattern.fullmatch(name)), ())


_ANY = frozenset({".*", ".+", "^.*$", "^.+$", "(.*)", "(.+)", ".*?", ".+?", ".*|", "|.*", "^.*", ".*$", "[^$]*"})
_EMPTY = frozenset({"", "^$", "()"})
_ANYBODY = ("q", "Zx-9.w_v", "kube-system", "team-a-7f9c", "0", "a b/c:d")
"""Values that have nothing in common: what lets all of them through chooses none."""
_EXPORTER = re.compile(
    r"dcgm|^\W*exporter\W*$|gpu-?operator|nvidia-(device|gpu)|gpu-?monitoring|gpu-?exporter|node-?exporter|kube-?system|"
    r"^\W*(monitoring|prometheus|observability|gmp-\w+|gke-managed-system)\W*$",
    re.IGNORECASE,
)


@lru_cache(maxsize=4096)
def is_anything(pattern: str) -> bool:
    """Whether a regular expression lets every value that is there through."""
    if pattern.strip() in _ANY:
        return True
    if "|" not in pattern and (pattern[:1].isalnum() or not pattern[:1]):
        return False  # most do, and to read a pattern takes longer than all the rest of a selector
    try:
        lets_through = compiled(pattern.strip())
    except UnreadablePattern:
        return False
    return all(map(lets_through, _ANYBODY))


@lru_cache(maxsize=4096)
def is_nothing(pattern: str) -> bool:
    """Whether a value or pattern stands for an absent label."""
    return pattern.strip() in _EMPTY


@lru_cache(maxsize=4096)
def is_the_exporter(value: str) -> bool:
    """Whether a value of ``pod``, ``namespace`` or ``container`` is that of the exporter and no workload's."""
    return bool(_EXPORTER.search(value.replace("\\", "")))


@lru_cache(maxsize=1024)
def metrics_matching(pattern: str, recorded: frozenset[str]) -> frozenset[str] | None:
    """The known metrics that a regular expression over ``__name__`` lets through; None where it cannot be read.

    ``up`` among them says that it lets anything through.

    Args:
        pattern: as written; Prometheus anchors it at both ends (RE2).
        recorded: the names that the rules at hand record.

    """
    try:
        lets_through = compiled(pattern)
    except UnreadablePattern:
        return None
    others = OF_OTHERS if tells_device(pattern) else ()
    found = {name for name in (*PROF_METRICS, *DEV_METRICS, *others, *recorded, "up") if lets_through(name)}
    return frozenset(found | set(_written_out(pattern)))


def _written_out(pattern: str) -> Iterable[str]:
    """Names that stand in a pattern as they are: fields that this list does not know."""
    return (name for name in re.findall(r"DCGM_FI_[A-Z0-9_]*[A-Z0-9]", pattern) if name.count("_") > 3)
