"""Hurt: killed, out of room, flipped bytes, a clock set back. Nothing double, nothing lost that was acknowledged."""

from __future__ import annotations

import random
import resource
import signal
import sqlite3
import time
from contextlib import closing

import pytest

from e2e.box import GPU, Box, reasons, short, sums_up
from e2e.machine import eventually
from gpuledger.model.moments import HOUR_US, iso, parse_moment

MORNING_US = parse_moment("2026-11-29T10:10:00Z", now_us=0)


def test_the_agent_killed_with_9_at_random_moments(box: Box) -> None:
    """What was acknowledged is there, nothing is double, the chain holds, and the pause is a watch row."""
    box.clock.stand_at(MORNING_US)
    chance = random.Random(20261129)  # the moments differ by load; the seed keeps the attempts comparable
    acknowledged: set[tuple[object, ...]] = set()
    written = "SELECT writer, number, pid, started_at_us, context_ms FROM driver_record"
    ended_ms: dict[int, int] = {}
    for life in range(5):
        agent = box.agent(interval="50ms")
        until = time.monotonic() + chance.uniform(0.05, 0.6)
        while time.monotonic() < until:
            job = box.job(f"life{life}-{len(ended_ms)}.py")
            box.opens(job)
            ended_ms[job.pid] = box.closes(job)
            job.end()
            acknowledged |= set(box.sql(written))
        assert agent.stop(signal.SIGKILL).status == -signal.SIGKILL
        acknowledged |= set(box.sql(written))
        box.clock.advance(60)
    agent = box.agent()
    box.settled(len(ended_ms))
    agent.stop().must(0)
    rows = box.sql(written)
    assert acknowledged <= set(rows)
    assert {pid: ms for _, _, pid, _, ms in rows} == ended_ms
    assert len(rows) == len(ended_ms)
    verify, usage, journal = box.together(("verify",), ("usage", "--format", "json"), ("journal", "--format", "json"))
    verify.must(0)
    assert usage.must(0).json["total"] == sum(ended_ms.values())
    sums_up(usage.json)
    gaps = box.sql("SELECT until_us - since_us FROM watch WHERE status = 'watch-gap' AND source = 'driver'")
    assert len(gaps) == 5
    assert all(59_000_000 <= gap < 120_000_000 for (gap,) in gaps)
    assert "watch-gap" in reasons(usage.json)
    assert sum("UNKNOWN watch-gap" in line["sentence"] for line in journal.must(0).json["lines"]) >= 5


def test_the_disk_full(box: Box) -> None:
    """The agent goes on, says so once, catches up when there is room, and nothing acknowledged is lost."""
    agent = box.agent(interval="50ms")
    job = box.job("train.py")
    box.opens(job)
    box.named(job)
    ms = box.closes(job)
    box.settled(1)
    before = box.sql("SELECT * FROM driver_record")
    # no file of the agent's may grow: what a full disk looks like to it
    size = max(path.stat().st_size for path in box.ledger.parent.iterdir())
    resource.prlimit(agent.pid, resource.RLIMIT_FSIZE, (4096, resource.RLIM_INFINITY))
    assert size > 4096
    agent.says("not written yet")
    for number in range(20):
        brief = box.job(f"brief{number}.py")
        box.opens(brief)
        ms += box.closes(brief)
        brief.end()
    time.sleep(0.3)  # some looks must fail
    assert agent.runs
    assert box.sql("SELECT * FROM driver_record") == before
    assert agent.talk.count("not written yet") == 1
    during = box.run("usage", "--format", "json").json
    assert short(during)["train.py"] > 0
    resource.prlimit(agent.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    agent.says("all is well again")
    box.settled(21)
    agent.stop().must(0)
    verify, usage = box.together(("verify",), ("usage", "--format", "json"))
    verify.must(0)
    assert usage.must(0).json["total"] == ms
    sums_up(usage.json)


def test_the_clock_set_back_an_hour(box: Box) -> None:
    """Nothing double, nothing lost: jobs before and after count to the ms, and the step is in the journal."""
    box.clock.stand_at(MORNING_US + 2 * HOUR_US)
    agent = box.agent()
    before, across, after = (box.job(f"{name}.py") for name in ("before", "across", "after"))
    box.opens(before)
    box.named(before)
    before_ms = box.closes(before)
    box.opens(across)
    box.named(across)
    box.settled(1)
    box.clock.step(-3600)
    agent_saw = "SELECT 1 FROM watch WHERE status = 'clock-step'"
    eventually(lambda: box.sql(agent_saw), "the step is written")
    box.opens(after)
    box.named(after)
    after_ms = box.closes(after)
    box.settled(2)
    box.clock.step(3600)
    eventually(lambda: len(box.sql(agent_saw)) > 2, "the step forward is written")
    across_ms = box.closes(across)
    box.settled(3)
    agent.stop().must(0)
    (usage, journal) = box.read("usage", "journal")
    assert short(usage) == {"before.py": before_ms, "across.py": across_ms, "after.py": after_ms}
    sums_up(usage)
    told = [line["sentence"] for line in journal["lines"]]
    assert any("the clock was set back 36" in sentence or "the clock was set back 35" in sentence for sentence in told)
    assert any("the clock was set forward" in sentence for sentence in told)
    later = iso(MORNING_US + 4 * HOUR_US)
    box.run("meter", "--now", later)
    verify, recorded = box.together(("verify",), ("usage", "--format", "json", "--now", later))
    verify.must(0)
    assert short(recorded.must(0).json) == short(usage)


def test_flipped_bytes(box: Box) -> None:
    """A changed byte in any row is found: exit 6, in a sentence; no reading verb ever ends in a traceback."""
    agent = box.agent()
    job = box.job("train.py")
    box.opens(job)
    box.named(job)
    box.closes(job)
    box.settled(1)
    agent.stop().must(0)
    box.run("meter", "--now", iso(box.clock.now_us() + 2 * HOUR_US))
    sound = box.ledger.read_bytes()
    page = 4096
    places = [
        40,  # the header's schema cookie
        100,  # the first page's kind
        page + 3,
        sound.index(str(job.script).encode()),  # an identity's text
        sound.index(b"nvml"),  # a method in a row
        sound.index(b"settled"),  # a record's context
        *(sound.rindex(kind) for kind in (b"GPU-11111111", b"before-watch" if b"before-watch" in sound else b"poll")),
    ]
    found = []
    for place in places:
        changed = bytearray(sound)
        changed[place] ^= 0x01
        box.ledger.write_bytes(changed)
        verify, usage = box.together(("verify",), ("usage", "--format", "json"))
        for answer in (verify, usage):
            assert "Traceback" not in answer.stderr, (place, answer.stderr)
            assert answer.status in (0, 1, 2, 5, 6), (place, answer.status, answer.stderr)
        found.append((place, verify.status))
    assert all(status == 6 for place, status in found[3:]), found
    assert all(status in (2, 5, 6) for place, status in found[1:3]), found
    box.ledger.write_bytes(sound)
    box.run("verify")
    box.ledger.write_bytes(sound[: len(sound) // 2])
    for verb in ("usage", "verify", "meter"):
        answer = box.together((verb,))[0].must(6)
        assert "[ledger-damaged]" in answer.stderr or "damaged" in answer.stdout


@pytest.mark.parametrize("content", [b"junk" * 4096, b"#!/bin/sh\n"])
def test_a_file_that_is_no_ledger(box: Box, content: bytes) -> None:
    """Exit 6 with a sentence, and the file stays as it is."""
    box.ledger.write_bytes(content)
    for answer in box.together(("usage",), ("agent", "--once"), ("verify",)):
        answer.must(6)
    assert box.ledger.read_bytes() == content


def test_a_ledger_from_a_newer_version_is_left_alone(box: Box) -> None:
    """Exit 5 from every verb that reads or writes, and not a byte of it changes."""
    box.look()
    with closing(sqlite3.connect(box.ledger)) as connection:
        connection.execute("PRAGMA user_version = 999")
        connection.commit()
    policy = box.folder / "policy.yaml"
    policy.write_text("services:\n  - {service: a, match: {command: a}}\n")
    before = box.ledger.read_bytes()
    names = sorted(path.name for path in box.ledger.parent.iterdir())
    for answer in box.together(("usage",), ("agent", "--once"), ("meter",), ("verify",), ("apply", str(policy))):
        assert "[ledger-newer]" in answer.must(5).stderr
        assert "pip install --upgrade gpuledger" in answer.stderr
    assert box.ledger.read_bytes() == before
    assert sorted(path.name for path in box.ledger.parent.iterdir()) == names


def test_a_metering_pass_killed_with_9_and_two_passes_at_once(box: Box) -> None:
    """A killed pass leaves the hours as they were; two at once book each record once; a third changes nothing."""
    now_us = box.clock.now_us()
    for number in range(100):
        started_us = now_us - (90 - number % 80) * HOUR_US + number * 7_000_000
        box.driver.add_finished(3_000_000 + number, GPU, started_at_us=started_us, context_ms=1_500_000 + number)
    total_ms = sum(int(row[4]) for row in box.dead())
    agent = box.agent()
    box.settled(100)
    agent.stop(signal.SIGKILL)
    later = iso(now_us + 4 * 24 * HOUR_US)
    for wait_s in (0.5, 0.9):
        process = box.begin("meter", "--now", later)
        time.sleep(wait_s)
        process.kill()
        process.communicate()
        passes, records = box.sql("SELECT count(*) FROM pass")[0][0], box.sql("SELECT count(*) FROM usage_record")[0][0]
        assert (passes == 0) == (records == 0) or passes > 0
    both = box.together(*[("meter", "--now", later, "--format", "json")] * 2)
    for answer in both:
        answer.must(0)
    sums = box.sql("SELECT sum(quantity), count(*) FROM usage_record WHERE meter = 'gpu.context'")
    assert sums[0][0] == total_ms
    again = box.run("meter", "--now", later, "--format", "json").json
    assert (again["records_added"], again["corrections_added"]) == (0, 0)
    assert box.sql("SELECT sum(quantity), count(*) FROM usage_record WHERE meter = 'gpu.context'") == sums
    assert box.sql("SELECT count(*) FROM usage_correction") == [(0,)]
    verify, usage = box.together(("verify",), ("usage", "--format", "json", "--now", later))
    verify.must(0)
    assert usage.must(0).json["total"] == total_ms
    assert usage.json["provisional"]["quantity"] == 0
