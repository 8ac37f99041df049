"""Patterns of metric names: as Python's engine has them, in bounded time."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuledger.audit.name_patterns import UnreadablePattern, compiled

_ATOMS = st.sampled_from(["a", "b", "_", ".", r"\.", "[ab]", "[^a]", "[a-c_]", r"\w", r"\d", "^", "$"])


def _wrapped(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    counts = st.sampled_from(["", "*", "+", "?", "{2}", "{1,}", "{0,2}"])
    grouped = st.builds(lambda body, count: f"({body}){count}", inner, counts)
    alternatives = st.builds(lambda one, other: f"(?:{one}|{other})", inner, inner)
    return st.one_of(grouped, alternatives, st.builds(lambda one, other: one + other, inner, inner))


PATTERNS = st.recursive(_ATOMS, _wrapped, max_leaves=8)


@settings(max_examples=200, deadline=None)
@given(pattern=PATTERNS, name=st.text("ab_.1", max_size=6))
def test_it_agrees_with_the_engine_that_everybody_knows(pattern: str, name: str) -> None:
    """On patterns small enough for backtracking."""
    assert compiled(pattern)(name) == bool(re.fullmatch(pattern, name))


@pytest.mark.parametrize("pattern", ["((.*)|(.*))*DCGM_X", "(a+)+(b+)+x", "(.*)*(.*)*(.*)*y", ".*" * 500 + "z"])
def test_patterns_made_to_hang_do_not(pattern: str) -> None:
    """Each of these costs a backtracking engine hours on a name of forty letters."""
    assert compiled(pattern)("DCGM_FI_PROF_PIPE_TENSOR_DFMA_ACTIVE_AND_MORE") is False


@pytest.mark.parametrize(
    "pattern",
    ["(", "a{2,1", "[a", r"\q", "(?<x>a)", "*", "a" * 5000, "(" * 50 + ")" * 50, "a{1000}{1000}{1000}{1000}{1000}"],
)
def test_what_is_no_pattern_is_said_to_be_none(pattern: str) -> None:
    """So that the query is undecidable instead of judged by a guess."""
    with pytest.raises(UnreadablePattern):
        compiled(pattern)


def test_flags_and_names_are_read() -> None:
    """``(?i)``, ``(?P<name>...)``."""
    assert compiled("(?i)dcgm_(?P<rest>.*)")("DCGM_FI_X")
    assert not compiled("dcgm_.*")("DCGM_FI_X")
