"""The options that every verb has: one way of typing each, everywhere."""

from __future__ import annotations

import pytest

from gpuledger.cli.deferred import Deferred
from gpuledger.cli.main import VERBS
from gpuledger.cli.options import Format, Globals


def test_nothing_typed_is_nothing_meant() -> None:
    """So that what stands before the verb is not overruled by a default after it."""
    assert Globals() == Globals(ledger=None, config=None, format=None, now=None, quiet=False)
    assert [str(each) for each in Format] == ["table", "json", "csv"]


@pytest.mark.parametrize("words", [words for words, _ in VERBS])
def test_every_verb_takes_the_global_options(words: str) -> None:
    """Each after the verb too, with the same sentence; copy names its two ledgers, and the agent has no other time."""
    known = {param.opts[0]: param.help for param in Deferred(words, "").load().params}
    expected = {
        "--ledger": "The ledger: a path, sqlite:///PATH or postgresql://HOST/DATABASE.",
        "--config": "Settings file (TOML).",
        "--format": "table for eyes, json or csv for scripts.",
        "--now": "Answer as if it were this time (tests, audits).",
    }
    if words.startswith("audit "):  # of texts, without a ledger and settings; with formats of their own
        expected = {}
    for spared in ("--now", "--ledger") if words == "copy" else ("--now",):
        if spared not in known:
            expected.pop(spared, None)
    assert {name: known.get(name) for name in expected} == expected
