"""The window of a verb: as typed, else as far as the evidence reaches; whatever verb asks."""

from __future__ import annotations

import pytest

from gpuledger.cli.options import Globals
from gpuledger.cli.session import Session
from gpuledger.cli.windowed import windowed
from gpuledger.errors import Misconfigured
from gpuledger.model.moments import HOUR_US, iso
from gpuledger.model.rows import Watch


class Context:
    """A verb typed without options before it."""

    obj = None


@pytest.fixture
def session(morning, now: str) -> Session:
    """Asks about the morning of the box at ten past two."""
    return Session(Context(), Globals(ledger=str(morning.place), now=now))  # type: ignore[arg-type]


def test_the_window_is_as_typed(session: Session) -> None:
    """The ledger can be read inside, and is closed behind."""
    with windowed(session, "2026-07-27T00:00Z", "2026-07-27T01:00Z") as (ledger, since_us, until_us):
        assert (iso(since_us), until_us - since_us) == ("2026-07-27T00:00:00Z", HOUR_US)
        assert ledger.count(Watch) > 0
    assert ledger.connection.closed


def test_nothing_typed_is_all_there_is(session: Session) -> None:
    """From the first evidence on, and never into the future."""
    with windowed(session, None, None) as (_, since_us, until_us):
        assert since_us < until_us <= session.now_us


def test_a_window_that_ends_before_it_begins_is_refused(session: Session) -> None:
    """By name, and the ledger is closed."""
    with pytest.raises(Misconfigured) as caught, windowed(session, "2026-07-27T01:00Z", "2026-07-27T00:30Z"):
        pass
    assert caught.value.code == "empty-window"


@pytest.mark.parametrize("verb", [("usage",), ("blind",), ("journal",), ("explain", "total")])
def test_every_verb_over_a_window_begins_so(gpuledger, morning, now: str, verb: tuple[str, ...]) -> None:
    """The same refusal everywhere."""
    done = gpuledger(*verb, "--ledger", morning.place, "--now", now, "--since", "2026-07-27T01:00Z", "--until",
                     "2026-07-27T00:30Z", "--format", "json")  # fmt: skip
    assert (done.status, done.error["code"]) == (2, "empty-window")
