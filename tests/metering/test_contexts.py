"""Contexts: stints with a name, or with the cause why they have none."""

from dataclasses import replace
from typing import Any

from gpuledger.metering.contexts import contexts
from gpuledger.metering.stints import NO_MEMORY, NO_START
from gpuledger.model.missing import Missing
from gpuledger.model.quantities import Evidence


def test_nothing_gives_nothing() -> None:
    """No evidence, no context: never a zero."""
    assert contexts(Evidence()) == []


def test_a_settled_context_says_all_it_knows(make: Any) -> None:
    """The driver's figure to the ms, its name, and the rows behind both."""
    evidence = make.evidence([make.driver(500, 679, peak_memory_mib=184), make.identity("whisper", 0, seen=600)])
    (context,) = contexts(evidence)
    assert (context.subject, context.process, context.context_ms) == ("whisper", ("b", 1), 679)
    assert context.spans == ((make.at(500), make.at(1179)),)
    assert (context.settled, context.open, context.placed, context.accounted) == (True, False, "driver", "yes")
    assert (context.started_at_us, context.last_seen_us, context.peak_memory_mib) == (make.at(500), make.at(1179), 184)
    assert context.evidence == ("driver:box.agent/1", "identity:box.agent/2")


def test_a_living_context_is_open_with_its_time_so_far(make: Any) -> None:
    """It says 0 ms to the driver; here it says since when it was seen."""
    evidence = make.evidence([make.look(0, 5000, accounted="no"), make.identity("ollama", -9000)])
    (context,) = contexts(evidence)
    assert (context.subject, context.open, context.settled, context.context_ms) == ("ollama", True, False, 5000)
    assert (context.accounted, context.started_at_us, context.peak_memory_mib) == ("no", NO_START, NO_MEMORY)
    assert context.last_seen_us == make.at(5000)


def test_settled_later_it_is_still_one(make: Any) -> None:
    """Seen by looks, settled by the driver, read from two sources: one context with all its evidence."""
    rows = [
        make.look(0, 5000, start=0, peak_memory_mib=900), make.driver(0, 9000), make.identity("ollama", -9000),
        make.driver(None, 9000, read=60_000, method="import"),
    ]  # fmt: skip
    (context,) = contexts(make.evidence(rows))
    assert (context.settled, context.context_ms, context.peak_memory_mib) == (True, 9000, 900)
    assert len(context.evidence) == 4


def test_the_look_names_the_row_where_time_alone_could_not(make: Any) -> None:
    """Two lives fit the start; the look that is part of the context saw one of them."""
    rows = [
        make.driver(50_100, 900), make.look(50_100, 50_900, start=50_100, start_ticks=2),
        make.identity("a", 0, seen=49_999), make.identity("b", 50_000, seen=50_500, ticks=2),
    ]  # fmt: skip
    (context,) = contexts(make.evidence(rows))
    assert context.subject == "b"


def test_a_seen_process_without_identity_takes_nobody_elses_name(make: Any) -> None:
    """The look saw process 9, of which nothing was read; process 1 of the same pid is not it."""
    other = make.identity("a", 0, seen=90_000)
    (context,) = contexts(make.evidence([make.look(1000, 5000, start_ticks=9), other]))
    assert (context.subject, context.process) == ("unattributed:identity-unreadable", ("b", 9))
    (settled,) = contexts(
        make.evidence([make.look(1000, 5000, start=1000, start_ticks=9), make.driver(1000, 4500), other])
    )
    assert settled.subject == "unattributed:identity-unreadable"


def test_an_unreadable_process_may_be_known_by_time(make: Any) -> None:
    """Another source saw the one process of that pid whose life holds the look."""
    look = make.look(1000, 5000, start_ticks=0, boot_id="")
    assert contexts(make.evidence([look]))[0].subject == "unattributed:identity-unreadable"
    (context,) = contexts(make.evidence([look, make.identity("a", 0, seen=90_000)]))
    assert (context.subject, context.process) == ("a", ("b", 1))


def test_an_imported_living_row_may_be_claimed_by_a_pid_map_of_any_age(make: Any) -> None:
    """A dump and its pid map are not of one moment; what the agent itself saw, an old map does not name."""
    claim = make.claim("ollama", -9_000_000)
    words = {"start_ticks": 0, "boot_id": ""}
    (dumped,) = contexts(make.evidence([make.look(0, 0, method="import", **words), claim]))
    assert (dumped.subject, dumped.open, dumped.context_ms) == ("ollama", True, 0)
    (seen,) = contexts(make.evidence([make.look(0, 9, **words), claim]))
    assert seen.subject == "unattributed:identity-unreadable"


def test_rows_without_a_start_say_so(make: Any) -> None:
    """Marked as placed in the latest span they can have had, and unnamed unless one name is possible."""
    (context,) = contexts(make.evidence([make.driver(None, 4161, read=60_000)]))
    assert (context.subject, context.placed) == ("unattributed:no-start-time", "latest")
    assert context.started_at_us == NO_START
    (named,) = contexts(make.evidence([make.driver(None, 4161, read=60_000), make.claim("xtts", 900_000)]))
    assert named.subject == "xtts"


def test_a_row_read_long_after_a_death_is_not_named_after_the_dead(make: Any) -> None:
    """The look that found pid 7 dead read the list as well: a row first read hours later is another process's."""
    rows = [
        make.identity("alice", 0, seen=1000), make.look(1000, 10_000, gone=11_000, died=True),
        make.driver(None, 10_000, read=12_000, method="nvidia-smi"), make.watch(0, 36_000_000),
    ]  # fmt: skip
    later = make.driver(None, 300, read=30_000_000, method="nvidia-smi")
    found = contexts(make.evidence([*rows, later]))
    assert [(context.subject, context.context_ms) for context in found] == [
        ("alice", 10_000),
        ("unattributed:no-start-time", 300),
    ]
    assert contexts(make.evidence([later, *reversed(rows)])) == found
    soon = make.driver(None, 300, read=12_999, method="nvidia-smi")
    assert {context.subject for context in contexts(make.evidence([*rows, soon]))} == {"alice"}


def test_a_dump_says_nothing_of_when_its_rows_ended(make: Any) -> None:
    """A row that only an import read can be as old as the driver's load, but no longer than the life of its process."""
    rows = [
        make.identity("alice", 0, seen=1000), make.look(1000, 10_000, gone=11_000, died=True, accounted="no"),
        make.watch(0, 36_000_000),
    ]  # fmt: skip
    dump = make.driver(None, 300, read=30_000_000, method="import")
    named, unnamed = (
        [context.subject for context in contexts(make.evidence([*rows, row])) if context.settled]
        for row in (dump, replace(dump, context_ms=14_000))
    )
    assert (named, unnamed) == (["alice"], ["unattributed:no-start-time"])


def test_seen_alive_and_unreadable_or_never_seen(make: Any) -> None:
    """Only a look at that very context says identity-unreadable; the look of a dump never read /proc."""
    row, watch = make.driver(20_000, 9000), make.watch(0, 60_000)
    words = {"start": 20_000, "start_ticks": 0, "boot_id": ""}
    look, dumped = make.look(21_000, 25_000, **words), make.look(25_000, 25_000, method="import", **words)
    told = {
        name: contexts(make.evidence([row, watch, *looks]))[0].subject.partition(":")[2]
        for name, looks in (("unseen", []), ("seen", [look]), ("dumped", [dumped]))
    }
    assert told == {"unseen": "between-samples", "seen": "identity-unreadable", "dumped": "between-samples"}


def test_a_process_that_was_read_and_cannot_have_begun_the_context_is_ambiguous(make: Any) -> None:
    """It was born 5 s after the driver's start, so another process of its pid opened the device."""
    rows = [make.driver(20_000, 9000), make.look(26_000, 28_000, start=20_000), make.identity("b", 25_000)]
    (context,) = contexts(make.evidence([*rows, make.watch(0, 60_000)]))
    assert context.subject == "unattributed:pid-ambiguous"


def test_unnamed_rows_carry_the_cause_of_the_watch(make: Any) -> None:
    """The naming watch of the host decides."""
    row = make.driver(20_000, 500)
    assert contexts(make.evidence([row]))[0].subject == "unattributed:before-watch"
    watched = make.evidence([row, make.watch(0, 60_000)])
    assert contexts(watched)[0].subject == "unattributed:between-samples"


def test_hosts_and_devices_are_apart(make: Any) -> None:
    """One pid number on two hosts, and one process on two devices, are different contexts."""
    row = make.driver(0, 500)
    rows = [row, replace(row, host="other"), replace(row, device="GPU-1")]
    found = contexts(make.evidence(rows))
    assert [(context.host, context.device) for context in found] == [
        ("box", "GPU-0"),
        ("box", "GPU-1"),
        ("other", "GPU-0"),
    ]


def test_missing_readings_stay_missing(make: Any) -> None:
    """A row whose memory the driver could not tell has no peak, not a zero."""
    (context,) = contexts(make.evidence([make.driver(0, 500, peak_memory_mib=Missing("driver: not supported"))]))
    assert context.peak_memory_mib == NO_MEMORY


def by_events(make: Any, since: int, until: int) -> Any:
    """A context whose row the driver is known to have lost, from open to exit."""
    return make.look(since, until, gone=until, died=True, method="ebpf", samples=0, boot_id="b", start_ticks=1)


def test_a_context_is_as_long_whoever_saw_it(make: Any) -> None:
    """A row that came after all is the context; looks and events of one process are laid over each other, not added."""
    identity = make.identity("xtts", 9_000, seen=20_000, method="ebpf")
    row = make.driver(10_000, 5_000)
    looks = [make.look(10_000, 12_000), make.look(12_000, 15_000, gone=15_000, died=True)]
    event = by_events(make, 10_000, 15_000)
    for evidence in ([row], [event], looks, [row, event], [*looks, event], [row, *looks, event, event]):
        found = contexts(make.evidence([identity, *evidence]))
        assert sum(each.context_ms for each in found) == 5_000
        assert {each.subject for each in found} == {"xtts"}
        assert not any(each.open for each in found)
    assert [each.settled for each in contexts(make.evidence([identity, row, event]))] == [True]
