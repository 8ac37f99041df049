"""Selectors of labels, as a text (``app in (a, b),!old``) and as an object: what they ask, and who meets it.

Source: kubernetes.io, labels and selectors; a key that is not there meets ``!=`` and ``notin``. What compares numbers
(``>``, ``<``) is not read.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from gpuledger.audit.document_node import Kind, Node

_REQUIREMENT = re.compile(
    r"\s*(?:(?P<no>!)\s*)?(?P<key>[\w./-]+)"
    r"(?:\s*(?P<equals>==?|!=)\s*(?P<value>[^\s,()=!<>]*)|\s+(?P<among>in|notin)\s*\((?P<values>[^()]*)\))?\s*(?:,|$)"
)
_MOST_SIGNS = 10_000
"""Of one text; those of the field have less than a hundred."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Requirement:
    """One thing that a selector asks of a label.

    Args:
        key: of the label.
        values: that it may have, or may not; nothing where only the key is asked for.
        wanted: whether it must be so; else it must not.
    """

    key: str
    values: frozenset[str] | None = None
    wanted: bool = True


def requirements_of_text(selector: str) -> tuple[Requirement, ...] | None:
    """What a text asks; None where it cannot be read.

    Args:
        selector: such as ``app=a,tier!=b``; an empty one asks nothing.
    """
    found: list[Requirement] = []
    place = 0
    text = selector.strip()
    if len(text) > _MOST_SIGNS or text.endswith(","):
        return None
    while place < len(text):
        part = _REQUIREMENT.match(text, place)
        if part is None or (part["no"] and (part["equals"] or part["among"])):
            return None
        values = None
        if part["equals"]:
            values = frozenset([part["value"]])
        elif part["among"]:
            values = frozenset(value.strip() for value in part["values"].split(","))
        wanted = not part["no"] and part["equals"] != "!=" and part["among"] != "notin"
        found.append(Requirement(key=part["key"], values=values, wanted=wanted))
        place = part.end()
    return tuple(found)


def requirements_of_node(selector: Node) -> tuple[Requirement, ...] | None:
    """What ``matchLabels`` and ``matchExpressions`` ask together; None where it cannot be read.

    Args:
        selector: the object; an empty one asks nothing, so that everything meets it.
    """
    if selector.kind is not Kind.MAPPING:
        return None
    found = [Requirement(key=key, values=frozenset([value.text])) for key, value in selector.at("matchLabels").pairs]
    for each in selector.at("matchExpressions").entries:
        operator = each.at("operator").text
        if operator not in ("In", "NotIn", "Exists", "DoesNotExist"):
            return None
        values = frozenset(value.text for value in each.at("values").entries) if operator.endswith("In") else None
        found.append(Requirement(key=each.at("key").text, values=values, wanted=operator in ("In", "Exists")))
    return tuple(found)


def meets(labels: Node, requirements: Iterable[Requirement]) -> bool:
    """Whether labels are what all requirements ask.

    Args:
        labels: a mapping, or nothing.
        requirements: of one selector.
    """
    return all(
        (labels.at(each.key).is_there and (each.values is None or labels.at(each.key).text in each.values))
        is each.wanted
        for each in requirements
    )
