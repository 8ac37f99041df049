"""Finds every query in a document: panels, rules, variables, adapters, lists, and texts that hold documents themselves.

In: the plain documents of one file. Out: queries in the order of the text, renames that relabelling makes, and what
could not be read. A text that names a device metric and stands in no known place is a query too if it can be read as
one: nothing that is there is skipped.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace

from gpuledger.audit import adapter_rules, autoscalers, cloud_monitoring, grafana
from gpuledger.audit.device_metrics import tells_device
from gpuledger.audit.extracted import Around, Extracted
from gpuledger.audit.grafana import listing, mapping, text
from gpuledger.audit.panel_rows import layout_of, repeated, row_of, titled
from gpuledger.audit.plain import Text, embedded, key_of, line_of
from gpuledger.audit.queries import NOTHING_SHOWN, Query, Role, Shown
from gpuledger.audit.query_places import (
    CERTAIN,
    LISTS,
    MAY_HOLD,
    NO_QUERIES,
    OF_PANELS,
    OF_QUERIES,
    OTHER_LANGUAGES,
    POSSIBLE,
    PROSE,
    RELABELLING,
    RENAMING,
    TELLING,
    asked_by,
    is_document,
    might_be_query,
    said_by,
)
from gpuledger.audit.renaming import Rename, aggregated, made_label, renamed
from gpuledger.model.findings import Where
from gpuledger.model.problem import Problem

DEEPEST = 100
MOST_NESTED = 3
"""Documents in texts of documents: a dashboard in a ConfigMap in a Helm value."""

MOST_QUERIES = 100_000
"""Of one file."""


def extract(documents: list[object], path: str) -> Extracted:
    """Every query of the documents of one file."""
    walker = _Walker(path)
    for document in documents:
        walker.walk(document, Around(), 0)
    return walker.found


def extract_strings(strings: list[Text], path: str) -> Extracted:
    """The queries among the strings of a program, and those of documents that a string of it holds."""
    walker = _Walker(path)
    for each in strings:
        walker.string(each)
    return walker.found


class _Walker:
    def __init__(self, path: str) -> None:
        self._path = path
        self._panels = 0
        self.found = Extracted()

    def walk(self, value: object, around: Around, depth: int) -> None:
        if depth > DEEPEST:
            if not any(problem.code == "too-deep" for problem in self.found.unread):
                message = f"nested more than {DEEPEST} levels deep; what lies deeper was not read"
                self.found.unread.append(Problem(code="too-deep", message=message, where=self._path))
        elif isinstance(value, dict):
            self._mapping(value, around, depth)
        elif isinstance(value, list):
            for each in value:
                self.walk(each, around, depth + 1)
        elif isinstance(value, Text) and depth == 0 and might_be_query(value):  # a file that is one query
            self._add(value, around, Role.LISTED, certain=False)

    def string(self, written: Text) -> None:
        """A string of a program."""
        if is_document(written):
            self._inside(written, Around(), 0)
        elif might_be_query(written):
            where = self._where(written, "string")  # whatever stands beside it, a legend perhaps, is the program's
            shown = Shown(by_default=True)
            self._keep(Query(where=where, text=str(written), role=Role.MENTION, shown=shown, is_certain=False))

    def _mapping(self, value: dict[str, object], around: Around, depth: int) -> None:
        told = TELLING.intersection(value)
        if told <= OF_QUERIES and not ("expr" in told and ("record" in value or "alert" in value)):
            if "datasource" in told:
                around = self._sourced(value, around)
            self._children(value, value.items(), around, depth)
            return
        if "templating" in value or "panels" in value or "rows" in value or "elements" in value or "__inputs" in value:
            around = self._dashboard(value, around)
        if "repeat" in value or "title" in value or "targets" in value or value.get("kind") == "Panel":
            around = self._panel(value, around)
        if ("expr" in value or "expression" in value) and ("record" in value or "alert" in value):
            self._rule(value, around)
            return
        if autoscalers.is_autoscaler(value):
            for name, written, shown in autoscalers.queries(value):
                self._keep(Query(where=self._where(written, name), text=str(written), role=Role.ADAPTER, shown=shown))
            return
        if "metricsQuery" in value and ("seriesQuery" in value or "name" in value):
            self._adapter(value)
            return
        if "model" in value and "uid" in value:
            self.found.panel_uids.add(text(value["uid"]))
        if self._is_grafana_alert(value):
            around = around._replace(name=text(value.get("title")) or around.name, said=tuple(said_by(value)))
        if cloud_monitoring.is_filter(value):
            self._cloud(value, around)
            return
        if isinstance(value.get("metadata"), dict) and isinstance(value.get("type"), str):  # a trigger of KEDA
            kind = grafana.source_kind({"type": value["type"]}, {})
            around = around._replace(source=kind, name=around.name or f"trigger {value['type']}")
        for written in aggregated(value):
            self._add(written, around._replace(name="stream aggregation"), Role.LISTED, certain=True)
        if not RENAMING.isdisjoint(value):
            self._relabelling(value, around)
        if "datasource" in value:
            around = self._sourced(value, around)
        children = list(value.items())
        if "panels" in value and isinstance(value["panels"], list):
            self._panels_in_rows(value["panels"], around, depth)
            children = [pair for pair in children if pair[0] != "panels"]
        self._children(value, children, around, depth)

    def _children(
        self, value: dict[str, object], children: Iterable[tuple[str, object]], around: Around, depth: int
    ) -> None:
        looks = OF_PANELS if "targets" in value else NO_QUERIES
        for key, each in children:
            if isinstance(each, str):
                if key in MAY_HOLD or "\n" in each or each[:1] == "{" or key_of(key) in MAY_HOLD or tells_device(each):
                    self._text(key_of(key), each, value, around, depth)
            elif each and key not in looks and isinstance(each, dict | list):
                self._pair(key_of(key), each, value, around, depth)

    def _pair(self, key: str, each: object, value: dict[str, object], around: Around, depth: int) -> None:
        if isinstance(each, dict):
            if key in LISTS and each and all(isinstance(inner, str) for inner in each.values()):
                for name, inner in each.items():
                    self._add(inner, around._replace(name=key_of(name)), Role.LISTED, certain=True)
            elif key == "elements" and around.layout:
                for name, element in each.items():
                    inside = around
                    for row in around.layout.get(name, ()):
                        inside = row_of(row, inside)
                    self.walk(element, inside, depth + 1)
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
            if key == "rules" and "labels" in value:
                around = around._replace(labels=_labels(value["labels"]))
            if key in RELABELLING:
                around = around._replace(in_metrics=True)
            for inner in each:
                if isinstance(inner, str):
                    self._text(key, inner, value, around, depth)
                else:
                    self.walk(inner, around, depth + 1)

    def _sourced(self, value: Mapping[str, object], around: Around) -> Around:
        """With the data source of a panel or query, where that says more than what is around it."""
        if around.panel is None and "expr" not in value:
            return around
        kind = grafana.source_kind(value["datasource"], around.sources)
        is_news = kind != around.source and (kind or grafana.is_prometheus(value["datasource"]))
        return around._replace(source=kind) if is_news else around

    def _dashboard(self, value: Mapping[str, object], around: Around) -> Around:
        self.found.panel_uids.update(mapping(value.get("__elements")))
        variables = grafana.variables_of(value)
        sources = grafana.kinds_of_sources(value)
        layout = layout_of(value) if "layout" in value else {}
        if not variables and not sources and not layout:
            return around
        return around._replace(
            variables={**around.variables, **variables}, sources={**around.sources, **sources}, layout=layout
        )

    def _panel(self, value: Mapping[str, object], around: Around) -> Around:
        spec = mapping(value.get("spec")) if value.get("kind") == "Panel" else value
        title = text(spec.get("title")) or text(mapping(spec.get("display")).get("name"))  # display: of Perses
        is_row = spec.get("type") == "row" or (
            "panels" in value and "templating" not in value and "targets" not in value
        )
        around = row_of(spec, around) if is_row else repeated(spec, around, "the panel")
        if "libraryPanel" in value and not listing(value.get("targets")) and "model" not in value:
            panel = mapping(value["libraryPanel"])
            message = "a panel of Grafana's library: its queries stand there, export the library and audit it too"
            where = f"{self._path} ({text(panel.get('name')) or title})"
            problem = Problem(code="library-panel", message=message, where=where)
            self.found.borrowed.append((text(panel.get("uid")), problem))
        if not grafana.is_panel(value):
            return around._replace(name=around.name or title) if title else around
        self._panels += 1
        around = titled(title, around, "the title")
        return around._replace(
            panel=value, name=title or around.name or "panel", panel_place=f"{self._path}#{self._panels}",
            source=grafana.source_kind(spec.get("datasource"), around.sources),
        )  # fmt: skip

    def _panels_in_rows(self, panels: list[object], around: Around, depth: int) -> None:
        """Panels in their order: those behind an open row belong to it until the next."""
        inside = around
        for each in panels:
            one = mapping(each)
            if one.get("type") == "row":
                inside = row_of(one, around)
                self.walk(each, around, depth + 1)
            else:
                self.walk(each, inside, depth + 1)

    def _variables(self, templating: Mapping[str, object], around: Around) -> None:
        for each in listing(templating.get("list")):
            one = mapping(each)
            spec = mapping(one.get("spec")) or one
            kind = (text(one.get("type")) or text(one.get("kind"))).lower()
            if not kind.startswith("query") and "plugin" not in spec:
                continue
            if grafana.source_kind(spec.get("datasource"), around.sources):
                continue
            written = grafana.query_of(spec)
            line = (
                line_of(mapping(spec.get("query")).get("query"))
                or line_of(mapping(mapping(spec.get("plugin")).get("spec")).get("expr"))
                or line_of(spec.get("query"))
                or line_of(spec.get("definition"))
            )
            if written.strip():
                name = f"variable {text(spec.get('name'))}"
                at = around._replace(name=name)
                self._add(Text(written, line), at, Role.VARIABLE, certain=tells_device(written))

    def _is_grafana_alert(self, value: Mapping[str, object]) -> bool:
        return "condition" in value and isinstance(value.get("data"), list)

    def _rule(self, value: dict[str, object], around: Around) -> None:
        record, alert = text(value.get("record")), text(value.get("alert"))
        labels = (*around.labels, *_labels(value["labels"])) if "labels" in value else around.labels
        said = tuple(said_by(value)) if alert else ()
        for key, each in value.items():
            if key_of(key) not in ("expr", "expression") or each is None:  # expression: of Azure's rule groups
                continue
            written = each if isinstance(each, str) else str(each)
            name = f"record {record}" if record else f"alert {alert}"
            query = Query(
                where=self._where(written, name), text=str(written), role=Role.RECORD if record else Role.ALERT,
                shown=Shown(labels=said), variables=around.variables, record=record, labels=labels,
            )  # fmt: skip
            self._keep(query)
        for written in asked_by(value) if alert else ():
            where = self._where(written, f"alert {alert} / its text")
            self._keep(Query(where=where, text=str(written), role=Role.LISTED, variables=around.variables))

    def _adapter(self, value: Mapping[str, object]) -> None:
        for name, written, shown in adapter_rules.queries(value):
            self._keep(Query(where=self._where(written, name), text=str(written), role=Role.ADAPTER, shown=shown))

    def _cloud(self, value: Mapping[str, object], around: Around) -> None:
        written = value.get("filter")
        name = around.name or "filter"
        text_, note = cloud_monitoring.as_query(value)
        self._keep(Query(where=self._where(written, name), text=text_, role=Role.CLOUD, note=note))

    def _relabelling(self, value: Mapping[str, object], around: Around) -> None:
        where = self._where(value.get("regex") or value.get("include"), "relabel")
        self.found.renames += [Rename(pattern=old, name=new, where=where) for old, new in renamed(value)]
        made = made_label(value) if around.in_metrics else None
        if made:
            self.found.made.setdefault(*made)

    def _text(self, key: str, written: str, value: Mapping[str, object], around: Around, depth: int) -> None:
        if key in OTHER_LANGUAGES:
            self._foreign(written, self._named(value, around), OTHER_LANGUAGES[key])
        elif key in CERTAIN:
            self._add(written, self._named(value, around), self._role(around), certain=True, target=value)
        elif key in POSSIBLE and self._is_query(key, around):
            is_sure = (around.panel is not None and not around.source) or tells_device(written)
            self._add(written, self._named(value, around), self._role(around), certain=is_sure, target=value)
        elif is_document(written):
            self._inside(written, around, depth)
        elif key not in PROSE and might_be_query(written):
            self._add(written, self._named(value, around, key), Role.MENTION, certain=False)

    def _is_query(self, key: str, around: Around) -> bool:
        """Whether a key that may hold a query does: ``expression`` is also that of Grafana's own arithmetic."""
        if key == "expression":
            return bool(around.source) and "Grafana" not in around.source
        return key != "definition" or around.panel is not None

    def _foreign(self, written: str, around: Around, language: str) -> None:
        if tells_device(written):
            where = self._where(written, around.name)
            self._keep(Query(where=where, text=str(written), role=Role.FOREIGN, note=language))

    def _inside(self, written: str, around: Around, depth: int) -> None:
        shifted = written if isinstance(written, Text) else Text(written)
        if len(written) < 40 or not re.search(r"expr|query|dcgm", written, re.IGNORECASE):
            return
        if around.nested >= MOST_NESTED:
            if tells_device(written):
                message = f"a text in a text in a text, {MOST_NESTED} deep: what it holds was not read"
                self.found.unread.append(
                    Problem(code="too-deep", message=message, where=f"{self._path}:{shifted.line}")
                )
            return
        documents, unread = embedded(shifted, self._path)
        for document in documents:
            self.walk(document, around._replace(nested=around.nested + 1), depth + 1)
        if tells_device(written):
            self.found.unread += unread

    def _named(self, value: Mapping[str, object], around: Around, key: str = "") -> Around:
        for name in ("record", "id", "name", "metricName", "alert"):
            if around.panel is None and text(value.get(name)):
                return around._replace(name=text(value.get(name)))
        return around if around.name or not key else around._replace(name=key)

    def _role(self, around: Around) -> Role:
        return Role.PANEL if around.panel is not None else Role.ALERT if around.said else Role.LISTED

    def _add(
        self, written: str, around: Around, role: Role, *, certain: bool, target: Mapping[str, object] | None = None
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
        foreign = around.source if role in (Role.PANEL, Role.LISTED, Role.ALERT) else ""
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


def _labels(value: object) -> tuple[tuple[str, str], ...]:
    """The labels that a rule adds, or a group of rules."""
    return tuple((key_of(key), each) for key, each in mapping(value).items() if isinstance(each, str))
