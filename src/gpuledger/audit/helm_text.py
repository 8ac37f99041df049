"""Looks for queries line by line in a text that is no YAML, not even without its template's expressions.

The last resort: keys of rules and queries with what stands behind them or below them. What is found so is judged; the
text is listed as unread all the same, since nobody can tell what was missed.
"""

from __future__ import annotations

import re

from gpuledger.audit.plain import Text

_LINE = re.compile(
    r"^(?P<indent>[ \t]*)(?P<item>-[ \t]+)?[\"']?(?P<key>[A-Za-z_][\w.-]*)[\"']?[ \t]*:(?:[ \t]+(?P<value>\S.*))?$"
)
_BLOCK = re.compile(r"[|>][+-]?\d*[+-]?(?:[ \t]+#.*)?$")
_KEPT_WORDS = "expr record alert query metricsQuery seriesQuery promql title name id refId legendFormat"
_KEPT = frozenset(_KEPT_WORDS.split())
_QUOTED = re.compile(r"^(?:\"((?:[^\"\\]|\\.)*)\"|'((?:[^']|'')*)')(?:\s+#.*)?$")


def scan(text: str) -> list[object]:
    """Mappings of the keys that queries stand under, as lists of rules; none where nothing was found."""
    items: list[dict[str, object]] = []
    current: dict[str, object] = {}
    inside = -1
    lines = text.split("\n")
    place = 0
    while place < len(lines):
        found = _LINE.match(lines[place].rstrip())
        place += 1
        if found is None:
            continue
        indent = len(found["indent"]) + len(found["item"] or "")
        if found["item"] or indent != inside or found["key"] in current:
            current, inside = {}, indent
            items.append(current)
        value = found["value"] or ""
        if _BLOCK.match(value):
            block, place = _block(lines, place, len(found["indent"]))
            current[found["key"]] = Text(
                block, place - block.count("\n") if block else place, place - block.count("\n")
            )
        elif found["key"] in _KEPT and value:
            current[found["key"]] = Text(_unquoted(value), place)
    return [item for item in items if item and (_KEPT & set(item) or any("\n" in str(each) for each in item.values()))]


def _block(lines: list[str], place: int, indent: int) -> tuple[str, int]:
    """The lines below that stand further in."""
    start = place
    while place < len(lines) and (not lines[place].strip() or len(lines[place]) - len(lines[place].lstrip()) > indent):
        place += 1
    body = lines[start:place]
    inner = min((len(line) - len(line.lstrip()) for line in body if line.strip()), default=0)
    return "\n".join(line[inner:] for line in body), place


def _unquoted(value: str) -> str:
    found = _QUOTED.match(value)
    if found is None:
        return re.sub(r"\s+#.*$", "", value)
    return found[1].replace('\\"', '"').replace("\\\\", "\\") if found[1] is not None else found[2].replace("''", "'")
