"""Rows, repeats and titles, old and of schema 2."""

from __future__ import annotations

from gpuledger.audit.extracted import Around
from gpuledger.audit.panel_rows import DEEPEST_ROWS, layout_of, repeated, row_of, titled
from gpuledger.audit.query_text import Variable

AROUND = Around(variables={"who": Variable(name="who", label="pod"), "host": Variable(name="host", label="Hostname")})


def test_a_title_names_a_workload_by_its_variable() -> None:
    """By what the variable stands for; a host's is none, and a title without any changes nothing."""
    assert titled("of $who on $host", AROUND, "the title").repeated == (("who", "the title names $who"),)
    assert titled("of [[who]]", AROUND, "the title").repeated == (("who", "the title names $who"),)
    assert titled("all", AROUND, "the title") is AROUND


def test_a_row_gives_what_it_is_titled_with_and_repeated_for() -> None:
    """To each panel in it."""
    assert [name for name, _ in row_of({"title": "$who", "repeat": "who"}, AROUND).repeated] == ["who", "who"]
    assert repeated({"repeat": {"mode": "variable", "value": "who"}}, AROUND, "the panel").repeated == (
        ("who", "the panel is repeated for each $who"),
    )
    assert repeated({"repeat": "host"}, AROUND, "the panel") is AROUND


def test_rows_and_tabs_of_schema_2_refer_to_their_panels() -> None:
    """By the name of the element, the outermost row first; what nobody titled or repeated says nothing."""

    def item(name: str) -> dict[str, object]:
        return {"kind": "GridLayoutItem", "spec": {"element": {"kind": "ElementReference", "name": name}}}

    inner = {"kind": "RowsLayoutRow", "spec": {"title": "in", "layout": {"spec": {"items": [item("a")]}}}}
    tab = {"kind": "TabsLayoutTab", "spec": {"title": "tab", "layout": {"spec": {"rows": [inner]}}}}
    found = layout_of({"layout": {"spec": {"tabs": [tab], "items": [item("b")]}}})
    assert [row["title"] for row in found["a"]] == ["tab", "in"]
    assert found["b"] == ()
    assert layout_of({}) == {}


def test_rows_in_rows_without_an_end_are_left() -> None:
    """Beyond what anybody nests."""
    deep: dict[str, object] = {"spec": {"title": "x", "element": {"name": "a"}}}
    for _ in range(DEEPEST_ROWS * 3):
        deep = {"spec": {"title": "x", "layout": deep}}
    assert layout_of({"layout": deep}) == {}
