"""The words of kernel events, and the seam: what a source must be for a watcher to live on it."""

from __future__ import annotations

import inspect

import pytest

from gpuledger.sources.connector import ConnectorSource
from gpuledger.sources.ebpf import EbpfSource
from gpuledger.sources.process_events import EventSource, Happened, ProcessEvent, Program


def test_the_kernels_program_and_these_words_number_alike() -> None:
    """The numbers stand in the records of ``kernel/processes.bpf.c``, which are compiled once."""
    assert [(word.name, int(word)) for word in Happened] == [
        ("EXEC", 1), ("FORK", 2), ("EXIT", 3), ("OPEN", 4), ("HOLD", 5),
    ]  # fmt: skip


def test_an_event_says_no_more_than_it_knows() -> None:
    """What was not told is 0 or None, and an equal event is the same event."""
    event = ProcessEvent(Happened.EXIT, 5, 7, 0)
    assert (event.parent, event.major, event.minor, event.program) == (0, 0, 0, None)
    program = Program(b"/bin/x", b"x\0", b"/", 0, b"0::/\n")
    assert ProcessEvent(Happened.EXEC, 5, 7, 1, program=program) == ProcessEvent(
        Happened.EXEC, 5, 7, 1, 0, 0, 0, program
    )


@pytest.mark.parametrize("source", [EbpfSource, ConnectorSource])
def test_every_source_has_the_shape_of_the_seam(source: type) -> None:
    """All words of the protocol, with the same arguments; which of them sees opens is said."""
    for word in ("begin", "wait", "read", "lost", "snapshot", "close"):
        asked = list(inspect.signature(getattr(EventSource, word)).parameters)
        assert list(inspect.signature(getattr(source, word)).parameters) == asked
    assert {word: type(getattr(source, word)) for word in ("method", "sees_opens", "counts_losses", "pause_s")} == {
        "method": str, "sees_opens": bool, "counts_losses": bool, "pause_s": float,
    }  # fmt: skip
