"""Real kernel events: whoever execs, ends, opens or holds is named as ``/proc`` would have named it."""

from __future__ import annotations

import errno
import itertools
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from e2e.machine import NOBODY, eventually, need
from gpuledger.errors import Unavailable
from gpuledger.sources import procfs
from gpuledger.sources.bpf import Command, system_call
from gpuledger.sources.ebpf import EbpfSource
from gpuledger.sources.ebpf_host import CAPABILITIES, EbpfHost
from gpuledger.sources.process_events import NVIDIA_MAJOR, Happened, Program
from sources.kernel_events import NULL, Heard, build_worker, descriptors, need_root, run, run_as

EXEC, EXIT, OPEN, HOLD = Happened.EXEC, Happened.EXIT, Happened.OPEN, Happened.HOLD


@pytest.fixture(scope="session")
def worker(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A program that does one thing."""
    need_root()
    return build_worker(tmp_path_factory.mktemp("worker"))


@pytest.fixture
def heard() -> Iterator[Heard]:
    """Every event from now on, with the memory devices in place of GPUs."""
    need_root()
    source = EbpfSource(majors=(NULL[0], NVIDIA_MAJOR))
    yield Heard(source)
    source.close()


@pytest.fixture
def cgroup() -> Iterator[Path]:
    """A cgroup of v2 below another one, for one test."""
    need_root()
    outer = EbpfHost().cgroup_root() / f"gpuledger-{os.getpid()}"
    inner = outer / "inner.scope"
    inner.mkdir(parents=True)
    yield inner
    for folder in (inner, outer):
        if folder.exists():
            folder.rmdir()


def program_in_proc(pid: int) -> Program:
    """A living process as ``/proc`` has it."""
    folder = Path(f"/proc/{pid}")
    return Program(
        exe=os.fsencode((folder / "exe").readlink()).removesuffix(b" (deleted)"),
        args=(folder / "cmdline").read_bytes(),
        cwd=os.fsencode((folder / "cwd").readlink()).removesuffix(b" (deleted)"),
        uid=(folder).stat().st_uid,
        cgroup=(folder / "cgroup").read_bytes(),
    )


def test_a_process_of_a_millisecond_is_named(heard: Heard, worker: Path, tmp_path: Path) -> None:
    """Program, user, parent, times and end come with the events; nothing of it is left in /proc."""
    before_us = time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1000
    pid = run(worker, "open", "/dev/null", "a b", "--x=ö", cwd=tmp_path)
    after_us = time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1000

    first, opened, last = heard.of(pid)

    assert (first.happened, opened.happened, last.happened) == (EXEC, OPEN, EXIT)
    assert first.program is not None
    assert first.program[:4] == (
        bytes(worker), b"\0".join([bytes(worker), b"open", b"/dev/null", b"a b", "--x=ö".encode(), b""]),
        bytes(tmp_path), 0,
    )  # fmt: skip
    assert first.parent == os.getpid()
    assert opened[5:] == (*NULL, first.program)
    assert before_us <= first.boot_us <= opened.boot_us <= last.boot_us <= after_us
    assert len({event.start_ticks for event in (first, opened, last)}) == 1


def test_start_ticks_are_those_of_proc(heard: Heard, worker: Path) -> None:
    """With the pid they are the process; a tick off would make two of it."""
    for _ in range(20):
        with subprocess.Popen([worker, "wait"]) as process:
            told = heard.wait_for(process.pid, EXEC)
            assert told.start_ticks == procfs.start_ticks(process.pid)
            process.kill()


def test_every_open_is_told_and_the_first_with_its_program(heard: Heard, worker: Path) -> None:
    """Later ones of the same process are short; another program is told again."""
    pid = run(worker, "open", "/dev/null", "/dev/zero", "/dev/null")

    first, second, third = heard.of(pid, OPEN)

    assert first.program is not None
    assert (second.minor, second.program, third.minor) == (5, None, 3)


def test_mknod_and_other_devices_are_no_opens(heard: Heard, worker: Path, tmp_path: Path) -> None:
    """Making a node touches nothing; a terminal is no GPU."""
    pid = run(worker, "mknod", tmp_path / "node")
    assert (tmp_path / "node").is_char_device()
    assert not heard.of(pid, OPEN)
    assert not heard.of(run(worker, "open", "/dev/ptmx"), OPEN)


def test_a_fork_without_exec_is_named_by_its_open(heard: Heard, worker: Path) -> None:
    """The child has the parent's program and no exec of its own."""
    parent = run(worker, "fork-open", "/dev/null")

    (opened,) = heard.where(lambda event: event.happened is OPEN and event.parent == parent)

    assert not heard.of(opened.pid, EXEC)
    assert opened.program is not None
    assert opened.program.exe == bytes(worker)
    assert heard.of(opened.pid, EXIT)


def test_another_users_process_bears_its_real_user(heard: Heard, worker: Path) -> None:
    """By exec as another user, and by becoming one after it."""
    pid = run("true", user=NOBODY, cwd="/")
    assert heard.of(pid, EXEC)[0].program.uid == NOBODY  # type: ignore[union-attr]
    pid = run(worker, "become-user", str(NOBODY), "/dev/null")
    assert heard.of(pid, EXEC)[0].program.uid == 0  # type: ignore[union-attr]
    assert heard.of(pid, OPEN)[0].program.uid == NOBODY  # type: ignore[union-attr]


def test_a_thread_that_execs_is_its_process(heard: Heard, worker: Path) -> None:
    """It takes over pid and start of the first thread; one end is told."""
    pid = run(worker, "thread-exec", worker, "nothing")
    first, second = heard.of(pid, EXEC)
    assert (first.start_ticks, first.boot_us) <= (second.start_ticks, second.boot_us)
    assert first.start_ticks == second.start_ticks
    assert len(heard.of(pid, EXIT)) == 1


@pytest.mark.parametrize("how", ["linked", "deleted", "chroot", "mounted", "memfd", "far", "nowhere"])
def test_paths_are_those_of_proc(heard: Heard, worker: Path, tmp_path: Path, how: str) -> None:
    """Through links, mounts, other roots, and where there is no path at all."""
    copy = Path(shutil.copy(worker, tmp_path / "copy"))
    command: list[str | Path] = [copy, "wait"]
    words: dict[str, object] = {"cwd": tmp_path}
    if how == "linked":
        (tmp_path / "link").symlink_to(copy)
        command[0] = tmp_path / "link"
    elif how == "chroot":
        command = ["chroot", tmp_path, "/copy", "wait"]
    elif how == "mounted":
        inner = tmp_path / "mount here"
        inner.mkdir()
        command = ["unshare", "-m", "sh", "-c", 'mount --bind "$1" "$2" && cd "$2" && exec ./copy wait', "sh",
                   tmp_path, inner]  # fmt: skip
    elif how == "memfd":
        memory = os.memfd_create("model")
        os.write(memory, copy.read_bytes())
        command[0] = f"/proc/self/fd/{memory}"
        words["pass_fds"] = (memory,)
    elif how == "far":
        far = tmp_path.joinpath(*[f"{number:02}" * 20 for number in range(20)])
        far.mkdir(parents=True)
        command[0] = copy.rename(far / "copy")
        words["cwd"] = far
    elif how == "nowhere":
        gone = tmp_path / "gone"
        gone.mkdir()
        command = ["sh", "-c", 'cd "$1" && rmdir "$1" && exec "$2" wait', "sh", gone, copy]
    with subprocess.Popen([str(word) for word in command], **words) as process:  # type: ignore[call-overload]
        try:
            told = eventually(
                lambda: [
                    e
                    for e in heard.of(process.pid, EXEC)
                    if e.program and e.program.args.split(b"\0")[1:] == [b"wait", b""]
                ],
                "the exec",
            )[-1]
            if how == "deleted":
                copy.unlink()
            expected = program_in_proc(process.pid)
            assert told.program is not None
            assert told.program[:4] == expected[:4]
            assert set(told.program.cgroup.splitlines()) <= set(expected.cgroup.splitlines())
        finally:
            process.kill()


def test_a_long_command_line_ends_with_a_whole_word(heard: Heard, worker: Path) -> None:
    """What is kept of one is 4 KiB; half a word could be half a secret, which no rule knows for one."""
    words = [f"--option-{number}=0123456789" for number in range(1000)]
    told = heard.of(run(worker, "nothing", *words), EXEC)[0].program
    assert told is not None
    assert 4096 - 32 < len(told.args) <= 4096
    whole = b"\0".join([bytes(worker), b"nothing", *(word.encode() for word in words)])
    assert whole.startswith(told.args)
    assert told.args.endswith(b"0123456789\0")


def test_a_title_is_told_as_proc_has_it(heard: Heard, worker: Path) -> None:
    """A process may write over its command line, and beyond its end."""
    with subprocess.Popen([worker, "title"], env={"LONG": "x" * 200}) as process:
        told = heard.wait_for(process.pid, OPEN).program
        assert told is not None
        assert told.args.rstrip(b"\0") == program_in_proc(process.pid).args.rstrip(b"\0")
        assert told.args.count(b"t") > 200
        process.kill()


def test_a_cgroup_survives_its_folder(heard: Heard, worker: Path, cgroup: Path) -> None:
    """The path comes with the event, and not from a folder that a container takes away with it."""
    script = f'echo $$ > {cgroup}/cgroup.procs && exec "$0" open /dev/null'
    pid = run("sh", "-c", script, worker)
    cgroup.rmdir()
    for event in (heard.of(pid, EXEC)[-1], heard.of(pid, OPEN)[-1]):
        assert event.program is not None
        assert event.program.cgroup == f"0::/{cgroup.parent.name}/{cgroup.name}\n".encode()


def test_an_open_inside_a_container_is_seen(heard: Heard, worker: Path, tmp_path: Path) -> None:
    """runc gives it namespaces, a root and cgroups of its own; the node has no driver, and the open fails."""
    need(shutil.which("runc") is not None, "apt install runc")
    name = f"gpuledger-{os.getpid()}"
    (tmp_path / "rootfs").mkdir()
    shutil.copy(worker, tmp_path / "rootfs" / "job")
    os.mknod(tmp_path / "rootfs" / "gpu", 0o20666, os.makedev(NVIDIA_MAJOR, 0))
    subprocess.run(["runc", "spec"], cwd=tmp_path, check=True)
    config = json.loads((tmp_path / "config.json").read_text())
    config["process"] |= {"terminal": False, "args": ["/job", "open", "/gpu"], "cwd": "/"}
    config["root"] = {"path": "rootfs", "readonly": True}
    config["linux"]["resources"]["devices"] = [
        {"allow": False, "access": "rwm"},
        {"allow": True, "type": "c", "major": NVIDIA_MAJOR, "minor": 0, "access": "rw"},
    ]  # fmt: skip
    (tmp_path / "config.json").write_text(json.dumps(config))

    done = subprocess.run(["runc", "run", name], cwd=tmp_path, capture_output=True, text=True, timeout=30, check=False)

    assert done.returncode == 0, done.stderr
    (opened,) = heard.where(lambda event: event.happened is OPEN and event.major == NVIDIA_MAJOR)
    assert opened.program is not None
    assert opened.program[:3] == (b"/job", b"/job\0open\0/gpu\0", b"/")
    assert name.encode() in opened.program.cgroup
    assert heard.of(opened.pid, EXIT)


def test_a_snapshot_finds_who_holds_a_node(heard: Heard, worker: Path) -> None:
    """A descriptor that is inherited was opened by somebody else; one event for each node and process."""
    with (
        Path("/dev/null").open("r+b") as node,
        subprocess.Popen([worker, "wait", "x"], pass_fds=(node.fileno(),), stdin=node, cwd="/") as process,
    ):
        told = heard.wait_for(process.pid, EXEC)
        found = [event for event in heard.source.snapshot() if event.pid == process.pid]
        process.kill()
    assert [(event.happened, event.start_ticks, event.parent) for event in found] == [
        (HOLD, told.start_ticks, os.getpid())
    ]
    assert found[0][5:] == (*NULL, told.program)
    assert not [event for event in heard.source.snapshot() if event.pid == process.pid]


def test_a_pid_that_is_dealt_out_again_is_another_process(heard: Heard, worker: Path) -> None:
    """The kernel's numbers wrap around; an open by the later one is told with its own program."""
    pid = run(worker, "open", "/dev/null", "one")
    time.sleep(0.03)  # a later tick
    run_as(pid, worker, "open", "/dev/null", "two")
    opens = [event for event in heard.of(pid, OPEN) if event.program and event.program.exe == bytes(worker)]
    assert [event.program.args.split(b"\0")[-2] for event in opens if event.program] == [b"one", b"two"]
    assert opens[0].start_ticks < opens[1].start_ticks
    for opened in opens:
        happened = [event.happened for event in heard.of(pid) if event.start_ticks == opened.start_ticks]
        assert happened == [EXEC, OPEN, EXIT]


def test_what_finds_no_room_is_counted_one_by_one(worker: Path) -> None:
    """A ring of one page and nobody who reads: delivered and lost are what was sent, as a large ring tells it."""
    need_root()
    for _ in range(3):  # another process of the machine may fall between two figures
        large, tiny = Heard(EbpfSource(majors=(1,))), Heard(EbpfSource(majors=(1,), ring_bytes=4096))
        try:
            marker = run(worker, "open", "/dev/null")
            run(worker, "forks", "3000")
            sent, delivered, lost = _settled(large, tiny)
            after = next(number for number, event in enumerate(large.events) if event.pid == marker)
            before = next(number for number, event in enumerate(tiny.events) if event.pid == marker)
            assert large.source.lost() == 0
            assert lost > 2000
            if sent - after == delivered - before + lost:
                break
        finally:
            large.source.close()
            tiny.source.close()
    else:
        pytest.fail(f"sent {sent - after}, delivered {delivered - before}, lost {lost}")


def _settled(large: Heard, tiny: Heard) -> tuple[int, int, int]:
    """Figures of one moment: nothing was sent between the first and the last."""
    while True:
        sent = len(large.all())
        lost = tiny.source.lost()
        delivered = len(tiny.all())
        if len(large.all()) == sent and tiny.source.lost() == lost:
            return sent, delivered, lost


def test_the_ring_goes_round(worker: Path) -> None:
    """Many times its size, read in time, with records across its end: all whole."""
    need_root()
    heard = Heard(EbpfSource(majors=(1,), ring_bytes=64 * 1024))
    try:
        pids = [
            run(worker, "open", "/dev/null", "x" * (7 * number)) for number in range(200) if heard.all() is not None
        ]
        assert heard.source.lost() == 0
        for number, pid in enumerate(pids):
            (opened,) = heard.of(pid, OPEN)
            assert opened.program is not None
            assert opened.program.args.endswith(b"/dev/null\0" + b"x" * (7 * number) + b"\0")
    finally:
        heard.source.close()


def test_opens_that_meet_are_all_told(heard: Heard, worker: Path) -> None:
    """More processes than CPUs write their records at once, and none writes in another's place."""
    started = [
        subprocess.Popen([worker, "open", *["/dev/null", "/dev/zero"] * 20, f"number-{number}"]) for number in range(60)
    ]
    for number, process in enumerate(started):
        assert process.wait() == 0
        opens = heard.of(process.pid, OPEN)
        assert len(opens) == 40
        assert opens[0].program is not None
        assert opens[0].program.args.endswith(b"number-%d\0" % number)
    assert heard.source.lost() == 0


def test_events_wake_who_waits(heard: Heard, worker: Path) -> None:
    """The agent sleeps until there is something to read."""
    while heard.source.wait(0):
        heard.all()
    started = time.monotonic()
    with subprocess.Popen([worker, "nothing"]):
        assert heard.source.wait(20)
    assert time.monotonic() - started < 10


def _kernel_ids(process: str = "self") -> set[tuple[str, int]]:
    """Programs, links and maps that a process holds."""
    texts = [path.read_text() for path in Path(f"/proc/{process}/fdinfo").iterdir() if path.exists()]
    return {(kind, int(number)) for text in texts for kind, number in re.findall(r"(prog|link|map)_id:\s*(\d+)", text)}


def _still_there(ids: set[tuple[str, int]]) -> list[tuple[str, int]]:
    return [
        (kind, number)
        for kind, number in ids
        if subprocess.run(["bpftool", kind, "show", "id", str(number)], capture_output=True, check=False).returncode
        == 0
    ]


def test_nothing_is_left_in_the_kernel() -> None:
    """After close, and after a death that lets nobody close; nor is a descriptor left here."""
    need_root()
    need(shutil.which("bpftool") is not None, "apt install bpftool")
    open_before = descriptors()
    before = _kernel_ids()
    source = EbpfSource()
    mine = _kernel_ids() - before
    assert {kind for kind, _ in mine} == {"prog", "link", "map"}
    assert len(_still_there(mine)) == len(mine)
    source.close()
    assert descriptors() <= open_before
    eventually(lambda: not _still_there(mine), "all is let go")

    script = "from gpuledger.sources.ebpf import EbpfSource; s = EbpfSource(); print('here', flush=True); input()"
    with subprocess.Popen(
        [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "here\n"
        theirs = _kernel_ids(str(process.pid))
        assert {kind for kind, _ in theirs} == {"prog", "link", "map"}
        process.send_signal(signal.SIGKILL)
        process.communicate()
    eventually(lambda: not _still_there(theirs), "all is let go")


def _with(*capabilities: str, user: str, script: str) -> subprocess.CompletedProcess[str]:
    """Run Python with these capabilities and no more."""
    held = ",".join(["-all", *(f"+{name.removeprefix('CAP_').lower()}" for name in capabilities)])
    command = ["setpriv", *user.split(), "--clear-groups", f"--inh-caps={held}", f"--ambient-caps={held}",
               f"--bounding-set={held}", sys.executable, "-B", "-c", script]  # fmt: skip
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd="/")


def _unprivileged() -> str:
    """Somebody without rights; where others may not read this checkout, root without what makes it root."""
    nobody = f"--reuid={NOBODY} --regid={NOBODY}"
    can_read = _with(user=nobody, script="import gpuledger.sources.ebpf").returncode == 0
    return nobody if can_read else "--securebits=+noroot,+noroot_locked"


MAKE = """
import subprocess
from gpuledger.errors import Unavailable
from gpuledger.sources.ebpf import EbpfSource
try:
    source = EbpfSource(majors=(1,))
except Unavailable as error:
    print(error.code, error.message)
else:
    subprocess.run(["true"], check=True)
    snapshot = source.snapshot()
    roots = [event for event in snapshot if event.program.uid == 0 and event.program.exe and event.program.args]
    print("made", bool(source.read()), source.lost(), bool(roots))
"""


def test_three_capabilities_are_all_it_takes() -> None:
    """An ordinary user with them names root's processes; with any of them missing the refusal names it."""
    need_root()
    user = _unprivileged()
    done = _with(*CAPABILITIES, user=user, script=MAKE)
    assert done.stdout == "made True 0 True\n", done.stderr
    for kept in itertools.chain.from_iterable(itertools.combinations(CAPABILITIES, count) for count in (0, 2)):
        missing = [name for name in CAPABILITIES if name not in kept]
        said = _with(*kept, user=user, script=MAKE).stdout
        assert said.startswith("ebpf-forbidden"), said
        assert [name for name in CAPABILITIES if name in said] == missing


@pytest.mark.parametrize("refused", list(Command))
def test_a_kernel_that_refuses_leaves_nothing_behind(refused: Command) -> None:
    """Whatever call is refused, the reason is told and every descriptor is let go."""
    need_root()
    real = system_call()
    asked: list[Command] = []

    def call(command: Command, attributes: bytearray) -> int:
        asked.append(command)
        if command is refused:
            raise OSError(errno.EINVAL, "Invalid argument")
        return real(command, attributes)

    before = descriptors()
    if refused in (Command.MAP_LOOKUP, Command.MAP_DELETE, Command.MAP_NEXT_KEY, Command.INFO, Command.ITERATOR_CREATE):
        EbpfSource(call=call).close()
        assert refused not in asked
    else:
        with pytest.raises(Unavailable) as raised:
            EbpfSource(call=call)
        assert raised.value.code == "ebpf-refused"
        assert "5.17" in raised.value.hint
    assert descriptors() == before


def test_new_majors_are_taken_up_and_old_ones_dropped(tmp_path: Path) -> None:
    """A driver that is loaded later brings its nodes; the next snapshot knows them."""
    need_root()
    (tmp_path / "devices").write_text("Character devices:\n  1 nvidia-uvm\n195 nvidia\n\nBlock devices:\n  7 loop\n")
    for name in ("self", "1"):
        (tmp_path / name).symlink_to(f"/proc/{name}")

    source = EbpfSource(host=EbpfHost(proc=tmp_path))
    try:
        assert source.snapshot()
        (tmp_path / "devices").write_text("Character devices:\n195 nvidia\n\n")
        assert not source.snapshot()
    finally:
        source.close()
