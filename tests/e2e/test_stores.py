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
