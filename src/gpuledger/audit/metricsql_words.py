"""The words of a query in MetricsQL: names, numbers with their suffixes, strings, operators."""

from __future__ import annotations

import re
from fractions import Fraction

from gpuledger.audit.promql_tree import Unparsable

MOST_WORDS = 20_000
"""Of one query."""

_TOKEN = re.compile(
    r"""\s+|\#[^\n]*"""
    r"""|(?P<string>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|`[^`]*`)"""
    r"""|(?P<number>0[xX][0-9a-fA-F]+|(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?[a-zA-Z]*(?:\d+[a-zA-Z]+)*)"""
    r"""|(?P<word>[A-Za-z_:](?:[\w:.]|\\.)*)"""
    r"""|(?P<op>==|!=|=~|!~|<=|>=|[-+*/%^<>=(){}\[\],:@])""",
    re.VERBOSE | re.DOTALL,
)
_SUFFIXES = {"k": 1000, "ki": 1024, "m": 10**6, "mi": 1024**2, "g": 10**9, "gi": 1024**3, "t": 10**12, "ti": 1024**4}


def words_of(text: str) -> list[tuple[str, str]]:
    """The words of a text, each with its kind: ``string``, ``number``, ``word`` or ``op``.

    Raises:
        Unparsable: at a character that begins none.
    """
    found: list[tuple[str, str]] = []
    at = 0
    while at < len(text):
        token = _TOKEN.match(text, at)
        if token is None:
            raise Unparsable(f"unexpected character {text[at]!r}")
        at = token.end()
        if token.lastgroup:
            found.append((token.lastgroup, token[0]))
            if len(found) > MOST_WORDS:
                raise Unparsable(f"more than {MOST_WORDS:,} words")
    return found


def number_of(word: str) -> Fraction | int | None:
    """A number; None for a duration, which no label depends on."""
    if word[:2] in ("0x", "0X"):
        return Fraction(int(word, 16))
    if word.isdecimal() and len(word) < 100:
        return int(word)
    found = re.fullmatch(r"(\d+\.?\d*|\.\d+)(?:[eE]([+-]?\d{1,4}))?([a-zA-Z]*)", word)
    if found is None or len(found[1]) > 100:
        return None
    suffix = found[3].lower().removesuffix("b") if len(found[3]) > 1 else found[3].lower()
    if suffix and (suffix not in _SUFFIXES or found[3] in ("m", "k")):
        return None
    exponent = int(found[2] or 0)
    return Fraction(found[1]) * Fraction(10) ** exponent * _SUFFIXES.get(suffix, 1) if abs(exponent) < 400 else None


_ESCAPE = re.compile(r"\\(.)", re.DOTALL)


def unquoted(word: str) -> str:
    """What a string says; any other word as it is."""
    if word[:1] not in "\"'`":
        return word
    return (
        word[1:-1]
        if word[0] == "`"
        else _ESCAPE.sub(lambda found: {"n": "\n", "t": "\t"}.get(found[1], found[1]), word[1:-1])
    )
