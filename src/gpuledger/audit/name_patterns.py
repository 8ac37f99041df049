"""Tries a regular expression of a query on names, in time that no pattern can blow up.

Prometheus matches with RE2, anchored at both ends, in linear time; Python's engine backtracks and can need hours for
a pattern that somebody hands in. So patterns are read here and followed with sets of places: at most one step for each
place of the name and part of the pattern.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

_Step = Callable[[str, frozenset[int]], frozenset[int]]
"""From the places reached so far to those behind this part of the pattern."""

DEEPEST = 30
MOST_REPEATS = 1000
"""RE2's own limit of ``{n,m}``."""

LONGEST = 4000
_NOWHERE: frozenset[int] = frozenset()
_CLASSES: dict[str, Callable[[str], bool]] = {
    "d": lambda sign: sign.isascii() and sign.isdigit(),
    "w": lambda sign: sign.isascii() and (sign.isalnum() or sign == "_"),
    "s": str.isspace,
}


class UnreadablePattern(ValueError):
    """A pattern in words that are not known here."""


@lru_cache(maxsize=2048)
def compiled(pattern: str) -> Callable[[str], bool]:
    """Whether a pattern lets a name through, anchored at both ends.

    Raises:
        UnreadablePattern: for a pattern that is none, or too long.
    """
    if len(pattern) > LONGEST:
        raise UnreadablePattern(f"longer than {LONGEST} characters")
    reader = _Reader(pattern)
    step = reader.whole()

    def lets_through(name: str) -> bool:
        told = name.lower() if reader.ignores_case else name
        return len(told) in step(told, frozenset({0}))

    return lets_through


class _Reader:
    """Reads one pattern.

    Args:
        pattern: in RE2's syntax.
    """

    def __init__(self, pattern: str) -> None:
        self._text = pattern
        self._at = 0
        self._depth = 0
        self._room = MOST_REPEATS * 4
        self.ignores_case = False

    def whole(self) -> _Step:
        step = self._alternatives()
        if self._at < len(self._text):
            raise UnreadablePattern(f"unexpected {self._text[self._at]!r}")
        return step

    def _peek(self) -> str:
        return self._text[self._at : self._at + 1]

    def _next(self) -> str:
        sign = self._peek()
        if not sign:
            raise UnreadablePattern("it ends too early")
        self._at += 1
        return sign

    def _alternatives(self) -> _Step:
        self._depth += 1
        if self._depth > DEEPEST:
            raise UnreadablePattern(f"nested more than {DEEPEST} levels deep")
        ways = [self._sequence()]
        while self._peek() == "|":
            self._at += 1
            ways.append(self._sequence())
        self._depth -= 1
        return ways[0] if len(ways) == 1 else _any_of(tuple(ways))

    def _sequence(self) -> _Step:
        steps: list[_Step] = []
        while self._peek() not in ("", "|", ")"):
            steps.append(self._repeated(self._one()))
        return _after_each_other(tuple(steps))

    def _repeated(self, step: _Step) -> _Step:
        while self._peek() in ("*", "+", "?", "{"):
            sign = self._next()
            least, most = {"*": (0, -1), "+": (1, -1), "?": (0, 1)}.get(sign) or self._counts()
            if self._peek() == "?":
                self._at += 1
            self._room -= max(least, most, 1)
            if self._room < 0:
                raise UnreadablePattern("it repeats too often")
            step = _times(step, least, most)
        return step

    def _counts(self) -> tuple[int, int]:
        end = self._text.find("}", self._at)
        first, _, last = self._text[self._at : end].partition(",")
        is_open = "," in self._text[self._at : end] and not last
        if end < 0 or not first.isdecimal() or not (last or first).isdecimal() or len(first) > 4 or len(last) > 4:
            raise UnreadablePattern("a count that is none")
        self._at = end + 1
        return int(first), -1 if is_open else int(last or first)

    def _one(self) -> _Step:
        sign = self._next()
        if sign == "(":
            self._flags()
            step = self._alternatives()
            if self._next() != ")":
                raise UnreadablePattern("a group that does not end")
            return step
        if sign == ".":
            return _sign_that(lambda each: each != "\n")
        if sign == "[":
            return _sign_that(self._class())
        if sign in "^$":
            return _at_edge(is_start=sign == "^")
        if sign == "\\":
            return self._escaped()
        if sign in "*+?":
            raise UnreadablePattern(f"nothing to repeat before {sign!r}")
        return _literal(self._cased(sign))

    def _cased(self, sign: str) -> str:
        return sign.lower() if self.ignores_case else sign

    def _flags(self) -> None:
        if not self._text.startswith("?", self._at):
            return
        if self._text.startswith("?:", self._at):
            self._at += 2
            return
        end = min((place for mark in ">):" if (place := self._text.find(mark, self._at)) >= 0), default=-1)
        if end < 0:
            raise UnreadablePattern("a group that does not end")
        flags = self._text[self._at + 1 : end]
        if flags.startswith("P<"):
            self._at = end + 1
            return
        if set(flags) - set("ismU") or not flags:
            raise UnreadablePattern(f"(?{flags} is not known")
        self.ignores_case = self.ignores_case or "i" in flags
        self._at = end if self._text[end] == ")" else end + 1

    def _escaped(self) -> _Step:
        sign = self._next()
        if sign.lower() in _CLASSES:
            inside = _CLASSES[sign.lower()]
            return _sign_that(inside if sign.islower() else lambda each: not inside(each))
        if sign in "AzZ":
            return _at_edge(is_start=sign == "A")
        if sign.isalnum():
            raise UnreadablePattern(f"\\{sign} is not known")
        return _literal(sign)

    def _class(self) -> Callable[[str], bool]:
        negated = self._peek() == "^"
        self._at += negated
        signs: set[str] = set()
        ranges: list[tuple[str, str]] = []
        tests: list[Callable[[str], bool]] = []
        first = True
        while (sign := self._next()) != "]" or first:
            first = False
            if sign == "[" and self._peek() == ":":
                raise UnreadablePattern("named classes are not known")
            if sign == "\\":
                sign = self._next()
                if sign in _CLASSES:
                    tests.append(_CLASSES[sign])
                    continue
            if self._peek() == "-" and self._text[self._at + 1 : self._at + 2] not in ("]", ""):
                self._at += 1
                ranges.append((self._cased(sign), self._cased(self._next())))
            else:
                signs.add(self._cased(sign))

        def inside(each: str) -> bool:
            found = each in signs or any(low <= each <= high for low, high in ranges) or any(t(each) for t in tests)
            return found != negated

        return inside


def _literal(wanted: str) -> _Step:
    return _sign_that(lambda each: each == wanted)


def _sign_that(is_wanted: Callable[[str], bool]) -> _Step:
    def step(text: str, places: frozenset[int]) -> frozenset[int]:
        return frozenset(place + 1 for place in places if place < len(text) and is_wanted(text[place]))

    return step


def _at_edge(*, is_start: bool) -> _Step:
    def step(text: str, places: frozenset[int]) -> frozenset[int]:
        return places & {0 if is_start else len(text)}

    return step


def _any_of(ways: tuple[_Step, ...]) -> _Step:
    def step(text: str, places: frozenset[int]) -> frozenset[int]:
        return frozenset().union(*(way(text, places) for way in ways)) if places else _NOWHERE

    return step


def _after_each_other(steps: tuple[_Step, ...]) -> _Step:
    def step(text: str, places: frozenset[int]) -> frozenset[int]:
        for each in steps:
            if not places:
                return _NOWHERE
            places = each(text, places)
        return places

    return step


def _times(inner: _Step, least: int, most: int) -> _Step:
    def step(text: str, places: frozenset[int]) -> frozenset[int]:
        for _ in range(least):
            behind = inner(text, places)
            if not behind:
                return _NOWHERE
            if behind == places:
                break  # once more changes nothing, however often it is written
            places = behind
        reached, edge = places, places
        more = len(text) + 1 if most < 0 else most - least
        while edge and more > 0:
            edge = inner(text, edge) - reached
            reached |= edge
            more -= 1
        return reached

    return step
