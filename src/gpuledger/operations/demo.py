"""``demo``: an agent over a simulated driver and real processes, on any machine; about 20 seconds.

The driver is simulated behind the very seam of NVML; the processes are real children, named by
reading the real /proc; the ledger, the metering and the answers are the product's own.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from gpuledger.clock import Clock
from gpuledger.ledger.store import Ledger
from gpuledger.model.blind import BlindReport
from gpuledger.model.moments import HOUR_US, MINUTE_US, hour_floor
from gpuledger.model.outcomes import MeterReport
from gpuledger.model.usage import UsageReport
from gpuledger.operations.agent import Agent, AgentPlan
from gpuledger.operations.apply import apply
from gpuledger.operations.blind import blind
from gpuledger.operations.meter import meter
from gpuledger.operations.usage import usage
from gpuledger.operations.verify import verify
from gpuledger.sources.nvml import NvmlSource
from gpuledger.sources.simulated import SimulatedDriver
from gpuledger.sources.watchers import PollWatcher

GPU_CHAT = "GPU-c4a70000-de30-4000-8000-000000000001"
GPU_BATCH = "GPU-ba7c0000-de30-4000-8000-000000000002"
INTERVAL_US = 1_000_000

_SCRIPT = "import sys, time\ntime.sleep(float(sys.argv[1]))\n"
_POLICY = """\
# what the demo applies: names for its own scripts
services:
  - {service: chat-model, team: home, match: {command: "chat_model\\\\.py"}}
  - {service: speech-to-text, team: home, match: {command: "transcribe\\\\.py"}}
  - {service: notebook, team: research, match: {command: "notebook\\\\.py"}}
  - {service: thumbnails, team: photos, match: {command: "thumbnail\\\\.py"}}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoReport:
    """What the demo ends with.

    Args:
        ledger: where the ledger lies (gone afterwards unless kept).
        metered: the pass that closed the demo's hours.
        usage, blind: the answers over those hours.
        sound: whether ``verify`` found nothing.
        root: the latest seal's root.
    """

    ledger: str
    metered: MeterReport
    usage: UsageReport
    blind: BlindReport
    sound: bool
    root: str


@dataclass(slots=True)
class _Stage:
    """The machine of the demo: scripts on disk, children, and the driver that they open."""

    folder: Path
    clock: Clock
    driver: SimulatedDriver
    began: float = field(default_factory=time.monotonic)
    children: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    places: dict[str, str] = field(default_factory=dict)

    def start(self, name: str, script: str, device: str, memory_mib: int, percent: int = 0) -> None:
        path = self.folder / script
        if not path.exists():
            path.write_text(_SCRIPT, encoding="utf-8")
        child = subprocess.Popen([sys.executable, str(path), "60", name], close_fds=True)  # noqa: S603 - our own script
        self.children[name], self.places[name] = child, device
        _wait_for_exec(child.pid, script)
        self.driver.start(child.pid, device, memory_mib, self.clock.now_us())
        if percent:
            self.driver.work(child.pid, device, percent)

    def stop(self, name: str) -> None:
        child = self.children.pop(name)
        child.kill()
        child.wait()
        self.driver.finish(child.pid, self.places.pop(name), self.clock.now_us())

    def at(self, second: float) -> None:
        """Wait until this second of the demo."""
        time.sleep(max(0.0, self.began + second - time.monotonic()))

    def clear(self) -> None:
        for name in list(self.children):
            self.stop(name)


def demo(
    open_ledger: Callable[[], Ledger], folder: Path, *, clock: Clock, host: str, talk: Callable[[str], None]
) -> DemoReport:
    """Play the demo into a ledger and answer from it.

    Args:
        open_ledger: opens the demo's ledger for appending.
        folder: an empty folder for its scripts and policy.
        clock: the machine's own.
        host: name of this machine.
        talk: tells the story while it happens.
    """
    driver = SimulatedDriver(clock.now_us)
    driver.add_gpu(GPU_CHAT, product="NVIDIA GeForce RTX 4090", memory_mib=24564)
    driver.add_gpu(GPU_BATCH, product="NVIDIA L4", memory_mib=23034)
    stage = _Stage(folder=folder, clock=clock, driver=driver)
    policy = folder / "policy.yaml"
    policy.write_text(_POLICY, encoding="utf-8")
    apply(open_ledger, policy, now_us=clock.now_us(), writer=f"{host}.policy")
    began_us = clock.now_us()
    try:
        with open_ledger() as ledger:
            _play(stage, ledger, clock=clock, host=host, talk=talk)
            ended_us = clock.now_us()
            return _answer(ledger, began_us=began_us, ended_us=ended_us, host=host)
    finally:
        stage.clear()


def _play(stage: _Stage, ledger: Ledger, *, clock: Clock, host: str, talk: Callable[[str], None]) -> None:
    """The story runs beside the agent: a ledger stays in the thread that opened it."""
    _prelude(stage, talk)
    ended = threading.Event()
    failures: list[BaseException] = []
    story = threading.Thread(target=_tell, args=(stage, talk, ended, failures), name="story")
    agent = Agent(
        ledger=ledger,
        source=NvmlSource(stage.driver, method="simulated"),
        watcher=PollWatcher(clock=clock),
        clock=clock,
        plan=AgentPlan(
            host=host, boot_id="demo", interval_us=INTERVAL_US, flush_us=2 * INTERVAL_US, enable_accounting=True
        ),
        talk=lambda sentence: talk(f"      agent: {sentence}"),
        stopping=ended.is_set,
    )
    story.start()
    try:
        agent.run()
    finally:
        ended.set()
        story.join()
    if failures:
        raise failures[0]


def _prelude(stage: _Stage, talk: Callable[[str], None]) -> None:
    talk(" 0 s  a notebook holds the L4 already; only now is accounting enabled, so the driver will never list it")
    stage.start("notebook", "notebook.py", GPU_BATCH, 2200, 30)
    _enable(stage.driver)
    stage.start("early", "backup_index.py", GPU_CHAT, 900)
    stage.at(0.6)
    stage.stop("early")
    talk(" 1 s  a job has come and gone before anybody looks; now the agent starts, one look a second")


def _tell(stage: _Stage, talk: Callable[[str], None], ended: threading.Event, failures: list[BaseException]) -> None:
    try:
        _story(stage, talk)
    except BaseException as error:  # noqa: BLE001 - carried to the main thread, which raises it
        failures.append(error)
    finally:
        ended.set()


def _story(stage: _Stage, talk: Callable[[str], None]) -> None:
    stage.at(1.3)
    stage.start("chat 1", "chat_model.py", GPU_CHAT, 14_300, 45)
    talk(" 2 s  the chat model is resident; transcriptions come and go; thumbnails take 0.3 s each")
    _busy_seconds(stage, 2, 9)
    stage.at(9.6)
    stage.stop("chat 1")
    stage.driver.reload()
    talk("10 s  the driver is reloaded: accounting is off and its rows are gone; the chat model comes back")
    stage.start("chat 2", "chat_model.py", GPU_CHAT, 14_300, 45)
    stage.at(11.2)
    stage.stop("chat 2")
    stage.start("chat 3", "chat_model.py", GPU_CHAT, 14_300, 60)
    _busy_seconds(stage, 12, 17)
    stage.at(18.2)
    talk("18 s  the agent stops; the chat model and the notebook still run")


def _busy_seconds(stage: _Stage, first: int, last: int) -> None:
    """Every second a thumbnail of 0.3 s; every other second a transcription of 1.4 s."""
    running = ""
    for second in range(first, last):
        stage.at(second + 0.05)
        if second % 2 == 0:
            running = f"transcription {second}"
            stage.start(running, "transcribe.py", GPU_BATCH, 3100, 80)
        shift = 0.1 * (second % 4)  # against the agent's beat: some fall between two looks, some do not
        stage.at(second + 0.25 + shift)
        stage.start("thumbnail", "thumbnail.py", GPU_BATCH, 310)
        stage.at(second + 0.55 + shift)
        stage.stop("thumbnail")
        if second % 2 == 1 and running:
            stage.stop(running)
            running = ""
    if running:
        stage.at(last + 0.5)
        stage.stop(running)


def _answer(ledger: Ledger, *, began_us: int, ended_us: int, host: str) -> DemoReport:
    """Close the demo's hours as if it were later, then ask."""
    since_us = hour_floor(began_us)
    until_us = hour_floor(ended_us) + HOUR_US
    later_us = until_us + 6 * MINUTE_US
    metered = meter(ledger, now_us=later_us, writer=f"{host}.meter")
    ledger.seal(later_us, writer=f"{host}.meter")
    checked = verify(ledger, now_us=later_us)
    return DemoReport(
        ledger=str(ledger.place),
        metered=metered,
        usage=usage(
            ledger, meter="gpu.context", by=("service", "user"), since_us=since_us, until_us=until_us, now_us=later_us
        ),
        blind=blind(ledger, since_us=since_us, until_us=until_us, now_us=later_us),
        sound=checked.ok,
        root=checked.root,
    )


def _enable(driver: SimulatedDriver) -> None:
    for index in range(driver.nvmlDeviceGetCount()):
        driver.nvmlDeviceSetAccountingMode(driver.nvmlDeviceGetHandleByIndex(index), 1)


def _wait_for_exec(pid: int, script: str) -> None:
    """A child is itself once its command line says so; a fork still carries ours."""
    path = f"/proc/{pid}/cmdline"
    for _ in range(500):
        with open(path, "rb") as stream:  # noqa: PTH123 - a pseudo file, read often
            if os.fsencode(script) in stream.read():
                return
        time.sleep(0.002)
