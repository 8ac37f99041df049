"""The JSON of ``sacct --json`` of several versions of Slurm."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gpuledger.errors import BadInput
from gpuledger.model.missing import Missing
from gpuledger.sources.slurm_json import figure, parse
from gpuledger.sources.slurm_rows import SlurmRows

CAPTURES = Path(__file__).resolve().parents[1] / "captures" / "slurm"
NOT_SET = {"set": False, "infinite": False, "number": 0}


def capture(name: str) -> SlurmRows:
    return parse((CAPTURES / name).read_text(encoding="utf-8"), path=name)


def job(**words: Any) -> dict[str, Any]:
    told: dict[str, Any] = {
        "job_id": 7, "user": "alice", "account": "vision", "cluster": "lab", "state": {"current": ["COMPLETED"]},
        "time": {"start": 1000, "end": 2000, "elapsed": 1000, "submission": 900, "eligible": 950, "suspended": 0},
        "tres": {"allocated": [{"type": "gres", "name": "gpu", "id": 1001, "count": 1}]},
    }  # fmt: skip
    return told | words


def rows(*jobs: object, **around: object) -> SlurmRows:
    return parse(json.dumps({"meta": {}, "jobs": jobs, **around}), path="dump")


def test_plain_figures_of_21_08() -> None:
    """Seconds since 1970, a state as a word, steps inside the job, the second of two identical jobs left out."""
    found = capture("slurm_21_08.json")
    assert [(row.job, row.state) for row in found.rows] == [
        ("401", "COMPLETED"), ("403_1", "COMPLETED"), ("403_[2-9]", "PENDING"), ("406", "RUNNING"),
    ]  # fmt: skip
    first = found.rows[0]
    assert first.allocated == "cpu=8,node=1,gres/gpu=2,gres/gpu:a100=2"
    assert (first.start_us, first.end_us, first.elapsed_s) == (1_772_435_400_000_000, 1_772_439_000_000_000, 3600)
    assert (first.cluster, first.user, first.account, first.partition, first.qos, first.nodes) == (
        "lab", "alice", "vision", "gpu", "normal", "gpu-1",
    )  # fmt: skip
    assert found.repeated == 1
    assert not found.problems
    assert isinstance(found.rows[2].start_us, Missing)
    assert found.rows[2].nodes == ""


def test_wrapped_figures_of_24_05() -> None:
    """A state with flags beside it, figures that are not set, and an error that sacct met."""
    found = capture("slurm_24_05.json")
    assert [(row.job, row.state, row.user) for row in found.rows] == [
        ("501", "COMPLETED", "alice"), ("502+0", "FAILED", "alice"), ("503", "RUNNING", "alice"),
        ("504", "PENDING", "alice"),
    ]  # fmt: skip
    assert isinstance(found.rows[2].end_us, Missing)
    assert isinstance(found.rows[3].eligible_us, Missing)
    assert [problem.code for problem in found.problems] == ["sacct-complains"]
    assert "did not answer" in found.problems[0].message


@pytest.mark.parametrize(
    "told",
    [None, NOT_SET, {"set": True, "infinite": True, "number": 5}, 0xFFFF_FFFE, 0xFFFF_FFFF_FFFF_FFFE, -1, {},
     {"set": True, "infinite": False, "number": None}],
)  # fmt: skip
def test_what_is_not_set_is_missing(told: object) -> None:
    """Null, not set, infinite and Slurm's NO_VAL are never a figure."""
    assert isinstance(figure(told), Missing)


@pytest.mark.parametrize("told", [5, {"set": True, "infinite": False, "number": 5}, {"number": 5}])
def test_figures(told: object) -> None:
    """Plain, wrapped, and wrapped without ``set``."""
    assert figure(told) == 5


@pytest.mark.parametrize("told", ["5", True, 5.5, [5]])
def test_other_figures_are_refused(told: object) -> None:
    """The job is left out, with its line."""
    with pytest.raises(ValueError, match="whole number"):
        figure(told)


def test_a_broken_job_is_said_and_the_others_are_kept() -> None:
    """No id, no state, no job at all."""
    found = rows(
        job(),
        job(time={"start": 1_772_435_400_000}),
        job(job_id=None),
        job(job_id=8, state={}),
        5,
        job(job_id=9, tres={"allocated": [{"count": 1}]}),
    )
    assert [row.job for row in found.rows] == ["7"]
    assert [problem.code for problem in found.problems] == ["broken-line"] * 5


def test_a_dump_that_ends_in_the_middle_keeps_what_came_before() -> None:
    """And says in which line it ends."""
    text = json.dumps({"jobs": [job(job_id=number) for number in range(1, 4)]}, indent=1)
    found = parse(text[: text.rindex('"user"')], path="dump")
    assert [row.job for row in found.rows] == ["1", "2"]
    [problem] = found.problems
    assert problem.code == "broken-line"
    assert problem.where == f"dump:{text[: text.rindex('{', 0, text.rindex('job_id'))].count(chr(10)) + 1}"


def test_broken_surroundings_do_not_matter() -> None:
    """The jobs are whole; what stands after them is not."""
    text = json.dumps({"jobs": [job()]})
    found = parse(text[:-1], path="dump")
    assert [row.job for row in found.rows] == ["7"]
    assert [problem.code for problem in found.problems] == ["broken-line"]


def test_dumps_put_together_are_read_one_after_the_other() -> None:
    """The jobs of the second were lost; what both have counts once, and the lines go on."""
    first, second = ({"jobs": [job(), job(job_id=number)], "meta": {}} for number in (8, 9))
    found = parse(f"{json.dumps(first)}\n\ufeff{json.dumps(second)}\n", path="dump")
    assert [(row.job, row.line) for row in found.rows] == [("7", 1), ("8", 1), ("9", 2)]
    assert found.repeated == 1
    assert not found.problems


@pytest.mark.parametrize(
    "text",
    [json.dumps([job(), job(job_id=8)]), "\n".join(json.dumps(job(job_id=number)) for number in (7, 8)),
     json.dumps([job()]) + json.dumps(job(job_id=8)),
     json.dumps({"meta": {"jobs": []}, "jobs": [job(), job(job_id=8)]})],
)  # fmt: skip
def test_jobs_alone_are_jobs(text: str) -> None:
    """A list without what stands around it, as jq prints it, or a job a line; a list of jobs elsewhere is none."""
    found = parse(text, path="dump")
    assert [row.job for row in found.rows] == ["7", "8"]
    assert not found.problems


@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize("order", [("meta", "jobs", "errors"), ("plugin", "jobs", "errors")])
def test_dumps_in_a_list_are_read_as_dumps(order: tuple[str, ...], indent: int | None) -> None:
    """As `jq -s . a.json b.json` puts them; what both have counts once, and what sacct met is told."""
    dumps = []
    for number in (8, 9):
        told = {"meta": {}, "plugin": {}, "jobs": [job(), job(job_id=number)], "errors": [f"no route {number}"]}
        dumps.append({name: told[name] for name in order})
    found = parse(json.dumps([*dumps, job(job_id=10)], indent=indent), path="dump")
    assert [row.job for row in found.rows] == ["7", "8", "9", "10"]
    assert found.repeated == 1
    assert [problem.message.rpartition(": ")[2] for problem in found.problems] == ["no route 8", "no route 9"]


def test_dumps_in_a_list_that_ends_in_the_middle_keep_what_came_before() -> None:
    """As one dump does; and what is neither a dump nor a job is told."""
    text = json.dumps([{"meta": {}, "jobs": [job(), job(job_id=8)]}])
    assert [row.job for row in parse(text[:-20], path="dump").rows] == ["7"]
    odd = parse(json.dumps([job(), {"meta": {}, "jobs": None}]), path="dump")
    assert [problem.message for problem in odd.problems] == ["a job without job_id; it is left out"]


def test_warnings_are_told() -> None:
    """As errors are; either may stand before the jobs."""
    text = json.dumps({"errors": ["no route"], "jobs": [job()], "warnings": [{"description": "some were skipped"}]})
    found = parse(text, path="dump")
    assert [(problem.code, problem.message) for problem in found.problems] == [
        ("sacct-complains", "sacct met an error, so its list may not be whole: no route"),
        ("sacct-complains", "sacct warns: some were skipped"),
    ]


def test_the_queue_is_no_accounting() -> None:
    """squeue --json looks alike, and forgets what has ended."""
    with pytest.raises(BadInput, match="as squeue and scontrol print it"):
        rows({"job_id": 7, "job_state": ["RUNNING"]})


def test_what_was_held_is_untold_where_no_list_tells_it() -> None:
    """Empty there is not nothing: each allocation has its CPUs."""
    found = rows(job(), job(job_id=8, tres={"allocated": []}), job(job_id=9, tres=None))
    assert [row.is_untold for row in found.rows] == [False, True, True]


@pytest.mark.parametrize(
    "text", ["{}", '{"jobs": 5}', '{"nodes": []}', '{"jobs": [', '{"jobs": [{"a": ' + "[" * 100_000]
)
def test_other_json_is_refused(text: str) -> None:
    """With the commands that give what is understood."""
    with pytest.raises(BadInput) as error:
        parse(text, path="dump")
    assert error.value.code == "not-sacct"
    assert "sacct" in error.value.hint


def test_no_jobs_are_no_rows() -> None:
    """An empty list is an answer."""
    assert rows().rows == ()


def test_names_come_from_the_association_where_the_job_has_none() -> None:
    """A user that is unknown to the machine is empty there in some versions."""
    [row] = rows(
        job(user="", account=None, cluster=None, association={"user": "u", "account": "a", "cluster": "c"})
    ).rows
    assert (row.user, row.account, row.cluster) == ("u", "a", "c")


def test_bytes_that_are_no_text_are_shown_as_such() -> None:
    """They come as surrogates, and leave as what a ledger can hold."""
    text = json.dumps({"jobs": [job(user="X")]}).encode().replace(b"X", b"\xff").decode("utf-8", "surrogateescape")
    assert parse(text, path="dump").rows[0].user == "\ufffd"
