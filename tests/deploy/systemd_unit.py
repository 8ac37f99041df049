"""Reads a systemd unit as far as the tests need it: sections, directives that may stand more than once, comments.

In: the text of a unit file. Out: for each section the values of each directive, in order.
"""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

SYSTEMD = Path(__file__).resolve().parents[2] / "deploy" / "systemd"
AGENT = SYSTEMD / "gpuledger-agent.service"
ACCOUNTING = SYSTEMD / "gpuledger-accounting.service"

Unit = dict[str, dict[str, list[str]]]


def read_unit(path: Path) -> Unit:
    """A unit's directives by section. Lines that go on in the next one are not used here, and refused."""
    unit: Unit = defaultdict(lambda: defaultdict(list))
    section = ""
    for line in map(str.strip, path.read_text(encoding="utf-8").splitlines()):
        if not line or line.startswith(("#", ";")):
            continue
        if line.startswith("[") and line.endswith("]"):
            section = line[1:-1]
            continue
        name, sign, value = line.partition("=")
        assert section, line
        assert sign, line
        assert not line.endswith("\\"), line
        unit[section][name.strip()].append(value.strip())
    return unit


def words(unit: Unit, name: str, *, section: str = "Service") -> list[str]:
    """Every word of a directive, over all of its lines."""
    return [word for value in unit[section].get(name, []) for word in value.split()]
