"""Progress on stderr, when somebody looks."""

from __future__ import annotations

import io
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console

from gpuledger.cli.progress import progress


def shown(*, is_terminal: bool, quiet: bool = False) -> str:
    """What a terminal, or a pipe, gets of a work of two steps."""
    stream = io.StringIO()
    session: Any = SimpleNamespace(quiet=quiet, err=Console(file=stream, force_terminal=is_terminal, width=80))
    with progress(session, "verifying") as step:
        step(1, 2)
        step(2, 2)
    return stream.getvalue()


def test_a_terminal_sees_how_far_it_is() -> None:
    """The sentence, and done of all."""
    told = shown(is_terminal=True)
    assert "verifying" in told
    assert "2/2" in told


@pytest.mark.parametrize(("is_terminal", "quiet"), [(False, False), (True, True)])
def test_a_pipe_and_a_quiet_run_see_nothing(is_terminal: bool, quiet: bool) -> None:
    """No bar in a log file."""
    assert shown(is_terminal=is_terminal, quiet=quiet) == ""
