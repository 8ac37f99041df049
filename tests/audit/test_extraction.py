"""Where queries stand in documents."""

from __future__ import annotations

import pytest

from gpuledger.audit.extraction import DEEPEST, extract
from gpuledger.audit.queries import Role


def found(document: object) -> list[tuple[str, Role, str]]:
    """Name, role and text of each query of a document."""
    return [(query.where.name, query.role, query.text) for query in extract([document], "f").queries]


def test_rules_are_records_and_alerts() -> None:
    """By what they are called."""
    rules = {"groups": [{"rules": [{"record": "a", "expr": "x"}, {"alert": "b", "expr": "y"}]}]}
    assert found(rules) == [("record a", Role.RECORD, "x"), ("alert b", Role.ALERT, "y")]


def test_lists_of_queries_have_the_names_they_are_given() -> None:
    """A mapping of names, a list of texts, a list of mappings."""
    assert found({"queries": {"q": "x"}}) == [("q", Role.LISTED, "x")]
    assert found({"exprs": ["x", "y"]}) == [("exprs[1]", Role.LISTED, "x"), ("exprs[2]", Role.LISTED, "y")]
    assert found([{"id": "i", "expr": "x"}]) == [("i", Role.LISTED, "x")]


def test_a_text_in_an_unknown_place_that_names_a_device_metric_is_a_query() -> None:
    """But not in prose."""
    text = "avg by (pod) (DCGM_FI_PROF_SM_ACTIVE)"
    assert found({"gpuExpressionOfOurOwn": text}) == [("gpuExpressionOfOurOwn", Role.MENTION, text)]
    assert found({"description": text, "title": text}) == []


@pytest.mark.parametrize("language", ["timeSeriesQueryLanguage", "rawSql"])
def test_other_languages_are_foreign(language: str) -> None:
    """They are told where they name a metric of the exporter."""
    assert [role for _, role, _ in found({language: "select DCGM_FI_PROF_X from y"})] == [Role.FOREIGN]
    assert found({language: "select 1"}) == []


def test_documents_in_documents_are_read_three_deep() -> None:
    """And what lies deeper is told."""
    text = "expr: DCGM_FI_PROF_SM_ACTIVE # long enough to be a document\n"
    for _ in range(3):
        text = "inner: |\n" + "".join(f"  {line}\n" for line in text.splitlines()) + "kind: x\n"
    assert [query.text for query in extract([{"inner": text}], "f").queries] == []
    assert [problem.code for problem in extract([{"inner": text}], "f").unread] == ["too-deep"]


def test_depth_is_bounded() -> None:
    """What lies deeper is told once."""
    deep: object = {"expr": "x"}
    for _ in range(DEEPEST * 2):
        deep = [deep, deep] if isinstance(deep, str) else [deep]
    assert [problem.code for problem in extract([deep], "f").unread] == ["too-deep"]


def test_relabelling_to_another_name_is_a_rename() -> None:
    """With a fixed name, and one that is put together of a group."""
    rule = {
        "source_labels": ["__name__"],
        "regex": "DCGM_FI_PROF_(.*)",
        "target_label": "__name__",
        "replacement": "busy",
    }
    assert [(each.pattern, each.name) for each in extract([rule], "f").renames] == [("DCGM_FI_PROF_(.*)", "busy")]
    grouped = {each.pattern: each.name for each in extract([{**rule, "replacement": "gpu_$1"}], "f").renames}
    assert grouped["DCGM_FI_PROF_SM_ACTIVE"] == "gpu_SM_ACTIVE"
    assert "DCGM_FI_DEV_GPU_UTIL" not in grouped


def test_a_dashboard_of_one_line_in_a_config_map_is_one() -> None:
    """In quotes, as it is printed where it has no line breaks; a metric's name in braces stays a query."""
    board = '{"panels": [{"title": "p", "type": "stat", "targets": [{"expr": "avg by (pod) (DCGM_FI_PROF_X)"}]}]}'
    found = extract([{"kind": "ConfigMap", "data": {"x.json": board}}], "cm.yaml")
    assert [(query.text, query.where.name) for query in found.queries] == [("avg by (pod) (DCGM_FI_PROF_X)", "p")]
    assert found.unread == []
    named = extract([{"query": '{"DCGM_FI_PROF_X", pod="a"}'}], "q.yaml")
    assert [query.text for query in named.queries] == ['{"DCGM_FI_PROF_X", pod="a"}']
