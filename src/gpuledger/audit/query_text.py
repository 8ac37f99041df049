"""Makes a query of a dashboard or template one that a parser can read: variables become names, numbers or durations.

What a variable stands for is kept beside the text: its values where the dashboard lists them, else nothing, and then
it stays opaque. Text between quotes is left alone; a matcher's value is looked up later. Syntax: Grafana's ``$var``,
``${var:format}`` and the old ``[[var]]``, its ``$__`` macros, and the marks that stand for Helm's braces.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from gpuledger.audit.promql_tree import AGGREGATIONS, PARAMETERS
from gpuledger.audit.templates import MARK

_STRING = r"\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*'|`[^`]*`"
_VARIABLE = r"\$\{[^{}]*\}|\$[A-Za-z_]\w*|\[\[\w+(?::\w+)?\]\]"
_HELM = rf"{MARK}\d+{MARK}"
_PIECE = re.compile(
    rf"(?P<string>{_STRING})|(?P<comment>#[^\n]*)|(?P<variable>{_VARIABLE}|{_HELM})|(?P<verb>%[sdvq]\b)|(?P<bracket>[({{\[)}}\]])",
    re.DOTALL,
)
_QUOTED = re.compile(_STRING, re.DOTALL)
_OUTSIDE = re.compile(rf"\$|#|\[\[|{MARK}|%[sdvq]")
_IN_TEXT = re.compile(rf"{_VARIABLE}|{_HELM}")
_SPELLS = re.compile(rf"\$|\[\[|{MARK}")
_BARE = re.compile(r"\w+")
_HOLDER = re.compile(r"_7v(\d+)v7_")
_LIST_OF_LABELS = re.compile(r"\b(?:by|without|on|ignoring|group_left|group_right)\s*$", re.IGNORECASE)
_OFFSET = re.compile(r"\boffset\s*-?\s*$", re.IGNORECASE)
_OPERATORS = "+-*/%^<>=!"
_NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?")
_NAME = re.compile(r"[A-Za-z_:][\w:]*")
MOST_VALUES = 200
"""Values of one variable that are tried."""


_NEAR = 100
"""Characters around a variable that are looked at."""


class Choice(StrEnum):
    """How a variable comes by its value."""

    LISTED = "listed"
    OPEN = "open"


@dataclass(frozen=True, slots=True, kw_only=True)
class Variable:
    """One variable of a dashboard.

    Args:
        name: without its dollar sign.
        choice: ``listed`` where ``values`` are all it can have.
        values: what it can have, or was seen to have.
        label: the label whose values a query offers: ``pod`` of ``label_values(x, pod)``; may be empty.
        metrics: a pattern of the metric names it offers; may be empty.
    """

    name: str
    choice: Choice = Choice.OPEN
    values: tuple[str, ...] = ()
    label: str = ""
    metrics: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """A query that can be parsed.

    Args:
        text: with names such as ``_7v0v7_`` where variables stood.
        held: what each of them stands for, by number.
    """

    text: str
    held: tuple[Variable, ...] = ()

    def possible(self, name: str) -> tuple[tuple[str, ...], bool]:
        """What a name with variables in it can be, and whether that is all it can be."""
        names, whole = [name], True
        while is_held(names[0]):
            found = _HOLDER.search(names[0])
            assert found is not None
            variable = self.held[int(found[1])]
            whole = whole and variable.choice is Choice.LISTED and len(names) * len(variable.values) <= MOST_VALUES
            values = [value.replace("_7v", "") for value in variable.values[:MOST_VALUES]]
            names = [each.replace(found[0], value) for value in values for each in names][:MOST_VALUES]
            if not names:
                return (), False
        return tuple(names), whole

    def offered(self, name: str) -> tuple[str, ...]:
        """The patterns of metric names that the variables of a name offer."""
        return tuple(
            self.held[int(number)].metrics for number in _HOLDER.findall(name) if self.held[int(number)].metrics
        )


def is_held(name: str) -> bool:
    """Whether a variable stands in a name."""
    return "_7v" in name and bool(_HOLDER.search(name))


def shown(name: str, prepared: Prepared) -> str:
    """A name with its variables as they were written."""
    return _HOLDER.sub(lambda found: "$" + prepared.held[int(found[1])].name, name)


def literal(name: str) -> str:
    """The part of a name that stands before its first variable."""
    found = _HOLDER.search(name)
    return name if found is None else name[: found.start()]


def spread(value: str, variables: Mapping[str, Variable]) -> tuple[str, ...] | None:
    """The values that a quoted text can have; None where a variable in it can have any.

    A variable that is not of the dashboard (Helm's, a macro) is open.
    """
    if "$" not in value and "[[" not in value and MARK not in value:
        return (value,)
    texts = [value]
    while found := _IN_TEXT.search(texts[0]):
        variable = variables.get(name_of(found[0]))
        if variable is None or variable.choice is Choice.OPEN or not variable.values:
            return None
        if len(texts) * len(variable.values) > MOST_VALUES:
            return None
        texts = [each.replace(found[0], _SPELLS.sub("", one)) for one in variable.values for each in texts]
    return tuple(texts)


def names_in(text: str) -> tuple[str, ...]:
    """The variables that stand in a text."""
    if "$" not in text and "[[" not in text:
        return ()
    return tuple(name_of(found) for found in _IN_TEXT.findall(text))


def without_variables(pattern: str) -> str:
    """A regular expression whose variables let anything through."""
    return _IN_TEXT.sub(".*", pattern)


def name_of(spelled: str) -> str:
    """The name in ``$name``, ``${name:regex}`` or ``[[name]]``."""
    found = _BARE.search(spelled)
    return found[0] if found else spelled


def prepare(text: str, variables: Mapping[str, Variable], *, function: str = "avg") -> Prepared:
    """A text with its variables replaced by what a parser accepts at their place.

    Args:
        text: as the dashboard has it.
        variables: of the dashboard, by name.
        function: what stands for a variable that is the name of a function.
    """
    if "$" not in text and "#" not in text and MARK not in text and "[[" not in text and "%" not in text:
        return Prepared(text=text)
    if not _OUTSIDE.search(_QUOTED.sub("", text)):
        return Prepared(text=text)
    parts: list[str] = []
    held: list[Variable] = []
    open_at: list[int] = []
    done = 0
    for piece in _PIECE.finditer(text):
        kind = piece.lastgroup
        if kind == "bracket":
            if piece[0] in "({[":
                open_at.append(piece.start())
            elif open_at:
                open_at.pop()
            continue
        inside = open_at[-1] if open_at else -1
        if kind == "string" or (kind == "verb" and not _is_hole(text, inside)):
            continue
        parts.append(text[done : piece.start()])
        done = piece.end()
        if kind != "comment":
            name = name_of(piece[0])
            variable = variables.get(name, Variable(name=name))
            parts.append(_replacement(text, piece.start(), piece.end(), inside, variable, held, function))
    parts.append(text[done:])
    return Prepared(text="".join(parts), held=tuple(held))


def _is_hole(text: str, inside: int) -> bool:
    """Whether ``%s`` of a program's format stands there, and no remainder of a division."""
    if inside < 0 or text[inside] in "[{":
        return inside >= 0
    return bool(_LIST_OF_LABELS.search(text[max(0, inside - _NEAR) : inside]))


def _replacement(
    text: str, start: int, end: int, inside: int, variable: Variable, held: list[Variable], function: str
) -> str:
    before, after = text[max(0, start - _NEAR) : start], text[end : end + _NEAR]
    follows = after.lstrip()[:1]
    precedes = before.rstrip()[-1:]
    bracket = text[inside] if inside >= 0 else ""
    if bracket == "[":
        return "5" if after[:1].isalnum() else "m" if before[-1:].isdigit() else "5m"
    if bracket == "{":
        return _matcher(before, after, variable, held)
    if _OFFSET.search(before):
        return "5m"
    touches = bool(re.match(r"\w|\$|\[\[", after)) or bool(re.search(r"(\w|\]\]|\})$", before))
    if not touches and (word := _word_for(text, inside, precedes, follows, variable, function)):
        return word
    return _hold(variable, held)


def _hold(variable: Variable, held: list[Variable]) -> str:
    held.append(variable)
    return f"_7v{len(held) - 1}v7_"


def _matcher(before: str, after: str, variable: Variable, held: list[Variable]) -> str:
    if re.match(r"\s*(=|!)", after):
        return _hold(variable, held)
    if re.search(r"[=~]\s*$", before):
        return f'"${variable.name}"'
    return f'{_hold(variable, held)}="any"'


def _word_for(text: str, inside: int, precedes: str, follows: str, variable: Variable, function: str) -> str:
    """A number, duration, function or expression; empty where a name has to stand."""
    if follows == "(":
        named = variable.values[0] if variable.values else ""
        return named if _NAME.fullmatch(named) else function
    if inside >= 0 and text[inside] == "(" and _LIST_OF_LABELS.search(text[max(0, inside - _NEAR) : inside]):
        return ""
    if variable.values and all(_NUMBER.fullmatch(value) for value in variable.values):
        return variable.values[0] if len(variable.values) == 1 else "NaN"
    if variable.metrics or follows in ("{", "["):
        return ""
    if variable.values and all(_NAME.fullmatch(value) for value in variable.values):
        return ""
    if len(variable.values) == 1 and variable.choice is Choice.LISTED and not _IN_TEXT.search(variable.values[0]):
        return f"({variable.values[0]})"
    is_operand = bool(precedes and precedes in _OPERATORS) or bool(follows and follows in _OPERATORS)
    if variable.name.startswith("__") or is_operand:
        return "NaN"
    return "1" if _is_parameter(text, inside, precedes, follows) else ""


def _is_parameter(text: str, inside: int, precedes: str, follows: str) -> bool:
    if precedes == "," and follows in (")", ","):
        return True
    if follows != "," or inside < 0:
        return False
    found = re.search(r"(\w+)\s*(?:(?:by|without)\s*\([^()]*\)\s*)?$", text[:inside])
    return found is not None and (found[1].lower() in PARAMETERS or found[1].lower() not in AGGREGATIONS)
