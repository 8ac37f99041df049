"""Keys that hold queries, and texts that only speak of metrics."""

from __future__ import annotations

from gpuledger.audit.query_places import CERTAIN, DOCUMENT, MAY_HOLD, POSSIBLE, PROSE, might_be_query, said_by


def test_no_key_is_both_certain_and_prose() -> None:
    """What holds a query is no description."""
    assert not CERTAIN & POSSIBLE
    assert not MAY_HOLD & PROSE


def test_a_list_of_counters_is_no_query() -> None:
    """A metric with brackets or a grouping may be one."""
    assert not might_be_query("DCGM_FI_PROF_SM_ACTIVE, gauge, ratio")
    assert might_be_query("avg by (pod) (DCGM_FI_PROF_SM_ACTIVE)")


def test_labels_that_an_alert_prints() -> None:
    """In each of the ways of a template; a dump of all of them names none."""
    texts = {
        "a": "{{ $labels.pod }} {{ .Labels.namespace }}",
        "b": '{{ index $labels "exported_pod" }} {{ $labels }} {{ $labels.job }}',
    }
    assert [label for label, _ in said_by({"annotations": texts})] == ["pod", "namespace", "exported_pod"]
    assert said_by({}) == []


def test_texts_that_are_documents() -> None:
    """JSON, objects of Kubernetes, groups of rules; no prose."""
    for text in ('{"panels": []}', "apiVersion: v1", "groups:\n- name: x", "  - expr: up"):
        assert DOCUMENT.search(text)
    assert not DOCUMENT.search("some words\nand more of them")
