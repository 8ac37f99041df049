"""``top`` by the installed command: on a pipe, on a terminal, beside an agent, without rights."""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from e2e.box import COMMAND, GPU, OTHER_GPU, Box
from e2e.machine import ME, NOBODY, eventually, need
from e2e.seat import ALTERNATE, CURSOR_SHOWN, NORMAL, Seat

Sit = Callable[..., Seat]


@pytest.fixture
def sit(box: Box) -> Iterator[Sit]:
    """Sits down at a terminal of the machine."""
    seats: list[Seat] = []

    def at(script: str = "", **size: int) -> Seat:
        environment = {name: text for name, text in box.environment().items() if name != "COLUMNS"}
        top = f"{COMMAND} top --interval 100ms; echo ENDED $?"
        seats.append(Seat(f"{top}; {script}", environment, **size))
        return seats[-1]

    yield at
    for seat in seats:
        seat.close()


def test_on_a_pipe_it_prints_one_table(box: Box) -> None:
    """Named without a ledger; what the driver lists and /proc does not have is unnamed, with its memory."""
    box.driver.add_gpu(OTHER_GPU, accounting=False)
    job = box.job("train.py")
    box.opens(job, memory_mib=14_300)
    box.driver.work(job.pid, GPU, 45)
    box.driver.start(4_000_000, OTHER_GPU, 900)
    answer = box.run("top")
    assert "14 GiB" in answer.stdout
    assert "Not named  1 of 2 contexts, 900 MiB of 14.8 GiB of held memory" in answer.stdout
    told = box.run("top", "--once", "--by", "process", "--format", "json").json
    (row,) = told["rows"]
    assert (row["pids"], row["memory_mib"], row["busy_percent"], row["user"]) == ([job.pid], 14_300, 45, ME)
    assert (row["at_least"], row["held_ms"] > 0) == (False, True)
    (unnamed,) = told["unnamed"]
    assert (unnamed["cause"], unnamed["pids"], unnamed["memory_mib"]) == ("not-in-proc", [4_000_000], 900)
    assert unnamed["missing"] == {"held_ms": "seen once, and no start is known"}
    assert not box.ledger.exists()


@pytest.fixture
def open_box(libraries: Path) -> Iterator[Box]:
    """A machine whose driver others may use; pytest's own folders are closed to them."""
    need(os.geteuid() == 0, "giving up rights needs root")
    public = Path(tempfile.mkdtemp())
    public.chmod(0o755)
    shutil.copytree(libraries, public / "libraries")
    (public / "libraries").chmod(0o755)
    (public / "box").mkdir()
    made = Box(public / "box", public / "libraries")
    made.driver.add_gpu(GPU, accounting=False)
    yield made
    made.close()
    shutil.rmtree(public)


def test_a_user_without_rights_has_the_names_of_roots_ledger(open_box: Box) -> None:
    """Where the ledger may be read; without it the names are those of the command lines."""
    job = open_box.job("train.py")
    open_box.opens(job)
    agent = open_box.agent()
    open_box.named(job)
    open_box.looks_again()
    folder = open_box.driver.state.parent
    for place in (folder, *folder.iterdir(), open_box.ledger.parent):
        place.chmod(0o777)  # its lock is written by whoever asks
    for file in open_box.ledger.parent.iterdir():
        os.chown(file, 0, NOBODY)
    words = ("top", "--once", "--by", "process", "--format", "json")
    (row,) = open_box.as_nobody(*words).json["rows"]
    assert row["service"] == f"script:{job.script} by {ME}"
    assert row["at_least"]
    assert row["held_ms"] > 0
    agent.stop().must(0)
    os.chown(open_box.ledger, 0, 0)
    alone = open_box.as_nobody(*words).json
    assert (alone["ledger"], len(alone["rows"])) == (None, 1)
    assert "held_ms" in alone["rows"][0]["missing"]


def test_at_a_terminal_keys_group_and_sort_and_q_restores_it(box: Box, sit: Sit) -> None:
    """Live, on the alternate screen; the terminal is as it was, and nothing is left on it."""
    first, second = box.job("big.py"), box.job("small.py")
    box.opens(first, memory_mib=2000)
    box.opens(second, memory_mib=1000)
    box.driver.work(second.pid, GPU, 70)
    seat = sit()
    lines = seat.shows("Not named  0 of 2 contexts")
    assert (len(lines), lines[-1].startswith("g group")) == (24, True)
    assert lines[0].startswith("top by service  box, ")
    assert _order(lines) == ["big.py", "small.py"]
    seat.press("b")
    assert _order(seat.shows("busiest first")) == ["small.py", "big.py"]
    seat.press("r")
    assert _order(seat.shows("least busy first")) == ["big.py", "small.py"]
    seat.press("gggg")
    assert "GPU-11111111" in "\n".join(seat.shows("top by device"))
    seat.press("?")
    seat.shows("never billed")
    seat.press("?m ")
    seat.shows("paused; most memory first")
    box.closes(first)
    seat.press(" ")
    seat.shows("Not named  0 of 1 context")
    seat.resize(50, 10)
    eventually(lambda: len(seat.screen) == 10, "the screen follows the window")
    assert max(len(line) for line in seat.screen) <= 50
    seat.press("q")
    seat.says("ENDED 0")
    assert seat.ended() == 0
    _is_restored(seat)


def _order(lines: list[str]) -> list[str]:
    names = [name for line in lines for name in ("big.py", "small.py") if name in line]
    assert len(names) == 2, lines
    return names


def _is_restored(seat: Seat) -> None:
    assert seat.modes == seat.before[:4]
    written = seat.written
    assert written.count(ALTERNATE) == written.count(NORMAL) > 0
    left = written[written.rindex(NORMAL) :]
    assert "top by" not in left
    assert CURSOR_SHOWN in written[written.rindex(ALTERNATE) :]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_with_0_and_restores_the_terminal(box: Box, sit: Sit, number: signal.Signals) -> None:
    """Ctrl-C at the keyboard, or somebody elsewhere."""
    seat = sit()
    seat.shows("No process holds a device.")
    if number == signal.SIGINT:
        seat.press("\x03")
    else:
        os.kill(seat.foreground, number)
    seat.says("ENDED 0")
    assert seat.ended() == 0
    _is_restored(seat)


def test_ctrl_z_gives_the_terminal_back_and_fg_goes_on(box: Box, sit: Sit) -> None:
    """As any program does."""
    seat = sit("echo STOPPED; read line; fg; echo OVER $?")
    seat.shows("No process holds a device.")
    seat.press("\x1a")
    seat.says("STOPPED")
    _is_restored(seat)
    job = box.job("train.py")
    box.opens(job)
    seat.press("\n")
    seat.shows("Not named  0 of 1 context")
    seat.press("q")
    seat.says("OVER 0")
    assert seat.ended() == 0
    _is_restored(seat)


def test_a_driver_that_goes_and_comes_is_shown(box: Box, sit: Sit) -> None:
    """An old table would say something of now."""
    job = box.job("train.py")
    box.opens(job)
    seat = sit()
    seat.shows("Not named  0 of 1 context")
    box.driver.unload()
    lines = seat.shows("UNKNOWN: at ")
    assert not any("train.py" in line for line in lines)
    box.driver.add_gpu(GPU, accounting=True)
    seat.shows("No process holds a device.")


def test_many_rows_are_cut_and_counted(box: Box, sit: Sit) -> None:
    """What does not fit is said; the unnamed and the keys stay."""
    for number in range(30):
        box.driver.start(4_000_000 + number, GPU, 10 + number)
    job = box.job("train.py")
    box.opens(job, memory_mib=5)
    seat = sit()
    seat.press("ggg")
    lines = seat.shows("top by process")
    shown = sum("unattributed:" in line for line in lines)
    assert any(line.strip() == f"and {30 - shown} more" for line in lines)
    assert any("train.py" in line for line in lines)
    assert any(line.startswith("Not named  30 of 31 contexts") for line in lines)
