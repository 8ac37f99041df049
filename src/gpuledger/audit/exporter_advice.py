"""What to change at an exporter, in order: a checklist made of what was found, nothing that is in order already."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gpuledger.audit import exporter_checks as checks
from gpuledger.audit.exporter_scope import Scope
from gpuledger.audit.exporter_scrape import Scrape
from gpuledger.audit.exporter_words import FIRST_MAPPING
from gpuledger.model.findings import Finding

_MAPPING = (
    f"Run dcgm-exporter {FIRST_MAPPING} or later (gpu-operator 26.3.2): no earlier release maps processes to pods.",
    "Set KUBERNETES_VIRTUAL_GPUS=true (--kubernetes-virtual-gpus) beside DCGM_EXPORTER_KUBERNETES=true.",
    "Set hostPID: true on its pods (Helm: hostPID, which is false by default): it reads /proc of the pods' processes.",
    (
        "Set DCGM_EXPORTER_KUBERNETES_ENABLE_POD_UID=true, and let its service account get, list and watch pods "
        "(a ClusterRole, automountServiceAccountToken: true)."
    ),
    "Where the device plugin renames (renameByDefault), set NVIDIA_RESOURCE_NAMES=nvidia.com/gpu.shared.",
)
_KUBERNETES = (
    "Set DCGM_EXPORTER_KUBERNETES=true, and mount /var/lib/kubelet/pod-resources read-only.",
    "Where resources have other names (nvidia.com/gpu.shared), list them in NVIDIA_RESOURCE_NAMES.",
    "On GKE set DCGM_EXPORTER_KUBERNETES_GPU_ID_TYPE=device-name: its plugin names devices nvidia0, not by UUID.",
)
_AFTER = "Then audit again while two pods of one device are busy: only figures that differ prove the mapping."


def checklist_of(scrape: Scrape, findings: Sequence[Finding]) -> tuple[str, ...]:
    """What to do, each one sentence.

    Args:
        scrape: the text.
        findings: those that stand.
    """
    struck = {finding.check.id for finding in findings}
    return tuple(dict.fromkeys(_steps(scrape, struck)))


def _steps(scrape: Scrape, struck: set[str]) -> Iterator[str]:
    scope = scrape.judgement.scope
    wants_mapping = scope in (Scope.DEVICE, Scope.MIXED) or checks.UNMAPPED.id in struck
    if struck & {checks.NO_PODS.id, checks.BUSY_UNNAMED.id, checks.NOTHING.id}:
        yield from _KUBERNETES
    if wants_mapping:
        yield from _MAPPING
    elif checks.MISSING_POD.id in struck:
        yield _MAPPING[1]
        yield _MAPPING[4]
    elif checks.NO_UID.id in struck:
        yield _MAPPING[3]
    if checks.EXPORTED.id in struck:
        yield "Set honorLabels: true on the ServiceMonitor or PodMonitor, so that pod is the holder's."
    if checks.OLD_NAMES.id in struck:
        yield "Unset DCGM_EXPORTER_USE_OLD_NAMESPACE, and use the present file of counters instead of the 1.x one."
    if checks.BOTH_HOSTS.id in struck:
        yield "Bring every exporter to one release, or copy hostname to Hostname by metricRelabelings until then."
    if checks.PROFILING.id in struck:
        yield (
            "Read DCGM_FI_PROF_.* as max by (UUID, GPU_I_ID), and blank its pod, namespace and container by "
            "metricRelabelings: no release splits these figures."
        )
    if struck & {checks.DOUBLE_COUNT.id, checks.REPLICA_ROWS.id}:
        yield 'Per pod: max by (UUID, namespace, pod) (METRIC{pod!=""}); per device: METRIC{pod=""}. Never add both up.'
    if checks.MIG_REPEATS.id in struck:
        yield "Power and energy under MIG: max by (UUID), since each instance repeats the device's figure."
    if checks.BLANK.id in struck:
        yield "Drop blanks in rules (METRIC < 1e12) until the exporter is new enough to leave them out."
    if checks.RESERVATION.id in struck:
        yield "Take who computes from the scheduler (Run:ai, KAI): its reservation pods hold devices for others."
    if checks.STALE_POD.id in struck:
        yield "Join figures with kube_pod_status_phase, so that rows of ended pods fall out."
    if wants_mapping:
        yield _AFTER
