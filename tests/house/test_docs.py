"""What can be typed, set, read or met is documented, and the pages are what the program says."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from docs.generate import REFERENCE, SOURCE, commands, error_codes, every_check, pages  # noqa: E402 - the docs are no package of the product

MARKDOWN = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])


@pytest.mark.parametrize("name", sorted(pages()))
def test_each_generated_page_is_what_the_program_says(name: str) -> None:
    """`make docs` was run after the last change."""
    assert (REFERENCE / name).read_text(encoding="utf-8") == pages()[name]


@pytest.mark.parametrize("words", [words for words, _ in commands()])
def test_every_verb_is_told_where_people_read(words: str) -> None:
    """README or a guide shows each command in use."""
    told = [ROOT / "README.md", *(ROOT / "docs" / "guides").glob("*.md"), ROOT / "docs" / "tutorial.md"]
    assert any(f"gpuledger {words}" in path.read_text(encoding="utf-8") for path in told)


@pytest.mark.parametrize(("words", "command"), list(commands()), ids=[words for words, _ in commands()])
def test_every_option_has_a_sentence(words: str, command: object) -> None:
    """An option without help teaches nobody."""
    assert not [param.name for param in command.params if not param.help and param.name != "help"]  # type: ignore[attr-defined]


def test_every_check_of_the_audits_is_on_its_page() -> None:
    """A check that is written anywhere in the room stands in the `CHECKS` of a module, and so on the page."""
    written = {
        keyword.value.value
        for path in (SOURCE / "audit").glob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "AuditCheck"
        for keyword in node.keywords
        if keyword.arg == "id" and isinstance(keyword.value, ast.Constant)
    }
    assert written <= set(every_check())
    page = pages()["audit-checks.md"]
    assert not [check for check in every_check() if f"`{check}`" not in page]


def test_error_codes_are_kebab_case() -> None:
    """Scripts match on them."""
    assert not [code for code in error_codes() if not re.fullmatch(r"[a-z]+(-[a-z0-9]+)*", code)]


@pytest.mark.parametrize("page", MARKDOWN, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    """Every relative link names a file that is there."""
    for link in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
        if not re.match(r"[a-z]+:", link):
            assert (page.parent / link).exists(), link


def test_every_word_of_the_model_is_in_the_glossary() -> None:
    """One word per idea, and one page that lists them."""
    glossary = (ROOT / "docs" / "concepts" / "glossary.md").read_text(encoding="utf-8").lower()
    words = [
        "host", "device", "slice", "class", "process identity", "context", "subject", "service", "watch", "sighting",
        "record", "correction", "pass", "grade", "blind spot", "policy", "seal", "ledger", "writer", "meter",
        "unattributed", "unsettled", "never-accounted", "provisional",
    ]  # fmt: skip
    assert not [word for word in words if f"**{word}**" not in glossary]


def test_help_of_the_installed_command_names_every_verb() -> None:
    """What a person sees first."""
    done = subprocess.run(
        [str(Path(sys.executable).with_name("gpuledger")), "--help"],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert not [words for words, _ in commands() if words.split()[0] not in done.stdout]
