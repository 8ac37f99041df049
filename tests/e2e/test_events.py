"""Naming by real kernel events: the installed command, processes that open a device's node, the fake driver."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest

from e2e.box import GPU, Box, reasons, sums_up
from e2e.machine import eventually, need

INSTANT_US = 2000
NVIDIA_MAJOR = 195


class Jobs:
    """Starts jobs on a device's node.

    Args:
        box: the machine.
        program: the worker.
    """

    def __init__(self, box: Box, program: Path) -> None:
        need(os.geteuid() == 0, "kernel events and device nodes need root")
        self._box = box
        self._program = program
        self._node = box.folder / "nvidia0"
        os.mknod(self._node, 0o020666, os.makedev(NVIDIA_MAJOR, 0))

    def begin(
        self, mode: str, name: str, *, us: int = INSTANT_US, program: Path | None = None
    ) -> subprocess.Popen[bytes]:
        """Start one; its name stands in its command line."""
        command = [str(program or self._program), mode, str(self._node), str(us), name]
        return subprocess.Popen(command, env=self._box.environment(), cwd=self._box.folder)

    def run(self, mode: str, name: str, *, us: int = INSTANT_US, program: Path | None = None) -> int:
        """Run one to its end; its pid."""
        job = self.begin(mode, name, us=us, program=program)
        assert job.wait() == 0
        return job.pid


@pytest.fixture
def jobs(box: Box, worker: Path) -> Jobs:
    """Jobs of the machine with one accounted GPU."""
    return Jobs(box, worker)


def commands(box: Box) -> list[str]:
    """The command lines of every identity that was kept."""
    return sorted(
        row[0]
        for row in box.sql(
            "SELECT json_extract(t.json, '$.command') FROM process_identity p JOIN identity_text t USING (text_key)"
        )
    )


@pytest.mark.parametrize("method", ["ebpf", "connector"])
def test_processes_of_a_few_milliseconds_are_named(box: Box, jobs: Jobs, method: str) -> None:
    """Sixty of two milliseconds between two looks, a second apart: a poll would name none; all have their names."""
    agent = box.agent("--watch", method, interval="1s")
    for number in range(60):
        jobs.run("use", f"job-{number}", us=INSTANT_US if method == "ebpf" else 10 * INSTANT_US)
    box.settled(60)
    box.looks_again()
    agent.stop().must(0)
    usage, blind = box.read("usage --by subject", "blind")
    assert (usage["unattributed"]["quantity"], reasons(usage) - {"empty-ledger", "watch-gap"}) == (0, set())
    assert usage["total"] == sum(int(row[4]) for row in box.dead())
    sums_up(usage)
    assert blind["unattributed"]["quantity"] == 0
    assert {f"job-{number}" for number in range(60)} <= {line.split()[-1] for line in commands(box)}
    box.ask("verify")


def test_a_fork_without_exec_is_named_by_its_open(box: Box, jobs: Jobs) -> None:
    """A worker process is its parent's program, under a pid of its own."""
    box.agent("--watch", "ebpf", interval="500ms")
    parent = jobs.run("fork", "forked-worker")
    box.settled(1)
    box.looks_again()
    (usage,) = box.read("usage --by subject")
    assert usage["unattributed"]["quantity"] == 0
    (pid,) = box.sql("SELECT pid FROM driver_record")[0]
    assert pid != parent
    assert any("forked-worker" in line for line in commands(box))


def idle_for_a_second(box: Box, *, since_us: int) -> None:
    """Wait until so much is proven idle: what is shorter rounds to no second at all."""
    idle = "SELECT sum(until_us - since_us) AS us FROM watch WHERE status = 'idle' AND since_us >= ?"
    eventually(lambda: box.sql(f"SELECT 1 FROM ({idle}) WHERE us > 1000000", since_us), "a second is proven idle")


def test_a_device_that_nobody_opens_is_proven_idle(box: Box, jobs: Jobs) -> None:
    """The list is empty, no event was lost, the driver was not let go: 0, and the answer says why."""
    box.agent("--watch", "ebpf")
    idle_for_a_second(box, since_us=0)
    table, as_json = box.together(("usage",), ("usage", "--format", "json"))
    report = as_json.must(0).json
    assert (report["total"], report["rows"]) == (0, [])
    assert report["idle"]["seconds"] <= report["watched"]["seconds"]
    assert "nobody opened the device" in report["idle"]["why"]
    assert "proven idle" in table.must(0).stdout
    journal = box.run("journal").stdout
    assert "proven idle" in " ".join(journal.split())


def test_an_open_alone_is_no_use_and_no_proof_of_idleness(box: Box, jobs: Jobs) -> None:
    """Nothing is booked for it; while it has the device open, an empty list stays UNKNOWN and names its pid."""
    box.agent("--watch", "ebpf")
    eventually(lambda: box.sql("SELECT 1 FROM watch WHERE status = 'idle'"), "idle before")
    looker = jobs.begin("open", "only-looks", us=60_000_000)
    box.looks_again()
    told = "SELECT 1 FROM watch WHERE status = 'empty-ledger' AND instr(detail, ?)"
    eventually(lambda: box.sql(told, f"pid {looker.pid}"), "the opener is told")
    looker.kill()
    looker.wait()
    after = box.sql("SELECT max(until_us) FROM watch")[0][0]
    idle_for_a_second(box, since_us=after)
    (usage,) = box.read("usage")
    assert (usage["total"], usage["rows"]) == (0, [])
    assert "empty-ledger" in reasons(usage)
    assert any("only-looks" in line for line in commands(box))


def test_the_drivers_own_tools_do_not_disturb_the_proof(box: Box, jobs: Jobs, worker: Path) -> None:
    """nvidia-smi opens the node to look; that is no touch, and nothing of it is kept."""
    tool = box.folder / "nvidia-smi"
    tool.write_bytes(worker.read_bytes())
    tool.chmod(0o755)
    box.agent("--watch", "ebpf")
    eventually(lambda: box.sql("SELECT 1 FROM watch WHERE status = 'idle'"), "idle before")
    for number in range(5):
        jobs.run("open", f"look-{number}", program=tool)
    box.looks_again()
    box.looks_again()
    first_idle = box.sql("SELECT min(until_us) FROM watch WHERE status = 'idle'")[0][0]
    assert (
        box.sql("SELECT status FROM watch WHERE source = 'driver' AND status != 'idle' AND until_us > ?", first_idle)
        == []
    )
    assert commands(box) == []


def test_a_ring_that_ran_over_leaves_contexts_seen_by_events(box: Box, jobs: Jobs) -> None:
    """Three hundred end between two looks and the driver keeps 128 rows: the others are booked from open to exit."""
    agent = box.agent("--watch", "ebpf", interval="4s")
    box.looked()
    started = [jobs.begin("use", f"storm-{number}", us=100_000) for number in range(300)]
    assert [job.wait() for job in started] == [0] * 300
    eventually(
        lambda: (
            box.sql(
                "SELECT (SELECT count(*) FROM driver_record) + (SELECT count(*) FROM sighting WHERE method = 'ebpf')"
            )
            == [(300,)]
        ),
        "all are known",
    )
    agent.stop().must(0)
    (usage,) = box.read("usage --by subject")
    assert "ring-overflow" in reasons(usage)
    assert usage["unattributed"]["quantity"] == 0
    assert usage["rows"][0]["observed"] > 0
    assert len({line.split()[-1] for line in commands(box)}) == 300
    box.ask("verify")


def test_a_reused_pid_between_two_looks_is_two_processes(box: Box, jobs: Jobs) -> None:
    """The second stint of a pid frees the older row: the first is booked from its events, each under its own name."""
    last_pid = Path("/proc/sys/kernel/ns_last_pid")
    agent = box.agent("--watch", "ebpf", interval="5s")
    box.looked()

    def run_as(pid: int, name: str) -> None:
        for _ in range(200):
            last_pid.write_text(str(pid - 1))
            job = jobs.begin("use", name, us=100_000)
            if job.pid == pid:
                assert job.wait() == 0
                return
            job.kill()
            job.wait()
        pytest.fail(f"pid {pid} could not be had")

    wanted = 31_000
    run_as(wanted, "first-of-the-pid")
    subprocess.run(["sleep", "2.5"], check=True)
    run_as(wanted, "second-of-the-pid")
    eventually(lambda: box.sql("SELECT 1 FROM sighting WHERE method = 'ebpf' AND pid = ?", wanted), "the freed row")
    agent.stop().must(0)
    named = box.sql(
        "SELECT json_extract(t.json, '$.command') FROM process_identity p JOIN identity_text t USING (text_key)"
        " WHERE p.pid = ? ORDER BY p.started_at_us",
        wanted,
    )
    assert [row[0].split()[-1] for row in named] == ["first-of-the-pid", "second-of-the-pid"]
    (usage,) = box.read("usage --by subject")
    assert usage["unattributed"]["quantity"] == 0
    assert usage["total"] >= 200


def sightings_by_events(box: Box) -> list[tuple[int, int]]:
    """Length in ms and death of every context that was booked by events."""
    query = "SELECT (until_us - since_us) / 1000, process_died FROM sighting WHERE method = 'ebpf' ORDER BY since_us"
    return [(int(ms), int(died)) for ms, died in box.sql(query)]


def test_a_chain_of_programs_between_two_looks_is_counted_or_said(box: Box, jobs: Jobs) -> None:
    """Five programs of one process hold the device, one after the other, and the driver keeps one row a pid.

    Each is a row that was read in time, a context by events, or time that is told to be UNKNOWN; none is twice.
    """
    agent = box.agent("--watch", "ebpf", interval="2s")
    box.looked()
    chained = jobs.begin("chain", "use,use,use,use,use", us=60_000)
    assert chained.wait() == 0
    box.looks_again()
    box.looks_again()
    agent.stop().must(0)
    rows = [int(row[0]) for row in box.sql("SELECT context_ms FROM driver_record")]
    freed = box.sql("SELECT until_us - since_us, detail FROM watch WHERE status = 'row-freed'")
    assert 1 <= len(rows) <= 4
    assert all(f"pid {chained.pid} let go of the device" in detail for _, detail in freed)
    usage, blind = box.read("usage --by subject", "blind")
    assert usage["unattributed"]["quantity"] == 0
    assert sum(rows) <= usage["total"]
    unknown_ms = sum(us for us, _ in freed) / 1000
    assert 5 * 55 <= usage["total"] + unknown_ms <= 5 * 75, (rows, sightings_by_events(box), freed)
    if freed:
        assert "row-freed" in reasons(usage) & reasons(blind)
        box.run("usage", "--strict", status=1)
    box.ask("verify")


def test_a_look_comes_between_two_programs_that_hold_the_device(box: Box, jobs: Jobs) -> None:
    """The exec calls for it, though the interval is longer: each row is read before the next one frees it."""
    agent = box.agent("--watch", "ebpf", interval="5s")
    box.looked()
    assert jobs.begin("chain", "use,use,use", us=1_000_000).wait() == 0
    box.settled(3)
    agent.stop().must(0)
    (usage,) = box.read("usage --by subject")
    assert usage["unattributed"]["quantity"] == 0
    assert 3 * 990 <= usage["total"] <= 3 * 1_400
    assert "row-freed" not in reasons(usage)
    box.ask("verify")


def test_a_launcher_that_only_asks_is_not_booked(box: Box, jobs: Jobs) -> None:
    """It opens the device and becomes what uses it: its own open is no use, whatever the next program does."""
    agent = box.agent("--watch", "ebpf", interval="300ms")
    box.looked()
    assert jobs.begin("chain", "open,use", us=700_000).wait() == 0
    box.settled(1)
    box.looks_again()
    box.looks_again()
    agent.stop().must(0)
    (usage,) = box.read("usage --by subject")
    assert usage["total"] == int(box.dead()[0][4])
    assert sightings_by_events(box) == []
    assert "row-freed" not in reasons(usage)


def test_a_stopped_reader_loses_events_and_says_so(box: Box, jobs: Jobs) -> None:
    """The kernel's buffer runs over: the span is events-lost, with the number, and nothing in it is proven idle."""
    agent = box.agent("--watch", "ebpf", interval="500ms")
    eventually(lambda: box.sql("SELECT 1 FROM watch WHERE status = 'idle'"), "idle before")
    os.kill(agent.pid, signal.SIGSTOP)
    loop = f"i=0; while [ $i -lt 1300 ]; do /bin/true {'x' * 4000}; i=$((i+1)); done"  # 4 kB each, into 4 MiB
    subprocess.run(["/bin/sh", "-c", loop], check=True)
    os.kill(agent.pid, signal.SIGCONT)
    lost = "SELECT detail FROM watch WHERE source = 'process' AND status = 'events-lost'"
    eventually(lambda: box.sql(lost), "events-lost")
    assert "events lost" in box.sql(lost)[0][0]
    agent.stop().must(0)
    assert "events-lost" in box.run("journal").stdout


def test_a_clock_set_while_events_come_misnames_nothing(box: Box, jobs: Jobs) -> None:
    """Events have the boot-time clock, the driver the wall clock: after a step both are joined by the new offset."""
    now_us = box.clock.now_us()
    box.clock.stand_at(now_us)
    agent = box.agent("--watch", "ebpf", interval="300ms")
    box.looks_again()
    first = jobs.begin("open", "before-the-step", us=300_000)
    at_us = box.clock.now_us()
    box.driver.start(first.pid, GPU, at_us=at_us)
    first.wait()
    box.driver.finish(first.pid, GPU, at_us=box.clock.now_us())
    box.settled(1)
    box.clock.step(3600)
    box.looks_again()
    second = jobs.begin("open", "after-the-step", us=300_000)
    at_us = box.clock.now_us()
    box.driver.start(second.pid, GPU, at_us=at_us)
    second.wait()
    box.driver.finish(second.pid, GPU, at_us=box.clock.now_us())
    box.settled(2)
    box.looks_again()
    agent.stop().must(0)
    offsets = box.sql("SELECT count(*) FROM watch WHERE source = 'clock'")
    assert offsets == [(2,)]
    (usage,) = box.read("usage --by subject")
    assert usage["unattributed"]["quantity"] == 0
    assert {line.split()[-1] for line in commands(box)} == {"before-the-step", "after-the-step"}
