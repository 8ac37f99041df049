"""How the process that reads the connector tells the agent: frames on a pipe, both ends of one machine.

In: :class:`ProcessEvent`, a count of losses, that it is ready, or why it cannot be. Out: bytes; and back.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

from gpuledger.errors import Unavailable
from gpuledger.sources.process_events import Happened, ProcessEvent, Program

_HEAD = struct.Struct("=BBHHIIIIIqQ")
"""Kind, whether there is a program, lengths of exe, cwd, args and cgroup; uid, pid, parent, time, start."""

_CAUGHT_UP, _LOST, _READY, _REFUSED = 252, 253, 254, 255
_HAPPENED = {happened.value: happened for happened in Happened}
_NO_PROGRAM = Program(b"", b"", b"", 0, b"")


class Lost(NamedTuple):
    """Spells of loss so far."""

    spells: int


class CaughtUp(NamedTuple):
    """All that had happened when it was asked for the so-manieth time has been told."""

    times: int


class Ready(NamedTuple):
    """The reading has begun."""

    is_urgent: bool
    """It runs before all ordinary processes."""


Frame = ProcessEvent | Lost | CaughtUp | Ready | Unavailable


def to_bytes(frame: Frame) -> bytes:
    """A frame as it goes through the pipe."""
    if isinstance(frame, ProcessEvent):
        program = frame.program or _NO_PROGRAM
        exe, args, cwd, uid, cgroup = program
        head = _HEAD.pack(
            frame.happened, frame.program is not None, len(exe), len(cwd), len(args), len(cgroup),
            uid, frame.pid, frame.parent, frame.boot_us, frame.start_ticks,
        )  # fmt: skip
        return b"".join((head, exe, cwd, args, cgroup))
    if isinstance(frame, Unavailable):
        texts = [text.encode() for text in (frame.code, frame.hint, frame.message)]
        return b"".join((_HEAD.pack(_REFUSED, 0, *map(len, texts), 0, 0, 0, 0, 0, 0), *texts))
    match frame:
        case Lost(spells):
            kind, number = _LOST, spells
        case CaughtUp(times):
            kind, number = _CAUGHT_UP, times
        case Ready(is_urgent):
            kind, number = _READY, int(is_urgent)
    return _HEAD.pack(kind, 0, 0, 0, 0, 0, 0, 0, 0, 0, number)


class FrameBuffer:
    """What came through the pipe, cut into frames again."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, chunk: bytes) -> Iterator[Frame]:
        """The frames that are whole, in order; the rest waits for more."""
        kept = self._rest + chunk
        at = 0
        while len(kept) - at >= _HEAD.size:
            kind, has_program, *lengths, uid, pid, parent, boot_us, start_ticks = _HEAD.unpack_from(kept, at)
            exe, cwd, args, cgroup = lengths
            end = at + _HEAD.size + exe + cwd + args + cgroup
            if end > len(kept):
                break
            parts, to = [], at + _HEAD.size
            for length in lengths:
                parts.append(kept[to : to + length])
                to += length
            at = end
            if kind in _HAPPENED:
                program = Program(parts[0], parts[2], parts[1], uid, parts[3]) if has_program else None
                yield ProcessEvent(_HAPPENED[kind], boot_us, pid, start_ticks, parent, program=program)
            elif kind == _REFUSED:
                code, hint, message = (part.decode() for part in parts[:3])
                yield Unavailable(code, message, hint=hint)
            elif kind == _CAUGHT_UP:
                yield CaughtUp(start_ticks)
            else:
                yield Lost(start_ticks) if kind == _LOST else Ready(bool(start_ticks))
        self._rest = kept[at:]
