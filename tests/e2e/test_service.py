"""The agent as ``deploy/systemd`` starts it: a user of its own with the unit's capabilities, and no more.

The capabilities are read from the unit file itself. The installed command is run with them as systemd does it:
other uid, ambient capabilities, the bounding set cut down to them, no new privileges. Jobs are other users'.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from operator import itemgetter
from pathlib import Path
from typing import Any

import pytest

import gpuledger
from deploy.systemd_unit import AGENT, read_unit, words
from e2e.box import COMMAND, GPU, Box, Watching
from e2e.machine import need
from gpuledger.model.identity import IdentityText
from gpuledger.sources import procfs
from gpuledger.sources.ebpf_host import CAPABILITIES
from gpuledger.sources.process_events import NVIDIA_MAJOR

SERVICE = 64711
"""The agent's user; the jobs' are the next ones. None of them has a name on any machine."""
ALICE, BOB = SERVICE + 1, SERVICE + 2
GRANTED = words(read_unit(AGENT), "CapabilityBoundingSet")
INSTANT_US = 5000
HOLDER = "import os, sys; os.open(sys.argv[1], os.O_PATH); print('held', flush=True); sys.stdin.read()"
"""Has the node among its descriptors without its driver, which is not there to open it."""


class Service:
    """A machine that every user may enter, and the agent's user on it.

    Args:
        box: the machine, its folders open to all.
        worker: the job of ``worker.c``.
    """

    def __init__(self, box: Box, worker: Path) -> None:
        self.box = box
        self.node = box.folder / "nvidia0"
        os.mknod(self.node, stat.S_IFCHR, os.makedev(NVIDIA_MAJOR, 0))
        self.node.chmod(0o666)
        self._worker = shutil.copy(worker, box.folder / "worker")
        self._running: list[subprocess.Popen[Any]] = []

    def command(self, *arguments: str, capabilities: Sequence[str]) -> list[str]:
        """The installed command with these rights; becomes that very process."""
        needed = {Path(sys.prefix), Path(sys.base_prefix), Path(gpuledger.__file__).parents[1]}
        held = ",".join(["-all", *(f"+{name.removeprefix('CAP_').lower()}" for name in capabilities)])
        return [
            *("unshare", "--mount", "--propagation", "private"),
            *(sys.executable, str(Path(__file__).with_name("enter.py")), *map(str, sorted(needed)), "--"),
            *("setpriv", f"--reuid={SERVICE}", f"--regid={SERVICE}", "--clear-groups", "--no-new-privs"),
            *(f"--inh-caps={held}", f"--ambient-caps={held}", f"--bounding-set={held}"),
            *(str(COMMAND), *arguments),
        ]  # fmt: skip

    def agent(self, *arguments: str, capabilities: Sequence[str] = tuple(GRANTED)) -> Watching:
        """Start it and wait until it watches."""
        talk = self.box.folder / f"service-{len(self._running)}.txt"
        command = ("agent", "--interval", "500ms", "--flush", "500ms", *arguments)
        with talk.open("wb") as stream:
            process = subprocess.Popen(
                self.command(*command, capabilities=capabilities),
                env={**self.box.environment(), "GPULEDGER_AGENT_WATCH": "auto"},
                cwd=self.box.folder,
                stderr=stream,
            )
        self._running.append(process)
        watching = Watching(process, talk, command)
        watching.says("watching")
        return watching

    def ask(self, *arguments: str, capabilities: Sequence[str] = tuple(GRANTED)) -> str:
        """What the command prints to that user."""
        command = self.command(*arguments, capabilities=capabilities)
        done = subprocess.run(command, env=self.box.environment(), cwd="/", capture_output=True, text=True, check=False)
        assert "Traceback" not in done.stderr, done.stderr
        return done.stdout

    def job(self, user: int, name: str, *, us: int = INSTANT_US) -> int:
        """A user's job of a few milliseconds, to its end."""
        command = [self._worker, "use", str(self.node), str(us), name]
        job = subprocess.Popen(
            command, env=self.box.environment(), cwd=self.box.folder, user=user, group=user, extra_groups=[]
        )
        assert job.wait() == 0
        return job.pid

    def holder(self, *arguments: str) -> subprocess.Popen[Any]:
        """A process of root's that has the node open."""
        command = [sys.executable, "-S", "-E", "-c", HOLDER, str(self.node), *arguments]
        process = subprocess.Popen(
            command, cwd=self.box.folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self._running.append(process)
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        return process

    def close(self) -> None:
        """End what still runs."""
        for process in self._running:
            if process.poll() is None:
                process.send_signal(signal.SIGKILL)
            process.wait()
            for stream in (process.stdin, process.stdout):
                if stream is not None:
                    stream.close()


@pytest.fixture
def service(libraries: Path, worker: Path) -> Iterator[Service]:
    """A machine with one accounted GPU, in a folder that others may enter: the tests' own they may not."""
    need(os.geteuid() == 0, "kernel events, device nodes and other users need root")
    folder = Path(tempfile.mkdtemp(prefix="gpuledger-service-"))
    folder.chmod(0o755)
    shutil.copytree(libraries, folder / "libraries")
    (folder / "libraries").chmod(0o755)
    box = Box(folder, folder / "libraries")
    box.driver.add_gpu(GPU, accounting=True)
    for place in (folder / "driver", folder / "home"):
        place.chmod(0o777)
    Path(f"{box.driver.state}.lock").chmod(0o666)
    os.chown(box.ledger.parent, SERVICE, SERVICE)
    made = Service(box, worker)
    yield made
    made.close()
    box.close()
    shutil.rmtree(folder)


def told(box: Box, word: str) -> list[IdentityText]:
    """What is known of the process whose command line ends with this word, program after program."""
    query = "SELECT p.pid, p.exec_number, t.json FROM process_identity p JOIN identity_text t USING (text_key)"
    rows = [(pid, number, json.loads(text)) for pid, number, text in box.sql(query)]
    return [
        IdentityText(**text) for _, _, text in sorted(rows, key=itemgetter(0, 1)) if word in text["command"].split()
    ]


def rights(pid: int) -> dict[str, set[str]]:
    """A living process's capability sets, by their names in proc(5)."""
    masks = re.findall(r"^Cap(\w+):\s*([0-9a-f]+)$", Path(f"/proc/{pid}/status").read_text(), re.MULTILINE)
    names = {number: name for name, number in CAPABILITIES.items()}
    return {kind: {names.get(bit, str(bit)) for bit in range(64) if int(mask, 16) >> bit & 1} for kind, mask in masks}


def test_with_the_units_capabilities_every_user_is_named_whole(service: Service) -> None:
    """Jobs of 5 ms by two users and a root process that was there before: executable, command, place, user, cgroup."""
    box = service.box
    old = service.holder("was-there-before")
    box.driver.start(old.pid, GPU)
    agent = service.agent()

    held = rights(agent.pid)
    assert all(held[kind] == set(GRANTED) for kind in ("Inh", "Prm", "Eff", "Bnd", "Amb")), held
    status = Path(f"/proc/{agent.pid}/status").read_text()
    assert "NoNewPrivs:\t1\n" in status
    assert f"Uid:\t{SERVICE}\t{SERVICE}\t{SERVICE}\t{SERVICE}\n" in status
    assert "by kernel events (eBPF)" in agent.talk

    for number in range(20):
        service.job(ALICE if number % 2 else BOB, f"job-{number}")
    box.settled(20)
    box.looks_again()
    assert rights(agent.pid) == held
    agent.stop().must(0)

    for number in range(20):
        (job,) = {text for text in told(box, f"job-{number}") if text.exe.endswith("/worker")}
        uid = str(ALICE if number % 2 else BOB)
        assert (job.exe, job.cwd, job.uid) == (str(box.folder / "worker"), str(box.folder), uid)
        assert job.command.endswith(f"job-{number}")
        assert (job.user, job.cgroup) == (f"uid:{uid}", own_cgroup())
    (before,) = set(told(box, "was-there-before"))
    assert (before.exe, before.cwd) == (os.path.realpath(sys.executable), str(box.folder))
    assert (before.uid, before.user, before.cgroup) == ("0", "root", own_cgroup())
    (usage,) = box.read("usage --by subject")
    assert usage["unattributed"]["quantity"] == 0
    assert box.ledger.stat().st_mode & 0o777 == 0o640
    assert box.ledger.stat().st_uid == SERVICE


def test_the_service_user_is_told_so_by_doctor(service: Service) -> None:
    """Asked with the unit's capabilities, doctor says that every process is named; with none, which are missing."""
    verdicts = dict(reversed(line.split()[:2]) for line in service.ask("doctor").splitlines() if line[:1].islower())
    assert (verdicts["pid-namespace"], verdicts["proc"], verdicts["naming"]) == ("ok", "ok", "ok")
    without = " ".join(service.ask("doctor", capabilities=()).split())
    assert "but for their exe, cwd" in without
    assert "not by ebpf: kernel programs may not be loaded: CAP_BPF, CAP_PERFMON and CAP_NET_ADMIN missing" in without


@pytest.mark.parametrize("left_out", GRANTED)
def test_each_capability_is_needed_and_missed_by_name(service: Service, left_out: str) -> None:
    """Without one of them the agent takes the next way of naming, says which is missing, and writes it down."""
    agent = service.agent(capabilities=[name for name in GRANTED if name != left_out])
    assert rights(agent.pid)["Eff"] == set(GRANTED) - {left_out}
    why = f"not by ebpf: kernel programs may not be loaded: {left_out} missing"
    assert why in agent.talk
    if left_out != "CAP_NET_ADMIN":  # from Linux 6.6 on the connector is there without it
        assert "process connector" in agent.talk.partition("watching")[2]
    assert "eBPF" not in agent.talk
    service.box.looks_again()
    agent.stop().must(0)
    assert service.box.sql("SELECT 1 FROM watch WHERE source = 'process' AND instr(detail, ?)", why)


def own_cgroup() -> str:
    """The cgroup of this process, and so of what it starts, as an identity has it."""
    reading = procfs.read_identity(os.getpid())
    assert isinstance(reading, procfs.ProcessReading)
    return reading.text.cgroup
