"""``gpuledger verify``: 0 when all holds, 1 when records differ, 6 when the ledger is damaged."""

from __future__ import annotations

import sqlite3

import pytest


@pytest.fixture
def metered(gpuledger, morning, now: str):
    """The morning, its hours closed."""
    gpuledger("meter", "--now", now)
    return morning


def test_an_honest_ledger_is_status_0(gpuledger, metered, now: str) -> None:
    """In every format."""
    for words in ((), ("--format", "csv"), ("--format", "json")):
        done = gpuledger("verify", "--now", now, *words)
        assert (done.status, bool(done.out)) == (0, True)


def test_a_tampered_record_is_status_6(gpuledger, metered, now: str) -> None:
    """The triggers dropped, a quantity changed: found by the chain, and told what to do."""
    connection = sqlite3.connect(metered.place)
    for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
        connection.execute(f'DROP TRIGGER "{name}"')
    connection.execute("UPDATE usage_record SET quantity = 1")
    connection.commit()
    connection.close()
    done = gpuledger("verify", "--now", now)
    assert done.status == 6
    assert "backup" in done.out


def test_a_root_that_is_not_among_the_seals_is_status_6(gpuledger, metered, now: str) -> None:
    """Kept elsewhere, it shows a ledger that was rewritten as a whole."""
    assert gpuledger("verify", "--now", now, "--root", "ab" * 32).status == 6
