"""The splitter of rows: fields with line breaks and delimiters, broken rows, and never a wrong field."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given, settings
from hypothesis import strategies as st

from gpuledger.sources.slurm_fields import Broken, Record, Splitter, align, shape_of

COLUMNS = ("JobID", "Comment", "State", "Start", "AllocTRES", "JobName")
READ = (0, 2, 3, 4)
START = "2026-03-02T08:00:00"
TRES = "cpu=1,gres/gpu=2"


def split(text: str, columns: Sequence[str] = COLUMNS, read: Sequence[int] = READ) -> list[Record | Broken]:
    splitter = Splitter(columns, "|", read)
    found = [one for number, line in enumerate(text.split("\n"), start=1) for one in splitter.feed(number, line)]
    return [*found, *splitter.end()]


def jobs(found: Sequence[Record | Broken]) -> list[str]:
    return [one.cells[0] if isinstance(one, Record) else f"line {one.line}: {one.message}" for one in found]


def row(job: str, comment: str = "", name: str = "train") -> str:
    return f"{job}|{comment}|COMPLETED|{START}|{TRES}|{name}"


def test_rows_on_one_line() -> None:
    """The ordinary case, with an empty line at the end."""
    found = split(f"{row('1')}\n{row('2.batch')}\n")
    assert jobs(found) == ["1", "2.batch"]


def test_a_line_break_inside_a_field() -> None:
    """Lines are put together until they are a row."""
    found = split(f"{row('1', 'one' + chr(10) + 'two' + chr(10) * 2 + 'three')}\n{row('2')}")
    assert jobs(found) == ["1", "2"]
    assert [one.line for one in found] == [1, 5]


def test_a_delimiter_inside_a_field() -> None:
    """What the other fields look like tells where it ends."""
    [found] = split(row("1", "a | b || c"))
    assert isinstance(found, Record)
    assert [found.cells[place] for place in READ] == ["1", "COMPLETED", START, TRES]
    assert found.cells[1] == "a | b || c"


def test_both_at_once_in_two_fields() -> None:
    """A script in one field, a name in pieces in another."""
    found = split(f"{row('1', 'a | b' + chr(10) + '| c', 'x|y' + chr(10) + 'z')}\n{row('2')}")
    assert jobs(found) == ["1", "2"]


def test_the_rest_of_a_last_field_belongs_to_the_row() -> None:
    """Job names stand last in many dumps, and may go on in the next line."""
    found = split(f"{row('1', name='a')}\nb | c\n\nd\n{row('2')}")
    assert jobs(found) == ["1", "2"]
    assert isinstance(found[0], Record)
    assert found[0].text.endswith("a\nb | c\n\nd")


def test_a_broken_row_is_said_and_the_others_are_kept() -> None:
    """Cut in the middle, at the start, and at the end of the file."""
    found = split(f"{row('1')}\n2|x|COMPL\n{row('3')}\n4|x|COMPLETED|{START}")
    assert [one.cells[0] for one in found if isinstance(one, Record)] == ["1", "3"]
    broken = [(one.line, one.message.partition(";")[0]) for one in found if isinstance(one, Broken)]
    assert broken == [
        (2, "6 fields were expected, and there are 3"),
        (4, "6 fields were expected, and there are 4"),
    ]


def test_a_broken_row_never_takes_the_next_for_its_text() -> None:
    """The next has a job, a state and times of its own, so it is one, also where its own text goes on."""
    found = split(f"2|x|COMPL\n{row('3', 'a' + chr(10) + 'b')}\n{row('4')}")
    assert [one.cells[0] for one in found if isinstance(one, Record)] == ["3", "4"]
    assert [one.line for one in found if isinstance(one, Broken)] == [1]


def test_noise_takes_no_time() -> None:
    """Lines that could begin and end a row, and are none."""
    found = split("\n".join([row("1"), *["5|a|b|c"] * 5_000, row("2")]))
    assert [one.cells[0] for one in found if isinstance(one, Record)] == ["1", "2"]
    assert sum(isinstance(one, Broken) for one in found) == 5_000


def test_a_row_with_a_wrong_field_says_which() -> None:
    """Its fields are as many as they should be."""
    found = split(f"{row('1')}\n2|x|of course|{START}|{TRES}|n\n{row('3')}")
    assert sorted(jobs(found)) == ["1", "3", "line 2: 'of course' is no State"]


def test_two_readings_of_one_row_are_none() -> None:
    """A comment that looks like the fields after it: which is which cannot be known."""
    forged = f"1|x|COMPLETED|{START}|gres/gpu=1|COMPLETED|{START}|gres/gpu=8|n"
    assert jobs(split(forged)) == [
        "line 1: 6 fields were expected, and there are 9; which of them belong to one text cannot be told for sure"
    ]
    same = f"1|x|COMPLETED|{START}|{TRES}|COMPLETED|{START}|{TRES}|n"
    assert jobs(split(same)) == ["1"]


def test_columns_without_free_text_never_span_lines() -> None:
    """Nothing in them can hold a line break, so a short line is broken by itself."""
    found = split(f"1|COMPLETED|{START}\n2|COMPL\nED|{START}", ("JobID", "State", "Start"), (0, 1, 2))
    assert [type(one) for one in found].count(Broken) == 2
    assert "1" in jobs(found)


def test_shapes_of_columns() -> None:
    """Free text has none; a column nobody knows may hold anything."""
    assert shape_of("JobName") is None
    assert shape_of("SubmitLine") is None
    assert shape_of("Something") is None
    for column, good, bad in (
        ("JobID", ("1", "1_2", "1+0", "1_[3-4%2]", "1.batch", "1_2.0"), ("x", "", "1 2", "1|")),
        ("state", ("RUNNING", "CANCELLED by 1000", "OUT_OF_MEMORY"), ("", "running", "a b")),
        ("End", ("Unknown", "", "2026-03-02T08:00:00", "1772438400"), ("tomorrow",)),
        ("AllocTRES", ("", "cpu=1,mem=8G"), ("cpu", "cpu=1 , mem")),
        ("Account", ("", "a b"), ("a\nb",)),
    ):
        shape = shape_of(column)
        assert shape is not None
        assert all(shape(text) for text in good)
        assert not any(shape(text) for text in bad)


def test_align_wants_every_column() -> None:
    """Too few good cells give nothing."""
    shapes = [shape_of(column) for column in COLUMNS]
    assert align(["1", "a", "b", "no state", START, TRES, "n"], shapes, READ) is None
    assert align(row("1", "a|b").split("|"), shapes, READ) is not None


def test_a_text_that_looks_like_a_row_is_said() -> None:
    """A line cut short and a text that goes on look the same; what is left over is broken, and says so."""
    found = split(f"{row('1')}\n2|a\n{row('3')}")
    assert sorted(jobs(found))[:2] == ["1", "3"]
    [broken] = [one for one in found if isinstance(one, Broken)]
    assert broken.line == 2
    assert "if a text in it goes on in the next line, that line is no row of its own" in broken.message


def test_a_row_that_only_looks_whole_takes_its_rest() -> None:
    """Its text breaks after as many delimiters as the row should have."""
    columns = ("JobID", "State", "SubmitLine", "AllocTRES", "NodeList")
    found = split("1|FAILED|a || b\n|gres/gpu=1|n1\n2|FAILED||gres/gpu=2|n2", columns, (0, 1, 3, 4))
    assert [one.cells[3] for one in found if isinstance(one, Record)] == ["gres/gpu=1", "gres/gpu=2"]
    assert not any(isinstance(one, Broken) for one in found)


def test_the_rest_of_a_row_swallows_no_other_rows_begin() -> None:
    """The second row's text makes its last line look like another run of the first: what is left of it is broken."""
    found = split(f"1||RUNNING|{START}|gres/gpu=1|\n1\n2|\n1||RUNNING|{START}|gres/gpu=2|")
    assert [one.line for one in found if isinstance(one, Broken)] == [2, 3]


def rows_of(text: st.SearchStrategy[str]) -> st.SearchStrategy[list[tuple[int, str, str, str]]]:
    return st.lists(st.tuples(st.integers(1, 999), text, text, st.sampled_from(["RUNNING", "FAILED"])), max_size=6)


@given(rows_of(st.text(st.sampled_from("ab|\n 1=,:-"), max_size=12)))
@settings(max_examples=200, deadline=None)
def test_no_field_is_wrong_in_silence(rows: list[tuple[int, str, str, str]]) -> None:
    """Whatever stands in free text, each row comes out as it was, unless something is said to be broken."""
    told = [(str(job), state, START, f"gres/gpu={job}") for job, _, _, state in rows]
    text = "\n".join(f"{job}|{comment}|{state}|{START}|gres/gpu={job}|{name}" for job, comment, name, state in rows)
    found = split(text)
    fields = [tuple(one.cells[place] for place in READ) for one in found if isinstance(one, Record)]
    assert fields == told or any(isinstance(one, Broken) for one in found)


@given(rows_of(st.text(st.sampled_from("ab|\n =,:-"), max_size=12)))
@settings(max_examples=200, deadline=None)
def test_text_between_shapes_is_always_told_apart(rows: list[tuple[int, str, str, str]]) -> None:
    """It cannot look like a job or a state, so no row is lost where free text does not come last."""
    columns = ("JobID", "Comment", "State", "Start", "SubmitLine", "AllocTRES", "NodeList")
    text = "\n".join(
        f"{job}|{comment}|{state}|{START}|{line}|gres/gpu={job}|n{job}" for job, comment, line, state in rows
    )
    found = split(text, columns, (0, 2, 3, 5, 6))
    told = [(str(job), state, f"gres/gpu={job}", f"n{job}") for job, _, _, state in rows]
    assert [tuple(one.cells[place] for place in (0, 2, 5, 6)) for one in found if isinstance(one, Record)] == told
    assert all(isinstance(one, Record) for one in found)
