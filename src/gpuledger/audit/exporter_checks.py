"""The rules of ``audit exporter``: the explicit list, in the order in which they are told."""

from __future__ import annotations

from gpuledger.audit.exporter_words import FIRST_MAPPING
from gpuledger.model.findings import AuditCheck, Level

DEVICE_SCOPE = AuditCheck(
    id="exporter/device-scope",
    verdict="device-scope",
    rule="Where pods share a device, each pod's utilisation and memory are those of its own processes.",
    fix=f"map processes to pods: dcgm-exporter {FIRST_MAPPING} or later with KUBERNETES_VIRTUAL_GPUS=true and hostPID",
    level=Level.ERROR,
)
ONE_POD = AuditCheck(
    id="exporter/device-row-on-pod",
    verdict="device-scope",
    rule="A pod's name stands on a figure of its own, not on the device's row.",
    fix="right while the pod has the device to itself; map processes before anybody shares it, or say so by a waiver",
    level=Level.WARNING,
)
PROFILING = AuditCheck(
    id="exporter/profiling-on-pods",
    verdict="misattribution",
    rule="DCGM_FI_PROF_* counts for a device or MIG instance, so no row of it names one of several pods.",
    fix="read it as max by (UUID, GPU_I_ID), and blank its pod labels where Prometheus scrapes (metricRelabelings)",
    level=Level.ERROR,
)
PROFILING_ONE = AuditCheck(
    id="exporter/profiling-on-one-pod",
    verdict="device-scope",
    rule="DCGM_FI_PROF_* on a row with a pod is that pod's only while nobody shares the device.",
    fix="group it by UUID; or waive it for devices that are never shared, with a reason and an owner",
    level=Level.WARNING,
)
DEVICE_FIGURES = AuditCheck(
    id="exporter/device-figures-on-pods",
    verdict="device-scope",
    rule="Power, energy, clocks and the like are of the device; on the rows of several pods each repeats it whole.",
    fix="group them by UUID, and never add them up by pod",
    level=Level.WARNING,
)
JOBS = AuditCheck(
    id="exporter/device-figures-on-jobs",
    verdict="device-scope",
    rule="A row with hpc_job carries a figure of that job.",
    fix="take max by (UUID) before any sum; what each job held comes from Slurm (gpuledger import slurm)",
    level=Level.ERROR,
)
DOUBLE_COUNT = AuditCheck(
    id="exporter/device-row-beside-pods",
    verdict="double-count",
    rule="A sum over all rows of a metric counts nothing twice.",
    fix='add up rows with pod!="" for pods, or with pod="" for devices, never both',
    level=Level.WARNING,
)
REPLICA_ROWS = AuditCheck(
    id="exporter/repeated-replica-rows",
    verdict="double-count",
    rule="A pod has one row of a metric on a device, however many containers and replicas of it the pod holds.",
    fix="take max by (UUID, namespace, pod) before any sum: each row repeats the pod's total (dcgm-exporter #725)",
    level=Level.WARNING,
)
TWO_EXPORTERS = AuditCheck(
    id="exporter/two-exporters",
    verdict="double-count",
    rule="A device is told by one exporter at a time.",
    fix="take max by (UUID) before any sum, and run one exporter a node (after a restart wait five minutes)",
    level=Level.WARNING,
)
REPEATED = AuditCheck(
    id="exporter/repeated-series",
    verdict="double-count",
    rule="A series stands once in a scrape.",
    fix="audit one scrape at a time; where it is one, Prometheus keeps one of these rows and reports duplicates",
    level=Level.WARNING,
)
ABOVE_DEVICE = AuditCheck(
    id="exporter/pods-above-device",
    verdict="contradiction",
    rule="The pods of a device add up to no more than the device's own row.",
    fix="count each pod once, then compare again; what still exceeds is no process of the pod",
    level=Level.WARNING,
)
BLANK = AuditCheck(
    id="exporter/blank-as-figure",
    verdict="blank",
    rule="A figure that is not available is absent, and not a large number.",
    fix="drop the value where Prometheus scrapes or queries, and update dcgm-exporter (4.5.3 drops most of them)",
    level=Level.ERROR,
)
UNMAPPED = AuditCheck(
    id="exporter/pods-without-figures",
    verdict="not-mapped",
    rule="Where a device is busy and pods stand on it, one of them has a figure.",
    fix="hostPID: true, and read access to pods so that UIDs are known; a process outside pods would explain it too",
    level=Level.ERROR,
)
WORK_UNMAPPED = AuditCheck(
    id="exporter/work-not-on-pods",
    verdict="not-mapped",
    rule="Where a device works and its pods hold memory of it, their utilisation adds up to some of that work.",
    fix="under MPS its server works for all clients, which no exporter splits (or a process outside pods works): bill "
    "shares, and read no 0 as idle",
    level=Level.ERROR,
)
ZERO_UNDER_WORK = AuditCheck(
    id="exporter/zero-under-work",
    verdict="zero-or-unknown",
    rule="A DCGM_FI_DEV_GPU_UTIL of 0 stands where nothing works.",
    fix="under MIG read DCGM_FI_PROF_GR_ENGINE_ACTIVE: DCGM has no utilisation of instances, and says 0",
    level=Level.WARNING,
)
ZERO_POD = AuditCheck(
    id="exporter/pod-at-zero",
    verdict="zero-or-unknown",
    rule="A pod's 0 is a measured 0.",
    fix="do not bill or reclaim by it: idle, and a process that could not be mapped, both read 0",
    level=Level.NOTE,
)
RESERVATION = AuditCheck(
    id="exporter/reservation-pod",
    verdict="not-the-user",
    rule="The pod on a row is the one that computes.",
    fix="map the reservation to the pods of its group by the scheduler's own metrics or annotations, and never bill it",
    level=Level.ERROR,
)
BUSY_UNNAMED = AuditCheck(
    id="exporter/busy-without-pod",
    verdict="unnamed",
    rule="A busy device or instance has a pod on its rows, where the exporter knows pods.",
    fix="check NVIDIA_RESOURCE_NAMES, the kubelet socket and the id type; else a process outside pods runs there",
    level=Level.WARNING,
)
NO_PODS = AuditCheck(
    id="exporter/no-pod-labels",
    verdict="no-pods",
    rule="Rows have labels for pods, if anything is to be said of pods by them.",
    fix="DCGM_EXPORTER_KUBERNETES=true, with the kubelet's pod-resources folder mounted",
    level=Level.WARNING,
)
EXPORTED = AuditCheck(
    id="exporter/exported-labels",
    verdict="exported-labels",
    rule="`pod` on a row is the pod that holds the device.",
    fix="honorLabels: true at the ServiceMonitor (honor_labels in the scrape configuration)",
    level=Level.WARNING,
)
OLD_NAMES = AuditCheck(
    id="exporter/old-names",
    verdict="old-names",
    rule="Metrics and labels have their present names, so that rules written for these meet them.",
    fix="leave DCGM_EXPORTER_USE_OLD_NAMESPACE and the 1.x file of counters, or write rules for these names",
    level=Level.WARNING,
)
BOTH_HOSTS = AuditCheck(
    id="exporter/both-host-labels",
    verdict="two-spellings",
    rule="The host has one label in all rows.",
    fix="bring all exporters to one release (Hostname became hostname after 4.5.3-4.8.2), or join by instance",
    level=Level.WARNING,
)
MIG_REPEATS = AuditCheck(
    id="exporter/device-figure-on-instances",
    verdict="double-count",
    rule="A figure of the whole device stands on one row, not on each of its MIG instances.",
    fix="take max by (UUID) of it, and never a sum over instances",
    level=Level.WARNING,
)
NO_UID = AuditCheck(
    id="exporter/empty-pod-uid",
    verdict="no-access",
    rule="Where pod_uid is emitted it is filled, since processes are mapped by it.",
    fix="give the exporter's service account get, list and watch of pods, and mount its token",
    level=Level.WARNING,
)
STALE_POD = AuditCheck(
    id="exporter/stale-pod",
    verdict="stale",
    rule="A pod on a row is there and has not ended.",
    fix="end rows by the pod's own end (join with kube_pod_status_phase); the kubelet lists ended pods for a while",
    level=Level.ERROR,
)
MISSING_POD = AuditCheck(
    id="exporter/missing-pod",
    verdict="missing",
    rule="Each running pod that asked for a GPU on a scraped host stands on some row.",
    fix="KUBERNETES_VIRTUAL_GPUS=true for shared devices, and NVIDIA_RESOURCE_NAMES for renamed resources",
    level=Level.ERROR,
)
STUCK = AuditCheck(
    id="exporter/nothing-moved",
    verdict="stale",
    rule="Between two scrapes of busy devices some figure moves.",
    fix="wait longer than its own interval (30 s by default); if still nothing moves, restart its host engine",
    level=Level.WARNING,
)
VERSION = AuditCheck(
    id="exporter/version-against-behaviour",
    verdict="contradiction",
    rule="An exporter whose version can map processes does so.",
    fix="the version is not enough: KUBERNETES_VIRTUAL_GPUS=true, hostPID, and access to pods are needed too",
    level=Level.WARNING,
)
OTHER_EXPORTER = AuditCheck(
    id="exporter/other-exporter",
    verdict="other-exporter",
    rule="The endpoint is a dcgm-exporter, whose figures these rules know.",
    fix="point the audit at the dcgm-exporter; for others read what their figures mean before you bill by them",
    level=Level.WARNING,
)
NOTHING = AuditCheck(
    id="exporter/no-gpu-figures",
    verdict="nothing",
    rule="The endpoint emits figures of GPUs.",
    fix="see its log; with virtual GPUs on, releases before 4.4.1-4.5.2 say nothing while no pod holds one (#549)",
    level=Level.ERROR,
)
CUT = AuditCheck(
    id="exporter/answer-cut",
    verdict="cut",
    rule="The endpoint sends the whole of its answer.",
    fix="audit again; if it stays so, look at the exporter's memory limit and its log, and at the scrape's own timeout",
    level=Level.ERROR,
)
UNDECIDED = AuditCheck(
    id="exporter/cannot-tell",
    verdict="cannot-tell",
    rule="A scrape shows whether its figures on pods are of processes or of devices.",
    fix="scrape while two pods of one device are busy, each differently",
    level=Level.NOTE,
)

CHECKS: tuple[AuditCheck, ...] = (
    CUT,
    NOTHING,
    OTHER_EXPORTER,
    DEVICE_SCOPE,
    ONE_POD,
    UNDECIDED,
    PROFILING,
    PROFILING_ONE,
    DEVICE_FIGURES,
    JOBS,
    DOUBLE_COUNT,
    REPLICA_ROWS,
    TWO_EXPORTERS,
    REPEATED,
    ABOVE_DEVICE,
    MIG_REPEATS,
    BLANK,
    UNMAPPED,
    WORK_UNMAPPED,
    ZERO_UNDER_WORK,
    ZERO_POD,
    RESERVATION,
    STALE_POD,
    MISSING_POD,
    BUSY_UNNAMED,
    NO_PODS,
    NO_UID,
    EXPORTED,
    OLD_NAMES,
    BOTH_HOSTS,
    STUCK,
    VERSION,
)
"""Every rule of this audit."""
