"""``explain``: a tree from a number down to the driver's own row. There is no CSV of a tree."""

from __future__ import annotations

from rich.text import Text
from rich.tree import Tree

from gpuledger.model.durations import count
from gpuledger.model.explanation import Explanation, Figure
from gpuledger.model.missing import Missing
from gpuledger.reports.as_json import Json
from gpuledger.reports.cells import UNKNOWN, cell, printable

SEPARATOR = " | "
LINE = "\n"
"""Between the figures of a node, and before the first."""


def to_json(tree: Explanation) -> dict[str, Json]:
    """``{title, figures, refs, children}``; a figure that is not known is ``null``, its reason under ``missing``."""
    missing: dict[str, Json] = {name: value.reason for name, value in tree.figures if isinstance(value, Missing)}
    return {
        "title": tree.title,
        "figures": {name: None if isinstance(value, Missing) else value for name, value in tree.figures},
        **({"missing": missing} if missing else {}),
        "refs": list(tree.refs),
        "children": [to_json(child) for child in tree.children],
    }


def to_tree(tree: Explanation) -> Tree:
    """For eyes: every node with its figures below its title, and the references that ``explain`` takes."""
    root = Tree(_label(tree, "bold"), guide_style="dim")
    _hang(root, tree)
    return root


def _hang(branch: Tree, node: Explanation) -> None:
    for child in node.children:
        _hang(branch.add(_label(child, "")), child)


def _label(node: Explanation, style: str) -> Text:
    label = cell(node.title, style)
    for ref in node.refs:
        label.append(f"  {printable(ref)}", style="not bold cyan")
    for place, (name, value) in enumerate(node.figures):
        label.append(f"{SEPARATOR if place else LINE}{name.replace('_', ' ')} ", style="not bold dim")
        label.append(_shown(name, value), style="not bold yellow" if isinstance(value, Missing) else "not bold")
    return label


def _shown(name: str, value: Figure) -> str:
    if isinstance(value, Missing):
        return f"{UNKNOWN} ({value.reason})"
    return printable(value) if isinstance(value, str) else _number(name, value)


def _number(name: str, value: int) -> str:
    return str(value) if name == "pid" else count(value)
