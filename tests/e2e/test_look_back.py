"""The past on screen, and a person forgotten: the installed command, an agent, and processes that live and die."""

from __future__ import annotations

import os
import shutil
import sqlite3
import tempfile
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from e2e.box import GPU, OTHER_GPU, Box, short
from e2e.machine import ME, need
from gpuledger.model.moments import iso, parse_moment

MORNING_US = parse_moment("2026-11-29T10:10:00Z", now_us=0)
SLICE = "MIG-aaaaaaaa-0000-1111-2222-333333333333"
SECOND_US = 1_000_000


def at(box: Box, at_us: int, status: int = 0) -> Any:
    """The machines at a moment, as JSON."""
    return box.ask("smi", "--at", iso(at_us), "--format", "json", status=status).json


def held(report: Any, place: int = 0) -> dict[str, str]:
    """Program and grade of what certainly held a device."""
    return {one["program"]: one["known"] for one in report["devices"][place]["processes"] if one["certain"]}


def test_the_dead_are_shown_by_name_at_any_moment_of_their_life(box: Box) -> None:
    """Before, in life, together, after death, now, and while nobody looked; each process walks back to its row."""
    before_us = box.clock.now_us()
    box.job("warm.py")
    agent = box.agent()
    train, chat = box.job("train.py"), box.job("chat.py")
    train_us = box.opens(train, memory_mib=2048)
    chat_us = box.opens(chat, memory_mib=512)
    box.named(train, chat)
    trained_ms = box.closes(train)
    train.end()
    box.settled(1)
    box.looks_again()
    now = box.run("smi", "--format", "json").json
    assert held(now) == {"chat.py": "observed"}
    assert now["devices"][0]["watched"]
    seen_us = box.clock.now_us()
    box.looks_again()
    agent.stop().must(0)

    both = at(box, max(train_us, chat_us) + 1000)
    assert held(both) == {"train.py": "settled", "chat.py": "observed"}
    assert held(at(box, train_us + trained_ms * 1000 - 1)) == {"train.py": "settled", "chat.py": "observed"}
    assert held(at(box, train_us + trained_ms * 1000)) == {"chat.py": "observed"}
    assert held(at(box, seen_us)) == {"chat.py": "observed"}
    assert at(box, before_us - 60 * SECOND_US, status=3)["devices"][0]["unknown"]["reason"] == "before-watch"
    for one in both["devices"][0]["processes"]:
        assert str(one["pid"]) in box.ask("explain", one["ref"]).stdout
        assert one["user"] == ME

    box.clock.stand_at(box.clock.now_us() + 3600 * SECOND_US)
    later = box.run("smi", status=3)
    for words in ("UNKNOWN watch-gap", "May have held it", "chat.py", "nobody had looked"):
        assert words in later.stdout
    table = box.run("smi", "--at", iso(max(train_us, chat_us) + 1000), COLUMNS="80")
    assert max(len(line) for line in table.stdout.splitlines()) <= 80
    assert held(at(box, max(train_us, chat_us) + 1000)) == held(both)


def test_nobody_saw_it_and_it_is_shown_all_the_same(box: Box) -> None:
    """A job between two looks has no name, its exact span, and the driver's peak as an upper bound."""
    box.clock.stand_at(MORNING_US)
    box.look()
    box.driver.add_finished(
        3_000_001, GPU, started_at_us=MORNING_US + 5 * SECOND_US, context_ms=700, memory_mib=184, percent=0
    )
    box.clock.advance(60)
    box.look()
    report = at(box, MORNING_US + 5 * SECOND_US + 300_000)
    (one,) = report["devices"][0]["processes"]
    assert (one["program"], one["service"]) == ("-", "unattributed:between-samples")
    assert (one["memory_mib"], one["peak_memory_mib"], one["known"]) == (None, 184, "settled")
    assert "<= 184" in box.run("smi", "--at", iso(MORNING_US + 5 * SECOND_US + 300_000)).stdout
    after = at(box, MORNING_US + 7 * SECOND_US)
    assert (after["devices"][0]["watched"], after["devices"][0]["processes"]) == (True, [])
    assert "no process held it" in box.run("smi", "--at", iso(MORNING_US + 7 * SECOND_US)).stdout


def test_under_mig_the_instance_is_shown(bare: Box) -> None:
    """UNKNOWN with its reason, and what lives on its instance; another GPU with accounting off beside it."""
    bare.driver.add_gpu(GPU, product="NVIDIA A100-SXM4-40GB", memory_mib=40960, accounting=False, mig=True)
    bare.driver.add_slice(GPU, SLICE, profile="1g.5gb", memory_mib=4864, gpu_instance=7)
    bare.driver.add_gpu(OTHER_GPU, accounting=False)
    bare.clock.stand_at(MORNING_US)
    job = bare.job("train.py")
    bare.opens(job, memory_mib=1024, instance=(7, 0))
    bare.look()
    bare.clock.advance(60)
    bare.look()
    report = at(bare, MORNING_US + 30 * SECOND_US)
    whole, other = report["devices"]
    assert whole["unknown"]["reason"] == "accounting-unsupported"
    assert [part["device"] for part in whole["slices"]] == [SLICE]
    (one,) = whole["processes"]
    assert (one["device"], one["profile"], one["program"], one["memory_mib"]) == (SLICE, "1g.5gb", "train.py", 1024)
    assert (other["unknown"]["reason"], other["processes"]) == ("accounting-disabled", [])
    assert bare.run("smi", "--at", iso(MORNING_US + 30 * SECOND_US), "--strict", status=1)


def test_a_person_is_forgotten_while_the_agent_runs(box: Box) -> None:
    """Names are gone from every verb and every byte, totals stand, and the next process of that program is named."""
    agent = box.agent()
    train = box.job("train.py", "--secret-plan")
    box.opens(train)
    box.named(train)
    trained_ms = box.closes(train)
    train.end()
    box.settled(1)
    whom = ("--user", ME, "--subject", f"script:{train.script} by {ME}")
    asked = box.run("forget", *whom, COLUMNS="300")
    assert "train.py by" in asked.stdout
    assert f"gpuledger forget --user {ME} --subject 'script:{train.script} by {ME}' --yes" in asked.stdout
    assert box.sql("SELECT count(*) FROM identity_text WHERE instr(json, ?)", str(train.script)) == [(1,)]
    done = box.run("forget", *whom, "--yes", "--format", "json").json
    assert (done["dropped"], done["quantity"], done["verified"]) == (1, trained_ms, True)
    kept = b"".join(path.read_bytes() for path in box.ledger.parent.iterdir())
    assert b"--secret-plan" not in kept
    assert b"train.py" not in kept
    again = box.job("train.py", "--secret-plan")
    box.opens(again)
    box.named(again)
    held_ms = box.closes(again)
    again.end()
    box.settled(2)
    agent.stop().must(0)
    (usage,) = box.read("usage")
    assert short(usage) == {"forgotten": trained_ms, "train.py": held_ms}
    assert usage["total"] == trained_ms + held_ms
    assert "1 identity text forgotten" in box.run("journal").stdout
    box.ask("verify")


def test_forgetting_waits_for_who_reads(box: Box) -> None:
    """A reader holds the log: said, with what to do; run again it is finished."""
    job = box.job("train.py")
    box.opens(job)
    box.look()
    with closing(sqlite3.connect(f"file:{box.ledger}?mode=ro", uri=True)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM watch").fetchone()
        refused = box.run("forget", "--user", ME, "--yes", status=5)
    assert "[log-in-use]" in refused.stderr
    assert "nothing to forget" in box.run("forget", "--user", ME, "--yes").stdout
    assert b"train.py" not in b"".join(path.read_bytes() for path in box.ledger.parent.iterdir())


def test_forgetting_needs_the_right_to_write(box: Box, request: pytest.FixtureRequest) -> None:
    """Who may only read is shown what would go, and refused."""
    need(os.geteuid() == 0, "giving up rights needs root")
    public = Path(tempfile.mkdtemp())  # pytest's own folders are closed to others
    public.chmod(0o755)
    request.addfinalizer(lambda: shutil.rmtree(public))
    box.ledger = public / "ledger.db"
    job = box.job("train.py")
    box.opens(job)
    box.look()
    os.chown(box.ledger, 0, 65534)
    assert box.as_nobody("forget", "--user", ME, "--format", "json").json["texts"] >= 1
    assert "[ledger-permission]" in box.as_nobody("forget", "--user", ME, "--yes", status=5).stderr
