"""Finds every query in a document: panels, rules, variables, adapters, lists, and texts that hold documents themselves.

In: the plain documents of one file. Out: queries in the order of the text, renames that relabelling makes, and what
could not be read. A text that names a device metric and stands in no known place is a query too if it can be read as
one: nothing that is there is skipped.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import NamedTuple

from gpuledger.audit import adapter_rules, cloud_monitoring, grafana
from gpuledger.audit.gpu_words import tells_dcgm
from gpuledger.audit.grafana import listing, mapping, text
from gpuledger.audit.plain import Text, embedded, key_of, line_of
from gpuledger.audit.queries import NOTHING_SHOWN, Query, Role, Shown
from gpuledger.audit.query_places import (
    CERTAIN,
    DOCUMENT,
    LISTS,
    MAY_HOLD,
    NO_QUERIES,
    OF_PANELS,
    OTHER_LANGUAGES,
    POSSIBLE,
    PROSE,
    TELLING,
    might_be_query,
    said_by,
)
from gpuledger.audit.query_text import Variable, names_in
from gpuledger.model.findings import Where
from gpuledger.model.problem import Problem

DEEPEST = 100
MOST_NESTED = 3
"""Documents in texts of documents: a dashboard in a ConfigMap in a Helm value."""

MOST_QUERIES = 100_000
"""Of one file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rename:
    """A metric that relabelling gives another name.

    Args:
        pattern: of the old names.
        name: the new one.
        where: the place.
    """

    pattern: str
    name: str
    where: Where


_OBJECT = re.compile(r'\s*\{\s*"[^"\n]{1,200}"\s*:')
"""How JSON of one line begins, as `kubectl get configmap` prints a dashboard; a name in braces has no colon behind."""


@dataclass(slots=True)
class Extracted:
    """What a file holds."""

    queries: list[Query] = field(default_factory=list)
    renames: list[Rename] = field(default_factory=list)
    unread: list[Problem] = field(default_factory=list)


class _Around(NamedTuple):
    """What stands around a place in a document."""

    variables: Mapping[str, Variable] = MappingProxyType({})
    sources: Mapping[str, str] = MappingProxyType({})
    panel: Mapping[str, object] | None = None
    name: str = ""
    panel_place: str = ""
    in_annotations: bool = False
    source: str = ""
    repeated: tuple[tuple[str, str], ...] = ()
    said: tuple[tuple[str, str], ...] = ()
    nested: int = 0


def extract(documents: list[object], path: str) -> Extracted:
    """Every query of the documents of one file."""
    walker = _Walker(path)
    for document in documents:
        walker.walk(document, _Around(), 0)
    return walker.found


class _Walker:
    def __init__(self, path: str) -> None:
        self._path = path
        self._panels = 0
        self.found = Extracted()

    def walk(self, value: object, around: _Around, depth: int) -> None:
        if depth > DEEPEST:
            if not any(problem.code == "too-deep" for problem in self.found.unread):
                message = f"nested more than {DEEPEST} levels deep; what lies deeper was not read"
                self.found.unread.append(Problem(code="too-deep", message=message, where=self._path))
        elif isinstance(value, dict):
            self._mapping(value, around, depth)
        elif isinstance(value, list):
            for each in value:
                self.walk(each, around, depth + 1)

    def _mapping(self, value: dict[str, object], around: _Around, depth: int) -> None:
        if TELLING.isdisjoint(value):
            self._children(value, value.items(), around, depth)
            return
        if "templating" in value or "panels" in value or "rows" in value or "elements" in value or "__inputs" in value:
            around = self._dashboard(value, around)
        if "repeat" in value or "title" in value or "targets" in value or value.get("kind") == "Panel":
            around = self._panel(value, around)
        if "expr" in value and ("record" in value or "alert" in value):
            self._rule(value, around)
            return
        if "metricsQuery" in value and ("seriesQuery" in value or "name" in value):
            self._adapter(value)
            return
        if self._is_grafana_alert(value):
            around = around._replace(name=text(value.get("title")) or around.name, said=tuple(said_by(value)))
        if cloud_monitoring.is_filter(value):
            self._cloud(value, around)
            return
        self._relabelling(value)
        if "datasource" in value and around.panel is not None:
            kind = grafana.source_kind(value["datasource"], around.sources)
            if kind != around.source and (kind or grafana.is_prometheus(value["datasource"])):
                around = around._replace(source=kind)
        children = list(value.items())
        if "panels" in value and isinstance(value["panels"], list):
            self._panels_in_rows(value["panels"], around, depth)
            children = [pair for pair in children if pair[0] != "panels"]
        self._children(value, children, around, depth)

    def _children(
        self, value: dict[str, object], children: Iterable[tuple[str, object]], around: _Around, depth: int
    ) -> None:
        looks = OF_PANELS if "targets" in value else NO_QUERIES
        for key, each in children:
            if isinstance(each, str):
                if key in MAY_HOLD or "\n" in each or each[:1] == "{" or key_of(key) in MAY_HOLD or tells_dcgm(each):
                    self._text(key_of(key), each, value, around, depth)
            elif each and key not in looks and isinstance(each, dict | list):
                self._pair(key_of(key), each, value, around, depth)

    def _pair(self, key: str, each: object, value: dict[str, object], around: _Around, depth: int) -> None:
        if isinstance(each, dict):
            if key in LISTS and each and all(isinstance(inner, str) for inner in each.values()):
                for name, inner in each.items():
                    self._add(inner, around._replace(name=key_of(name)), Role.LISTED, certain=True)
            elif key == "templating":
                self._variables(each, around)
            elif key == "annotations":
                self.walk(each, around._replace(in_annotations=True), depth + 1)
            else:
                self.walk(each, around, depth + 1)
        elif isinstance(each, list):
            if key in LISTS and all(isinstance(inner, str) for inner in each):
                for number, inner in enumerate(each, 1):
                    self._add(inner, around._replace(name=f"{key}[{number}]"), Role.LISTED, certain=True)
                return
            if key == "variables" and any("spec" in mapping(inner) for inner in each):
                self._variables({"list": each}, around)
                return
            for inner in each:
                if isinstance(inner, str):
                    self._text(key, inner, value, around, depth)
                else:
                    self.walk(inner, around, depth + 1)

    def _dashboard(self, value: Mapping[str, object], around: _Around) -> _Around:
        variables = grafana.variables_of(value)
        sources = grafana.kinds_of_sources(value)
        if not variables and not sources:
            return around
        return around._replace(variables={**around.variables, **variables}, sources={**around.sources, **sources})

    def _panel(self, value: Mapping[str, object], around: _Around) -> _Around:
        spec = mapping(value.get("spec")) if value.get("kind") == "Panel" else value
        title = text(spec.get("title"))
        around = self._repeat(spec, around, "the row" if spec.get("type") == "row" else "the panel")
        if "libraryPanel" in value and not listing(value.get("targets")) and "model" not in value:
            named = text(mapping(value["libraryPanel"]).get("name")) or title
            message = "a panel of Grafana's library: its queries stand there, export the library and audit it too"
            self.found.unread.append(Problem(code="library-panel", message=message, where=f"{self._path} ({named})"))
        if not grafana.is_panel(value):
            return around._replace(name=around.name or title) if title else around
        self._panels += 1
        titled = tuple((name, f"the title names ${name}") for name in names_in(title))
        workloads = tuple(each for each in titled if grafana.stands_for_workload(each[0], around.variables))
        return around._replace(
            panel=value, name=title or around.name or "panel", panel_place=f"{self._path}#{self._panels}",
            source=grafana.source_kind(spec.get("datasource"), around.sources),
            repeated=(*around.repeated, *workloads),
        )  # fmt: skip

    def _repeat(self, spec: Mapping[str, object], around: _Around, what: str) -> _Around:
        repeat = spec.get("repeat")
        name = text(mapping(repeat).get("value")) if isinstance(repeat, dict) else text(repeat)
        if name and grafana.stands_for_workload(name, around.variables):
            return around._replace(repeated=(*around.repeated, (name, f"{what} is repeated for each ${name}")))
        return around

    def _panels_in_rows(self, panels: list[object], around: _Around, depth: int) -> None:
        """Panels in their order: those behind an open row belong to it until the next."""
        inside = around
        for each in panels:
            one = mapping(each)
            if one.get("type") == "row":
                inside = self._repeat(one, around, "the row")
                self.walk(each, around, depth + 1)
            else:
                self.walk(each, inside, depth + 1)

    def _variables(self, templating: Mapping[str, object], around: _Around) -> None:
        for each in listing(templating.get("list")):
            one = mapping(each)
            spec = mapping(one.get("spec")) or one
            kind = (text(one.get("type")) or text(one.get("kind"))).lower()
            if not kind.startswith("query"):
                continue
            if grafana.source_kind(spec.get("datasource"), around.sources):
                continue
            written = grafana.query_of(spec)
            line = (
                line_of(mapping(spec.get("query")).get("query"))
                or line_of(spec.get("query"))
                or line_of(spec.get("definition"))
            )
            if written.strip():
                name = f"variable {text(spec.get('name'))}"
                at = around._replace(name=name)
                self._add(Text(written, line), at, Role.VARIABLE, certain=tells_dcgm(written))

    def _is_grafana_alert(self, value: Mapping[str, object]) -> bool:
        return "condition" in value and isinstance(value.get("data"), list)

    def _rule(self, value: dict[str, object], around: _Around) -> None:
        record, alert = text(value.get("record")), text(value.get("alert"))
        labels = tuple(
            (key_of(key), each) for key, each in mapping(value.get("labels")).items() if isinstance(each, str)
        )
        said = tuple(said_by(value)) if alert else ()
        for key, each in value.items():
            if key_of(key) != "expr" or each is None:
                continue
            written = each if isinstance(each, str) else str(each)
            name = f"record {record}" if record else f"alert {alert}"
            query = Query(
                where=self._where(written, name), text=str(written), role=Role.RECORD if record else Role.ALERT,
                shown=Shown(labels=said), variables=around.variables, record=record, labels=labels,
            )  # fmt: skip
            self._keep(query)

    def _adapter(self, value: Mapping[str, object]) -> None:
        for name, written, shown in adapter_rules.queries(value):
            self._keep(Query(where=self._where(written, name), text=str(written), role=Role.ADAPTER, shown=shown))

    def _cloud(self, value: Mapping[str, object], around: _Around) -> None:
        written = value.get("filter")
        name = around.name or "filter"
        text_, note = cloud_monitoring.as_query(value)
        self._keep(Query(where=self._where(written, name), text=text_, role=Role.CLOUD, note=note))

    def _relabelling(self, value: Mapping[str, object]) -> None:
        target = text(value.get("targetLabel")) or text(value.get("target_label"))
        pattern, new = value.get("regex"), text(value.get("replacement"))
        if target == "__name__" and isinstance(pattern, str) and new and "$" not in new:
            self.found.renames.append(
                Rename(pattern=str(pattern), name=new, where=self._where(pattern, f"relabel {new}"))
            )

    def _text(self, key: str, written: str, value: Mapping[str, object], around: _Around, depth: int) -> None:
        if key in OTHER_LANGUAGES:
            self._foreign(written, self._named(value, around), OTHER_LANGUAGES[key])
        elif key in CERTAIN:
            self._add(written, self._named(value, around), self._role(around), certain=True, target=value)
        elif key in POSSIBLE and (key != "definition" or around.panel is not None) and key != "expression":
            is_sure = (around.panel is not None and not around.source) or tells_dcgm(written)
            self._add(written, self._named(value, around), self._role(around), certain=is_sure, target=value)
        elif ("\n" in written and DOCUMENT.search(written)) or _OBJECT.match(written):
            self._inside(written, around, depth)
        elif "DCGM_FI_" in written.upper() and key not in PROSE and might_be_query(written):
            self._add(written, self._named(value, around, key), Role.MENTION, certain=False)

    def _foreign(self, written: str, around: _Around, language: str) -> None:
        if tells_dcgm(written):
            where = self._where(written, around.name)
            self._keep(Query(where=where, text=str(written), role=Role.FOREIGN, note=language))

    def _inside(self, written: str, around: _Around, depth: int) -> None:
        shifted = written if isinstance(written, Text) else Text(written)
        if len(written) < 40 or not re.search(r"expr|query|dcgm", written, re.IGNORECASE):
            return
        if around.nested >= MOST_NESTED:
            if tells_dcgm(written):
                message = f"a text in a text in a text, {MOST_NESTED} deep: what it holds was not read"
                self.found.unread.append(
                    Problem(code="too-deep", message=message, where=f"{self._path}:{shifted.line}")
                )
            return
        documents, unread = embedded(shifted, self._path)
        for document in documents:
            self.walk(document, around._replace(nested=around.nested + 1), depth + 1)
        if tells_dcgm(written):
            self.found.unread += unread

    def _named(self, value: Mapping[str, object], around: _Around, key: str = "") -> _Around:
        for name in ("record", "id", "name", "metricName", "alert"):
            if around.panel is None and text(value.get(name)):
                return around._replace(name=text(value.get(name)))
        return around if around.name or not key else around._replace(name=key)

    def _role(self, around: _Around) -> Role:
        return Role.PANEL if around.panel is not None else Role.ALERT if around.said else Role.LISTED

    def _add(
        self, written: str, around: _Around, role: Role, *, certain: bool, target: Mapping[str, object] | None = None
    ) -> None:
        if not written.strip():
            return
        shown = NOTHING_SHOWN
        name = around.name
        is_merged = False
        if role is Role.PANEL and around.panel is not None and target is not None:
            shown = grafana.shown_by(around.panel, target)
            is_merged = grafana.is_merging(around.panel)
            ref = text(target.get("refId"))
            name = f"{name} / {ref}" if ref else name
        elif around.in_annotations and target is not None:
            told = " ".join(text(target.get(key)) for key in ("titleFormat", "textFormat", "tagKeys"))
            shown = Shown(labels=tuple(grafana.labels_in(told, "the annotation")))
        if around.said:
            shown = replace(shown, labels=(*shown.labels, *around.said))
        if around.repeated:
            shown = replace(shown, by_variable=around.repeated)
        foreign = around.source if role is Role.PANEL else ""
        self._keep(
            Query(
                where=self._where(written, name), text=str(written), role=Role.FOREIGN if foreign else role,
                shown=shown,
                variables=around.variables, panel=around.panel_place if role is Role.PANEL else "", is_merged=is_merged,
                note=foreign, is_certain=certain,
            )
        )  # fmt: skip

    def _where(self, written: object, name: str) -> Where:
        return Where(path=self._path, line=line_of(written), name=name)

    def _keep(self, query: Query) -> None:
        if len(self.found.queries) < MOST_QUERIES:
            self.found.queries.append(query)
        elif len(self.found.queries) == MOST_QUERIES and not any(
            each.code == "too-many-queries" for each in self.found.unread
        ):
            message = f"more than {MOST_QUERIES:,} queries; the others were not judged"
            self.found.unread.append(Problem(code="too-many-queries", message=message, where=self._path))
