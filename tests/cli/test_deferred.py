"""A verb is imported when it is asked for, and no sooner."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from gpuledger.cli.deferred import Deferred
from gpuledger.cli.main import VERBS

CLI = Path(__file__).resolve().parents[2] / "src" / "gpuledger" / "cli"
IMPORTED = """
import sys
from gpuledger.cli.main import main
try:
    main(sys.argv[1:])
finally:
    sys.stderr.write(" ".join(sorted(sys.modules)))
"""


def imported(*words: str) -> set[str]:
    """The modules that the program has when it ends."""
    done = subprocess.run(
        [sys.executable, "-c", IMPORTED, *words], capture_output=True, text=True, check=True, timeout=60
    )
    return set(done.stderr.split())


@pytest.mark.parametrize("words", [("--version",), ("--help",), ("import", "--help")])
def test_the_list_of_verbs_costs_none_of_them(words: tuple[str, ...]) -> None:
    """Neither their modules nor the database under them."""
    modules = imported(*words)
    assert "gpuledger.cli.main" in modules
    assert not modules & {"sqlalchemy", "sqlite3", "yaml", "pynvml", "gpuledger.cli.session", "gpuledger.cli.usage"}


def test_a_verb_costs_no_other() -> None:
    """Who asks for usage waits neither for the driver's library nor for the migrations."""
    modules = imported("usage", "--help")
    assert {"gpuledger.cli.usage", "sqlalchemy"} <= modules
    assert not modules & {"gpuledger.cli.agent", "gpuledger.cli.blind", "pynvml", "alembic", "rich.progress"}


@pytest.mark.parametrize(("words", "short"), VERBS, ids=[words for words, _ in VERBS])
def test_each_verb_of_the_list_has_its_module(words: str, short: str) -> None:
    """Whose command goes by the last word typed, and has a help of its own."""
    command = Deferred(words, short).load()
    assert (CLI / f"{words.replace(' ', '_').replace('-', '_')}.py").exists()
    assert (command.name, bool(command.help), bool(short)) == (words.rsplit(maxsplit=1)[-1], True, True)
