"""Laws of the audit of dashboards: who carries the pod is followed through any query, rule and variable."""

from __future__ import annotations

import json
from dataclasses import dataclass

from hypothesis import given, settings
from hypothesis import strategies as st

from gpuledger.audit import metricsql, promql
from gpuledger.audit.dashboards import audit_dashboards
from gpuledger.model.findings import Written

PROF = "DCGM_FI_PROF_SM_ACTIVE"
LABELS = ("pod", "Hostname", "gpu", "UUID", "site", "tray", "exported_pod")
"""Of labels that nothing is known of the verdict is ``undecidable``, which no law of these cases is about."""


@dataclass(frozen=True)
class Series:
    """A query and the labels that one series of it really has, each with the label it came from."""

    text: str
    labels: dict[str, str]
    rules: tuple[tuple[str, str], ...] = ()


START = Series(PROF, {**{name: name for name in ("pod", "Hostname", "gpu", "UUID")}, "exported_pod": "pod"})


def _by(series: Series, wanted: list[str]) -> Series:
    kept = {label: series.labels[label] for label in wanted if label in series.labels}
    return Series(f"avg by ({', '.join(wanted)}) ({series.text})", kept, series.rules)


def _without(series: Series, dropped: list[str]) -> Series:
    kept = {label: origin for label, origin in series.labels.items() if label not in dropped}
    return Series(f"max without ({', '.join(dropped)}) ({series.text})", kept, series.rules)


def _copied(series: Series, pair: tuple[str, str]) -> Series:
    source, target = pair
    text = f'label_replace({series.text}, "{target}", "$1", "{source}", "(.+)")'
    labels = {**series.labels, target: series.labels[source]} if source in series.labels else series.labels
    return Series(text, labels, series.rules)


def _wrapped(series: Series, form: str) -> Series:
    return Series(form.replace("@", series.text), series.labels, series.rules)


def _joined(series: Series, label: str) -> Series:
    """The host's pod is brought over, where the host is still there to be joined on."""
    text = f"({series.text}) * on(Hostname) group_left({label}) host_of_pod"
    if "Hostname" not in series.labels:
        return series
    return Series(text, {**series.labels, label: "pod" if label in ("pod", "exported_pod") else label}, series.rules)


def _recorded(series: Series, number: int) -> Series:
    name = f"recorded_{len(series.rules)}_{number}"
    return Series(name, series.labels, (*series.rules, (name, series.text)))


FORMS = (
    "(@) * 100",
    "(@) + 1",
    "-(@)",
    "topk(3, @)",
    "avg_over_time((@)[5m:1m])",
    "abs(@)",
    "(@) > 0.5",
    "2 * (@) / 3",
    "(@)",
)
STEPS = st.one_of(
    st.tuples(st.just(_by), st.lists(st.sampled_from(LABELS), min_size=1, max_size=4, unique=True)),
    st.tuples(
        st.just(_without),
        st.lists(st.sampled_from(("pod", "site", "exported_pod")), min_size=1, max_size=2, unique=True),
    ),
    st.tuples(
        st.just(_copied),
        st.tuples(st.sampled_from(("pod", "site", "gpu", "Hostname")), st.sampled_from(("site", "tray"))),
    ),
    st.tuples(st.just(_wrapped), st.sampled_from(FORMS)),
    st.tuples(st.just(_joined), st.sampled_from(("pod", "exported_pod", "rack"))),
    st.tuples(st.just(_recorded), st.integers(0, 9)),
)


def _built(steps: list[tuple[object, object]]) -> Series:
    series = START
    for step, argument in steps:
        series = step(series, argument)  # type: ignore[operator]
    return series


def _verdict(series: Series, *, reverse: bool = False) -> str:
    rules = [f"  - {{record: {name}, expr: {json.dumps(text)}}}" for name, text in series.rules]
    files = [Written(path=f"{n}.yaml", text=f"groups:\n- rules:\n{rule}\n") for n, rule in enumerate(rules)]
    files.append(Written(path="q.yaml", text=f"queries: {{q: {json.dumps(series.text)}}}"))
    report = audit_dashboards(list(reversed(files)) if reverse else files)
    assert report.unread == ()
    return next(looked.verdict for looked in report.looked if looked.where.name == "q")


@settings(max_examples=200, deadline=None)
@given(steps=st.lists(STEPS, max_size=7), last=st.lists(st.sampled_from(LABELS), min_size=1, max_size=3, unique=True))
def test_a_query_is_at_fault_if_and_only_if_a_label_of_its_series_came_from_the_pod(
    steps: list[tuple[object, object]], last: list[str]
) -> None:
    """Whatever was grouped, copied, joined or recorded on the way; the order of the files is nothing to it."""
    series = _by(_built(steps), last)
    verdict = _verdict(series)
    expected = "fine" if "pod" not in series.labels.values() else "laundered" if series.rules else "misattribution"
    assert verdict == expected, series
    assert _verdict(series, reverse=True) == verdict


@settings(max_examples=60, deadline=None)
@given(renames=st.integers(1, 60), steps=st.lists(st.sampled_from(FORMS), max_size=3))
def test_any_number_of_renames_hides_nothing(renames: int, steps: list[str]) -> None:
    """k rules one behind the other."""
    series = START
    for number in range(renames):
        series = _recorded(_wrapped(series, steps[number % len(steps)]) if steps else series, number)
    assert _verdict(_by(series, ["pod"])) == "laundered"
    assert _verdict(_by(series, ["Hostname", "gpu"])) == "fine"


@settings(max_examples=100, deadline=None)
@given(
    name=st.from_regex(r"[a-z][a-z_]{0,8}", fullmatch=True),
    spelling=st.sampled_from(("$@", "${@}", "[[@]]", "${@:regex}")),
)
def test_what_a_variable_is_called_changes_nothing(name: str, spelling: str) -> None:
    """The label that is matched decides, and what the variable can be."""
    written = spelling.replace("@", name)
    variables = [{"name": name, "type": "custom", "query": "pod,Hostname"}]

    def verdict(expr: str) -> str:
        board = {
            "panels": [{"title": "p", "targets": [{"expr": expr, "legendFormat": "x"}]}],
            "templating": {"list": variables},
        }
        (looked,) = audit_dashboards([Written(path="d.json", text=json.dumps(board))]).looked
        return looked.verdict

    assert verdict(f'avg({PROF}{{pod=~"{written}"}})') == "misattribution"
    assert verdict(f'avg({PROF}{{Hostname=~"{written}"}})') == "fine"
    assert verdict(f"avg by ({written}) ({PROF})") == "misattribution"


@settings(max_examples=200, deadline=None)
@given(steps=st.lists(STEPS, max_size=8))
def test_both_parsers_read_the_same(steps: list[tuple[object, object]]) -> None:
    """Ours knows more words; of Prometheus' own it makes the same tree."""
    for text in (_built(steps).text, *(text for _, text in _built(steps).rules)):
        tree, dialect = promql.parse(text)
        assert dialect is promql.Dialect.PROMQL
        assert metricsql.parse(text) == tree


@settings(max_examples=200, deadline=None)
@given(text=st.text("ab(){}[]=~\"'$,.*+ #\n{{}}1", max_size=60))
def test_no_text_breaks_it(text: str) -> None:
    """Whatever stands where a query should: a verdict, or told as unread."""
    report = audit_dashboards([Written(path="q.json", text=json.dumps({"targets": [{"expr": text}], "title": "t"}))])
    assert len(report.looked) + len(report.unread) >= bool(text.strip())


@settings(max_examples=100, deadline=None)
@given(text=st.text("ab: -\n{}[]|>&*\"'{{}}#\t", max_size=120))
def test_no_file_breaks_it(text: str) -> None:
    """YAML, templates, and what is neither."""
    assert audit_dashboards([Written(path="q.yaml", text=text)]).audit == "dashboards"
