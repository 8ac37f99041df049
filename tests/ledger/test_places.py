"""Where the ledger lies."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpuledger.errors import Misconfigured
from gpuledger.ledger.places import Server, beside, path_of, place_of, resolve_place


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
def test_a_server_has_many_spellings(url: str) -> None:
    """All of them are one, as libpq reads it."""
    assert place_of(url) == Server("postgresql://h/d")
    assert place_of(place_of(url)) == place_of(url)
    assert resolve_place(url, environment={}) == place_of(url)


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://al:pass%2Fword@h:5/d", "postgresql://al@h:5/d"),
        ("postgresql://al@h/d?password=word&sslmode=require", "postgresql://al@h/d"),
        ("postgresql:///d?host=/run/postgresql", "postgresql:///d"),
        ("postgresql://h1:1,h2:2/d", "postgresql://h1:1,h2:2/d"),
    ],
)
def test_a_password_is_never_shown(url: str, shown: str) -> None:
    """Neither as text nor in a traceback."""
    place = place_of(url)
    assert str(place) == shown
    assert "word" not in f"{place!r} {place}"


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://al:se@cret@h/d",
        "postgresql://al:se/cret@h/d",
        "postgresql://al:se?cret@h/d",
        "postgresql://al:se#cret@h/d",
        "postgresql://al:12/cret@h/d",
        "postgresql://al:secret/d",
        "postgresql://h1:5432,al:secret/d",
        "postgresl://al:secret@h/d",
    ],
)
def test_a_url_whose_password_cannot_be_told_apart_is_not_shown(url: str) -> None:
    """A letter that was not quoted, a host that was left out, a scheme that was mistyped: no part of it is repeated."""
    with pytest.raises(Misconfigured) as caught:
        place_of(url)
    assert caught.value.code == "bad-ledger-place"
    assert "al" not in caught.value.message
    assert not {"se", "cret"} & set(caught.value.message.replace("'", " ").split())
    assert "secret" not in caught.value.message
    assert "postgresql://USER" in caught.value.hint


def test_addresses_and_ports_are_places() -> None:
    """Of both families, with and without a port, and several of them."""
    for where in ("[::1]:5432", "[fe80::1]", "10.0.0.1:", "h1:1,[::2]:2"):
        assert str(place_of(f"postgresql://al:word@{where}/d")) == f"postgresql://al@{where}/d"


def test_what_must_not_be_shown() -> None:
    """The password as written and as meant, wherever it stands."""
    assert Server("postgresql://al:pass%2Fword@h/d").secrets == ("pass%2Fword", "pass/word")
    assert Server("postgresql://al@h/d?password=x").secrets == ("x",)
    assert Server("postgresql://al@h/d").secrets == ()


@pytest.mark.parametrize("url", ["postgresql://", "postgresql:///", "postgresql://h/d\0", "postgresql://[h/d"])
def test_no_server_is_named(url: str) -> None:
    """Wrong usage, with a hint."""
    with pytest.raises(Misconfigured) as caught:
        place_of(url)
    assert caught.value.code == "bad-ledger-place"
    assert "postgresql://USER@HOST/DATABASE" in caught.value.hint


def test_what_lies_beside_a_ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Next to a file; of a server on this machine, the same whatever password was typed."""
    assert beside(Path("/var/l.db"), ".agent") == Path("/var/l.db.agent")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    system = tmp_path / "system" / "ledger.db"
    system.parent.mkdir()
    one, other = (beside(Server(f"postgresql://al:{word}@h/d"), ".agent", system=system) for word in ("a", "b"))
    assert one == other
    assert one.parent == system.parent
    assert beside(Server("postgresql://al@h/e"), ".agent", system=system) != one


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


@pytest.mark.parametrize("place", ["postgresql:/al@h/d", "postgres:d", "sqlite:l.db", "postgresql:/al:word@h/d"])
def test_a_mistyped_scheme_is_no_file(place: str) -> None:
    """It would quietly become a file of that name, and hold the evidence; what follows may be secret."""
    with pytest.raises(Misconfigured, match="without //") as caught:
        place_of(place)
    assert caught.value.code == "bad-ledger-place"
    assert "al" not in caught.value.message
    assert place_of("./postgresql:x") == Path("./postgresql:x")
