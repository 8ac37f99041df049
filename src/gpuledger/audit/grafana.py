"""What a Grafana dashboard says around its queries: variables, legends, tables, repeats, kinds of data source.

In: plain mappings of a dashboard, old (``rows``), present or of schema 2. Out: the words of
:mod:`gpuledger.audit.queries`. Source: Grafana's dashboard JSON model and its documentation of variables.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from gpuledger.audit.gpu_words import names_workload
from gpuledger.audit.plain import key_of
from gpuledger.audit.queries import Shown
from gpuledger.audit.query_text import Choice, Variable, names_in

PROMETHEUS_LIKE = re.compile(r"prometheus|victoriametrics|thanos|mimir|cortex|promscale|amp\b", re.IGNORECASE)
_KINDS = re.compile(
    r"loki|elasticsearch|opensearch|influx|graphite|postgres|mysql|mssql|cloudwatch|stackdriver|cloud-?monitoring"
    r"|azure-?monitor|tempo|jaeger|zipkin|clickhouse|bigquery|athena|timestream|snowflake|datadog|dynatrace|splunk"
    r"|infinity|testdata|pyroscope|parca|newrelic|druid|zabbix|sqlite|mongodb|alertmanager|json",
    re.IGNORECASE,
)
_LEGEND = re.compile(r"\{\{-?\s*\.?([\w.]+)\s*-?\}\}")
_FIELD_LABEL = re.compile(r"__field\.labels\.(\w+)|__field\.labels\[[\"'](\w+)[\"']\]|__series\.labels\.(\w+)")
_JOINS = frozenset({"joinByField", "seriesToColumns", "merge", "joinByLabels"})
_ALL_LABELS = frozenset({"", "__auto"})


def mapping(value: object) -> Mapping[str, object]:
    """A mapping; an empty one for anything else."""
    return value if isinstance(value, dict) else {}


def listing(value: object) -> list[object]:
    """A list; an empty one for anything else."""
    return value if isinstance(value, list) else []


def text(value: object) -> str:
    """A text; empty for anything else."""
    return value if isinstance(value, str) else ""


def variables_of(dashboard: Mapping[str, object]) -> dict[str, Variable]:
    """The variables of a dashboard by name: of ``templating``, or of ``variables`` in schema 2."""
    given = listing(mapping(dashboard.get("templating")).get("list"))
    given += listing(dashboard.get("variables"))
    found: dict[str, Variable] = {}
    for each in given:
        one = mapping(each)
        spec = mapping(one.get("spec")) or one
        kind = text(one.get("type")) or text(one.get("kind")).removesuffix("Variable").lower()
        name = text(spec.get("name"))
        if name:
            found[name] = _variable(name, kind.lower(), spec)
    return found


def query_of(variable: Mapping[str, object]) -> str:
    """The query of a variable: a text, or a mapping that holds it."""
    query = variable.get("query")
    if "plugin" in variable:  # of Perses
        return text(mapping(mapping(variable["plugin"]).get("spec")).get("expr"))
    if isinstance(query, dict):
        spec = mapping(query.get("spec")) or query
        return text(spec.get("query")) or text(spec.get("expr")) or text(query.get("query"))
    return text(query) or text(variable.get("definition"))


def _variable(name: str, kind: str, spec: Mapping[str, object]) -> Variable:
    plugin = mapping(mapping(spec.get("plugin")).get("spec"))
    if plugin:  # of Perses
        listed = tuple(_custom(",".join(text(each) for each in listing(plugin.get("values")))))
        choice = Choice.LISTED if listed else Choice.OPEN
        return Variable(name=name, choice=choice, values=listed, label=text(plugin.get("labelName")))
    values = tuple(dict.fromkeys(_values(spec.get("options"))))
    current = tuple(_values([spec.get("current")]))
    written = query_of(spec)
    if kind == "constant":
        return Variable(name=name, choice=Choice.LISTED, values=(written,) if written else values or current)
    if kind == "custom":
        listed = tuple(_custom(written)) or values or current
        return Variable(name=name, choice=Choice.LISTED, values=listed, label=_label_among(listed))
    if kind == "interval":
        return Variable(name=name, choice=Choice.OPEN, values=("5m",))
    if kind in ("datasource", "adhoc", "adhocvariable", "textbox", "text"):
        return Variable(name=name)
    metrics, label = _offers(written, text(spec.get("regex")))
    seen = tuple(value for value in (*values, *current) if not value.startswith("$"))
    return Variable(name=name, values=seen if metrics else (), label=label, metrics=metrics)


def _label_among(values: tuple[str, ...]) -> str:
    return next((value for value in values if names_workload(value)), "")


def _values(options: object) -> Iterator[str]:
    for each in listing(options):
        value = mapping(each).get("value")
        for one in value if isinstance(value, list) else [value]:
            if isinstance(one, str) and one not in ("$__all", "All", ""):
                yield one


def _custom(written: str) -> Iterator[str]:
    """The options of ``a, b`` or ``Name : value, ...``; a comma after a backslash is part of one."""
    for part in re.split(r"(?<!\\),", written):
        one = part.replace("\\,", ",").strip()
        if one:
            yield one.split(" : ", 1)[-1].strip()


_LABEL_VALUES = re.compile(r"label_values\(\s*(?:(?P<metric>.*),)?\s*(?P<label>[\w:]+)\s*\)\s*$", re.DOTALL)
_METRICS = re.compile(r"metrics\(\s*(.*?)\s*\)\s*$", re.DOTALL)


def _offers(written: str, regex: str) -> tuple[str, str]:
    """The pattern of metric names and the label whose values a query offers; either may be empty."""
    pattern = regex.strip("/") if regex.startswith("/") else ""
    if found := _METRICS.match(written.strip()):
        return found[1].strip("\"'") or pattern or ".*", ""
    if found := _LABEL_VALUES.match(written.strip()):
        if found["label"] != "__name__":
            return "", found["label"]
        named = re.search(r"__name__\s*=~?\s*[\"']([^\"']*)", found["metric"] or "")
        return (named[1] if named else pattern) or ".*", ""
    return "", ""


def stands_for_workload(name: str, variables: Mapping[str, Variable]) -> bool:
    """Whether a variable's values are pods, namespaces and the like."""
    variable = variables.get(name)
    if variable is not None and variable.label:
        return names_workload(variable.label) and variable.label != "job"
    return names_workload(name) and name != "job"


def source_kind(source: object, variables_kinds: Mapping[str, str]) -> str:
    """The kind of a data source where it is known not to answer PromQL; empty else."""
    if isinstance(source, dict):
        if source.get("type") == "prometheus":
            return ""
        kind = text(source.get("type")) or text(source.get("group"))
        named = kind or text(source.get("uid")) or text(source.get("name"))
    else:
        named = text(source)
    for name in names_in(named):
        named = variables_kinds.get(name, named)
    if PROMETHEUS_LIKE.search(named) or not named:
        return ""
    if "__expr__" in named:
        return "an expression of Grafana"
    found = _KINDS.search(named)
    return found[0].lower() if found else ""


def is_prometheus(source: object) -> bool:
    """Whether a data source says of itself that it answers PromQL."""
    return isinstance(source, dict) and bool(PROMETHEUS_LIKE.search(text(source.get("type"))))


def kinds_of_sources(dashboard: Mapping[str, object]) -> dict[str, str]:
    """What kinds of data source the variables and inputs of a dashboard stand for."""
    found: dict[str, str] = {}
    for each in listing(mapping(dashboard.get("templating")).get("list")):
        one = mapping(each)
        if text(one.get("type")) == "datasource":
            found[text(one.get("name"))] = text(one.get("query"))
    for each in listing(dashboard.get("__inputs")):
        one = mapping(each)
        found[text(one.get("name"))] = text(one.get("pluginId"))
    return found


def is_panel(value: Mapping[str, object]) -> bool:
    """Whether a mapping is a panel: it has targets, or is one of schema 2."""
    return isinstance(value.get("targets"), list) or (value.get("kind") == "Panel" and "spec" in value)


def labels_in(written: str, place: str) -> Iterator[tuple[str, str]]:
    """The labels that a legend or display name prints, with the place."""
    if "{" not in written:
        return
    for name in _LEGEND.findall(written):
        label = name.rsplit(".", 1)[-1]
        if names_workload(label) and label != "job":
            yield label, f"{place} {{{{{label}}}}}"
    for found in _FIELD_LABEL.finditer(written):
        label = next(part for part in found.groups() if part)
        if names_workload(label) and label != "job":
            yield label, f"{place} {label}"


def shown_by(panel: Mapping[str, object], target: Mapping[str, object]) -> Shown:
    """What a panel prints beside the figures of one of its queries."""
    spec = mapping(panel.get("spec")) if panel.get("kind") == "Panel" else panel
    legend = target.get("legendFormat", target.get("seriesNameFormat"))  # the second is Perses'
    looks = mapping(_options(spec).get("fieldConfig"))
    named = mapping(looks.get("defaults")).get("displayName")
    labels: list[tuple[str, str]] = []
    for written, place in (
        (legend, "the legend"),
        (target.get("alias"), "the alias"),
        (named, "the name of the field"),
    ):
        if isinstance(written, str) and "{" in written:
            labels += labels_in(written, place)
    columns, hidden = _columns(spec, looks)
    labels += [(label, f"the column {label}") for label in columns if names_workload(label) and label not in hidden]
    is_table = text(spec.get("type")) in ("table", "table-old") or text(target.get("format")) == "table"
    by_default = is_table or legend is None or text(legend) in _ALL_LABELS
    return Shown(labels=tuple(dict.fromkeys(labels)), hidden=frozenset(hidden), by_default=by_default)


def _options(spec: Mapping[str, object]) -> Mapping[str, object]:
    """The part that holds ``fieldConfig``: the panel, or its visualisation in schema 2."""
    if "fieldConfig" in spec:
        return spec
    return mapping(mapping(spec.get("vizConfig")).get("spec")) or spec


def _transformations(spec: Mapping[str, object]) -> list[Mapping[str, object]]:
    inner = mapping(mapping(spec.get("data")).get("spec"))
    found: list[Mapping[str, object]] = []
    for each in listing(spec.get("transformations")) or listing(inner.get("transformations")):
        one = mapping(each)
        of_schema_2 = mapping(one.get("spec"))
        options = of_schema_2.get("options", one.get("options"))
        found.append({"id": of_schema_2.get("id", one.get("id", one.get("kind"))), "options": options})
    return found


def is_merging(panel: Mapping[str, object]) -> bool:
    """Whether a panel joins the rows of its queries."""
    spec = mapping(panel.get("spec")) if panel.get("kind") == "Panel" else panel
    if _SAYS_COLUMNS.isdisjoint(spec):
        return False
    return any(text(each.get("id")) in _JOINS for each in _transformations(spec))


_SAYS_COLUMNS = frozenset({"transformations", "styles", "data"})


def _columns(spec: Mapping[str, object], looks: Mapping[str, object]) -> tuple[list[str], set[str]]:
    """The columns that a table names, and those it leaves out."""
    named: list[str] = []
    hidden: set[str] = set()
    if _SAYS_COLUMNS.isdisjoint(spec) and not looks.get("overrides"):
        return named, hidden
    for each in _transformations(spec):
        options = mapping(each.get("options"))
        hidden |= {key for key, out in mapping(options.get("excludeByName")).items() if out in (True, "true")}
        for key in ("renameByName", "indexByName", "fields"):
            named += [key_of(name) for name in mapping(options.get(key))]
        include = mapping(options.get("include"))
        named += [text(name) for name in listing(include.get("names"))]
        for key in ("byField", "rowField", "columnField", "field", "valueLabel"):
            named += [text(options.get(key))]
        named += [text(name) for key in ("fields", "keepLabels", "byFields") for name in listing(options.get(key))]
        named += [text(mapping(sort).get("field")) for sort in listing(options.get("sort"))]
    for override in listing(looks.get("overrides")):
        matcher = mapping(mapping(override).get("matcher"))
        if text(matcher.get("id")) == "byName":
            named.append(text(matcher.get("options")))
    for style in listing(spec.get("styles")):  # of the table panel before Grafana 7
        one = mapping(style)
        (hidden.add if text(one.get("type")) == "hidden" else named.append)(text(one.get("pattern")))
    base = [re.sub(r" \d+$", "", name) for name in named if name]  # Grafana numbers columns of the same name
    return list(dict.fromkeys(base)), {re.sub(r" \d+$", "", name) for name in hidden}
