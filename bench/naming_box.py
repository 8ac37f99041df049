"""A box for the naming race: a fake driver, device nodes, a crowd of short-lived jobs, and agents beside each other.

In: a folder. Out: what lived (:class:`Life`, written down by who started it), and ledgers of who watched.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from busy_box import RING, ROOT, FakeDriver, build, now_us

NVIDIA_MAJOR = 195
HOST = "bench"
GPULEDGER = shutil.which("gpuledger", path=str(Path(sys.executable).parent)) or "gpuledger"
STARTED_WITHIN_S = 60
JOB = "job"
"""The executable of the crowd."""


@dataclass(frozen=True, slots=True)
class Life:
    """One process of the crowd, as who started it knows.

    Args:
        word: stands in its command line and in no other.
        pid: of it.
        began_us, ended_us: wall clock, before its start and after its end.
        gpu: UUID of the device it opened.
    """

    word: str
    pid: int
    began_us: int
    ended_us: int
    gpu: str


class Agent:
    """One ``gpuledger agent`` with a ledger of its own.

    Args:
        name: of its ledger.
        process: it runs; None where it is started again and again, as by cron.
    """

    def __init__(self, name: str, ledger: Path, talk: Path, process: subprocess.Popen[bytes] | None) -> None:
        self.name = name
        self.ledger = ledger
        self._talk = talk
        self.process = process

    @property
    def talk(self) -> str:
        """What it has said."""
        return self._talk.read_text(errors="replace") if self._talk.exists() else ""

    def children(self) -> list[int]:
        """Processes that read beside it."""
        assert self.process is not None
        told = Path(f"/proc/{self.process.pid}/task").glob("*/children")
        return [int(pid) for one in told for pid in one.read_text().split()]

    def cpu(self) -> tuple[float, float]:
        """User and system seconds of it and of its children so far, in ticks of the kernel (mostly 10 ms)."""
        assert self.process is not None
        spent = [cpu_split(pid) for pid in (self.process.pid, *self.children())]
        return sum(user for user, _ in spent), sum(system for _, system in spent)

    def stop(self) -> None:
        """End it as a person would."""
        if self.process is None:
            return
        if self.process.poll() is not None:
            sys.exit(f"{self.name} ended by itself: {self.talk[-2000:]}")
        self.process.send_signal(signal.SIGTERM)
        if self.process.wait(timeout=120):
            sys.exit(f"{self.name} ended with {self.process.returncode}: {self.talk[-2000:]}")


def cpu_split(pid: int) -> tuple[float, float]:
    """User and system seconds of a process."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    ticks = os.sysconf("SC_CLK_TCK")
    return int(fields[11]) / ticks, int(fields[12]) / ticks


class NamingBox:
    """The box.

    Args:
        folder: for all it keeps.
        gpus: how many; the crowd is spread over them, so that no ring of 128 rows turns over between two looks.
    """

    def __init__(self, folder: Path, *, gpus: int) -> None:
        self.folder = folder
        folder.mkdir(exist_ok=True)
        self.gpus = tuple(f"GPU-{number:08x}-0000-4000-8000-000000000000" for number in range(gpus))
        # a real driver keeps its state in memory, and so does this one: a change on a disk takes twice as long
        self._memory = tempfile.TemporaryDirectory(prefix="gpuledger-bench-", dir="/dev/shm")
        self.driver = FakeDriver(Path(self._memory.name) / "state", build(folder.parent / "libraries"), root=True)
        for number, uuid in enumerate(self.gpus):
            self.driver.add_gpu(uuid, accounting=True)
            os.mknod(folder / f"nvidia{number}", 0o020666, os.makedev(NVIDIA_MAJOR, number))
            for row in range(RING):
                at_us = now_us() - (RING - row) * 60_000_000
                self.driver.add_finished(3_000_000 + row, uuid, started_at_us=at_us, context_ms=20_000)
        self._job = self._compiled(ROOT / "tests" / "e2e" / "worker.c", JOB, "-ldl")
        self._crowd = self._compiled(ROOT / "bench" / "crowd.c", "crowd")
        self._agents: list[Agent] = []

    @property
    def environment(self) -> dict[str, str]:
        """What everybody is started with."""
        return {**os.environ, **self.driver.environment(), "GPULEDGER_HOST": HOST}

    # The crowd

    def one_by_one(self, word: str, count: int, *, per_second: float, us: int) -> tuple[list[Life], float]:
        """Jobs with a context each, at a steady rate. Returns them, and the seconds it took."""
        nodes = str(self.folder / "nvidia")
        return self._run("rate", word, count, str(per_second), str(len(self.gpus)), nodes, str(self._job), str(us))

    def waves(self, word: str, count: int, *, at_once: int, opening: bool) -> tuple[list[Life], float]:
        """As many alive as told, ending together, again and again; ``opening`` the first GPU's node, or no node.

        The driver knows of their contexts, except where the box has no driver to tell.
        """
        node = str(self.folder / "nvidia0") if opening else "-"
        return self._run("waves", word, count, str(at_once), node)

    def _run(self, how: str, word: str, count: int, *more: str) -> tuple[list[Life], float]:
        truth = self.folder / f"truth-{word}"
        command = [str(self._crowd), how, str(truth), word, str(count), *more]
        done = subprocess.run(command, env=self.environment, stdout=subprocess.PIPE, text=True, check=True)
        seconds, failed = done.stdout.split()
        if int(failed):
            sys.exit(f"{failed} of {count} jobs failed")
        lives = []
        for number, line in enumerate(truth.read_text().splitlines()):
            name, pid, began_us, ended_us = line.split()
            gpu = self.gpus[number % len(self.gpus) if how == "rate" else 0]
            lives.append(Life(name, int(pid), int(began_us), int(ended_us), gpu))
        return lives, float(seconds)

    def _compiled(self, source: Path, name: str, *more: str) -> Path:
        program = self.folder / name
        flags = ("-std=gnu11", "-O2", "-Wall", "-Wextra")
        subprocess.run(["gcc", *flags, "-o", str(program), str(source), *more], check=True)
        return program

    # Who watches

    def agent(self, name: str, *words: str, program: tuple[str, ...] = (GPULEDGER, "agent")) -> Agent:
        """Start an agent, and wait until it watches; ``program`` is what takes its words."""
        talk = self.folder / f"{name}.txt"
        ledger = self.folder / f"{name}.db"
        command = [*program, *words, "--ledger", str(ledger)]
        with talk.open("wb") as stream:
            process = subprocess.Popen(command, env=self.environment, stdout=stream, stderr=stream)
        agent = Agent(name, ledger, talk, process)
        self._agents.append(agent)
        until = time.monotonic() + STARTED_WITHIN_S
        while "watching" not in agent.talk and time.monotonic() < until and process.poll() is None:
            time.sleep(0.05)
        if process.poll() is not None or "watching" not in agent.talk:
            sys.exit(f"{name} does not watch: {agent.talk[-2000:]}")
        return agent

    def ledger_of_cron(self, name: str) -> Agent:
        """A ledger that :meth:`look` writes to."""
        return Agent(name, self.folder / f"{name}.db", self.folder / f"{name}.txt", None)

    def look(self, agent: Agent, *words: str) -> subprocess.Popen[bytes]:
        """One look, as cron does it; runs beside us."""
        command = [GPULEDGER, "agent", "--once", "--quiet", *words, "--ledger", str(agent.ledger)]
        return subprocess.Popen(command, env=self.environment)

    def read(self, agent: Agent, *words: str) -> Any:
        """What a reading verb says of a ledger."""
        command = [GPULEDGER, *words, "--ledger", str(agent.ledger), "--format", "json"]
        done = subprocess.run(command, env=self.environment, capture_output=True, text=True, check=False)
        if done.returncode not in (0, 3):
            sys.exit(f"gpuledger {' '.join(words)}: {done.stderr[-2000:]}")
        return json.loads(done.stdout)

    def close(self) -> None:
        """End what still runs."""
        for agent in self._agents:
            if agent.process is not None and agent.process.poll() is None:
                agent.process.kill()
                agent.process.wait()
        self._memory.cleanup()
