"""``/proc``: identities of real processes, and of a made-up folder where a real one cannot be had."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuledger.clock import SystemClock
from gpuledger.model.identity import program
from gpuledger.model.missing import Missing
from gpuledger.sources import procfs
from gpuledger.sources.procfs import (
    GONE,
    LARGEST_READ,
    TICKS_PER_SECOND,
    ProcessReading,
    boot_id,
    boot_wall_us,
    login_name,
    presence,
    program_mark,
    read_identity,
    read_stat,
    start_ticks,
)

POD = "1e597579-417e-482f-bf65-5fe170c3aebd"


def put(
    proc: Path,
    pid: int,
    *,
    comm: str = "python",
    state: str = "S",
    ticks: int = 500,
    cmdline: bytes = b"python\0t.py\0",
    cwd: str = "/home/al/p1",
) -> Path:
    """A process' folder in a made-up ``/proc``, made anew as the kernel does for each process."""
    folder = proc / str(pid)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    zeros = " ".join(["0"] * 18)
    (folder / "stat").write_text(f"{pid} ({comm}) {state} {zeros} {ticks} 0 0\n", encoding="utf-8")
    (folder / "cmdline").write_bytes(cmdline)
    (folder / "status").write_text(f"Name:\t{comm}\nUid:\t4242\t0\t0\t0\n", encoding="utf-8")
    (folder / "cgroup").write_text(f"0::/kubepods/pod{POD}/{'a1' * 32}\n", encoding="utf-8")
    (folder / "exe").symlink_to("/usr/bin/python3.11 (deleted)")
    (folder / "cwd").symlink_to(cwd)
    return folder


def read(proc: Path, pid: int) -> ProcessReading:
    reading = read_identity(pid, booted_at_us=1_000_000_000, proc=proc, user_name=lambda uid: f"user {uid}")
    assert isinstance(reading, ProcessReading)
    return reading


@pytest.fixture
def child() -> Iterator[subprocess.Popen[bytes]]:
    """A real process with a secret on its command line."""
    words = [sys.executable, "-c", "import time; time.sleep(60)", "--api-key", "abc123", "--epochs", "3"]
    process = subprocess.Popen(words, stdin=subprocess.DEVNULL)
    deadline = time.monotonic() + 10
    while b"--epochs" not in Path(f"/proc/{process.pid}/cmdline").read_bytes() and time.monotonic() < deadline:
        time.sleep(0.01)
    yield process
    process.kill()
    process.wait()


def test_a_real_process_is_read_whole(child: subprocess.Popen[bytes]) -> None:
    """Executable, redacted command line, user, cgroup and a start a moment ago."""
    reading = read_identity(child.pid)
    assert isinstance(reading, ProcessReading)
    assert reading.text.exe == str(Path(sys.executable).resolve())
    assert reading.text.cwd == str(Path.cwd())
    assert reading.text.command.endswith("time.sleep(60) --api-key [redacted] --epochs 3")
    assert reading.text.uid == str(os.getuid())
    assert reading.text.user == login_name(os.getuid())
    assert reading.text.cgroup.startswith("/")
    assert abs(SystemClock().now_us() - reading.started_at_us) < 60_000_000
    assert reading.start_ticks == start_ticks(child.pid)
    assert reading.program_mark == program_mark(child.pid)
    assert reading.unread == ()


def test_a_process_that_is_gone_is_missing() -> None:
    """Never there, or reaped."""
    process = subprocess.Popen(["/bin/true"])
    process.wait()
    assert (
        read_identity(process.pid)
        == read_stat(process.pid)
        == start_ticks(process.pid)
        == presence(process.pid)
        == GONE
    )


def test_a_process_that_is_ending_is_no_longer_read() -> None:
    """Its memory is gone, and with it what it ran: ``[true]`` would be a name that nobody runs under."""
    process = subprocess.Popen(["/bin/true"])
    deadline = time.monotonic() + 10
    stat = read_stat(process.pid)
    while not isinstance(stat, Missing) and stat.is_alive and time.monotonic() < deadline:
        time.sleep(0.01)
        stat = read_stat(process.pid)
    reading = read_identity(process.pid)
    process.wait()
    assert not isinstance(stat, Missing)
    assert not stat.is_alive
    assert stat.is_ending
    assert reading == Missing("gone")


def test_everything_of_a_process_is_read(tmp_path: Path) -> None:
    """From a made-up folder: the deleted executable, the real uid, the pod and its container."""
    put(tmp_path, 7, cmdline=b"python\0t.py\0--hf-token\0abc\0")
    text = read(tmp_path, 7).text
    assert (text.exe, text.command) == ("/usr/bin/python3.11", "python t.py --hf-token [redacted]")
    assert (text.uid, text.user) == ("4242", "user 4242")
    assert (text.pod_uid, text.container, text.unit) == (POD, "a1" * 32, "")
    assert read(tmp_path, 7).started_at_us == 1_000_000_000 + 500 * 1_000_000 // TICKS_PER_SECOND


def test_a_name_may_hold_blanks_and_parentheses(tmp_path: Path) -> None:
    """Field 22 is counted from the last parenthesis."""
    put(tmp_path, 7, comm="a) S 1 (b c", ticks=12345)
    stat = read_stat(7, proc=tmp_path)
    assert not isinstance(stat, Missing)
    assert (stat.comm, stat.start_ticks, stat.is_alive) == ("a) S 1 (b c", 12345, True)


def test_a_pid_reused_while_it_is_read_is_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was read may be of either process, so it is of none."""
    put(tmp_path, 7)
    read_program = procfs._program

    def reuse(folder: str) -> tuple[str | Missing, bytes, int]:
        found = read_program(folder)
        put(tmp_path, 7, ticks=501)
        return found

    monkeypatch.setattr(procfs, "_program", reuse)
    assert read_identity(7, booted_at_us=0, proc=tmp_path) == GONE


def test_what_cannot_be_read_stays_empty_and_is_told(tmp_path: Path) -> None:
    """A foreign user's executable, a missing file, a cgroup that is none: the rest is read."""
    folder = put(tmp_path, 7)
    (folder / "exe").unlink()
    (folder / "cwd").unlink()
    (folder / "status").unlink()
    (folder / "cgroup").write_text("nonsense\n", encoding="utf-8")
    reading = read(tmp_path, 7)
    assert (reading.text.exe, reading.text.uid, reading.text.user, reading.text.cgroup) == ("", "", "", "")
    assert (reading.text.command, reading.text.cwd) == ("python t.py", "")
    assert [said.partition(":")[0] for said in reading.unread] == ["exe", "cwd", "status", "cgroup"]


def test_a_relative_script_is_told_by_its_working_directory(tmp_path: Path) -> None:
    """The command stays as typed; a folder deleted meanwhile keeps its name, and what is no path is none."""
    for cwd, told in (("/home/al/p1", "/home/al/p1/t.py"), ("/a (deleted)", "/a/t.py"), ("nonsense", "t.py")):
        put(tmp_path, 7, cwd=cwd)
        text = read(tmp_path, 7).text
        assert (text.command, program(text)) == ("python t.py", told)


def test_a_real_script_is_named_by_its_path(tmp_path: Path) -> None:
    """Two people who run ``train.py`` in two folders run two programs."""
    for name in ("p1", "p2"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "train.py").write_text("print('up', flush=True); input()\n", encoding="utf-8")
        words = [sys.executable, "-u", "train.py"]
        with subprocess.Popen(
            words, cwd=tmp_path / name, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        ) as process:
            assert process.stdout is not None
            process.stdout.readline()
            reading = read_identity(process.pid)
            process.kill()
        assert isinstance(reading, ProcessReading)
        assert program(reading.text) == str(tmp_path / name / "train.py")


def test_a_secret_in_the_working_directory_is_none_of_our_business(tmp_path: Path) -> None:
    """It is redacted as a command line is."""
    put(tmp_path, 7, cwd="/srv/password=hunter2/run")
    reading = read_identity(7, booted_at_us=0, proc=tmp_path)
    assert isinstance(reading, ProcessReading)
    assert reading.text.cwd == "/srv/password=[redacted]"


def test_a_kernel_thread_is_named_by_its_short_name(tmp_path: Path) -> None:
    """It has no command line."""
    put(tmp_path, 7, comm="kworker/0:1", cmdline=b"")
    assert read(tmp_path, 7).text.command == "[kworker/0:1]"


def test_a_process_that_hides_or_breaks_is_unreadable_and_not_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``hidepid`` makes a living process look absent; a signal that may not be sent tells."""
    (put(tmp_path, 7) / "stat").write_text("nonsense", encoding="utf-8")
    broken = read_identity(7, booted_at_us=0, proc=tmp_path)
    assert isinstance(broken, Missing)
    assert broken.reason.startswith("unreadable")

    def refuse(pid: int, signal: int) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "kill", refuse)
    hidden = read_stat(4_194_304)
    assert isinstance(hidden, Missing)
    assert "hidepid" in hidden.reason


def test_long_files_are_read_whole_up_to_a_bound(tmp_path: Path) -> None:
    """The kernel gives a page at a time; a command line of a megabyte is cut, its secret with it."""
    lines = [f"{number}:c{number}:/{'x' * 300}" for number in range(20, 0, -1)]
    folder = put(tmp_path, 7, cmdline=b"--token\0" + b"s" * 2 * LARGEST_READ)
    (folder / "cgroup").write_text("\n".join([*lines, "0::/system.slice/last.service"]), encoding="utf-8")
    text = read(tmp_path, 7).text
    assert (text.unit, text.command) == ("last.service", "--token [redacted]")


def test_marks_change_with_what_they_mark(tmp_path: Path) -> None:
    """The folder's with the process, the program's with executable or command line."""
    put(tmp_path, 7)
    here, mark = presence(7, proc=tmp_path), program_mark(7, proc=tmp_path)
    assert (presence(7, proc=tmp_path), program_mark(7, proc=tmp_path)) == (here, mark)
    put(tmp_path, 7, cmdline=b"bash\0")
    assert presence(7, proc=tmp_path) != here
    assert program_mark(7, proc=tmp_path) != mark


def test_the_boot_is_known_by_id_and_by_both_clocks(tmp_path: Path) -> None:
    """An unreadable id is empty, as an identity has it."""
    assert len(boot_id()) == 36
    assert boot_id(proc=tmp_path) == ""
    assert boot_wall_us(1_000, 400) == 600


def test_a_uid_without_a_login_is_named_by_its_number() -> None:
    """Containers bring their own users."""
    assert login_name(0) == "root"
    assert login_name(3_999_999_999) == "uid:3999999999"


@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=200), st.binary(max_size=200), st.binary(max_size=200), st.binary(max_size=200))
def test_any_bytes_give_a_reading_or_a_reason(
    tmp_path_factory: pytest.TempPathFactory, stat: bytes, cmdline: bytes, status: bytes, cgroup: bytes
) -> None:
    """A process writes part of these itself."""
    folder = put(tmp_path_factory.mktemp("proc"), 7, cmdline=cmdline)
    (folder / "status").write_bytes(status)
    (folder / "cgroup").write_bytes(cgroup)
    assert isinstance(read(folder.parent, 7).text.command, str)
    (folder / "stat").write_bytes(stat)
    assert isinstance(read_identity(7, booted_at_us=0, proc=folder.parent), ProcessReading | Missing)
