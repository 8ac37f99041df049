"""Chart values given one by one."""

from __future__ import annotations

import pytest

from gpuledger.audit.documents import NOTHING, documents
from gpuledger.audit.manifest_parameters import with_parameters
from gpuledger.model.findings import Written


def laid(path: str, values: str = "a: {b: 1}\nlist: [{name: x}]") -> object:
    """Values as plain Python, with ``new`` at a path."""
    (given,), _ = documents(Written(path="v.yaml", text=values))
    (told,), _ = documents(Written(path="p.yaml", text=f"p: [{{name: '{path}', value: new}}]"))
    return plain(with_parameters(given.root, told.root.at("p")))


def plain(node: object) -> object:
    """A node without its lines."""
    if node.entries:
        return [plain(entry) for entry in node.entries]
    return {key: plain(value) for key, value in node.pairs} if node.pairs else node.text


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("c", {"a": {"b": "1"}, "list": [{"name": "x"}], "c": "new"}),
        ("a.b", {"a": {"b": "new"}, "list": [{"name": "x"}]}),
        ("a.c.d", {"a": {"b": "1", "c": {"d": "new"}}, "list": [{"name": "x"}]}),
        ("list[0].value", {"a": {"b": "1"}, "list": [{"name": "x", "value": "new"}]}),
        ("list[1].name", {"a": {"b": "1"}, "list": [{"name": "x"}, {"name": "new"}]}),
        (r"a.nvidia\.com/gpu", {"a": {"b": "1", "nvidia.com/gpu": "new"}, "list": [{"name": "x"}]}),
        ("list[999999999].name", {"a": {"b": "1"}, "list": [{"name": "x"}]}),
        ("..", {"a": {"b": "1"}, "list": [{"name": "x"}]}),
    ],
)
def test_a_parameter_at_its_path(path: str, expected: dict) -> None:
    """Keys, dots in keys, places of lists; what is no path changes nothing."""
    assert laid(path) == {key: expected[key] for key in expected}


def test_parameters_alone_are_values() -> None:
    """Without any other."""
    (told,), _ = documents(Written(path="p.yaml", text="p: [{name: hostPID, value: true}]"))
    assert with_parameters(NOTHING, told.root.at("p")).at("hostPID").truth is True
