"""The checks of ``audit dashboards``, all of them, the heaviest first."""

from __future__ import annotations

from gpuledger.model.findings import AuditCheck, Level

_PER_DEVICE = "show it by Hostname and gpu"
_INSTEAD = "put DCGM_FI_DEV_GPU_UTIL or DCGM_FI_DEV_FB_USED of an exporter with process mapping in its place"

MISATTRIBUTION = AuditCheck(
    id="dashboards/misattribution",
    verdict="misattribution",
    rule="A profiling figure (DCGM_FI_PROF_*) is a whole device's, so it is never given as that of a pod, namespace, "
    "container or other workload.",
    fix=f"{_PER_DEVICE[0].upper()}{_PER_DEVICE[1:]}, or {_INSTEAD}; waive it where each pod owns its GPUs whole.",
    level=Level.ERROR,
)
LAUNDERED = AuditCheck(
    id="dashboards/laundered",
    verdict="laundered",
    rule="A profiling figure that recording rules have renamed is a whole device's still, and is given to no workload.",
    fix="Aggregate the workload's labels away in the rule that records it, or record DCGM_FI_DEV_GPU_UTIL of an "
    "exporter with process mapping instead.",
    level=Level.ERROR,
)
JOB_LEVEL = AuditCheck(
    id="dashboards/job-level",
    verdict="job-level",
    rule="A profiling figure averaged over the devices of a job is the job's only where no other job had part of them.",
    fix="Say in the panel that the job has its GPUs whole and waive it, or show it by Hostname and gpu.",
    level=Level.WARNING,
)
UNDECIDABLE = AuditCheck(
    id="dashboards/undecidable",
    verdict="undecidable",
    rule="Every figure that names a workload can be followed to the metric that it comes from.",
    fix="Give the file that records the name, write the metric and the labels out, or group by Hostname and gpu.",
    level=Level.WARNING,
)
RENAMED = AuditCheck(
    id="dashboards/renamed",
    verdict="laundered",
    rule="A recording rule that gives a profiling metric another name drops the workload's labels, since its readers "
    "cannot see whose figure it is.",
    fix="Aggregate them away: avg by (Hostname, gpu) (...), or keep DCGM_FI_PROF in the name.",
    level=Level.WARNING,
)
DEVICE_SCOPE = AuditCheck(
    id="dashboards/device-scope",
    verdict="device-scope",
    rule="A device's figure (DCGM_FI_DEV_*, nvidia_smi_* and the like) is given to a workload only where the exporter "
    "maps processes to pods, and then only GPU_UTIL and FB_USED.",
    fix="Run dcgm-exporter 4.5.3 or later with KUBERNETES_VIRTUAL_GPUS and hostPID (`gpuledger audit exporter` tells), "
    "show other figures by Hostname and gpu, or waive it where each pod owns its GPUs whole.",
    level=Level.WARNING,
)
RULE_CYCLE = AuditCheck(
    id="dashboards/rule-cycle",
    verdict="undecidable",
    rule="Recording rules do not record each other in a ring.",
    fix="Let one of them read the metric itself.",
    level=Level.WARNING,
)
PRESENCE_ONLY = AuditCheck(
    id="dashboards/presence-only",
    verdict="presence-only",
    rule="A profiling metric that only tells which workload has a row says nothing about use: one row for each pod "
    "that shares the device.",
    fix="Count kube_pod_container_resource_requests, or the metric by UUID, where allocation is meant.",
    level=Level.NOTE,
)
SHOWN_BY_DEFAULT = AuditCheck(
    id="dashboards/shown-by-default",
    verdict="undecidable",
    rule="A panel of a profiling metric says which labels it prints, since by default it prints the pod too.",
    fix="Write a legend such as {{Hostname}} GPU {{gpu}}, or aggregate by (Hostname, gpu).",
    level=Level.NOTE,
)

CHECKS: tuple[AuditCheck, ...] = (
    MISATTRIBUTION,
    LAUNDERED,
    JOB_LEVEL,
    UNDECIDABLE,
    RENAMED,
    DEVICE_SCOPE,
    RULE_CYCLE,
    PRESENCE_ONLY,
    SHOWN_BY_DEFAULT,
)
"""In the order in which one counts where a query meets several."""
