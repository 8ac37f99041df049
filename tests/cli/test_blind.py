"""``gpuledger blind``: what cannot be seen, and its exit status."""

from __future__ import annotations

import pytest


@pytest.mark.parametrize(("words", "status"), [((), 0), (("--strict",), 1)])
def test_blind_spots_are_an_answer(gpuledger, morning, now: str, words: tuple[str, ...], status: int) -> None:
    """Finding some is what it is for: only --strict makes a failure of it."""
    done = gpuledger("blind", "--now", now, "--format", "json", *words)
    assert done.status == status
    (unnamed,) = done.json["unattributed"]["causes"]
    assert (unnamed["cause"], unnamed["quantity"]) == ("between-samples", 600)


def test_it_prints_reasons_causes_and_chances(gpuledger, morning, now: str) -> None:
    """As a person reads them, and as rows."""
    done = gpuledger("blind", "--now", now, "--since", "2026-07-27")
    assert done.status == 0
    for word in ("watch-gap", "before-watch", "between-samples"):
        assert word in done.out
    assert "between-samples" in gpuledger("blind", "--now", now, "--format", "csv").out


def test_nothing_known_is_status_3(gpuledger, box) -> None:
    """An empty ledger has not watched: that is not "no blind spots"."""
    box.ledger.close()
    assert gpuledger("blind", "--now", "2026-07-27T02:00:00Z").status == 3
