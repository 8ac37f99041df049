"""Which processes are a command's: the living tree, its orphans, and what a scan can have missed."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpuledger.clock import FixedClock, SystemClock
from gpuledger.sources.command_tree import CommandTree, has_the_drivers_pids
from gpuledger.sources.procfs import start_ticks

TREE = """
import subprocess, sys
child = subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE)
print(child.pid, flush=True)
sys.stdin.read()
"""

ORPHAN = """
import os, subprocess
from gpuledger.sources.command_tree import become_subreaper
become_subreaper()
shell = subprocess.run(["sh", "-c", "sleep 60 >&- & echo $!"], stdout=subprocess.PIPE, text=True)
orphan = int(shell.stdout)
parent = open(f"/proc/{orphan}/stat").read().rpartition(")")[2].split()[1]
os.kill(orphan, 9)
assert int(parent) == os.getpid(), parent
"""


@pytest.fixture
def family() -> Iterator[tuple[int, int]]:
    """A process and its child: both pids."""
    process = subprocess.Popen([sys.executable, "-c", TREE], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    yield process.pid, int(process.stdout.readline())
    process.communicate("")


def test_the_command_and_its_descendants_are_members(family: tuple[int, int]) -> None:
    """Each with its start; this process itself is none."""
    tree = CommandTree(family[0], clock=SystemClock())
    tree.scan()
    found = {(one.pid, one.start_ticks) for one in tree.members}
    assert found >= {(pid, start_ticks(pid)) for pid in family}
    assert os.getpid() not in {one.pid for one in tree.members}
    assert all(one.is_alive and one.born_us <= one.seen_us for one in tree.members if one.pid in family)


def proc_of(folder: Path, processes: dict[int, tuple[int, int, str]], *, lists: bool = True) -> Path:
    """A /proc of pids: parent, start, state; with the kernel's lists of children or without."""
    for pid, (parent, ticks, state) in processes.items():
        task = folder / str(pid) / "task" / str(pid)
        task.mkdir(parents=True, exist_ok=True)
        (folder / str(pid) / "stat").write_text(f"{pid} (a) b) {state} {parent} " + "0 " * 17 + f"{ticks} 0")
        if lists:
            children = [str(other) for other, (above, _, _) in processes.items() if above == pid]
            (task / "children").write_text(" ".join(children) + " ")
    return folder


@pytest.mark.parametrize("lists", [True, False])
def test_with_the_kernels_lists_or_by_parents(tmp_path: Path, lists: bool) -> None:
    """A kernel without the lists of children is walked by the parents that stat names."""
    living = {1: (0, 1, "S"), 50: (1, 5, "S"), 60: (50, 6, "S"), 61: (60, 7, "R"), 62: (61, 8, "S"), 70: (1, 9, "S")}
    tree = CommandTree(60, clock=FixedClock(10**15), proc=proc_of(tmp_path, living, lists=lists), own=50)
    tree.scan()
    assert [one.pid for one in tree.members] == [60, 61, 62]


def test_the_dead_stay_members_and_a_pid_that_comes_back_is_another(tmp_path: Path) -> None:
    """A zombie has ended; so has who is no longer there."""
    clock = FixedClock(10**15)
    living = {50: (1, 5, "S"), 60: (50, 6, "S"), 61: (60, 7, "R")}
    tree = CommandTree(60, clock=clock, proc=proc_of(tmp_path, living), own=50)
    tree.scan()
    proc_of(tmp_path, {50: (1, 5, "S"), 60: (50, 6, "Z"), 61: (60, 90, "R")})
    clock.advance(1000)
    tree.scan()
    alive = {(one.pid, one.start_ticks): one.is_alive for one in tree.members}
    assert alive == {(60, 6): False, (61, 7): False, (61, 90): True}


def test_what_a_scan_can_have_missed_is_the_longest_pause(tmp_path: Path) -> None:
    """From the beginning of one scan to the end of the next."""
    clock = FixedClock(10**15)
    tree = CommandTree(60, clock=clock, proc=proc_of(tmp_path, {50: (1, 5, "S"), 60: (50, 6, "S")}), own=50)
    for pause_us in (30_000, 80_000, 40_000):
        tree.scan()
        clock.advance(pause_us)
    tree.scan()
    assert tree.blind_us == 80_000


def test_pids_known_otherwise_count_too(tmp_path: Path) -> None:
    """Who is in the command's cgroup is its own, whoever its parent became."""
    living = {50: (1, 5, "S"), 60: (50, 6, "S"), 99: (1, 7, "S")}
    tree = CommandTree(60, clock=FixedClock(10**15), proc=proc_of(tmp_path, living), own=50)
    tree.scan([99, 12345])
    assert [one.pid for one in tree.members] == [60, 99]


def test_an_orphan_falls_to_who_asked_for_it() -> None:
    """In a process of its own, since it cannot be taken back."""
    subprocess.run([sys.executable, "-c", ORPHAN], check=True, timeout=30)


def test_the_namespace_of_the_driver(tmp_path: Path) -> None:
    """The first pid namespace has a fixed number; where it cannot be read nobody knows."""
    (tmp_path / "pid").touch()
    assert not has_the_drivers_pids(tmp_path / "pid")
    assert not has_the_drivers_pids(tmp_path / "gone")
