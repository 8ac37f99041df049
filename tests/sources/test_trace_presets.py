"""Traces known by name."""

from __future__ import annotations

import pytest

from gpuledger.sources.trace_map import parse, preset
from gpuledger.sources.trace_presets import PRESETS


@pytest.mark.parametrize("name", sorted(PRESETS))
def test_each_is_a_map_like_any_other(name: str) -> None:
    """It can be printed, changed, and given as a file."""
    assert parse(PRESETS[name], path="copy.yaml") == preset(name)
