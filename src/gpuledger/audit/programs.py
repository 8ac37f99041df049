"""The strings of programs that give dashboards and rules: jsonnet, Terraform, CUE, Dhall.

A program is not run here. Its strings are looked at all the same: those that speak of a device metric and can be read
as a query or as a document are judged as they stand. What it puts around them (legends, joined strings, arguments)
stays unknown, so the file is told as not rendered whatever is found. In time that grows with the text alone.
"""

from __future__ import annotations

import re

from gpuledger.audit.device_metrics import tells_device
from gpuledger.audit.plain import Text
from gpuledger.model.findings import Written

RENDERED = {
    ".jsonnet": "jsonnet is a program: render it and audit the JSON",
    ".libsonnet": "jsonnet is a program: render it and audit the JSON",
    ".cue": "CUE is a program: export it and audit the YAML",
    ".tf": "Terraform's own language is not run: audit the JSON that it uploads",
    ".dhall": "Dhall is a program: render it and audit the YAML",
}
"""What is a program by the end of its name, and what to give instead."""

_OUT_OF_SCOPE_WORDS = ".md .rst .adoc .sh .bash .py .go .ts .tsx .js .rs .java .ipynb"
OUT_OF_SCOPE = frozenset(_OUT_OF_SCOPE_WORDS.split())
"""Prose, shell and source code: a query in them is told, and not judged."""

MOST_STRINGS = 20_000
"""Of one program that speak of a device metric."""

_COMMENTS = {".cue": r"//[^\n]*", ".dhall": r"--[^\n]*"}
_OPENING = r"\|\|\|-?[ \t]*\n|<<[-~]?(?P<mark>[A-Za-z_]\w*)[ \t]*\n|\"\"\"|''|\"|'"
_PLAIN = {
    '"': re.compile(r'((?:[^"\\\n$]|\\.|\$\{[^}\n]*\}|\$)*)"'),
    "'": re.compile(r"((?:[^'\\\n]|\\.)*)'"),
}
_GIVEN = re.compile(r"%\(\w+\)[sd]|(?<!\$)\$\{[^{}]*[.(\[][^{}]*\}|%\{[^{}]*\}")
"""What the program fills in: ``%(name)s`` of jsonnet, ``${local.name}`` of Terraform; not Grafana's ``${name}``."""

_ESCAPE = re.compile(r"\\(.)", re.DOTALL)


def suffix_of(path: str) -> str:
    """The end of a file's name, lower case; empty where it has none."""
    return path[path.rfind(".") :].lower() if "." in path else ""


def strings(written: Written) -> list[Text]:
    """The strings of a program that speak of a device metric, with their lines; what fills them is ``$given``."""
    text = written.text
    comment = _COMMENTS.get(suffix_of(written.path), r"//[^\n]*|\#[^\n]*")
    opening = re.compile(f"{_OPENING}|(?P<remark>{comment})|(?P<long>/\\*)")
    found: list[Text] = []
    endless: set[str] = set()
    line = at = place = 0
    while (begin := opening.search(text, place)) and len(found) < MOST_STRINGS:
        place = begin.end()
        if begin["remark"]:
            continue
        inner, place = _inside(text, begin, endless)
        if begin["long"] or not tells_device(inner):
            continue
        line += text.count("\n", at, begin.end())
        at = begin.end()
        said = _ESCAPE.sub(_meant, inner) if begin[0] in _PLAIN else inner
        said = _GIVEN.sub("$given", said).replace("$${", "${")
        found.append(Text(said, line + 1, line + 1 if begin[0] not in _PLAIN else 0))
    return found


def _meant(escaped: re.Match[str]) -> str:
    return {"n": "\n", "t": "\t"}.get(escaped[1], escaped[1])


def _inside(text: str, begin: re.Match[str], endless: set[str]) -> tuple[str, int]:
    """What stands between an opening and its end, and where to go on; a kind that was seen not to end is left alone."""
    opened = begin[0]
    if opened in _PLAIN:
        plain = _PLAIN[opened].match(text, begin.end())
        return (plain[1], plain.end()) if plain else ("", begin.end())
    kind = begin["mark"] or opened.strip()
    if kind in endless or len(endless) > MOST_ENDLESS:
        return "", begin.end()
    if begin["mark"] or opened.startswith("|||"):
        ending = re.compile(rf"^[ \t]*{re.escape(begin['mark'] or '|||')}(?!\w)", re.MULTILINE).search(
            text, begin.end()
        )
        stop, after = (ending.start(), ending.end()) if ending else (-1, -1)
    else:
        closing = "*/" if begin["long"] else opened
        stop = text.find(closing, begin.end())
        after = stop + len(closing)
    if stop < 0:
        endless.add(kind)
        return "", begin.end()
    return text[begin.end() : stop], after


MOST_ENDLESS = 50
"""Openings of different kinds that end nowhere: each is searched for to the end of the text once."""
