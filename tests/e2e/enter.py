"""Lets other users in: runs a command where what it needs can be reached by everybody.

In: ``enter.py PATH... -- COMMAND...``, as root, in a mount namespace of its own. Out: the command, in this
process. The interpreter or a checkout can lie in a folder that others may not enter, such as root's home;
here an empty folder that they may enter is put over each of these, and what is needed is shown in it again.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

_DEEPEST = 8
"""Closed folders within closed folders, at most."""


def closed(path: Path) -> Path | None:
    """The outermost folder on the way that others may not enter."""
    return next((folder for folder in reversed(path.parents) if not folder.stat().st_mode & 0o001), None)


def open_ways(paths: list[Path]) -> None:
    """Put open folders over closed ones, for this mount namespace."""
    for _ in range(_DEEPEST):
        behind: dict[Path, list[Path]] = defaultdict(list)
        for path in sorted({path.resolve(strict=True) for path in paths}):
            folder = closed(path)
            if folder is not None and not any(path.is_relative_to(shown) for shown in behind[folder]):
                behind[folder].append(path)
        if not any(behind.values()):
            return
        for folder, shown in behind.items():
            if shown:
                _open(folder, shown)
    sys.exit(f"the way to {paths} cannot be opened")


def _open(folder: Path, shown: list[Path]) -> None:
    kept = Path(tempfile.mkdtemp())
    _mount("--bind", folder, kept)
    _mount("-t", "tmpfs", "-o", "mode=755", "none", folder)
    for path in shown:
        path.mkdir(parents=True)
        _mount("--bind", kept / path.relative_to(folder), path)
    subprocess.run(["umount", "--lazy", str(kept)], check=True)
    kept.rmdir()


def _mount(*words: str | Path) -> None:
    subprocess.run(["mount", *map(str, words)], check=True)


if __name__ == "__main__":
    end = sys.argv.index("--")
    os.umask(0o022)
    open_ways([Path(word) for word in sys.argv[1:end]])
    os.execvp(sys.argv[end + 1], sys.argv[end + 1 :])
