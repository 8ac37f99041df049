"""The laws of measuring, on made-up histories of machines: what must hold whatever was seen and whatever was lost.

A history is made in two steps. First the truth: processes that follow each other under few pids, and the
contexts they hold, one at a time on each device. Then what a source saw of it: an agent that looks at
its interval while it is up, with or without driver starts, with rows the ring lost and processes it
could not read, and a dump without start times imported at the end.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from gpuledger.metering.contexts import contexts
from gpuledger.metering.coverage import coverage
from gpuledger.metering.derive import derive
from gpuledger.metering.records import closed_until, compare
from gpuledger.model.missing import Missing
from gpuledger.model.moments import HOUR_US, MINUTE_US, SECOND_US
from gpuledger.model.quantities import Evidence, Quantity
from gpuledger.model.reasons import UNATTRIBUTED, UnknownReason
from gpuledger.model.rows import DriverRecord, ProcessIdentity, Row, Sighting, UsageCorrection, UsageRecord, Watch

START_US = 500_000 * HOUR_US
END_US = START_US + 6 * HOUR_US
ABSENT = Missing("not given by this source")
DEVICES = ("GPU-a", "GPU-b")


@dataclass(frozen=True)
class TrueContext:
    """What really happened: one context of one process."""

    device: str
    pid: int
    start_ticks: int
    born_us: int
    dead_us: int
    since_us: int
    context_ms: int

    @property
    def until_us(self) -> int:
        return self.since_us + self.context_ms * 1000


@dataclass(frozen=True)
class History:
    """The truth, and the rows that tell of it."""

    truth: tuple[TrueContext, ...]
    rows: tuple[Row, ...]

    def evidence(self, rows: Sequence[Row] | None = None) -> Evidence:
        """Rows (all, unless given) by kind, in the order they stand."""
        kept = self.rows if rows is None else rows
        return Evidence(
            driver_records=tuple(row for row in kept if isinstance(row, DriverRecord)),
            sightings=tuple(row for row in kept if isinstance(row, Sighting)),
            identities=tuple(row for row in kept if isinstance(row, ProcessIdentity)),
            watches=tuple(row for row in kept if isinstance(row, Watch)),
        )


@st.composite
def truths(draw: st.DrawFn) -> tuple[TrueContext, ...]:
    """Contexts of processes that follow each other under three pids. Each has its own length, so rows count."""
    found: list[TrueContext] = []
    for pid in range(1, draw(st.integers(1, 3)) + 1):
        now_us = START_US + draw(st.integers(0, 3000)) * SECOND_US
        for life in range(draw(st.integers(1, 3))):
            born_us = now_us
            ends: list[int] = [born_us]
            for device in DEVICES:
                at_us = born_us
                for _ in range(draw(st.integers(0, 2))):
                    at_us += draw(st.sampled_from((0, 90, 1_200, 5_000, 600_000))) * 1000 + draw(st.integers(0, 999))
                    length_ms = draw(st.sampled_from((1, 400, 6_000, 90_000, 1_800_000, 5_400_000))) * 100
                    length_ms += len(found)
                    found.append(TrueContext(device, pid, pid * 100 + life + 1, born_us, 0, at_us, length_ms))
                    at_us += length_ms * 1000
                    ends.append(at_us)
            dead_us = max(ends) + draw(st.sampled_from((0, 400, 3_000, 60_000))) * 1000
            found = [replace(one, dead_us=dead_us) if one.start_ticks == pid * 100 + life + 1 else one for one in found]
            now_us = dead_us + draw(st.sampled_from((0, 300, 1_500, 5_000, 600_000))) * 1000
    return tuple(found)


@st.composite
def histories(draw: st.DrawFn) -> History:
    """What an agent and a dump tell of a truth."""
    truth = draw(truths())
    interval_us = draw(st.sampled_from((1, 10, 60))) * SECOND_US
    starts, accounting = draw(st.booleans()), draw(st.sampled_from((True, True, False)))
    ups: list[tuple[int, int]] = []
    now_us = START_US + draw(st.integers(0, 60)) * MINUTE_US
    for _ in range(draw(st.integers(1, 3))):
        until_us = now_us + draw(st.integers(1, 150)) * MINUTE_US
        ups.append((now_us, until_us))
        now_us = until_us + draw(st.integers(1, 60)) * MINUTE_US
    rows: list[Row] = []
    for since_us, until_us in ups:
        for device, source in (("", "process"), ("GPU-a", "driver"), ("GPU-b", "driver")):
            rows.append(
                Watch(
                    host="box", device=device, source=source, method="nvml" if device else "poll",
                    interval_ms=interval_us // 1000, since_us=since_us, until_us=until_us, status="ok",
                )
            )  # fmt: skip
    for true in truth:
        readable, kept, dumped = draw(st.booleans()), draw(st.booleans()), draw(st.sampled_from((True, False, False)))
        seen = _seen(true, ups, interval_us, starts=starts and accounting, accounting=accounting, readable=readable)
        rows += seen
        read_us = next((_next_look(true.until_us, up, interval_us) for up in ups if up[1] > true.until_us), None)
        if accounting and kept and read_us is not None:
            rows.append(_driver_row(true, read_us, starts=starts, method="nvml"))
        if accounting and dumped and true.until_us < END_US:
            rows.append(_driver_row(true, END_US, starts=False, method="import"))
        is_lost = accounting and not seen and not dumped and (not kept or read_us is None)
        if is_lost and readable and true.until_us < END_US and draw(st.booleans()):
            rows.append(_booked(true))
    return History(
        truth=truth,
        rows=tuple(replace(row, writer="box.agent", number=number) for number, row in enumerate(rows, start=1)),
    )


def _next_look(at_us: int, up: tuple[int, int], interval_us: int) -> int:
    """The first look at or after a moment within a span of looking."""
    return up[0] if at_us <= up[0] else up[0] + -(-(at_us - up[0]) // interval_us) * interval_us


def _driver_row(true: TrueContext, read_us: int, *, starts: bool, method: str) -> DriverRecord:
    return DriverRecord(
        host="box", device=true.device, pid=true.pid, started_at_us=true.since_us if starts else ABSENT,
        context_ms=true.context_ms, peak_memory_mib=178, gpu_percent=0, memory_percent=0, read_at_us=read_us,
        method=method,
    )  # fmt: skip


def _booked(true: TrueContext) -> Sighting:
    """A context whose row the driver lost, from open to exit, or to the exec that let go of the device."""
    return Sighting(
        host="box", device=true.device, pid=true.pid, boot_id="b", start_ticks=true.start_ticks,
        context_started_at_us=ABSENT, since_us=true.since_us, until_us=true.until_us, accounted="unknown", samples=0,
        peak_memory_mib=ABSENT, gone_at_us=true.until_us, process_died=int(true.dead_us == true.until_us),
        method="ebpf",
    )  # fmt: skip


def _seen(
    true: TrueContext,
    ups: Sequence[tuple[int, int]],
    interval_us: int,
    *,
    starts: bool,
    accounting: bool,
    readable: bool,
) -> list[Row]:
    """The sightings of a context, flushed every 20 minutes, and its process's identity at the first look."""
    rows: list[Row] = []
    for up in ups:
        first_us = _next_look(true.since_us, up, interval_us)
        last_us = min(true.until_us - 1, up[1])
        if last_us < first_us:
            continue
        last_us = up[0] + (last_us - up[0]) // interval_us * interval_us
        missed_us = last_us + interval_us
        since_us = true.since_us if starts and not rows else first_us
        cuts = [*range(since_us + 20 * MINUTE_US, last_us, 20 * MINUTE_US), last_us]
        if readable and not rows:
            rows.append(
                ProcessIdentity(
                    host="box", boot_id="b", pid=true.pid, start_ticks=true.start_ticks, started_at_us=true.born_us,
                    seen_at_us=first_us, method="poll", grade="kernel", text_key=f"program {true.start_ticks}",
                )
            )  # fmt: skip
        for cut_us in cuts:
            gone = cut_us == last_us and missed_us <= up[1]
            length_ms = (cut_us - since_us) // 1000
            rows.append(
                Sighting(
                    host="box", device=true.device, pid=true.pid, boot_id="b" if readable else "",
                    start_ticks=true.start_ticks if readable else 0,
                    context_started_at_us=true.since_us if starts else ABSENT, since_us=since_us, until_us=cut_us,
                    accounted="yes" if accounting else "no", memory_mib_ms=length_ms * 178, memory_ms=length_ms,
                    peak_memory_mib=178, busy_ms=length_ms // 3, gone_at_us=missed_us if gone else ABSENT,
                    process_died=int(gone and true.dead_us <= missed_us), method="nvml",
                )
            )  # fmt: skip
            since_us = cut_us
    return rows


def summed(quantities: Sequence[Quantity], *words: str) -> dict[tuple[object, ...], int]:
    """Quantities added up by some of their fields."""
    sums: dict[tuple[object, ...], int] = {}
    for quantity in quantities:
        key = tuple(getattr(quantity, word) for word in words)
        sums[key] = sums.get(key, 0) + quantity.quantity
    return sums


KEY = ("meter", "hour_us", "host", "device", "subject", "context")
WIDE = {"since_us": START_US - 100 * HOUR_US, "until_us": END_US + 100 * HOUR_US}


@settings(max_examples=150, deadline=None)
@given(histories())
def test_the_total_is_conserved(history: History) -> None:
    """Named + unattributed = the driver's settled figures, each row once, + observed lengths."""
    found = contexts(history.evidence())
    told = [q for q in derive(history.evidence(), **WIDE) if q.meter == "gpu.context"]
    assert sum(q.quantity for q in told) == sum(context.context_ms for context in found)
    named = sum(q.quantity for q in told if not q.subject.startswith(UNATTRIBUTED))
    unnamed = sum(q.quantity for q in told if q.subject.startswith(UNATTRIBUTED))
    settled = {(r.device, r.pid, r.context_ms) for r in history.rows if isinstance(r, DriverRecord)}
    observed = sum(context.context_ms for context in found if not context.settled)
    assert named + unnamed == sum(ms for _, _, ms in settled) + observed


# Without start times a row can fit two contexts, so this bounds a judgement: the same examples every time.
@settings(max_examples=200, deadline=None, derandomize=True)
@given(histories())
def test_nothing_is_counted_twice(history: History) -> None:
    """No pid is told to have held a device longer than it did, and no known process gets another one's name."""
    found = contexts(history.evidence())
    for device in DEVICES:
        for pid in {true.pid for true in history.truth}:
            mine = [context for context in found if (context.device, context.pid) == (device, pid)]
            true_ms = sum(t.context_ms for t in history.truth if (t.device, t.pid) == (device, pid))
            pieces = sum(len(context.spans) for context in mine if not context.settled)
            assert sum(context.context_ms for context in mine) <= true_ms + pieces
    known = {row.start_ticks for row in history.rows if isinstance(row, ProcessIdentity)}
    for context in found:
        if context.placed == "driver" and not context.subject.startswith(UNATTRIBUTED):
            where = (context.device, context.pid, context.started_at_us)
            true = next(t for t in history.truth if (t.device, t.pid, t.since_us) == where)
            assert context.subject == f"program {true.start_ticks}" or true.start_ticks not in known


@settings(max_examples=100, deadline=None)
@given(histories(), st.lists(st.integers(-HOUR_US, 7 * HOUR_US), max_size=5))
def test_splitting_a_window_never_changes_a_sum(history: History, offsets: list[int]) -> None:
    """Any number of cuts, at any microsecond: the parts add up to the whole, key by key."""
    evidence = history.evidence()
    whole = derive(evidence, **WIDE)
    edges = sorted({WIDE["since_us"], *(START_US + offset for offset in offsets), WIDE["until_us"]})
    parts = [q for low, high in pairwise(edges) for q in derive(evidence, since_us=low, until_us=high)]
    assert summed(parts, *KEY) == summed(whole, *KEY)


@settings(max_examples=100, deadline=None)
@given(histories(), st.randoms(use_true_random=False))
def test_order_and_duplicates_of_evidence_do_not_matter(history: History, dice: object) -> None:
    """Shuffled and partly doubled rows give the very same lists."""
    rows = [*history.rows, *(row for row in history.rows if row.number % 3 == 0)]
    dice.shuffle(rows)
    mixed = history.evidence(rows)
    assert contexts(mixed) == contexts(history.evidence())
    assert derive(mixed, **WIDE) == derive(history.evidence(), **WIDE)
    assert derive(mixed, **WIDE, found=contexts(mixed)) == derive(history.evidence(), **WIDE)


@settings(max_examples=100, deadline=None)
@given(histories(), st.lists(st.integers(0, 8), min_size=1, max_size=4), st.randoms(use_true_random=False))
def test_records_and_corrections_follow_the_evidence(history: History, hours: list[int], dice: object) -> None:
    """After every pass derived = recorded + corrections, whatever came in between; a second pass changes nothing."""
    rows = list(history.rows)
    dice.shuffle(rows)
    records: list[UsageRecord] = []
    corrections: list[UsageCorrection] = []
    covered: set[int] = set()
    for turn, hour in enumerate(sorted(hours), start=1):
        known = history.evidence(rows[: len(rows) * turn // len(hours)])
        until_us = closed_until(START_US + hour * HOUR_US + 5 * MINUTE_US)
        until_us = max([until_us, *(done + HOUR_US for done in covered)])
        derived = derive(known, since_us=START_US - 2 * HOUR_US, until_us=until_us)
        for attempt in range(2):
            more, late = compare(derived, records, corrections, covered_hours=covered, recorded_at_us=turn)
            assert not attempt or (more, late) == ([], [])
            records += more
            corrections += late
        covered |= set(range(START_US - 2 * HOUR_US, until_us, HOUR_US))
        assert compare(derived, records, corrections, covered_hours=covered, recorded_at_us=turn) == ([], [])
        written: dict[tuple[object, ...], int] = {}
        for row in [*records, *corrections]:
            key = (row.meter, row.hour_us, row.host, row.device, row.subject)
            written[key] = written.get(key, 0) + (row.quantity if isinstance(row, UsageRecord) else row.delta)
        assert {key: amount for key, amount in written.items() if amount} == summed(derived, *KEY[:5])
    assert len({(c.meter, c.hour_us, c.host, c.device, c.subject, c.correction_number) for c in corrections}) == len(
        corrections
    )


@st.composite
def watches_of_two_devices(draw: st.DrawFn) -> Watch:
    """A span of looking, or a single look, of anything a ledger can hold."""
    since_us, until_us = sorted((draw(st.integers(0, 40)), draw(st.integers(0, 40))))
    return Watch(
        host="box", device=draw(st.sampled_from(("GPU-a", "GPU-b", ""))),
        source=draw(st.sampled_from(("driver", "process"))), method=draw(st.sampled_from(("nvml", "nvidia-smi"))),
        interval_ms=1000, since_us=since_us, until_us=until_us,
        status=draw(st.sampled_from(("ok", "ok", *UnknownReason, "a-word-of-tomorrow"))),
    )  # fmt: skip


WATCHES = st.lists(watches_of_two_devices(), max_size=8)


@settings(max_examples=200, deadline=None)
@given(WATCHES, st.integers(0, 30), st.integers(0, 15))
def test_coverage_fills_the_window(watches: list[Watch], since_us: int, length_us: int) -> None:
    """Watched + unknown = window: the spans of a device follow each other without a hole, in any order of rows."""
    until_us = since_us + length_us
    devices = [("box", "GPU-a"), ("box", "GPU-b")]
    spans = coverage(watches, devices, since_us=since_us, until_us=until_us)
    assert spans == coverage([*reversed(watches), *watches], devices, since_us=since_us, until_us=until_us)
    for _, device in devices:
        mine = [span for span in spans if span.device == device]
        assert sum(span.until_us - span.since_us for span in mine) == length_us
        edge_us = since_us
        for span in mine:
            assert (span.since_us, span.until_us >= edge_us) == (edge_us, True)
            edge_us = span.until_us
        for at_us in range(since_us, until_us):
            reasons = [span.reason for span in mine if span.since_us <= at_us < span.until_us]
            assert reasons == [_by_definition(watches, device, at_us)]


def _by_definition(watches: Sequence[Watch], device: str, at_us: int) -> str:
    """The verdict on one instant, straight from the rules."""
    here = [w for w in watches if w.source == "driver" and w.device in (device, "")]
    active = [w for w in here if w.since_us <= at_us < w.until_us]
    losses = ("ring-overflow", "row-freed", "accounting-reset", "clock-step")
    order = [
        *losses, "accounting-disabled", "accounting-unsupported", "accounting-unread", "empty-ledger", "device-lost",
        "driver-unreachable", "events-lost", "before-watch", "not-written", "watch-gap", "a-word-of-tomorrow",
    ]  # fmt: skip
    verdicts = []
    for method in {w.method for w in active}:
        words = [w.status for w in active if w.method == method]
        lost = [word for word in words if word in losses]
        verdicts.append(min(lost, key=order.index) if lost else "" if "ok" in words else min(words, key=order.index))
    if verdicts:
        return "" if "" in verdicts else min(verdicts, key=order.index)
    looked = [w.since_us for w in here] + [w.since_us for w in watches if w.source == "process"]
    return "watch-gap" if any(first <= at_us for first in looked) else "before-watch"
