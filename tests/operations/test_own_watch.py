"""Who looks while a command runs: this process where nobody else does, and nobody where there is no driver."""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gpuledger.clock import SystemClock
from gpuledger.errors import Unavailable
from gpuledger.ledger.store import Ledger
from gpuledger.model.receipt import Watcher
from gpuledger.model.rows import Seal, Watch
from gpuledger.operations.agent import OneAgent
from gpuledger.operations.own_watch import OwnWatch, WatchPlan, _clear
from gpuledger.operations.pulse import Pulse, hear
from gpuledger.sources.nvml import NvmlSource
from gpuledger.sources.simulated import SimulatedDriver

GPU = "GPU-11111111-2222-3333-4444-555555555555"


def simulated(talk: Callable[[str], None]) -> Any:
    """A driver with one GPU."""
    driver = SimulatedDriver(SystemClock().now_us)
    driver.add_gpu(GPU, product="NVIDIA L4", memory_mib=23034, accounting=True)
    return NvmlSource(driver, method="simulated")


def no_driver(talk: Callable[[str], None]) -> Any:
    raise Unavailable("driver-unreachable", "no driver here", hint="gpuledger doctor")


def watch_of(place: Path, find_source: Any = simulated, **words: Any) -> OwnWatch:
    """A watch of a ledger, every 20 ms."""
    given: dict[str, Any] = {
        "ledger": place, "host": "box", "interval_us": 20_000, "flush_us": 60_000_000, "method": "poll",
    }  # fmt: skip
    return OwnWatch(WatchPlan(**given | words), clock=SystemClock(), find_source=find_source)


def until(holds: Callable[[], bool]) -> None:
    ended = time.monotonic() + 30
    while not holds():
        assert time.monotonic() < ended
        time.sleep(0.01)


@pytest.mark.parametrize(
    ("when", "code"),
    [("open", "ledger-full"), ("write", "ledger-full"), ("open", "ledger-unreachable"), ("open", "ledger-io")],
)
def test_a_full_disk_and_a_server_that_is_down_are_no_reason_not_to_look(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, when: str, code: str
) -> None:
    """What is seen is kept aside, for the receipt; afterwards nothing of it is left."""
    place = tmp_path / "box.db"
    full = Unavailable(code, "no room on the disk", hint="df -h")
    opens, appends = Ledger.open, Ledger.append

    def open_(path: Any, *, mode: Any) -> Ledger:
        if when == "open" and path == place:
            raise full
        return opens(path, mode=mode)

    def append(ledger: Ledger, rows: Any, **words: Any) -> Any:
        if when == "write" and ledger.place == place:
            raise full
        return appends(ledger, rows, **words)

    monkeypatch.setattr(Ledger, "open", open_)
    monkeypatch.setattr(Ledger, "append", append)
    watch = watch_of(place)
    watch.begin()
    assert watch.ready.wait(30)
    until(lambda: watch.looker is Watcher.RUN and len(watch.looks_us) > 1)
    assert watch.end()
    assert (watch.unstored, watch.refusal, watch.trouble) == (full, None, None)
    aside = watch.place
    with opens(aside, mode="read") as ledger:
        assert list(ledger.scan(Watch))
    watch.forget()
    assert not aside.parent.exists()


def test_what_a_killed_run_left_in_memory_is_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the next one that needs such a place; not what is in use, nor what may have just begun."""
    folders = {name: tmp_path / f"gpuledger-run-{name}" for name in ("left", "held", "young")}
    for name, folder in folders.items():
        folder.mkdir()
        (folder / "ledger.db").touch()
        if name != "young":
            os.utime(folder, (1, 1))
    with OneAgent(folders["held"] / "ledger.db"):
        os.utime(folders["held"], (1, 1))
        _clear(tmp_path, older_than_s=SystemClock().now_us() / 1_000_000 - 60)
    assert {name for name, folder in folders.items() if folder.exists()} == {"held", "young"}


@pytest.mark.parametrize("whose", ["a link in it", "a link to it", "another's"])
def test_what_others_left_in_memory_is_not_entered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, whose: str) -> None:
    """Any user may make a folder of such a name there, and root comes by: no link is followed, nothing is changed."""
    precious, elsewhere, left = tmp_path / "precious", tmp_path / "elsewhere", tmp_path / "gpuledger-run-x"
    folder = elsewhere if whose == "a link to it" else left
    folder.mkdir()
    precious.write_text("theirs", encoding="utf-8")
    precious.chmod(0o644)
    if whose == "a link in it":
        (left / "ledger.db.agent").symlink_to(precious)
    else:
        (folder / "ledger.db").touch()
    if whose == "a link to it":
        left.symlink_to(elsewhere)
        os.utime(left, (1, 1), follow_symlinks=False)
    if whose == "another's":
        own = os.geteuid()
        monkeypatch.setattr("gpuledger.operations.own_watch.os.geteuid", lambda: own + 1)
    os.utime(folder, (1, 1))
    _clear(tmp_path, older_than_s=2)
    assert (precious.read_text(encoding="utf-8"), precious.stat().st_mode & 0o777) == ("theirs", 0o644)
    assert len(list(folder.iterdir())) == 1
    assert left.exists()


def test_where_nowhere_is_room_nobody_looks_and_the_command_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The receipt says why; nothing is refused."""

    def full(*_: Any, **__: Any) -> Any:
        raise Unavailable("ledger-full", "no room on the disk", hint="df -h")

    def nowhere(*_: Any, **__: Any) -> Any:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Ledger, "open", full)
    monkeypatch.setattr("gpuledger.operations.own_watch.tempfile.TemporaryDirectory", nowhere)
    watch = watch_of(tmp_path / "box.db")
    watch.begin()
    assert watch.ready.wait(30)
    assert (watch.looker, watch.refusal) == (Watcher.NOBODY, None)
    assert watch.trouble is not None
    assert watch.trouble.code == "ledger-full"
    watch.end()


def test_alone_it_is_the_agent_and_writes_at_its_end(tmp_path: Path) -> None:
    """It looks, tells its pulse, flushes and seals."""
    watch = watch_of(tmp_path / "box.db")
    watch.begin()
    assert watch.ready.wait(30)
    assert (watch.looker, watch.trouble, watch.refusal) == (Watcher.RUN, None, None)
    until(lambda: len(watch.looks_us) > 2)
    assert watch.end()
    assert watch.end()
    with Ledger.open(tmp_path / "box.db", mode="read") as ledger:
        assert ledger.count(Seal) == 1
        assert max(row.until_us for row in ledger.scan(Watch)) >= watch.looks_us[-1]
        pulse = hear(ledger, now_us=SystemClock().now_us())
    assert pulse is not None
    assert (pulse.host, pulse.interval_us) == ("box", 20_000)


def test_beside_an_agent_it_only_asks_and_takes_over_when_that_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So a run goes on being watched."""
    monkeypatch.setattr("gpuledger.operations.own_watch._ASK_AGAIN_S", 0.02)
    place = tmp_path / "box.db"
    Ledger.open(place, mode="append").close()
    watch = watch_of(place)
    with OneAgent(place):
        watch.begin()
        assert watch.ready.wait(30)
        time.sleep(0.1)
        assert (watch.looker, watch.looks_us) == (Watcher.AGENT, [])
    until(lambda: watch.looker is Watcher.RUN and bool(watch.looks_us))
    assert watch.end()


@pytest.mark.parametrize("is_made", [True, False])
def test_without_a_driver_nobody_looks_and_no_ledger_is_made(tmp_path: Path, is_made: bool) -> None:
    """The command runs all the same; the place is free for others."""
    place = tmp_path / "box.db"
    if is_made:
        Ledger.open(place, mode="append").close()
    watch = watch_of(place, no_driver)
    watch.begin()
    assert watch.ready.wait(30)
    assert watch.end()
    assert (watch.looker, watch.refusal) == (Watcher.NOBODY, None)
    assert watch.trouble is not None
    assert watch.trouble.code == "driver-unreachable"
    assert place.exists() == is_made
    with OneAgent(place):
        pass


def test_a_ledger_that_cannot_be_used_is_refused_before_the_command_begins(tmp_path: Path) -> None:
    """A file that is none, a way of naming that is none, a folder that may not be written."""
    (tmp_path / "junk.db").write_bytes(b"junk" * 2000)
    refused = [watch_of(tmp_path / "junk.db"), watch_of(tmp_path / "box.db", method="guess")]
    if os.geteuid():
        (tmp_path / "closed").mkdir(mode=0o500)
        refused.append(watch_of(tmp_path / "closed" / "box.db"))
    for watch in refused:
        watch.begin()
        assert watch.ready.wait(30)
        assert watch.end()
        assert watch.refusal is not None


@pytest.mark.parametrize("is_beating", [True, False])
def test_who_may_only_read_hears_the_agents_pulse(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_beating: bool
) -> None:
    """A user beside root's agent: the lock is not theirs to ask for, and what it looked at is theirs to read."""

    def closed(path: Path) -> Any:
        raise Unavailable("ledger-permission", f"{path}: Permission denied", hint="check --ledger")

    place = tmp_path / "box.db"
    Ledger.open(place, mode="append").close()
    ago_us = 0 if is_beating else 10_000_000
    with OneAgent(place) as agent:
        agent.tell(Pulse(host="box", looked_us=SystemClock().now_us() - ago_us, interval_us=1_000_000))
        monkeypatch.setattr("gpuledger.operations.own_watch.OneAgent", closed)
        watch = watch_of(place)
        watch.begin()
        assert watch.ready.wait(30)
        assert watch.end()
    assert watch.refusal is None
    assert watch.looker is (Watcher.AGENT if is_beating else Watcher.NOBODY)
    assert (watch.trouble is None) == is_beating


@pytest.mark.parametrize("there", [True, False])
def test_who_may_not_even_read_is_told_what_the_ledger_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, there: bool
) -> None:
    """Not that a lock beside it is closed: that is no file of theirs. Without a ledger the lock is all there is."""
    told = Unavailable("ledger-permission", "the ledger may not be used by this user", hint="join the group")
    lock = Unavailable("ledger-permission", "box.db.agent: Permission denied", hint="sudo")
    absent = Unavailable("no-ledger", "there is no ledger", hint="gpuledger agent")

    def raises(error: Unavailable) -> Callable[..., Any]:
        def closed(*_: Any, **__: Any) -> Any:
            raise error

        return closed

    monkeypatch.setattr("gpuledger.operations.own_watch.OneAgent", raises(lock))
    monkeypatch.setattr(Ledger, "open", raises(told if there else absent))
    (tmp_path / "box.db").touch()
    watch = watch_of(tmp_path / "box.db")
    watch.begin()
    assert watch.ready.wait(30)
    watch.end()
    assert watch.refusal is (told if there else lock)


@pytest.mark.parametrize("is_beating", [True, False])
def test_a_ledger_mounted_to_read_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_beating: bool) -> None:
    """An agent that is heard looks; where none is this process does, and what it sees is kept aside."""
    place = tmp_path / "box.db"
    Ledger.open(place, mode="append").close()
    ago_us = 0 if is_beating else 10_000_000
    with OneAgent(place) as agent:
        agent.tell(Pulse(host="box", looked_us=SystemClock().now_us() - ago_us, interval_us=1_000_000))
    opens = os.open

    def open_(path: Any, flags: int, *more: int, **words: Any) -> int:
        if str(path).startswith(f"{place}.agent") and flags & os.O_RDWR:
            raise OSError(errno.EROFS, os.strerror(errno.EROFS))
        return opens(path, flags, *more, **words)

    monkeypatch.setattr("gpuledger.operations.agent.os.open", open_)
    watch = watch_of(place)
    watch.begin()
    assert watch.ready.wait(30)
    if not is_beating:
        until(lambda: len(watch.looks_us) > 1)
    assert watch.end()
    assert (watch.looker, watch.refusal) == (Watcher.AGENT if is_beating else Watcher.RUN, None)
    assert (watch.unstored is None, watch.place == place) == (is_beating, is_beating)
    assert is_beating or watch.unstored.code == "ledger-read-only"
    watch.forget()


def test_a_bug_in_the_watch_is_told_and_stops_no_command(tmp_path: Path) -> None:
    """With the whole traceback, once the command has ended."""

    def broken(talk: Callable[[str], None]) -> Any:
        raise ZeroDivisionError("oops")

    watch = watch_of(tmp_path / "box.db", broken)
    watch.begin()
    assert watch.ready.wait(30)
    assert watch.end()
    assert (watch.looker, watch.refusal) == (Watcher.NOBODY, None)
    assert "ZeroDivisionError: oops" in watch.notes[0]


def test_a_driver_that_hangs_holds_nobody_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The last look is left alone after a while."""
    monkeypatch.setattr("gpuledger.operations.own_watch._STOP_S", 0.05)
    hanging = {"hangs": True}

    def hangs(talk: Callable[[str], None]) -> Any:
        until(lambda: not hanging["hangs"])
        return no_driver(talk)

    watch = watch_of(tmp_path / "box.db", hangs)
    watch.begin()
    assert not watch.ready.wait(0.1)
    assert not watch.end()
    hanging["hangs"] = False
    assert watch.ready.wait(30)
