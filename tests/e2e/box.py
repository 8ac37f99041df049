"""One machine as the end-to-end tests see it: the installed command, the fake driver, jobs, and a ledger.

In: a folder and the built libraries. Out: what the command prints and its exit status, always checked for
a traceback; and a few rows of the ledger, read as any other tool would, to know when to go on.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any
from unittest import mock

from e2e.machine import NOBODY, PATIENCE_S, Clock, Job, eventually
from fake_driver.fake_driver import FakeDriver
from gpuledger.cli.main import main
from gpuledger.model.moments import iso

COMMAND = Path(sys.executable).with_name("gpuledger")
GPU = "GPU-11111111-2222-3333-4444-555555555555"
OTHER_GPU = "GPU-66666666-7777-8888-9999-aaaaaaaaaaaa"
HOST = "box"

# The interpreter can lie in a folder that others may not enter. So everything is imported by a first run, and
# then the rights are given up for good before the run that counts.
_AS_NOBODY = f"""
import contextlib, encodings.ascii, io, os, sys
from gpuledger.cli.main import main
words, warm = sys.argv[2:], sys.argv[1]
import gpuledger.cli.top, gpuledger.operations.usage, gpuledger.ledger.migrate, sqlalchemy.dialects.sqlite, zoneinfo
with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
    for verb in (["usage"], ["usage", "--format", "json"], ["journal"], ["smi"], ["forget", "--user", "nobody"]):
        with contextlib.suppress(SystemExit):
            main([*verb, "--ledger", warm])
os.setgroups([])
os.setresgid({NOBODY}, {NOBODY}, {NOBODY})
os.setresuid({NOBODY}, {NOBODY}, {NOBODY})
main(words)
"""


class Answer:
    """What one run of the command left."""

    def __init__(self, words: tuple[str, ...], status: int, stdout: str, stderr: str) -> None:
        self.words = words
        self.status = status
        self.stdout = stdout
        self.stderr = stderr

    @property
    def json(self) -> Any:
        """Its answer, printed with ``--format json``."""
        return json.loads(self.stdout)

    def must(self, status: int) -> Answer:
        """The answer, once its status is seen to be the expected one, and no bug shows."""
        told = f"gpuledger {' '.join(self.words)}: {self.status}\n{self.stdout}\n{self.stderr}"
        assert "Traceback" not in self.stderr, told
        assert self.status == status, f"expected {status}; {told}"
        return self


class Watching:
    """An agent that runs."""

    def __init__(self, process: subprocess.Popen[bytes], talk: Path, words: tuple[str, ...]) -> None:
        self._process = process
        self._talk = talk
        self._words = words
        self.pid = process.pid

    @property
    def talk(self) -> str:
        """What it has said so far."""
        return self._talk.read_text()

    def says(self, words: str) -> None:
        """Wait until it says this."""
        eventually(lambda: words in self.talk or not self.runs, f"the agent says {words!r}")
        assert words in self.talk, f"the agent ended ({self._process.returncode}): {self.talk}"

    @property
    def runs(self) -> bool:
        """Whether it has not ended by itself."""
        return self._process.poll() is None

    def stop(self, number: int = signal.SIGTERM) -> Answer:
        """End it by a signal."""
        if self.runs:
            self._process.send_signal(number)
        self._process.wait(timeout=PATIENCE_S)
        return Answer(self._words, self._process.returncode, "", self.talk)


class Box:
    """One machine.

    Args:
        folder: everything it keeps.
        libraries: the fake driver's, and the clock's.
    """

    def __init__(self, folder: Path, libraries: Path) -> None:
        self.folder = folder
        for name in ("driver", "jobs", "home", "ledger"):
            (folder / name).mkdir()
        self.ledger = folder / "ledger" / "ledger.db"
        self.driver = FakeDriver(folder / "driver" / "state", libraries)
        self.clock = Clock(folder / "clock", libraries / "libclock.so")
        self._jobs: list[Job] = []
        self._agents: list[Watching] = []

    def close(self) -> None:
        """End everything that still runs."""
        for agent in self._agents:
            agent.stop(signal.SIGKILL)
        for job in self._jobs:
            job.end()

    # The command

    def environment(self) -> dict[str, str]:
        """What the command is started with."""
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(self.folder / "home"),
            "LC_ALL": "C.UTF-8",
            "COLUMNS": "130",
            "GPULEDGER_HOST": HOST,
            "GPULEDGER_LEDGER": str(self.ledger),
            "GPULEDGER_AGENT_WATCH": "poll",  # what hears of the whole machine is for the tests that ask for it
            **self.driver.environment(),
            **self.clock.environment(),
        }

    def begin(self, *words: str, **variables: str) -> subprocess.Popen[str]:
        """Start the command without waiting for it."""
        return subprocess.Popen(
            [str(COMMAND), *words],
            env={**self.environment(), **variables},
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, *words: str, status: int = 0, **variables: str) -> Answer:
        """Run the command to its end; its exit status must be ``status``."""
        return finished(self.begin(*words, **variables), words).must(status)

    def together(self, *commands: tuple[str, ...]) -> list[Answer]:
        """Run several commands at once; statuses are the caller's to check."""
        started = [(self.begin(*words), words) for words in commands]
        return [finished(process, words) for process, words in started]

    def ask(self, *words: str, status: int | None = 0) -> Answer:
        """Ask the command line in this process, as of the machine's clock: the start of an interpreter costs half a
        second, and where a test asks twenty times of one ledger it is not the start that is tested.

        Args:
            words: of a verb that reads, or of wrong usage.
            status: which it must end with; None leaves that to the caller.
        """
        out, err = io.StringIO(), io.StringIO()
        with (
            mock.patch.dict(os.environ, {name: text for name, text in self.environment().items() if name[:3] != "LD_"}),
            contextlib.chdir(self.folder),
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(err),
        ):
            try:
                main(["--now", iso(self.clock.now_us()), *words])
            except SystemExit as ended:
                answer = Answer(words, int(ended.code or 0), out.getvalue(), err.getvalue())
        return answer.must(answer.status if status is None else status)

    def read(self, *commands: str, status: int = 0) -> list[Any]:
        """Ask several reading commands, each a line, and give what they print as JSON."""
        return [self.ask(*command.split(), "--format", "json", status=status).json for command in commands]

    def as_nobody(self, *words: str, status: int = 0) -> Answer:
        """Run the command as a user who owns nothing. Needs root."""
        warm = self.folder / "warm.db"
        if not warm.exists():
            warm.write_bytes(self.ledger.read_bytes())
        command = [sys.executable, "-c", _AS_NOBODY, str(warm), *words]
        done = subprocess.run(
            command, env=self.environment(), cwd="/", capture_output=True, text=True, timeout=PATIENCE_S, check=False
        )
        return Answer(words, done.returncode, done.stdout, done.stderr).must(status)

    def agent(self, *words: str, interval: str = "200ms", **variables: str) -> Watching:
        """Start an agent and wait until it watches."""
        talk = self.folder / f"agent-{len(self._agents)}.txt"
        command = ("agent", "--interval", interval, "--flush", "400ms", *words)
        with talk.open("wb") as stream:
            process = subprocess.Popen(
                [str(COMMAND), *command], env={**self.environment(), **variables}, cwd=self.folder, stderr=stream
            )
        watching = Watching(process, talk, command)
        self._agents.append(watching)
        watching.says("watching")
        return watching

    def look(self, interval: str = "60s", *words: str) -> Answer:
        """One look, as cron does it."""
        return self.run("agent", "--once", "--interval", interval, *words)

    # The world

    def job(self, name: str, *arguments: str, pid: int | None = None) -> Job:
        """Start a process that is named by its script."""
        job = Job(self.folder / "jobs" / name, *arguments, pid=pid)
        self._jobs.append(job)
        return job

    def opens(
        self, job: Job, gpu: str = GPU, memory_mib: int | None = 184, *, instance: tuple[int, int] | None = None
    ) -> int:
        """A job opens a device now; returns when, microseconds UTC."""
        at_us = self.clock.now_us()
        self.driver.start(job.pid, gpu, memory_mib, at_us=at_us, instance=instance)
        return at_us

    def closes(self, job: Job, gpu: str = GPU, *, at_us: int | None = None) -> int:
        """A job closes a device, by default now; returns its context time as the driver settles it, ms."""
        self.driver.finish(job.pid, gpu, at_us=self.clock.now_us() if at_us is None else at_us)
        return int(next(row for row in self.dead(gpu) if row[2] == str(job.pid))[4])

    def closes_unaccounted(self, job: Job, gpu: str = GPU) -> None:
        """A job closes a device whose accounting is off: the driver keeps nothing of it."""
        self.driver.finish(job.pid, gpu)

    def dead(self, gpu: str = GPU) -> list[list[str]]:
        """The finished rows that the driver holds: kind, gpu, pid, start, ms, bytes, percent, percent."""
        return [line for line in self.driver.lines() if line[:2] == ["dead", gpu]]

    # The ledger, as another tool reads it

    def sql(self, query: str, *values: object) -> list[tuple[Any, ...]]:
        """Rows of the ledger; none while there is no table yet."""
        if not self.ledger.exists():
            return []
        with closing(sqlite3.connect(f"file:{self.ledger}?mode=ro", uri=True, timeout=PATIENCE_S)) as connection:
            try:
                return connection.execute(query, values).fetchall()
            except sqlite3.OperationalError as error:
                if "no such table" in str(error):
                    return []
                raise

    def named(self, *jobs: Job) -> None:
        """Wait until the agent has written who these are."""
        for job in jobs:
            eventually(
                lambda job=job: (
                    self.sql("SELECT 1 FROM process_identity WHERE pid = ?", job.pid)
                    and self.sql("SELECT 1 FROM identity_text WHERE instr(json, ?)", str(job.script))
                ),
                f"{job.name} is named",
            )

    def settled(self, count: int) -> None:
        """Wait until the agent has written this many finished rows in all."""
        eventually(lambda: self.sql("SELECT count(*) FROM driver_record") == [(count,)], f"{count} finished rows")

    def looked(self) -> None:
        """Wait until the agent has written its first look at the driver."""
        eventually(lambda: self.sql("SELECT 1 FROM watch WHERE source = 'driver'"), "the first look is written")

    def looks_again(self) -> None:
        """Wait until the agent has looked at the driver twice more, and written that."""
        seen = "SELECT max(until_us) FROM watch"
        before = self.sql(seen)
        eventually(lambda: self.sql(seen) != before, "a look is written")
        after = self.sql(seen)
        eventually(lambda: self.sql(seen) != after, "one more look is written")


def finished(process: subprocess.Popen[str], words: tuple[str, ...]) -> Answer:
    """Wait for a command."""
    stdout, stderr = process.communicate(timeout=2 * PATIENCE_S)
    return Answer(words, process.returncode, stdout, stderr)


def short(report: Any, key: str = "service") -> dict[str, int]:
    """The rows of ``usage``: quantity by name, scripts by their file's name."""
    rows = {_short(row[key]): row["quantity"] for row in report["rows"]}
    assert len(rows) == len(report["rows"]), report["rows"]
    return rows


def _short(name: str) -> str:
    found = re.fullmatch(r"script:\S*/(\S+) by \S+", name)
    return found[1] if found else name


def sums_up(report: Any) -> None:
    """The law of every answer: total = rows + unattributed, and unattributed = its causes."""
    unnamed = report["unattributed"]
    assert unnamed["quantity"] == sum(unnamed["causes"].values())
    assert report["total"] == sum(row["quantity"] for row in report["rows"]) + unnamed["quantity"]


def reasons(report: Any) -> set[str]:
    """Why time is unknown in a report."""
    return {span["reason"] for span in report["unknown"]}
