"""One history in a file and on a server: every verb answers with the same bytes, and writes the same rows.

Keys of texts are salted, so those made on each side differ, and with them hashes and roots: they are masked.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from gpuledger.model.moments import DAY_US, hour_floor, iso

COMMAND = Path(sys.executable).with_name("gpuledger")
LATER = iso(hour_floor(int(time.time()) * 1_000_000) + 7 * DAY_US)
"""A week after the demo."""


class Side:
    """A ledger and the installed command."""

    def __init__(self, place: str, folder: Path) -> None:
        self.place = place
        self._folder = folder
        self._shown = place if "://" not in place else f"postgresql://gpuledger@{place.rpartition('@')[2]}"

    def run(self, *words: str, stdin: str = "") -> tuple[int, str, str]:
        """Status, stdout and stderr, with the place's name and salted keys taken out."""
        environment = {name: text for name, text in os.environ.items() if not name.startswith("GPULEDGER_")}
        environment |= {"GPULEDGER_LEDGER": self.place, "GPULEDGER_HOST": "box", "COLUMNS": "200"}
        done = subprocess.run([str(COMMAND), *words], env=environment, cwd=self._folder, input=stdin,
                              capture_output=True, text=True, timeout=120, check=False)  # fmt: skip
        texts = (text.replace(self._shown, "LEDGER") for text in (done.stdout, done.stderr))
        return done.returncode, *(re.sub("[0-9a-f]{64}", "KEY", text) for text in texts)


@pytest.fixture
def sides(played_demo, postgres, tmp_path: Path) -> tuple[Side, Side]:
    """The demo's ledger, copied into another file and onto a server."""
    import shutil

    shutil.copy(played_demo.folder / "ledger.db", tmp_path / "ledger.db")
    here, there = Side(str(tmp_path / "ledger.db"), tmp_path), Side(postgres.new_ledger(), tmp_path)
    status, told, _ = here.run("copy", here.place, there.place, "--format", "json")
    assert (status, json.loads(told)["rows"] > 50) == (0, True)
    return here, there


def test_every_verb_answers_with_the_same_bytes(sides: tuple[Side, Side], tmp_path: Path) -> None:
    """Writing verbs, each step on both sides, then reading ones; and both verify."""
    here, there = sides

    def same(*words: str) -> Any:
        one, other = here.run(*words), there.run(*words)
        assert one == other, words
        return one

    def steps() -> None:
        (tmp_path / "policy.yaml").write_text("services:\n  - {service: x, match: {unit: x}}\n")
        event = ("--class", "L4", "--devices", "GPU-1", "--user", "al", "--now", "2026-11-01T00:00:00Z")
        assert same("transition", "w1", "provisioning", "--at", "2026-10-31T20:00:00Z", "--id", "a", *event)[0] == 0
        assert same("transition", "w1", "running", "--at", "2026-10-31T20:10:00Z", "--id", "b", *event)[0] == 0
        refused = same("transition", "w2", "provisioning", "--at", "2026-10-31T21:00:00Z", "--id", "c", *event)
        assert refused[0] == 4
        assert "[device-full]" in refused[2]
        assert same("transition", "w1", "running", "--at", "2026-10-31T20:10:00Z", "--id", "b", *event)[0] == 0
        assert same("meter", "--now", "2026-11-01T00:10:00Z", "--format", "json")[0] == 0
        stop = (*event[:-1], "2026-11-04T00:00:00Z")
        assert same("transition", "w1", "stopped", "--at", "2026-10-31T21:30:00Z", "--id", "d", *stop)[0] == 0
        assert same("meter", "--now", "2026-11-05T00:00:00Z", "--format", "json")[0] == 0
        booked = ("correct", "--reason", "log", "--by", "al", "--yes", "--now", "2026-11-06T00:00:00Z")
        assert same(*booked, "--format", "json")[0] == 0
        assert same("apply", "policy.yaml", "--now", LATER)[0] == 0
        lines = [
            {"workload": "w9", "state": state, "at": f"2026-10-0{day}T00:00:00Z", "id": f"{state}", "class": "T4",
             "devices": ["GPU-9"]}
            for day, state in ((1, "provisioning"), (1, "running"), (2, "stopped"))
        ]  # fmt: skip
        (tmp_path / "events.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
        same("import", "transitions", "events.jsonl", "--now", LATER)
        assert same("meter", "--now", LATER, "--format", "json")[0] == 0

    def views() -> None:
        for words in (
            ("usage", "--by", "user"), ("usage", "--meter", "gpu.memory"), ("blind",), ("journal",), ("capacity",),
            ("usage", "--meter", "gpu.reserved", "--by", "workload"), ("smi", "--at", "2026-10-31T20:30:00Z"),
        ):  # fmt: skip
            status, _, told = same(*words, "--format", "json", "--now", LATER)
            assert status in (0, 3), (words, told)
        for form in ("table", "csv"):
            assert same("usage", "--format", form, "--now", LATER)[0] == 0

    steps()
    views()
    answer = json.loads(same("usage", "--format", "json", "--now", LATER)[1])
    assert answer["total"] > 0
    same("explain", f"service:{answer['rows'][0]['service']}", "--now", LATER, "--format", "json")
    forgot, forgot_there = (side.run("forget", "--user", "al", "--yes", "--now", LATER) for side in sides)
    assert forgot[:2] == forgot_there[:2]
    assert "[left-in-server]" in forgot_there[2]
    assert same("verify", "--format", "json", "--now", LATER)[0] == 0


POLICY = """owners: {users: {al: {team: vision, roles: [student]}, bo: {team: nlp}}}
shares:
  half_life: 7d
  tree:
    vision: {shares: 3, users: {al: 2}}
    nlp: {shares: 1, users: {bo: 1}}
quotas:
  - {role: student, devices: 2}
  - {team: "*", device_hours: 50, per: month}
"""
DUMP = """JobID|User|Account|State|Submit|Start|End|ElapsedRaw|AllocTRES|NodeList
1|al|vision|COMPLETED|2026-10-01T00:00:00|2026-10-01T01:00:00|2026-10-01T05:00:00|14400|gres/gpu:a100=2|n1
1.batch|al|vision|COMPLETED|2026-10-01T00:00:00|2026-10-01T01:00:00|2026-10-01T05:00:00|14400|gres/gpu:a100=2|n1
2|bo|nlp|COMPLETED|2026-10-01T02:00:00|2026-10-01T02:30:00|2026-10-01T04:00:00|5400|gres/gpu:l4=1|n2
"""
TRACE = """job,began,ended,gpus,user
a,2026-10-02T00:00:00Z,2026-10-02T03:20:00Z,2,al
b,2026-10-02T01:00:00Z,2026-10-02T02:00:00Z,1,bo
"""
MAP = """columns: {id: job, start: began, end: ended, devices: gpus, user: user}
constants: {class: T4}
units: {time: iso}
"""
NOON = ("--now", "2026-11-01T12:00:00Z")


@pytest.fixture
def empty_sides(postgres, tmp_path: Path) -> tuple[Side, Side]:
    """Two places without a row."""
    return Side(str(tmp_path / "ledger.db"), tmp_path), Side(postgres.new_ledger(), tmp_path)


def test_histories_quotas_and_fair_share_answer_with_the_same_bytes(
    empty_sides: tuple[Side, Side], tmp_path: Path
) -> None:
    """Imports, policy, admissions, what runs, what comes late; and every view of it."""
    here, there = empty_sides

    def same(*words: str) -> tuple[int, str, str]:
        one, other = here.run(*words), there.run(*words)
        assert one == other, words
        return one

    for name, text in (("policy.yaml", POLICY), ("dump.txt", DUMP), ("trace.csv", TRACE), ("map.yaml", MAP)):
        (tmp_path / name).write_text(text)
    json_ = ("--format", "json")
    assert same("apply", "policy.yaml", "--now", "2026-09-01T00:00:00Z")[0] == 0
    for words in (("slurm", "dump.txt", "--zone", "UTC"), ("trace", "trace.csv", "--map", "map.yaml")):
        assert json.loads(same("import", *words, *NOON, *json_)[1])["added"] > 0
        assert json.loads(same("import", *words, *NOON, *json_)[1])["added"] == 0
    assert json.loads(same("meter", *NOON, *json_)[1])["records_added"] > 0
    asked = ("--class", "A100", "--until", "4h", *NOON, *json_)
    answers = [same("admit", f"q{number}", "--user", "al", *asked)[0] for number in range(4)]
    assert answers == [0, 0, 4, 4]
    assert (
        same("admit", "q0", "--user", "al", "--class", "A100", "--until", "2026-11-01T16:00:00Z", *NOON, *json_)[0] == 0
    )
    assert same("admit", "q9", "--user", "bo", "--check", *asked)[0] == 0
    for state in ("provisioning", "running"):
        assert same("transition", "q0", state, "--at", NOON[1], "--id", state, *NOON)[0] == 0
    waits = ("transition", "p1", "pending", "--at", NOON[1], "--id", "p", "--user", "bo", "--class", "L4")
    assert same(*waits, *NOON)[0] == 0
    assert same("meter", "--now", "2026-11-01T15:10:00Z", *json_)[0] == 0
    late = ("--now", "2026-11-05T00:00:00Z")
    assert same("transition", "q0", "stopped", "--at", "2026-11-01T13:30:00Z", "--id", "s", *late)[0] == 0
    same("blind", *late, *json_)
    assert same("correct", "--reason", "told late", "--by", "al", "--yes", *late, *json_)[0] == 0
    assert same("meter", *late, *json_)[0] == 0
    for words in (
        *(("usage", "--meter", meter, "--by", by) for meter in ("gpu.reserved", "cpu.reserved")
          for by in ("user", "team", "class", "workload", "day")),
        ("fairshare",), ("fairshare", "--explain", "al"), ("quota",), ("quota", "--user", "bo"), ("capacity",),
        ("journal",), ("blind",), ("policy",), ("explain", "total", "--meter", "gpu.reserved"),
        ("explain", "user:al", "--meter", "gpu.reserved"), ("verify",),
    ):  # fmt: skip
        status, _, told = same(*words, *late, *json_)
        assert status in (0, 3), (words, told)
    for form in ("table", "csv"):
        for verb in ("fairshare", "quota", "capacity"):
            assert same(verb, "--format", form, *late)[0] == 0


def test_meters_that_run_at_once_on_a_server_book_what_one_books(
    empty_sides: tuple[Side, Side], tmp_path: Path
) -> None:
    """Three commands over one backlog: the records of one alone, and nothing twice."""
    here, there = empty_sides
    (tmp_path / "dump.txt").write_text(DUMP)
    for side in (here, there):
        assert side.run("import", "slurm", "dump.txt", "--zone", "UTC", *NOON)[0] == 0
    assert here.run("meter", *NOON)[0] == 0
    with ThreadPoolExecutor(3) as pool:
        done = list(pool.map(lambda _: there.run("meter", *NOON, "--format", "json"), range(3)))
    assert [status for status, _, _ in done] == [0, 0, 0], done
    answers = [
        side.run("usage", "--meter", "gpu.reserved", "--by", "hour", *NOON, "--format", "json")[1]
        for side in (here, there)
    ]
    assert answers[0] == answers[1]
    added = [json.loads(told)["records_added"] for _, told, _ in done]
    rows = json.loads(here.run("verify", *NOON, "--format", "json")[1])["rows"]
    assert sum(added) == rows["record"] > 0
    assert there.run("verify", *NOON)[0] == 0
