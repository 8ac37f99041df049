"""What of a process is told, and that it is told once."""

from __future__ import annotations

from gpuledger.model.missing import Missing
from gpuledger.model.readings import Named, Unread
from gpuledger.sources.process_events import Program
from gpuledger.sources.process_lives import Life, Ran
from gpuledger.sources.told_lives import program_of, untold, untold_opens

SECOND = 1_000_000


def ran(second: int, command: str) -> Ran:
    raw = Program(b"/usr/bin/" + command.encode(), command.encode() + b"\0", b"/", 0, b"0::/\n")
    return Ran(second * SECOND, second * SECOND, raw if command else None)


def life(*programs: Ran) -> Life:
    return Life(pid=7, start_ticks=5, born_us=SECOND, born_boot_us=SECOND, ran=list(programs))


def test_each_program_is_told_from_when_it_ran_and_the_last_as_of_now() -> None:
    """Twice the last: since its exec, and seen now; what nothing is known of is told as that."""
    mine = life(ran(1, "sh"), ran(2, ""), ran(3, "python"))
    told = untold(mine, 9 * SECOND)
    assert [(type(one), one.exec_number, one.seen_at_us // SECOND) for one in told] == [
        (Named, 0, 1),
        (Unread, 1, 2),
        (Named, 2, 3),
        (Named, 2, 9),
    ]
    assert untold(mine, 10 * SECOND) == []
    mine.died_us = 11 * SECOND
    assert [(one.exec_number, one.seen_at_us // SECOND) for one in untold(mine, 12 * SECOND)] == [(2, 11)]


def test_a_life_of_one_program_is_one_row() -> None:
    """From its birth to when it was seen."""
    assert [one.seen_at_us for one in untold(life(ran(1, "sh")), 9 * SECOND)] == [9 * SECOND]
    assert isinstance(program_of(life(), -1, SECOND), Unread)


def test_a_hold_is_told_when_it_begins_and_when_it_ends() -> None:
    """By exec or by exit; of what is over nothing is kept."""
    mine = life(ran(1, "sh"))
    mine.opens(0, 2 * SECOND, 2 * SECOND, is_found=False)
    assert [isinstance(one.exited_at_us, Missing) for one in untold_opens(mine)] == [True]
    assert list(untold_opens(mine)) == []
    mine.lets_go(3 * SECOND, 3 * SECOND)
    mine.opens(0, 4 * SECOND, 4 * SECOND, is_found=True)
    first, second = untold_opens(mine)
    assert (first.number, first.exited_at_us, first.became, first.is_found) == (0, 3 * SECOND, True, False)
    assert (second.number, second.is_found) == (1, True)
    assert [hold.number for hold in mine.holds] == [1]
    mine.died_us = 5 * SECOND
    assert [(one.number, one.exited_at_us, one.became) for one in untold_opens(mine)] == [(1, 5 * SECOND, False)]
    assert list(untold_opens(mine)) == []
