"""The terminal of a live view, on a pseudo-terminal: keys, signals, and everything as it was."""

from __future__ import annotations

import os
import signal
import termios
from collections.abc import Iterator

import pytest

from gpuledger.cli.terminal import Event, Terminal

LONG_US = 5_000_000


@pytest.fixture
def pair() -> Iterator[tuple[int, int]]:
    """A pseudo-terminal: the person's end, and the program's."""
    person, program = os.openpty()
    yield person, program
    for end in (person, program):
        try:
            os.close(end)
        except OSError:
            assert end == person  # a test hung up


def modes(descriptor: int) -> int:
    """Whether it echoes and waits for Enter."""
    return termios.tcgetattr(descriptor)[3] & (termios.ECHO | termios.ICANON)


def test_keys_come_at_once_without_echo_and_all_is_restored(pair: tuple[int, int]) -> None:
    """Also the handlers of signals."""
    person, program = pair
    before, handlers = termios.tcgetattr(program), [signal.getsignal(n) for n in (signal.SIGTERM, signal.SIGWINCH)]
    with Terminal(program) as terminal:
        assert modes(program) == 0
        os.write(person, b"gm")
        assert terminal.wait(LONG_US) == Event(keys="gm")
        assert terminal.wait(1) == Event()
    assert termios.tcgetattr(program) == before
    assert [signal.getsignal(n) for n in (signal.SIGTERM, signal.SIGWINCH)] == handlers
    assert signal.set_wakeup_fd(-1) == -1


def test_it_is_restored_also_after_a_bug(pair: tuple[int, int]) -> None:
    """Whatever ends the view."""
    _, program = pair
    before = termios.tcgetattr(program)
    with pytest.raises(ZeroDivisionError), Terminal(program):
        raise ZeroDivisionError
    assert termios.tcgetattr(program) == before


def test_arrows_and_function_keys_are_no_keys(pair: tuple[int, int]) -> None:
    """Their sequences hold letters that mean something else."""
    person, program = pair
    with Terminal(program) as terminal:
        os.write(person, b"m\x1b[b")
        assert terminal.wait(LONG_US) == Event(keys="m")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_wait_at_once(pair: tuple[int, int], number: signal.Signals) -> None:
    """However long it was to be."""
    with Terminal(pair[1]) as terminal:
        os.kill(os.getpid(), number)
        assert terminal.wait(LONG_US) == Event(is_ending=True)


def test_a_second_ctrl_c_ends_a_view_that_hangs(pair: tuple[int, int]) -> None:
    """A driver may not answer for long."""
    with Terminal(pair[1]):
        os.kill(os.getpid(), signal.SIGINT)
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)


def test_ctrl_z_and_a_resize_are_told(pair: tuple[int, int]) -> None:
    """The one to stop, the other to draw anew."""
    with Terminal(pair[1]) as terminal:
        os.kill(os.getpid(), signal.SIGTSTP)
        assert terminal.wait(LONG_US) == Event(is_stopping=True)
        os.kill(os.getpid(), signal.SIGWINCH)
        assert terminal.wait(LONG_US) == Event()


def test_a_terminal_that_is_gone_ends_the_view(pair: tuple[int, int]) -> None:
    """A window was closed, and the hang-up signal was ignored."""
    person, program = pair
    with Terminal(program) as terminal:
        os.close(person)
        assert terminal.wait(LONG_US).is_ending


def test_without_a_keyboard_only_signals_and_time_count() -> None:
    """`gpuledger top < /dev/null` on a terminal."""
    nothing = os.open(os.devnull, os.O_RDONLY)
    try:
        with Terminal(nothing) as terminal:
            assert terminal.wait(1) == Event()
    finally:
        os.close(nothing)
