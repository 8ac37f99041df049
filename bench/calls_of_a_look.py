"""Counts the calls to the driver's binding in a minute of looks: by the agent's source, and by the bare loop.

Run as a process of its own, since the fake driver must be found from the start. Prints JSON: name of a call
to its number, for each of the two. They must be the same, or the race is not fair.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from typing import Any

import bare_loop
import pynvml

from gpuledger.sources.nvml import NvmlSource, load_binding


class Counting:
    """A binding that counts what is called of it."""

    def __init__(self, binding: Any) -> None:
        self._binding = binding
        self.calls: Counter[str] = Counter()

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._binding, name)
        if not name.startswith("nvml") or not callable(value):
            return value

        def counted(*arguments: Any) -> Any:
            self.calls[name] += 1
            return value(*arguments)

        return counted


def main() -> None:
    """Count over one full minute of looks, each after a first one that fills what is kept."""
    agent = Counting(load_binding())
    source = NvmlSource(agent)
    for number in range(bare_loop.FULL_LOOKS + 1):
        if number == 1:
            agent.calls.clear()
        source.read(time.time_ns() // 1000)
    bare = Counting(pynvml)
    handles: list[Any] = []
    for number in range(bare_loop.FULL_LOOKS + 1):
        if number == 1:
            bare.calls.clear()
        handles = bare_loop.look(bare, handles, number)
    print(json.dumps({"agent": agent.calls, "bare": bare.calls}))


if __name__ == "__main__":
    main()
