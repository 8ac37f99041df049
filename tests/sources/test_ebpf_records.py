"""Records of the kernel's part, byte for byte as it lays them out, read as events."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from gpuledger.sources.ebpf_records import (
    ARGS_CUT,
    ARGS_READ,
    CGROUP_WHOLE,
    CWD_WHOLE,
    EXE_WHOLE,
    EXIT,
    HEAD,
    PROGRAM,
    SHORT,
    TICK_NS,
    Records,
    path_of,
)
from gpuledger.sources.process_events import Happened, ProcessEvent, Program

ALL = PROGRAM | ARGS_READ | EXE_WHOLE | CWD_WHOLE | CGROUP_WHOLE
START_NS = 777 * TICK_NS + TICK_NS - 1


def names(path: bytes) -> bytes:
    """A path as the kernel sends it."""
    return b"".join(name + b"\0" for name in reversed([name for name in path.split(b"/") if name]))


def record(
    kind: Happened = Happened.EXEC,
    *,
    flags: int = ALL,
    args: bytes = b"a\0b\0",
    exe: bytes = b"/bin/x",
    cwd: bytes = b"/",
    cgroup: bytes = b"/system.slice/x.service",
    hierarchy: int = 0,
    pid: int = 7,
    minor: int = 0,
) -> bytes:
    """One record with its program."""
    parts = [args, *(names(path) for path in (exe, cwd, cgroup))]
    lengths = [len(part) for part in parts]
    head = HEAD.pack(kind, flags, lengths[0], pid, 5_000_999, START_NS, 195, minor, 3, 1000, *lengths[1:], hierarchy)
    return head + b"".join(parts)


def read(*records: bytes, hierarchies: dict[int, bytes] | None = None) -> list[ProcessEvent]:
    """The events of records that lie somewhere in memory."""
    memory, places = b"?" * 16, []
    for one in records:
        places.append((len(memory), len(one)))
        memory += one + b"?" * 8
    return Records(lambda: hierarchies or {}).events(memory, places)


def test_layouts_are_those_of_the_kernels_part() -> None:
    """Offsets by C's own alignment, so that neither side pads."""
    assert (EXIT.size, SHORT.size, HEAD.size) == (24, 32, 48)


def test_an_exec_has_everything() -> None:
    """Times in the units of the seam: microseconds since boot, ticks as /proc has them."""
    (event,) = read(record())
    program = Program(
        exe=b"/bin/x", args=b"a\0b\0", cwd=b"/", uid=1000, cgroup=b"0::/system.slice/x.service\n"
    )  # fmt: skip
    assert event == ProcessEvent(Happened.EXEC, 5000, 7, 777, 3, 195, 0, program)
    assert isinstance(event, ProcessEvent)
    assert isinstance(event.program, Program)


def test_short_records_have_no_program() -> None:
    """An end, a further open, and an exec that found no place to tell its program in."""
    ended = EXIT.pack(Happened.EXIT, 0, 0, 7, 5000, START_NS)
    opened = SHORT.pack(Happened.OPEN, 0, 0, 7, 6000, START_NS, 195, 255)
    became = SHORT.pack(Happened.EXEC, 0, 0, 7, 7000, START_NS, 0, 0)
    assert read(ended, opened, became) == [
        ProcessEvent(Happened.EXIT, 5, 7, 777),
        ProcessEvent(Happened.OPEN, 6, 7, 777, major=195, minor=255),
        ProcessEvent(Happened.EXEC, 7, 7, 777),
    ]


def test_what_was_not_told_whole_stays_empty() -> None:
    """Half a path is another path."""
    (event,) = read(record(flags=PROGRAM))
    assert event.program == Program(exe=b"", args=b"a\0b\0", cwd=b"", uid=1000, cgroup=b"")


def test_a_cut_command_line_loses_its_last_word() -> None:
    """Which may be half a secret; a single word that long is lost whole."""
    assert read(record(flags=ALL | ARGS_CUT, args=b"a\0--pass"))[0].program.args == b"a\0"  # type: ignore[union-attr]
    assert read(record(flags=ALL | ARGS_CUT, args=b"a" * 9))[0].program.args == b""  # type: ignore[union-attr]


def test_a_cgroup_of_v1_stands_beside_the_root_of_v2() -> None:
    """A hierarchy mounted later is asked for once more."""
    known: dict[int, bytes] = {}
    records = Records(lambda: known)
    known[4] = b"cpu,cpuacct"
    one = record(hierarchy=4, cgroup=b"/docker/abc")
    (event,) = records.events(one, [(0, len(one))])
    assert event.program is not None
    assert event.program.cgroup == b"4:cpu,cpuacct:/docker/abc\n0::/\n"
    (event,) = read(record(hierarchy=9, cgroup=b"/x"))
    assert event.program is not None
    assert event.program.cgroup == b"9::/x\n0::/\n"


def test_a_snapshot_tells_each_node_of_a_process_once() -> None:
    """There is a record for each descriptor, one behind the other."""
    told = b"".join(
        record(Happened.HOLD, args=b"", pid=pid, minor=minor) for pid, minor in ((7, 0), (7, 255), (7, 0), (8, 0))
    )
    found = Records(dict).holds(told)
    assert [(event.happened, event.pid, event.minor) for event in found] == [
        (Happened.HOLD, 7, 0), (Happened.HOLD, 7, 255), (Happened.HOLD, 8, 0),
    ]  # fmt: skip
    assert found[0].program is not None
    assert Records(dict).holds(b"") == []


@given(st.lists(st.binary(min_size=1, max_size=9).filter(lambda name: not set(name) & set(b"\0/")), max_size=9))
def test_a_path_is_its_names_turned_round(parts: list[bytes]) -> None:
    """Whatever bytes a name has; no name is the root."""
    path = b"/" + b"/".join(parts)
    assert path_of(names(path)) == path
