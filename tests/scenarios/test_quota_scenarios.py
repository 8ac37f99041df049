"""Scenarios of quotas: who asked for what in which order, as an aligned text table, and below it what was answered.

A file of ``quotas/`` is one scenario. Its first lines, each with ``#``, say in a sentence what it shows; ``quota`` and
``zone`` lines are the policy. Then comes one line for each thing that happened, in the order in which the ledger
learned of it, and after a line of dashes the answers:

    time  workload  what  who  details

``time``   ``HH:MM`` UTC of 2026-10-24; hours go past 24
``what``   ``ask`` (a request), ``check`` (one that takes nothing), a state, ``import`` (a fact), ``pass``, ``beat`` (of
           the source ``ctl``), ``show`` (``quota``), ``policy`` (the quota lines that follow until the next blank line
           replace those before, from then on)
``who``    the user, or ``-``
details    ``class=`` ``devices=`` (a number, or UUIDs) ``share=`` ``until=HH:MM``; of a state ``at=HH:MM`` told later

``GPULEDGER_ACCEPT=1`` rewrites the answers; the difference is reviewed.
"""

from __future__ import annotations

import os
from fractions import Fraction
from pathlib import Path

import pytest

from gpuledger.errors import Refused
from gpuledger.ledger import verify_ledger
from gpuledger.model.lifecycle import Placement, State
from gpuledger.model.missing import Missing
from gpuledger.model.moments import MINUTE_US, parse_moment
from gpuledger.model.quotas import AdmitReport
from gpuledger.operations.meter import meter
from gpuledger.operations.quota import quota
from gpuledger.operations.transition import heartbeat
from gpuledger.reports.quota_cells import amounts
from quota_desk import Desk

FOLDER = Path(__file__).parent / "quotas"
DAY_US = parse_moment("2026-10-24", now_us=0)
DASHES = "-" * 96
STATES = {state.value for state in State}


def minute(clock: str) -> int:
    """Minutes since the day began."""
    hours, minutes = clock.split(":")
    return int(hours) * 60 + int(minutes)


def clock(at_us: int | Missing) -> str:
    """Hours and minutes since the day began, or why there are none."""
    if isinstance(at_us, Missing):
        return at_us.reason
    minutes = (at_us - DAY_US) // MINUTE_US
    return f"{minutes // 60:02}:{minutes % 60:02}"


def placement(words: dict[str, str]) -> Placement:
    """What is asked for."""
    devices = words.get("devices", "1")
    names = () if devices.isdigit() else tuple(sorted(devices.split(",")))
    return Placement(
        class_name=words.get("class", "H100"), devices=names, count=len(names) or int(devices),
        share=Fraction(words.get("share", "1")),
    )  # fmt: skip


def answered(report: AdmitReport) -> str:
    """One line: yes with what is left, or no with every reason and the earliest place."""
    if report.admitted:
        held = report.hold
        until = "-" if isinstance(held, Missing) else clock(held.expires_at_us)
        left = ", ".join(f"{use.bound.scope_words} {amounts(use)[2]} left" for use in report.uses)
        return f"yes{' again' if report.known else ''}, held {until}; {left or 'no quotas'}"
    return f"no, free {clock(report.frees_us)}; {'; '.join(report.reasons)}"


class Story:
    """A desk, and what it answered so far."""

    def __init__(self, place: Path, policy: list[str]) -> None:
        zone = next((line.split()[1] for line in policy if line.startswith("zone ")), "")
        self.desk = Desk(place, start_us=DAY_US)
        self.zone = zone
        self.apply(0, policy)

    def apply(self, at: int, policy: list[str]) -> None:
        """The quotas from now on."""
        quotas = "\n".join(line.removeprefix("quota ") for line in policy if line.startswith("quota "))
        self.desk.apply(quotas, minute=at, zone=self.zone)

    def take(self, line: str) -> list[str]:
        """One line of the table; what it answers."""
        time, workload, what, who, *rest = [*line.split(), "-", "-"][: max(4, len(line.split()))]
        words = {word.partition("=")[0]: word.partition("=")[2] for word in rest}
        now, user = minute(time), "" if who == "-" else who
        place = placement(words)
        if what in ("ask", "check"):
            until = minute(words["until"]) if "until" in words else None
            try:
                report = self.desk.ask(workload, user, now, placement=place, until=until, check=what == "check")
            except Refused as error:
                return [f"{time} {workload}: {error.code}"]
            return [f"{time} {workload}: {answered(report)}"]
        if what in STATES:
            at = minute(words.pop("at", time))
            self.desk.tell(workload, what, at, place if words else None, now=now, user=user)
        elif what == "import":
            self.desk.tell(workload, "running", minute(words["at"]), place, now=now, user=user, imported=True)
        elif what == "pass":
            meter(self.desk.ledger, now_us=self.desk.at(now), writer="box.meter")
        elif what == "beat":
            heartbeat(self.desk.ledger, "ctl", writer="box.ctl", at_us=self.desk.at(now), interval_us=MINUTE_US)
        elif what == "show":
            report = quota(self.desk.ledger, now_us=self.desk.at(now))
            lines = [
                f"{time} {use.bound.words}: used {amounts(use)[0]}, promised {amounts(use)[1]}, left {amounts(use)[2]}"
                f"{' OVER' if use.is_over else ''}"
                for use in report.uses
            ]
            return lines + [f"{time} unknown {gap.reason}: {gap.seconds} s of {gap.what}" for gap in report.unknown]
        else:
            raise AssertionError(line)
        return []


def played(text: str, place: Path) -> str:
    """The answers of a scenario."""
    lines = [line for line in text.split(DASHES, maxsplit=1)[0].splitlines() if not line.startswith("#")]
    begin = next(number for number, line in enumerate(lines) if line.startswith("time "))
    story = Story(place, lines[:begin])
    found: list[str] = []
    waiting = iter(lines[begin + 1 :])
    for line in waiting:
        if " policy" in line:
            policy: list[str] = []
            for one in waiting:
                if not one.startswith("quota "):
                    break
                policy.append(one)
            story.apply(minute(line.split()[0]), policy)
        elif line.strip():
            found += story.take(line)
    assert verify_ledger(story.desk.ledger) == []
    story.desk.ledger.close()
    return "\n".join(found) + "\n"


@pytest.mark.parametrize("scenario", sorted(FOLDER.glob("*.txt")), ids=lambda path: path.stem)
def test_the_desk_answers_what_is_written(scenario: Path, tmp_path: Path) -> None:
    """As it stands below the dashes."""
    text = scenario.read_text(encoding="utf-8")
    table, _, expected = text.partition(DASHES + "\n")
    found = played(text, tmp_path / "desk.db")
    if os.environ.get("GPULEDGER_ACCEPT"):
        scenario.write_text(f"{table}{DASHES}\n{found}", encoding="utf-8")
    else:
        assert found == expected
