"""The journal: each row a sentence, in the order of time."""

from __future__ import annotations

import pytest

from gpuledger.accounting.journal import JournalRow, journal, line_of
from gpuledger.model.journal import Level
from gpuledger.model.missing import Missing
from gpuledger.model.moments import HOUR_US, SECOND_US, parse_moment
from gpuledger.model.rows import DeviceEvent, Pass, PolicyVersion, Seal, Watch

T0 = parse_moment("2026-07-27", now_us=0)


def watch(**more: object) -> Watch:
    fields: dict = {
        "host": "box", "device": "GPU-1", "source": "driver", "method": "nvml", "interval_ms": 1000, "since_us": T0,
        "until_us": T0 + 300 * SECOND_US, "status": "ok", "readings": 300, "new_rows": 2, "living": 1, **more,
    }  # fmt: skip
    return Watch(writer="box.agent", number=1, **fields)


def device(event: str, **more: object) -> DeviceEvent:
    fields: dict = {"memory_mib": 24_576, "driver_version": "595.80", **more}
    return DeviceEvent(
        host="box", device="GPU-1", at_us=T0, event=event, class_name="RTX-4090", product="p", method="nvml", **fields
    )


def metered(until: int, corrections: int = 0) -> Pass:
    return Pass(
        at_us=T0 + 2 * HOUR_US, covered_from_us=T0, covered_until_us=until, evidence_marks="{}", records_added=12,
        corrections_added=corrections,
    )  # fmt: skip


SENTENCES: list[tuple[JournalRow, Level, str]] = [
    (
        watch(),
        Level.OK,
        "driver read by nvml every 1 s, 300 looks in 5 min: 2 newly finished processes, at most 1 context alive",
    ),
    (
        watch(interval_ms=0, until_us=T0, readings=1, new_rows=1, living=0, method="nvidia-smi"),
        Level.OK,
        "driver read by nvidia-smi, 1 look: 1 newly finished process, 0 contexts alive",
    ),
    (
        watch(source="process", device="", method="poll", interval_ms=60_000, readings=5, detail="as root"),
        Level.OK,
        "processes named by poll every 1 min, 5 looks in 5 min; as root",
    ),
    (
        watch(status="watch-gap", readings=0, detail="no agent was looking"),
        Level.UNKNOWN,
        "UNKNOWN watch-gap for 5 min: no agent was looking",
    ),
    (
        watch(status="accounting-reset", detail="enabled again"),
        Level.UNKNOWN,
        (
            "UNKNOWN accounting-reset for 5 min: every known row vanished or the mode fell off: "
            "the driver was reloaded; enabled again"
        ),
    ),
    (device("seen"), Level.CHANGE, "device seen: RTX-4090, 24 GiB, driver 595.80"),
    (
        device("lost", memory_mib=Missing("gone"), driver_version="", parent="GPU-0"),
        Level.UNKNOWN,
        "device lost: RTX-4090, a slice of GPU-0",
    ),
    (
        metered(T0 + HOUR_US),
        Level.OK,
        "metering pass: hours 2026-07-27T00:00:00Z to 2026-07-27T01:00:00Z closed, 12 records and 0 corrections booked",
    ),
    (metered(T0, 1), Level.CHANGE, "metering pass: no new hour closed, 12 records and 1 correction booked"),
    (
        PolicyVersion(version=2, effective_from_us=T0, applied_at_us=T0, document="", document_hash=""),
        Level.CHANGE,
        "policy version 2 applied, in effect from 2026-07-27T00:00:00Z",
    ),
    (
        Seal(at_us=T0, heads='{"a": [1, "x"], "b": [2, "y"]}', previous_root="0" * 64, root="ab" * 32),
        Level.OK,
        "2 chains sealed, root abababababababab",
    ),
]


@pytest.mark.parametrize(("row", "level", "sentence"), SENTENCES)
def test_each_row_is_a_sentence(row: JournalRow, level: Level, sentence: str) -> None:
    """What was found, in words, with a level that makes UNKNOWN stand out."""
    line = line_of(row)
    assert (line.sentence, line.level, line.ref) == (sentence, level, row.ref)


def test_oldest_first() -> None:
    """Lines are in the order of time, whatever the order of rows."""
    rows = [metered(T0), watch(since_us=T0 + 5), watch(), device("seen")]
    report = journal(rows, since_us=T0, until_us=T0 + HOUR_US)
    assert [line.source for line in report.lines] == ["device", "driver", "driver", "pass"]
    assert [line.at_us for line in report.lines] == sorted(line.at_us for line in report.lines)
