"""The style guide as a test: mirrors exist, names are honest, pure rooms are pure, nothing is left unfinished."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "gpuledger"
MODULES = sorted(path for path in SOURCE.rglob("*.py") if path.name != "__init__.py" and "migrations" not in path.parts)
TEXTS = sorted(
    path
    for folder in ("src", "tests", "docs", "bench", ".ci", "deploy")
    for path in (ROOT / folder).rglob("*")
    if path.is_file()
    and path.suffix in {".py", ".md", ".c", ".h", ".txt", ".yaml", ""}
    and "__pycache__" not in path.parts
)
PURE = ("model", "watching", "metering", "accounting", "audit", "reports")
BANNED_MODULES = {"utils", "helpers", "manager", "handler", "common", "misc", "data", "info"}
BANNED_NAMES = {"timestamp", "data", "info", "utils", "helpers"}
LONGEST = 400


def relative(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("module", MODULES, ids=relative)
def test_every_module_has_its_mirror(module: Path) -> None:
    """Who looks for a test finds it where the code's own path says."""
    place = module.relative_to(SOURCE)
    mirror = ROOT / "tests" / place.parent / f"test_{place.name}"
    assert mirror.exists(), f"{relative(module)} has no {relative(mirror)}"


@pytest.mark.parametrize("module", MODULES, ids=relative)
def test_a_module_is_one_idea(module: Path) -> None:
    """No module outgrows a reader, and each opens with what its room holds."""
    text = module.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= LONGEST
    tree = ast.parse(text)
    assert ast.get_docstring(tree), "no module docstring"
    assert module.stem not in BANNED_MODULES


@pytest.mark.parametrize("module", MODULES, ids=relative)
def test_public_things_say_what_they_are(module: Path) -> None:
    """Every public class and function has a docstring, except the binding's own names of a simulated driver."""
    tree = ast.parse(module.read_text(encoding="utf-8"))
    silent = [
        node.name
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.ClassDef)
        and not node.name.startswith(("_", "nvml"))
        and not ast.get_docstring(node)
        and _is_public(tree, node)
    ]
    assert not silent


def _is_public(tree: ast.Module, wanted: ast.AST) -> bool:
    """Whether it stands at module level, or in a public class; an inner function is nobody's interface."""
    for node in tree.body:
        if node is wanted:
            return True
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_") and wanted in node.body:
            return True
    return False


@pytest.mark.parametrize("module", MODULES, ids=relative)
def test_names_are_the_fields_own(module: Path) -> None:
    """No variable, argument or function is called by a word that says nothing."""
    tree = ast.parse(module.read_text(encoding="utf-8"))
    used = {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}
    used |= {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    used |= {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    assert not {name for name in used if name in BANNED_NAMES}


@pytest.mark.parametrize("module", [m for m in MODULES if m.relative_to(SOURCE).parts[0] in PURE], ids=relative)
def test_no_float_in_pure_rooms(module: Path) -> None:
    """Amounts are integers and fractions; a float constant, annotation or call has no place there."""
    tree = ast.parse(module.read_text(encoding="utf-8"))
    floats = [
        node.lineno for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, float)
    ]
    floats += [node.lineno for node in ast.walk(tree) if isinstance(node, ast.Name) and node.id == "float"]
    floats += [
        node.lineno
        for node in ast.walk(tree)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div) and not _is_fraction(node)
    ]
    assert not floats


def _is_fraction(node: ast.BinOp) -> bool:
    return any(isinstance(side, ast.Call) and ast.unparse(side.func) == "Fraction" for side in (node.left, node.right))


@pytest.mark.parametrize("module", [m for m in MODULES if m.name != "clock.py"], ids=relative)
def test_only_the_clock_asks_the_time(module: Path) -> None:
    """Everything else is given a time, so that the same inputs give the same bytes."""
    text = module.read_text(encoding="utf-8")
    assert not re.search(r"\btime\.(time|time_ns|clock_gettime)\b|datetime\.(now|utcnow|today)\(", text)


@pytest.mark.parametrize("test", sorted((ROOT / "tests").rglob("test_*.py")), ids=relative)
def test_each_test_opens_with_a_sentence(test: Path) -> None:
    """The tests read as a specification."""
    tree = ast.parse(test.read_text(encoding="utf-8"))
    silent = [
        node.name
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_") and not ast.get_docstring(node)
    ]
    assert not silent


@pytest.mark.parametrize("path", TEXTS, ids=relative)
def test_nothing_is_left_unfinished(path: Path) -> None:
    """No marker of work to come, no check that cannot fail."""
    if path == Path(__file__).resolve():
        return
    text = path.read_text(encoding="utf-8", errors="replace")
    assert not re.search(r"\b(TODO|FIXME|XXX)\b", text)
    assert not re.search(r"\|\| true|pytest\.mark\.xfail|assert True\b", text)
