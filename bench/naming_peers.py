"""Peers in the naming race: which processes of the crowd they told of, as their own output has it.

nvitop-exporter puts pid, user and command line of who lives now into its metrics, so they are fetched twice for each
of its looks and what they ever held is kept. gpu-usage-audit keeps pid, user and the kernel's short name (never a
command line, by its own decision) of each look in its database: who it told is the pid at that time.
"""

from __future__ import annotations

import re
import sqlite3
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Iterable
from contextlib import closing
from datetime import datetime
from pathlib import Path

import peers
from naming_box import Life, NamingBox
from naming_shares import LifeFinder

_COMMAND = re.compile(r'^process_info_info\{.*command="(?:[^"\\]|\\.)* ([a-z0-9]+-[0-9]+)"', re.MULTILINE)


class Peers:
    """Both of them, where they can run.

    Args:
        box: whose driver they read.

    Attributes:
        left_out: why one is not there.
    """

    def __init__(self, box: NamingBox, *, wanted: bool) -> None:
        why = peers.install() if wanted else "--no-peers"
        self.left_out = dict.fromkeys(peers.NAMES, why) if why else {}
        self._box = box
        self._port = peers.free_port()
        self._database = box.folder / "gua.db"
        self._seen: set[str] = set()
        self._done = threading.Event()
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        self._fetching = threading.Thread(target=self._fetch, daemon=True)
        if why:
            return
        commands = {
            peers.NVITOP: peers.nvitop_exporter(port=self._port, interval_s=1),
            peers.AUDIT: peers.gpu_usage_audit(database=self._database, interval_ms=1000),
        }
        for name, command in commands.items():
            with (box.folder / f"{name}.txt").open("wb") as stream:
                self._running[name] = subprocess.Popen(command, env=box.environment, stdout=stream, stderr=stream)
        self._fetching.start()

    @property
    def names(self) -> list[str]:
        """Those that run."""
        return list(self._running)

    def told(self, name: str, lives: Iterable[Life]) -> set[str]:
        """The words of those it told of."""
        return self._seen if name == peers.NVITOP else self._audited(lives)

    def stop(self) -> None:
        """End them; what they told stays."""
        self._done.set()
        for name, process in self._running.items():
            if process.poll() is not None:
                print((self._box.folder / f"{name}.txt").read_text(errors="replace")[-2000:], file=sys.stderr)
                self.left_out[name] = f"ended by itself ({process.returncode})"
                continue
            process.terminate()
            try:
                process.wait(timeout=10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        if self._running:
            self._fetching.join()

    def _fetch(self) -> None:
        """Twice a second what nvitop-exporter shows now."""
        while not self._done.wait(0.5):
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{self._port}/metrics", timeout=10) as answer:
                    self._seen.update(_COMMAND.findall(answer.read().decode()))
            except OSError:
                continue  # not up yet, or ended: how it ended is told when it is stopped

    def _audited(self, lives: Iterable[Life]) -> set[str]:
        finder = LifeFinder(lives)
        with closing(sqlite3.connect(f"file:{Path(self._database)}?mode=ro", uri=True)) as connection:
            rows = connection.execute("SELECT pid, ts FROM proc_sample WHERE process_name IS NOT NULL").fetchall()
        found = (finder.at(pid, round(datetime.fromisoformat(at).timestamp() * 1e6)) for pid, at in rows)
        return {life.word for life in found if life is not None}
