"""The explain report: a tree for eyes and for programs."""

from __future__ import annotations

import json

from gpuledger.model.explanation import Explanation
from gpuledger.model.missing import Missing
from gpuledger.reports import explain_report

TREE = Explanation(
    title="total",
    figures=(("total", 1_234_567),),
    children=(
        Explanation(
            title="the driver's own row [x]",
            figures=(("pid", 2_488_996), ("peak_memory_mib", Missing("n/a")), ("command", "a\x1b[2J")),
            refs=("driver:box.agent/8",),
        ),
    ),
)


def test_tree_for_eyes(printed) -> None:
    """Titles, references and figures hang under each other; a pid is no amount; nothing reaches the terminal raw."""
    assert printed(explain_report.to_tree(TREE)).splitlines() == [
        "total",
        "total 1,234,567",
        "└── the driver's own row [x]  driver:box.agent/8",
        r"    pid 2488996 | peak memory mib UNKNOWN (n/a) | command a\x1b[2J",
    ]


def test_tree_for_programs() -> None:
    """Figures by name, the missing ones null with their reason."""
    document = json.loads(json.dumps(explain_report.to_json(TREE)))
    child = document["children"][0]
    assert child["figures"] == {"pid": 2488996, "peak_memory_mib": None, "command": "a\x1b[2J"}
    assert child["missing"] == {"peak_memory_mib": "n/a"}
    assert child["refs"] == ["driver:box.agent/8"]
    assert document["children"][0]["children"] == []
