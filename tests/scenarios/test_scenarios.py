"""Scenarios: what happened on a machine as an aligned text table, and below it what the ledger must answer.

A file is one scenario. Its first lines, each with ``#``, say in a sentence what it shows. Then comes one
line for each row of evidence, in columns, and after a line of dashes the answer:

    time  where  event  pid  owner  details

``time``     ``HH:MM``, ``HH:MM:SS`` or ``HH:MM:SS.ffffff`` UTC; 26:00 is 02:00 of the next day; ``-`` unknown
``where``    ``HOST`` or ``HOST/DEVICE``
``event``    what the line is evidence of (below)
``pid``      a number or ``-``;  ``owner`` the name that an identity gives, or ``-``
``details``  ``word=value`` each, or a bare word

    event    time is                  details
    process  the start of a process   seen= (default: the start)  ticks= (1)  boot= (b1)  exec= (0)
    claim    when it was claimed      by= pid-map or nvidia-smi (pid-map)
    settled  the driver's start or -  ms=  read=  mib= (100)
    seen     the first look           until=  start= (driver's start)  ticks= (1; 0: unreadable)  boot= (b1)
                                      gone=  died  mib= (memory all the time)  busy= (ms)  accounted= (unknown)
                                      by= (nvml)
    naming   first moment watched     until=  every= (ms)  status= (ok)
    looking  first moment watched     until=  every= (ms)  status= (ok)  by= (nvml)
    pass     when a metering pass runs, over the lines above it
    window   since                    until=   one line, needed

The answer is written by ``GPULEDGER_ACCEPT=1`` and reviewed as a diff.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from gpuledger.metering.contexts import contexts
from gpuledger.metering.coverage import coverage
from gpuledger.metering.derive import derive
from gpuledger.metering.records import closed_until, compare
from gpuledger.model.missing import Missing
from gpuledger.model.moments import HOUR_US, parse_moment
from gpuledger.model.quantities import Evidence
from gpuledger.model.rows import DriverRecord, ProcessIdentity, Row, Sighting, UsageCorrection, UsageRecord, Watch

FOLDER = Path(__file__).parent
DASHES = "-" * 88
DAY_US = parse_moment("2026-11-29", now_us=0)
UNKNOWN = Missing("scenario: not given")


@dataclass
class Story:
    """A scenario as read: its rows, its window, and what the passes wrote."""

    since_us: int = 0
    until_us: int = 0
    rows: list[Row] = field(default_factory=list)
    covered_until_us: int = 0
    records: list[UsageRecord] = field(default_factory=list)
    corrections: list[UsageCorrection] = field(default_factory=list)
    passes: list[str] = field(default_factory=list)

    def evidence(self) -> Evidence:
        """All rows so far."""

        def of(kind: type[Row]) -> tuple[Row, ...]:
            return tuple(row for row in self.rows if isinstance(row, kind))

        return Evidence(
            driver_records=of(DriverRecord), sightings=of(Sighting), identities=of(ProcessIdentity), watches=of(Watch)
        )  # fmt: skip


def moment(text: str) -> int:
    """Microseconds UTC of a clock time of the day; hours may go past 24."""
    hours, minutes, *rest = text.split(":")
    seconds, _, fraction = (rest[0] if rest else "0").partition(".")
    whole = (int(hours) * 60 + int(minutes)) * 60 + int(seconds)
    return DAY_US + whole * 1_000_000 + int(fraction.ljust(6, "0") or "0")


def clock(at_us: int) -> str:
    """The inverse of :func:`moment`, to the ms."""
    ms = (at_us - DAY_US) // 1000
    return f"{ms // 3_600_000:02}:{ms // 60_000 % 60:02}:{ms // 1000 % 60:02}.{ms % 1000:03}"


def read(lines: list[str]) -> Story:
    """Run the table: every line adds a row, or does a pass over the rows above."""
    story = Story()
    for number, line in enumerate(lines, start=1):
        if line.strip() and not line.startswith(("#", "time ")):
            take(story, number, line)
    assert story.until_us, "a scenario needs a window line"
    return story


def take(story: Story, number: int, line: str) -> None:
    """One line of the table."""
    time, where, event, pid, owner, *rest = [*line.split(), "-", "-", "-", "-"][: max(5, len(line.split()))]
    words = {word.partition("=")[0]: word.partition("=")[2] for word in rest}
    host, _, device = where.partition("/")
    at_us = UNKNOWN if time == "-" else moment(time)

    def when(word: str) -> int | Missing:
        return moment(words[word]) if word in words else UNKNOWN

    process = {"boot_id": words.get("boot", "b1"), "start_ticks": int(words.get("ticks", "1"))}
    place = {"writer": "line", "number": number, "host": host}
    if event == "window":
        story.since_us, story.until_us = at_us, moment(words["until"])
    elif event == "process":
        seen_us = when("seen")
        story.rows.append(
            ProcessIdentity(
                **place, **process, pid=int(pid), exec_number=int(words.get("exec", "0")), started_at_us=at_us,
                seen_at_us=at_us if isinstance(seen_us, Missing) else seen_us, method="poll", grade="kernel",
                text_key=owner,
            )
        )  # fmt: skip
    elif event == "claim":
        story.rows.append(
            ProcessIdentity(
                **place, boot_id="", pid=int(pid), start_ticks=number, started_at_us=UNKNOWN, seen_at_us=at_us,
                method=words.get("by", "pid-map"), grade="claimed", text_key=owner,
            )
        )  # fmt: skip
    elif event == "settled":
        story.rows.append(
            DriverRecord(
                **place, device=device, pid=int(pid), started_at_us=at_us, context_ms=int(words["ms"]),
                peak_memory_mib=int(words.get("mib", "100")), gpu_percent=0, memory_percent=0,
                read_at_us=moment(words["read"]), method=words.get("by", "nvml"),
            )
        )  # fmt: skip
    elif event == "seen":
        until_us = moment(words.get("until", time))
        length_ms = max(0, until_us - at_us) // 1000
        mib = int(words["mib"]) if "mib" in words else UNKNOWN
        story.rows.append(
            Sighting(
                **place, boot_id=process["boot_id"] if process["start_ticks"] else "",
                start_ticks=process["start_ticks"], device=device, pid=int(pid), context_started_at_us=when("start"),
                since_us=at_us, until_us=until_us, accounted=words.get("accounted", "unknown"),
                memory_mib_ms=0 if isinstance(mib, Missing) else mib * length_ms, peak_memory_mib=mib,
                busy_ms=int(words.get("busy", "0")), gone_at_us=when("gone"), process_died=int("died" in words),
                method=words.get("by", "nvml"),
            )
        )  # fmt: skip
    elif event in {"naming", "looking"}:
        story.rows.append(
            Watch(
                **place, device=device, source="process" if event == "naming" else "driver",
                method="poll" if event == "naming" else words.get("by", "nvml"),
                interval_ms=int(words.get("every", "0")), since_us=at_us, until_us=moment(words.get("until", time)),
                status=words.get("status", "ok"),
            )
        )  # fmt: skip
    elif event == "pass":
        meter(story, at_us)
    else:
        raise AssertionError(f"line {number}: unknown event {event!r}")


def meter(story: Story, now_us: int) -> None:
    """A metering pass over what is known; a second one straight after it must find nothing."""
    last_us = min(closed_until(now_us), story.until_us)
    covered = set(range(story.since_us, story.covered_until_us, HOUR_US))
    derived = derive(story.evidence(), since_us=story.since_us, until_us=last_us)
    for attempt in (1, 2):
        records, corrections = compare(
            derived, story.records, story.corrections,
            covered_hours=covered, recorded_at_us=now_us, watches=story.evidence().watches,
        )  # fmt: skip
        assert attempt == 1 or not (records or corrections), "a second pass changes nothing"
        story.records += records
        story.corrections += corrections
        for kind, rows in (("record", records), ("correction", corrections)):
            for row in rows:
                amount, tail = (
                    (f"{row.quantity}", row.context) if isinstance(row, UsageRecord) else (f"{row.delta:+}", row.reason)
                )
                hour = clock(row.hour_us)[:5]
                story.passes.append(
                    f"{clock(now_us)}  {kind:10}  {hour}  {row.meter:11}  {row.subject:32}  {amount:>10}  {tail}"
                )
        covered = set(range(story.since_us, last_us, HOUR_US))
    story.covered_until_us = max(story.covered_until_us, last_us)


def answer(story: Story) -> list[str]:
    """What the ledger says: contexts, quantities by hour, totals, coverage, passes."""
    evidence = story.evidence()
    found = contexts(evidence)
    assert contexts(shuffled(evidence)) == found, "order and duplicates of evidence do not matter"
    lines = ["contexts"]
    for context in found:
        state = "settled" if context.settled else "open" if context.open else "gone"
        spans = " ".join(f"{clock(since)}-{clock(until)}" for since, until in context.spans)
        of = ",".join(sorted((ref.partition("/")[2] for ref in context.evidence), key=int))
        lines.append(
            f"  {context.host}/{context.device}  {context.pid:>7}  {context.subject:32}  {context.context_ms:>9} ms  "
            f"{state:7}  {context.placed:6}  {spans}  from lines {of}"
        )
    derived = derive(evidence, since_us=story.since_us, until_us=story.until_us)
    assert derive(evidence, since_us=story.since_us, until_us=story.until_us, found=found) == derived
    lines.append("hours")
    lines += [
        f"  {clock(q.hour_us)[:5]}  {q.host}/{q.device}  {q.meter:11}  {q.subject:32}  {q.quantity:>10}  {q.context}"
        for q in derived
    ]
    lines.append("totals")
    totals: dict[tuple[str, str], int] = {}
    for q in derived:
        totals[q.meter, q.subject] = totals.get((q.meter, q.subject), 0) + q.quantity
    lines += [f"  {meter:11}  {subject:32}  {amount:>10}" for (meter, subject), amount in sorted(totals.items())]
    looked = sorted({(row.host, row.device) for row in evidence.watches if row.source == "driver" and row.device})
    if looked:
        lines.append("coverage")
    for span in coverage(evidence.watches, looked, since_us=story.since_us, until_us=story.until_us):
        lines.append(
            f"  {span.host}/{span.device}  {clock(span.since_us)}-{clock(span.until_us)}  {span.reason or 'watched'}"
        )
    if story.passes:
        lines += ["passes", *(f"  {line}" for line in story.passes)]
    return [line.rstrip() for line in lines]


def shuffled(evidence: Evidence) -> Evidence:
    """The same evidence backwards and twice."""
    return replace(
        evidence,
        **{
            name: tuple(reversed(getattr(evidence, name))) * 2
            for name in ("driver_records", "sightings", "identities", "watches")
        },
    )


SCENARIOS = sorted(FOLDER.glob("*.txt"))


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)
def test_scenario(path: Path) -> None:
    """The answer below the table is what the ledger says of the lines above it."""
    lines = path.read_text(encoding="utf-8").splitlines()
    end = lines.index(DASHES) if DASHES in lines else len(lines)
    table, expected = lines[:end], lines[end + 1 :]
    assert table[0].startswith("# "), "a scenario opens with a sentence"
    told = answer(read(table))
    if os.environ.get("GPULEDGER_ACCEPT"):
        path.write_text("\n".join([*table, DASHES, *told, ""]), encoding="utf-8")
        return
    assert told == expected


def test_there_are_scenarios() -> None:
    """The folder was found, so that an empty run cannot pass."""
    assert len(SCENARIOS) > 10
