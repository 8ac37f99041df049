"""``blind``: what the ledger cannot see in a window, sized by reason."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from gpuledger.model.missing import Missing
from gpuledger.operations.blind import blind
from gpuledger.operations.meter import meter
from gpuledger.operations.usage import usage


def test_it_sizes_what_usage_prints_beside_its_rows(box) -> None:
    """Unknown time, unnamed amounts and open contexts are the very figures of usage."""
    box.tell_a_morning()
    window = {"since_us": box.at(0), "until_us": box.at(130), "now_us": box.at(130)}
    report = blind(box.ledger, **window)
    other = usage(box.ledger, meter="gpu.context", by=("service",), **window)
    assert (report.total_ms, report.unattributed_ms, report.unsettled_ms) == (
        other.total, other.unattributed_quantity, other.unsettled_quantity,
    )  # fmt: skip
    assert (report.watched, report.unknown, report.sizes) == (other.watched, other.unknown, other.sizes)


def test_a_span_says_what_its_looks_said(box) -> None:
    """Whose open makes an empty list no proof, how the driver failed; of each span its own, each remark once."""
    opened, silent = "opened by pid 77, of which the driver lists nothing", "nvml: the GPU is lost"
    box.append(
        box.device(0), box.looking(0, 10), box.looking(10, 20, status="empty-ledger"),
        replace(box.looking(20, 25, status="empty-ledger"), detail=opened),
        replace(box.looking(25, 30, status="empty-ledger"), detail=opened),
        box.looking(30, 40), box.looking(40, 50, status="empty-ledger"), box.looking(50, 60),
        replace(box.looking(60, 70, status="driver-unreachable"), device="", detail=silent),
        replace(box.looking(70, 80), detail="accounting enabled by the agent"), minute=80,
    )  # fmt: skip
    report = blind(box.ledger, since_us=box.at(0), until_us=box.at(80), now_us=box.at(80))
    assert [(span.reason, span.since_us, span.detail) for span in report.unknown] == [
        ("empty-ledger", box.at(10), opened),
        ("empty-ledger", box.at(40), ""),
        ("driver-unreachable", box.at(60), silent),
    ]


def test_of_many_remarks_some_are_told_and_the_others_counted(box) -> None:
    """The journal has them all."""
    box.append(
        box.device(0),
        *(
            replace(box.looking(n, n + 1, status="row-freed"), detail=f"pid {n} let go")
            for n in range(6)
        ), minute=6,
    )  # fmt: skip
    (span,) = blind(box.ledger, since_us=box.at(0), until_us=box.at(6), now_us=box.at(6)).unknown
    assert span.detail == "pid 0 let go; pid 1 let go; pid 2 let go; and 3 more: gpuledger journal"


def test_it_says_the_same_once_hours_are_recorded(box) -> None:
    """A cause is stored with its record."""
    box.tell_a_morning()
    window = {"since_us": box.at(0), "until_us": box.at(120), "now_us": box.at(130)}
    before = [(line.cause, line.quantity) for line in blind(box.ledger, **window).unattributed]
    meter(box.ledger, now_us=box.at(126), writer="box.meter")
    assert [(line.cause, line.quantity) for line in blind(box.ledger, **window).unattributed] == before
    assert before == [("between-samples", 600)]


def test_the_chance_of_catching_a_job_follows_from_the_polling(box) -> None:
    """Exact, by interval: a job as long as the interval is caught for sure."""
    box.append(box.device(0), box.naming(0, 60, every_ms=60_000), box.looking(0, 60, every_ms=60_000))
    chances = blind(box.ledger, since_us=box.at(0), until_us=box.at(60), now_us=box.at(60)).chances
    assert {each.interval_ms for each in chances} == {60_000}
    assert all(each.chance == min(Fraction(1), Fraction(each.length_ms, each.interval_ms)) for each in chances)


def test_nothing_known_has_no_size(box) -> None:
    """Absent, with its reason; never 0 ms that nobody could see."""
    report = blind(box.ledger, since_us=box.at(0), until_us=box.at(60), now_us=box.at(60))
    assert isinstance(report.total_ms, Missing)
    assert isinstance(report.unattributed_ms, Missing)


def test_it_sizes_the_time_in_which_names_can_be_missing(box) -> None:
    """Before the first look at names, while events were lost, and between two agents; the rest was named."""
    box.append(
        box.device(0),
        box.looking(0, 60),
        replace(box.naming(10, 20), method="ebpf"),
        replace(box.naming(20, 21, status="events-lost"), method="ebpf", detail="12 events lost"),
        replace(box.naming(21, 40), method="ebpf"),
        box.naming(50, 60),
    )
    report = blind(box.ledger, since_us=box.at(0), until_us=box.at(60), now_us=box.at(60))
    assert [(size.reason, size.seconds, size.devices) for size in report.nameless] == [
        ("before-watch", 600, 1), ("watch-gap", 600, 1), ("events-lost", 60, 1),
    ]  # fmt: skip
    assert (report.named.seconds, report.named.of) == (2340, 3600)
    later = blind(box.ledger, since_us=box.at(42), until_us=box.at(60), now_us=box.at(60))
    assert [(size.reason, size.seconds) for size in later.nameless] == [("watch-gap", 480)]
