"""``/proc`` read in the moment of an exec: real processes, and made-up folders where one cannot be had."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from gpuledger.sources import procfs
from gpuledger.sources.proc_files import LARGEST_READ, TICKS_PER_SECOND, read_program, read_stat

LATEST = 2**60
V1 = "3:cpuset:/\n1:name=systemd:/system.slice/job.service\n0::/job\n"


def put(
    proc: Path, pid: int, *, state: str = "S", flags: int = 0, ticks: int = 500, exe: str = "/usr/bin/x",
    args: str = "x\0", cgroup: str = "0::/job\n",
) -> None:  # fmt: skip
    """A process' folder in a made-up ``/proc``; without an executable where that is empty."""
    folder = proc / str(pid)
    folder.mkdir()
    middle = " ".join(["0"] * 4 + [str(flags)] + ["0"] * 10 + ["7", "0"])
    (folder / "stat").write_text(f"{pid} (a) b (c) {state} 77 {middle} {ticks} 0 0\n", encoding="ascii")
    (folder / "cmdline").write_text(args, encoding="ascii")
    (folder / "status").write_text("Name:\tx\nUid:\t4242\t0\t0\t0\n", encoding="ascii")
    (folder / "cgroup").write_text(cgroup, encoding="ascii")
    (folder / "cwd").symlink_to("/home/al")
    if exe:
        (folder / "exe").symlink_to(exe)


def test_a_living_process_is_read_as_procfs_reads_it() -> None:
    """The same process, whether it is met at its exec or at a look."""
    child = subprocess.Popen(["/bin/sleep", "30"], cwd="/tmp")
    try:
        while not Path(f"/proc/{child.pid}/cmdline").read_bytes():  # Popen returns in the middle of the exec
            time.sleep(0.001)
        read = read_program(child.pid, LATEST)
        assert read is not None
        stat, program = read
        assert stat.start_ticks == procfs.start_ticks(child.pid)
        assert (stat.parent, stat.threads, stat.is_zombie, stat.is_exiting) == (os.getpid(), 1, False, False)
        assert program.exe == Path("/bin/sleep").resolve().as_posix().encode()
        assert (program.args, program.cwd, program.uid) == (b"/bin/sleep\x0030\0", b"/tmp", os.getuid())
        assert program.cgroup == Path(f"/proc/{child.pid}/cgroup").read_bytes()
    finally:
        child.kill()
        child.wait()


def test_whoever_is_younger_than_the_event_is_another_process() -> None:
    """A pid that was handed on must not lend its name to the dead."""
    stat = read_stat(os.getpid())
    assert stat is not None
    assert read_program(os.getpid(), stat.start_ticks) is not None
    assert read_program(os.getpid(), stat.start_ticks - 1) is None


def test_the_dead_are_not_read() -> None:
    """Neither a zombie, of which /proc still shows user and cgroup, nor one that is gone."""
    child = subprocess.Popen(["/bin/true"])
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    stat = read_stat(child.pid)
    assert stat is not None
    assert (stat.is_zombie, stat.threads) == (True, 1)
    assert read_program(child.pid, LATEST) is None
    child.wait()
    assert read_stat(child.pid) is None
    assert read_program(child.pid, LATEST) is None


def test_threads_are_counted() -> None:
    """A process whose first thread has ended goes on while there are others."""
    leave = threading.Event()
    others = [threading.Thread(target=leave.wait) for _ in range(3)]
    before = read_stat(os.getpid())
    for one in others:
        one.start()
    after = read_stat(os.getpid())
    leave.set()
    for one in others:
        one.join()
    assert before is not None
    assert after is not None
    assert after.threads == before.threads + 3


def test_a_command_line_is_read_up_to_a_limit() -> None:
    """A process with a command line of a megabyte costs no more than one of 64 KiB."""
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(30)", *(["y" * 100_000] * 3)])
    try:
        time.sleep(0.05)
        read = read_program(child.pid, LATEST)
        assert read is not None
        assert len(read[1].args) == LARGEST_READ
    finally:
        child.kill()
        child.wait()


def test_names_with_parentheses_do_not_shift_fields(tmp_path: Path) -> None:
    """The name of a process is its own choice, and stands in the middle of its stat."""
    put(tmp_path, 5)
    read = read_program(5, LATEST, proc=str(tmp_path))
    assert read is not None
    assert (read[0].start_ticks, read[0].parent, read[0].threads) == (500, 77, 7)
    assert read[1].uid == 4242


def test_a_deleted_executable_keeps_its_path(tmp_path: Path) -> None:
    """A package upgraded under a running service."""
    put(tmp_path, 5, exe="/opt/tool (deleted)")
    read = read_program(5, LATEST, proc=str(tmp_path))
    assert read is not None
    assert read[1].exe == b"/opt/tool"


@pytest.mark.parametrize(
    ("state", "flags", "exe", "lines"),
    [("S", 0, "/usr/bin/x", V1), ("S", 0, "", V1), ("Z", 0, "", "0::/job\n"), ("R", 4, "", "0::/job\n")],
)
def test_a_death_makes_no_group(tmp_path: Path, state: str, flags: int, exe: str, lines: str) -> None:
    """Version 1 hierarchies show whoever exits in their root: such lines are no evidence of anything."""
    put(tmp_path, 5, state=state, flags=flags, exe=exe, cgroup=V1)
    read = read_program(5, LATEST, proc=str(tmp_path))
    assert read is not None
    assert read[1].cgroup == lines.encode()


@pytest.mark.parametrize("lacking", ["stat", "cmdline", "status", "cgroup"])
def test_half_a_process_is_none(tmp_path: Path, lacking: str) -> None:
    """It died while it was read: without a user or a start nothing may be told of it."""
    put(tmp_path, 5)
    (tmp_path / "5" / lacking).unlink()
    assert read_program(5, LATEST, proc=str(tmp_path)) is None


def test_neither_executable_nor_command_line_is_dead(tmp_path: Path) -> None:
    """Its memory is gone, only its place in the table is left."""
    put(tmp_path, 5, exe="", args="")
    assert read_program(5, LATEST, proc=str(tmp_path)) is None


def test_ticks_are_the_machines_own() -> None:
    """As in procfs, with which start times are compared."""
    assert TICKS_PER_SECOND == procfs.TICKS_PER_SECOND
    assert LARGEST_READ == procfs.LARGEST_READ
