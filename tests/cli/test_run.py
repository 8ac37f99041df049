"""``gpuledger run``: what is refused before a command begins. What it does is in tests/e2e/test_run.py."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpuledger.cli.deferred import Deferred


@pytest.mark.parametrize(
    ("words", "status", "code"),
    [
        (("run",), 2, "bad-usage"),
        (("run", "--frobnicate", "--", "true"), 2, "bad-usage"),
        (("run", "--format", "csv", "--", "true"), 2, "no-csv"),
        (("run", "--interval", "soon", "--", "true"), 2, "bad-span"),
        (("run", "--receipt", "/no-such-folder/r.json", "--", "true"), 2, "bad-receipt-place"),
        (("--now", "2026-07-27", "run", "--", "true"), 2, "now-refused"),
        (("run", "--ledger", "mysql://x/y", "--", "true"), 2, "bad-ledger-place"),
    ],
)
def test_wrong_usage_is_said_before_anything_begins(
    gpuledger, tmp_path: Path, words: tuple[str, ...], status: int, code: str
) -> None:
    """And no ledger is made for it."""
    done = gpuledger(*words)
    assert (done.status, done.out) == (status, "")
    assert f"[{code}]" in done.err
    assert not (tmp_path / "box.db").exists()


def test_an_error_is_json_only_where_run_itself_was_asked_for_it(gpuledger) -> None:
    """The command's own options are none of ours."""
    done = gpuledger("run", "--interval", "soon", "--", "train.py", "--format", "json")
    assert done.err.startswith("error: ")
    done = gpuledger("run", "--format", "json", "--interval", "soon", "--", "train.py")
    assert done.error["code"] == "bad-span"


def test_options_behind_the_command_are_its_own() -> None:
    """`run train.py --format x --quiet` needs no dashes between; those that are typed are taken away once."""
    command = Deferred("run", "").load()
    for words, given in (
        (["--quiet", "--", "train.py", "--format", "x"], ["train.py", "--format", "x"]),
        (["train.py", "--quiet", "--", "-q"], ["train.py", "--quiet", "--", "-q"]),
        (["--", "--", "x"], ["--", "x"]),
    ):
        context = command.make_context("run", list(words))
        assert context.params["words"] == given
        assert context.params["quiet"] == (words[0] == "--quiet")
