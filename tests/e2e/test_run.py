"""``gpuledger run`` as people use it: the command untouched, its receipt true, with an agent and without."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from e2e.box import COMMAND, GPU, OTHER_GPU, Answer, Box, finished
from e2e.machine import PATIENCE_S, eventually, need
from gpuledger.errors import Unavailable
from gpuledger.sources.own_cgroup import own_folder

GPU_JOB = """
import ctypes, sys, time
cuda, context, block = ctypes.CDLL("libcuda.so.1"), ctypes.c_void_p(), ctypes.c_ulonglong()
assert cuda.cuInit(0) == 0
assert cuda.cuCtxCreate_v2(ctypes.byref(context), 0, 0) == 0
assert cuda.cuMemAlloc_v2(ctypes.byref(block), ctypes.c_size_t(1 << 30)) == 0
time.sleep(float(sys.argv[1]))
"""
"""Holds the first GPU for so many seconds, with 1,208 MiB: a context's 184 and a GiB."""

BRIEF = """
#include <dlfcn.h>
int main(void) {
    void *cuda = dlopen("libcuda.so.1", RTLD_NOW), *context;
    ((int (*)(unsigned))dlsym(cuda, "cuInit"))(0);
    return ((int (*)(void **, unsigned, int))dlsym(cuda, "cuCtxCreate_v2"))(&context, 0, 0);
}
"""
"""The same, as short as can be."""

HELD_MIB = 184 + 1024


@pytest.fixture(autouse=True)
def _polling(monkeypatch: pytest.MonkeyPatch) -> None:
    """Most of these tests hold whatever way of naming there is; the one that every machine has is taken."""
    monkeypatch.setattr(Box, "environment", _with_poll(Box.environment))


def _with_poll(environment: Any) -> Any:
    return lambda box: {"GPULEDGER_AGENT_WATCH": "poll", **environment(box)}


def gpu_job(box: Box, name: str = "train.py") -> str:
    """A script that uses the GPU."""
    script = box.folder / "jobs" / name
    script.write_text(GPU_JOB)
    return str(script)


def run(box: Box, *words: str, status: int = 0, options: tuple[str, ...] = (), **variables: str) -> dict[str, Any]:
    """The receipt of a command, from the file that it is written to."""
    place = box.folder / "receipt.json"
    place.unlink(missing_ok=True)
    box.run("run", "--receipt", str(place), *options, "--", *words, status=status, **variables)
    return json.loads(place.read_text())


def proven(box: Box) -> None:
    """The driver's list has a row of long ago, so that it is not empty and proves itself."""
    box.driver.add_finished(3_000_000, GPU, started_at_us=box.clock.now_us() - 10**12, context_ms=1)


def doubts(receipt: dict[str, Any]) -> set[str]:
    return {one["doubt"] for one in receipt["doubts"]}


def _may_have_a_cgroup() -> bool:
    try:
        return os.access(own_folder(), os.W_OK)
    except Unavailable:
        return False


def settled_ms(box: Box, pid: int) -> int:
    """What the driver settled of a pid."""
    return int(next(row for row in box.dead() if row[2] == str(pid))[4])


def sound(box: Box) -> None:
    """The ledger verifies."""
    box.ask("verify")


def test_a_gpu_job_to_the_millisecond(box: Box) -> None:
    """The driver's own figure, peak and row; the reference explains it; nothing is left behind."""
    proven(box)
    receipt = run(box, sys.executable, gpu_job(box), "0.5")
    pid = receipt["pid"]
    (device,) = receipt["devices"]
    assert receipt["context_ms"] == device["context_ms"] == device["settled_ms"] == settled_ms(box, pid) >= 500
    assert (device["device"], device["contexts"], device["peak_memory_mib"]) == (GPU, 1, HELD_MIB)
    assert (receipt["watched_by"], receipt["status"], receipt["unknown"], receipt["doubts"]) == ("run", 0, [], [])
    assert (receipt["neighbours"], receipt["unnamed_neighbours"], receipt["at_least"]) == ([], [], False)
    assert receipt["wall_ms"] >= 500
    (line,) = receipt["contexts"]
    assert (line["pid"], line["state"]) == (pid, "settled")
    tree = box.run("explain", line["refs"][0], "--format", "json").json
    assert f"pid {pid} held" in tree["title"]
    for ref in line["refs"][1:]:
        box.run("explain", ref)
    assert str(settled_ms(box, pid)) in box.run(*receipt["explain"].split()[1:], "--format", "json").stdout
    assert sorted(path.name for path in box.ledger.parent.iterdir()) == ["ledger.db", "ledger.db.agent"]
    sound(box)


def test_pipes_stay_clean_and_stdin_goes_through(box: Box) -> None:
    """Bytes in, the same bytes out; the receipt is on stderr, as a table or as JSON, or not at all."""
    stream = bytes(range(256)) * 400
    for options, told in (((), b"Receipt"), (("--format", "json"), b'"command"'), (("--quiet",), b"")):
        process = subprocess.Popen(
            [str(COMMAND), "run", *options, "--", "cat"], env=box.environment(), stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
        out, err = process.communicate(stream, timeout=PATIENCE_S)
        assert (process.returncode, out) == (0, stream)
        assert told in err
        assert bool(told) == bool(err)
        assert [line for line in err.splitlines() if line != line.rstrip()] == [], "lines end where their words do"
    assert json.loads(box.run("run", "--format", "json", "--", "true").stderr)["status"] == 0


def test_the_commands_own_stderr_and_descriptors(box: Box) -> None:
    """What it says there comes first; a descriptor of the caller's is there; nothing of ours leaks into it."""
    reader, writer = os.pipe()
    script = f"echo said >&2; echo more > /proc/self/fd/{writer}; ls /proc/self/fd | tr '\\n' ' '"
    process = subprocess.Popen(
        [str(COMMAND), "run", "--", "sh", "-c", script], env=box.environment(), pass_fds=(writer,),
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    os.close(writer)
    out, err = process.communicate(timeout=PATIENCE_S)
    with os.fdopen(reader) as read:
        assert read.read() == "more\n"
    assert err.startswith("said\nReceipt")
    assert len(out.split()) == 5, out  # the three, the pipe, and what ls reads the folder by


@pytest.mark.parametrize(
    ("words", "status"),
    [
        (("sh", "-c", "exit 3"), 3),
        (("sh", "-c", "kill -9 $$"), 137),
        (("sh", "-c", "kill -TERM $$"), 143),
        (("no-such-command-here",), 127),
        (("/",), 126),
    ],
)
def test_the_exit_status_is_the_commands(box: Box, words: tuple[str, ...], status: int) -> None:
    """As a shell gives it; what never began has no receipt."""
    place = box.folder / "receipt.json"
    answer = box.run("run", "--receipt", str(place), "--", *words, status=status)
    assert place.exists() == (status not in (126, 127))
    if not place.exists():
        assert "nothing was run" in answer.stderr


@pytest.mark.parametrize(
    ("options", "status", "code"),
    [
        (("--interval", "soon"), 2, "bad-span"),
        (("--format", "csv"), 2, "no-csv"),
        (("--receipt", "/no-such-folder/r.json"), 2, "bad-receipt-place"),
        (("--receipt", "/"), 2, "bad-receipt-place"),
        (("--frobnicate",), 2, "bad-usage"),
        (("--ledger", "/"), 2, "bad-ledger-place"),
    ],
)
def test_wrong_usage_runs_nothing(box: Box, options: tuple[str, ...], status: int, code: str) -> None:
    """It is said before the command begins."""
    mark = box.folder / "mark"
    answer = box.run("run", *options, "--", "touch", str(mark), status=status)
    assert f"[{code}]" in answer.stderr
    assert not mark.exists()


def test_beside_an_agent_it_only_reads(box: Box) -> None:
    """The agent names and writes; the receipt waits for its looks, and has all of it."""
    proven(box)
    agent = box.agent(interval="100ms")
    receipt = run(box, sys.executable, gpu_job(box), "0.5")
    assert (receipt["watched_by"], receipt["doubts"], receipt["unknown"]) == ("agent", [], [])
    assert receipt["context_ms"] == settled_ms(box, receipt["pid"])
    assert agent.runs
    agent.stop().must(0)
    assert box.sql("SELECT DISTINCT interval_ms FROM watch WHERE interval_ms") == [(100,)]
    sound(box)


def test_an_agent_that_dies_meanwhile_is_taken_over_from(box: Box) -> None:
    """The run looks itself from then on."""
    proven(box)
    agent = box.agent()
    mark = box.folder / "mark"
    process = box.begin(
        "run",
        "--format",
        "json",
        "--",
        "sh",
        "-c",
        f"for _ in $(seq 1200); do test -e {mark} && break; sleep 0.05; done",
    )
    eventually(lambda: children(process.pid), "the command is there")
    time.sleep(0.5)
    agent.stop(signal.SIGKILL)
    pulse = box.ledger.with_name("ledger.db.agent")
    told = pulse.read_text()
    eventually(lambda: pulse.read_text() != told, "somebody else looks")
    mark.touch()
    receipt = json.loads(finished(process, ("run",)).must(0).stderr)
    assert receipt["watched_by"] == "run"
    sound(box)


def children(pid: int) -> list[int]:
    """Children of a process' main thread."""
    try:
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def test_grandchildren_and_an_orphan(box: Box) -> None:
    """Two below a shell, one of them brief, and one whose parent has ended before it."""
    proven(box)
    job = f"{sys.executable} {gpu_job(box)}"
    receipt = run(box, "sh", "-c", f"{job} 0.3; ({job} 0.6 & ) ; {job} 0.01; sleep 1; exit 5", status=5)
    assert [one["state"] for one in receipt["contexts"]] == ["settled"] * 3
    assert receipt["context_ms"] == sum(settled_ms(box, one["pid"]) for one in receipt["contexts"])
    assert (receipt["processes"]["alive"], receipt["unnamed_neighbours"], receipt["status"]) == (0, [], 5)


def test_with_kernel_events_and_a_cgroup_nothing_is_too_short(box: Box) -> None:
    """A hundred GPU processes of some milliseconds, most of which no scan meets: all are the command's."""
    (tried,) = box.together(("agent", "--once", "--watch", "ebpf"))
    need(tried.status == 0, "kernel events are not to be had here")
    need(_may_have_a_cgroup(), "no cgroup may be made here")
    proven(box)
    brief = box.folder / "brief"
    source = box.folder / "brief.c"
    source.write_text(BRIEF)
    subprocess.run(["gcc", "-o", str(brief), str(source), "-ldl"], check=True)
    receipt = run(
        box, "sh", "-c", f"for i in $(seq 100); do {brief}; done", GPULEDGER_AGENT_WATCH="ebpf"
    )  # fmt: skip
    assert (len(receipt["contexts"]), receipt["naming"]) == (100, "ebpf")
    assert (receipt["doubts"], receipt["neighbours"], receipt["unnamed_neighbours"]) == ([], [], [])
    assert receipt["context_ms"] == sum(settled_ms(box, one["pid"]) for one in receipt["contexts"])
    assert receipt["processes"]["seen"] >= 101


def test_what_goes_on_after_the_command_is_told_as_unfinished(box: Box) -> None:
    """The time of a child that lives on is that up to the last look, and the sum is the least."""
    proven(box)
    job = f"{sys.executable} {gpu_job(box)}"
    receipt = run(box, "sh", "-c", f"{job} 20 >/dev/null 2>&1 & sleep 0.7")
    assert [one["state"] for one in receipt["contexts"]] == ["running"]
    assert (receipt["at_least"], receipt["processes"]["alive"]) == (True, 1)
    assert "not-settled" in doubts(receipt)
    os.kill(receipt["contexts"][0]["pid"], signal.SIGKILL)


def test_neighbours_by_service_and_the_unnamed_by_cause(box: Box) -> None:
    """Who else held the device meanwhile: a daemon by name, and a brief one that nobody named."""
    proven(box)
    chat = box.job("chat.py")
    box.opens(chat, memory_mib=2000)
    since_us = box.clock.now_us()
    place = box.folder / "receipt.json"
    process = box.begin("run", "--receipt", str(place), "--", sys.executable, gpu_job(box), "2.5")
    eventually(lambda: any(row[0] == "process" and row[2] != str(chat.pid) for row in box.driver.lines()), "it began")
    time.sleep(0.7)  # two intervals after the first look, from which on a poll would have met what lived longer
    box.driver.add_finished(3_000_001, GPU, started_at_us=box.clock.now_us() - 90_000, context_ms=90)
    finished(process, ("run",)).must(0)
    receipt = json.loads(place.read_text())
    (named,) = receipt["neighbours"]
    assert "chat.py" in named["service"]
    assert named["peak_memory_mib"] == 2000
    assert receipt["wall_ms"] - 5 <= named["context_ms"] <= receipt["wall_ms"] + 5
    assert box.clock.now_us() - since_us > named["context_ms"] * 1000
    (unnamed,) = receipt["unnamed_neighbours"]
    assert (unnamed["service"], unnamed["contexts"]) == ("unattributed:between-samples", 1)
    assert unnamed["context_ms"] == 90
    assert len(receipt["contexts"]) == 1


def test_a_command_without_gpu(box: Box) -> None:
    """0 with its reason where the time was watched without loss; with an empty list UNKNOWN, for polling."""
    empty = run(box, "true")
    assert empty["context_ms"] is None
    assert "empty-ledger" in empty["missing"]["context_ms"]
    proven(box)
    receipt = run(box, "true")
    assert (receipt["context_ms"], receipt["at_least"], receipt["doubts"]) == (0, False, [])
    assert "watched without loss" in receipt["devices"][0]["why"]


def test_accounting_off(bare: Box) -> None:
    """What looks saw is observed; that there may be more is UNKNOWN with what helps; nothing is 0."""
    bare.driver.add_gpu(GPU, accounting=False)
    receipt = run(bare, sys.executable, gpu_job(bare), "1")
    (line,) = receipt["contexts"]
    assert line["state"] == "observed"
    assert 400 <= receipt["context_ms"] <= 1200
    (unknown,) = receipt["unknown"]
    assert unknown["reason"] == "accounting-disabled"
    assert "--enable-accounting" in unknown["command"]
    assert receipt["at_least"]
    without = run(bare, "true")
    assert without["context_ms"] is None
    assert "0 ms" not in bare.run("run", "--", "true").stderr


def test_a_chain_of_programs_in_one_process_is_counted_or_said(box: Box, worker: Path) -> None:
    """Four hold the device one after the other, and the driver keeps one row a pid: nothing of them is left out."""
    need(os.geteuid() == 0, "kernel events and device nodes need root")
    node = box.folder / "nvidia0"
    os.mknod(node, 0o020666, os.makedev(195, 0))
    proven(box)
    chain = (str(worker), "chain", str(node), "120000", "use,use,use,use")
    receipt = run(box, *chain, GPULEDGER_AGENT_WATCH="ebpf")
    assert receipt["naming"] == "ebpf"
    freed_ms = sum(one["ms"] for one in receipt["unknown"] if one["reason"] == "row-freed")
    assert 4 * 115 <= receipt["context_ms"] + freed_ms <= 4 * 150, receipt
    reasons = bool(receipt["unknown"]), bool(receipt["unknown"] or receipt["doubts"])
    assert reasons[0] <= receipt["at_least"] <= reasons[1], receipt  # on a busy machine there may be a doubt more
    assert {one["pid"] for one in receipt["contexts"]} == {receipt["pid"]}


def test_no_driver_at_all(bare: Box) -> None:
    """The command runs, the receipt says why nothing is known, and no ledger is made."""
    receipt = run(bare, "sh", "-c", "exit 6", status=6, LD_LIBRARY_PATH="/nowhere")
    assert (receipt["context_ms"], receipt["watched_by"]) == (None, "nobody")
    assert "driver" in receipt["doubts"][0]["sentence"]
    assert not bare.ledger.exists()


def test_two_devices_and_one_unwatched(box: Box) -> None:
    """The held one has its figures, the other its own verdict."""
    box.driver.add_gpu(OTHER_GPU, accounting=False)
    proven(box)
    receipt = run(box, sys.executable, gpu_job(box), "0.4")
    held, other = receipt["devices"]
    assert (held["device"], held["contexts"], other["device"], other["context_ms"]) == (GPU, 1, OTHER_GPU, None)
    assert receipt["at_least"]


TRAPS = """
import os, signal, sys, time
ends = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)
def told(number, frame):
    os.write(1, f"got {int(number)}\\n".encode())
    if number in ends:
        sys.exit(7)
for number in (*ends, signal.SIGUSR1, signal.SIGALRM, signal.SIGXCPU, signal.SIGPWR, signal.SIGRTMIN + 3):
    signal.signal(number, told)
os.write(1, b"ready\\n")
time.sleep(30)
"""


@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP", "SIGINT"])
def test_signals_sent_to_run_reach_the_command(box: Box, name: str) -> None:
    """Whatever would end run alone, and an interrupt that no terminal sent; the command decides, the receipt comes."""
    process = box.begin("run", "--format", "json", "--", sys.executable, "-c", TRAPS)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    for warning in (signal.SIGUSR1, signal.SIGALRM, signal.SIGXCPU, signal.SIGPWR, signal.SIGRTMIN + 3):
        process.send_signal(warning)
        assert process.stdout.readline() == f"got {int(warning)}\n"
    process.send_signal(signal.Signals[name])
    answer = finished(process, ("run",)).must(7)
    assert answer.stdout == f"got {int(signal.Signals[name])}\n"
    assert json.loads(answer.stderr)["status"] == 7
    sound(box)


def test_ctrl_c_on_a_terminal(box: Box) -> None:
    """The terminal tells the command, once; run waits for it, and prints the receipt."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.execve(COMMAND, [str(COMMAND), "run", "--", sys.executable, "-c", TRAPS], box.environment())
    said = read_until(terminal, "ready")
    os.write(terminal, b"\x03")
    said += read_until(terminal, "")
    _, status = os.waitpid(pid, 0)
    os.close(terminal)
    assert os.waitstatus_to_exitcode(status) == 7, said
    assert said.count(f"got {int(signal.SIGINT)}") == 1
    assert "exit status 7" in said
    assert "Traceback" not in said
    sound(box)


def read_until(terminal: int, word: str) -> str:
    """What a terminal shows until a word, or its end where none is given."""
    shown = ""
    until = time.monotonic() + PATIENCE_S
    while not word or word not in shown:
        assert time.monotonic() < until, shown
        try:
            read = os.read(terminal, 4096)
        except OSError:  # the last process of it has ended
            break
        if not read:
            break
        shown += read.decode()
    return shown


def test_a_terminal_shows_that_the_agents_look_is_waited_for(box: Box) -> None:
    """And Ctrl-C asks for the receipt at once: it says what is not seen yet."""
    proven(box)
    box.agent(interval="20s")
    pid, terminal = pty.fork()
    if pid == 0:
        os.execve(COMMAND, [str(COMMAND), "run", "--", "true"], box.environment())
    said = read_until(terminal, "waiting for the agent's next look")
    os.write(terminal, b"\x03")
    said += read_until(terminal, "")
    _, status = os.waitpid(pid, 0)
    os.close(terminal)
    assert os.waitstatus_to_exitcode(status) == 0, said
    assert "came after the end: what ended last can be missing" in said


def test_nobody_reads_the_receipt(box: Box) -> None:
    """Closed streams change no status."""
    for closed in ("2>&-", ">&- 2>&-", "<&- >&- 2>&-", "2>/dev/full"):
        done = subprocess.run(
            ["sh", "-c", f'exec "$0" run -- sh -c "exit 3" {closed}', str(COMMAND)], env=box.environment(),
            timeout=PATIENCE_S, check=False,
        )  # fmt: skip
        assert done.returncode == 3, closed
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        [str(COMMAND), "run", "--", "sh", "-c", "exit 3"], env=box.environment(), stderr=writer, timeout=PATIENCE_S,
        check=False,
    )  # fmt: skip
    os.close(writer)
    assert done.returncode == 3


def test_a_receipt_that_cannot_be_written_is_said_and_changes_no_status(box: Box) -> None:
    """The folder went away meanwhile."""
    place = box.folder / "gone" / "receipt.json"
    place.parent.mkdir()
    answer = box.run("run", "--receipt", str(place), "--", "sh", "-c", f"rmdir {place.parent}; exit 3", status=3)
    assert "[receipt-not-written]" in answer.stderr
    assert "Receipt" in answer.stderr


def test_two_runs_at_once_and_one_in_another(box: Box) -> None:
    """Each has its own processes and the other's as neighbours; the outer one has those of the inner."""
    proven(box)
    jobs = [gpu_job(box, f"job{number}.py") for number in (1, 2)]
    places = [box.folder / f"receipt{number}.json" for number in (1, 2)]
    started = [
        box.begin("run", "--receipt", str(place), "--", sys.executable, job, "3")
        for place, job in zip(places, jobs, strict=True)
    ]
    answers: list[Answer] = [finished(process, ("run",)).must(0) for process in started]
    receipts = [json.loads(place.read_text()) for place in places]
    assert len(answers) == 2
    assert {one["watched_by"] for one in receipts} <= {"run", "agent"}
    for receipt, other in zip(receipts, reversed(receipts), strict=True):
        assert [one["pid"] for one in receipt["contexts"]] == [receipt["pid"]]
        assert receipt["context_ms"] == settled_ms(box, receipt["pid"])
        assert receipt["pid"] != other["pid"]
        assert len(receipt["neighbours"]) == 1
    outer = run(box, str(COMMAND), "run", "--quiet", "--", sys.executable, jobs[0], "0.4")
    assert len(outer["contexts"]) == 1
    sound(box)
