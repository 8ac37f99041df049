"""Writes docs/reference from the program itself: run `make docs`. A test fails when a page is not what this writes."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from gpuledger.cli.deferred import Deferred
from gpuledger.cli.main import VERBS
from gpuledger.errors import ERROR_CLASSES, EXIT_STATUSES
from gpuledger.ledger.schema import METADATA
from gpuledger.model.findings import AuditCheck
from gpuledger.model.meters import METERS
from gpuledger.model.reasons import CAUSE_MEANING, RESERVED_MEANING, UNKNOWN_MEANING
from gpuledger.settings import SETTINGS

ROOT = Path(__file__).resolve().parent.parent
REFERENCE = ROOT / "docs" / "reference"
SOURCE = ROOT / "src" / "gpuledger"
MADE = "<!-- made by `make docs` from the program itself; edit there -->\n\n"


@cache
def pages() -> dict[str, str]:
    """Every generated page: file name to text."""
    return {
        "cli.md": cli(),
        "settings.md": settings(),
        "tables.md": tables(),
        "errors.md": errors(),
        "meters.md": meters(),
        "blind-spots.md": blind_spots(),
        "audit-checks.md": audit_checks(),
    }


def commands() -> Iterator[tuple[str, Any]]:
    """Every command with its words, in the order of the explicit list."""
    for words, short in VERBS:
        yield words, Deferred(words, short).load()


def cli() -> str:
    """The command line."""
    parts = [MADE, "# Command line\n\nGlobal options may stand before or after the verb.\n"]
    for words, command in commands():
        arguments = [p for p in command.params if p.param_type_name == "argument"]
        named = [p.metavar or p.name.upper() for p in arguments]
        ordered = (
            [*named, "[OPTIONS]"]
            if command.context_settings.get("allow_interspersed_args", True)
            else ["[OPTIONS]", *named]
        )
        usage = " ".join(["gpuledger", words, *ordered])
        parts.append(f"\n## {words}\n\n    {usage}\n\n{inspect.cleandoc(command.help or '')}\n\n")
        rows = [
            (
                " ".join(p.opts) if p.param_type_name == "option" else (p.metavar or p.name.upper()),
                p.metavar or "",
                p.help or "",
            )
            for p in command.params
        ]
        parts.append(table(("option", "takes", "meaning"), rows))
    return "".join(parts)


def settings() -> str:
    """Settings."""
    rows = [(f"`{s.name}`", f"`{s.variable}`", f"`{s.default}`" if s.default else "", s.sentence) for s in SETTINGS]
    intro = "# Settings\n\nRead order: option, environment variable, TOML file given by `--config`, default.\n\n"
    return MADE + intro + table(("setting", "variable", "default", "meaning"), rows)


def tables() -> str:
    """The ledger's tables."""
    parts = [
        MADE,
        "# Tables of the ledger\n\nMeant to be read by other tools: sqlite3, psql, Grafana, Datasette. ",
        "Times are microseconds UTC; a row's reference is `KIND:WRITER/NUMBER`.\n",
    ]
    for one in METADATA.sorted_tables:
        parts.append(f"\n## {one.name}\n\n{one.comment}\n\n")
        rows = [(f"`{c.name}`", str(c.type).lower(), "yes" if c.nullable else "", c.comment or "") for c in one.columns]
        parts.append(table(("column", "type", "null", "meaning"), rows))
    return "".join(parts)


def errors() -> str:
    """Exit statuses and error codes."""
    parts = [MADE, "# Exit statuses and error codes\n\n"]
    parts.append(table(("status", "meaning"), [(str(status), meaning) for status, meaning in EXIT_STATUSES]))
    parts.append(
        "\nEvery error says what happened and what to type next; with `--format json` it is one line on stderr:\n"
        '`{"error": {"code": "...", "message": "...", "hint": "..."}}`.\n\n'
    )
    rows = [
        (f"`{code}`", name, str(status), message) for code, (name, status, message) in sorted(error_codes().items())
    ]
    parts.append(table(("code", "class", "status", "says"), rows))
    parts.append(
        "\n# Problems\n\nWhat was done on imperfect evidence is told beside the answer, on stderr as a note and in "
        "`problems` of the JSON.\nIt is no error: the exit status does not change.\n\n"
    )
    parts.append(table(("code", "says"), [(f"`{code}`", said) for code, said in sorted(problem_codes().items())]))
    return "".join(parts)


UNTOLD = "what failed, in a sentence"
"""Said of a code whose sentence is put together elsewhere."""

Trees = list[ast.Module]


@cache
def trees() -> Trees:
    """Every module of the program."""
    return [ast.parse(path.read_text(encoding="utf-8")) for path in sorted(SOURCE.rglob("*.py"))]


@cache
def error_codes() -> dict[str, tuple[str, int, str]]:
    """Every code that is raised anywhere: code to (class, exit status, the sentence with its blanks)."""
    statuses = {error.__name__: error.exit_status for error in ERROR_CLASSES}
    modules = trees()
    makers = {name: (name, 0, 1) for name in statuses}
    for tree in modules:
        makers |= _makers(tree, statuses)
    found: dict[str, tuple[str, int, str]] = {}
    for tree in modules:
        for function, call in _calls_in_functions(tree):
            if _name(call) not in makers:
                continue
            error, code_at, message_at = makers[_name(call)]
            code = call.args[code_at] if len(call.args) > code_at else None
            message = call.args[message_at] if 0 <= message_at < len(call.args) else None
            codes = _texts(code, function) if code is not None else []
            told = _texts(message, function) if isinstance(message, ast.Name) else []
            for place, word in enumerate(codes):
                said = told[place] if len(told) == len(codes) > 1 else _sentence(message, function)
                _note(found, word, (error, statuses[error], said))
    for carrier, error in _carriers(modules, statuses).items():
        for code_word, said in _given_as_code(modules, carrier).items():
            _note(found, code_word, (error, statuses[error], said))
    return found


@cache
def problem_codes() -> dict[str, str]:
    """Every code of imperfect evidence: code to the sentence with its blanks."""
    statuses = {error.__name__: error.exit_status for error in ERROR_CLASSES}
    modules = trees()
    found = _given_as_code(modules, "Problem")
    for carrier in _carriers(modules, statuses):
        # what refuses a whole file is a problem where other parts of it are good
        is_told = any(
            _name(call) == "Problem"
            and _is_carried([word.value for word in call.keywords])
            and _mentions(tree, carrier)
            for tree in modules
            for call in _calls(tree)
        )
        for code, said in (_given_as_code(modules, carrier) if is_told else {}).items():
            found.setdefault(code, said)
    return found


def _note(found: dict[str, tuple[str, int, str]], code: str, told: tuple[str, int, str]) -> None:
    """The first sentence of a code, and a real one rather than none."""
    if code not in found or found[code][2] == UNTOLD:
        found[code] = told


def _carriers(modules: Trees, statuses: dict[str, int]) -> dict[str, str]:
    """Classes that carry code, sentence and hint until they are raised (``X(one.code, ...)``): name to the error."""
    found: dict[str, str] = {}
    for name in (node.name for tree in modules for node in ast.walk(tree) if _is_carrier(node)):
        for tree in modules:
            raised = [_name(call) for call in _calls(tree) if _name(call) in statuses and _is_carried(call.args[:1])]
            if raised and _mentions(tree, name):
                found.setdefault(name, raised[0])
    return found


def _is_carrier(node: ast.AST) -> bool:
    body = node.body if isinstance(node, ast.ClassDef) else []
    return {"code", "hint"} <= {ast.unparse(part.target) for part in body if isinstance(part, ast.AnnAssign)}


def _is_carried(values: list[ast.expr]) -> bool:
    return any(isinstance(value, ast.Attribute) and value.attr == "code" for value in values)


def _mentions(tree: ast.Module, name: str) -> bool:
    return any(isinstance(node, ast.Name) and node.id == name for node in ast.walk(tree))


def _given_as_code(modules: Trees, name: str) -> dict[str, str]:
    """Codes given by keyword to a class: code to its sentence."""
    found: dict[str, str] = {}
    for tree in modules:
        for function, call in _calls_in_functions(tree):
            words = {keyword.arg: keyword.value for keyword in call.keywords}
            if _name(call) == name and "code" in words:
                for code in _texts(words["code"], function):
                    said = _sentence(words.get("message") or words.get("sentence"), function)
                    if code not in found or found[code] == UNTOLD:
                        found[code] = said
    return found


def _texts(node: ast.expr, function: ast.AST) -> list[str]:
    """The words that an expression can be, where they are written in its function."""
    if isinstance(node, ast.Constant):
        return [str(node.value)]
    if isinstance(node, ast.IfExp):
        return [*_texts(node.body, function), *_texts(node.orelse, function)]
    if isinstance(node, ast.Name):
        return [text for value in _assigned(node, function) for text in _texts(value, function)]
    return []


def _assigned(name: ast.Name, function: ast.AST) -> list[ast.expr]:
    """What was last written to a name above its use; else what a loop gives it, else the argument's default."""
    values = [
        (node.lineno, node.value)
        for node in ast.walk(function)
        if isinstance(node, ast.Assign) and node.lineno <= name.lineno
        and any(isinstance(target, ast.Name) and target.id == name.id for target in node.targets)
    ]  # fmt: skip
    if values:
        return [max(values, key=lambda each: each[0])[1]]
    for loop in ast.walk(function):  # for code, message in (("a", "..."), ("b", "...")):
        if isinstance(loop, ast.For) and isinstance(loop.target, ast.Tuple) and isinstance(loop.iter, ast.Tuple):
            names = [ast.unparse(target) for target in loop.target.elts]
            if name.id in names:
                return [each.elts[names.index(name.id)] for each in loop.iter.elts if isinstance(each, ast.Tuple)]
    if isinstance(function, ast.FunctionDef) and function.args.defaults:
        given = dict(
            zip(
                [each.arg for each in function.args.args][-len(function.args.defaults) :],
                function.args.defaults,
                strict=True,
            )
        )
        return [given[name.id]] if name.id in given else []
    return []


def _makers(tree: ast.Module, statuses: dict[str, int]) -> dict[str, tuple[str, int, int]]:
    """Functions that raise or return an error of a code they are given: name to (class, place of code, of message)."""
    found: dict[str, tuple[str, int, int]] = {}
    for function in ast.walk(tree):
        if not isinstance(function, ast.FunctionDef):
            continue
        names = [argument.arg for argument in function.args.args if argument.arg != "self"]
        for call in _calls(function):
            given = call.args[0] if call.args else None
            if _name(call) in statuses and isinstance(given, ast.Name) and given.id in names:
                message = names.index("message") if "message" in names else -1
                found[function.name] = (_name(call), names.index(given.id), message)
    return found


def _calls(tree: ast.AST) -> Iterator[ast.Call]:
    yield from (node for node in ast.walk(tree) if isinstance(node, ast.Call))


def _calls_in_functions(tree: ast.Module) -> Iterator[tuple[ast.AST, ast.Call]]:
    """Every call with the innermost function around it, else the module."""
    around: dict[ast.Call, ast.AST] = dict.fromkeys(_calls(tree), tree)
    for node in ast.walk(tree):  # outer functions come before inner ones
        if isinstance(node, ast.FunctionDef):
            around |= dict.fromkeys(_calls(node), node)
    yield from ((function, call) for call, function in around.items())


def _name(call: ast.Call) -> str:
    function = call.func
    return (
        function.id if isinstance(function, ast.Name) else function.attr if isinstance(function, ast.Attribute) else ""
    )


def _sentence(node: ast.expr | None, function: ast.AST) -> str:
    """A message as written, with its parts as dots."""
    if isinstance(node, ast.Constant):
        return str(node.value)
    if isinstance(node, ast.JoinedStr):
        return "".join(str(part.value) if isinstance(part, ast.Constant) else "..." for part in node.values)
    if isinstance(node, ast.Name):
        told = [_sentence(value, function) for value in _assigned(node, function)]
        return told[0] if told else UNTOLD
    return UNTOLD


def meters() -> str:
    """Meters."""
    rows = [
        (f"`{m.name}`", m.unit, ", ".join(m.grades), "yes" if m.invoiced else "no, showback", m.sentence)
        for m in METERS
    ]
    return MADE + "# Meters\n\n" + table(("meter", "unit", "grades", "invoice", "says"), rows)


def blind_spots() -> str:
    """Reasons and causes."""
    unknown = [(f"`{reason}`", sentence, f"`{command}`") for reason, (sentence, command) in UNKNOWN_MEANING.items()]
    causes = [(f"`{cause}`", sentence) for cause, sentence in CAUSE_MEANING.items()]
    reserved = [(f"`{reason}`", said, f"`{command}`") for reason, (said, command) in RESERVED_MEANING.items()]
    return (
        MADE
        + "# Blind spots\n\n## Why time is UNKNOWN\n\n"
        + table(("reason", "means", "helps"), unknown)
        + "\n## Why an amount is unattributed\n\n"
        + table(("cause", "means"), causes)
        + "\n## What reservations do not tell\n\n"
        + table(("reason", "means", "helps"), reserved)
    )


def every_check() -> dict[str, AuditCheck]:
    """Every check of every audit: id to check, in the order of the modules and of their ``CHECKS``."""
    modules = sorted(path.stem for path in (SOURCE / "audit").glob("*.py") if path.stem != "__init__")
    given = [getattr(import_module(f"gpuledger.audit.{name}"), "CHECKS", ()) for name in modules]
    return {check.id: check for checks in given for check in checks}


def audit_checks() -> str:
    """The checks of `audit`."""
    parts = [
        MADE,
        "# Checks of `gpuledger audit`\n\n",
        "An error makes the command exit with 1, a warning only with `--strict`, a note never.\n",
        "A [waiver](../guides/audit-waivers.md) names a check by its id.\n",
    ]
    checks = every_check().values()
    for audit in dict.fromkeys(check.id.split("/")[0] for check in checks):
        rows = [
            (f"`{check.id}`", check.level.value, check.rule, check.fix)
            for check in checks
            if check.id.split("/")[0] == audit
        ]
        parts.append(f"\n## audit {audit}\n\n" + table(("check", "level", "rule", "fix"), rows))
    return "".join(parts)


def table(header: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    """A Markdown table."""
    lines = ["| " + " | ".join(header) + " |", "|" + "|".join(" --- " for _ in header) + "|"]
    lines += ["| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in row) + " |" for row in rows]
    return "\n".join(lines) + "\n"


def main() -> None:
    """Write every page."""
    REFERENCE.mkdir(parents=True, exist_ok=True)
    for name, text in pages().items():
        (REFERENCE / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
