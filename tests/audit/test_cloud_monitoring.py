"""Filters of Cloud Monitoring in the words of PromQL."""

from __future__ import annotations

from gpuledger.audit.cloud_monitoring import as_query, is_filter


def test_a_filter_becomes_a_selector() -> None:
    """Metric labels are matchers; what is grouped by is grouped by."""
    value = {
        "filter": 'metric.type="prometheus.googleapis.com/DCGM_FI_PROF_SM_ACTIVE/gauge" metric.labels.pod="a"',
        "aggregation": {
            "crossSeriesReducer": "REDUCE_COUNT",
            "groupByFields": ['metric.label."gpu"', "resource.label.pod"],
        },
    }
    assert is_filter(value)
    assert as_query(value)[0] == 'count by (gpu, __target_pod) (DCGM_FI_PROF_SM_ACTIVE{pod=~"a"})'


def test_without_a_reducer_nothing_is_grouped() -> None:
    """``REDUCE_NONE`` keeps each series."""
    value = {
        "filter": 'metric.type = "kubernetes.io/container/uptime"',
        "aggregation": {"crossSeriesReducer": "REDUCE_NONE"},
    }
    assert as_query(value)[0] == "uptime{}"


def test_a_figure_of_containers_is_their_own_resource_s() -> None:
    """GKE's metric of accelerators: the pod is a label of the resource, and no exporter's."""
    value = {
        "filter": 'metric.type="kubernetes.io/container/accelerator/duty_cycle" resource.label.pod_name="a"',
        "aggregation": {"crossSeriesReducer": "REDUCE_MEAN", "groupByFields": ["resource.label.namespace_name"]},
    }
    assert as_query(value)[0] == 'avg by (namespace_name) (container_accelerator_duty_cycle{pod_name=~"a"})'


def test_other_filters_are_none() -> None:
    """A filter of logs, and one too long to be anybody's."""
    assert not is_filter({"filter": "severity>=ERROR"})
    assert not is_filter({"filter": "metric.type=" + "x" * 30_000})
