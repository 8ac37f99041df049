"""A cgroup of a command's own, so that even what lives a millisecond carries its name.

In: the mounts and cgroups of this process. Out: a folder ``gpuledger-run-HEX`` below its own cgroup
(version 2, also beside version 1), a process in it, and the folder gone again at the end. It sets no
limit and changes none. Whoever may not make one (no root, nothing delegated) goes without, and says why.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import secrets
from collections.abc import Iterator
from pathlib import Path

from gpuledger.errors import Unavailable
from gpuledger.sources.procfs import PROC

PREFIX = "gpuledger-run-"
_NAME = re.compile(rf"{PREFIX}[0-9a-f]{{16}}")
_OCTAL = re.compile(r"\\([0-7]{3})")
"""How mountinfo writes blanks in a path, proc(5)."""
_TRIES = 3


class OwnCgroup:
    """A cgroup made for one command. Made by :meth:`make`.

    Attributes:
        name: the last part of its path; every process that is born in it carries it in ``/proc/PID/cgroup``.
    """

    def __init__(self, folder: Path, held: int) -> None:
        self.name = folder.name
        self._folder = folder
        self._held = held

    @classmethod
    def make(cls, pid: int, *, proc: Path = PROC) -> OwnCgroup:
        """Make one below this process' own, and put a process into it. Empty ones left by others are removed.

        Raises:
            Unavailable: ``no-cgroup`` with the reason.
        """
        above = own_folder(proc)
        sweep(above)
        reason: OSError | None = None
        for _ in range(_TRIES):  # somebody else's sweep may come between making and holding
            folder = above / f"{PREFIX}{secrets.token_hex(8)}"
            try:
                folder.mkdir()
            except OSError as error:
                raise _refused(error) from None
            try:
                held = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            except OSError as error:
                reason = error
                continue
            made = cls(folder, held)
            try:
                fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
                (folder / "cgroup.procs").write_text(f"{pid}\n", encoding="ascii")
            except OSError as error:
                reason = error
                made.remove()
                continue
            return made
        assert reason is not None
        raise _refused(reason) from None

    def pids(self) -> list[int]:
        """Processes in it and in whatever the command made below it."""
        found: list[int] = []
        for folder in _and_below(self._folder):
            with contextlib.suppress(OSError):  # gone, or a threaded one that lists none
                found += [int(line) for line in (folder / "cgroup.procs").read_text(encoding="ascii").split()]
        return found

    def remove(self) -> bool:
        """Remove it if no process is in it; else it stays until the next run. Returns whether it is gone."""
        gone = _remove_empty(self._folder)
        os.close(self._held)
        return gone


def own_folder(proc: Path = PROC) -> Path:
    """The folder of this process' own version 2 cgroup.

    Raises:
        Unavailable: ``no-cgroup``: there is no such hierarchy, or its folder is not to be seen here.
    """
    try:
        lines = (proc / "self/cgroup").read_text(encoding="utf-8", errors="surrogateescape").splitlines()
        mounts = (proc / "self/mountinfo").read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    except OSError as error:
        raise _refused(error) from None
    path = next((line[3:] for line in lines if line.startswith("0::")), None)
    if path is None:
        raise _unavailable("this kernel has no cgroup version 2")
    for line in mounts:
        fields, _, kind = line.partition(" - ")
        if kind.split(" ", 1)[0] != "cgroup2":
            continue
        root, point = (_plain(part) for part in fields.split()[3:5])
        if path == root or path.startswith(root.rstrip("/") + "/"):
            return Path(point + path.removeprefix(root.rstrip("/")))
    raise _unavailable("cgroup version 2 is not mounted here, or not this process' part of it")


def sweep(above: Path) -> list[str]:
    """Remove cgroups of runs that were killed, as far as no process is in them; returns their names."""
    try:
        left = [folder for folder in sorted(above.iterdir()) if _NAME.fullmatch(folder.name)]
    except OSError:  # what may not be listed may not be made in either
        return []
    return [folder.name for folder in left if _is_nobodys(folder) and _remove_empty(folder)]


def _is_nobodys(folder: Path) -> bool:
    """Whether no run that lives holds it: the lock dies with the process."""
    try:
        held = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    finally:
        os.close(held)
    return True


def _remove_empty(folder: Path) -> bool:
    try:
        if "populated 0" not in (folder / "cgroup.events").read_text(encoding="ascii"):
            return False
        for one in reversed(list(_and_below(folder))):
            one.rmdir()
    except FileNotFoundError:
        return not folder.exists()
    except OSError:
        return False
    return True


def _and_below(folder: Path) -> Iterator[Path]:
    """A cgroup and all below it, from the top."""
    yield folder
    with contextlib.suppress(OSError):
        for below in sorted(folder.iterdir()):
            if below.is_dir():
                yield from _and_below(below)


def _plain(part: str) -> str:
    return _OCTAL.sub(lambda found: chr(int(found[1], 8)), part)


def _refused(error: OSError) -> Unavailable:
    return _unavailable(f"it may not be made: {(error.strerror or str(error)).lower()}")


def _unavailable(reason: str) -> Unavailable:
    return Unavailable(
        "no-cgroup",
        f"the command has no cgroup of its own: {reason}",
        hint="run as root, or in a unit with Delegate=yes (systemd-run --user --scope -p Delegate=yes ...)",
    )
