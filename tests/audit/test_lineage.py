"""Queries, each with its verdict: what is asked for by pod, and what only looks as if it were."""

from __future__ import annotations

import json
import re

import pytest

from gpuledger.audit.dashboards import audit_dashboards
from gpuledger.audit.lineage import Lineage, Rule
from gpuledger.audit.promql import parse
from gpuledger.audit.query_text import Prepared
from gpuledger.model.findings import Written

# P stands for a profiling metric. One query a line, its verdict behind the arrow.
CASES = r"""
avg by (pod) (P)                                                              -> misattribution
avg(P)                                                                        -> fine
P                                                                             -> fine
P{pod=""}                                                                     -> fine
P{pod!=""}                                                                    -> fine
avg(P{pod!="",namespace!=""})                                                 -> fine
avg(P{pod="a"})                                                               -> misattribution
avg(P{pod=~".+"})                                                             -> fine
avg(P{namespace=~"team-.*"})                                                  -> misattribution
avg(P{namespace!~"kube-system"})                                              -> fine
avg(P{namespace="gpu-operator"})                                              -> fine
avg by (pod) (P{pod=~"nvidia-dcgm-exporter-.*"})                              -> fine
avg by (exported_pod) (P{namespace="gpu-operator"})                           -> misattribution
avg by (Hostname, gpu) (P)                                                    -> fine
avg by (pod) (avg by (Hostname) (P))                                          -> fine
avg(avg by (pod) (P))                                                         -> fine
max by (pod) (label_replace(P, "pod", "$1", "exported_pod", "(.+)"))          -> misattribution
avg by (app) (label_replace(P, "app", "$1", "pod", "(.*)-.*"))                -> misattribution
avg by (svc) (label_replace(P, "svc", "$1", "pod", "(.*)-.*"))                -> misattribution
avg by (svc) (label_join(P, "svc", "/", "namespace", "pod"))                  -> misattribution
avg by (node) (label_replace(P, "node", "$1", "Hostname", "(.+)"))            -> fine
P * on(UUID) group_left(pod, namespace) gpu_pod_map                           -> misattribution
avg by (Hostname) (P) * on(Hostname) group_left(pod) hosts                    -> misattribution
kube_pod_info * on(node) group_left() avg by (node) (P)                       -> misattribution
avg(P * on(Hostname) group_left(node) kube_node_info)                         -> fine
P and on(pod, namespace) kube_pod_labels{label_team="x"}                      -> misattribution
avg(P and on(pod, namespace) kube_pod_labels{label_team="x"})                 -> misattribution
avg(P and on(pod, namespace) kube_pod_status_phase{phase="Running"})          -> fine
count by (pod) (P)                                                            -> presence-only
count(P)                                                                      -> fine
group by (pod) (P)                                                            -> presence-only
sum by (pod) (P * 0 + 1)                                                      -> presence-only
sum by (pod) (clamp_max(P, 0) + 1)                                            -> presence-only
sum by (pod) (clamp_max(P + 1, 1))                                            -> presence-only
sum by (pod) (clamp(P, 2, 2))                                                 -> presence-only
sum by (pod) (P >= bool 0)                                                    -> presence-only
sum by (pod) (P > bool 0)                                                     -> misattribution
count by (pod) (P > 0)                                                        -> misattribution
count by (pod) (P >= 0)                                                       -> presence-only
sum by (pod) (P / P)                                                          -> presence-only
sum by (pod) (P ^ 0)                                                          -> presence-only
sum by (pod) (P - P + 1)                                                      -> presence-only
avg by (pod) ((P > 0.5) * 0 + 1)                                              -> misattribution
present_over_time(P{pod="x"}[5m])                                             -> presence-only
absent(P{pod="x"})                                                            -> presence-only
absent(P)                                                                     -> fine
kube_pod_info and on(pod) P                                                   -> presence-only
kube_pod_info and on(pod) (P > 0.9)                                           -> misattribution
timestamp(P{pod="x"})                                                         -> presence-only
topk(3, avg_over_time(P{namespace="a"}[1h] offset 1d))                        -> misattribution
max_over_time((avg by (pod) (P))[1h:5m])                                      -> misattribution
max_over_time(avg by (pod) (P)[1h:5m] @ end())                                -> misattribution
sum without (gpu, UUID, device, Hostname, instance) (P)                       -> misattribution
sum without (pod, namespace, container, exported_pod, exported_namespace, exported_container) (P) -> fine
sum without (instance) (P)                                                    -> fine
avg without (gpu) (P)                                                         -> undecidable
topk(5, P) by (pod)                                                           -> misattribution
sort_by_label(P, "pod")                                                       -> misattribution
avg by (job) (P)                                                              -> job-level
avg by (hpc_job) (P)                                                          -> job-level
avg by (job, instance) (P)                                                    -> fine
avg(P{hpc_job="$j"})                                                          -> job-level
avg by (hpc_job, pod) (P)                                                     -> misattribution
avg by (pod, __name__) ({__name__=~"DCGM_FI_PROF_.*"})                        -> misattribution
avg by (pod) ({__name__="DCGM_FI_PROF_SM_ACTIVE"})                            -> misattribution
avg by (pod) ({"DCGM_FI_PROF_SM_ACTIVE"})                                     -> misattribution
avg by (pod) ({__name__=~"DCGM_FI_(DEV|PROF)_.+"})                            -> misattribution
avg by (pod) ({__name__=~"DCGM_FI_DEV_.+"})                                   -> device-scope
avg by (pod) ({__name__=~".*_SM_ACTIVE"})                                     -> misattribution
avg by (pod) ({__name__=~".+"})                                               -> undecidable
sum by (pod) ({job="dcgm-exporter"})                                          -> undecidable
sum by (pod) (DCGM_FI_DEV_GPU_UTIL)                                           -> device-scope
count by (pod) (DCGM_FI_DEV_GPU_UTIL)                                         -> fine
avg by (GPU_I_PROFILE) (DCGM_FI_DEV_FB_USED)                                  -> fine
avg by (exported_pod) (P{GPU_I_ID!=""})                                       -> undecidable
avg by (exported_pod) (P{GPU_I_PROFILE="1g.5gb"})                             -> undecidable
avg by (pod) (P{GPU_I_ID=""})                                                 -> misattribution
WITH (f = {namespace="a"}, u(m) = avg by (pod) (m{f})) u(P) * 100             -> misattribution
WITH (x = P) count(x) by (pod)                                                -> presence-only
rate(P{exported_pod="x"}) default 0                                           -> misattribution
label_move(P, "pod", "p") keep_metric_names                                   -> fine
avg(label_move(P, "pod", "p")) by (p)                                         -> misattribution
label_set(avg(P), "pod", "all")                                               -> misattribution
avg(label_del(P, "pod")) by (pod)                                             -> fine
P if on(pod) kube_pod_info{pod="x"}                                           -> misattribution
sum by (pod) (kube_pod_info) or avg(P)                                        -> fine
avg(P) / scalar(count(kube_pod_info{namespace="x"}))                          -> fine
sum(kube_pod_info{namespace="x"}) * scalar(avg(P))                            -> fine
count(count by (pod) (P))                                                     -> fine
avg by ($group) (P)                                                           -> undecidable
avg by (pod) ($metric)                                                        -> undecidable
avg by (pod) (DCGM_FI_PROF_$m)                                                -> misattribution
avg by (pod) (P) > $threshold                                                 -> misattribution
topk($n, avg by (pod) (P))                                                    -> misattribution
rate(P{pod=~"[[pod]]"}[[[interval]]])                                         -> misattribution
sum(P{$filter})                                                               -> fine
$fn(P) by (pod)                                                               -> misattribution
max_over_time(P{pod=~"${pod:regex}"}[${__range_s}s] offset $off)              -> misattribution
avg(avg_over_time(P[%s])) by (pod, %s)                                        -> misattribution
quantile by (namespace) (0.9, P)                                              -> misattribution
sum by (namespace) (P) / on(namespace) group_left sum by (namespace) (up)     -> misattribution
scalar(P{pod="x"})                                                            -> misattribution
avg by (label_team) (P * on(pod) group_left(label_team) kube_pod_labels)      -> misattribution
accelerator_gpu_utilization{namespace="x"}                                    -> device-scope
avg by (pod) (namespace:gpu_tensor:avg)                                       -> undecidable
avg by (modelName) (P)                                                        -> fine
avg by (pod_name) (dcgm_fi_prof_sm_active)                                    -> misattribution
-avg by (pod) (P)                                                             -> misattribution
avg by (node) (P * on(pod, namespace) group_left(node) kube_pod_info{pod=~"nvidia-dcgm-exporter.*"}) -> fine
sum by (pod) (rate(container_cpu_usage_seconds_total{pod="x"}[5m]))           -> fine
kube_pod_info * scalar(avg(P))                                                -> misattribution
aggr_over_time(("min_over_time", "max_over_time"), P{pod="x"}[5m])            -> misattribution
sum by (k8s_pod_name) (info(P))                                               -> misattribution
vector(scalar(avg(P{pod="x"})))                                               -> misattribution
kube_pod_info * (scalar(avg(P)) / 2)                                          -> misattribution
sum by (queue) (P * on(pod) group_left(queue) pod_queue)                      -> misattribution
sum by (purpose) (P * on(pod) group_left(purpose) pod_purpose)                -> misattribution
sum by (rack) (P * on(pod, namespace) group_left(rack) pod_rack)              -> fine
avg by (purpose) (P)                                                          -> undecidable
avg by (label_team) (P * on(node) group_left(label_team) kube_node_labels)    -> fine
avg by (label_team) (P * on(node) group_left(label_team) max by (node, label_team) (kube_node_labels)) -> fine
avg(P * on(node) group_left() kube_node_labels{label_team="x"})               -> fine
avg by (label_team) (P * on(pod) group_left(label_team) kube_pod_labels)      -> misattribution
avg(P{pod=~"|.+"})                                                            -> fine
avg(P{pod=~"[^/]*|a/b.*|.*"})                                                 -> fine
avg(P{pod=~"[a-z].*"})                                                        -> misattribution
avg by (node_group) (P)                                                       -> fine
avg(P{app="nvidia-dcgm-exporter", container="exporter"})                      -> fine
avg(P{app="trainer"})                                                         -> misattribution
avg by (pod) (dcgm_sm_active)                                                 -> misattribution
"""

# What other exporters have, and what jobs and machines are called elsewhere.
ELSEWHERE = r"""
avg by (pod) (nvidia_smi_utilization_gpu_ratio)                               -> device-scope
avg by (Hostname) (nvidia_smi_utilization_gpu_ratio)                          -> fine
nvidia_smi_power_draw_watts * on(uuid) group_left(pod) gpu_pod_map            -> device-scope
nvidia_smi_power_draw_watts * on(uuid) group_left(name) nvidia_smi_gpu_info   -> fine
sum by (namespace) (nvidia_gpu_duty_cycle)                                    -> device-scope
avg(container_accelerator_duty_cycle)                                         -> fine
container_accelerator_duty_cycle                                              -> device-scope
avg by (job_user) (gpu_gfx_activity)                                          -> device-scope
avg by (kube_pod) (xpum_engine_ratio)                                         -> device-scope
{__name__=~"nvidia_smi_.*", pod="x"}                                          -> device-scope
HostCoreUtilization * on(deviceuuid) group_left(podname) vGPU_device_memory_usage_in_bytes -> device-scope
avg by (podname) (Device_utilization_desc_of_container)                       -> fine
avg by (pod) (hami_container_device_utilization_ratio)                        -> fine
avg by (pod) (DCGM_CUSTOM_PROCESS_SM_UTIL)                                    -> fine
sum by (pod) (dcgm_exporter_scrape_errors_total)                              -> fine
sum by (namespace) (container_gpu_allocation * on(node) group_left() node_gpu_hourly_cost) -> fine
sum by (namespace) (container_gpu_allocation * on(node) group_left() avg by (node) (P)) -> misattribution
P * on(gpuuuid) group_right() ceems_compute_unit_gpu_index_flag               -> job-level
avg by (uuid) (P * on(gpuuuid) group_right() ceems_compute_unit_gpu_index_flag) -> job-level
avg by (Hostname) (P * on(gpuuuid) group_right() ceems_compute_unit_gpu_index_flag) -> fine
avg by (jobid) (P * on(UUID) group_right() batchjob_slurm_job_gpu_index_flag) -> job-level
P * on(UUID) group_left() (nvidia_gpu_jobId == 42)                            -> job-level
avg(nvidia_gpu_duty_cycle and nvidia_gpu_jobId == 42)                         -> device-scope
avg(nvidia_gpu_duty_cycle and nvidia_gpu_jobId > 0)                           -> fine
"""


def _cases() -> list[tuple[str, str]]:
    pairs = [line.rsplit("->", 1) for table in (CASES, ELSEWHERE) for line in table.strip().splitlines()]
    return [(query.strip(), verdict.strip()) for query, verdict in pairs]


@pytest.mark.parametrize(("query", "verdict"), _cases())
def test_a_query_has_its_verdict(query: str, verdict: str) -> None:
    """Each is one line of the table above."""
    text = re.sub(r"\bP\b", "DCGM_FI_PROF_SM_ACTIVE", query)
    report = audit_dashboards([Written(path="q.yaml", text=f"queries: {{q: {json.dumps(text)}}}")])
    assert report.unread == ()
    assert [looked.verdict for looked in report.looked] == [verdict]


def _rule(record: str, text: str) -> Rule:
    return Rule(record=record, tree=parse(text)[0], prepared=Prepared(text=text))


def test_the_chain_of_rules_is_told_nearest_first() -> None:
    """From the name that is read to the metric."""
    lineage = Lineage([_rule("b", "a"), _rule("a", "DCGM_FI_PROF_SM_ACTIVE"), _rule("c", "b * 2")])
    (branch,) = lineage.recorded_as("c")
    assert [(flow.chain, flow.metric) for flow in branch.flows] == [(("c", "b", "a"), "DCGM_FI_PROF_SM_ACTIVE")]


def test_a_name_recorded_twice_is_both() -> None:
    """One rule for each vendor: the branch of one does not hide the other's."""
    lineage = Lineage([_rule("busy", "other_gpu_busy"), _rule("busy", "avg by (pod) (DCGM_FI_PROF_SM_ACTIVE)")])
    assert [bool(branch.flows) for branch in lineage.recorded_as("busy")] == [False, True]


def test_a_hundred_alternatives_hide_nothing() -> None:
    """The last of a hundred `or` is followed as the first is."""
    text = " or ".join([*(f"avg by (pod) (x{n})" for n in range(99)), "avg by (pod) (DCGM_FI_PROF_SM_ACTIVE)"])
    report = audit_dashboards([Written(path="q.yaml", text=f"queries: {{q: {json.dumps(text)}}}")])
    assert report.looked[0].verdict == "misattribution"


def test_rules_that_read_each_other_twice_take_no_longer_than_a_chain() -> None:
    """Two hundred of them have more ways to the metric than can be counted; one way is told, and it is found."""
    rules = [f"  - {{record: 'r:{each}', expr: 'r:{each + 1} + r:{each + 1} + r:{each + 2}'}}" for each in range(200)]
    ends = [f"  - {{record: 'r:{each}', expr: 'DCGM_FI_PROF_SM_ACTIVE'}}" for each in (200, 201)]
    last = "  - {record: 'pod:r', expr: 'sum by (pod) (r:0)'}"
    text = "\n".join(["groups:", "- name: a", "  rules:", *rules, *ends, last])
    report = audit_dashboards([Written(path="fan.yaml", text=text)])
    assert "laundered" in {finding.check.verdict for finding in report.findings}
