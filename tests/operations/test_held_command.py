"""A command held at its gate: it begins when told, or never; and its end is read as a shell reads it."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from gpuledger.operations.held_command import Ended, HeldCommand, ended_child, reap, status_of


def end_of(command: HeldCommand) -> Ended:
    """Wait for a released command."""
    until = time.monotonic() + 30
    while ended_child() != command.pid:
        assert time.monotonic() < until
        time.sleep(0.005)
    return reap(command.pid)


def test_nothing_runs_before_the_gate_opens(tmp_path: Path) -> None:
    """Not before it is told, and not at all if it is abandoned."""
    for is_released in (True, False):
        mark = tmp_path / f"mark{is_released}"
        command = HeldCommand(["touch", str(mark)])
        time.sleep(0.05)
        assert not mark.exists()
        if is_released:
            assert command.release() == 0
            assert end_of(command) == Ended(status=0)
        else:
            command.abandon()
        assert mark.exists() == is_released


@pytest.mark.parametrize(
    ("script", "ended"),
    [
        ("exit 3", Ended(status=3)),
        ("kill -9 $$", Ended(status=137, signal="SIGKILL")),
        ("kill -40 $$", Ended(status=168, signal="signal 40")),
        ("kill -INT $$", Ended(status=130, signal="SIGINT")),
        ("kill -PIPE $$", Ended(status=141, signal="SIGPIPE")),
    ],
)
def test_how_it_ended(script: str, ended: Ended) -> None:
    """Statuses as a shell has them; what Python ignores for itself is not ignored for the command."""
    command = HeldCommand(["sh", "-c", script])
    assert command.release() == 0
    assert end_of(command) == ended


def test_what_cannot_begin_says_why(tmp_path: Path) -> None:
    """Not there, not executable, a directory; a script without a first line runs, as in shells."""
    script = tmp_path / "script"
    script.write_text("exit 7\n")
    for word, number, status in (
        ("no-such-command-anywhere", errno.ENOENT, 127),
        (str(script), errno.EACCES, 126),
        (str(tmp_path), errno.EACCES, 126),
        (f"{script}/x", errno.ENOTDIR, 127),
    ):
        command = HeldCommand([word])
        assert (command.release(), status_of(number)) == (number, status)
        reap(command.pid)
    script.chmod(0o755)
    command = HeldCommand([str(script)])
    assert command.release() == 0
    assert end_of(command).status == 7


def test_words_reach_it_as_they_were_given(tmp_path: Path) -> None:
    """Blanks, empty ones, bytes that are no text."""
    words = ["a b", "", os.fsdecode(b"\xff\xfe"), "--format", "*"]
    out = tmp_path / "out"
    command = HeldCommand(["sh", "-c", 'out=$1; shift; printf "%s|" "$@" > "$out"', "sh", str(out), *words])
    assert command.release() == 0
    end_of(command)
    assert out.read_bytes() == b"".join(os.fsencode(word) + b"|" for word in words)


def test_it_keeps_the_signals_that_its_starter_ignores() -> None:
    """Under nohup and in the background of a script a command must stay deaf to what they turned off."""
    script = (
        "import signal\nfrom gpuledger.operations.held_command import HeldCommand, reap\n"
        "held = HeldCommand(['grep', 'SigIgn', '/proc/self/status'])\nheld.release()\nreap(held.pid)\n"
    )
    shell = f"trap '' HUP INT; exec {sys.executable} -c \"$1\""
    done = subprocess.run(["sh", "-c", shell, "sh", script], capture_output=True, text=True, check=True, timeout=30)
    shell = "trap '' HUP INT; exec grep SigIgn /proc/self/status"  # and whatever the tests' own starter ignores
    plain = subprocess.run(["sh", "-c", shell], capture_output=True, text=True, check=True, timeout=30)
    assert done.stdout == plain.stdout
    assert int(done.stdout.split()[1], 16) & 0b11 == sum(1 << (n - 1) for n in (signal.SIGHUP, signal.SIGINT))


def test_it_dies_with_who_holds_it() -> None:
    """Killed before the gate opens, the starter takes the command with it: it never ran."""
    script = (
        "import os, sys\nfrom gpuledger.operations.held_command import HeldCommand\n"
        "held = HeldCommand(['sleep', '60'])\nprint(held.pid, flush=True)\nos.kill(os.getpid(), 9)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False, timeout=30)
    assert done.returncode == -signal.SIGKILL
    until = time.monotonic() + 30
    while Path(f"/proc/{done.stdout.strip()}").exists():
        assert time.monotonic() < until
        time.sleep(0.01)


def test_a_command_killed_at_its_gate_is_seen_to_have_ended() -> None:
    """Somebody else's kill is an end as any other."""
    command = HeldCommand(["true"])
    os.kill(command.pid, signal.SIGKILL)
    os.waitid(os.P_PID, command.pid, os.WEXITED | os.WNOWAIT)
    assert command.release() == 0
    assert end_of(command) == Ended(status=137, signal="SIGKILL")
