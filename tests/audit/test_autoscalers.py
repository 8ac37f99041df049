"""Metrics that an autoscaler reads, as queries."""

from __future__ import annotations

from gpuledger.audit.autoscalers import is_autoscaler, queries


def _read(*metrics: dict[str, object]) -> list[tuple[str, list[str]]]:
    scaler = {"kind": "HorizontalPodAutoscaler", "metadata": {"name": "llm"}, "spec": {"metrics": list(metrics)}}
    assert is_autoscaler(scaler)
    return [(str(text), [label for label, _ in shown.labels]) for _, text, shown in queries(scaler)]


def test_a_metric_of_pods_is_read_of_each_pod() -> None:
    """In the API of today and in the one before."""
    today = {"type": "Pods", "pods": {"metric": {"name": "DCGM_FI_PROF_X", "selector": {"matchLabels": {"gpu": "0"}}}}}
    before = {"type": "Pods", "pods": {"metricName": "DCGM_FI_PROF_X"}}
    assert _read(today, before) == [('DCGM_FI_PROF_X{gpu="0"}', ["pod"]), ("DCGM_FI_PROF_X", ["pod"])]


def test_a_metric_of_an_object_is_that_object_s() -> None:
    """A node is a place and no workload."""
    service = {"object": {"metric": {"name": "x"}, "describedObject": {"kind": "Service", "name": "s"}}}
    node = {"object": {"metric": {"name": "x"}, "describedObject": {"kind": "Node", "name": "n"}}}
    assert _read(service, node) == [("x", ["service"]), ("x", [])]


def test_an_external_metric_is_what_its_selector_leaves() -> None:
    """Google's adapter spells it with bars; labels of the resource are those of what was scraped."""
    labels = {"metric.labels.exported_pod": "a", "resource.labels.cluster": "c"}
    google = {
        "external": {
            "metric": {"name": "prometheus.googleapis.com|DCGM_FI_DEV_X|gauge", "selector": {"matchLabels": labels}}
        }
    }
    own = {"external": {"metric": {"name": "kubernetes.io|container|accelerator|duty_cycle"}}}
    assert _read(google, own) == [
        ('DCGM_FI_DEV_X{exported_pod="a"}', []),
        ("container_accelerator_duty_cycle", []),
    ]


def test_cpu_and_names_of_other_systems_are_left_alone() -> None:
    """Neither is a metric of Prometheus."""
    assert _read({"type": "Resource", "resource": {"name": "cpu"}}, {"external": {"metric": {"name": "a/b.c"}}}) == []
