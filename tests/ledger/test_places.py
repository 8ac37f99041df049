"""Where the ledger lies."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpuledger.errors import Misconfigured
from gpuledger.ledger.places import path_of, resolve_place


def test_what_was_typed_wins(tmp_path: Path) -> None:
    """The option before the environment, the environment before the machine."""
    system = tmp_path / "system.db"
    environment = {"GPULEDGER_LEDGER": "/from/environment.db", "HOME": "/home/a"}
    assert resolve_place("/typed.db", environment=environment, is_root=True, system=system) == Path("/typed.db")
    assert resolve_place("", environment=environment, is_root=True, system=system) == Path("/from/environment.db")


def test_root_gets_the_systems_ledger(tmp_path: Path) -> None:
    """Root uses it whether it exists yet or not."""
    assert resolve_place(environment={}, is_root=True, system=tmp_path / "l.db") == tmp_path / "l.db"


def test_a_user_gets_the_systems_ledger_where_it_is_readable(tmp_path: Path) -> None:
    """One box, one ledger: whoever may read it reads it; others have their own."""
    system = tmp_path / "l.db"
    environment = {"HOME": "/home/a"}
    own = Path("/home/a/.local/share/gpuledger/ledger.db")
    assert resolve_place(environment=environment, is_root=False, system=system) == own
    system.touch()
    assert resolve_place(environment=environment, is_root=False, system=system) == system


def test_the_data_directory_can_be_elsewhere(tmp_path: Path) -> None:
    """XDG_DATA_HOME is honoured."""
    found = resolve_place(
        environment={"XDG_DATA_HOME": "/data", "HOME": "/h"}, is_root=False, system=tmp_path / "no.db"
    )
    assert found == Path("/data/gpuledger/ledger.db")


@pytest.mark.parametrize(
    ("place", "path"),
    [
        ("ledger.db", "ledger.db"),
        ("sqlite:///ledger.db", "ledger.db"),
        ("sqlite:////var/lib/ledger.db", "/var/lib/ledger.db"),
        ("SQLite:////x y?z#.db", "/x y?z#.db"),
    ],
)
def test_paths_and_urls(place: str, path: str) -> None:
    """A path and its URL name one file."""
    assert path_of(place) == Path(path)


def test_a_tilde_is_the_home_directory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both spellings know it."""
    monkeypatch.setenv("HOME", "/home/b")
    assert path_of("~/l.db") == path_of("sqlite:///~/l.db") == Path("/home/b/l.db")


@pytest.mark.parametrize("url", ["postgresql://h/d", "postgresql+psycopg://h/d", "postgres://h/d", "POSTGRESQL://h/d"])
def test_postgres_is_announced(url: str) -> None:
    """A PostgreSQL URL is understood, and answered with what this version can do."""
    with pytest.raises(Misconfigured, match="SQLite only") as caught:
        path_of(url)
    assert caught.value.code == "postgres-later"


@pytest.mark.parametrize(
    "place", ["mysql://h/d", "sqlite://", "sqlite:///", "sqlite://h/d", "", " ", "a\0b", "~nobody-here/x", "http://x"]
)
def test_other_places_are_refused(place: str) -> None:
    """Anything else is wrong usage, with a hint."""
    with pytest.raises(Misconfigured) as caught:
        path_of(place)
    assert caught.value.code == "bad-ledger-place"
    assert caught.value.hint


def test_a_directory_is_no_ledger(tmp_path: Path) -> None:
    """The hint names the file that was probably meant."""
    with pytest.raises(Misconfigured, match="is a directory") as caught:
        path_of(tmp_path)
    assert str(tmp_path / "ledger.db") in caught.value.hint
