"""Whole files: dashboards, rules and lists as people write them, and what is said of each."""

from __future__ import annotations

import json
import textwrap

import pytest

from gpuledger.audit.dashboards import audit_dashboards
from gpuledger.model.findings import AuditReport, Written

PROF = "DCGM_FI_PROF_GR_ENGINE_ACTIVE"


def audited(**files: str) -> AuditReport:
    """The audit of files given by name, ``__`` for the dot before the suffix."""
    texts = [Written(path=name.replace("__", "."), text=textwrap.dedent(text)) for name, text in files.items()]
    return audit_dashboards(texts)


def verdicts(report: AuditReport) -> dict[str, str]:
    """The verdict of each place by its name."""
    return {each.where.name: each.verdict for each in report.looked}


def board(*panels: dict[str, object], variables: list[dict[str, object]] | None = None, **more: object) -> str:
    """A dashboard of some panels."""
    return json.dumps(
        {"title": "GPUs", "panels": list(panels), "templating": {"list": variables or []}, **more}, indent=1
    )


def panel(expr: str, title: str = "p", **more: object) -> dict[str, object]:
    """A panel with one query."""
    target = {"expr": expr, "refId": "A", "legendFormat": more.pop("legend", "GPU {{gpu}}")}
    return {"type": more.pop("type", "timeseries"), "title": title, "targets": [target], **more}


def one(report: AuditReport) -> str:
    """The verdict of a report with one query."""
    (looked,) = report.looked
    return looked.verdict


# what a panel says beside its query


@pytest.mark.parametrize(
    ("legend", "verdict"),
    [
        ("GPU {{gpu}} on {{Hostname}}", "fine"),
        ("{{pod}}", "misattribution"),
        ("{{ exported_pod }} ({{gpu}})", "misattribution"),
        ("{{namespace}}/{{container}}", "misattribution"),
        ("{{job}}", "fine"),
        ("", "undecidable"),
        ("__auto", "undecidable"),
    ],
)
def test_a_legend_says_whose_figure_it_is(legend: str, verdict: str) -> None:
    """A device's own series is fine until the legend prints the pod that the exporter put on it."""
    assert one(audited(d__json=board(panel(f'{PROF}{{Hostname="$h"}}', legend=legend)))) == verdict


def test_a_legend_of_a_label_that_is_gone_is_no_fault() -> None:
    """After ``avg by (Hostname)`` there is no pod left to print."""
    assert one(audited(d__json=board(panel(f"avg by (Hostname) ({PROF})", legend="{{pod}}")))) == "fine"


def test_the_name_of_a_field_is_a_legend_too() -> None:
    """Grafana prints labels by ``${__field.labels.pod}`` as well."""
    shown = {"defaults": {"displayName": "${__field.labels.pod}"}}
    assert one(audited(d__json=board(panel(PROF, fieldConfig=shown)))) == "misattribution"


POD = {"name": "pod", "type": "query", "query": {"query": "label_values(kube_pod_info, pod)"}}


def test_a_panel_repeated_for_each_pod_gives_each_the_same_figure() -> None:
    """The query does not even use the variable: every pod's panel shows the cluster."""
    assert verdicts(audited(d__json=board(panel(f"avg({PROF})", repeat="pod"), variables=[POD])))["p / A"] == (
        "misattribution"
    )


def test_a_row_repeated_for_each_pod_counts_for_its_panels() -> None:
    """Behind an open row stand its panels until the next row; in a closed one they stand inside."""
    rows = [
        {"type": "row", "title": "of $who", "repeat": "who", "panels": []},
        panel(f"avg({PROF})", "in it"),
        {"type": "row", "title": "all", "panels": [panel(f"avg({PROF})", "in another")]},
        panel(f"avg({PROF})", "behind"),
        {"type": "row", "repeat": "who", "title": "closed", "panels": [panel(f"avg({PROF})", "closed")]},
    ]
    who = {"name": "who", "type": "query", "definition": "label_values(kube_pod_info, pod)"}
    found = verdicts(audited(d__json=board(*rows, variables=[who])))
    assert found == {
        "in it / A": "misattribution",
        "in another / A": "fine",
        "behind / A": "fine",
        "closed / A": "misattribution",
        "variable who": "fine",
    }


def test_a_panel_repeated_for_each_host_is_fine() -> None:
    """The variable's query tells what it stands for, whatever its name."""
    host = {"name": "pod", "type": "query", "query": "label_values(DCGM_FI_DEV_GPU_UTIL, Hostname)"}
    assert verdicts(audited(d__json=board(panel(f"avg({PROF})", repeat="pod"), variables=[host])))["p / A"] == "fine"


def test_a_title_that_names_the_pod_gives_it_the_figure() -> None:
    """``GPU of $pod`` above a figure of the whole cluster."""
    report = audited(d__json=board(panel(f"avg({PROF})", "GPU of $pod"), variables=[POD]))
    assert report.findings[0].check.verdict == "misattribution"


def test_a_table_shows_what_its_columns_say() -> None:
    """A column that is named shows the pod, one that is left out does not, and else every label is a column."""
    organize = {"id": "organize", "options": {"renameByName": {"pod": "Pod"}, "excludeByName": {}}}
    hidden = {"id": "organize", "options": {"renameByName": {"pod": "x"}, "excludeByName": {"pod": True}}}
    partition = {"id": "groupBy", "options": {"fields": {"namespace": {"operation": "groupby"}}}}
    assert one(audited(d__json=board(panel(PROF, type="table", transformations=[organize])))) == "misattribution"
    assert one(audited(d__json=board(panel(PROF, type="table", transformations=[partition])))) == "misattribution"
    assert one(audited(d__json=board(panel(PROF, type="table", transformations=[hidden])))) == "fine"
    assert one(audited(d__json=board(panel(PROF, type="table")))) == "undecidable"


def test_a_table_that_joins_pods_to_devices_gives_them_the_figure() -> None:
    """Two honest queries, one of devices, one of pods, joined by Grafana."""
    joined = panel(
        f"avg by (UUID) ({PROF})",
        "t",
        type="table",
        transformations=[{"id": "joinByField", "options": {"byField": "UUID"}}],
    )
    joined["targets"] += [{"expr": "max by (UUID, pod) (gpu_pod_map)", "refId": "B", "format": "table"}]  # type: ignore[operator]
    report = audited(d__json=board(joined))
    assert verdicts(report) == {"t / A": "misattribution", "t / B": "fine"}
    assert "the table joins pod of t / B" in report.findings[0].message


def test_other_languages_are_kept_apart() -> None:
    """A query of Loki is not PromQL; one that names a profiling metric in SQL is told, not skipped."""
    loki = panel('{app="x"} |= "DCGM"', "l", datasource={"type": "loki", "uid": "l"})
    sql = {
        "title": "s", "datasource": {"type": "influxdb"},
        "targets": [{"query": f"SELECT mean(value) FROM {PROF} GROUP BY pod", "refId": "A"}],
    }  # fmt: skip
    mixed = panel("up", "m", datasource={"type": "datasource", "uid": "-- Mixed --"})
    mixed["targets"][0]["datasource"] = {"type": "elasticsearch"}  # type: ignore[index]
    report = audited(d__json=board(loki, sql, mixed))
    assert verdicts(report) == {"l / A": "other", "s / A": "other", "m / A": "other"}
    assert [problem.code for problem in report.unread] == ["other-language"]


def test_a_source_by_variable_is_looked_up() -> None:
    """``${DS}`` is what the dashboard's variable or input says."""
    source = {"name": "DS", "type": "datasource", "query": "loki"}
    report = audited(d__json=board(panel("rate(x)", datasource={"uid": "${DS}"}), variables=[source]))
    assert one(report) == "other"


# variables


def test_old_variables_are_variables() -> None:
    """``[[pod]]`` of Grafana before 7."""
    text = board(panel(f'avg({PROF}{{pod=~"[[pod]]"}}[[[interval]]])'))
    assert one(audited(d__json=text.replace("avg(", "avg_over_time("))) == "misattribution"


def test_the_metric_may_be_a_variable() -> None:
    """Its options are tried; one that names a profiling metric is enough."""
    options = {"name": "metric", "type": "custom", "query": f"DCGM_FI_DEV_GPU_TEMP, Engine : {PROF}"}
    assert one(audited(d__json=board(panel("avg by (pod) ($metric)"), variables=[options]))) == "misattribution"
    dev = {"name": "metric", "type": "custom", "query": "DCGM_FI_DEV_GPU_TEMP,DCGM_FI_DEV_SM_CLOCK"}
    assert one(audited(d__json=board(panel("avg by (pod) ($metric)"), variables=[dev]))) == "device-scope"
    offered = {"name": "metric", "type": "query", "query": "metrics(DCGM_FI_PROF_.*)"}
    found = verdicts(audited(d__json=board(panel('avg by (pod) ({__name__=~"$metric"})'), variables=[offered])))
    assert found["p / A"] == "misattribution"


def test_what_it_is_grouped_by_may_be_a_variable() -> None:
    """A list of labels with the pod among them."""
    by = {"name": "by", "type": "custom", "query": "Hostname,pod"}
    assert one(audited(d__json=board(panel(f"avg by ($by) ({PROF})"), variables=[by]))) == "misattribution"
    host = {"name": "by", "type": "custom", "query": "Hostname,gpu"}
    assert one(audited(d__json=board(panel(f"avg by ($by) ({PROF})"), variables=[host]))) == "fine"
    assert one(audited(d__json=board(panel(f"avg by ($by) ({PROF})")))) == "undecidable"


def test_a_query_of_a_variable_lists_names_and_no_figures() -> None:
    """``label_values(PROF, pod)`` tells which pods have a row."""
    listed = {
        "name": "pod",
        "type": "query",
        "definition": f"label_values({PROF}, pod)",
        "query": {"query": f"label_values({PROF}, pod)"},
    }
    assert one(audited(d__json=board(variables=[listed]))) == "presence-only"
    figures = {"name": "top", "type": "query", "query": f"query_result(topk(3, avg by (pod) ({PROF})))"}
    assert one(audited(d__json=board(variables=[figures]))) == "misattribution"


# shapes of dashboards


def test_dashboards_come_in_wrappers() -> None:
    """The API's answer, old rows, library panels, schema 2, annotations."""
    inner = json.loads(board(panel(f"avg by (pod) ({PROF})")))
    rows = {"title": "old", "rows": [{"title": "r", "panels": [panel(f"avg by (pod) ({PROF})", "in a row")]}]}
    library = {"kind": 1, "name": "lib", "model": panel(f"avg by (pod) ({PROF})", "of the library")}
    query = {"kind": "prometheus", "spec": {"expr": f"avg by (pod) ({PROF})", "legendFormat": "{{pod}}"}}
    element = {
        "kind": "Panel",
        "spec": {
            "title": "of schema 2",
            "data": {
                "kind": "QueryGroup",
                "spec": {"queries": [{"kind": "PanelQuery", "spec": {"refId": "A", "query": query}}]},
            },
        },
    }
    second = {
        "apiVersion": "dashboard.grafana.app/v2alpha1",
        "spec": {"elements": {"panel-1": element}, "variables": []},
    }
    note = {
        "title": "n",
        "panels": [],
        "annotations": {"list": [{"expr": PROF, "name": "note", "titleFormat": "{{pod}}"}]},
    }
    for text in ({"dashboard": inner, "meta": {}}, rows, library, second, note, [inner]):
        report = audited(d__json=json.dumps(text))
        assert [each.verdict for each in report.looked] == ["misattribution"], text


def test_findings_name_the_line_of_the_query() -> None:
    """In JSON too, and where the same query stands twice."""
    text = board(panel(f"avg by (pod) ({PROF})", "one"), panel("up", "two"), panel(f"avg by (pod) ({PROF})", "three"))
    report = audited(d__json=text)
    lines = [place for place, line in enumerate(text.splitlines(), 1) if "avg by (pod)" in line]
    assert [each.where.line for each in report.findings] == lines
    assert [each.where.name for each in report.findings] == ["one / A", "three / A"]


def test_a_dashboard_in_a_config_map_has_lines_of_the_file() -> None:
    """Also rules in one, several documents in a file, and lists of objects."""
    inner = textwrap.indent(board(panel(f"avg by (pod) ({PROF})")), "    ")
    head = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: d}\ndata:\n  gpu.json: |\n"
    rules = (
        "---\nkind: ConfigMap\ndata:\n  rules.yaml: |\n    groups:\n    - name: g\n      rules:\n"
        f"      - record: x\n        expr: avg by (pod) ({PROF})\n"
    )
    text = head + inner + "\n" + rules
    report = audited(d__yaml=text)
    lines = [place for place, line in enumerate(text.splitlines(), 1) if "avg by (pod)" in line]
    assert [each.where.line for each in report.findings] == lines
    assert all(each.check.verdict == "misattribution" for each in report.findings)


# rules


def test_a_metric_renamed_twice_in_two_files_is_found() -> None:
    """A rule renames it, a rule of another file renames that, and a dashboard of a third gives it to pods."""
    first = f"""
    groups:
    - name: a
      rules:
      - record: gpu:busy
        expr: {PROF} * 100
    """
    second = """
    apiVersion: monitoring.coreos.com/v1
    kind: PrometheusRule
    spec:
      groups:
      - name: b
        rules:
        - {record: team_gpu_busy, expr: 'max without (instance) (gpu:busy)'}
    """
    report = audited(z__yaml=second, board__json=board(panel('team_gpu_busy{namespace="$namespace"}')), a__yaml=first)
    found = {each.where.name: each for each in report.findings}
    assert found["p / A"].check.id == "dashboards/laundered"
    assert f"team_gpu_busy <- gpu:busy <- {PROF}" in found["p / A"].evidence
    assert found["record gpu:busy"].check.id == "dashboards/renamed"
    assert found["record team_gpu_busy"].check.id == "dashboards/renamed"


def test_a_rule_that_drops_the_pod_is_fine_until_a_join_adds_it() -> None:
    """The pod comes later, by a join on the host."""
    rules = f"groups: [{{name: g, rules: [{{record: host_busy, expr: 'avg by (Hostname) ({PROF})'}}]}}]"
    joined = 'host_busy * on(Hostname) group_left(pod) label_replace(kube_pod_info, "Hostname", "$1", "node", "(.+)")'
    report = audited(r__yaml=rules, d__json=board(panel(joined, "j"), panel("host_busy", "h", legend="{{pod}}")))
    assert verdicts(report) == {"record host_busy": "fine", "j / A": "laundered", "h / A": "fine"}


def test_a_name_that_still_tells_the_metric_is_not_laundered() -> None:
    """``pod:DCGM_FI_PROF_SM_ACTIVE:avg`` hides nothing; it is a misattribution all the same."""
    rules = f"groups: [{{name: g, rules: [{{record: 'pod:{PROF}:avg', expr: 'avg by (pod) ({PROF})'}}]}}]"
    report = audited(r__yaml=rules, d__json=board(panel(f"pod:{PROF}:avg")))
    assert set(verdicts(report).values()) == {"misattribution"}


def test_relabelling_renames_too() -> None:
    """A ServiceMonitor gives the metric another name before any rule sees it."""
    monitor = f"""
    kind: ServiceMonitor
    spec:
      endpoints:
      - metricRelabelings:
        - {{sourceLabels: [__name__], regex: {PROF}, targetLabel: __name__, replacement: gpu_busy}}
    """
    report = audited(m__yaml=monitor, d__json=board(panel("avg by (pod) (gpu_busy)")))
    assert verdicts(report)["p / A"] == "laundered"


def test_rules_in_a_ring_end() -> None:
    """Each reads the next; the metric in the ring is found, and the ring is told."""
    rules = f"""
    groups:
    - rules:
      - {{record: a, expr: 'b * 2'}}
      - {{record: b, expr: 'c or {PROF}'}}
      - {{record: c, expr: 'a + 1'}}
      - {{record: itself, expr: 'itself offset 1m or vector(0)'}}
    """
    report = audited(r__yaml=rules, d__json=board(panel("sum by (pod) (c)"), panel("sum by (pod) (itself)", "i")))
    assert verdicts(report)["p / A"] == "laundered"
    assert verdicts(report)["i / A"] == "fine"
    (ring,) = [each for each in report.findings if each.check.id == "dashboards/rule-cycle"]
    assert ring.evidence == ("a <- b <- c <- a",)


def test_an_alert_that_prints_the_pod_gives_it_the_figure() -> None:
    """By its text; by its grouping; not by a static label that only routes it."""
    rules = f"""
    groups:
    - rules:
      - alert: Printed
        expr: {PROF} < 0.1
        annotations: {{summary: 'idle: {{{{ $labels.pod }}}}'}}
      - alert: Grouped
        expr: avg by (namespace) ({PROF}) < 0.1
      - alert: Device
        expr: {PROF} < 0.1
        labels: {{namespace: monitoring}}
        annotations: {{summary: 'GPU {{{{ $labels.gpu }}}} of {{{{ $labels.Hostname }}}}, {{{{ $labels }}}}'}}
    """
    assert verdicts(audited(r__yml=rules)) == {
        "alert Printed": "misattribution",
        "alert Grouped": "misattribution",
        "alert Device": "fine",
    }


def test_rules_that_set_a_pod_mark_it() -> None:
    """A static label is as good as a lie."""
    rules = f"groups: [{{rules: [{{record: x, expr: 'avg({PROF})', labels: {{pod: trainer}}}}]}}]"
    report = audited(r__yaml=rules, d__json=board(panel("x")))
    assert verdicts(report)["p / A"] == "laundered"


# other lists


def test_adapter_rules_are_asked_for_one_object() -> None:
    """An autoscaler reads the figure of a pod, or of a node."""
    rules = f"""
    rules:
    - seriesQuery: '{PROF}{{namespace!="",pod!=""}}'
      resources: {{overrides: {{namespace: {{resource: namespace}}, pod: {{resource: pod}}}}}}
      name: {{as: gpu_busy}}
      metricsQuery: 'avg(<<.Series>>{{<<.LabelMatchers>>}}) by (<<.GroupBy>>)'
    - seriesQuery: '{{__name__=~"^DCGM_FI_PROF_.*",pod!=""}}'
      resources: {{template: '<<.Resource>>'}}
      metricsQuery: 'avg(<<.Series>>{{<<.LabelMatchers>>}}) by (<<.GroupBy>>)'
    - seriesQuery: '{PROF}'
      name: {{as: node_busy}}
      resources: {{overrides: {{Hostname: {{resource: node}}}}}}
      metricsQuery: 'avg(<<.Series>>{{<<.LabelMatchers>>}}) by (<<.GroupBy>>)'
    """
    assert [each.verdict for each in audited(a__yaml=rules).looked] == ["misattribution", "misattribution", "fine"]


def test_scalers_and_analyses_hold_queries() -> None:
    """KEDA and Argo Rollouts: any ``query`` of YAML that is PromQL."""
    scaler = f"""
    kind: ScaledObject
    metadata: {{name: llm}}
    spec:
      triggers:
      - type: prometheus
        metadata: {{serverAddress: 'http://p', query: 'avg({PROF}{{namespace="llm"}})'}}
    """
    assert one(audited(k__yaml=scaler)) == "misattribution"


def test_cloud_monitoring_filters_are_judged() -> None:
    """Labels of the metric name a workload, those of the resource are the exporter's own."""

    def tile(fields: str, more: str = "") -> str:
        return f"""
        - timeSeriesFilter:
            filter: metric.type="prometheus.googleapis.com/{PROF}/gauge" resource.type="prometheus_target"{more}
            aggregation: {{crossSeriesReducer: REDUCE_MEAN, groupByFields: [{fields}]}}
        """

    assert one(audited(g__yaml="tiles:" + tile("'metric.label.\"pod\"'"))) == "misattribution"
    assert one(audited(g__yaml="tiles:" + tile("resource.label.namespace"))) == "fine"
    assert (
        one(audited(g__yaml="tiles:" + tile("metric.labels.Hostname", ' metric.labels.exported_pod="x"')))
        == "misattribution"
    )


# templates


def test_helm_templates_are_read() -> None:
    """Text that is no YAML before Helm has filled it; braces that it means literally are kept."""
    chart = f"""
    {{{{- if .Values.rules.enabled }}}}
    apiVersion: monitoring.coreos.com/v1
    kind: PrometheusRule
    metadata:
      name: {{{{ include "x.name" . }}}}
      labels:
        {{{{- include "x.labels" . | nindent 4 }}}}
    spec:
      groups:
      - name: g
        rules:
        {{{{- if .Values.idle }}}}
        - alert: Idle
          expr: {PROF}{{cluster="{{{{ .Values.cluster }}}}"}} < {{{{ .Values.idleBelow }}}}
          for: {{{{ .Values.for | default "5m" }}}}
          annotations:
            summary: 'idle {{{{ "{{{{" }}}} $labels.exported_pod {{{{ "}}}}" }}}}'
        {{{{- end }}}}
        - record: busy
          expr: |
            {{{{- if .Values.a }}}}
            avg by (Hostname) ({PROF})
            {{{{- end }}}}
    {{{{- end }}}}
    """
    report = audited(c__yaml=chart)
    assert verdicts(report) == {"alert Idle": "misattribution", "record busy": "fine"}
    assert report.unread == ()
    assert report.looked[0].text == f'{PROF}{{cluster="{{{{…}}}}"}} < {{{{…}}}}'


def test_what_is_no_yaml_at_all_is_scanned_and_told() -> None:
    """Queries are found line by line, and the file is listed as unread all the same."""
    broken = f"""
    groups:
    - name: g
      rules:
      - alert: A
        expr: avg by (pod) ({PROF}) > 0.5
       badly: indented
      - record: b
        expr: >-
          avg by (Hostname)
          ({PROF})
    """
    report = audited(b__yaml=broken)
    assert verdicts(report) == {"alert A": "misattribution", "record b": "fine"}
    assert [problem.code for problem in report.unread] == ["not-yaml"]
    assert "2 queries were found line by line" in report.unread[0].message


def test_dashboards_in_templates_keep_their_legends() -> None:
    """Helm charts escape Grafana's braces in JSON."""
    text = board(panel(PROF, legend="@")).replace('"@"', '"{{ "{{" }}pod{{ "}}" }}"')
    assert one(audited(d__json=text)) == "misattribution"
    raw = (
        board(panel(PROF, legend="@"))
        .replace('"@"', '"{{`{{pod}}`}}"')
        .replace('"GPUs"', "{{ .Values.title | quote }}")
    )
    assert one(audited(d__json=raw)) == "misattribution"


# look-alikes


def test_what_only_looks_like_a_profiling_metric_is_fine() -> None:
    """Comments, the MIG profile, other words with PROF in them."""
    lines = [
        "avg by (pod) (up) # DCGM_FI_PROF_SM_ACTIVE by pod",
        "avg by (GPU_I_PROFILE) (DCGM_FI_DEV_FB_USED)",
        'avg by (pod) (pyroscope_PROFILES_total{x="DCGM_FI_PROF_SM_ACTIVE"})',
        "sum by (pod) (go_gc_PROF_seconds)",
    ]
    listed = "\n".join(f"- {{name: q{n}, expr: {json.dumps(line)}}}" for n, line in enumerate(lines))
    assert set(verdicts(audited(q__yaml=listed)).values()) == {"fine"}


def test_prose_and_lists_of_counters_are_no_queries() -> None:
    """A description, and the exporter's own list of fields."""
    text = f"""
    description: shows {PROF} by pod (see docs)
    data:
      counters.csv: |
        # format
        {PROF}, gauge, Ratio of time the graphics engine is active.
        DCGM_FI_PROF_SM_ACTIVE, gauge, The ratio of cycles (a warp) assigned
    """
    report = audited(c__yaml=text)
    assert report.unread == ()
    assert report.findings == ()


# what cannot be read


def test_a_truncated_dashboard_is_told_with_its_line() -> None:
    """And nothing of it is judged in silence."""
    text = board(panel(f"avg by (pod) ({PROF})"))[:-40]
    report = audited(d__json=text)
    assert report.looked == ()
    assert [problem.code for problem in report.unread] == ["not-json"]
    assert report.unread[0].where.startswith("d.json:")


def test_a_query_that_cannot_be_parsed_is_listed() -> None:
    """With its place, its panel and what the parser said."""
    report = audited(d__json=board(panel(f"avg by (pod) ({PROF}", "broken")))
    (problem,) = report.unread
    assert problem.code == "not-promql"
    assert "broken / A" in problem.where


def test_a_panel_of_a_library_is_told() -> None:
    """Its queries are somewhere else."""
    report = audited(d__json=board({"title": "t", "libraryPanel": {"uid": "u", "name": "busy"}}))
    assert [(problem.code, problem.where) for problem in report.unread] == [("library-panel", "d.json (busy)")]


def test_programs_are_told_as_not_rendered() -> None:
    """jsonnet that names the exporter's metrics by file, the others by number."""
    report = audited(a__jsonnet=f"local q = '{PROF}';", b__libsonnet="{}", c__libsonnet="{}")
    assert [(problem.code, problem.where) for problem in report.unread] == [
        ("not-rendered", "a.jsonnet"),
        ("not-rendered", "b.libsonnet"),
    ]
    assert "2 files" in report.unread[1].message


def test_bytes_that_are_no_text_are_told() -> None:
    """NUL in a rule file."""
    assert [problem.code for problem in audited(r__yaml="groups: []\n\x00").unread] == ["not-text"]
