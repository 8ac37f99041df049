"""Files that say the same of the same runs under another name: refused, for all of it would count twice."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpuledger.errors import Misconfigured
from gpuledger.ledger.store import Ledger
from gpuledger.model.lifecycle import State, Transition
from gpuledger.model.moments import DAY_US, HOUR_US, parse_moment
from gpuledger.model.workload_rows import WorkloadEvent
from gpuledger.operations import known_otherwise
from gpuledger.operations.import_history import import_history
from gpuledger.operations.import_slurm import read_slurm
from gpuledger.operations.import_trace import read_trace

EVERY_STORE = True

NOW_US = parse_moment("2026-11-20", now_us=0)
HEADER = "JobID|User|State|Start|End|ElapsedRaw|AllocTRES\n"
ROWS = (
    "7|ann|COMPLETED|2026-11-01T10:00:00|2026-11-01T14:00:00|14400|gres/gpu:a100=2\n"
    "8_1|bob|RUNNING|2026-11-01T10:00:00|Unknown|1800|gres/gpu=1\n"
    "9|bob|COMPLETED|2026-11-01T10:00:00|2026-11-01T10:20:00|1200|gres/gpu:a100=1,gres/gpu:h100=1\n"
)


class Desk:
    """One ledger, and dumps that are brought to it."""

    def __init__(self, place: Path | str, folder: Path) -> None:
        self.place = place
        self.path = folder / "sacct.txt"

    def bring(self, rows: str = ROWS, *, cluster: str = "", zone: str = "UTC") -> int:
        """Import, and how much was new."""
        self.path.write_text(HEADER + rows, encoding="utf-8")
        history = read_slurm(self.path, zone=zone, cluster=cluster).history
        return import_history(
            lambda: Ledger.open(self.place, mode="append"), history, path="sacct.txt", as_of_us=None, now_us=NOW_US,
            writer="box.import",
        ).added  # fmt: skip

    def refused(self, *words: str, **more: str) -> Misconfigured:
        """Import, refused, and nothing of it written."""
        before = self.events()
        with pytest.raises(Misconfigured) as refused:
            self.bring(*words, **more)
        assert self.events() == before
        return refused.value

    def events(self) -> int:
        """How many the ledger has."""
        with Ledger.open(self.place, mode="read") as ledger:
            return ledger.count(WorkloadEvent)


@pytest.fixture
def desk(new_place, tmp_path) -> Desk:
    """Its ledger is empty."""
    return Desk(new_place("jobs.db"), tmp_path)


@pytest.mark.parametrize(
    ("first", "then", "hint"),
    [("", "hpc", "leave --cluster out"), ("hpc", "", "--cluster hpc, as"), ("hpc", "lab", "--cluster hpc as")],
)
def test_the_same_dump_of_another_cluster_is_refused(desk, first: str, then: str, hint: str) -> None:
    """With what to type; as the first time it adds nothing, and jobs of its own the other cluster may have."""
    assert desk.bring(cluster=first)
    refused = desk.refused(cluster=then)
    assert (refused.code, hint in (refused.hint or "")) == ("cluster-differs", True)
    assert "4 of 4 runs" in refused.message
    assert desk.bring(cluster=first) == 0
    others = ROWS.replace("7|ann", "17|ann").replace("8_1|", "18_1|").replace("9|bob", "19|bob")
    assert desk.bring(others, cluster=then)


def test_a_later_dump_of_another_cluster_is_refused_by_the_part_that_is_known(desk) -> None:
    """What ran on in the first has ended in the second, and most of it is new."""
    desk.bring()
    later = ROWS.replace(
        "RUNNING|2026-11-01T10:00:00|Unknown|1800", "COMPLETED|2026-11-01T10:00:00|2026-11-01T12:00:00|7200"
    )
    more = "".join(
        f"{job}|eve|COMPLETED|2026-11-02T10:00:00|2026-11-02T14:00:00|14400|gres/gpu=1\n" for job in range(20, 29)
    )
    assert "4 of 13 runs" in desk.refused(later + more, cluster="hpc").message
    assert desk.bring(later + more)


def test_the_same_dump_of_another_zone_is_refused(desk) -> None:
    """A job cannot run twice at once, as long to the second, a whole offset apart."""
    desk.bring(cluster="hpc")
    refused = desk.refused(cluster="hpc", zone="Europe/Berlin")
    assert refused.code == "times-differ"
    assert "3 of 3 runs" in refused.message
    assert "1 h later: slurm:hpc/7 starts 2026-11-01T09:00:00Z here" in refused.message


@pytest.mark.parametrize(
    "row",
    [
        "7|ann|COMPLETED|2026-11-01T14:00:30|2026-11-01T18:00:30|14400|gres/gpu:a100=2\n",
        "7|ann|COMPLETED|2026-11-01T15:00:00|2026-11-01T19:00:00|14400|gres/gpu:a100=2\n",
        "7|ann|COMPLETED|2026-11-01T13:00:00|2026-11-01T16:00:00|10800|gres/gpu:a100=2\n",
        "7|ann|COMPLETED|2026-11-01T13:00:07|2026-11-01T17:00:07|14400|gres/gpu:a100=2\n",
        "77|ann|COMPLETED|2026-11-01T11:00:00|2026-11-01T15:00:00|14400|gres/gpu:a100=2\n",
    ],
)
def test_a_job_that_ran_again_is_no_other_zone(desk, row: str) -> None:
    """Requeued, by the clock each hour, cut short, left open by a crash: what accounting really has of one job."""
    desk.bring()
    assert desk.bring(row)


def test_the_same_job_of_two_clusters_is_two_jobs(desk) -> None:
    """At the same second, with other devices or another end."""
    desk.bring(cluster="hpc")
    other = ROWS.splitlines(keepends=True)[0]
    assert desk.bring(other.replace("=2", "=4"), cluster="lab")
    assert desk.bring(other.replace("14:00:00|14400", "14:00:01|14401"), cluster="lab2")


BOOK = "columns: {id: id, start: start, end: end}\nconstants: {class: A100, devices: 1}\n"


def bring_trace(
    desk: Desk, folder: Path, lines: list[str], *, origin: str = "2026-01-01", zone: str | None = None
) -> int:
    """Import a trace, and how much was new."""
    trace, book = folder / "trace.csv", folder / "book.yaml"
    trace.write_text("\n".join(["id,start,end", *lines, ""]), encoding="utf-8")
    book.write_text(BOOK + ("units: {time: iso}\n" if zone else ""), encoding="utf-8")
    history = read_trace(trace, preset=None, map_file=book, origin=None if zone else origin, zone=zone)
    return import_history(
        lambda: Ledger.open(desk.place, mode="append"), history, path="trace.csv", as_of_us=None, now_us=NOW_US,
        writer="box.import",
    ).added  # fmt: skip


def test_a_trace_of_another_zone_is_refused(desk, tmp_path) -> None:
    """Its workloads would run twice at once, as long to the second."""
    lines = ["a,2026-03-01 10:00,2026-03-01 14:00", "b,2026-03-01 10:00,2026-03-01 10:10"]
    assert bring_trace(desk, tmp_path, lines, zone="UTC") == 6
    with pytest.raises(Misconfigured, match="2 of 2 runs") as refused:
        bring_trace(desk, tmp_path, lines, zone="Europe/Berlin")
    assert refused.value.code == "times-differ"
    assert bring_trace(desk, tmp_path, lines, zone="UTC") == 0


def test_a_row_that_somebody_moved_is_no_other_zone(desk, tmp_path) -> None:
    """Most of the file is known as it is: to a later time it is a run more, and where it overlaps itself none."""
    lines = [f"{name},2026-03-0{day} 10:00,2026-03-0{day} 14:00" for day in (1, 2) for name in ("ann", "bob")]
    bring_trace(desk, tmp_path, lines, zone="UTC")
    for moved, added in ((("11:", "15:"), 0), (("14:", "18:"), 3)):
        start, end = moved
        row = lines[0].replace("14:", end).replace("10:", start)
        assert bring_trace(desk, tmp_path, [row, *lines[1:]], zone="UTC") == added


def test_a_trace_that_counts_from_another_origin_is_refused(desk, tmp_path) -> None:
    """However far apart the two are; the next part of it, and a few that run as long each month, are not."""
    lines = [f"w{number},{number * 1000},{number * 1000 + 100 + number}" for number in range(20)]
    bring_trace(desk, tmp_path, lines)
    with pytest.raises(Misconfigured, match="20 of 20 runs"):
        bring_trace(desk, tmp_path, lines, origin="2026-02-01")
    later = [f"w{number},{number * 1000 + 900_000 + number % 7},{number * 1000 + 900_100}" for number in range(20)]
    assert bring_trace(desk, tmp_path, lines + later) == 3 * 20
    assert bring_trace(desk, tmp_path, lines[:9], origin="2026-03-01")


def test_nights_of_one_length_are_not_compared_each_with_each() -> None:
    """All are a day apart, so each fits to each by some clock; only what runs at once with itself tells of one."""

    def nights(first: int, shift_us: int) -> list[tuple[known_otherwise._Run, int]]:
        found = []
        for night in range(first, first + 50):
            at_us = night * DAY_US + shift_us
            began = Transition(workload="nightly", event_id=f"e{night}", state=State.RUNNING, at_us=at_us, source="t")
            found.append((known_otherwise._Run(began=began, end_us=at_us + 6 * HOUR_US), 6 * HOUR_US))
        return found

    known = {("nightly", 6 * HOUR_US): [night * DAY_US for night in range(1000, 1050)]}
    assert known_otherwise._possible_shifts(nights(1050, 0), known) == []
    assert known_otherwise._possible_shifts(nights(1000, HOUR_US), known) == [HOUR_US]
