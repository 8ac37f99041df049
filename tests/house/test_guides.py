"""What a guide says to run does run, and prints what the guide says."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
GUIDES = ROOT / "docs" / "guides"


@pytest.mark.parametrize("guide", ["embed-in-a-control-plane.md", "quotas.md"])
def test_the_example_runs_and_prints_what_the_guide_says(tmp_path: Path, guide: str) -> None:
    """Without the command line, in an empty directory."""
    text = (GUIDES / guide).read_text(encoding="utf-8")
    program = re.search(r"```python\n(.*?)```", text, re.DOTALL)
    printed = re.search(r"It prints:\n\n```\n(.*?)```", text, re.DOTALL)
    assert program
    assert printed
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program[1]],
        capture_output=True, text=True, cwd=tmp_path, timeout=120, check=False,
    )  # fmt: skip
    assert done.stderr == ""
    assert done.stdout == printed[1]
