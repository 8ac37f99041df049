"""Where the ledger lies: from what was typed, set, or found on this machine to one place.

In: the text of ``--ledger`` or the setting. Out: a path, or a database on a server. Nothing is opened or created here.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import parse_qsl, unquote, urlsplit

from gpuledger.errors import Misconfigured

SYSTEM_LEDGER = Path("/var/lib/gpuledger/ledger.db")
"""The ledger of a machine whose agent runs as a service."""

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://(.*)", re.DOTALL)
_SLIPPED = re.compile(r"((?:postgres(?:ql)?|sqlite)(?:\+[a-z0-9]+)?):(?!//)", re.IGNORECASE)
_POSTGRES = ("postgresql", "postgres")
_PLACE_HINT = "give a path, sqlite:///PATH (four slashes for an absolute path), or postgresql://USER@HOST/DATABASE"
_HOST = re.compile(r"(?:\[[^\]]*\]|[^:\[\]]*)(?::[0-9]*)?")
_QUOTE = "postgresql://USER:PASSWORD@HOST/DATABASE, where @ : / ? # % in a part are written %40 %3A %2F %3F %23 %25"


@dataclass(frozen=True, slots=True)
class Server:
    """A database on a PostgreSQL server.

    Args:
        url: as libpq reads it, with the password where one was given: for connecting, never for showing.
    """

    url: str = field(repr=False)

    def __str__(self) -> str:
        """The place without what is secret: for people, and for what two places have in common."""
        parts = urlsplit(self.url)
        user, at, where = parts.netloc.rpartition("@")
        return f"postgresql://{user.partition(':')[0]}{at}{where}{parts.path}"

    @property
    def secrets(self) -> tuple[str, ...]:
        """What must never be shown: the password as written, and as meant."""
        parts = urlsplit(self.url)
        named = [value for name, value in parse_qsl(parts.query) if name in ("password", "sslpassword", "passfile")]
        written = parts.netloc.rpartition("@")[0].partition(":")[2]
        return tuple(secret for secret in (written, unquote(written), *named) if secret)


Place = Path | Server
"""Where a ledger lies: a file, or a database."""


def is_there(place: Place) -> bool:
    """Whether a path can be seen: False too where a folder on the way may not be entered. A server tells by itself."""
    return isinstance(place, Server) or os.path.exists(place)  # noqa: PTH110 - Path.exists raises there


def beside(place: Place, suffix: str, *, system: Path = SYSTEM_LEDGER) -> Path:
    """A file of this machine that belongs to a ledger: next to its file.

    Of a server's it lies where this machine's own ledger would, under a name made of the place without its password.
    """
    if isinstance(place, Path):
        return place.with_name(place.name + suffix)
    name = f"postgresql-{hashlib.sha256(str(place).encode()).hexdigest()[:16]}{suffix}"
    folder = system.parent
    own = folder / name
    return own if is_there(own) or os.access(folder, os.W_OK) or os.geteuid() == 0 else _users_folder(os.environ) / name


def place_of(place: str | Place) -> Place:
    """The place that a text names.

    Args:
        place: a path, ``sqlite:///PATH``, or ``postgresql://...``; ``~`` is the home directory.

    Raises:
        Misconfigured: ``bad-ledger-place``.
    """
    if isinstance(place, Server):
        return place
    url = _SCHEME.fullmatch(str(place).strip())
    if url is None or url[1].lower().split("+")[0] not in _POSTGRES:
        return path_of(place)
    try:
        parts = urlsplit(f"postgresql://{url[2]}")
    except ValueError:
        parts = None
    if parts is None or "\0" in url[2] or not url[2].strip("/"):
        raise Misconfigured("bad-ledger-place", "a PostgreSQL URL names host and database", hint=_PLACE_HINT)
    user, _, hosts = parts.netloc.rpartition("@")
    if "@" in user or "@" in url[2][len(parts.netloc) :] or not all(map(_HOST.fullmatch, hosts.split(","))):
        # parts of a password would be taken for a host, a port or a database, and shown
        raise Misconfigured("bad-ledger-place", "the URL's password, host and port cannot be told apart", hint=_QUOTE)
    return Server(f"postgresql://{url[2]}")


def path_of(place: str | Path) -> Path:
    """The path that a place names.

    Args:
        place: a path, or ``sqlite:///PATH``; ``~`` is the home directory.

    Raises:
        Misconfigured: ``bad-ledger-place`` for anything else.
    """
    text = str(place)
    if "\0" in text or not text.strip():
        raise Misconfigured("bad-ledger-place", f"{text!r} names no file", hint=_PLACE_HINT)
    if slip := _SLIPPED.match(text):
        raise Misconfigured("bad-ledger-place", f"{slip[1]}: without // after it names no place", hint=_PLACE_HINT)
    if url := _SCHEME.fullmatch(text):
        if url[1].lower() != "sqlite" or not url[2].startswith("/") or len(url[2]) < 2:
            raise Misconfigured("bad-ledger-place", f"{url[1]}://... is not a place for a ledger", hint=_PLACE_HINT)
        text = url[2][1:]
    try:
        path = Path(text).expanduser()
    except RuntimeError:
        raise Misconfigured("bad-ledger-place", f"{text!r}: no such home directory", hint=_PLACE_HINT) from None
    if is_there(path) and path.is_dir():
        raise Misconfigured(
            "bad-ledger-place", f"{path} is a directory", hint=f"name the file: --ledger {path / 'ledger.db'}"
        )
    return path


def resolve_place(
    value: str = "",
    *,
    environment: Mapping[str, str] | None = None,
    is_root: bool | None = None,
    system: Path = SYSTEM_LEDGER,
) -> Place:
    """The place of the ledger: what was asked for, else the environment's, else this machine's, else the user's.

    Args:
        value: what ``--ledger`` or the setting says; empty when neither does.
        environment: variables, the process's own by default.
        is_root: whether the system's ledger is ours to create; by the effective user id by default.
        system: path of the system's ledger.

    Raises:
        Misconfigured: as :func:`place_of`; ``no-home`` where nothing says which home directory is meant.
    """
    environment = os.environ if environment is None else environment
    if asked := value or environment.get("GPULEDGER_LEDGER", ""):
        return place_of(asked)
    is_root = os.geteuid() == 0 if is_root is None else is_root
    if is_root or os.access(system, os.R_OK):
        return system
    return _users_folder(environment) / "ledger.db"


def _users_folder(environment: Mapping[str, str]) -> Path:
    if shared := environment.get("XDG_DATA_HOME", ""):
        return Path(shared) / "gpuledger"
    try:
        home = Path(environment["HOME"]) if environment.get("HOME") else Path.home()
    except RuntimeError:
        raise Misconfigured(
            "no-home", "there is no home directory to keep a ledger in", hint="name one with --ledger PATH"
        ) from None
    return home / ".local" / "share" / "gpuledger"
