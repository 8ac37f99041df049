"""``gpuledger forget``: shown first, dropped with --yes, and everything else stands."""

from __future__ import annotations

import pytest


def test_without_yes_it_only_shows(gpuledger, morning, now: str) -> None:
    """What would be dropped, and what to type."""
    done = gpuledger("forget", "--now", now, "--user", "al", "--service", "unit:chat.service")
    assert done.status == 0
    assert "--user al --service unit:chat.service --yes" in done.out
    assert gpuledger("forget", "--now", now, "--user", "al", "--format", "json").json["texts"] == 2


def test_with_yes_it_drops(gpuledger, morning, now: str) -> None:
    """Then no verb prints the name, totals are what they were, and verify passes."""
    total = gpuledger("usage", "--now", now, "--format", "json").json["total"]
    done = gpuledger("forget", "--now", now, "--subject", "unit:chat.service", "--yes", "--format", "json")
    assert (done.status, done.json["dropped"], done.json["verified"]) == (0, 1, True)
    for words in (("usage",), ("journal",), ("blind",), ("explain", "total"), ("smi", "--at", "2026-07-27T00:30Z")):
        answer = gpuledger(*words, "--now", now)
        assert (answer.status, "chat" in answer.out) == (0, False), words
    assert gpuledger("usage", "--now", now, "--format", "json").json["total"] == total
    assert gpuledger("verify", "--now", now).status == 0
    assert "nothing to forget" in gpuledger("forget", "--subject", "unit:chat.service", "--yes", "--now", now).out


@pytest.mark.parametrize(
    ("words", "code", "status"),
    [((), "nothing-chosen", 2), (("--before", "soon"), "bad-time", 2)],
)
def test_what_is_refused(gpuledger, morning, now: str, words: tuple[str, ...], code: str, status: int) -> None:
    """No choice, and a time that is none."""
    done = gpuledger("forget", *words, "--now", now, "--format", "json")
    assert (done.status, done.error["code"]) == (status, code)


def test_without_a_ledger_there_is_nothing_to_forget(gpuledger, tmp_path) -> None:
    """And none is made."""
    done = gpuledger("forget", "--user", "al", "--yes", "--ledger", tmp_path / "none.db", "--format", "json")
    assert (done.status, done.error["code"]) == (5, "no-ledger")
    assert not (tmp_path / "none.db").exists()
