"""Traces: real and hand-made files become histories, exactly; what cannot be so is told with its line."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuledger.errors import BadInput
from gpuledger.model.lifecycle import CPU, FOLLOWS, History, Placement, State, Transition
from gpuledger.model.missing import Missing
from gpuledger.model.moments import DAY_US, SECOND_US, iso
from gpuledger.sources import trace_map
from gpuledger.sources.trace_csv import MOST_PROBLEMS, parse
from gpuledger.sources.trace_map import TraceMap

SHARED = Path(__file__).resolve().parents[2].parent / "shared" / "data"
MONTH_US = 30 * DAY_US

PHILLY = """\
columns:
  id: jobid
  pending: submitted_time
  start: start_time
  end: end_time
  devices: gpus
  team: vc
  user: user
  machine: ip
  outcome: status
constants: {class: GPU}
units: {time: "%Y-%m-%d %H:%M:%S"}
zone: America/Los_Angeles
missing: {start: [None], end: [None]}
failed: [Failed]
rows: {without_end: open, without_start: pending}
"""
PAI = """\
header: [job_name, task_name, inst_num, status, start_time, end_time, plan_cpu, plan_mem, plan_gpu, gpu_type]
columns:
  id: [job_name, task_name]
  start: start_time
  end: end_time
  instances: inst_num
  devices: plan_gpu
  class: gpu_type
  outcome: status
labels: {task: task_name}
units: {time: s, devices: percent}
constants: {devices: 0}
origin: 2020-07-01
failed: [Failed]
classes: {V100M32: V100-SXM2-32GB}
censored_at: 5000
rows: {censored: open, without_end: open}
prefix: pai/
"""
SPREADSHEET = """\
columns: {id: [Name, Von], start: Von, end: Bis, devices: Karten, share: Anteil, user: Name, machine: Rechner}
constants: {class: RTX-4090, pool: lab, labels: {book: 2026}}
units: {time: "%d.%m.%Y %H:%M", share: percent}
zone: Europe/Berlin
delimiter: semicolon
decimal: ","
"""


def read(text: str, document: str) -> History:
    return parse(text, path="f.csv", trace_map=trace_map.parse(document, path="m.yaml"))


def told(history: History) -> list[tuple[str, str]]:
    return [(problem.code, problem.where) for problem in history.problems]


Held = tuple[Transition, int, int]


def held(history: History) -> Iterator[Held]:
    """Oracle: every running transition with its span, to the next of its workload or to what the source can tell."""
    by_workload: dict[str, list[Transition]] = {}
    for transition in history.transitions:
        by_workload.setdefault(transition.workload, []).append(transition)
    for several in by_workload.values():
        for transition, following in zip(several, [*several[1:], None], strict=True):
            if transition.state is State.RUNNING:
                until_us = following.at_us if following else history.as_of_us
                assert not isinstance(until_us, Missing)
                yield transition, transition.at_us, until_us


def seconds(spans: Iterator[Held] | list[Held], weight: Callable[[Placement], Fraction | int]) -> Fraction:
    """Oracle: device-seconds of spans, exact."""
    total = Fraction(0)
    for transition, since_us, until_us in spans:
        assert transition.placement is not None
        total += Fraction(until_us - since_us, SECOND_US) * weight(transition.placement)
    return total


def shared_part(placement: Placement) -> Fraction:
    return placement.count * placement.share


def whole(placement: Placement) -> int:
    return placement.count


@pytest.fixture(scope="module")
def pods() -> str:
    """The pod list of openb as it lies."""
    path = SHARED / "traces" / "openb" / "openb_pod_list_default.csv"
    if not path.exists():
        if os.environ.get("CI"):
            pytest.fail("../shared/data is absent, and CI must try the real inputs")
        pytest.skip("../shared/data is absent: the real trace is not tried")
    return path.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def openb(pods: str) -> History:
    """It as a history."""
    return parse(pods, path="pods.csv", trace_map=trace_map.preset("openb"))


def test_openb_adds_up_to_the_microsecond(openb: History) -> None:
    """The right answers of the real trace: with fractions, and as whole devices."""
    assert seconds(held(openb), shared_part) == Fraction("185294426.970")
    assert seconds(held(openb), whole) == 214_603_958
    assert openb.rows_read == 8152 - 897 - 1052


def test_openb_adds_up_by_quality_of_service(openb: History) -> None:
    """Labels carry it."""
    by_qos: dict[str, list[Held]] = {}
    for each in held(openb):
        by_qos.setdefault(dict(each[0].labels)["qos"], []).append(each)
    assert {qos: seconds(spans, shared_part) for qos, spans in by_qos.items()} == {
        "LS": Fraction("149088096.090"),
        "Burstable": Fraction("26853122.000"),
        "BE": Fraction("4721888.880"),
        "Guaranteed": Fraction("4631320.000"),
    }


def test_openb_adds_up_by_month(openb: History) -> None:
    """Thirty days from 0 on, runs split at the edge."""
    months = []
    for month in range(5):
        first, last = month * MONTH_US, (month + 1) * MONTH_US
        cut = [(run, max(since, first), min(until, last)) for run, since, until in held(openb)]
        months.append(seconds([each for each in cut if each[1] < each[2]], shared_part))
    assert months == [
        Fraction(text)
        for text in ("4621490.940", "15542125.760", "25735758.980", "46358724.340", "93036326.950")
    ]  # fmt: skip
    assert sum(months) == Fraction("185294426.970")


def test_openb_says_what_it_left_out(openb: History) -> None:
    """Once each, with their number and the first line."""
    assert told(openb) == [("no-devices", "pods.csv:7"), ("not-scheduled", "pods.csv:63")]
    assert openb.problems[0].message.startswith("1,052 rows, the first here: ")
    assert openb.problems[1].message.startswith("897 rows, the first here: ")


def test_openb_leaves_open_what_the_trace_cut_off(pods: str, openb: History) -> None:
    """34 rows end with the trace: 32 with devices, 2 of class cpu; declared ended, the sums are the same."""
    made = trace_map.preset("openb")
    every = parse(pods, path="p", trace_map=replace(made, rows={**made.rows, "without_devices": "cpu"}))
    for history, number in ((openb, 32), (every, 34)):
        ended = {each.workload for each in history.transitions if each.state in (State.STOPPED, State.FAILED)}
        assert len({each.workload for each in history.transitions} - ended) == number
        assert history.as_of_us == 12_902_960 * SECOND_US
    assert every.rows_read == 8152 - 897
    assert sum(each.placement is not None and each.placement.class_name == CPU for each in every.transitions) == 1052
    closed = parse(pods, path="p", trace_map=replace(made, rows={**made.rows, "censored": "ended"}))
    assert isinstance(closed.as_of_us, Missing)
    assert seconds(held(closed), shared_part) == Fraction("185294426.970")


def test_openb_waits_are_kept_on_request(pods: str) -> None:
    """Who was never scheduled waited, which is what a planner asks for."""
    made = trace_map.preset("openb")
    history = parse(pods, path="p", trace_map=replace(made, rows={**made.rows, "without_start": "pending"}))
    assert history.rows_read == 8152 - 1052
    assert seconds(held(history), shared_part) == Fraction("185294426.970")
    states = Counter(each.state for each in history.transitions)
    assert states[State.PENDING] == history.rows_read
    assert states[State.RUNNING] == 8152 - 897 - 1052


def test_openb_reads_fast(pods: str) -> None:
    """Well under a second of this machine's work."""
    began = time.process_time()
    parse(pods, path="p", trace_map=trace_map.preset("openb"))
    assert time.process_time() - began < 1


def test_openb_is_dated_by_declaration(pods: str, openb: History) -> None:
    """Another origin moves all of it, the end of the trace too."""
    moved = parse(pods, path="p", trace_map=trace_map.preset("openb").instead(origin="2023-01-01"))
    by_us = moved.transitions[0].at_us - openb.transitions[0].at_us
    assert iso(by_us) == "2023-01-01T00:00:00Z"
    assert [each.at_us for each in moved.transitions] == [each.at_us + by_us for each in openb.transitions]
    assert moved.as_of_us == 12_902_960 * SECOND_US + by_us


def test_philly_like_attempts_are_runs_of_one_job() -> None:
    """Attempts follow each other, local times carry no zone, `None` is no time, a job may never start."""
    history = read(
        """\
jobid,vc,user,status,submitted_time,start_time,end_time,gpus,ip
application_1,6214e9,b5,Pass,2017-10-03 17:00:00,2017-10-03 17:05:00,2017-10-03 18:05:00,8,m29
application_1,6214e9,b5,Failed,2017-10-03 17:00:00,2017-10-03 18:05:00,2017-10-03 18:06:00,8,m30
application_2,6214e9,c1,Running,2017-10-03 17:00:00,2017-10-03 18:00:00,None,1,m29
application_3,6214e9,c1,Killed,2017-10-03 19:00:00,None,2017-10-03 19:30:00,16,
""",
        PHILLY,
    )
    first = [each for each in history.transitions if each.workload == "application_1"]
    assert [(each.state.value, iso(each.at_us)) for each in first] == [
        ("pending", "2017-10-04T00:00:00Z"),
        ("running", "2017-10-04T00:05:00Z"),
        ("stopped", "2017-10-04T01:05:00Z"),
        ("running", "2017-10-04T01:05:00Z"),
        ("failed", "2017-10-04T01:06:00Z"),
    ]
    assert first[3].placement == Placement(class_name="GPU", machine="m30", count=8)
    assert (first[0].user, first[0].team) == ("b5", "6214e9")
    assert [each.state.value for each in history.transitions if each.workload == "application_3"] == [
        "pending",
        "stopped",
    ]
    assert isinstance(history.as_of_us, Missing)
    assert "does not declare" in history.as_of_us.reason
    assert (history.rows_read, history.problems) == (4, ())


def test_pai_like_tasks_take_parts_of_devices_by_instance() -> None:
    """No header, percents of a device, floats of seconds from 0, tasks without a GPU, and the trace's end."""
    history = read(
        """\
9f1c,worker,4.0,Terminated,100.0,1100.5,600.0,29.3,25.0,T4
9f1c,ps,2.0,Terminated,100.0,1100.0,600.0,29.3,,CPU
b220,tensorflow,1.0,Failed,200.0,400.0,600.0,29.3,200.0,V100M32
c3d0,worker,2.0,Running,4000.0,,600.0,29.3,100.0,MISC
c3d1,worker,1.0,Terminated,4000.0,5000.0,600.0,29.3,50.0,P100
c3d2,worker,1.0,Terminated,4000.0,4100.0,600.0,29.3,150.0,P100
""",
        PAI,
    )
    assert seconds(held(history), shared_part) == Fraction("1000.5") + 400 + 2000 + 500
    placements = {each.workload: each.placement for each in history.transitions if each.placement}
    assert placements["pai/9f1c/worker"] == Placement(class_name="T4", count=4, share=Fraction(1, 4))
    assert placements["pai/b220/tensorflow"] == Placement(class_name="V100-SXM2-32GB", count=2)
    assert told(history) == [("no-devices", "f.csv:2"), ("bad-devices", "f.csv:6")]
    assert history.as_of_us == trace_map.parse(PAI, path="m").times.read("5000")[0]
    assert iso(history.transitions[0].at_us) == "2020-07-01T00:01:40Z"
    assert history.transitions[0].labels == (("task", "worker"),)


def test_spreadsheet_in_local_time_keeps_the_nights_of_the_clocks() -> None:
    """Six hours of the wall are seven in October and five in March; semicolons, commas, a byte order mark."""
    history = read(
        "\ufeffRechner;Name;Von;Bis;Karten;Anteil;Bemerkung\r\n"
        'turing;ann;24.10.2026 23:00;25.10.2026 05:00;1;100;"läuft; gut"\r\n'
        "turing;bob;28.03.2026 23:00;29.03.2026 05:00;2;12,5;\r\n"
        "turing;bob;29.03.2026 02:30;29.03.2026 05:00;1;100;gab es nicht\r\n"
        "turing;eve;25.10.2026 02:30;25.10.2026 02:45;1;100;welche?\r\n"
        ";;;;;;\r\n"
        "turing;dan;01.05.2026 10:00;01.05.2026 09:00;1;100;\r\n",
        SPREADSHEET,
    )
    by_user = {each.user: (until - since) // (3600 * SECOND_US) for each, since, until in held(history)}
    assert by_user == {"ann": 7, "bob": 5}
    assert seconds(held(history), shared_part) == 7 * 3600 + 2 * 5 * 3600 * Fraction(1, 8)
    assert told(history) == [
        ("bad-time", "f.csv:4"), ("ambiguous-local-time", "f.csv:5"), ("no-id", "f.csv:6"),
        ("end-before-start", "f.csv:7"),
    ]  # fmt: skip
    assert "skipped by the clocks of Europe/Berlin" in history.problems[0].message
    assert "repeated_hour" in history.problems[1].message
    assert history.transitions[0].labels == (("book", "2026"),)


LEAST = "columns: {id: id, start: start, end: end, devices: gpus, class: class}\norigin: 2020-01-01\n"
HEADER = "id,start,end,gpus,class\n"


def test_local_times_without_a_zone_refuse_the_file() -> None:
    """With the line of the first, and what to type."""
    document = LEAST.replace("origin: 2020-01-01", "units: {time: iso}")
    with pytest.raises(BadInput, match=r"f\.csv:3") as caught:
        read(HEADER + "a,2026-01-01T00:00Z,2026-01-02T00:00Z,1,A\nb,2026-01-01 00:00,2026-01-02,1,A\n", document)
    assert caught.value.code == "zone-needed"
    assert "--zone" in caught.value.hint


@pytest.mark.parametrize(
    ("text", "says"),
    [("", "empty"), ("\n\n", "empty"), ("id,start,end,gpus\na,0,1,1\n", "'class' that the map names is not"),
     ("id,start,end,gpus,class,id\n", "'id' that the map names is twice"), ('"id\n', "not CSV")],
)  # fmt: skip
def test_a_file_of_another_shape_is_refused_whole(text: str, says: str) -> None:
    """With the columns that are there."""
    with pytest.raises(BadInput, match=r"f\.csv") as caught:
        read(text, LEAST)
    assert caught.value.code == "bad-trace"
    assert says in caught.value.message
    assert caught.value.hint


def test_a_header_alone_is_an_empty_history() -> None:
    """No row is no error."""
    history = read(HEADER, LEAST)
    assert (history.transitions, history.problems, history.rows_read) == ((), (), 0)


def test_broken_lines_are_told_and_the_rest_is_kept() -> None:
    """A quote that is never closed does not swallow the rows behind it; lines count as an editor counts them."""
    history = read(
        HEADER
        + 'a,0,1,1,"A\nb,0,1,1,A\n\nc,0,1\nd,0,1,1,A,,\ne,0,1,1,A,x\n"f",0,1,1,"A"x\ng,0,1,1,"A\nB"\nh,0,1,1,A\n',
        LEAST,
    )
    kept = {each.workload for each in history.transitions}
    assert kept == {"b", "d", "h"}
    assert told(history) == [
        ("broken-line", "f.csv:2"), ("broken-line", "f.csv:5"), ("broken-line", "f.csv:7"), ("broken-line", "f.csv:8"),
        ("bad-name", "f.csv:9"),
    ]  # fmt: skip


def test_identical_rows_count_once_and_overlapping_ones_are_told() -> None:
    """One workload is not twice in one moment; what repeats a row adds nothing."""
    history = read(HEADER + "a,0,9,1,A\na,0,9,1,A\na,5,12,1,A\na,9,12,1,A\na,20,20,1,A\na,20,30,1,A\n", LEAST)
    assert [(each.at_us // SECOND_US - 1_577_836_800, each.state.value) for each in history.transitions] == [
        (0, "running"), (9, "stopped"), (9, "running"), (12, "stopped"), (20, "running"), (20, "stopped"),
    ]  # fmt: skip
    assert told(history) == [
        ("repeated-row", "f.csv:3"), ("overlapping-rows", "f.csv:4"), ("overlapping-rows", "f.csv:7"),
    ]  # fmt: skip


def test_many_problems_are_told_by_their_number() -> None:
    """The first by line, the others counted, and no row is hidden."""
    history = read(HEADER + "".join(f"j{n},9,0,1,A\n" for n in range(50)), LEAST)
    assert len(history.problems) == MOST_PROBLEMS + 1
    assert history.problems[-1].message == "30 more rows like these"


def test_a_trace_that_counts_from_0_is_told_to_declare_it() -> None:
    """Else it would be filed under 1970 in silence."""
    document = LEAST.replace("origin: 2020-01-01\n", "")
    assert told(read(HEADER + "a,0,9,1,A\n", document)) == [("no-origin", "f.csv")]
    assert told(read(HEADER + "a,1594000000,1594000001,1,A\n", document)) == []


def test_a_header_that_is_declared_and_there_is_no_row() -> None:
    """Whoever declares the names of a file that has them loses nothing."""
    document = LEAST + "header: [id, start, end, gpus, class]\n"
    assert read(HEADER + "a,0,9,1,A\n", document).transitions == read("a,0,9,1,A\n", document).transitions


def test_reading_it_again_gives_the_same_events() -> None:
    """Ids come from the trace's own words, not from line numbers: a second import adds nothing."""
    rows = ["a,0,9,1,A\n", "b,3,9,1/2,A\n", "c,1,2,1,B\n"]
    first = read(HEADER + "".join(rows), LEAST)
    later = read(HEADER + "z,0,1,1,A\n" + "".join(reversed(rows)), LEAST)
    assert {each.event_id: each for each in first.transitions}.items() <= {
        each.event_id: each for each in later.transitions
    }.items()


CELL = st.sampled_from(
    ["", "a", "b", "0", "5", "9", "12", "-1", "0.5", "x", '"', '"a"', "\x00", "1e9", "\r", "é", "10001"]
)


@settings(max_examples=150)
@given(st.lists(st.lists(CELL, min_size=4, max_size=6).map(",".join) | st.text(max_size=8), max_size=12))
def test_any_file_gives_a_history_or_an_error_of_ours(lines: list[str]) -> None:
    """Sorted, each event once, every running one placed or told, every row of every workload one after the other."""
    made: TraceMap = trace_map.parse(LEAST + "rows: {without_end: open, without_devices: cpu}\n", path="m")
    history = parse(HEADER + "\n".join(lines), path="f.csv", trace_map=made)
    times = [each.at_us for each in history.transitions]
    assert times == sorted(times)
    assert len({each.event_id for each in history.transitions}) == len(times)
    stands: dict[str, State | None] = {}
    for each in history.transitions:
        before = stands.get(each.workload)
        # a trace tells no provisioning: what begins to run does so from anywhere nothing runs
        assert each.state in FOLLOWS[before] or (each.state is State.RUNNING and before is not State.RUNNING)
        stands[each.workload] = each.state
    opened = any(state is State.RUNNING for state in stands.values())
    assert isinstance(history.as_of_us, Missing)
    assert ("does not declare" in history.as_of_us.reason) == opened


@pytest.mark.parametrize("text", ['[{"jobid": "a", "gpus": 1}]', '{"jobs": []}\n', '\n  [\n  {"jobid": "a"}\n]'])
def test_json_is_refused_as_what_it_is(text: str) -> None:
    """Some traces are published so; it says what makes a sheet of them."""
    with pytest.raises(BadInput, match="JSON, and no CSV") as caught:
        read(text, PAI)
    assert "jq" in (caught.value.hint or "")


OPENB_HEADER = (
    "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time"
)


@pytest.mark.parametrize("lacking", [(), ("qos",), ("gpu_spec", "pod_phase"), ("creation_time",)])
def test_a_pod_list_may_lack_what_no_amount_is_made_of(lacking: tuple[str, ...]) -> None:
    """The amounts are the same, and what nothing tells now is told; without its milli a share would be a guess."""
    row = "p1,4000,100,1,250,A|B,LS,Succeeded,90,1100,100"
    cells = dict(zip(OPENB_HEADER.split(","), row.split(","), strict=True))
    kept = [name for name in cells if name not in lacking]
    text = f"{','.join(kept)}\n{','.join(cells[name] for name in kept)}\n"
    found = parse(text, path="pods.csv", trace_map=trace_map.preset("openb"))
    assert sum(size * (until - since) for size, since, until in spans(found)) == 250 * SECOND_US
    assert told(found) == [("column-missing", "pods.csv")] * len(lacking)
    bad = text.replace("gpu_milli", "share")
    with pytest.raises(BadInput, match="'gpu_milli' that the map names is not there"):
        parse(bad, path="pods.csv", trace_map=trace_map.preset("openb"))


def spans(history: History) -> Iterator[tuple[Fraction, int, int]]:
    """Devices, start and end of each run that has an end."""
    began: dict[str, Transition] = {}
    for each in history.transitions:
        if each.state is State.RUNNING:
            began[each.workload] = each
        elif each.workload in began:
            first = began.pop(each.workload)
            assert first.placement is not None
            yield first.placement.count * first.placement.share, first.at_us, each.at_us


def test_a_last_row_without_its_end_of_line_may_be_cut() -> None:
    """Two devices may have been twenty. Where the last cell is no amount, nothing is open."""
    document = "columns: {id: id, start: s, end: e, devices: n, user: u}\nconstants: {class: GPU}\n"
    assert told(read("id,u,s,e,n\na,ann,0,9,1\nb,ann,0,9,2", document))[0] == ("last-line-open", "f.csv:3")
    for text in ("id,u,s,e,n\nb,ann,0,9,2\n", "id,u,s,e,n\r\nb,ann,0,9,2\r\n", "id,s,e,n,u\nb,0,9,2,ann"):
        assert "last-line-open" not in [code for code, _ in told(read(text, document))]
