"""Rules of prometheus-adapter in the words of PromQL."""

from __future__ import annotations

from gpuledger.audit.adapter_rules import queries

QUERY = "avg(<<.Series>>{<<.LabelMatchers>>}) by (<<.GroupBy>>)"


def test_placeholders_become_what_the_rule_maps() -> None:
    """The series with its own matchers, one matcher for each resource, the labels to group by."""
    overrides = {"pod": {"resource": "pod"}, "Hostname": {"resource": "node"}}
    rule = {"seriesQuery": 'x{a="b"}', "resources": {"overrides": overrides}, "metricsQuery": QUERY}
    ((name, text, shown),) = queries(rule)
    assert name == 'adapter x{a="b"}'
    assert text == 'avg(x{a="b",pod=~"$object",Hostname=~"$object"}) by (pod, Hostname)'
    assert [label for label, _ in shown.labels] == ["pod"]


def test_what_is_no_node_is_a_workload() -> None:
    """A service is given the figure by whatever label it is found by."""
    overrides = {"service": {"resource": "service"}, "pod": {"resource": "node"}}
    rule = {"seriesQuery": "x", "resources": {"overrides": overrides}, "metricsQuery": QUERY}
    assert [label for label, _ in queries(rule)[0][2].labels] == ["service"]


def test_a_template_maps_every_resource() -> None:
    """``<<.Resource>>``, with a prefix where the cluster has one."""
    rule = {"seriesQuery": "x", "resources": {"template": "kube_<<.Resource>>"}, "metricsQuery": QUERY}
    assert queries(rule)[0][1] == 'avg(x{kube_pod=~"$object",kube_namespace=~"$object"}) by (kube_pod, kube_namespace)'


def test_a_pattern_of_series_stays_one() -> None:
    """The name may be a matcher; a pattern that is just a name is that name."""
    many = {"seriesQuery": '{__name__=~"^DCGM_.*"}', "metricsQuery": "sum(<<.Series>>{<<.LabelMatchers>>})"}
    assert queries(many)[0][1] == 'sum({__name__=~"^DCGM_.*",})'
    one = {"seriesQuery": '{__name__=~"^gpu_busy$",pod!=""}', "metricsQuery": "sum(<<.Series>>)"}
    assert queries(one)[0][1] == "sum(gpu_busy)"
