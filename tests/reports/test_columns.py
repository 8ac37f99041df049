"""Columns: figures stand whole, spare columns go first, names give way last."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.text import Text

from gpuledger.reports.cells import indented
from gpuledger.reports.columns import GAP, Column, Fitted, fitted

NAME = Column(head="name", cells=["a-name-of-thirty-columns-or-so"], justify="left", least=12)
TIME = Column(head="time", cells=["552 ms"], spare=1)
SHARE = Column(head="share", cells=["33.3 %"], spare=2)
AMOUNT = Column(head="ms", cells=["14,249,789"])


@pytest.mark.parametrize(
    ("room", "heads", "name_width"),
    [
        (100, ["name", "time", "ms", "share"], 30),
        (45, ["name", "time", "ms", "share"], 17),
        (40, ["name", "time", "ms", "share"], 12),
        (39, ["name", "time", "ms"], 19),
        (31, ["name", "ms"], 19),
        (20, ["name", "ms"], 8),
    ],
)
def test_spare_columns_go_first_then_names_give_way(room: int, heads: list[str], name_width: int) -> None:
    """The sparest first; a name keeps what it wants while something spare is there."""
    kept = fitted([NAME, TIME, AMOUNT, SHARE], room)
    assert [column.head for column, _ in kept] == heads
    assert kept[0][1] == name_width


@settings(max_examples=100)
@given(
    names=st.lists(st.text("abc ", min_size=1, max_size=60), min_size=1, max_size=4),
    amounts=st.lists(st.integers(min_value=0, max_value=10**9), min_size=1, max_size=3),
    room=st.integers(min_value=50, max_value=140),
)
def test_what_fits_is_never_wider_than_the_room(names: list[str], amounts: list[int], room: int) -> None:
    """Whatever the names, figures keep all they need."""
    columns = [Column(head="n", cells=[name], justify="left", least=12) for name in names]
    columns += [Column(head="ms", cells=[f"{amount:,}"]) for amount in amounts]
    kept = fitted(columns, room)
    assert sum(width for _, width in kept) + GAP * (len(kept) - 1) <= room
    assert all(width == column.whole for column, width in kept if column.justify == "right")


def test_a_table_that_stands_further_in_is_laid_out_for_what_is_left(printed) -> None:
    """Two columns of margin are not lost at the other end; wide characters count as two."""
    wide = Column(head="name", cells=[Text("\u6a5f\u68b0" * 20, overflow="fold")], justify="left", least=12)
    text = printed(indented(Fitted([wide, AMOUNT])), 30)
    assert "14,249,789" in text
    assert text.splitlines()[0] == "  name" + " " * 22 + "ms"
