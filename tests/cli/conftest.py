"""The command line, in process: what it prints, what it says, and the status it exits with."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from gpuledger.cli.main import main


class Done(NamedTuple):
    """One run: exit status, stdout, stderr."""

    status: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """The answer as JSON."""
        return json.loads(self.out)

    @property
    def error(self) -> dict[str, str]:
        """The error as JSON."""
        return json.loads(self.err.splitlines()[-1])["error"]


@pytest.fixture
def gpuledger(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Callable[..., Done]:
    """Runs the command line on a machine without settings: ``gpuledger("usage", "--format", "json")``."""
    for name in ("GPULEDGER_LEDGER", "GPULEDGER_ARCHIVE", "GPULEDGER_AGENT_INTERVAL", "GPULEDGER_AGENT_FLUSH"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("GPULEDGER_HOST", "box")
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setenv("GPULEDGER_LEDGER", str(tmp_path / "box.db"))

    def run(*words: str | Path) -> Done:
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main([str(word) for word in words])
        captured = capsys.readouterr()
        return Done(int(ended.value.code or 0), captured.out, captured.err)

    return run


@pytest.fixture
def morning(box):
    """The morning of the box, written and closed: 00:00 to 02:00, open at 02:10."""
    box.tell_a_morning()
    box.ledger.close()
    return box


NOW = "2026-07-27T02:10:00Z"


@pytest.fixture
def now() -> str:
    """Ten past two."""
    return NOW
