"""A cgroup of the command's own: where it lies, that it is removed, and what killed runs leave."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpuledger.errors import Unavailable
from gpuledger.sources.own_cgroup import PREFIX, OwnCgroup, own_folder, sweep

MOUNTS = """\
22 1 0:20 / /proc rw - proc proc rw
32 31 0:29 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory
41 31 0:38 {root} {point} rw,relatime shared:9 - cgroup2 cgroup2 rw
"""


def proc_of(folder: Path, path: str | None, *, root: str = "/", point: str = "/sys/fs/cgroup") -> Path:
    """A /proc whose process is in a cgroup, with one mount of version 2."""
    (folder / "self").mkdir()
    lines = ["4:memory:/a/b"] + ([] if path is None else [f"0::{path}"])
    (folder / "self" / "cgroup").write_text("\n".join(lines) + "\n")
    (folder / "self" / "mountinfo").write_text(MOUNTS.format(root=root, point=point))
    return folder


@pytest.mark.parametrize(
    ("path", "root", "point", "found"),
    [
        ("/user.slice/x", "/", "/sys/fs/cgroup", "/sys/fs/cgroup/user.slice/x"),
        ("/", "/", "/sys/fs/cgroup/unified", "/sys/fs/cgroup/unified"),
        ("/docker/abc/in", "/docker/abc", "/sys/fs/cgroup", "/sys/fs/cgroup/in"),
        ("/a", "/", "/my\\040groups", "/my groups/a"),
    ],
)
def test_where_this_process_is(tmp_path: Path, path: str, root: str, point: str, found: str) -> None:
    """Beside version 1, under a mounted part, in a folder with blanks."""
    assert own_folder(proc_of(tmp_path, path, root=root, point=point)) == Path(found)


@pytest.mark.parametrize(("path", "root"), [(None, "/"), ("/other", "/docker/abc"), ("/docker/abcdef", "/docker/abc")])
def test_where_it_is_not_to_be_had(tmp_path: Path, path: str | None, root: str) -> None:
    """No version 2, or not this process' part of it."""
    with pytest.raises(Unavailable, match="no cgroup of its own"):
        own_folder(proc_of(tmp_path, path, root=root))
    with pytest.raises(Unavailable):
        own_folder(tmp_path / "gone")


def test_a_folder_that_is_no_cgroup_is_refused(tmp_path: Path) -> None:
    """Not created again and again: the reason is said, and the folder is gone."""
    proc = proc_of(tmp_path, "/deep", point=str(tmp_path / "groups"))
    (tmp_path / "groups" / "deep").mkdir(parents=True)
    (tmp_path / "groups" / "deep").chmod(0o555)
    if os.geteuid() == 0:
        (tmp_path / "groups" / "deep").rmdir()  # root may write anywhere that is there
    with pytest.raises(Unavailable, match="it may not be made"):
        OwnCgroup.make(os.getpid(), proc=proc)


@pytest.fixture
def sleeper() -> Iterator[int]:
    """A process to be put somewhere."""
    process = subprocess.Popen(["sleep", "60"])
    yield process.pid
    process.kill()
    process.wait()


def _above() -> Path | None:
    """This process' own cgroup, where one may be made below it."""
    try:
        above = own_folder()
    except Unavailable:
        return None
    return above if os.access(above, os.W_OK) and os.access(above / "cgroup.procs", os.W_OK) else None


ABOVE = _above()


@pytest.mark.skipif(ABOVE is None and not os.environ.get("CI"), reason="no cgroup may be made here")
def test_a_real_one(sleeper: int) -> None:
    """The process carries its name; it stays while something lives in it, and the next run removes it."""
    made = OwnCgroup.make(sleeper)
    assert ABOVE is not None
    folder = ABOVE / made.name
    assert made.name in Path(f"/proc/{sleeper}/cgroup").read_text()
    (folder / "below").mkdir()
    (folder / "below" / "cgroup.procs").write_text(str(sleeper))
    assert made.pids() == [sleeper]
    assert made.name not in sweep(ABOVE)  # held by this process
    assert not made.remove()
    assert made.name not in sweep(ABOVE)  # somebody lives in it
    os.kill(sleeper, 9)
    os.waitid(os.P_PID, sleeper, os.WEXITED | os.WNOWAIT)
    assert made.name in sweep(ABOVE)
    assert not folder.exists()


def test_only_what_runs_made_is_swept(tmp_path: Path) -> None:
    """Other names stay; what is no cgroup at all too."""
    for name in (f"{PREFIX}0123456789abcdef", f"{PREFIX}short", "user.slice"):
        (tmp_path / name).mkdir()
    assert sweep(tmp_path) == []
    assert sweep(tmp_path / "gone") == []
    assert len(list(tmp_path.iterdir())) == 3
