"""Explaining: every kind of row is a node that names its reference and figures."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

import pytest

from gpuledger.accounting.explanation import explain_row, explain_total
from gpuledger.accounting.owners import Naming
from gpuledger.accounting.rollup import roll_up
from gpuledger.model.identity import IdentityText
from gpuledger.model.meters import GPU_CONTEXT
from gpuledger.model.missing import Missing
from gpuledger.model.moments import HOUR_US, parse_moment
from gpuledger.model.rows import (
    DriverRecord,
    ProcessIdentity,
    Row,
    Sighting,
    UsageCorrection,
    UsageRecord,
    Watch,
)

T0 = parse_moment("2026-07-27", now_us=0)
TEXT = IdentityText(command="python x.py", user="al")
OWNER = Naming(texts={"x": TEXT}).owner("x", T0)
AT = {"writer": "box.agent", "number": 3, "host": "box", "device": "GPU-1"}


def record(subject: str = "x") -> UsageRecord:
    return UsageRecord(
        **AT, meter="gpu.context", hour_us=T0, subject=subject, context="settled", quantity=679, evidence_count=1,
        evidence_hash="ab", recorded_at_us=T0 + HOUR_US,
    )  # fmt: skip


def test_a_record_is_told_by_its_owner() -> None:
    """A record names who answers, its hour and its evidence."""
    node = explain_row(record(), owner=OWNER)
    assert node.title == ("record: gpu.context of script:x.py by al, 2026-07-27T00:00:00Z to 2026-07-27T01:00:00Z")
    assert node.refs == ("record:box.agent/3",)
    assert dict(node.figures)["quantity"] == 679


def test_an_unattributed_record_is_told_by_its_cause() -> None:
    """A record without a name says why it has none; a forgotten one says that."""
    assert "lived and died between two polls" in explain_row(record("unattributed:between-samples")).title
    assert "forgotten" in explain_row(record("gone")).title


def test_a_correction_names_its_reason() -> None:
    """A correction is signed and says why."""
    row = UsageCorrection(
        **AT, meter="gpu.context", hour_us=T0, subject="x", correction_number=1, delta=-5, reason="late-name",
        evidence_count=1, evidence_hash="ab", recorded_at_us=T0,
    )  # fmt: skip
    node = explain_row(row, owner=OWNER)
    assert node.title.endswith(": late-name")
    assert dict(node.figures)["delta"] == -5


def test_the_drivers_own_row_is_the_end_of_the_way() -> None:
    """The driver's figures stand as it gave them; what it did not give stays missing."""
    row = DriverRecord(
        **AT, pid=42, started_at_us=Missing("csv"), context_ms=679, peak_memory_mib=184, gpu_percent=0,
        memory_percent=Missing("n/a"), read_at_us=T0, method="nvidia-smi",
    )  # fmt: skip
    node = explain_row(row)
    assert node.title == "the driver's own row: pid 42 held GPU-1 for 679 ms"
    assert dict(node.figures)["started_at"] == Missing("csv")
    assert dict(node.figures)["gpu_percent"] == 0


@pytest.mark.parametrize(("gone", "end"), [(Missing("alive"), None), (T0, "2026-07-27T00:00:00Z")])
def test_a_sighting_says_whether_it_lives(gone: int | Missing, end: str | None) -> None:
    """A living context has no end: its title says that it lives."""
    row = Sighting(
        **AT, pid=42, boot_id="b", start_ticks=1, context_started_at_us=T0, since_us=T0, until_us=T0 + HOUR_US,
        peak_memory_mib=5, gone_at_us=gone, method="nvml",
    )  # fmt: skip
    node = explain_row(row)
    assert dict(node.figures).get("gone_at") == end
    assert node.title.endswith(", still alive at the last look") is (end is None)


@pytest.mark.parametrize(
    ("method", "said"),
    [
        ("poll", "pid 42, as read while it lived"),
        ("pid-map", "pid 42, claimed by a pid map: python x.py"),
        ("nvidia-smi", "pid 42, named by nvidia-smi: python x.py"),
    ],
)
def test_an_identity_says_who_says_so(method: str, said: str) -> None:
    """Only what the agent read itself was read while the process lived."""
    row = ProcessIdentity(
        writer="w", number=1, host="box", boot_id="b", pid=42, start_ticks=1, started_at_us=T0, seen_at_us=T0,
        method=method, grade="kernel" if method == "poll" else "claimed", text_key="x",
    )  # fmt: skip
    assert explain_row(row, text=TEXT).title == said


def test_an_identity_shows_its_text_or_that_it_was_forgotten() -> None:
    """Forgotten text is said to be forgotten."""
    row = ProcessIdentity(
        writer="w", number=1, host="box", boot_id="b", pid=42, start_ticks=1, started_at_us=T0, seen_at_us=T0,
        method="poll", grade="kernel", text_key="x",
    )  # fmt: skip
    assert dict(explain_row(row, text=TEXT).figures)["command"] == "python x.py"
    assert dict(explain_row(row).figures)["text"] == Missing("forgotten: its text was dropped")
    unread = explain_row(replace(row, text_key="", method="connector"))
    assert unread.title == "pid 42, of which an event told, and which ended before it could be read"
    assert dict(unread.figures)["text"] == Missing("nothing of it was read")


def test_an_unknown_watch_says_what_helps() -> None:
    """An UNKNOWN span carries its command."""
    row = Watch(
        **AT, source="driver", method="nvml", interval_ms=0, since_us=T0, until_us=T0 + 5, status="accounting-disabled"
    )
    assert "nvidia-smi -am 1" in str(dict(explain_row(row).figures)["what_helps"])


def test_a_total_is_the_root() -> None:
    """The total hangs over what it rests on."""
    child = explain_row(record(), owner=OWNER)
    report = roll_up(
        meter=GPU_CONTEXT, by=(), since_us=T0, until_us=T0 + HOUR_US, amounts=(), naming=Naming(texts={}), classes={},
        coverage=(),
    )  # fmt: skip
    node = explain_total(report, [child])
    assert node.children == (child,)
    assert isinstance(dict(node.figures)["total"], Missing)
    assert isinstance(dict(node.figures)["rows"], Missing)


def test_an_unknown_kind_of_row_is_a_bug() -> None:
    """Every kind of row has an explanation; a new one without it fails loudly."""

    class Strange(Row):
        kind: ClassVar[str] = "strange"

    with pytest.raises(ValueError, match="'strange'"):
        explain_row(Strange())
