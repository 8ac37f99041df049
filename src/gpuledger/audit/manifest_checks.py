"""The rules of ``audit manifests``: what an exporter needs so that a figure on a pod is that pod's own.

Facts: dcgm-exporter #594 (first in 4.5.3-4.8.2) and its behaviour as read in source, ``FACTS`` A.2.
"""

from __future__ import annotations

from gpuledger.model.findings import AuditCheck, Level

KUBERNETES_OFF = AuditCheck(
    id="manifests/kubernetes-off",
    verdict="kubernetes-off",
    rule="The exporter is told to ask the kubelet who holds a device: DCGM_EXPORTER_KUBERNETES is true.",
    fix="Set the environment variable DCGM_EXPORTER_KUBERNETES to true.",
    level=Level.ERROR,
)
ONE_POD_PER_GPU = AuditCheck(
    id="manifests/one-pod-per-gpu",
    verdict="one-pod-per-gpu",
    rule="The exporter is told that devices are shared: KUBERNETES_VIRTUAL_GPUS is true.",
    fix="Set the environment variable KUBERNETES_VIRTUAL_GPUS to true.",
    level=Level.ERROR,
)
NO_HOST_PID = AuditCheck(
    id="manifests/no-host-pid",
    verdict="no-host-pid",
    rule="The exporter sees the processes of the host: hostPID is true.",
    fix="Set hostPID: true for the pod; its namespace must then admit privileged pods (see --draft).",
    level=Level.ERROR,
)
NO_POD_UID = AuditCheck(
    id="manifests/no-pod-uid",
    verdict="no-pod-uid",
    rule="The exporter asks for the UID of each pod: DCGM_EXPORTER_KUBERNETES_ENABLE_POD_UID is true.",
    fix="Set DCGM_EXPORTER_KUBERNETES_ENABLE_POD_UID to true; in chart values, enablePodUID.",
    level=Level.ERROR,
)
NO_TOKEN = AuditCheck(
    id="manifests/no-token",
    verdict="no-token",
    rule="The exporter has a token with which to ask the API for pods.",
    fix="Set automountServiceAccountToken: true.",
    level=Level.ERROR,
)
NO_ACCESS = AuditCheck(
    id="manifests/no-access",
    verdict="no-access",
    rule="The exporter's account may get, list and watch pods of all namespaces.",
    fix="Bind its account to a ClusterRole with get, list and watch on pods.",
    level=Level.ERROR,
)
ACCESS_UNSEEN = AuditCheck(
    id="manifests/access-unseen",
    verdict="access-unseen",
    rule="The texts show that the exporter's account may read pods.",
    fix="Audit its ClusterRole and binding too, or ask: kubectl auth can-i list pods -A --as ACCOUNT.",
    level=Level.WARNING,
)
NO_POD_RESOURCES = AuditCheck(
    id="manifests/no-pod-resources",
    verdict="no-pod-resources",
    rule="The kubelet's pod-resources socket is mounted where the exporter looks for it.",
    fix="Mount the host's /var/lib/kubelet/pod-resources at the same place.",
    level=Level.ERROR,
)
RESOURCE_NAMES = AuditCheck(
    id="manifests/resource-names",
    verdict="resource-names",
    rule="Every resource name under which pods get devices is in NVIDIA_RESOURCE_NAMES, beside nvidia.com/gpu and MIG.",
    fix="Add the names to the environment variable NVIDIA_RESOURCE_NAMES, with commas between them.",
    level=Level.ERROR,
)
RESOURCE_NAMES_UNSET = AuditCheck(
    id="manifests/resource-names-unset",
    verdict="resource-names-unset",
    rule="Where a device plugin renames its resources, NVIDIA_RESOURCE_NAMES says so.",
    fix="If renameByDefault or rename is used anywhere, set NVIDIA_RESOURCE_NAMES, as nvidia.com/gpu.shared.",
    level=Level.NOTE,
)
TOO_OLD = AuditCheck(
    id="manifests/too-old",
    verdict="too-old",
    rule="The exporter's version can tell the processes of one device apart: 4.5.3-4.8.2 or newer.",
    fix="Use an image of 4.5.3-4.8.2 or newer.",
    level=Level.ERROR,
)
VERSION_UNKNOWN = AuditCheck(
    id="manifests/version-unknown",
    verdict="version-unknown",
    rule="The manifest names the exporter's version.",
    fix="Pin a tag such as 4.5.3-4.8.2-distroless, and see what it really does: gpuledger audit exporter URL.",
    level=Level.WARNING,
)
DRA_OFF = AuditCheck(
    id="manifests/dra-off",
    verdict="dra-off",
    rule="Where pods get devices by resource claims, the exporter maps them: KUBERNETES_ENABLE_DRA is true.",
    fix="Set KUBERNETES_ENABLE_DRA to true, with access to resourceslices (values: kubernetesDRA.enabled).",
    level=Level.ERROR,
)
OLD_NAMES = AuditCheck(
    id="manifests/old-names",
    verdict="old-names",
    rule="The exporter uses today's names: DCGM_EXPORTER_USE_OLD_NAMESPACE is not set.",
    fix="Remove DCGM_EXPORTER_USE_OLD_NAMESPACE (or -o), and mend what reads pod_name and dcgm_*.",
    level=Level.WARNING,
)
FAKE_GPUS = AuditCheck(
    id="manifests/fake-gpus",
    verdict="fake-gpus",
    rule="The exporter reads real devices: DCGM_EXPORTER_USE_FAKE_GPUS is not set.",
    fix="Remove DCGM_EXPORTER_USE_FAKE_GPUS (or --fake-gpus).",
    level=Level.ERROR,
)
NO_PROFILING = AuditCheck(
    id="manifests/no-profiling",
    verdict="no-profiling",
    rule="An exporter that collects DCGM_FI_PROF_* has the capability that the driver asks for it, SYS_ADMIN.",
    fix="Add the capability SYS_ADMIN, or collect fields without DCGM_FI_PROF_*.",
    level=Level.WARNING,
)
RENAMED_LABELS = AuditCheck(
    id="manifests/honor-labels",
    verdict="honor-labels",
    rule="Prometheus keeps the exporter's own pod label: the ServiceMonitor has honorLabels: true.",
    fix="Set honorLabels: true, or read exported_pod and exported_namespace everywhere.",
    level=Level.WARNING,
)
NEEDS_PRIVILEGED = AuditCheck(
    id="manifests/needs-privileged",
    verdict="needs-privileged",
    rule="The namespace of an exporter that maps processes is known to need the Pod Security level privileged.",
    fix="Give its namespace an exception with an owner and an end: --draft plain or --draft kyverno.",
    level=Level.NOTE,
)
REJECTED = AuditCheck(
    id="manifests/rejected",
    verdict="rejected",
    rule="The Pod Security level that the namespace enforces admits the exporter.",
    fix="Give the namespace an exception with an owner and an end: --draft plain or --draft kyverno.",
    level=Level.ERROR,
)
CONSTRAINED = AuditCheck(
    id="manifests/constrained",
    verdict="constrained",
    rule="On OpenShift, a SecurityContextConstraints that the exporter's account may use admits its pod.",
    fix="Set allowHostPID: true and what else is told in the constraint of its account, for this account alone.",
    level=Level.ERROR,
)
EXCEPTION_UNSIGNED = AuditCheck(
    id="manifests/exception-unsigned",
    verdict="exception-unsigned",
    rule="An exception from Pod Security names who answers for it and when it ends.",
    fix="Set the annotations gpuledger/exception-owner and gpuledger/exception-until; --draft writes them.",
    level=Level.WARNING,
)
EXCEPTION_OVER = AuditCheck(
    id="manifests/exception-over",
    verdict="exception-over",
    rule="An exception from Pod Security has not passed its end.",
    fix="Take the exception back, or sign it again with a new end.",
    level=Level.ERROR,
)
UNDECIDABLE = AuditCheck(
    id="manifests/undecidable",
    verdict="undecidable",
    rule="The texts tell every setting that the attribution rests on.",
    fix="Audit what is applied: helm template ... | gpuledger audit manifests -, or kubectl get daemonset -o yaml.",
    level=Level.WARNING,
)

CHECKS: tuple[AuditCheck, ...] = (
    KUBERNETES_OFF, ONE_POD_PER_GPU, NO_HOST_PID, NO_POD_UID, NO_TOKEN, NO_ACCESS, ACCESS_UNSEEN, NO_POD_RESOURCES,
    RESOURCE_NAMES, RESOURCE_NAMES_UNSET, TOO_OLD, VERSION_UNKNOWN, DRA_OFF, OLD_NAMES, FAKE_GPUS, NO_PROFILING,
    RENAMED_LABELS, REJECTED, CONSTRAINED, NEEDS_PRIVILEGED, EXCEPTION_UNSIGNED, EXCEPTION_OVER, UNDECIDABLE,
)  # fmt: skip
"""Every check of this audit."""
