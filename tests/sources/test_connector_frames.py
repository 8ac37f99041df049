"""What goes through the pipe comes out of it the same, however it is cut on the way."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from gpuledger.errors import Unavailable
from gpuledger.sources.connector_frames import CaughtUp, FrameBuffer, Lost, Ready, to_bytes
from gpuledger.sources.process_events import Happened, ProcessEvent, Program

PROGRAMS = st.builds(
    Program,
    exe=st.binary(max_size=300),
    args=st.binary(max_size=3000),
    cwd=st.binary(max_size=300),
    uid=st.integers(0, 2**32 - 1),
    cgroup=st.binary(max_size=300),
)
EVENTS = st.builds(
    ProcessEvent,
    happened=st.sampled_from((Happened.EXEC, Happened.FORK, Happened.EXIT)),
    boot_us=st.integers(0, 2**62),
    pid=st.integers(1, 2**22),
    start_ticks=st.integers(0, 2**63),
    parent=st.integers(0, 2**22),
    major=st.just(0),
    minor=st.just(0),
    program=st.none() | PROGRAMS,
)
COUNTS = st.integers(0, 2**40)
FRAMES = st.lists(
    EVENTS | st.builds(Lost, COUNTS) | st.builds(CaughtUp, COUNTS) | st.builds(Ready, st.booleans()), max_size=8
)


@settings(max_examples=100)
@given(frames=FRAMES, size=st.integers(1, 4000))
def test_frames_survive_the_pipe(frames: list[ProcessEvent | Lost | CaughtUp | Ready], size: int) -> None:
    """A pipe cuts where it likes: in the middle of a command line, or of a number."""
    sent = b"".join(map(to_bytes, frames))
    buffer = FrameBuffer()
    got = [frame for at in range(0, len(sent), size) for frame in buffer.feed(sent[at : at + size])]
    assert got == frames


def test_a_refusal_keeps_its_words() -> None:
    """Why there is no connector is said by the one process, and heard by the person at the other."""
    refusal = Unavailable("connector-forbidden", "it may not be heard ü", hint="run as root")
    (got,) = FrameBuffer().feed(to_bytes(refusal))
    assert isinstance(got, Unavailable)
    assert (got.code, got.message, got.hint) == (refusal.code, refusal.message, refusal.hint)


def test_the_longest_names_fit() -> None:
    """Paths of 4 KiB, and as much of a command line as is ever read."""
    program = Program(b"/" * 4096, b"a" * 65_536, b"/" * 4096, 0, b"c" * 65_536)
    event = ProcessEvent(Happened.EXEC, 1, 2, 3, 4, program=program)
    assert list(FrameBuffer().feed(to_bytes(event))) == [event]
