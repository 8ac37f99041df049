"""The receipt: which contexts are the command's, which are neighbours', and what cannot be told."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from gpuledger.accounting.owners import Naming
from gpuledger.accounting.receipt import Seen, receipt
from gpuledger.model.identity import IdentityText
from gpuledger.model.missing import Missing
from gpuledger.model.moments import SECOND_US
from gpuledger.model.quantities import Context, Coverage
from gpuledger.model.receipt import Doubt, Member, Membership, Ran, Receipt, State, Watcher
from gpuledger.model.rows import Sighting

GPU, OTHER = "GPU-1", "GPU-2"
NAME = "gpuledger-run-0123456789abcdef"
RAN = Ran(command="train.py", pid=70, began_us=100 * SECOND_US, ended_us=110 * SECOND_US, wall_ms=10_000, status=0)
MEMBERS = (
    Member(pid=70, start_ticks=7000, born_us=100 * SECOND_US, seen_us=110 * SECOND_US, is_alive=False),
    Member(pid=71, start_ticks=7100, born_us=101 * SECOND_US, seen_us=111 * SECOND_US, is_alive=True),
)
TEXTS = {
    "train": IdentityText(service="train"),
    "ours": IdentityText(service="short", cgroup=f"/user.slice/{NAME}/deeper"),
    "chat": IdentityText(service="chat", cgroup="/system.slice/chat.service"),
}


def context(pid: int, since_s: float, until_s: float, subject: str = "train", **words: Any) -> Context:
    """A context of a time in seconds; settled, of the process that pid x 100 ticks started."""
    since_us, until_us = round(since_s * SECOND_US), round(until_s * SECOND_US)
    given: dict[str, Any] = {
        "host": "box", "device": GPU, "pid": pid, "subject": subject, "process": ("boot", pid * 100),
        "spans": ((since_us, until_us),), "settled": True, "context_ms": (until_us - since_us) // 1000, "open": False,
        "started_at_us": since_us, "placed": "driver", "accounted": "yes", "peak_memory_mib": 178,
        "last_seen_us": until_us, "evidence": (f"driver:box.agent/{pid}", f"sighting:box.agent/{pid}"),
    }  # fmt: skip
    return Context(**given | words)


def unnamed(pid: int, since_s: float, until_s: float, cause: str = "between-samples", **words: Any) -> Context:
    """A settled context that nobody saw alive."""
    return context(pid, since_s, until_s, f"unattributed:{cause}", **{"process": ("", 0)} | words)


def look(pid: int, since_s: float, until_s: float, **words: Any) -> Sighting:
    """A span of looking at the context of a pid."""
    given: dict[str, Any] = {
        "host": "box", "device": GPU, "pid": pid, "boot_id": "boot", "start_ticks": pid * 100, "method": "nvml",
        "context_started_at_us": Missing("-"), "since_us": round(since_s * SECOND_US), "gone_at_us": Missing("alive"),
        "until_us": round(until_s * SECOND_US), "peak_memory_mib": 900, "writer": "box.agent", "number": pid,
    }  # fmt: skip
    return Sighting(**given | words)


def watched(*reasons: str, device: str = GPU, idle: bool = False) -> Coverage:
    """A device over the whole run, with a reason or none."""
    return Coverage(
        host="box", device=device, since_us=RAN.began_us, until_us=RAN.ended_us, reason="".join(reasons), idle=idle
    )


def made(*contexts: Context, membership: dict[str, Any] | None = None, **words: Any) -> Receipt:
    """A receipt of the run."""
    given: dict[str, Any] = {
        "host": "box", "contexts": contexts, "looks": (), "coverage": [watched()], "classes": {("box", GPU): "L4"},
        "naming": Naming(texts=TEXTS), "texts": TEXTS, "watched_by": Watcher.RUN, "method": "ebpf", "looks_after": 3,
    }  # fmt: skip
    known = Membership(boot_id="boot", members=MEMBERS, cgroup=NAME, blind_us=30_000, are_the_drivers_pids=True)
    return receipt(
        Seen(**given | words), ran=RAN, membership=replace(known, **membership or {}), explain="gpuledger explain total"
    )


def doubts(told: Receipt) -> dict[Doubt, str]:
    return {one.doubt: one.sentence for one in told.doubts}


def test_a_process_of_the_tree_is_ours_and_another_is_a_neighbour() -> None:
    """By boot, pid and start; the time of the neighbour is cut to the run, and nothing is left open."""
    told = made(context(70, 101, 104), context(71, 102, 103), context(80, 90, 105, "chat"))
    (device,) = told.devices
    assert (device.contexts, device.context_ms, device.settled_ms, device.observed_ms) == (2, 4000, 4000, 0)
    assert (device.peak_memory_mib, device.class_name) == (178, "L4")
    assert [(one.service, one.context_ms, one.contexts) for one in told.neighbours] == [("chat", 5000, 1)]
    assert (told.context_ms, told.is_at_least, told.doubts, told.unnamed) == (4000, False, (), ())
    assert told.contexts[0].refs == ("driver:box.agent/70", "sighting:box.agent/70")


def test_the_same_pid_with_another_start_or_of_another_boot_is_not_ours() -> None:
    """Pids come back."""
    told = made(
        context(70, 101, 104, "chat", process=("boot", 1)), context(70, 105, 106, "chat", process=("before", 7000))
    )
    assert told.contexts == ()
    assert told.context_ms == 0


def test_the_cgroup_tells_what_no_scan_met() -> None:
    """A process of a millisecond, named by an event, carries the cgroup's name; a part of a name is none."""
    texts = {**TEXTS, "near": IdentityText(service="near", cgroup=f"/{NAME}f")}
    told = made(context(90, 103, 103.001, "ours"), context(91, 103, 103.001, "near"), texts=texts)
    assert [one.pid for one in told.contexts] == [90]
    assert (told.processes, told.alive) == (3, 1)


def test_pid_and_time_tell_what_the_ledger_could_not_name() -> None:
    """The scans saw who had the pid then; outside of its life, and where two fit, nobody is taken for it."""
    told = made(
        unnamed(70, 101, 104), unnamed(71, 90, 95), unnamed(71, 104, 107, "pid-ambiguous"),
        unnamed(70, 101, 102, "no-start-time", placed="latest", started_at_us=Missing("-")),
    )  # fmt: skip
    assert [(one.pid, one.service) for one in told.contexts] == [(70, "unattributed:between-samples")]


@pytest.mark.parametrize(
    ("since_s", "until_s", "is_doubtful"),
    [(103, 103.05, True), (103, 103.07, False), (97, 97.05, False), (99, 99.05, True), (95, 108, False)],
)
def test_an_unnamed_neighbour_can_be_ours_only_if_it_is_short_and_late(
    since_s: float, until_s: float, is_doubtful: bool
) -> None:
    """What lived longer than two scans would have been met, and what began before us is not ours."""
    told = made(context(70, 101, 104), unnamed(85, since_s, until_s), unnamed(86, 95, 108))
    assert (Doubt.COULD_BE_OURS in doubts(told), told.is_at_least) == (is_doubtful, is_doubtful)
    assert sum(one.contexts for one in told.unnamed) == (1 if until_s < 100 else 2)
    if is_doubtful:
        assert told.doubts[0].refs == ("driver:box.agent/85",)


def test_without_a_cgroup_short_neighbours_are_told_as_what_a_scan_can_miss() -> None:
    """With one, their identity would carry its name."""
    short = context(80, 103, 103.01, "chat")
    assert made(context(70, 101, 104), short).doubts == ()
    told = made(context(70, 101, 104), short, membership={"cgroup": Missing("it may not be made: permission denied")})
    assert "permission denied" in doubts(told)[Doubt.SHORT_LIVED]
    assert told.is_at_least


def test_states() -> None:
    """Settled; running; ended and awaited; ended where the driver keeps no row."""
    words: dict[str, Any] = {"settled": False, "open": True}
    told = made(
        context(70, 101, 102), context(71, 102, 111, **words), context(70, 103, 104, **words | {"open": False}),
        context(70, 105, 106, device=OTHER, **words | {"open": False, "accounted": "unknown"}),
        context(70, 107, 108, device=OTHER, **words | {"open": False, "accounted": "no"}),
        coverage=[watched(), watched("accounting-disabled", device=OTHER)],
    )  # fmt: skip
    states = [one.state for one in told.contexts]
    assert states == [State.SETTLED, State.RUNNING, State.AWAITED, State.OBSERVED, State.OBSERVED]
    assert [one.sentence.split()[0] for one in told.doubts if one.doubt is Doubt.NOT_SETTLED] == ["1", "1"]
    assert [(one.reason, one.ms) for one in told.unknown] == [("accounting-disabled", 10_000)]
    assert told.is_awaiting


def test_a_context_seen_once_has_no_length_and_is_no_zero() -> None:
    """Its time is UNKNOWN; so is that of a device which nothing else was on."""
    once = context(70, 103, 103, settled=False, started_at_us=Missing("-"), accounted="unknown", peak_memory_mib=0)
    (device,) = made(once, coverage=[watched("accounting-disabled")]).devices
    assert (device.contexts, device.unsized) == (1, 1)
    assert isinstance(device.context_ms, Missing)
    assert isinstance(device.peak_memory_mib, Missing)


def test_zero_is_said_with_its_proof_else_unknown_with_its_reason() -> None:
    """Watched without loss, proven idle; or why not: a reason, an unnamed context, nobody, foreign pids."""
    assert made().devices[0].why == "its time was watched without loss, and no process of the command held it"
    assert "proven idle" in made(coverage=[watched(idle=True)]).devices[0].why
    for words, reason in (
        ({"coverage": [watched("empty-ledger")]}, "empty-ledger"),
        ({"contexts": (unnamed(85, 103, 103.01),)}, "without a name"),
        ({"contexts": (context(80, 103, 103.01, "chat"),), "membership": {"cgroup": Missing("-")}}, "another name"),
        ({"watched_by": Watcher.NOBODY, "trouble": "no driver"}, "no driver"),
        ({"membership": {"are_the_drivers_pids": False}}, "other pids"),
    ):
        value = made(*words.pop("contexts", ()), **words).context_ms  # type: ignore[misc]
        assert isinstance(value, Missing)
        assert reason in value.reason


def test_in_another_pid_namespace_only_the_cgroup_tells() -> None:
    """The same pid there is somebody else here."""
    told = made(context(70, 101, 104), context(90, 101, 104, "ours"), membership={"are_the_drivers_pids": False})
    assert [one.pid for one in told.contexts] == [90]
    assert Doubt.OTHER_PIDS in doubts(told)
    assert told.is_at_least


def test_memory_and_busy_come_from_the_looks_of_the_time() -> None:
    """A neighbour's peak outside the run is not its peak within; without a sample there is none."""
    looks = [
        look(70, 101, 104, busy_ms=1200, busy_covered_ms=3000),
        look(80, 50, 90, peak_memory_mib=9000),
        look(80, 90, 105, peak_memory_mib=500, number=81),
    ]
    chat = context(80, 50, 105, "chat", evidence=("sighting:box.agent/80", "sighting:box.agent/81"))
    told = made(context(70, 101, 104), chat, context(86, 50, 105, "chat", device=OTHER), looks=looks)
    assert told.devices[0].busy_ms == 1200
    assert [one.peak_memory_mib for one in told.neighbours] == [500]
    assert isinstance(made(context(70, 101, 104)).devices[0].busy_ms, Missing)
    bare = made(context(70, 101, 104), context(80, 50, 105, "chat")).neighbours[0]
    assert isinstance(bare.peak_memory_mib, Missing)


def test_other_devices_have_no_neighbours_and_other_hosts_do_not_count() -> None:
    """Only who was on the devices that the command held."""
    told = made(
        context(70, 101, 104), context(80, 101, 104, "chat", device=OTHER), context(70, 101, 104, host="other"),
        coverage=[watched(), watched(device=OTHER)],
    )  # fmt: skip
    assert (told.neighbours, len(told.contexts)) == ((), 1)
    assert [(one.device, one.context_ms) for one in told.devices] == [(GPU, 3000), (OTHER, 0)]


def test_too_few_looks_after_the_end_and_lost_events_are_said() -> None:
    """What ended last can be missing."""
    told = made(context(70, 101, 104), looks_after=1, lost=["7 events lost", "7 events lost"])
    assert "only 1 look" in doubts(told)[Doubt.NOT_SEEN_AFTER]
    assert doubts(made(looks_after=0))[Doubt.NOT_SEEN_AFTER].startswith("no look came after the end")
    assert [one.sentence for one in told.doubts if one.doubt is Doubt.EVENTS_LOST] == [
        "process events were lost: 7 events lost"
    ]
    assert "nobody looked" in doubts(made(watched_by=Watcher.NOBODY))[Doubt.NOT_WATCHED]


def test_rows_that_are_in_no_ledger_yet_are_no_references() -> None:
    """The pulse's word cannot be explained."""
    told = made(context(70, 101, 104, settled=False, open=True, evidence=("sighting:/0", "sighting:box.agent/3")))
    assert told.contexts[0].refs == ("sighting:box.agent/3",)


def test_what_is_in_no_ledger_is_said_and_has_no_references() -> None:
    """The disk was full: the receipt is whole, and is all that is kept."""
    told = made(context(70, 101, 104), unstored="box.db: no room on the disk")
    assert (told.contexts[0].refs, told.is_at_least) == ((), False)
    assert "all that is kept of it: box.db: no room on the disk" in doubts(told)[Doubt.NOT_STORED]
