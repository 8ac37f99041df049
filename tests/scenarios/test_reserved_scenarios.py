"""Scenarios of reserved time: what control planes told, as an aligned text table, and below it what the ledger answers.

A file of ``reserved/`` is one scenario. Its first lines, each with ``#``, say in a sentence what it shows. Then comes
one line for each thing that happened, in the order in which the ledger learned of it, and after a line of dashes the
answer:

    time  workload  what  where  details

``time``   ``HH:MM`` or ``HH:MM:SS.ffffff`` UTC of 2026-10-24; hours go past 24. ``ISO`` with an offset for a zone
``what``   a state; ``beat`` (of a source); ``clock`` (a source says how far it is ahead);
           ``step`` (an agent saw its clock set, from then ``to=``); ``device`` (a GPU is seen);
           ``owner`` (of a host, by policy); ``pass`` (a metering pass then); ``two-passes`` (two meters at once);
           ``correct`` (final hours, booked); ``usage`` (``by=``, ``since=``, ``until=``, ``meter=``); ``blind``
``where``  the machine, or ``-``
details    ``class=`` ``share=`` ``devices=`` (a number, or UUIDs) ``user=`` ``team=`` ``qos=`` ``source=`` ``declared``
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import pytest

from control_plane import ControlPlane
from gpuledger.accounting.reserved import parse_reserved_by
from gpuledger.ledger.store import Ledger
from gpuledger.model.lifecycle import Placement, State
from gpuledger.model.meters import RESERVED_METERS
from gpuledger.model.moments import HOUR_US, parse_moment
from gpuledger.model.outcomes import MeterReport
from gpuledger.model.reserved import PLACED
from gpuledger.model.rows import DeviceEvent, PolicyVersion, UsageRecord, Watch
from gpuledger.model.workload_rows import PlacementRow
from gpuledger.operations.blind_reserved import reserved_gaps
from gpuledger.operations.correct import correct
from gpuledger.operations.transition import heartbeat
from gpuledger.operations.usage_reserved import usage_reserved
from gpuledger.operations.verify import verify
from gpuledger.reports.reserved_report import to_json

FOLDER = Path(__file__).parent / "reserved"
DAY_US = parse_moment("2026-10-24", now_us=0)
DASHES = "-" * 96
STATES = {state.value for state in State}


def moment(text: str) -> int:
    """Microseconds UTC of a clock time, or of a time with its date and zone."""
    if "T" in text:
        return parse_moment(text, now_us=0)
    hours, minutes, *rest = text.split(":")
    seconds, _, fraction = (rest[0] if rest else "0").partition(".")
    whole = (int(hours) * 60 + int(minutes)) * 60 + int(seconds)
    return DAY_US + whole * 1_000_000 + int(fraction.ljust(6, "0") or "0")


def clock(at_us: int) -> str:
    """Hours and minutes since the day began; hours go past 24."""
    minutes = (at_us - DAY_US) // 60_000_000
    return f"{minutes // 60:02}:{minutes % 60:02}"


class Story(ControlPlane):
    """A ledger, and what it answered so far."""

    def at(self, hour: float | Fraction) -> int:
        """Hours after midnight of the scenario's day."""
        return DAY_US + round(Fraction(hour) * HOUR_US)

    def take(self, line: str) -> Iterator[str]:
        """One line of the table; what it answers."""
        time, workload, what, where, *rest = [*line.split(), "-"][: max(4, len(line.split()))]
        words = {word.partition("=")[0]: word.partition("=")[2] for word in rest}
        at_us = moment(time)
        hour = Fraction(at_us - DAY_US, HOUR_US)
        if what in STATES:
            self.tell(
                workload, what, hour, placed(where, words), source=words.get("source", "cp"),
                declared="declared" in words, user=words.get("user", "al"), team=words.get("team", ""),
                labels=f'{{"qos": "{words["qos"]}"}}' if "qos" in words else "",
            )  # fmt: skip
        elif what == "beat":
            self.beat(hour, source=workload)
        elif what == "clock":
            ahead_us = int(words["ahead"]) * 1_000_000
            heartbeat(
                self.ledger, workload, writer="box.transition", at_us=at_us, interval_us=60_000_000,
                clock_us=at_us + ahead_us,
            )  # fmt: skip
        elif what == "step":
            stepped = Watch(
                host=where, device="", source="driver", method="poll", interval_ms=1000, since_us=at_us,
                until_us=moment(words["to"]), status="clock-step", detail="the clock was set forward", readings=0,
            )  # fmt: skip
            self.ledger.append([stepped], writer=f"{where}.agent", at_us=at_us)
        elif what == "device":
            seen = DeviceEvent(
                host=where, device=words["uuid"], at_us=at_us, event="seen", class_name=words["class"], product="x",
                memory_mib=1, method="nvml",
            )  # fmt: skip
            self.ledger.append([seen], writer=f"{where}.agent", at_us=at_us)
        elif what == "owner":
            text = f"effective_from: 2026-01-01T00:00:00Z\nowners: {{hosts: {{{where}: {{owner: {workload}}}}}}}\n"
            row = PolicyVersion(
                version=1, effective_from_us=0, applied_at_us=at_us, document=text, document_hash="",
            )  # fmt: skip
            self.ledger.append([row], writer="box.policy", at_us=at_us)
        elif what == "pass":
            yield from self.told(time, self.meter(hour))
        elif what == "two-passes":
            with Ledger.open(self.place, mode="append") as other:
                first, second = self.meter(hour), self.meter(hour, other, writer="far.meter")
            yield from self.told(time, first)
            yield f"  {time}  the other meter booked {len(second.records) + len(second.corrections)} rows"
        elif what == "correct":
            report = correct(
                self.ledger, why=words["why"], by=words["by"], since_us=self.at(-9999), until_us=at_us, is_done=True,
                now_us=at_us, writer="box.correct", pass_writer="box.meter",
            )  # fmt: skip
            for row in report.corrections:
                yield self.line(time, "correction", row.hour_us, row.device, row.subject, row.delta, row.reason)
        elif what == "usage":
            yield from self.usage(at_us, words)
        elif what == "blind":
            since_us, until_us = moment(words["since"]), moment(words["until"])
            yield f"blind {words['since']} to {words['until']}"
            for gap in reserved_gaps(self.ledger, since_us=since_us, until_us=until_us, now_us=at_us):
                yield f"  {gap.reason:18} {gap.what:10} {gap.seconds:>8} s  {gap.detail}"
        else:
            raise AssertionError(f"no such event: {what!r}")

    def usage(self, at_us: int, words: dict[str, str]) -> Iterator[str]:
        """The table of ``usage``, one line a group."""
        by = parse_reserved_by(words.get("by", "workload"))
        meter = next(one for one in RESERVED_METERS if one.name == words.get("meter", "gpu.reserved"))
        since_us, until_us = moment(words["since"]), moment(words["until"])
        report = usage_reserved(
            self.ledger, meter=meter, by=by, since_us=since_us, until_us=until_us, now_us=at_us
        )  # fmt: skip
        document = to_json(report)
        yield f"usage of {meter.name} by {', '.join(by)}, {words['since']} to {words['until']}"
        for row in document["rows"]:  # type: ignore[union-attr]
            key = "  ".join(f"{row[word]:10}" for word in by)  # type: ignore[index,call-overload]
            owned = f"  of {row['owned']} owned" if row["owned"] else ""  # type: ignore[index,call-overload]
            later = f"  provisional {row['provisional']}" if row["provisional"] != "0.000" else ""  # type: ignore[index,call-overload]
            yield f"  {key}  {row['quantity']:>12}{owned}{later}"  # type: ignore[index,call-overload]
        yield f"  total {document['total']} {document['unit']}"

    def told(self, time: str, report: MeterReport) -> Iterator[str]:
        """What a pass booked, and what it may not."""
        yield f"pass {time}" + (f", {report.late} late" if report.late else "")
        lines = []
        for row in (*report.records, *report.corrections):
            is_record = isinstance(row, UsageRecord)
            amount = row.quantity if isinstance(row, UsageRecord) else row.delta
            tail = row.meter if isinstance(row, UsageRecord) else row.reason
            kind = "record" if is_record else "correction"
            lines.append(self.line(time, kind, row.hour_us, row.device, row.subject, amount, tail))
        yield from sorted(lines, key=lambda line: ("correction" in line, line))  # subjects are salted keys

    def line(self, time: str, kind: str, hour_us: int, device: str, subject: str, amount: int, tail: str) -> str:
        """One booked row."""
        texts = self.ledger.texts([subject])
        places = {row.placement: row for row in self.ledger.scan(PlacementRow)}
        place = places[device.removeprefix(PLACED)]
        sign = "+" if kind == "correction" else ""
        return (
            f"  {time:>6}  {kind:10}  {clock(hour_us):>6}  {texts[subject].workload:8}  {place.machine or '-':4}  "
            f"{place.class_name:10}  {amount:>{sign}6}  {tail}"
        )


def placed(machine: str, words: dict[str, str]) -> Placement | None:
    """The placement that a line names."""
    if machine == "-":
        return None
    of = words.get("class", "H100")
    devices = words.get("devices", "0" if of == "cpu" else "1")
    uuids = () if devices.isdigit() else tuple(sorted(devices.split(",")))
    return Placement(
        class_name=of, machine=machine, devices=uuids, count=len(uuids) or int(devices),
        share=Fraction(words.get("share", "1")),
    )  # fmt: skip


SCENARIOS = sorted(FOLDER.glob("*.txt"))


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)
def test_reserved_scenario(path: Path, tmp_path: Path) -> None:
    """The answer below the table is what the ledger says of the lines above it, and every check passes."""
    lines = path.read_text(encoding="utf-8").splitlines()
    end = lines.index(DASHES) if DASHES in lines else len(lines)
    table, expected = lines[:end], lines[end + 1 :]
    assert table[0].startswith("# "), "a scenario opens with a sentence"
    story = Story(tmp_path / "story.db")
    told: list[str] = []
    last = ""
    for line in table:
        if line.strip() and not line.startswith(("#", "time ")):
            told += [one.rstrip() for one in story.take(line)]
            last = line.split()[0]
    checks = verify(story.ledger, now_us=moment(last)).checks
    assert not [finding for check in checks for finding in check.findings]
    story.ledger.close()
    if os.environ.get("GPULEDGER_ACCEPT"):
        path.write_text("\n".join([*table, DASHES, *told, ""]), encoding="utf-8")
        return
    assert told == expected


def test_there_are_scenarios() -> None:
    """The folder was found, so that an empty run cannot pass."""
    assert len(SCENARIOS) >= 12
