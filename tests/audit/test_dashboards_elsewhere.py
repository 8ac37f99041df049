"""Whole files of other kinds: Azure, Perses, autoscalers, collectors, programs; what is told of each."""

from __future__ import annotations

import json
import textwrap

import pytest

from gpuledger.audit.dashboards import audit_dashboards
from gpuledger.model.findings import AuditReport, Written

PROF = "DCGM_FI_PROF_GR_ENGINE_ACTIVE"
BY_POD = f"avg by (pod) ({PROF})"


def audited(**files: str) -> AuditReport:
    """The audit of files given by name, ``__`` for the dot before the suffix."""
    return audit_dashboards(
        [Written(path=name.replace("__", "."), text=textwrap.dedent(text)) for name, text in files.items()]
    )


def verdicts(report: AuditReport) -> dict[str, str]:
    """The verdict of each place by its name."""
    return {each.where.name: each.verdict for each in report.looked}


def unread(report: AuditReport) -> list[str]:
    """The codes of what could not be read."""
    return [problem.code for problem in report.unread]


# rules


def test_rules_of_azure_are_followed() -> None:
    """They say ``expression`` where Prometheus says ``expr``."""
    rules = [
        {"record": "team_busy", "expression": f"avg by (namespace) ({PROF})"},
        {"alert": "Busy", "expression": "team_busy > 0.9"},
    ]
    found = verdicts(audited(a__json=json.dumps({"properties": {"rules": rules}})))
    assert found == {"record team_busy": "misattribution", "alert Busy": "laundered"}


def test_a_query_in_the_text_of_an_alert_is_one() -> None:
    """The alert itself may be about something else."""
    rules = f"""
    groups:
    - rules:
      - alert: Down
        expr: up == 0
        annotations:
          d: '{{{{ with query "avg({PROF}{{pod=\\"a\\"}})" }}}}{{{{ . | first | value }}}}{{{{ end }}}}'
    """
    assert verdicts(audited(r__yaml=rules)) == {"alert Down": "fine", "alert Down / its text": "misattribution"}


def test_costs_by_namespace_of_rules_upon_rules() -> None:
    """Hours that were held are presence, hours that were used are the device's: of one pack of rules."""
    pack = """
    groups:
    - name: normal
      rules:
      - record: gpu:active
        expr: |
          label_replace(DCGM_FI_PROF_SM_ACTIVE{exported_namespace!=""}, "ns", "$1", "exported_namespace", "(.*)")
          or label_replace(DCGM_FI_PROF_SM_ACTIVE, "ns", "none", "", "")
      - {record: 'gpu:held', expr: 'clamp_max(gpu:active{ns!="none"}, 0) + 1'}
    - name: hours
      rules:
      - {record: 'ns:held', expr: 'sum by (ns) (sum_over_time(gpu:held[1d])) / 120'}
      - {record: 'ns:used', expr: 'sum by (ns) (sum_over_time(gpu:active[1d])) / 120'}
      - {record: 'ns:wasted', expr: 'ns:held - ns:used'}
      - {record: 'all:used', expr: 'sum(sum_over_time(gpu:active[1d])) / 120'}
    """
    assert verdicts(audited(p__yaml=pack)) == {
        "record gpu:active": "misattribution",
        "record gpu:held": "presence-only",
        "record ns:held": "presence-only",
        "record ns:used": "laundered",
        "record ns:wasted": "laundered",
        "record all:used": "fine",
    }


def test_rules_that_share_keys_have_them_all() -> None:
    """A merge of YAML; labels that a group adds to each of its rules."""
    text = f"""
    groups:
    - labels: {{pod: trainer}}
      rules:
      - &first {{alert: One, expr: '{BY_POD}'}}
      - {{<<: *first, alert: Two}}
      - {{record: busy, expr: 'avg({PROF})'}}
    """
    found = verdicts(audited(r__yaml=text, q__yaml="queries: {q: busy}"))
    assert found == {
        "alert One": "misattribution",
        "alert Two": "misattribution",
        "record busy": "fine",
        "q": "laundered",
    }


# before any query


def test_a_collector_that_renames_launders_too() -> None:
    """OpenTelemetry's, and relabelling of a whole family."""
    collector = """
    processors:
      metricstransform:
        transforms: [{include: DCGM_FI_PROF_SM_ACTIVE, action: update, new_name: busy}]
    """
    scrape = """
    scrape_configs:
    - metric_relabel_configs:
      - {source_labels: [__name__], regex: 'DCGM_FI_PROF_(.*)', target_label: __name__, replacement: 'gpu_$1'}
    """
    queries = "queries: {a: 'avg by (pod) (busy)', b: 'avg by (pod) (gpu_DRAM_ACTIVE)', c: 'avg by (pod) (gpu_X)'}"
    found = verdicts(audited(c__yaml=collector, s__yaml=scrape, q__yaml=queries))
    assert found == {"a": "laundered", "b": "laundered", "c": "fine"}


def test_a_label_that_relabelling_makes_of_the_pod_is_the_pod() -> None:
    """Steps over the target's labels see none of the workload's."""
    query = f"queries: {{a: 'avg by (svc) ({PROF})', b: 'avg({PROF})'}}"
    step = "[{source_labels: [exported_pod], target_label: svc}]"
    made = f"scrape_configs: [{{metric_relabel_configs: {step}}}]"
    assert verdicts(audited(s__yaml=made, q__yaml=query)) == {"a": "misattribution", "b": "fine"}
    of_target = f"scrape_configs: [{{relabel_configs: {step}}}]"
    assert verdicts(audited(s__yaml=of_target, q__yaml=query))["a"] == "undecidable"


# autoscalers


def test_an_autoscaler_by_a_device_s_figure() -> None:
    """Each pod is given the device's, and pods are added by it."""
    scaler = f"""
    kind: HorizontalPodAutoscaler
    metadata: {{name: llm}}
    spec:
      metrics:
      - {{type: Pods, pods: {{metric: {{name: {PROF}}}, target: {{averageValue: 1}}}}}}
      - {{type: External, external: {{metric: {{name: {PROF}}}}}}}
      - {{type: Resource, resource: {{name: cpu}}}}
    """
    assert [each.verdict for each in audited(h__yaml=scaler).looked] == ["misattribution", "fine"]


def test_a_trigger_in_another_language_is_kept_apart() -> None:
    """KEDA's triggers are in the language of their type; a profiling figure there is told."""
    scaler = """
    kind: ScaledObject
    spec:
      triggers:
      - {type: datadog, metadata: {query: 'avg:dcgm.gr_engine_active{kube_namespace:llm} by {pod_name}'}}
      - {type: prometheus, metadata: {query: 'avg(DCGM_FI_PROF_SM_ACTIVE{pod="a"})'}}
    """
    report = audited(k__yaml=scaler)
    assert verdicts(report) == {"trigger datadog": "other", "trigger prometheus": "misattribution"}
    assert unread(report) == ["other-language"]


# dashboards


def test_perses_dashboards() -> None:
    """Names of series are legends, a title may name the variable, and a variable may be a query."""
    query = "{kind: TimeSeriesQuery, spec: {plugin: {kind: PrometheusTimeSeriesQuery, spec: {query: '%s'%s}}}}"
    panel = "{kind: Panel, spec: {display: {name: '%s'}, queries: [%s]}}"
    text = f"""
    kind: PersesDashboard
    spec:
      variables:
      - kind: ListVariable
        spec: {{name: who, plugin: {{kind: X, spec: {{labelName: exported_pod, matchers: [a]}}}}}}
      - kind: ListVariable
        spec: {{name: top, plugin: {{kind: X, spec: {{expr: 'topk(3, {BY_POD})', labelName: pod}}}}}}
      panels:
        a: {panel % ("of $who", query % (f"avg({PROF})", ""))}
        b: {panel % ("b", query % (PROF, ", seriesNameFormat: '{{pod}}'"))}
        c: {panel % ("c", query % (PROF, ", seriesNameFormat: '{{Hostname}}'"))}
    """
    assert verdicts(audited(p__yaml=text)) == {
        "variable top": "misattribution",
        "of $who": "misattribution",
        "b": "misattribution",
        "c": "fine",
    }


def test_titles_of_rows_are_those_of_their_panels() -> None:
    """Of open rows until the next, of closed ones, of those before Grafana 5, and of schema 2."""
    target = [{"expr": f"avg({PROF})", "legendFormat": "x", "refId": "A"}]

    def panel(title: str) -> dict[str, object]:
        return {"title": title, "targets": target}

    ns = {"list": [{"name": "ns", "type": "query", "query": "label_values(kube_pod_info, namespace)"}]}
    rows = [
        {"type": "row", "title": "of $ns"}, panel("open"),
        {"type": "row", "title": "all", "panels": [panel("fine")]},
        {"type": "row", "title": "$ns", "panels": [panel("closed")]},
    ]  # fmt: skip
    board = {"templating": ns, "panels": rows, "rows": [{"title": "$ns", "panels": [panel("old")]}]}
    found = verdicts(audited(d__json=json.dumps(board)))
    assert {name for name, verdict in found.items() if verdict == "misattribution"} == {
        "open / A",
        "closed / A",
        "old / A",
    }
    query = {"kind": "DataQuery", "spec": {"expr": f"avg({PROF})", "legendFormat": "x"}}
    data = {"spec": {"queries": [{"kind": "PanelQuery", "spec": {"refId": "A", "query": query}}]}}
    element = {"kind": "Panel", "spec": {"title": "second", "data": data}}
    place = {"kind": "GridLayoutItem", "spec": {"element": {"name": "p"}}}
    row = {"spec": {"title": "x", "repeat": {"value": "pod"}, "layout": {"spec": {"items": [place]}}}}
    spec = {"elements": {"p": element}, "layout": {"spec": {"rows": [row]}}, "variables": []}
    assert verdicts(audited(d__json=json.dumps({"spec": spec}))) == {"second": "misattribution"}


def test_a_panel_of_the_library_that_is_there_is_not_missing() -> None:
    """In the same export, or in a file of its own."""
    board = {"panels": [{"title": "t", "libraryPanel": {"uid": "u", "name": "busy"}}]}
    model = {"title": "busy", "type": "stat", "targets": [{"expr": BY_POD, "refId": "A"}]}
    within = audited(a__json=json.dumps({"__inputs": [], "__elements": {"u": {"uid": "u", "model": model}}, **board}))
    beside = audited(a__json=json.dumps(board), b__json=json.dumps({"result": {"uid": "u", "model": model}}))
    for report in (within, beside):
        assert unread(report) == []
        assert verdicts(report) == {"busy / A": "misattribution"}
    assert unread(audited(a__json=json.dumps(board))) == ["library-panel"]


def test_rules_of_grafana_over_logs_are_other() -> None:
    """By the data source of the query itself."""
    model = {"expr": '{a="b"} |= "DCGM_FI_PROF_SM_ACTIVE"', "refId": "A", "datasource": {"type": "loki"}}
    rule = {"title": "t", "condition": "A", "data": [{"refId": "A", "model": model}], "annotations": {}}
    report = audited(g__yaml=json.dumps({"groups": [{"rules": [rule]}]}))
    assert verdicts(report) == {"t": "other"}
    assert unread(report) == ["other-language"]


def test_queries_of_other_systems_in_a_mixed_panel_are_listed() -> None:
    """An expression of CloudWatch is a query; one of Grafana is arithmetic over others."""
    targets = [
        {"refId": "A", "datasource": {"type": "cloudwatch"}, "expression": "SEARCH('{X,Pod} gpu', 'Average')"},
        {"refId": "B", "datasource": {"type": "__expr__", "uid": "__expr__"}, "expression": "$A * 2"},
    ]
    board = {"panels": [{"title": "m", "datasource": {"uid": "-- Mixed --"}, "targets": targets}]}
    assert verdicts(audited(d__json=json.dumps(board))) == {"m / A": "other"}


@pytest.mark.parametrize("metric", ["nvidia_smi_utilization_gpu_ratio", "gpu_gfx_activity", "nv_gpu_utilization"])
def test_a_device_s_figure_of_another_exporter_by_pod(metric: str) -> None:
    """It is the device's with each of them, and no version of any tells pods apart."""
    target = {"expr": metric, "legendFormat": "{{pod}}", "refId": "A"}
    report = audited(d__json=json.dumps({"panels": [{"title": "p", "targets": [target]}]}))
    (finding,) = report.findings
    assert finding.check.verdict == "device-scope"
    assert "no exporter of it tells the pods' parts" in finding.message


# programs, prose, source code


def test_strings_of_programs_are_judged_and_the_program_is_told() -> None:
    """A legend beside them stays unknown; a string that is put together of pieces cannot be read."""
    jsonnet = f"""
    {{
      a: 'avg by (pod) ({PROF}{{%(sel)s}})' % $,
      b: 'avg by (Hostname) ({PROF})',
      c: '{PROF}{{gpu="0"}}',
      d: 'avg by (pod) ({PROF}{{' + $.sel + '}})',
    }}
    """
    report = audited(a__jsonnet=jsonnet)
    assert [each.verdict for each in report.looked] == ["misattribution", "fine", "undecidable"]
    assert [each.where.line for each in report.looked] == [3, 4, 5]
    assert unread(report) == ["not-rendered", "not-promql"]
    assert "4 queries of its strings" in report.unread[0].message


def test_rules_in_a_heredoc_are_followed() -> None:
    """What Terraform uploads to a managed Prometheus."""
    terraform = f"""
    resource "aws_prometheus_rule_group_namespace" "r" {{
      data = <<-EOF
        groups:
        - name: g
          rules:
          - record: busy
            expr: avg by (namespace) ({PROF})
      EOF
    }}
    """
    report = audited(r__tf=terraform, q__yaml="queries: {q: 'busy{namespace=\"a\"}'}")
    assert verdicts(report) == {"record busy": "misattribution", "q": "laundered"}
    assert report.looked[0].where.line == 8


def test_prose_and_source_code_are_told_and_not_judged() -> None:
    """A query in them by its line; without one there is nothing to tell."""
    report = audited(a__md=f"# Busy\n\n    {BY_POD}\n", b__sh=f'curl -G "{BY_POD}"\n', c__py="print('up')\n")
    assert report.looked == ()
    assert [(problem.code, problem.where) for problem in report.unread] == [
        ("no-query", "a.md:3"),
        ("no-query", "b.sh:1"),
    ]
    assert "queries: [...]" in report.unread[0].message


def test_a_file_that_is_one_query_is_judged() -> None:
    """Of any name."""
    assert [each.verdict for each in audited(q__promql=BY_POD + "\n").looked] == ["misattribution"]


def test_a_text_that_holds_a_query_at_no_known_place_is_told() -> None:
    """A list of the exporter's counters holds none."""
    text = f"args: ['--query={BY_POD} > 0', 'x']\n"
    assert unread(audited(a__yaml=text)) == ["not-promql"]
    assert unread(audited(a__yaml=f"description: shows {BY_POD}\n")) == ["no-query"]
    assert unread(audited(a__yaml=f"data: {{c.csv: '{PROF}, gauge, Ratio (a warp).'}}\n")) == []
