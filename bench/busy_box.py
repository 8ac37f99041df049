"""A box for the agent's race: a fake driver with 8 GPUs, full rings, 50 living processes that come and go."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests" / "fake_driver"))

from fake_driver import RING, FakeDriver, build, now_us  # noqa: E402 - the tests' driver, found beside the benches

GPUS = tuple(f"GPU-{number:08x}-0000-4000-8000-000000000000" for number in range(8))
LIVING = 50


class BusyBox:
    """Real processes on a fake driver.

    Args:
        folder: for the libraries and the state.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.driver = FakeDriver(folder / "state", build(folder / "libraries"), root=True)
        self._chance = random.Random(7)
        self._living: list[tuple[subprocess.Popen[bytes], str]] = []
        self._born = 0
        for uuid in GPUS:
            self.driver.add_gpu(uuid, accounting=True)
        for uuid in GPUS:
            for number in range(RING):
                at_us = now_us() - (RING - number) * 60_000_000
                self.driver.add_finished(3_000_000 + number, uuid, started_at_us=at_us, context_ms=20_000, percent=3)
        for _ in range(LIVING):
            self.birth()

    def birth(self) -> None:
        """One more process, on the next GPU; every other one works."""
        process = subprocess.Popen(["sleep", "1000000"])
        uuid = GPUS[self._born % len(GPUS)]
        self.driver.start(process.pid, uuid, 200 + self._born % 4000)
        if self._born % 2:
            self.driver.work(process.pid, uuid, self._chance.randrange(1, 100))
        self._living.append((process, uuid))
        self._born += 1

    def death(self) -> None:
        """The oldest process ends."""
        process, uuid = self._living.pop(0)
        process.terminate()
        process.wait()
        self.driver.finish(process.pid, uuid)

    def churn(self) -> None:
        """One goes, one comes."""
        self.death()
        self.birth()

    def close(self) -> None:
        """End all of them."""
        for process, _ in self._living:
            process.kill()
            process.wait()

    def settle(self) -> None:
        """Let the last state file be older than the looks to come."""
        time.sleep(0.2)
