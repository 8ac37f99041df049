"""Runs of an id that the ledger knows to have run at that time: told, left out, and the others kept."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest

from gpuledger.ledger.store import Ledger
from gpuledger.metering.lifecycles import intervals
from gpuledger.model.missing import Missing
from gpuledger.model.moments import SECOND_US
from gpuledger.model.outcomes import HistoryReport
from gpuledger.model.workload_rows import PlacementRow, WorkloadEvent
from gpuledger.operations import overlapping_runs
from gpuledger.operations.import_history import begun_anew, import_history
from gpuledger.sources import trace_csv, trace_map

MAP = "columns: {id: id, start: s, end: e, devices: n}\nconstants: {class: L4}\nrows: {without_end: open}\n"


def bring(
    folder: Path, rows: str, *, source: str = "trace:a", more: str = "", as_of: int | None = None
) -> HistoryReport:
    found = trace_csv.parse(
        f"id,s,e,n\n{rows}\n", path="f.csv", trace_map=trace_map.parse(MAP + more, path="m"), source=source
    )
    return import_history(
        lambda: Ledger.open(folder / "l.db", mode="append"), begun_anew(found), path="f.csv",
        as_of_us=None if as_of is None else as_of * SECOND_US, now_us=1_700_000_000 * SECOND_US, writer="box.import",
    )  # fmt: skip


def held(folder: Path) -> dict[str, Fraction]:
    """Device-seconds of each workload, by the rules of one life."""
    with Ledger.open(folder / "l.db", mode="read") as ledger:
        events: dict[str, list[WorkloadEvent]] = {}
        for event in ledger.scan(WorkloadEvent):
            events.setdefault(event.workload, []).append(event)
        counts = {row.placement: row.count for row in ledger.scan(PlacementRow)}
    return {
        name: sum(
            (
                Fraction(counts[stay.placement] * (stay.until_us - stay.since_us), SECOND_US)
                for stay in intervals(told)
                if not isinstance(stay.until_us, Missing)
            ),
            Fraction(0),
        )
        for name, told in events.items()
    }


def test_ids_of_two_files_that_meet_do_not_cut_each_other(tmp_path: Path) -> None:
    """The first stays whole, the second is told with its size; what does not overlap is kept, and a prefix helps."""
    bring(tmp_path, "1,1600000000,1600007200,1\n2,1600000000,1600007200,1")
    other = "1,1600003600,1600010000,4\n2,1600007200,1600007300,3"
    second = bring(tmp_path, other, source="trace:b")
    [problem] = second.problems
    assert problem.code == "overlapping-known"
    assert "1 run of" in problem.message
    assert "known from trace:a; left out, 25,600 device-seconds" in problem.message
    assert held(tmp_path) == {"1": 7200, "2": 7200 + 300}
    again = bring(tmp_path, other, source="trace:b")
    assert (again.added, again.conflicts) == (0, 0)
    bring(tmp_path, other, source="trace:b", more="prefix: b/\n")
    assert held(tmp_path) == {"1": 7200, "2": 7500, "b/1": 25_600, "b/2": 300}


def test_a_row_whose_start_has_changed_is_told(tmp_path: Path) -> None:
    """The first stays, as of every conflict."""
    bring(tmp_path, "1,1600000000,1600007200,1")
    assert [problem.code for problem in bring(tmp_path, "1,1600000060,1600007000,1").problems] == ["overlapping-known"]
    assert held(tmp_path) == {"1": 7200}


def test_what_an_open_run_tells_later_is_the_same_run(tmp_path: Path) -> None:
    """It has its start, so its end is new and nothing overlaps; nor does what it was seen to hold when left out."""
    bring(tmp_path, "1,1600000000,,1", as_of=1_600_003_600)
    assert held(tmp_path) == {"1": 3600}
    later = bring(tmp_path, "1,1600000000,1600007200,1\n1,1600007200,,2", as_of=1_600_010_800)
    assert not later.problems
    assert held(tmp_path) == {"1": 7200 + 2 * 3600}
    left_out = bring(tmp_path, "1,1600000500,,1", as_of=1_600_020_000)
    assert [problem.code for problem in left_out.problems] == ["overlapping-known"]
    assert (left_out.added, left_out.running) == (0, 0)


def test_many_runs_of_one_id_are_each_compared_with_the_stays_around_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of 40 nightly runs every gap and every touch is right; the stays of a workload are made once, not once a run."""
    made: list[int] = []
    stays = overlapping_runs.holdings
    monkeypatch.setattr(overlapping_runs, "holdings", lambda events: made.append(1) or stays(events))
    first = 1_600_000_000
    bring(tmp_path, "\n".join(f"nightly,{first + 1000 * n},{first + 1000 * n + 400},1" for n in range(40)))
    assert not made
    told = []
    for n in range(40):  # in the gap, to one second before the next; or up to it, where its stop would end the next
        begin, end = first + 1000 * n + 400, first + 1000 * (n + 1)
        told.append(f"nightly,{begin},{end - 1 + n % 2},1")
    second = bring(tmp_path, "\n".join(told), source="trace:b")
    assert len(made) == 1
    [problem] = second.problems
    # the last is after all that is known
    assert problem.message.startswith("19 runs of a workload that ran already then")
    assert held(tmp_path) == {"nightly": 40 * 400 + 20 * 599 + 600}


def test_a_run_around_a_known_one_and_one_inside_it_overlap(tmp_path: Path) -> None:
    """From both sides; before the first and after the last nothing does."""
    bring(tmp_path, "a,1600001000,1600002000,1\nb,1600001000,1600002000,1\nc,1600001000,1600002000,1")
    rows = "a,1600000000,1600003000,1\nb,1600001400,1600001500,1\nc,1600000000,1600000999,1\nc,1600002000,1600002500,1"
    assert "2 runs of" in bring(tmp_path, rows, source="trace:b").problems[0].message
    assert held(tmp_path) == {"a": 1000, "b": 1000, "c": 2499}


def test_events_of_workloads_without_a_new_run_are_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that comes again, with one row more, asks for the history of that one alone."""
    bring(tmp_path, "a,1600000000,1600000100,1\nb,1600000000,1600000100,1")
    asked: list[str] = []
    ask = overlapping_runs.workloads.ask_events

    def noting(connection, since_us):
        asked.extend(since_us)
        return ask(connection, since_us)

    monkeypatch.setattr(overlapping_runs.workloads, "ask_events", noting)
    found = overlapping_runs.without_overlapping
    history = begun_anew(
        trace_csv.parse(
            "id,s,e,n\na,1600000000,1600000100,1\nb,1600000000,1600000100,1\nb,1600000050,1600000060,1\n",
            path="f.csv", trace_map=trace_map.parse(MAP, path="m"), source="trace:a",
        )
    )  # fmt: skip
    with Ledger.open(tmp_path / "l.db", mode="read") as ledger:
        found(ledger, history, path="f.csv")
    assert asked in ([], ["b"])


def test_a_run_that_ends_where_a_known_one_begins_does_not_end_it(tmp_path: Path) -> None:
    """Its stop, told later, would stand after the beginning that is known: the known run was lost without a word."""
    bring(tmp_path, "a,1600001000,1600002000,1")
    [problem] = bring(tmp_path, "a,1600000000,1600001000,1", source="trace:b").problems
    assert problem.code == "overlapping-known"
    assert "left out, 1,000 device-seconds" in problem.message
    assert held(tmp_path) == {"a": 1000}
