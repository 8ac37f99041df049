"""Slurm's accounting as history: the rules one by one, and the right answers of real dumps."""

from __future__ import annotations

import csv
import json
import os
from collections import Counter
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from gpuledger.errors import BadInput
from gpuledger.model.lifecycle import MOST_DEVICES, History, Placement, State, Transition
from gpuledger.model.missing import Missing
from gpuledger.model.moments import DAY_US, HOUR_US, SECOND_US, day_floor, iso, parse_moment
from gpuledger.model.reserved import meters_of
from gpuledger.sources import slurm_sacct
from gpuledger.sources.slurm_jobs import MOST_GPUS, SlurmHistory, parse

CAPTURES = Path(__file__).resolve().parents[1] / "captures" / "slurm"
SHARED = Path(__file__).resolve().parents[2].parent / "shared" / "data"
HEADER = "JobID|User|State|Submit|Start|End|ElapsedRaw|Suspended|ReqTRES|AllocTRES|NodeList"
FOX = (
    "JobID,JobIDRaw,User,Account,State,Start,End,AveCPU,AveDiskRead,AveDiskWrite,AveRSS,AveVMSize,ElapsedRaw,ExitCode,"
    "Layout,MaxRSS,MaxVMSize,MinCPU,ReqCPUS,ReqMem,ReqNodes,Reservation,Submit,Suspended,SystemCPU,TimelimitRaw,UserCPU,"
    "NodeList,Partition,AllocTRES,Priority,JobName"
)
XDMOD = (
    "jobid,jobidraw,cluster,partition,qos,account,group,gid,user,uid,submit,eligible,start,end,elapsed,exitcode,state,"
    "nnodes,ncpus,reqcpus,reqmem,reqtres,alloctres,timelimit,nodelist,jobname"
)


def at(text: str) -> int:
    return parse_moment(text, now_us=0)


def row(
    job: str, state: str = "COMPLETED", start: str = "10:00", end: str = "11:00", *, submit: str = "09:50",
    elapsed: int | str = 3600, suspended: str = "00:00:00", tres: str = "gres/gpu=1", asked: str = "", node: str = "n1",
) -> str:  # fmt: skip
    """A row of the 2nd of March 2026; times are UTC."""
    when = [time if len(time) != 5 else f"2026-03-02T{time}:00" for time in (submit, start, end)]
    return "|".join([job, "alice", state, *when, str(elapsed), suspended, asked, tres, node])


def read(*rows: str, **words: object) -> SlurmHistory:
    content = "\n".join([HEADER, *rows]).encode()
    return parse(content, path="dump", zone=ZoneInfo("UTC"), **words)  # type: ignore[arg-type]


def capture(name: str, *columns: str, include_cpu: bool = False) -> SlurmHistory:
    content = (CAPTURES / name).read_bytes()
    return parse(content, path=name, zone=ZoneInfo("Europe/Berlin"), columns=columns, include_cpu=include_cpu)


def codes(found: SlurmHistory) -> list[str]:
    return [problem.code for problem in found.history.problems]


def told(found: SlurmHistory) -> list[tuple[str, str, str]]:
    return [(one.workload, one.state.value, iso(one.at_us)[11:16]) for one in found.history.transitions]


def runs(history: History) -> Iterator[tuple[Transition, Placement, int, int]]:
    """The oracle: from each ``running`` to the next event of its workload, or to the dump's own time."""
    of: dict[str, list[Transition]] = {}
    for transition in history.transitions:
        of.setdefault(transition.workload, []).append(transition)
    for events in of.values():
        for place, event in enumerate(events):
            if event.state is not State.RUNNING or event.placement is None:
                continue
            until = events[place + 1].at_us if place + 1 < len(events) else history.as_of_us
            if not isinstance(until, Missing) and until > event.at_us:
                yield event, event.placement, event.at_us, until


def amounts(history: History, key: Callable[[Transition], str] = lambda _: "all") -> Counter[str]:
    """Device-seconds by whatever is asked."""
    sums: Counter[str] = Counter()
    for event, placement, since, until in runs(history):
        size = placement.count * placement.share * Fraction(until - since, SECOND_US)
        sums[key(event)] += size  # type: ignore[assignment]
    return sums


def class_of(event: Transition) -> str:
    return event.placement.class_name if event.placement else ""


def test_a_run_from_its_waiting_to_its_end() -> None:
    """Pending since it could have started, running from its start, stopped at its end; half-open, UTC."""
    found = read(row("7", tres="cpu=8,gres/gpu=2,gres/gpu:a100=2,node=1", asked="gres/gpu=2"))
    assert told(found) == [
        ("slurm:7@2026-03-02T10:00:00Z", "pending", "09:50"),
        ("slurm:7@2026-03-02T10:00:00Z", "running", "10:00"),
        ("slurm:7@2026-03-02T10:00:00Z", "stopped", "11:00"),
    ]
    running = found.history.transitions[1]
    assert running.placement == Placement(class_name="a100", machine="n1", count=2)
    assert (running.source, running.user, running.project) == ("slurm", "alice", "")
    assert running.requested_class == ""
    assert amounts(found.history) == {"all": 7200}
    assert not found.history.problems


def test_everything_of_a_dump_at_once() -> None:
    """The hand-made capture: its amounts by class, its problems, what was counted and what not."""
    found = capture("jobs.txt")
    assert amounts(found.history, class_of) == {"a100": 7200, "gpu": 7200 + 300 + 600, "gpu/1g.5gb": 2400, "h100": 1800}
    assert codes(found) == ["broken-line", "allocation-missing"]
    assert "14,400 device-seconds" in found.history.problems[1].message
    assert (found.allocations, found.steps, found.repeated) == (11, 5, 1)
    assert (found.without_gpu, found.running, found.waiting) == (2, 1, 2)
    assert found.history.rows_read == 17
    assert found.history.as_of_us == at("2026-03-02T09:00:00Z")
    [of_102] = [one for one, *_ in runs(found.history) if "/102@" in one.workload]
    assert of_102.labels == (("cluster", "lab"), ("nodes", "2"), ("partition", "gpu"), ("qos", "normal"))
    assert of_102.placement == Placement(class_name="gpu", count=4)
    assert of_102.project == "nlp"


def test_events_have_ids_that_do_not_depend_on_the_dump() -> None:
    """A dump taken later tells the same start again with the same id and the same content."""
    early = read(row("7", "RUNNING", end="Unknown", elapsed=600)).history.transitions
    late = read(row("7")).history.transitions
    assert early == late[:2]
    assert late[2].event_id == "slurm:7@2026-03-02T10:00:00Z#end"


def test_steps_are_never_added() -> None:
    """They run inside their allocation."""
    found = read(row("7"), row("7.batch"), row("7.extern"), row("7.0"), row("7.1", tres="gres/gpu=9"))
    assert amounts(found.history) == {"all": 3600}
    assert found.steps == 4


def test_a_requeued_job_runs_twice() -> None:
    """Another start is another run, also where the job number and all else is the same."""
    found = read(row("7", "REQUEUED"), row("7", start="12:00", end="12:30", elapsed=1800))
    assert amounts(found.history, lambda one: one.workload) == {
        "slurm:7@2026-03-02T10:00:00Z": 3600,
        "slurm:7@2026-03-02T12:00:00Z": 1800,
    }


@pytest.mark.parametrize(
    ("state", "word"),
    [("COMPLETED", "stopped"), ("CANCELLED by 1000", "stopped"), ("TIMEOUT", "stopped"), ("PREEMPTED", "stopped"),
     ("DEADLINE", "stopped"), ("RESIZING", "stopped"), ("FAILED", "failed"), ("NODE_FAIL", "failed"),
     ("OUT_OF_MEMORY", "failed"), ("BOOT_FAIL", "failed"), ("REQUEUE_HOLD", "stopped")],
)  # fmt: skip
def test_how_a_run_ends(state: str, word: str) -> None:
    """By a fault or not; Slurm's own word is a label of the end."""
    last = read(row("7", state)).history.transitions[-1]
    assert last.state.value == word
    assert last.labels == (("state", state.partition(" ")[0].lower()),)


def test_a_state_that_is_not_known_is_left_out_and_said() -> None:
    """With its size: what it means for the GPUs is not guessed."""
    found = read(row("7", "DREAMING"), row("8"))
    assert codes(found) == ["unknown-state"]
    assert "3,600 device-seconds are not counted" in found.history.problems[0].message
    assert amounts(found.history) == {"all": 3600}


def night(*rows: str) -> SlurmHistory:
    content = "\n".join([HEADER, *rows]).encode()
    return parse(content, path="dump", zone=ZoneInfo("Europe/Berlin"))


def twice(job: str, start: str, end: str, elapsed: int | str, **words: str) -> str:
    """A row of the night in which the clock is set back."""
    when = {"submit": "01:00", **words}
    moments = [text if text == "Unknown" else f"2025-10-26T{text}:00" for text in (when["submit"], start, end)]
    state = words.get("state", "COMPLETED")
    return "|".join([job, "alice", state, *moments, str(elapsed), "", words.get("asked", ""), "gres/gpu=1", "n1"])


def test_what_an_hour_shown_twice_leaves_open_is_told_and_never_counted_by_guess() -> None:
    """Where the length is sure it counts, in the first of the two hours; where it is not, the row is left out."""
    found = night(
        twice("1", "01:30", "02:30", 7200), twice("2", "02:10", "02:40", 1800), twice("3", "02:10", "02:40", "INVALID"),
        twice("4", "02:10", "Unknown", 600, state="RUNNING"),
    )  # fmt: skip
    assert amounts(found.history) == {"all": 7200 + 1800}
    assert [(one.where, one.code) for one in found.history.problems] == [
        ("dump:3", "ambiguous-local-time"), ("dump:4", "ambiguous-local-time"), ("dump:5", "ambiguous-local-time"),
    ]  # fmt: skip
    messages = [one.message for one in found.history.problems]
    assert ["left out" in each for each in messages] == [False, True, True]
    assert "its end will tell" in messages[2]


def test_a_run_that_was_open_in_an_hour_shown_twice_counts_once_it_has_ended() -> None:
    """Placed while it ran it would be another run to the next dump, and be counted twice."""
    found = night(twice("4", "02:10", "05:10", 10_800))
    assert told(found)[1:] == [
        ("slurm:4@2025-10-26T01:10:00Z", "running", "01:10"), ("slurm:4@2025-10-26T01:10:00Z", "stopped", "04:10"),
    ]  # fmt: skip


def test_waiting_from_an_hour_shown_twice_costs_the_waiting_only() -> None:
    """Unless it started between the two; the run is kept."""
    found = night(
        twice("1", "05:00", "06:00", 3600, submit="02:30"), twice("2", "02:10", "05:10", 14_400, submit="02:05"),
        twice("3", "Unknown", "02:30", 0, state="CANCELLED", asked="gres/gpu=1"),
        twice("4", "Unknown", "Unknown", 0, state="PENDING", asked="gres/gpu=1", submit="02:30"),
    )  # fmt: skip
    assert amounts(found.history) == {"all": 3600 + 14_400}
    assert [one.where for one in found.history.problems] == ["dump:2", "dump:4", "dump:5"]
    assert [one.workload[6:7] for one in found.history.transitions if one.state is State.PENDING] == ["2"]


def test_open_runs_are_known_until_the_dump_was_taken() -> None:
    """That is start + elapsed + suspended of any of them; there they agree."""
    found = read(
        row("7", "RUNNING", end="Unknown", elapsed=600), row("8", "RUNNING", start="10:05", end="Unknown", elapsed=300),
        row("9", "SUSPENDED", start="10:06", end="Unknown", elapsed=40, suspended="00:03:20"),
    )  # fmt: skip
    assert found.history.as_of_us == at("2026-03-02T10:10:00Z")
    assert amounts(found.history) == {"all": 600 + 300 + 240}
    assert [one.state for one in found.history.transitions].count(State.RUNNING) == 3
    assert found.running == 3


def test_open_runs_that_disagree_are_each_metered_to_what_is_known() -> None:
    """Dumps of several clusters, or of several days: an event says until when each was seen to run."""
    found = read(row("7", "RUNNING", end="Unknown", elapsed=600), row("8", "RUNNING", end="Unknown", elapsed=900))
    assert found.history.as_of_us == at("2026-03-02T10:10:00Z")
    assert amounts(found.history) == {"all": 600 + 900}
    last = found.history.transitions[-1]
    assert (last.event_id, last.state) == (
        "slurm:8@2026-03-02T10:00:00Z#running@2026-03-02T10:15:00Z", State.RUNNING,
    )  # fmt: skip


def test_a_run_without_elapsed_stays_open_to_nobody_knows_when() -> None:
    """UNKNOWN until when, and not until its start."""
    found = read(row("7", "RUNNING", end="Unknown", elapsed="INVALID"))
    assert isinstance(found.history.as_of_us, Missing)
    assert [one.state for one in found.history.transitions] == [State.PENDING, State.RUNNING]


def test_a_dump_cut_at_its_window_says_until_when() -> None:
    """``sacct --truncate`` gives running jobs the window's end."""
    found = read(row("7", "RUNNING", end="10:30", elapsed=1800))
    assert found.history.as_of_us == at("2026-03-02T10:30:00Z")
    assert amounts(found.history) == {"all": 1800}


def test_jobs_that_wait_only_wait() -> None:
    """Since they could have started; a class where one was asked for, ``gpu`` for any."""
    found = read(
        row("7", "PENDING", start="Unknown", end="Unknown", elapsed=0, tres="", asked="gres/gpu=1,gres/gpu:a100=1"),
        row("8_[1-9]", "PENDING", start="Unknown", end="Unknown", elapsed=0, tres="", asked="gres/gpu=1"),
        row("9", "PENDING", start="12:00", end="Unknown", elapsed=0, tres="", asked="gres/gpu=1"),
        row("10", "PENDING", start="Unknown", end="Unknown", elapsed=0, tres="", asked="cpu=1"),
    )
    assert [(one.workload, one.state, one.requested_class) for one in found.history.transitions] == [
        ("slurm:7", State.PENDING, "a100"), ("slurm:8_[*]", State.PENDING, "gpu"), ("slurm:9", State.PENDING, "gpu"),
    ]  # fmt: skip
    assert (found.waiting, found.without_gpu) == (3, 1)
    assert isinstance(found.history.as_of_us, Missing)


def test_a_job_cancelled_before_it_started_has_waited() -> None:
    """And does no longer; an earlier row of its waiting is the same job."""
    waits = row("7", "PENDING", start="Unknown", end="Unknown", elapsed=0, tres="", asked="gres/gpu=1")
    found = read(waits, row("7", "CANCELLED by 5", start="None", elapsed=0, tres="", asked="gres/gpu=1"))
    assert told(found) == [("slurm:7", "pending", "09:50"), ("slurm:7", "stopped", "11:00")]


def test_a_job_that_has_started_since_does_not_wait() -> None:
    """Dumps appended to each other; a requeued job that waits again does."""
    waits = row("7", "PENDING", start="Unknown", end="Unknown", elapsed=0, tres="", asked="gres/gpu=1")
    assert read(waits, row("7")).waiting == 0
    again = row("7", "PENDING", start="Unknown", end="Unknown", submit="11:05", elapsed=0, tres="", asked="gres/gpu=1")
    assert read(row("7"), again).waiting == 1


def test_of_two_rows_of_one_run_the_later_counts() -> None:
    """One was taken while it ran; ended twice otherwise is a conflict."""
    found = read(row("7"), row("7", "RUNNING", end="Unknown", elapsed=60))
    assert amounts(found.history) == {"all": 3600}
    assert not codes(found)
    found = read(row("7"), row("7", end="12:00", elapsed=7200), row("8"), row("8", node="n2"))
    assert amounts(found.history) == {"all": 7200 + 3600}
    assert codes(found) == ["conflict"]
    assert "line 2" in found.history.problems[0].message


def test_several_types_are_several_placements() -> None:
    """A placement has one class, so such a run is told in parts; they add up to the whole."""
    found = read(row("7", tres="gres/gpu=4,gres/gpu:a100=1,gres/gpu:h100=2"))
    assert amounts(found.history, class_of) == {"a100": 3600, "gpu": 3600, "h100": 7200}
    assert len({one.workload for one in found.history.transitions}) == 3


def test_more_devices_than_a_placement_may_hold() -> None:
    """The largest clusters have such jobs; they are told in parts."""
    found = read(row("7", tres=f"gres/gpu={MOST_DEVICES * 2 + 5}"))
    assert amounts(found.history) == {"all": (MOST_DEVICES * 2 + 5) * 3600}


def test_a_mig_type_is_a_profile_of_its_gpu() -> None:
    """So its memory is metered too; what was asked for is spelled alike."""
    found = read(row("7", tres="gres/gpu=2,gres/gpu:a100_3g.20gb=2", asked="gres/gpu:a100_3g.20gb=2"))
    running = found.history.transitions[1]
    assert running.placement == Placement(class_name="a100/3g.20gb", machine="n1", count=2)
    assert running.requested_class == "a100/3g.20gb"
    assert [meter.name for meter in meters_of("a100/3g.20gb")] == ["gpu.reserved", "mig.memory"]


def test_gpus_that_only_allocgres_tells_are_counted() -> None:
    """Of old versions, and of clusters that do not track them as TRES: else such jobs had no GPU."""
    header = "JobID|User|State|Start|End|ElapsedRaw|AllocGRES|AllocTRES"
    rows = [
        "7|al|COMPLETED|2019-03-02T10:00:00|2019-03-02T11:00:00|3600|gpu:2|cpu=1,mem=4G,node=1",
        "8|al|COMPLETED|2019-03-02T10:00:00|2019-03-02T11:00:00|3600|gpu:2|cpu=1,gres/gpu=1,mem=4G,node=1",
        "9|al|COMPLETED|2019-03-02T10:00:00|2019-03-02T11:00:00|3600||cpu=1,mem=4G,node=1",
    ]
    found = parse("\n".join([header, *rows]).encode(), path="dump", zone=ZoneInfo("UTC"))
    assert (amounts(found.history), found.without_gpu) == ({"all": 2 * 3600 + 3600}, 1)
    old = "\n".join([header, *rows]).replace("|AllocTRES", "|Comment")
    bare = parse(old.encode(), path="dump", zone=ZoneInfo("UTC"))
    assert (amounts(bare.history), bare.without_gpu) == ({"all": 4 * 3600}, 1)


def test_shards_need_to_know_how_many_make_a_gpu() -> None:
    """The accounting does not tell, so they are UNKNOWN until somebody does."""
    found = read(row("7", tres="gres/shard=3"), row("8", tres="gres/mps=50"))
    assert not found.history.transitions
    assert codes(found) == ["shares-unsized"]
    assert "2 jobs" in found.history.problems[0].message
    found = read(row("7", tres="gres/shard=3"), shards_per_gpu=4)
    assert amounts(found.history) == {"all": 2700}


def test_shards_with_a_type_are_parts_of_that_type() -> None:
    """Whether or not the untyped figure stands beside it; never a job without a GPU."""
    for tres in ("gres/shard:a6000=3", "gres/shard=3,gres/shard:a6000=3"):
        assert codes(read(row("7", tres=tres))) == ["shares-unsized"]
        found = read(row("7", tres=tres), shards_per_gpu=4)
        assert (amounts(found.history, class_of), found.without_gpu) == ({"a6000": 2700}, 0)
    assert codes(read(row("7", tres="gres/mps:v100=50"))) == ["shares-unsized"]


def test_an_allocation_that_is_not_told_is_not_nothing() -> None:
    """GPUs were asked for, it ran, and AllocTRES is empty: told with its size."""
    found = read(row("7", tres="", asked="gres/gpu=2"))
    assert codes(found) == ["allocation-unknown"]
    assert "7,200 device-seconds" in found.history.problems[0].message
    assert not found.history.transitions


def test_jobs_without_gpus_are_counted_and_told_only_where_asked() -> None:
    """As class ``cpu``, with the number of CPUs."""
    assert read(row("7", tres="cpu=12,node=1")).without_gpu == 1
    assert not read(row("7", tres="cpu=12,node=1")).history.transitions
    found = read(row("7", tres="cpu=12,node=1"), include_cpu=True)
    running = found.history.transitions[1]
    assert running.placement == Placement(class_name="cpu", machine="n1", count=0)
    assert running.labels == (("cpus", "12"),)


def test_an_end_before_the_start_is_left_out() -> None:
    """And said; the others are kept."""
    found = read(row("7", end="09:00"), row("8"))
    assert codes(found) == ["end-before-start"]
    assert amounts(found.history) == {"all": 3600}


def test_a_run_of_no_length_is_one() -> None:
    """It held nothing for any time, in order."""
    found = read(row("7", start="10:00", end="10:00", submit="10:00", elapsed=0))
    assert [one.state for one in found.history.transitions] == [State.PENDING, State.RUNNING, State.STOPPED]
    assert not amounts(found.history)


def test_an_end_that_is_not_told_follows_from_elapsed() -> None:
    """Without that either it is left out, and said."""
    found = read(row("7", end="Unknown", elapsed=100), row("8", end="Unknown", elapsed="INVALID"))
    assert amounts(found.history) == {"all": 100}
    assert codes(found) == ["end-missing"]


def test_suspended_time_is_held_time() -> None:
    """Slurm keeps the GPUs of a suspended job for it; how much of the sum that is, is told."""
    found = read(row("7", elapsed=3000, suspended="00:10:00", tres="gres/gpu=4"))
    assert amounts(found.history) == {"all": 4 * 3600}
    assert codes(found) == ["suspended"]
    assert "2,400 device-seconds" in found.history.problems[0].message


def test_times_that_do_not_fit_are_said() -> None:
    """An hour too much between Start and End is a wrong zone, mostly."""
    found = read(row("7", elapsed=7200))
    assert codes(found) == ["elapsed-differs"]
    assert "is the zone right?" in found.history.problems[0].message
    assert amounts(found.history) == {"all": 3600}


def test_a_tres_that_contradicts_itself_is_said() -> None:
    """``gres/gpu`` counts, as in Slurm's own reports."""
    found = read(row("7", tres="gres/gpu=1,gres/gpu:a100=4"), row("8", tres="gres/gpu=x"))
    assert codes(found) == ["tres-conflict", "broken-line"]
    assert amounts(found.history) == {"all": 3600}


def test_names_that_a_ledger_does_not_take_break_their_row_only() -> None:
    """Not printable, too long, or a type called ``cpu``; nothing of such a row is told."""
    found = read(
        row("7").replace("alice", "\x1b[2J"),
        row("8").replace("alice", "a" * 600),
        row("9"),
        row("10", tres="gres/gpu:cpu=1"),
    )
    assert codes(found) == ["broken-line"] * 3
    assert amounts(found.history) == {"all": 3600}
    assert {one.workload for one in found.history.transitions} == {"slurm:9@2026-03-02T10:00:00Z"}


def test_a_cluster_can_be_given() -> None:
    """Where the rows name none; it keeps the jobs of two clusters apart."""
    first = read(row("7"), cluster="fox").history.transitions[0]
    assert first.workload == "slurm:fox/7@2026-03-02T10:00:00Z"
    assert first.labels == (("cluster", "fox"),)


def test_json_gives_what_text_gives() -> None:
    """One job of both, with the same ids, so that a second import in the other form adds nothing."""
    found = capture("slurm_24_05.json")
    text = (
        "JobID|Cluster|User|Account|Partition|QOS|State|Submit|Eligible|Start|End|Elapsed|ReqTRES|AllocTRES|NodeList\n"
        "501|lab|alice|vision|gpu|normal|COMPLETED|2026-03-02T08:00:00|2026-03-02T08:00:00|2026-03-02T08:10:00|"
        "2026-03-02T09:10:00|01:00:00|cpu=8,gres/gpu=2|cpu=8,gres/gpu=2,gres/gpu:a100=2,node=1|gpu-1\n"
    )
    same = parse(text.encode(), path="dump", zone=ZoneInfo("Europe/Berlin")).history.transitions
    assert [one for one in found.history.transitions if "/501@" in one.workload] == list(same)
    assert amounts(found.history, class_of) == {"a100": 2 * (3600 + 3600 + 1800)}
    assert amounts(capture("slurm_21_08.json").history, class_of) == {"a100": 2 * (3600 + 3600 + 1800)}


def test_json_needs_no_zone() -> None:
    """Its times are seconds since 1970."""
    content = (CAPTURES / "slurm_21_08.json").read_bytes()
    assert parse(content, path="dump", zone=None).allocations == 4


def test_binary_files_are_refused() -> None:
    """With the line of the first NUL byte."""
    with pytest.raises(BadInput) as error:
        parse(b"JobID|State\n\0", path="dump", zone=None)
    assert (error.value.code, error.value.line) == ("not-text", 2)


@pytest.fixture
def shared() -> Path:
    """The real inputs beside the project; skipped where they are absent, but never in CI."""
    if not SHARED.is_dir():
        if os.environ.get("CI"):
            pytest.fail("../shared/data is absent, and CI must try the real inputs")
        pytest.skip("../shared/data is absent: the real inputs are not tried")
    return SHARED


def test_fox(shared: Path) -> None:
    """A real cluster of several GPU types; most of it runs while the dump is taken."""
    content = (shared / "slurm" / "fox" / "sacct_output.txt").read_bytes()
    found = parse(content, path="fox", zone=ZoneInfo("Europe/Oslo"), columns=FOX.split(","))
    assert amounts(found.history) == {"all": 3_360_033}
    assert amounts(found.history, class_of) == {
        "a100": 1_995_103, "a100_80": 1_235_751, "rtx30": 63_737, "l40s": 41_786, "a40": 17_529, "gpu": 6_127,
    }  # fmt: skip
    by_user = amounts(found.history, lambda one: one.user)
    assert (len(by_user), max(by_user.values())) == (14, 1_192_379)
    assert found.history.as_of_us == at("2025-09-26T07:19:11Z")
    assert not found.history.problems
    assert found.history.rows_read == 301


def test_fox_does_not_depend_on_the_zone(shared: Path) -> None:
    """Its amounts do not: no clock was changed in it."""
    content = (shared / "slurm" / "fox" / "sacct_output.txt").read_bytes()
    found = parse(content, path="fox", zone=ZoneInfo("Asia/Tokyo"), columns=FOX.split(","))
    assert amounts(found.history) == {"all": 3_360_033}


@pytest.mark.parametrize(
    "name", ["sample-sacct-multiple-multiline.txt", "sample-sacct-multiple-multiline-expected.txt"]
)
def test_gcm(shared: Path, name: str) -> None:
    """Line breaks inside fields, a delimiter of two characters, one job three times."""
    found = parse((shared / "slurm" / "gcm" / name).read_bytes(), path=name, zone=ZoneInfo("UTC"))
    assert amounts(found.history) == {"all": 103_664_640}
    assert found.repeated == 2
    assert codes(found) == ["allocation-missing"]
    assert "job 200131 has a step" in found.history.problems[0].message


def test_gcm_with_bytes_that_are_no_text(shared: Path) -> None:
    """They do no harm, and the job whose allocation is missing is told with its size."""
    content = (shared / "slurm" / "gcm" / "sample-sacct-output-invalid-utf8.txt").read_bytes()
    found = parse(content, path="gcm", zone=ZoneInfo("UTC"))
    assert amounts(found.history) == {"all": 8_004}
    assert codes(found) == ["allocation-missing"]
    assert "job 3557893" in found.history.problems[0].message
    assert "966,656 device-seconds" in found.history.problems[0].message


def by_day(amount: Fraction | int, since: int, until: int, days: Counter[str]) -> None:
    """Cut a run at UTC days."""
    while since < until:
        edge = min(until, day_floor(since) + DAY_US)
        days[iso(since)[:10]] += amount * Fraction(edge - since, HOUR_US)  # type: ignore[assignment]
        since = edge


def published(path: Path, column: str) -> dict[str, str]:
    lines = path.read_text(encoding="utf-8").splitlines()
    begin = next(place for place, line in enumerate(lines) if line.startswith("Day,"))
    table = csv.DictReader(line for line in lines[begin:] if line != "---------")
    return {line["Day"]: line[column] for line in table}


def test_xdmod_gpu_hours_of_every_day(shared: Path) -> None:
    """What another tool published of the same jobs, to its four decimals."""
    folder = shared / "slurm" / "xdmod"
    content = (folder / "phillips.sacct.log").read_bytes()
    found = parse(content, path="phillips", zone=ZoneInfo("UTC"), columns=XDMOD.split(","))
    days: Counter[str] = Counter()
    for _, placement, since, until in runs(found.history):
        by_day(placement.count, since, until, days)
    told_days = published(
        folder / "expected_resource_total_gpu_hours_timeseries-Day.csv", "[phillips] GPU Hours: Total"
    )
    assert {day: f"{float(hours):.4f}" for day, hours in days.items()} == told_days
    assert f"{float(sum(days.values())):.4f}" == "506.9128"
    assert not found.history.problems
    assert found.without_gpu == 4283


def test_xdmod_cpu_hours_of_every_day(shared: Path) -> None:
    """The same of CPUs: those of jobs without a GPU by their label, those of the others from their rows."""
    folder = shared / "slurm" / "xdmod"
    content = (folder / "phillips.sacct.log").read_bytes()
    found = parse(content, path="phillips", zone=ZoneInfo("UTC"), columns=XDMOD.split(","), include_cpu=True)
    rows = slurm_sacct.parse(content.decode(), path="phillips", zone=ZoneInfo("UTC"), columns=XDMOD.split(",")).rows
    cpus = {f"slurm:phillips/{one.job}@": int(one.allocated.partition("cpu=")[2].partition(",")[0]) for one in rows}
    days: Counter[str] = Counter()
    for event, placement, since, until in runs(found.history):
        count = cpus[event.workload.partition("@")[0] + "@"]
        if placement.class_name == "cpu":
            assert dict(event.labels)["cpus"] == str(count)
        by_day(count, since, until, days)
    told_days = published(
        folder / "expected_resource_total_cpu_hours_timeseries-Day.csv", "[phillips] CPU Hours: Total"
    )
    assert {day: f"{float(hours):.4f}" for day, hours in days.items()} == told_days
    assert f"{float(sum(days.values())):.4f}" == "11767.9883"


def test_the_rollup_identity_of_sreport(shared: Path) -> None:
    """Slurm's own test: allocated + down + planned + idle = reported, hour by hour, from our transitions."""
    vector = json.loads((shared / "vectors" / "sreport_rollup_vector.json").read_text(encoding="utf-8"))
    zero = at("2007-12-31T23:00:00Z")
    accounts = {65536: "acct1", 65537: "acct1", 65538: "acct3", 65539: "acct2", 65540: "acct2"}
    lines = ["JobID|User|Account|State|Submit|Start|End|ReqTRES|AllocTRES"]
    for job in vector["jobs"]:
        when = [
            "Unknown" if job[name] is None else iso(zero + job[name] * SECOND_US)
            for name in ("eligible", "start", "end")
        ]
        tres = f"cpu=1,gres/gpu={job['cpus']}"
        state = "PENDING" if job["start"] is None else "COMPLETED"
        given = "" if job["start"] is None else tres
        lines.append("|".join([str(job["id"]), job["user"], accounts[job["id"]], state, *when, tres, given]))
    history = parse("\n".join(lines).encode(), path="sreport", zone=None).history
    counts = {str(job["id"]): job["cpus"] for job in vector["jobs"]}
    hours = len(vector["allocated_seconds_by_hour"])
    allocated, wanted = [0] * hours, [0] * hours

    def spread(into: list[int], count: int, since: int, until: int) -> None:
        for hour in range(hours):
            begin = zero + hour * HOUR_US
            overlap = min(until, begin + HOUR_US) - max(since, begin)
            into[hour] += count * max(0, overlap) // SECOND_US

    starts = {one.workload: one.at_us for one in history.transitions if one.state is State.RUNNING}
    for _, placement, since, until in runs(history):
        spread(allocated, placement.count, since, until)
    for one in history.transitions:
        if one.state is State.PENDING:
            number = one.workload.removeprefix("slurm:").partition("@")[0]
            spread(wanted, counts[number], one.at_us, starts.get(one.workload, zero + hours * HOUR_US))
    assert allocated == vector["allocated_seconds_by_hour"]
    reported = sum(vector["nodes"].values()) * 3600
    down, off = [0] * hours, vector["down"]
    spread(down, off["cpus"], zero + off["start"] * SECOND_US, zero + off["end"] * SECOND_US)
    planned = [min(wanted[hour], reported - down[hour] - allocated[hour]) for hour in range(hours)]
    for expected in vector["expected"]:
        window = slice(expected["window"][0] // 3600, expected["window"][1] // 3600)
        assert sum(allocated[window]) == expected["allocated"]
        assert sum(down[window]) == expected["down"]
        assert sum(planned[window]) == expected["planned"]
        idle = expected["reported"] - sum(allocated[window]) - sum(down[window]) - sum(planned[window])
        assert idle == expected["idle"]
        assert sum(wanted[window]) - sum(planned[window]) == expected.get(
            "overcommit", sum(wanted[window]) - sum(planned[window])
        )
    last = vector["expected"][-1]
    assert amounts(history, lambda one: f"{one.user}/{one.project}") == {
        "user1/acct1": last["by_user_account"]["user1/acct1"],
        "user1/acct2": last["by_user_account"]["user1/acct2"],
        "user2/acct3": last["by_user_account"]["user2/acct3"],
    }


@pytest.mark.parametrize("restarts", ["", "0"])
def test_runs_that_a_dump_leaves_out_are_told_with_the_option_that_prints_them(restarts: str) -> None:
    """In both forms of a dump; of jobs without a GPU nobody asks."""
    header = "JobID|User|State|Start|End|ElapsedRaw|Restarts|AllocTRES"
    late = "2026-03-02T10:00:00|2026-03-02T11:00:00|3600"
    rows = [
        f"7|al|COMPLETED|{late}|1|gres/gpu=1",
        f"8|al|COMPLETED|{late}|2|cpu=1",
        f"9|al|COMPLETED|{late}|{restarts}|gres/gpu=1",
    ]
    found = parse("\n".join([header, *rows, ""]).encode(), path="dump", zone=ZoneInfo("UTC"))
    assert (codes(found), amounts(found.history)) == (["runs-missing"], {"all": 7200})
    assert "-D" in found.history.problems[0].message
    job = {
        "job_id": 7, "user": "al", "state": {"current": ["COMPLETED"]}, "time": {"start": 3600, "end": 7200},
        "tres": {"allocated": [{"type": "gres", "name": "gpu", "count": 1}]}, "restart_cnt": 1,
    }  # fmt: skip
    assert codes(parse(json.dumps({"jobs": [job]}).encode(), path="dump", zone=None)) == ["runs-missing"]


@pytest.mark.parametrize("count", [MOST_GPUS + 1, 999_999_999_999])
def test_more_gpus_than_any_cluster_has_are_a_broken_cell(count: int) -> None:
    """Told with its line; as many placements of it would fill the ledger."""
    found = read(row("7", tres=f"gres/gpu={count}"), row("8"))
    assert (codes(found), amounts(found.history)) == (["broken-line"], {"all": 3600})
    assert "more than any cluster has" in found.history.problems[0].message


def test_gpus_that_were_held_since_nobody_knows_when_are_told_with_their_size() -> None:
    """Start is absent, or a sentinel; it is no job without a GPU, and none that waits."""
    for start in ("Unknown", "2126-01-01T00:00:00"):
        found = read(row("7", start=start, tres="gres/gpu=2"))
        assert (codes(found), found.without_gpu, found.waiting) == (["start-missing"], 0, 0)
        assert "7,200 device-seconds" in found.history.problems[0].message
        assert not found.history.transitions


def test_a_dump_that_powershell_wrote_is_refused_with_what_makes_it_text() -> None:
    """It has a NUL byte in every letter."""
    with pytest.raises(BadInput, match="iconv"):
        parse("\n".join([HEADER, row("7")]).encode("utf-16"), path="dump", zone=ZoneInfo("UTC"))


def test_a_job_cancelled_while_it_waited_gave_up() -> None:
    """Old versions give it a start, its end, and as AllocTRES what it asked for; nodes it never had."""
    gone = row("7", "CANCELLED by 5", start="11:00", end="11:00", elapsed=0, tres="gres/gpu=2", node="None assigned")
    ran = row("8", "CANCELLED by 5", start="11:00", end="11:00", elapsed=0)
    found = read(gone, ran)
    assert told(found) == [
        ("slurm:7", "pending", "09:50"), ("slurm:8@2026-03-02T11:00:00Z", "pending", "09:50"),
        ("slurm:7", "stopped", "11:00"), ("slurm:8@2026-03-02T11:00:00Z", "running", "11:00"),
        ("slurm:8@2026-03-02T11:00:00Z", "stopped", "11:00"),
    ]  # fmt: skip
    assert found.waiting == 1
    assert found.history.transitions[0].requested_class == "gpu"


def test_a_requeued_run_did_not_wait_while_the_run_before_went_on() -> None:
    """Its Submit is that of the first: it waits from the end of that one."""
    found = read(
        row("7", "PREEMPTED", submit="09:00", start="10:00", end="11:00"),
        row("7", submit="09:00", start="12:00", end="13:00"),
        row("8", submit="09:00", start="12:00", end="13:00"),
    )
    waits = [(one.workload[6:7], iso(one.at_us)[11:16]) for one in found.history.transitions if one.state == "pending"]
    assert waits == [("7", "09:00"), ("8", "09:00"), ("7", "11:00")]


def test_what_a_job_held_is_unknown_where_nothing_tells_it() -> None:
    """It ran, so an empty AllocTRES is no evidence that it held no GPU."""
    found = read(row("7", tres=""), row("8", tres="cpu=1", asked="gres/gpu=1"))
    assert codes(found) == ["allocation-untold"]
    assert "1 job ran for 3,600 s" in found.history.problems[0].message
    assert found.without_gpu == 1


def test_a_job_that_asked_for_cpus_alone_is_no_unknown() -> None:
    """What it asked for tells that it held no GPU; one that asked for parts of a GPU may have held them."""
    asked = row("7", tres="", asked="cpu=4,mem=8G,node=1")
    found = read(asked, row("8"), include_cpu=True)
    assert codes(found) == []
    assert [(each.class_name, each.count) for _, each, _, _ in runs(found.history)] == [("cpu", 0), ("gpu", 1)]
    assert read(asked).without_gpu == 1
    assert codes(read(row("9", tres="", asked="cpu=4,gres/shard=2"))) == ["allocation-untold"]


def test_a_cluster_that_does_not_track_its_gpus_is_told() -> None:
    """No row names one, so 0 GPU-hours would be a guess."""
    found = read(row("7", tres="cpu=1"), row("8", tres="cpu=1"))
    assert codes(found) == ["gpus-untracked"]
    assert codes(read(row("7", "PENDING", start="Unknown", end="Unknown", tres="", elapsed=0))) == []
    assert codes(read(row("7", tres="cpu=1"), row("8"))) == []


def test_gpus_on_several_nodes_are_summed() -> None:
    """The accounting does not tell how many each of them had."""
    found = read(row("7", tres="gres/gpu=4,node=2", node="n[1-2]"), row("8", node="n1"))
    assert (found.spread.jobs, found.spread.amount) == (1, 4 * 3600)
    assert sum(amounts(found.history).values()) == 5 * 3600


def test_an_end_that_is_foreseen_is_none() -> None:
    """What runs is known to start + elapsed, whatever its time limit says; one that completes has its end."""
    found = read(
        row("7", "RUNNING", end="18:00", elapsed=1800),
        row("8", "SUSPENDED", end="18:00", elapsed=1200, suspended="00:10:00"),
        row("9", "COMPLETING", end="10:30", elapsed=1800),
    )
    assert found.history.as_of_us == at("2026-03-02T10:30:00Z")
    assert amounts(found.history) == {"all": 3 * 1800}
    assert codes(found) == ["suspended"]
