"""What stands around the queries of a dashboard."""

from __future__ import annotations

from gpuledger.audit.grafana import source_kind, stands_for_workload, variables_of
from gpuledger.audit.query_text import Choice


def of(**variable: object) -> tuple[Choice, tuple[str, ...], str, str]:
    """How a variable is read: choice, values, label, metrics."""
    found = variables_of({"templating": {"list": [{"name": "v", **variable}]}})["v"]
    return found.choice, found.values, found.label, found.metrics


def test_kinds_of_variables() -> None:
    """Listed ones are known; others are open, with what their query offers."""
    assert of(type="constant", query="x") == (Choice.LISTED, ("x",), "", "")
    assert of(type="custom", query="a, B : b\\,c") == (Choice.LISTED, ("a", "b,c"), "", "")
    assert of(type="custom", query="Hostname,pod")[2] == "pod"
    assert of(type="query", query='label_values(up{a="b"}, pod)') == (Choice.OPEN, (), "pod", "")
    assert of(type="query", query={"query": "label_values(namespace)"})[2] == "namespace"
    assert of(type="query", query="metrics(DCGM_FI_PROF_.*)")[3] == "DCGM_FI_PROF_.*"
    assert of(type="query", query="label_values(__name__)", regex="/DCGM_.*/")[3] == "DCGM_.*"
    assert of(type="textbox", query="x") == (Choice.OPEN, (), "", "")
    assert of(type="interval", query="1m,5m")[1] == ("5m",)


def test_variables_of_schema_2() -> None:
    """They stand beside the elements, each with a spec."""
    given = [{"kind": "CustomVariable", "spec": {"name": "v", "query": "a,b"}}]
    assert variables_of({"variables": given})["v"].values == ("a", "b")


def test_what_a_variable_stands_for() -> None:
    """Its query tells, else its name."""
    known = variables_of(
        {"templating": {"list": [{"name": "who", "type": "query", "query": "label_values(x, exported_pod)"}]}}
    )
    assert stands_for_workload("who", known)
    assert stands_for_workload("namespace", {})
    assert not stands_for_workload("Hostname", {})


def test_kinds_of_sources() -> None:
    """What answers PromQL has no word; what does not is named; a variable is what it is said to be."""
    assert source_kind({"type": "prometheus", "uid": "loki"}, {}) == ""
    assert source_kind({"type": "grafana-amazonprometheus-datasource"}, {}) == ""
    assert source_kind({"type": "loki"}, {}) == "loki"
    assert source_kind("${DS}", {"DS": "elasticsearch"}) == "elasticsearch"
    assert source_kind(None, {}) == ""
    assert source_kind("My Thanos", {}) == ""
