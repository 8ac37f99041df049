"""Keys that hold queries, and texts that only speak of metrics."""

from __future__ import annotations

import pytest

from gpuledger.audit.query_places import (
    CERTAIN,
    MAY_HOLD,
    POSSIBLE,
    PROSE,
    asked_by,
    asks_at,
    is_document,
    language_of,
    might_be_query,
    said_by,
)


def test_no_key_is_both_certain_and_prose() -> None:
    """What holds a query is no description."""
    assert not CERTAIN & POSSIBLE
    assert not MAY_HOLD & PROSE


def test_a_list_of_counters_is_no_query() -> None:
    """A metric with brackets or a grouping may be one."""
    assert not might_be_query("DCGM_FI_PROF_SM_ACTIVE, gauge, ratio")
    assert not might_be_query("DCGM_FI_PROF_SM_ACTIVE, gauge, The ratio (a warp) of")
    assert not might_be_query("registry.example/k8s/dcgm-exporter@sha256:ab (x)")
    assert not might_be_query("sum by (pod) (up)")
    assert might_be_query("avg by (pod) (DCGM_FI_PROF_SM_ACTIVE)")


def test_labels_that_an_alert_prints() -> None:
    """In each of the ways of a template; a dump of all of them names none."""
    texts = {
        "a": "{{ $labels.pod }} {{ .Labels.namespace }}",
        "c": '{{ index .Labels "container" }}',
        "b": '{{ index $labels "exported_pod" }} {{ $labels }} {{ $labels.job }}',
    }
    assert [label for label, _ in said_by({"annotations": texts})] == [
        "pod",
        "namespace",
        "container",
        "exported_pod",
    ]
    assert said_by({}) == []


def test_queries_that_an_alert_s_text_asks() -> None:
    """Quoted or raw, by itself or put together."""
    said = '{{ with query "avg(x{a=\\"b\\"})" }}{{ end }} {{ query `sum(y)` }} {{ query (printf "z{a=%q}" .A) }} query'
    assert asked_by({"annotations": {"d": said, "n": 3}}) == ['avg(x{a="b"})', "sum(y)", "z{a=%q}"]


@pytest.mark.parametrize(
    ("query", "language"),
    [
        ("avg:dcgm.sm_active{*} by {pod_name}", "Datadog"),
        ("abs(avg:dcgm.power_usage{$project} by {user})", "Datadog"),
        ("SEARCH('{ContainerInsights} pod_gpu', 'Average')", "CloudWatch"),
        ("SELECT average(gpu) FROM Metric FACET pod", "SQL or NRQL"),
        ("A = data('DCGM_FI_PROF_SM_ACTIVE').mean(by=['k8s.pod.name'])", "Splunk"),
        ('from(bucket: "x") |> range(start: -1h)', "MQL or Flux"),
        ("avg by (pod) (DCGM_FI_PROF_SM_ACTIVE)", ""),
        ("sum:rate:x", ""),
    ],
)
def test_languages_by_how_they_begin(query: str, language: str) -> None:
    """Only of what is no PromQL this is asked."""
    assert language_of(query) == language


def test_a_text_that_reads_like_a_query() -> None:
    """The line of a metric in or before brackets; a list of counters has none."""
    assert asks_at("# a\n\n    avg by (pod) (DCGM_FI_PROF_SM_ACTIVE)\n") == 3
    assert asks_at("x\nrun nvidia_smi_memory_used_bytes{pod='a'}") == 2
    assert asks_at("DCGM_FI_PROF_SM_ACTIVE, gauge, The ratio of cycles (a warp) assigned") == 0
    assert asks_at("rate(up[5m]) of dcgm") == 0


def test_texts_that_are_documents() -> None:
    """JSON, objects of Kubernetes, groups of rules; no prose."""
    for text in ('{"panels": []}', "apiVersion: v1", "groups:\n- name: x", "  - expr: up"):
        assert is_document(text + "\n")
    assert not is_document("some words\nand more of them")
