"""The peers of the races: other people's programs, in a virtual environment of their own by the hashed lock."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
VENV = ROOT / ".venv-bench"
NVITOP, AUDIT = "nvitop-exporter", "gpu-usage-audit"
NAMES = (NVITOP, AUDIT)


def install() -> str:
    """Make the environment where it is not there yet; or why that cannot be done."""
    if (VENV / "bin" / NVITOP).exists():
        return ""
    python = os.environ.get("BENCH_PYTHON") or next(
        (found for name in ("python3.13", "python3.12") if (found := shutil.which(name))), ""
    )
    if not python:
        return "they need Python 3.12 or newer: BENCH_PYTHON=/path/to/python3.12 make bench"
    steps = (
        [python, "-m", "venv", str(VENV)],
        [
            *(str(VENV / "bin" / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"),
            *("--require-hashes", "--requirement", str(ROOT / "locks" / "bench.txt")),
        ],
    )
    for step in steps:
        done = subprocess.run(step, capture_output=True, text=True, check=False)
        if done.returncode:
            shutil.rmtree(VENV, ignore_errors=True)
            return f"they could not be installed with {python}: {(done.stderr.strip() or '?').splitlines()[-1]}"
    (VENV / ".gitignore").write_text("*\n")
    return ""


def nvitop_exporter(*, port: int, interval_s: float) -> list[str]:
    """Its command; it looks four times a second at most."""
    return [str(VENV / "bin" / NVITOP), "--port", str(port), "--interval", str(interval_s)]


def gpu_usage_audit(*, database: Path, interval_ms: int) -> list[str]:
    """Its command."""
    return [str(VENV / "bin" / AUDIT), "daemon", "--db", str(database), "--interval", f"{interval_ms}ms"]


def free_port() -> int:
    """A port that nobody listens on now."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
    return port
