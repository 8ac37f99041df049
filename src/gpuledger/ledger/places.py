"""Where the ledger lies: from what was typed, set, or found on this machine to one path.

In: the text of ``--ledger`` or the setting. Out: a path. Nothing is opened or created here.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

from gpuledger.errors import Misconfigured

SYSTEM_LEDGER = Path("/var/lib/gpuledger/ledger.db")
"""The ledger of a machine whose agent runs as a service."""

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://(.*)", re.DOTALL)
_PLACE_HINT = "give a path, or sqlite:///PATH (four slashes for an absolute path)"


def is_there(path: Path) -> bool:
    """Whether a path can be seen: False too where a folder on the way may not be entered."""
    return os.path.exists(path)  # noqa: PTH110 - Path.exists raises there


def path_of(place: str | Path) -> Path:
    """The path that a place names.

    Args:
        place: a path, or ``sqlite:///PATH``; ``~`` is the home directory.

    Raises:
        Misconfigured: ``postgres-later`` for a PostgreSQL URL, ``bad-ledger-place`` for anything else.
    """
    text = str(place)
    if "\0" in text or not text.strip():
        raise Misconfigured("bad-ledger-place", f"{text!r} names no file", hint=_PLACE_HINT)
    if url := _SCHEME.fullmatch(text):
        scheme = url[1].lower()
        if scheme.split("+")[0] in ("postgresql", "postgres"):
            raise Misconfigured(
                "postgres-later",
                "this version keeps its ledger in SQLite only, so a PostgreSQL URL cannot be used yet",
                hint=_PLACE_HINT,
            )
        if scheme != "sqlite" or not url[2].startswith("/") or len(url[2]) < 2:
            raise Misconfigured("bad-ledger-place", f"{text!r} is not a place for a ledger", hint=_PLACE_HINT)
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
) -> Path:
    """The path of the ledger: what was asked for, else the environment's, else this machine's, else the user's.

    Args:
        value: what ``--ledger`` or the setting says; empty when neither does.
        environment: variables, the process's own by default.
        is_root: whether the system's ledger is ours to create; by the effective user id by default.
        system: path of the system's ledger.

    Raises:
        Misconfigured: as :func:`path_of`; ``no-home`` where nothing says which home directory is meant.
    """
    environment = os.environ if environment is None else environment
    if asked := value or environment.get("GPULEDGER_LEDGER", ""):
        return path_of(asked)
    is_root = os.geteuid() == 0 if is_root is None else is_root
    if is_root or os.access(system, os.R_OK):
        return system
    if shared := environment.get("XDG_DATA_HOME", ""):
        return Path(shared) / "gpuledger" / "ledger.db"
    try:
        home = Path(environment["HOME"]) if environment.get("HOME") else Path.home()
    except RuntimeError:
        raise Misconfigured(
            "no-home", "there is no home directory to keep a ledger in", hint="name one with --ledger PATH"
        ) from None
    return home / ".local" / "share" / "gpuledger" / "ledger.db"
