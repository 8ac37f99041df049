"""The journal: rows of the ledger as sentences, oldest first, so that a person can read what happened."""

from __future__ import annotations

import json
from collections.abc import Iterable

from gpuledger.accounting.meanings import meaning_of
from gpuledger.model.archive import Archive
from gpuledger.model.controller_clock import CLOCK, offset_us, words
from gpuledger.model.durations import duration_ms, duration_us, memory_mib, several
from gpuledger.model.journal import JournalLine, JournalReport, Level
from gpuledger.model.missing import Missing
from gpuledger.model.moments import iso
from gpuledger.model.reasons import WATCHED
from gpuledger.model.rows import DeviceEvent, Pass, PolicyVersion, Seal, Watch

JournalRow = Watch | DeviceEvent | Pass | PolicyVersion | Archive | Seal
"""The kinds of row that the journal tells."""


def journal(rows: Iterable[JournalRow], *, since_us: int, until_us: int) -> JournalReport:
    """The lines of a window, by time, then host, device and reference."""
    lines = sorted(
        (line_of(row) for row in rows),
        key=lambda line: (line.at_us, line.until_us, line.host, line.device, line.source, line.ref),
    )
    return JournalReport(since_us=since_us, until_us=until_us, lines=tuple(lines))


def line_of(row: JournalRow) -> JournalLine:
    """One row as a line."""
    match row:
        case Watch():
            return _watch(row)
        case DeviceEvent():
            return _device(row)
        case Pass():
            return _line(row, row.at_us, "pass", _pass(row))
        case PolicyVersion():
            effective = f"in effect from {iso(row.effective_from_us)}"
            return _line(row, row.applied_at_us, "policy", f"policy version {row.version} applied, {effective}")
        case Archive():
            left = f"{several(row.row_count, 'row')} of {row.rows_of} of {row.month} left for {row.file_name}"
            return _line(row, row.archived_at_us, "archive", left)
        case Seal():
            writers = len(json.loads(row.heads))
            return _line(row, row.at_us, "seal", f"{several(writers, 'chain')} sealed, root {row.root[:16]}")


def _watch(row: Watch) -> JournalLine:
    span_us = row.until_us - row.since_us
    looks = several(row.readings, "look")
    how = f"by {row.method}" + (f" every {duration_ms(row.interval_ms)}" if row.interval_ms else "")
    while_looking = f" in {duration_us(span_us)}" if span_us else ""
    found = ""
    if row.source == "driver":
        found = f": {several(row.new_rows, 'newly finished process', 'newly finished processes')}, "
        found += ("at most " if row.readings > 1 else "") + f"{several(row.living, 'context')} alive"
    detail = f"; {row.detail}" if row.detail else ""
    if row.source == "controller" and row.method == CLOCK:
        sentence = f"its clock is {words(offset_us(row))}" + ("" if row.status in WATCHED else f": {row.status}")
    elif row.status in WATCHED and not row.readings:
        sentence = row.detail  # a remark of the agent's, no look
    elif row.status in WATCHED:
        what = "processes named" if row.source == "process" else "driver read"
        sentence = f"{what} {how}, {looks}{while_looking}{found}{detail}"
    else:
        span = f" for {duration_us(span_us)}" if span_us else ""
        meaning = meaning_of(row.status)[0]
        sentence = f"UNKNOWN {row.status}{span}: {meaning}{'' if row.detail == meaning else detail}"
    return JournalLine(
        at_us=row.since_us,
        until_us=row.until_us,
        host=row.host,
        device=row.device,
        source=row.source,
        sentence=sentence,
        ref=row.ref,
        level=Level.OK if row.status in WATCHED else Level.UNKNOWN,
    )


def _device(row: DeviceEvent) -> JournalLine:
    memory = "" if isinstance(row.memory_mib, Missing) else f", {memory_mib(row.memory_mib)}"
    parent = f", a slice of {row.parent}" if row.parent else ""
    driver = f", driver {row.driver_version}" if row.driver_version else ""
    sentence = f"device {row.event}: {row.class_name}{memory}{parent}{driver}"
    level = Level.UNKNOWN if row.event == "lost" else Level.CHANGE
    return JournalLine(
        at_us=row.at_us,
        until_us=row.at_us,
        host=row.host,
        device=row.device,
        source="device",
        sentence=sentence,
        ref=row.ref,
        level=level,
    )


def _pass(row: Pass) -> str:
    added = f"{several(row.records_added, 'record')} and {several(row.corrections_added, 'correction')} booked"
    if row.covered_from_us == row.covered_until_us:
        return f"metering pass: no new hour closed, {added}"
    return f"metering pass: hours {iso(row.covered_from_us)} to {iso(row.covered_until_us)} closed, {added}"


def _line(row: Pass | PolicyVersion | Archive | Seal, at_us: int, source: str, sentence: str) -> JournalLine:
    changes = isinstance(row, PolicyVersion | Archive) or (isinstance(row, Pass) and row.corrections_added > 0)
    level = Level.CHANGE if changes else Level.OK
    return JournalLine(
        at_us=at_us, until_us=at_us, host="", device="", source=source, sentence=sentence, ref=row.ref, level=level
    )
