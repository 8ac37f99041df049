"""Hourly quantities: context, memory and busy time of one window."""

from typing import Any

from gpuledger.metering.contexts import contexts
from gpuledger.metering.derive import context_tag, derive
from gpuledger.model.quantities import Evidence

HOUR_MS = 3_600_000


def told(make: Any, rows: list[Any], since: int = -HOUR_MS, until: int = 9 * HOUR_MS) -> list[tuple[Any, ...]]:
    """(meter, hour in ms, subject, tag, quantity) of a window; with contexts at hand it must be the same."""
    evidence = make.evidence(rows)
    window = {"since_us": make.at(since), "until_us": make.at(until)}
    quantities = derive(evidence, **window)
    assert derive(evidence, **window, found=contexts(evidence)) == quantities
    return [
        (q.meter, (q.hour_us - make.at(0)) // 1000, q.subject, q.context, q.quantity) for q in quantities
    ]  # fmt: skip


def test_no_evidence_is_no_quantity() -> None:
    """Where nothing was measured there is no row, never a zero."""
    assert derive(Evidence(), since_us=0, until_us=1 << 60) == []


def test_one_subject_in_one_hour_is_one_quantity(make: Any) -> None:
    """Two settled contexts of one program add up, with the rows behind both."""
    rows = [make.driver(1000, 679), make.driver(9000, 321), make.identity("whisper", 0, seen=20_000)]
    assert told(make, rows) == [("gpu.context", 0, "whisper", "settled", 1000)]
    (quantity,) = derive(make.evidence(rows), since_us=make.at(0), until_us=make.at(HOUR_MS))
    assert quantity.evidence == {"driver:box.agent/1", "driver:box.agent/2", "identity:box.agent/3"}


def test_a_window_clips_at_any_moment(make: Any) -> None:
    """Only what lies inside counts; a row that touches nothing of it gives nothing."""
    rows = [make.driver(0, 10_000), make.identity("a", -10)]
    assert told(make, rows, 2000, 5000) == [("gpu.context", 0, "a", "settled", 3000)]
    assert told(make, rows, 10_000, 20_000) == []
    assert told(make, [make.driver(0, 0)], 0, 10) == []


def test_living_contexts_are_told_apart(make: Any) -> None:
    """Open ones carry who they are, so that a later settlement can be seen; ended ones are gone."""
    rows = [
        make.look(0, 1000, start=0), make.look(0, 2000, pid=8), make.look(0, 3000, pid=9, gone=4000),
        make.look(0, 500, pid=10, start_ticks=0, boot_id=""),
    ]  # fmt: skip
    unreadable = "unattributed:identity-unreadable"
    assert told(make, rows) == [
        ("gpu.context", 0, unreadable, "10@?0", 500),
        ("gpu.context", 0, unreadable, f"7@{make.at(0)}", 1000),
        ("gpu.context", 0, unreadable, "8@?1", 2000),
        ("gpu.context", 0, unreadable, "gone", 3000),
    ]
    assert [context_tag(context) for context in contexts(make.evidence(rows[1:2]))] == ["8@?1"]


def test_memory_is_mib_seconds_of_the_contexts_subject(make: Any) -> None:
    """Spread over the look's span and cut at the hour, under the name of the settled context it belongs to."""
    rows = [
        make.driver(HOUR_MS - 10_000, 30_000), make.identity("a", 0, seen=HOUR_MS),
        make.look(HOUR_MS - 10_000, HOUR_MS + 20_000, start=HOUR_MS - 10_000, memory_mib_ms=30_000 * 178, busy_ms=3000),
    ]  # fmt: skip
    assert told(make, rows) == [
        ("gpu.busy", 0, "a", "sampled", 1000),
        ("gpu.busy", HOUR_MS, "a", "sampled", 2000),
        ("gpu.context", 0, "a", "settled", 10_000),
        ("gpu.context", HOUR_MS, "a", "settled", 20_000),
        ("gpu.memory", 0, "a", "sampled", 1780),
        ("gpu.memory", HOUR_MS, "a", "sampled", 3560),
    ]


def test_the_quantity_of_a_sample_names_its_look(make: Any) -> None:
    """Evidence of memory is the look, not the driver's row."""
    rows = [make.look(0, 1000, memory_mib_ms=5000)]
    quantities = derive(make.evidence(rows), since_us=make.at(0), until_us=make.at(2000))
    assert {q.meter: q.evidence for q in quantities}["gpu.memory"] == {"sighting:box.agent/1"}


def test_overlapping_looks_count_the_common_time_once(make: Any) -> None:
    """The earlier look counts whole, the later one only beyond it, in proportion."""
    rows = [
        make.look(0, 10_000, memory_mib_ms=1_000_000), make.look(5_000, 15_000, memory_mib_ms=3_000_000),
        make.look(6_000, 9_000, memory_mib_ms=9_000_000), make.look(0, 10_000, memory_mib_ms=1_000_000),
    ]  # fmt: skip
    assert [row for row in told(make, rows) if row[0] == "gpu.memory"] == [
        ("gpu.memory", 0, "unattributed:identity-unreadable", "sampled", 1000 + 1500)
    ]


def test_a_look_that_read_nothing_hides_nothing(make: Any) -> None:
    """Memory was not readable in the first look: the second one still counts whole."""
    rows = [make.look(0, 10_000), make.look(2_000, 8_000, memory_mib_ms=6_000_000)]
    assert ("gpu.memory", 0, "unattributed:identity-unreadable", "sampled", 6000) in told(make, rows)


def test_a_sample_without_length_counts_at_its_moment(make: Any) -> None:
    """Once, even if it is told twice."""
    rows = [make.look(5000, 5000, memory_mib_ms=4000), make.look(5000, 5000, memory_mib_ms=4000, method="import")]
    assert told(make, rows) == [("gpu.memory", 0, "unattributed:identity-unreadable", "sampled", 4)]


def test_rows_that_were_never_appended_still_find_their_context(make: Any) -> None:
    """They share one reference; the context that a look overlaps most owns it."""
    words = {"writer": "", "number": 0}
    rows = [
        make.look(0, 1000, start=0, memory_mib_ms=1000, **words),
        make.look(90_000, 99_000, start=90_000, start_ticks=2, memory_mib_ms=9000, **words),
        make.identity("a", -100, seen=500, **words),
        make.identity("b", 89_000, seen=95_000, ticks=2, **words),
    ]
    assert [row[2:] for row in told(make, rows) if row[0] == "gpu.memory"] == [("a", "sampled", 1), ("b", "sampled", 9)]
