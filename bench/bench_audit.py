"""``make bench-audit``: audits against their limits, each by ratio within one run. Exit 1 when a limit is broken."""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
from collections.abc import Callable
from typing import Any

import query_rate
import scrape_race

PARTS: dict[str, Callable[[Callable[[str], None]], dict[str, Any]]] = {
    "queries": query_rate.race,
    "scrape": scrape_race.race,
}
"""Each part takes what prints a line, and gives its figures with ``broken``: a sentence for each broken limit."""


def main() -> int:
    """Race every part that was asked for, and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--part", choices=list(PARTS), action="append", help="only this one; may stand more than once")
    parser.add_argument("--json", action="store_true", help="print the result as JSON, the talk on stderr")
    words = parser.parse_args()

    def say(line: str) -> None:
        print(line, file=sys.stderr if words.json else sys.stdout, flush=True)

    result: dict[str, Any] = {"machine": f"{os.cpu_count()} x {platform.machine()}, Python {platform.python_version()}"}
    say(result["machine"])
    for name in words.part or PARTS:
        result[name] = PARTS[name](say)
    broken = [sentence for name in words.part or PARTS for sentence in result[name]["broken"]]
    for sentence in broken:
        say(f"LIMIT BROKEN: {sentence}")
    if not broken:
        say("all limits hold")
    if words.json:
        print(json.dumps(result, indent=1))
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
