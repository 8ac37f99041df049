"""Chart values that are given one by one: ``helm.parameters`` of Argo CD, as ``helm --set`` spells them.

In: values as a mapping, and the parameters laid over them. Out: the values that the chart gets.
"""

from __future__ import annotations

import re

from gpuledger.audit.documents import NOTHING, Kind, Node

MOST_ENTRIES = 1_000
"""Of a list that a parameter's index makes; a larger index is left out."""

_STEP = re.compile(r"((?:[^.\[\\]|\\.)*)((?:\[\d+\])*)(?:\.|$)")


def with_parameters(values: Node, parameters: Node) -> Node:
    """Values with each parameter at its path; a later one goes before an earlier one, and both before the values.

    Args:
        values: a mapping, or nothing.
        parameters: a list of ``{name: extraEnv[0].value, value: "true"}``.
    """
    for entry in parameters.entries:
        steps = _steps(entry.at("name").text)
        if steps:
            values = _placed(values, steps, entry.at("value")._replace(line=entry.line))
    return values


def _steps(path: str) -> tuple[str | int, ...]:
    """``a.b\\.c[0]`` as keys and places; nothing where it is no path."""
    steps: list[str | int] = []
    at = 0
    while at < len(path):
        found = _STEP.match(path, at)
        if found is None or found.end() == at:
            return ()
        if found[1]:
            steps.append(re.sub(r"\\(.)", r"\1", found[1]))
        steps += [int(place) for place in re.findall(r"\d{1,9}", found[2])]
        at = found.end()
    return tuple(steps) if not any(isinstance(step, int) and step >= MOST_ENTRIES for step in steps) else ()


def _placed(node: Node, steps: tuple[str | int, ...], value: Node) -> Node:
    """The node with a value at a path below it; what stands in the way of the path is replaced."""
    if not steps:
        return value
    step, rest = steps[0], steps[1:]
    line = node.line or value.line
    if isinstance(step, int):
        entries = list(node.entries) + [NOTHING] * (step + 1 - len(node.entries))
        entries[step] = _placed(entries[step], rest, value)
        return Node(kind=Kind.LIST, line=line, entries=tuple(entries))
    others = tuple(pair for pair in node.pairs if pair[0] != step)
    return Node(kind=Kind.MAPPING, line=line, pairs=(*others, (step, _placed(node.at(step), rest, value))))
