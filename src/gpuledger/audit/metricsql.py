"""Reads VictoriaMetrics' MetricsQL: PromQL and what it adds, expanded as far as a label or value depends on it.

``WITH`` templates (constants, functions, label filters) are expanded; ``keep_metric_names``, ``limit``, ranges and
offsets leave no trace in the tree; ``default``, ``if`` and ``ifnot`` are operators. In: a text that Prometheus' own
parser refused. Out: the same tree. Source: docs.victoriametrics.com/metricsql.
"""

from __future__ import annotations

from gpuledger.audit.metricsql_words import number_of, unquoted, words_of
from gpuledger.audit.promql_tree import (
    AGGREGATIONS,
    COMPARISONS,
    PARAMETERS,
    Aggregate,
    Binary,
    Call,
    Match,
    Negative,
    Node,
    Number,
    Quoted,
    Selector,
    Unparsable,
)

DEEPEST = 60
"""Levels of a query. Hand-written ones have below 15."""

MOST_EXPANSIONS = 2_000
"""Of WITH templates in one query, since templates of templates double."""

_PRECEDENCE = {
    "default": 1, "if": 1, "ifnot": 1, "or": 2, "and": 3, "unless": 3, "==": 4, "!=": 4, "<": 4, ">": 4, "<=": 4,
    ">=": 4, "+": 5, "-": 5, "*": 6, "/": 6, "%": 6, "atan2": 6, "^": 7,
}  # fmt: skip
_GROUPED = ("by", "without")


def parse(text: str) -> Node:
    """The tree of a query.

    Raises:
        Unparsable: with the place where it stops to be a query.
    """
    return _Parser(words_of(text)).whole()


class _Template:
    """One definition of a WITH."""

    def __init__(self, names: tuple[str, ...], body: list[tuple[str, str]]) -> None:
        self.names = names
        self.body = body


class _Parser:
    """A recursive descent with precedence climbing.

    Args:
        tokens: kind and text of each.
        templates: of the WITHs around it, by name.
        room: how many expansions are left, shared by all parsers of one query.
        depth: levels above it.
    """

    def __init__(
        self,
        tokens: list[tuple[str, str]],
        templates: dict[str, _Template] | None = None,
        room: list[int] | None = None,
        depth: int = 0,
    ) -> None:
        self._tokens = tokens
        self._at = 0
        self._templates = templates or {}
        self._room = room if room is not None else [MOST_EXPANSIONS]
        self._depth = depth

    def whole(self) -> Node:
        node = self._expression(0)
        if self._at < len(self._tokens):
            raise Unparsable(f"unexpected {self._tokens[self._at][1]!r} after the query")
        return node

    def _word(self) -> str:
        return self._tokens[self._at][1] if self._at < len(self._tokens) else ""

    def _lower(self) -> str:
        return self._word().lower()

    def _kind(self) -> str:
        return self._tokens[self._at][0] if self._at < len(self._tokens) else ""

    def _next(self) -> str:
        if self._at >= len(self._tokens):
            raise Unparsable("the query ends too early")
        self._at += 1
        return self._tokens[self._at - 1][1]

    def _take(self, wanted: str) -> bool:
        if self._kind() in ("op", "word") and self._lower() == wanted:
            self._at += 1
            return True
        return False

    def _must(self, wanted: str) -> None:
        if not self._take(wanted):
            raise Unparsable(f"expected {wanted!r}, found {self._word() or 'the end'!r}")

    def _expression(self, least: int) -> Node:
        self._depth += 1
        if self._depth > DEEPEST:
            raise Unparsable(f"nested more than {DEEPEST} levels deep")
        left = self._unary()
        while self._kind() in ("op", "word") and (level := _PRECEDENCE.get(self._lower(), 0)) > least:
            op = self._next().lower()
            left = self._binary(op, level, left)
        self._depth -= 1
        return left

    def _binary(self, op: str, level: int, left: Node) -> Node:
        as_bool = op in COMPARISONS and self._take("bool")
        on = ignoring = None
        group = ""
        include: tuple[str, ...] = ()
        if self._take("on"):
            on = self._labels()
        elif self._take("ignoring"):
            ignoring = self._labels()
        if self._lower() in ("group_left", "group_right"):
            group = self._next().lower().removeprefix("group_")
            include = self._labels() if self._word() == "(" else ()
            if self._take("prefix"):
                prefix = self._next()[1:-1]
                include = tuple(prefix + label for label in include)
        right = self._expression(level - 1 if op == "^" else level)
        self._take("keep_metric_names")
        return Binary(op, left, right, on, ignoring, group, include, as_bool)

    def _unary(self) -> Node:
        if self._take("-"):
            return Negative(self._expression(6))
        if self._take("+"):
            return self._expression(6)
        return self._moved(self._primary())

    def _moved(self, node: Node) -> Node:
        """The node without the ranges and offsets behind it."""
        while True:
            if self._word() == "[" and self._kind() == "op":
                while self._next() != "]":
                    pass
            elif self._take("offset") or self._take("@"):
                self._take("-")
                if self._lower() in ("start", "end"):
                    self._next()
                    self._labels()
                elif self._word() == "(":
                    self._at += 1
                    self._expression(0)
                    self._must(")")
                else:
                    self._next()
            elif not self._take("keep_metric_names"):
                return node

    def _primary(self) -> Node:
        kind, word = self._kind(), self._word()
        if kind == "number":
            return Number(number_of(self._next()))
        if kind == "string":
            text = unquoted(self._next())
            while self._take("+") if self._kind() == "op" and self._is_string_next() else False:
                text += unquoted(self._next())
            return Quoted(text)
        if word == "(":
            return self._bracketed()
        if word == "{":
            return Selector("", self._matchers())
        if kind == "word":
            return self._named()
        raise Unparsable(f"unexpected {word!r}" if word else "the query ends too early")

    def _is_string_next(self) -> bool:
        return self._at + 1 < len(self._tokens) and self._tokens[self._at + 1][0] == "string"

    def _bracketed(self) -> Node:
        self._must("(")
        if self._take(")"):
            return Call("union", ())
        parts = [self._expression(0)]
        while self._take(","):
            if self._word() != ")":
                parts.append(self._expression(0))
        self._must(")")
        return parts[0] if len(parts) == 1 else Call("union", tuple(parts))

    def _named(self) -> Node:
        name = self._next()
        lower = name.lower()
        if lower == "with" and self._word() == "(":
            return self._with()
        if lower in ("inf", "nan") and self._word() not in ("(", "{"):
            return Number(None)
        if name in self._templates:
            return self._expanded(name)
        if lower in AGGREGATIONS and (self._word() == "(" or self._lower() in _GROUPED):
            return self._aggregate(lower)
        if self._word() == "(":
            return Call(lower, self._arguments())
        name = name.replace("\\", "")
        return Selector(name, self._matchers()) if self._word() == "{" else Selector(name)

    def _aggregate(self, op: str) -> Node:
        without, labels = self._grouping()
        arguments = self._arguments()
        if labels is None:
            without, labels = self._grouping()
        if self._take("limit"):
            self._next()
        if not arguments:
            raise Unparsable(f"{op} of nothing")
        if op in PARAMETERS and len(arguments) > 1:
            parameter, *rest = arguments
            inner = rest[-1] if op == "quantiles" or len(rest) == 1 else rest[0]
            return Aggregate(op, inner, parameter, without, labels)
        inner = arguments[0] if len(arguments) == 1 else Call("union", arguments)
        return Aggregate(op, inner, None, without, labels)

    def _grouping(self) -> tuple[bool, tuple[str, ...] | None]:
        if self._kind() == "word" and self._lower() in _GROUPED:
            without = self._next().lower() == "without"
            return without, self._labels()
        return False, None

    def _arguments(self) -> tuple[Node, ...]:
        self._must("(")
        found: list[Node] = []
        while not self._take(")"):
            found.append(self._expression(0))
            if not self._take(","):
                self._must(")")
                break
        return tuple(found)

    def _labels(self) -> tuple[str, ...]:
        self._must("(")
        found: list[str] = []
        while not self._take(")"):
            kind, word = self._kind(), self._next()
            if kind not in ("word", "string") and word != "*":
                raise Unparsable(f"unexpected {word!r} in a list of labels")
            found.append(unquoted(word) if kind == "string" else word)
            self._take(",")
        return tuple(found)

    def _matchers(self) -> tuple[tuple[Match, ...], ...]:
        self._must("{")
        groups: list[tuple[Match, ...]] = []
        found: list[Match] = []
        while not self._take("}"):
            if self._take(","):
                continue
            if self._kind() == "word" and self._lower() == "or" and found:
                self._at += 1
                groups.append(tuple(found))
                found = []
                continue
            found.extend(self._matcher())
        return (*groups, tuple(found))

    def _matcher(self) -> list[Match]:
        kind, label = self._kind(), self._next()
        if kind == "string" and self._word() in (",", "}"):
            return [Match("__name__", "=", unquoted(label))]
        if kind == "word" and label in self._templates and self._word() in (",", "}"):
            return self._filters(label)
        if kind not in ("word", "string") or self._kind() != "op":
            raise Unparsable(f"unexpected {label!r} between braces")
        op = self._next()
        if op not in ("=", "!=", "=~", "!~"):
            raise Unparsable(f"{op!r} is no label matcher")
        value = self._string()
        while self._take("+"):
            value += self._string()
        return [Match(unquoted(label) if kind == "string" else label.replace("\\", ""), op, value)]

    def _string(self) -> str:
        kind, word = self._kind(), self._next()
        if kind == "string":
            return unquoted(word)
        if kind == "word" and word in self._templates:
            node = self._inner(self._templates[word].body, self._templates)
            if isinstance(node, Quoted):
                return node.text
        raise Unparsable(f"a label is matched with {word!r}, which is no string")

    def _filters(self, name: str) -> list[Match]:
        node = self._inner(self._templates[name].body, self._templates)
        if isinstance(node, Selector) and not node.name and len(node.matchers) == 1:
            return list(node.matchers[0])
        raise Unparsable(f"{name!r} between braces is no label filter")

    def _with(self) -> Node:
        self._must("(")
        known = dict(self._templates)
        while not self._take(")"):
            name = self._next()
            names: tuple[str, ...] = ()
            if self._word() == "(":
                names = self._labels()
            self._must("=")
            start = self._at
            self._skip()
            known[name] = _Template(names, self._tokens[start : self._at])
            self._take(",")
        before, self._templates = self._templates, known
        node = self._expression(0)
        self._templates = before
        return node

    def _skip(self) -> None:
        """To the comma or bracket that ends a definition."""
        open_brackets = 0
        while self._at < len(self._tokens):
            kind, word = self._tokens[self._at]
            if kind == "op":
                if open_brackets == 0 and word in (",", ")"):
                    return
                open_brackets += (word in ("(", "{", "[")) - (word in (")", "}", "]"))
            self._at += 1
        raise Unparsable("a WITH that does not end")

    def _expanded(self, name: str) -> Node:
        template = self._templates[name]
        known = {key: value for key, value in self._templates.items() if key != name}
        if self._word() == "(":
            known |= {key: _Template((), body) for key, body in zip(template.names, self._bodies(), strict=False)}
        node = self._inner(template.body, known)
        if self._word() == "{" and isinstance(node, Selector):
            more = self._matchers()
            node = Selector(node.name, tuple(each + added for each in node.matchers for added in more))
        return node

    def _bodies(self) -> list[list[tuple[str, str]]]:
        self._must("(")
        found = []
        while not self._take(")"):
            start = self._at
            self._skip()
            found.append(self._tokens[start : self._at])
            self._take(",")
        return found

    def _inner(self, body: list[tuple[str, str]], templates: dict[str, _Template]) -> Node:
        self._room[0] -= 1
        if self._room[0] < 0:
            raise Unparsable(f"WITH templates expand more than {MOST_EXPANSIONS:,} times")
        return _Parser(body, templates, self._room, self._depth).whole()
