"""Laws of time: what 48 hours make final, what a heartbeat lets be counted, and that nothing is counted twice.

Control planes tell events late and in any order, meters run when they like. After each pass: hours that are not final
hold what the events told so far come to; final ones hold what they held; and with a heartbeat nothing is counted
beyond it, until it returns.
"""

from __future__ import annotations

import tempfile
from collections import defaultdict
from functools import cache
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from control_plane import MIDNIGHT_US, ControlPlane, as_row
from gpuledger.ledger.store import Ledger
from gpuledger.metering.records import closed_until
from gpuledger.model.identity import IdentityText
from gpuledger.model.reserved import PLACED
from gpuledger.model.rows import UsageCorrection, UsageRecord
from gpuledger.model.workload_rows import WorkloadEvent
from gpuledger.operations.blind_reserved import reserved_gaps
from reserved_oracle import HOUR, microseconds, seconds

Held = dict[tuple[int, str, str], int]
"""(hour, placement, subject) to seconds that stand."""

FINAL_AFTER = 48 * HOUR

workloads = st.sampled_from("abc")
states = st.sampled_from(["pending", "provisioning", "booting", "running", "running", "stopping", "stopped", "failed"])
late_quarters = st.one_of(st.integers(0, 8), st.integers(190, 300), st.integers(0, 500))
machines = st.sampled_from([None, None, "n1", "n2"])
told = st.tuples(st.just("tell"), workloads, states, late_quarters, machines)
passed = st.tuples(st.just("pass"), st.sampled_from([1, 2, 23, 47, 48, 52]))
ALREADY = [("tell", "a", "running", 300, "n1"), ("tell", "b", "running", 200, None), ("pass", 1)]
"""What has happened before each story: two run, one of them nobody knows where, and some hours are recorded."""


@cache
def empty() -> bytes:
    """The file of an empty ledger."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "empty.db"
        Ledger.open(place, mode="append").close()
        return place.read_bytes()


class Desk:
    """A ledger, and what is known of it without the program's own rules."""

    def __init__(self, folder: str) -> None:
        place = Path(folder) / "plane.db"
        place.write_bytes(empty())
        self.plane = ControlPlane(place)
        self.now_us = MIDNIGHT_US + 80 * HOUR
        self.covered: dict[int, int] = {}
        self.whose: dict[str, str] = {}
        self._told = 0

    def tell(self, workload: str, state: str, at_us: int, machine: str | None, source: str = "cp") -> None:
        """One event, appended as it came."""
        self._told += 1
        placement = self.plane.placement(machine) if machine else None
        subject = self.plane.ledger.key_of(IdentityText(workload=workload, user="al"))
        self.whose[subject] = workload
        event = WorkloadEvent(
            workload=workload, event_id=f"{self._told}", sequence=self._told, state=state, at_us=at_us,
            recorded_at_us=self.now_us, source=source, subject=subject, placement=placement.key if placement else "",
        )  # fmt: skip
        rows = [as_row(placement), event] if placement else [event]
        self.plane.ledger.append(rows, writer="box.transition", at_us=self.now_us)

    def events(self) -> list[WorkloadEvent]:
        """All that were told so far."""
        return list(self.plane.ledger.scan(WorkloadEvent))

    def held(self) -> Held:
        """Records and corrections, added up."""
        found: Held = defaultdict(int)
        for row in (*self.plane.ledger.scan(UsageRecord), *self.plane.ledger.scan(UsageCorrection)):
            amount = row.quantity if isinstance(row, UsageRecord) else row.delta
            found[row.hour_us, row.device.removeprefix(PLACED), row.subject] += amount
        return dict(found)

    def meter(self) -> int:
        """A pass now; how many rows it booked."""
        report = self.plane.meter((self.now_us - MIDNIGHT_US) / HOUR)
        return len(report.records) + len(report.corrections)

    def cover(self) -> None:
        """What this pass covered first: from the first event on, up to the last closed hour."""
        first_us = min((event.at_us for event in self.events()), default=closed_until(self.now_us))
        first_us -= first_us % HOUR
        for hour_us in range(min([first_us, *self.covered]), closed_until(self.now_us), HOUR):
            self.covered.setdefault(hour_us, self.now_us)


def expected(desk: Desk, beats: dict[str, int] | None = None) -> Held:
    """What the events told so far come to, of closed hours."""
    found: Held = {}
    for (_, hour_us, placement, subject), amount in seconds(
        desk.events(), until_us=closed_until(desk.now_us), beats=beats
    ).items():
        found[hour_us, placement, subject] = amount
    return found


@settings(max_examples=20, deadline=None)
@given(st.lists(st.one_of(told, passed), max_size=12))
def test_before_finality_the_events_are_right_and_after_it_the_records(steps) -> None:
    """Whatever order and lateness: a final hour never changes, save that time which had no placement finds one."""
    with tempfile.TemporaryDirectory() as folder:
        desk = Desk(folder)
        unplaced: set[tuple[str, int]] = set()
        for step in [*ALREADY, *steps, ("pass", 1)]:
            if step[0] == "tell":
                _, workload, state, quarters, machine = step
                desk.tell(workload, state, max(MIDNIGHT_US, desk.now_us - quarters * HOUR // 4), machine)
                continue
            desk.now_us += step[1] * HOUR
            before, should = desk.held(), expected(desk)
            final = {hour_us for hour_us, at_us in desk.covered.items() if at_us + FINAL_AFTER <= desk.now_us}
            desk.meter()
            after = desk.held()
            for key in {*before, *after, *should}:
                stood, stands = before.get(key, 0), after.get(key, 0)
                if key[0] not in final:
                    assert stands == should.get(key, 0)
                elif stands != stood:
                    assert key not in before
                    assert (desk.whose[key[2]], key[0]) in unplaced
                    assert stands == should[key]
            assert desk.meter() == 0
            desk.cover()
            open_us = closed_until(desk.now_us)
            unplaced = {
                (w, hour) for w, hour, placement, _ in microseconds(desk.events(), until_us=open_us) if not placement
            }
        desk.plane.ledger.close()


beating = st.lists(
    st.one_of(
        st.tuples(st.just("tell"), workloads, states, st.integers(0, 12), machines),
        st.tuples(st.just("beat"), st.integers(0, 12)),
        st.tuples(st.just("pass"), st.integers(1, 9)),
    ),
    max_size=16,
)


@settings(max_examples=30, deadline=None)
@given(beating)
def test_nothing_is_counted_beyond_the_last_beat_and_what_returns_is_counted_once(steps) -> None:
    """After each pass: what the events come to when open time is cut at the last beat. When it returns, the whole."""
    with tempfile.TemporaryDirectory() as folder:
        desk = Desk(folder)
        beat_us = 0
        for step in [*steps, ("pass", 1), ("beat", 0), ("pass", 1)]:
            if step[0] == "tell":
                _, workload, state, quarters, machine = step
                desk.tell(workload, state, desk.now_us - quarters * HOUR // 4, machine)
            elif step[0] == "beat":
                beat_us = max(beat_us, desk.now_us - step[1] * HOUR // 4)
                desk.plane.beat((desk.now_us - step[1] * HOUR // 4 - MIDNIGHT_US) / HOUR)
            else:
                desk.now_us += step[1] * HOUR
                booked = desk.meter()
                beats = {"cp": beat_us} if beat_us else None
                stands = {key: amount for key, amount in desk.held().items() if amount}
                assert stands == expected(desk, beats)
                assert booked >= 0
                assert desk.meter() == 0
        desk.plane.ledger.close()


@settings(max_examples=20, deadline=None)
@given(
    st.lists(st.tuples(workloads, st.integers(0, 30 * 60), machines.filter(bool)), min_size=1, max_size=5),
    st.integers(0, 30 * 60),
)
def test_what_is_counted_and_what_is_silent_make_the_whole(starts, beat_minute) -> None:
    """Of open workloads: counted up to the last beat, ``controller-silent`` from there to the end of the window."""
    minute = HOUR // 60
    with tempfile.TemporaryDirectory() as folder:
        desk = Desk(folder)
        begun: dict[str, int] = {}
        for workload, at, machine in starts:
            at_us = MIDNIGHT_US + at * minute
            desk.tell(workload, "running", at_us, machine)
            begun[workload] = min(at_us, begun.get(workload, at_us))
        beat_us = MIDNIGHT_US + beat_minute * minute
        desk.plane.beat(beat_minute / 60)
        until_us = MIDNIGHT_US + 31 * HOUR
        desk.now_us = until_us + HOUR
        desk.meter()
        gaps = reserved_gaps(desk.plane.ledger, since_us=MIDNIGHT_US, until_us=until_us, now_us=desk.now_us)
        silent = sum(gap.seconds for gap in gaps if gap.reason == "controller-silent")
        counted = sum(desk.held().values())
        last = {w: max(at * minute + MIDNIGHT_US for name, at, _ in starts if name == w) for w in begun}
        # a workload's last interval is the open one; those before it end with the next event, beat or not
        closed = sum(last[w] - begun[w] for w in begun)
        counted_open = sum(max(0, beat_us - last[w]) for w in begun)
        assert counted == (closed + counted_open) // 1_000_000
        assert silent == sum(until_us - max(beat_us, last[w]) for w in begun) // 1_000_000
        desk.plane.beat(32)
        desk.now_us += 2 * HOUR
        desk.meter()
        whole = sum(amount for (hour_us, _, _), amount in desk.held().items() if hour_us < until_us)
        assert whole == sum(until_us - begun[w] for w in begun) // 1_000_000
        desk.plane.ledger.close()
