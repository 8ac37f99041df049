"""The text of ``sacct -P``: headers, columns, delimiters, rows once, and what cannot be read."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from gpuledger.errors import BadInput, Misconfigured
from gpuledger.model.missing import Missing
from gpuledger.model.moments import iso
from gpuledger.sources.slurm_rows import SlurmRows
from gpuledger.sources.slurm_sacct import HOPELESS, header_of, parse

CAPTURES = Path(__file__).resolve().parents[1] / "captures" / "slurm"
BERLIN = ZoneInfo("Europe/Berlin")
HEADER = "JobID|User|State|Start|End|ElapsedRaw|AllocTRES"
ROW = "1|alice|COMPLETED|2026-03-02T08:00:00|2026-03-02T09:00:00|3600|cpu=1,gres/gpu=2"
NAMES = ("State", "User", "JobID", "Start", "End", "ElapsedRaw", "AllocTRES", "JobName")


def read(text: str, columns: Sequence[str] = ()) -> SlurmRows:
    return parse(text, path="dump", zone=BERLIN, columns=columns)


def capture(name: str, columns: Sequence[str] = ()) -> SlurmRows:
    text = (CAPTURES / name).read_bytes().decode("utf-8", "surrogateescape")
    return parse(text, path=name, zone=BERLIN, columns=columns)


def test_a_dump_with_everything_in_it() -> None:
    """Comments with line breaks and delimiters, bytes that are no text, one broken line, one row twice."""
    found = capture("jobs.txt")
    assert [f"{row.job}.{row.step}" if row.step else row.job for row in found.rows] == [
        "101", "101.batch", "101.0", "102", "103_1", "103_[2-9%1]", "104+0", "104+1", "104+0.0", "105", "105", "107",
        "108", "109.extern", "109.0", "110",
    ]  # fmt: skip
    assert found.repeated == 1
    [problem] = found.problems
    assert (problem.code, problem.where) == ("broken-line", "jobs.txt:17")
    row = found.rows[3]
    assert (row.line, row.user, row.account, row.state, row.nodes) == (5, "bob", "nlp", "TIMEOUT", "gpu-[2-3]")
    assert (row.partition, row.qos, row.cluster) == ("gpu", "normal", "lab")
    assert not isinstance(row.start_us, Missing)
    assert iso(row.start_us) == "2026-03-02T08:00:00Z"
    assert found.rows[10].state == "CANCELLED"


def test_columns_given_for_a_dump_without_header() -> None:
    """In any order, with a job name last that holds all it should not."""
    found = capture("no_header.txt", NAMES)
    assert [(row.job, row.user, row.elapsed_s) for row in found.rows] == [
        ("201", "alice", 3600), ("202", "alice", 3600), ("203", "bob", 30),
    ]  # fmt: skip
    assert not found.problems


@pytest.mark.parametrize("delimiter", ["|", "|#", ";", "\t", "^", "~"])
def test_any_delimiter(delimiter: str) -> None:
    """The header tells it."""
    [row] = read(f"{HEADER}\n{ROW}\n".replace("|", delimiter)).rows
    assert (row.job, row.allocated) == ("1", "cpu=1,gres/gpu=2")


@pytest.mark.parametrize("delimiter", ["|", "|#", ";", "\t"])
def test_the_delimiter_of_a_dump_without_header(delimiter: str) -> None:
    """It cuts the first line into as many fields as there are columns; with -p into one more."""
    for end in ("", delimiter):
        [row] = read(f"\n{ROW}{'|' if end else ''}\n".replace("|", delimiter), HEADER.split("|")).rows
        assert row.allocated == "cpu=1,gres/gpu=2"


def test_lines_that_end_in_a_delimiter() -> None:
    """As ``sacct -p`` prints them."""
    [row] = read(f"{HEADER}|\n{ROW}|\n").rows
    assert row.elapsed_s == 3600


def test_windows_line_ends_and_a_byte_order_mark() -> None:
    """What a detour over another machine leaves."""
    [row] = read("\ufeff" + f"{HEADER}\n{ROW}\n".replace("\n", "\r\n")).rows
    assert row.allocated == "cpu=1,gres/gpu=2"


def test_a_greeting_before_the_header() -> None:
    """Shells talk."""
    assert len(read(f"Welcome to the lab\n\nmodule loaded\n{HEADER}\n{ROW}\n").rows) == 1


def test_dumps_appended_to_each_other() -> None:
    """Each header says which columns follow."""
    other = "User|State|JobIDRaw|AllocTRES|Start|End\nbob|FAILED|2|gres/gpu=1|2026-03-02T08:00:00|2026-03-02T08:00:01"
    found = read(f"{HEADER}\n{ROW}\n{other}\n{HEADER}\n{ROW}\n")
    assert [(row.job, row.user) for row in found.rows] == [("1", "alice"), ("2", "bob")]
    assert found.repeated == 1


def test_rows_that_differ_in_any_field_are_two() -> None:
    """Only identical ones count once; bytes that are no text are told apart as well."""
    one, two = (ROW.replace("alice", name) for name in ("\udcff", "\udcfe"))
    found = read(f"{HEADER}\n{one}\n{two}\n{one}")
    assert len(found.rows) == 2
    assert found.repeated == 1
    assert {row.user for row in found.rows} == {"\ufffd"}


def test_local_times_need_a_zone() -> None:
    """None is assumed."""
    with pytest.raises(Misconfigured) as error:
        parse(f"{HEADER}\n{ROW}\n", path="dump", zone=None)
    assert error.value.code == "zone-needed"
    assert "dump" in error.value.message


@pytest.mark.parametrize(
    ("text", "columns", "code"),
    [
        ("", (), "no-header"), (ROW, (), "no-header"), ("{not json", (), "no-header"),
        ("JobID|State|AllocTRES\n", (), "columns-missing"),
        ("JobID|State|Start|AllocTRES\n", (), "columns-missing"),
        (ROW, ("State", "Start", "End", "AllocTRES"), "columns-missing"),
        (ROW, (*HEADER.split("|"), "Cluster"), "columns-differ"),
        (f"{HEADER}\n" + "noise\n" * (HOPELESS + 5), (), "not-sacct"),
        (f"{HEADER}\nnoise\n", (), "not-sacct"),
    ],
)  # fmt: skip
def test_what_is_no_accounting_is_refused(text: str, columns: Sequence[str], code: str) -> None:
    """With the command that gives what is needed."""
    with pytest.raises(BadInput) as error:
        read(text, columns)
    assert error.value.code == code
    assert "AllocTRES" in error.value.hint


def test_a_header_alone_is_an_answer() -> None:
    """Nothing ran."""
    assert read(f"{HEADER}\n").rows == ()


def test_fields_that_cannot_be_read_break_their_line_only() -> None:
    """Each with its line number."""
    bad = ROW.replace("3600", "soon")
    worse = ROW.replace("08:00:00", "28:00:00")
    found = read(f"{HEADER}\n{bad}\n{worse}\n{ROW}\n")
    assert [row.line for row in found.rows] == [4]
    assert [problem.where for problem in found.problems] == ["dump:2", "dump:3"]


def test_the_night_of_the_change() -> None:
    """Elapsed tells which hour is meant; where it cannot, the row says so; a time that never was is a problem."""
    found = capture("autumn.txt")
    lasted = {row.job: row.lasted_s for row in found.rows}
    assert lasted == {"301": 3600, "302": 7200, "303": 7200, "304": 1800, "305": 1200, "306": 3600}
    assert {row.job: row.doubt for row in found.rows if row.doubt} == {"304": "place"}
    never = ROW.replace("2026-03-02T08:00:00", "2026-03-29T02:30:00").replace("2026-03-02", "2026-03-29")
    assert [problem.code for problem in read(f"{HEADER}\n{never}\n").problems] == ["time-not-in-zone"]


def test_headers() -> None:
    """A line of names with JobID among them, and nothing else."""
    assert header_of("JobID|State|Start") == (("JobID", "State", "Start"), "|")
    assert header_of("account|#jobidraw|#") == (("account", "jobidraw", ""), "|#")
    for line in ("1|COMPLETED|x", "JobID", "User|State|Start", "JobID|State of it|Start", "JobID State Start x|", ""):
        assert header_of(line) is None


def test_what_sacct_complains_of_is_told() -> None:
    """It went to the same file, before the header or in the middle: the list may not be whole."""
    error = "sacct: error: Sending PersistInit msg: Connection refused"
    found = read(f"{error}\n{HEADER}\n{ROW}\nslurmdbd: error: lost connection\n{error}\n")
    assert [(one.code, one.where) for one in found.problems if one.code == "sacct-complains"] == [
        ("sacct-complains", "dump:1"), ("sacct-complains", "dump:5"),
    ]  # fmt: skip
    assert len(found.rows) == 1


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("JobID    State \n-------- ------\n19.0  COMPLETED \n", "add -P"),
        ("jobs:\n- account: a\n  job_id: 5\n", "--json"),
        ("sacct: error: Problem talking to the database: Connection refused\n", "sacct itself failed"),
        (f"{HEADER}\n1|alice|COMPLETED|Today 10:00|Today 11:00|3600|gres/gpu=1\n", "SLURM_TIME_FORMAT"),
    ],
)
def test_what_else_sacct_prints_is_refused_with_what_to_type(text: str, hint: str) -> None:
    """Its table, its YAML, its errors, times for people."""
    with pytest.raises(BadInput) as refused:
        read(text)
    assert hint in (refused.value.hint or "")


def test_a_sheet_saved_with_commas() -> None:
    """Quotes keep a TRES whole; without them a row is broken, and told why."""
    header, row = HEADER.replace("|", ","), ROW.rpartition("|")[0].replace("|", ",")
    found = read(f'{header}\n{row},"cpu=1,gres/gpu=2"\n{row},cpu=1,gres/gpu=2\n{row},gres/gpu=1\n')
    assert [each.allocated for each in found.rows] == ["cpu=1,gres/gpu=2", "gres/gpu=1"]
    [problem] = found.problems
    assert (problem.where, "a comma stands inside TRES" in problem.message) == ("dump:3", True)


def test_files_put_together_with_their_marks_of_byte_order() -> None:
    """The second header counts for what follows it, whatever stands before its first letter."""
    other = "JobID|User|State|Start|End|AllocTRES|ElapsedRaw"
    second = "2|bob|COMPLETED|2026-03-02T08:00:00|2026-03-02T09:00:00|gres/gpu=3|3600"
    found = read(f"\ufeff{HEADER}\r\n{ROW}\r\n\ufeff{other}\r\n{second}\r\n")
    assert [(row.job, row.elapsed_s, row.allocated) for row in found.rows] == [
        ("1", 3600, "cpu=1,gres/gpu=2"), ("2", 3600, "gres/gpu=3"),
    ]  # fmt: skip
    assert not found.problems


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_a_sheet_with_everything_in_quotes(delimiter: str) -> None:
    """As R writes it, row numbers without a name before the first column among it."""

    def line(number: str, text: str) -> str:
        return delimiter.join(f'"{cell}"' for cell in (number, *text.split("|")))

    [row] = read(f"{line('', HEADER)}\n{line('1', ROW)}\n").rows
    assert (row.job, row.user, row.elapsed_s, row.allocated) == ("1", "alice", 3600, "cpu=1,gres/gpu=2")


def test_columns_may_be_given_as_they_were_asked_for() -> None:
    """With the widths that --format takes."""
    [row] = read(f"{ROW}\n", ["JobID%20", "User", "State%30", "Start", "End", "ElapsedRaw", "AllocTRES%-80"]).rows
    assert (row.job, row.allocated) == ("1", "cpu=1,gres/gpu=2")


def test_a_last_row_without_its_end_of_line_may_be_cut() -> None:
    """One GPU may have been sixteen. Where the last field is no amount, or its delimiter follows, nothing is open."""
    [problem] = read(f"{HEADER}\n{ROW}").problems
    assert (problem.code, problem.where) == ("last-line-open", "dump:2")
    assert "AllocTRES of job 1" in problem.message
    [bare] = read(ROW, HEADER.split("|")).problems
    assert (bare.code, bare.where) == ("last-line-open", "dump:1")
    for text in (f"{HEADER}\n{ROW}\n", f"{HEADER}|\n{ROW}|", f"{HEADER}|JobName\n{ROW}|train", f"{HEADER}\n{ROW}\n\n"):
        assert not read(text).problems
    assert not read(f"{HEADER}\n{ROW}\n{ROW.replace('1|alice', '1.0|', 1)}").problems


def test_times_of_other_forms_say_what_to_set() -> None:
    """A format that begins as a time does, too."""
    for start in ("11/20/26 10:00:00", "2026-03-02T08:00:00+1"):
        with pytest.raises(BadInput) as error:
            read(f"{HEADER}\n{ROW.replace('2026-03-02T08:00:00', start)}\n")
        assert "SLURM_TIME_FORMAT" in error.value.hint


def test_a_name_with_a_delimiter_costs_no_more_than_what_it_hides() -> None:
    """A duration is none of the words of a name; a machine with two readings is unknown, and the row stays."""
    header = "JobID|State|Elapsed|JobName|Start|End|AllocTRES|Comment|NodeList|SubmitLine"
    row = "1|COMPLETED|01:00:00|a|b|2026-03-02T08:00:00|2026-03-02T09:00:00|gres/gpu=2||n1|sbatch|tee"
    [one] = read(f"{header}\n{row}\n").rows
    assert (one.elapsed_s, one.allocated, one.nodes) == (3600, "gres/gpu=2", "")
    words = "JobID|State|Comment|Elapsed|JobName|Start|End|AllocTRES"
    [two] = read(f"{words}\n1|COMPLETED||01:00:00|a|b|2026-03-02T08:00:00|2026-03-02T09:00:00|gres/gpu=2\n").rows
    assert two.elapsed_s == 3600
