"""What rows, repeats and titles say of the panels below them: whose figure a reader takes theirs to be.

In: rows and panels as a dashboard has them, old, present or of schema 2. Out: what stands around a panel, with the
variables of workloads that it is repeated for or titled with.
"""

from __future__ import annotations

from collections.abc import Mapping

from gpuledger.audit.extracted import Around
from gpuledger.audit.grafana import mapping, stands_for_workload, text
from gpuledger.audit.query_text import names_in

DEEPEST_ROWS = 10
"""Rows in tabs in rows."""


def titled(title: str, around: Around, what: str) -> Around:
    """With the variables of workloads that a title names: what stands below it is theirs to its reader."""
    if "$" not in title and "[[" not in title:
        return around
    found = [(name, f"{what} names ${name}") for name in names_in(title) if stands_for_workload(name, around.variables)]
    return around._replace(repeated=(*around.repeated, *found))


def repeated(spec: Mapping[str, object], around: Around, what: str) -> Around:
    """With the variable of workloads that a panel or row is repeated for."""
    repeat = spec.get("repeat")
    name = text(mapping(repeat).get("value")) if isinstance(repeat, dict) else text(repeat)
    if name and stands_for_workload(name, around.variables):
        return around._replace(repeated=(*around.repeated, (name, f"{what} is repeated for each ${name}")))
    return around


def row_of(spec: Mapping[str, object], around: Around) -> Around:
    """What stands around the panels of a row."""
    return repeated(spec, titled(text(spec.get("title")), around, "the title of the row"), "the row")


def layout_of(dashboard: Mapping[str, object]) -> dict[str, tuple[Mapping[str, object], ...]]:
    """Of schema 2, the rows, tabs and places that each panel lies in, by the name of its element; outermost first."""
    found: dict[str, tuple[Mapping[str, object], ...]] = {}
    waiting: list[tuple[object, tuple[Mapping[str, object], ...]]] = [(dashboard.get("layout"), ())]
    while waiting:
        value, around = waiting.pop()
        if isinstance(value, list):
            waiting += [(each, around) for each in value]
        elif isinstance(value, dict):
            spec = mapping(value.get("spec"))
            inside = (*around, spec) if "title" in spec or "repeat" in spec else around
            element = mapping(spec.get("element"))
            if element:
                found[text(element.get("name"))] = inside
            if len(inside) <= DEEPEST_ROWS:
                waiting += [(each, inside) for each in spec.values() if isinstance(each, dict | list)]
    return found
