"""``top`` on a screen: every size shows who holds most, the size of the unnamed, and the keys."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from gpuledger.model.holders import Arrangement, Figure, Grouping
from gpuledger.model.problem import Problem
from gpuledger.reports.top_screen import KEYS, Screenful, cut, shortened
from reports.holders_rows import GPU, OLLAMA, holders_look, holders_report, holders_row, lost_row


def screen(what: Screenful, width: int = 80, height: int = 24) -> list[str]:
    """The lines of a screen of this size."""
    console = Console(file=io.StringIO(), width=width, height=height, force_terminal=True, color_system=None)
    with console.capture() as captured:
        console.print(what, end="")
    return [line.rstrip() for line in captured.get().split("\n")]


def many(number: int) -> Screenful:
    """A service, and so many jobs beside it."""
    jobs = [holders_row(f"script:/srv/job{place}.py by al", (place,), Figure(value=100)) for place in range(number)]
    return Screenful(holders_report(OLLAMA, *jobs), state="every 2 s")


def test_80_by_24_shows_head_rows_the_unnamed_and_the_keys() -> None:
    """The keys fit on one line of 80 columns and stand on the last line."""
    lines = screen(many(2))
    assert len(lines) == 24
    assert lines[0].startswith("top by service  box, ")
    assert lines[1].startswith("every 2 s; most memory first; ledger ")
    assert lines[-1] == KEYS
    assert sum(line.startswith("script:/srv/job") for line in lines) == 2
    assert any(line.startswith("Not named  1 of 4 contexts") for line in lines)
    assert "what helps: sudo gpuledger top" in " ".join(line.strip() for line in lines)


@pytest.mark.parametrize("height", [1, 3, 6, 8, 12, 15, 24, 60])
@pytest.mark.parametrize("width", [40, 80, 132])
@pytest.mark.parametrize("is_helping", [False, True])
def test_a_screen_is_never_more_than_its_lines(width: int, height: int, is_helping: bool) -> None:
    """Whatever is to be said."""
    what = many(50)
    what.is_helping = is_helping
    lines = screen(what, width, height)
    assert len(lines) == height
    assert max(len(line) for line in lines) <= width
    assert lines[-1].startswith("g group")


def test_rows_that_do_not_fit_are_counted_and_the_unnamed_stay() -> None:
    """One line a row, the most first."""
    lines = screen(many(50))
    (more,) = [place for place, line in enumerate(lines) if line.startswith("and ") and "more" in line]
    shown = sum(line.startswith(("ollama", "script:", "unattributed:")) for line in lines)
    assert lines[more] == f"and {52 - shown} more"
    assert lines[more + 1].startswith("unattributed:identity-unreadable")


def test_by_process_the_count_stands_under_the_names() -> None:
    """And not in the column of pids."""
    what = many(50)
    assert what.report is not None
    told = holders_report(*what.report.rows, arrangement=Arrangement(by=Grouping.PROCESS))
    rows = [holders_row(row.label, row.pids[:1], row.memory, user="al", detail="x") for row in told.rows]
    lines = screen(Screenful(holders_report(*rows, arrangement=told.arrangement), state="paused"))
    heads = next(line for line in lines if line.lstrip().startswith("pid"))
    more = next(line for line in lines if line.lstrip().startswith("and "))
    assert more.index("and ") == heads.index("service")


def test_names_are_cut_in_their_middle_and_figures_never() -> None:
    """How it begins and how it ends tell most."""
    row = holders_row(f"script:/home/al/{'x' * 90}/train.py by al", (7,), Figure(value=14_436))
    (line,) = [line for line in screen(Screenful(holders_report(row), state="")) if "14.1 GiB" in line]
    assert line.startswith("script:")
    assert "…" in line
    assert "train.py by al" in line


def test_no_answer_is_shown_instead_of_an_old_table() -> None:
    """What was seen before says nothing of now."""
    lines = screen(Screenful(holders_report(OLLAMA), state="every 2 s", trouble="the driver did not answer"))
    assert "UNKNOWN: the driver did not answer" in lines
    assert not any("ollama" in line for line in lines)
    assert screen(Screenful(None, state="every 2 s", trouble="gone"))[-1] == KEYS


def test_help_explains_keys_and_columns() -> None:
    """On the same screen as the table."""
    what = many(3)
    what.is_helping = True
    text = "\n".join(screen(what, 100, 40))
    assert "held for  since the driver's start" in text
    assert "never billed" in text
    assert "ollama" in text


def test_notes_that_do_not_fit_are_counted() -> None:
    """The rows need the room more."""
    problems = tuple(Problem(code="x", message=f"trouble {number}", where=GPU) for number in range(30))
    told = holders_report(OLLAMA, lost_row(), look=holders_look(problems=problems))
    lines = screen(Screenful(told, state=""), 80, 24)
    assert any("more notes: gpuledger top --once" in line for line in lines)
    assert any(line.startswith("ollama") for line in lines)
    assert any(line.startswith("Not named") for line in lines)


def test_an_idle_machine_says_so() -> None:
    """Instead of an empty table."""
    lines = screen(Screenful(holders_report(unnamed=False, look=holders_look(holdings=())), state=""))
    assert "No process holds a device." in lines


@pytest.mark.parametrize(
    ("named", "unnamed", "room", "shown"),
    [
        (3, 1, 4, (3, 0, 1)),
        (3, 1, 3, (1, 2, 1)),
        (30, 1, 10, (8, 22, 1)),
        (30, 30, 10, (6, 51, 3)),
        (0, 30, 10, (0, 21, 9)),
        (5, 1, 1, (0, 6, 0)),
        (5, 1, 0, (0, 6, 0)),
        (0, 0, 0, (0, 0, 0)),
    ],
)
def test_what_fits(named: int, unnamed: int, room: int, shown: tuple[int, int, int]) -> None:
    """The count of the rest takes a line too, and a third of the room is the unnamed's."""
    row = holders_row("a", (1,), Figure(value=1))
    first, left_out, apart = cut([row] * named, [row] * unnamed, room)
    assert (len(first), left_out, len(apart)) == shown


@pytest.mark.parametrize(
    ("text", "width", "short"),
    [("ollama", 6, "ollama"), ("0123456789", 7, "01…6789"), ("漢字漢字漢字", 7, "漢字漢 "), ("abc", 1, "…")],
)
def test_a_name_cut_in_its_middle(text: str, width: int, short: str) -> None:
    """Also where a character takes two columns."""
    assert shortened(text, width) == short
