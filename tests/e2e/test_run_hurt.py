"""``gpuledger run`` killed with 9 at every point: the command is unharmed, the ledger sound, the next run goes on."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from e2e.box import GPU, Box
from e2e.machine import eventually, need
from gpuledger.errors import Unavailable
from gpuledger.ledger import Ledger, verify_ledger
from gpuledger.sources.own_cgroup import PREFIX, own_folder


def children(pid: int) -> list[int]:
    """Children of a process' main thread."""
    try:
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def program(pid: int) -> bytes:
    """What a process runs now."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def cgroups() -> set[str]:
    """Cgroups of runs below this process' own."""
    try:
        return {folder.name for folder in own_folder().iterdir() if folder.name.startswith(PREFIX)}
    except (Unavailable, OSError):
        return set()


@pytest.fixture
def machine(box: Box) -> Iterator[Box]:
    """A machine whose driver's list proves itself; afterwards no cgroup is left that was not there before."""
    before = cgroups()
    box.driver.add_finished(3_000_000, GPU, started_at_us=box.clock.now_us() - 10**12, context_ms=1)
    yield box
    if cgroups() - before:
        box.run("run", "--quiet", "--", "true")
    assert not cgroups() - before


def killed(process: subprocess.Popen[str]) -> None:
    """Kill a run with 9."""
    process.kill()
    assert process.wait(timeout=30) == -signal.SIGKILL
    for stream in (process.stdout, process.stderr):  # the command has their other ends, so they do not end
        assert stream is not None
        stream.close()


def goes_on(box: Box) -> None:
    """The ledger verifies; a next run takes the place and joins on; so does an agent."""
    if box.sql("SELECT count(*) FROM link"):  # else it was killed before there was a table
        box.ask("verify")
    place = box.folder / "next.json"
    box.run("run", "--receipt", str(place), "--", "true")
    receipt = json.loads(place.read_text())
    assert (receipt["watched_by"], receipt["context_ms"], receipt["unknown"]) == ("run", 0, [])
    box.agent().stop().must(0)
    box.ask("verify")


def slow_command(mark: Path, seconds: float) -> tuple[str, ...]:
    """A command that leaves a mark when it begins and another when it has ended well."""
    return ("sh", "-c", f"touch {mark}.began; sleep {seconds}; touch {mark}.ended")


def test_killed_before_the_command_begins(machine: Box) -> None:
    """It never begins, and the held process goes away with its run."""
    for pause_s in (0.0, 0.05, 0.15):
        mark = machine.folder / f"mark{pause_s}"
        process = machine.begin("run", "--receipt", str(machine.folder / "r.json"), "--", *slow_command(mark, 0))
        (held,) = eventually(lambda process=process: children(process.pid), "the command is held")  # type: ignore[misc]
        time.sleep(pause_s)
        is_held = b"sleep 0" not in program(held) or b"gpuledger" in program(held)
        killed(process)
        eventually(lambda held=held: not Path(f"/proc/{held}").exists(), "the held process is gone")
        time.sleep(0.1)
        assert not is_held or not Path(f"{mark}.began").exists()
        assert not (machine.folder / "r.json").exists()
    goes_on(machine)


def test_killed_while_the_command_runs(machine: Box) -> None:
    """The command goes on to its end, undisturbed; what it held is in the ledger of the next run."""
    mark = machine.folder / "mark"
    process = machine.begin("run", "--receipt", str(machine.folder / "r.json"), "--", *slow_command(mark, 1.5))
    eventually(lambda: Path(f"{mark}.began").exists(), "the command began")
    (command,) = children(process.pid)
    time.sleep(0.3)
    killed(process)
    assert Path(f"/proc/{command}").exists()
    eventually(lambda: Path(f"{mark}.ended").exists(), "the command ended well")
    assert not (machine.folder / "r.json").exists()
    goes_on(machine)


def test_a_context_of_a_killed_run_is_joined_by_the_next_look(machine: Box) -> None:
    """Who held the device then is named and settled, once."""
    job = machine.job("train.py")
    process = machine.begin("run", "--", "sleep", "30")
    (command,) = eventually(lambda: children(process.pid), "the command is held")
    eventually(lambda: program(command).startswith(b"sleep"), "the command began")
    machine.opens(job)
    machine.named(job)
    killed(process)
    ms = machine.closes(job)
    machine.run("run", "--quiet", "--", "true")
    assert machine.sql("SELECT context_ms FROM driver_record WHERE pid = ?", job.pid) == [(ms,)]
    (usage,) = machine.read("usage")
    assert any("train.py" in row["service"] and row["quantity"] == ms for row in usage["rows"])
    os.kill(command, signal.SIGKILL)
    goes_on(machine)


def test_killed_while_it_waits_for_the_agents_look(machine: Box) -> None:
    """The command has ended with its own status; the agent does not notice."""
    agent = machine.agent(interval="3s")
    mark = machine.folder / "mark"
    process = machine.begin("run", "--receipt", str(machine.folder / "r.json"), "--", *slow_command(mark, 0))
    eventually(lambda: Path(f"{mark}.ended").exists(), "the command ended")
    time.sleep(0.5)
    killed(process)
    assert agent.runs
    agent.stop().must(0)
    assert not (machine.folder / "r.json").exists()
    goes_on(machine)


def test_killed_at_any_moment_after_the_end(machine: Box) -> None:
    """While it waits, flushes, seals, reads, writes the receipt: that is there whole, or not at all."""
    found = set()
    for attempt in range(11):
        place, mark = machine.folder / "r" / "receipt.json", machine.folder / f"mark{attempt}"
        place.parent.mkdir(exist_ok=True)
        place.unlink(missing_ok=True)
        process = machine.begin("run", "--receipt", str(place), "--", *slow_command(mark, 0))
        eventually(lambda mark=mark: Path(f"{mark}.ended").exists(), "the command ended")
        until = time.monotonic() + 0.13 * attempt
        while time.monotonic() < until and not place.exists() and process.poll() is None:
            time.sleep(0.001)
        process.kill()
        process.communicate(timeout=30)
        found.add(place.exists())
        if place.exists():
            assert json.loads(place.read_text())["status"] == 0
        if machine.sql("SELECT count(*) FROM link"):  # else it was killed before there was a table
            with Ledger.open(machine.ledger, mode="read") as ledger:
                assert verify_ledger(ledger) == []
    assert len(found) == 2, "killed before and after the receipt was there"
    goes_on(machine)


def test_a_cgroup_that_a_killed_run_left_is_removed_by_the_next(machine: Box) -> None:
    """Once nothing lives in it; not before."""
    before = cgroups()
    mark = machine.folder / "mark"
    wait = f"for _ in $(seq 1200); do test -e {mark}.end && break; sleep 0.05; done"
    script = f"touch {mark}.began; {wait}; touch {mark}.ended"
    process = machine.begin("run", "--", "sh", "-c", script)
    eventually(lambda: Path(f"{mark}.began").exists(), "the command began")
    left = cgroups() - before
    if not left:
        pytest.skip("no cgroup may be made here")
    killed(process)
    machine.run("run", "--quiet", "--", "true")
    assert cgroups() - before == left, "the command lives in it"
    Path(f"{mark}.end").touch()
    eventually(lambda: Path(f"{mark}.ended").exists(), "the command ended")
    time.sleep(0.1)
    machine.run("run", "--quiet", "--", "true")
    assert cgroups() == before


@pytest.fixture
def full_disk(machine: Box) -> Iterator[Path]:
    """The ledger's folder lies on a disk on which no byte is free."""
    need(os.geteuid() == 0, "only root mounts a small disk")
    folder = machine.ledger.parent
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", str(folder)], check=True)
    filler = folder / "filler"
    with filler.open("wb", buffering=0) as stream, suppress(OSError):
        while True:
            stream.write(b"x" * 4096)
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def test_a_full_disk_keeps_nobody_from_the_command_nor_from_the_receipt(machine: Box, full_disk: Path) -> None:
    """Its status is the command's own, the receipt has all that was seen, and says that it is kept nowhere else."""
    script = (
        "import ctypes, time; cuda = ctypes.CDLL('libcuda.so.1'); cuda.cuInit(0); context = ctypes.c_void_p();"
        " cuda.cuCtxCreate_v2(ctypes.byref(context), 0, 0); time.sleep(1.2); cuda.cuCtxDestroy_v2(context);"
        " raise SystemExit(7)"
    )
    place = machine.folder / "receipt.json"
    done = machine.run("run", "--receipt", str(place), "--", sys.executable, "-c", script, status=7)
    receipt = json.loads(place.read_text())
    settled = int(machine.dead()[-1][4])
    assert (receipt["status"], receipt["watched_by"], receipt["context_ms"]) == (7, "run", settled)
    assert settled >= 1200
    assert [one["doubt"] for one in receipt["doubts"]] == ["not-stored"]
    assert (receipt["explain"], receipt["contexts"][0]["refs"]) == ("", [])
    told = " ".join(done.stderr.split())
    assert "not stored, this receipt is all that is kept of it" in told
    assert "nothing was run" not in told
    assert not list(Path("/dev/shm").glob("gpuledger-run-*"))
    (full_disk / "filler").unlink()
    goes_on(machine)
