"""One process as events tell it: which program it was when, what is doubted, and what settles the doubt."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpuledger.model.identity import IdentityText
from gpuledger.sources.process_events import Happened, ProcessEvent, Program
from gpuledger.sources.process_lives import MOST_PROGRAMS, Life, Ran, text_of

OFFSET_US = 1_790_000_000_000_000
SECOND = 1_000_000


def program(command: str, exe: str = "") -> Program:
    return Program(
        exe=(exe or "/usr/bin/" + command.split(maxsplit=1)[0]).encode(),
        args=command.replace(" ", "\0").encode() + b"\0",
        cwd=b"/home",
        uid=0,
        cgroup=b"0::/system.slice/x.service\n",
    )


def text(command: str, exe: str = "") -> IdentityText:
    return text_of(program(command, exe))


def life(*commands: str, told: int = 0) -> Life:
    """A process born a second after boot that became one program a second."""
    found = Life(pid=7, start_ticks=100, born_us=OFFSET_US + SECOND, born_boot_us=SECOND, told=told)
    for number, command in enumerate(commands, 2):
        found.became(Ran(OFFSET_US + number * SECOND, number * SECOND, program(command)))
    return found


def happened(what: Happened, second: float, of: Program | None = None) -> tuple[ProcessEvent, int]:
    boot_us = int(second * SECOND)
    return ProcessEvent(what, boot_us, 7, 100, major=195, program=of), OFFSET_US + boot_us


def commands(of: Life) -> list[str]:
    return ["" if (known := ran.as_text()) is None else known.command for ran in of.ran]


def test_a_program_is_redacted_when_it_is_first_asked_for() -> None:
    """Raw bytes become the text of an identity: user, unit, command, and no secret."""
    ran = Ran(0, 0, program("serve --api-key hunter2"))
    assert ran.text is None
    known = ran.as_text()
    assert known is not None
    assert (known.exe, known.uid, known.unit, known.cwd) == ("/usr/bin/serve", "0", "x.service", "/home")
    assert "hunter2" not in known.command
    assert ran.as_text() is known


def test_what_a_kernel_writes_as_cgroup_that_is_none_names_nothing() -> None:
    """The rest of the program is told all the same."""
    known = text_of(program("x")._replace(cgroup=b"nonsense"))
    assert (known.command, known.unit, known.cgroup) == ("x", "", "")


def test_the_drivers_own_tools_are_known_by_their_executable() -> None:
    """By its last part, raw or read; who execs something else is one no longer."""
    assert life("nvidia-smi").is_monitor
    assert not life("nvidia-smi", "python t.py").is_monitor
    assert not life().is_monitor
    read = Life(pid=7, start_ticks=1, born_us=0, born_boot_us=0)
    read.ran = [Ran(0, 0, None, text("x", "/opt/bin/dcgmi"))]
    assert read.is_monitor
    read.ran = [Ran(0, 0, None)]
    assert not read.is_monitor


def test_a_process_that_execs_for_ever_keeps_its_latest_programs_and_its_count() -> None:
    """Memory has an end; numbers told before stay what they were."""
    found = life(*(f"step {number}" for number in range(MOST_PROGRAMS)), told=MOST_PROGRAMS)
    found.became(Ran(0, 99 * SECOND, program("last")))
    assert (len(found.ran), found.let_go, found.told) == (MOST_PROGRAMS, 1, MOST_PROGRAMS - 1)
    assert commands(found)[-1] == "last"


def test_the_program_of_a_moment_is_the_last_one_begun_by_then() -> None:
    """The wall clock may be set in between: order is by the boot-time clock."""
    found = life("sh", "python t.py")
    found.ran[0].since_us = OFFSET_US + 3600 * SECOND
    assert found.at(int(2.5 * SECOND)) is found.ran[0]
    assert found.at(3 * SECOND) is found.ran[1]
    assert found.at(0) is found.ran[0]


def test_the_same_exec_told_twice_is_one_program() -> None:
    """A duplicate changes nothing."""
    found = life("sh")
    found.execs(*happened(Happened.EXEC, 3, program("python t.py")))
    found.execs(*happened(Happened.EXEC, 3, program("python t.py")))
    assert commands(found) == ["sh", "python t.py"]


def test_an_exec_older_than_what_was_read_is_not_a_second_program() -> None:
    """It was read from /proc after that exec: the event only says since when, until that is told."""
    found = life()
    found.ran, found.read_boot_us = [Ran(found.born_us, SECOND, None, text("python t.py"))], 5 * SECOND
    found.execs(*happened(Happened.EXEC, 3, program("python t.py")))
    assert commands(found) == ["python t.py"]
    assert found.ran[0].since_us == OFFSET_US + 3 * SECOND
    found.told = 1
    found.execs(*happened(Happened.EXEC, 4, program("python t.py")))
    found.execs(*happened(Happened.EXEC, 4, program("sh")))
    assert (commands(found), found.ran[0].since_us) == (["python t.py"], OFFSET_US + 3 * SECOND)


def test_an_exec_older_than_what_was_read_that_was_another_program_comes_before_it() -> None:
    """Two execs waited to be read while /proc said the second: the first has its time, the second its own."""
    found = life()
    found.ran, found.read_boot_us = [Ran(found.born_us, SECOND, None, text("python t.py"))], 5 * SECOND
    found.execs(*happened(Happened.EXEC, 2, program("env python t.py")))
    found.execs(*happened(Happened.EXEC, 3, program("python t.py")))
    assert commands(found) == ["env python t.py", "python t.py"]
    assert [ran.since_boot_us for ran in found.ran] == [2 * SECOND, 3 * SECOND]


def test_an_exec_after_what_was_read_is_a_program() -> None:
    """And one that was not read stays one without a name."""
    found = life("sh")
    found.read_boot_us = 2 * SECOND
    found.execs(*happened(Happened.EXEC, 3, None))
    assert commands(found) == ["sh", ""]


def test_proc_completes_what_an_event_began_until_that_is_told() -> None:
    """An event carries the beginning of a long command line; a program that could not be read is read now."""
    found = life("python t.py")
    found.renew(text("python t.py --long"), OFFSET_US, 9 * SECOND, most_titles=16)
    assert commands(found) == ["python t.py --long"]
    found.told = 1
    found.renew(text("python t.py --long --title"), OFFSET_US, 9 * SECOND, most_titles=16)
    assert commands(found) == ["python t.py --long", "python t.py --long --title"]
    unread = life()
    unread.ran = [Ran(OFFSET_US, SECOND, None)]
    unread.renew(text("x"), OFFSET_US, 9 * SECOND, most_titles=16)
    assert commands(unread) == ["x"]
    unread.ran, unread.told = [Ran(OFFSET_US, SECOND, None)], 1
    unread.renew(text("x"), OFFSET_US, 9 * SECOND, most_titles=16)
    assert commands(unread) == ["", "x"]


def test_titles_have_an_end_and_programs_have_not() -> None:
    """Ray writes what it does into its title, which is no new program each time."""
    found = life("python t.py")
    found.told = 1
    for number in range(9):
        found.renew(text(f"title {number}", "/usr/bin/python"), OFFSET_US, 9 * SECOND, most_titles=3)
        found.told = len(found.ran)
    assert commands(found) == ["python t.py", "title 0", "title 1"]
    found.renew(text("bash"), OFFSET_US, 9 * SECOND, most_titles=3)
    assert commands(found)[-1] == "bash"
    found.renew(text("bash", ""), OFFSET_US, 9 * SECOND, most_titles=3)
    assert len(found.ran) == 4


def test_a_process_of_which_nothing_was_told_is_what_proc_says_from_its_birth() -> None:
    """It was there before events were listened to."""
    found = life()
    found.renew(text("x"), OFFSET_US + 9 * SECOND, 9 * SECOND, most_titles=16)
    assert [(ran.since_us, ran.since_boot_us) for ran in found.ran] == [(OFFSET_US + SECOND, SECOND)]


def doubted(*known: str, told: int = 0) -> Life:
    found = life(*known)
    found.became(Ran(OFFSET_US + 5 * SECOND, 5 * SECOND, None, doubted=True))
    found.told = told
    return found


def test_a_doubt_goes_when_the_program_is_seen_to_be_the_same() -> None:
    """By /proc, or by an open, which either carries the program or says that it was told."""
    by_proc = doubted("python t.py")
    by_proc.renew(text("python t.py"), OFFSET_US, 9 * SECOND, most_titles=16)
    told_open = doubted("python t.py")
    told_open.says(*happened(Happened.OPEN, 6))
    with_program = doubted("python t.py")
    with_program.says(*happened(Happened.OPEN, 6, program("python t.py")))
    held = doubted("python t.py")
    held.says(*happened(Happened.HOLD, 6, program("python t.py")))
    assert [commands(found) for found in (by_proc, told_open, with_program, held)] == [["python t.py"]] * 4


def test_a_doubt_that_was_told_stays_and_certainty_begins_again() -> None:
    """What was told cannot be taken back; from now on the program is known."""
    by_proc = doubted("python t.py", told=2)
    by_proc.renew(text("python t.py"), OFFSET_US + 9 * SECOND, 9 * SECOND, most_titles=16)
    by_open = doubted("python t.py", told=2)
    by_open.says(*happened(Happened.OPEN, 9))
    assert commands(by_proc) == commands(by_open) == ["python t.py", "", "python t.py"]
    assert by_proc.ran[-1].since_us == by_open.ran[-1].since_us == OFFSET_US + 9 * SECOND


def test_a_doubt_stays_where_another_program_is_found() -> None:
    """When it became that one nobody saw: the time in between has no name, and no wrong one."""
    by_proc = doubted("sh")
    by_proc.renew(text("python t.py"), OFFSET_US, 9 * SECOND, most_titles=16)
    by_open = doubted("sh")
    by_open.says(*happened(Happened.OPEN, 9, program("python t.py")))
    assert commands(by_proc) == commands(by_open) == ["sh", "", "python t.py"]


def test_an_open_names_who_forked_and_who_was_never_told() -> None:
    """Identity is taken at the open too; a snapshot's word is taken only where there is none."""
    forked = life()
    forked.says(*happened(Happened.OPEN, 2, program("python t.py")))
    assert commands(forked) == ["python t.py"]
    forked.says(*happened(Happened.HOLD, 3, program("title of its own", "/usr/bin/python")))
    forked.says(*happened(Happened.HOLD, 3, program("x")._replace(args=b"")))
    assert commands(forked) == ["python t.py"]
    forked.says(*happened(Happened.OPEN, 4, program("bash")))
    assert commands(forked) == ["python t.py", "bash"]
    unread = life()
    unread.ran = [Ran(OFFSET_US, SECOND, None)]
    unread.says(*happened(Happened.OPEN, 4, program("bash")))
    assert commands(unread) == ["", "bash"]


def seen_by_others(command: str) -> IdentityText:
    """A reading of ``/proc`` by somebody who may not trace the process: no executable, no directory."""
    return replace(text(command), exe="", cwd="")


def met(command: str, *, told: int = 0) -> Life:
    """A process that was there before the first event, as somebody without CAP_SYS_PTRACE reads it."""
    found = Life(pid=7, start_ticks=100, born_us=OFFSET_US + SECOND, born_boot_us=SECOND, told=told)
    found.ran = [Ran(OFFSET_US + SECOND, SECOND, None, seen_by_others(command))]
    found.read_boot_us = 3 * SECOND
    return found


@pytest.mark.parametrize("what", [Happened.OPEN, Happened.HOLD])
def test_an_event_tells_what_proc_did_not_show(what: Happened) -> None:
    """The same program, and now whole: in place of the reading until that was told, and as a new one after."""
    untold, told = met("nvidia-persistenced"), met("nvidia-persistenced", told=1)
    for found in (untold, told):
        assert not found.is_monitor
        found.says(*happened(what, 6, program("nvidia-persistenced")))
        assert found.ran[-1].as_text() == text("nvidia-persistenced")
        assert found.is_monitor
    assert (len(untold.ran), untold.ran[0].since_us) == (1, OFFSET_US + SECOND)
    assert (len(told.ran), told.ran[-1].since_us) == (2, OFFSET_US + 6 * SECOND)
    told.says(*happened(what, 7, program("nvidia-persistenced")))
    assert len(told.ran) == 2


def test_an_event_of_another_program_lends_a_reading_nothing() -> None:
    """A snapshot's other command line is no proof that the executable is the same."""
    found = met("python t.py")
    found.says(*happened(Happened.HOLD, 6, program("bash")))
    assert [ran.as_text() for ran in found.ran] == [seen_by_others("python t.py")]


def test_an_exec_read_late_tells_what_proc_did_not_show() -> None:
    """The event waited while ``/proc`` was read: its word on executable and directory is the only one."""
    found = met("python t.py")
    found.execs(*happened(Happened.EXEC, 2, program("python t.py")))
    assert [ran.as_text() for ran in found.ran] == [text("python t.py")]


def test_a_title_of_its_own_keeps_the_executable_that_an_event_told() -> None:
    """``/proc`` shows the new command line and no executable; an exec would have been told."""
    found = life("python t.py", told=1)
    found.renew(seen_by_others("ray::work"), OFFSET_US + 9 * SECOND, 9 * SECOND, most_titles=16)
    assert found.ran[-1].as_text() == text("ray::work", "/usr/bin/python")
    lost = doubted("python t.py")
    lost.renew(seen_by_others("ray::work"), OFFSET_US + 9 * SECOND, 9 * SECOND, most_titles=16)
    assert lost.ran[-1].as_text() == seen_by_others("ray::work")
