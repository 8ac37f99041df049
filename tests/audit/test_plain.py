"""JSON, YAML and templates as plain values with lines."""

from __future__ import annotations

import json

import pytest

from gpuledger.audit.plain import Text, embedded, held_braces, key_of, line_of, read
from gpuledger.model.findings import Written


def document(text: str, path: str = "f") -> object:
    """The one document of a text."""
    found, unread = read(Written(path=path, text=text))
    assert unread == []
    return found[0]


def test_queries_of_json_have_lines() -> None:
    """The same text twice, escapes, and keys that look like it inside texts."""
    text = '{"a": "\\"expr\\": \\"x\\"",\n"z": {"expr": "x"},\n"b": {"expr": "x"},\n\n"c": [{"expr": "\\u0078\\n"}]}'
    found = document(text)
    assert isinstance(found, dict)
    assert [line_of(each) for each in (found["z"]["expr"], found["b"]["expr"], found["c"][0]["expr"])] == [2, 3, 5]


def test_yaml_texts_have_lines() -> None:
    """Also inside a block that is a document itself."""
    found = document("a: 1\nrules: |\n  groups:\n  - expr: x\n")
    assert isinstance(found, dict)
    assert isinstance(found["rules"], Text)
    (inner,), _ = embedded(found["rules"], "f")
    assert isinstance(inner, dict)
    assert line_of(inner["groups"][0]["expr"]) == 4


def test_a_key_that_stands_twice_is_there_twice() -> None:
    """Both branches of a template's condition."""
    found = document("{{- if .x }}\nexpr: a\n{{- else }}\nexpr: b\n{{- end }}\n")
    assert isinstance(found, dict)
    assert [(key_of(key), value) for key, value in found.items()] == [("expr", "a"), ("expr", "b")]


def test_braces_that_a_template_means_literally_come_back() -> None:
    """In each of the ways of escaping them."""
    for spelled in ('{{ "{{" }}pod{{ "}}" }}', "{{`{{pod}}`}}", "{{`{{`}}pod{{`}}`}}", "{{'{{'}}pod{{'}}'}}"):
        assert document(json.dumps({"legend": "@"}).replace("@", spelled)) == {"legend": "{{pod}}"}
    assert "{{ .Values.x }}" in held_braces("{{ .Values.x }}")


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ('{"a": [1, 2', "not-json"),
        ("[" * 100_000, "too-deep"),
        ("[" + "1," * 2_100_000 + "1]", "too-many-values"),
        ("a: [b", "not-yaml"),
        ("a\x00b", "not-text"),
        (
            "a: &a [x,x]\n"
            + "".join(f"b{n}: &b{n} [{','.join([f'*b{n - 1}' if n else '*a'] * 9)}]\n" for n in range(9)),
            "too-many-values",
        ),
    ],
)
def test_what_cannot_be_read_is_told(text: str, code: str) -> None:
    """In bounded time and memory."""
    found, unread = read(Written(path="f", text=text))
    assert found == []
    assert [problem.code for problem in unread] == [code]
