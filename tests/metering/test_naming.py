"""Names: the life that contains the start, and nobody where two do."""

from typing import Any

import pytest

from gpuledger.metering.naming import Name, Names, unnamed
from gpuledger.model.missing import Missing
from gpuledger.model.reasons import Cause

AMBIGUOUS = "unattributed:pid-ambiguous"


def names(*rows: Any, looks: Any = (), interval_ms: int = 1000) -> Names:
    return Names(rows, looks, lambda host, at_us: interval_ms * 1000)


def subject(name: Name | None) -> str | None:
    return None if name is None else name.subject


def test_the_life_that_contains_the_start_gives_the_name(make: Any) -> None:
    """Born before, and seen alive then or within two polls before."""
    found = names(make.identity("xtts", 10_000, seen=30_000))
    at = {
        ms: subject(found.at("box", 7, make.at(ms), make.at(ms + 500))) for ms in (7_999, 8_000, 20_000, 32_000, 32_001)
    }
    assert at == {7_999: None, 8_000: "xtts", 20_000: "xtts", 32_000: "xtts", 32_001: None}


def test_slow_polls_prove_life_for_two_intervals(make: Any) -> None:
    """Under a 60 s poll a process seen 2 minutes ago may be the one."""
    found = names(make.identity("xtts", 0, seen=30_000), interval_ms=60_000)
    assert subject(found.at("box", 7, make.at(150_000), make.at(150_500))) == "xtts"
    assert found.at("box", 7, make.at(150_001), make.at(150_500)) is None


def test_other_hosts_and_pids_do_not_matter(make: Any) -> None:
    """The join is by host, pid and time."""
    found = names(make.identity("xtts", 0, seen=30_000))
    assert found.at("other", 7, make.at(100), make.at(200)) is None
    assert found.at("box", 8, make.at(100), make.at(200)) is None


def test_each_life_of_a_pid_keeps_its_own_name(make: Any) -> None:
    """A lives and dies, B reuses the pid: rows of A are A's, rows of B are B's."""
    found = names(make.identity("a", 0, seen=50_000), make.identity("b", 60_000, seen=90_000, ticks=2))
    assert subject(found.at("box", 7, make.at(40_000), make.at(45_000))) == "a"
    assert subject(found.at("box", 7, make.at(61_000), make.at(62_000))) == "b"
    assert subject(found.at("box", 7, make.at(89_000), make.at(95_000))) == "b"


@pytest.mark.parametrize(
    ("seen", "dead", "expected"),
    [(49_999, None, AMBIGUOUS), (49_999, 50_000, "b"), (50_200, None, "a"), (40_000, None, "b")],
    ids=["both fit", "the first is proven dead", "the first is proven alive", "the first was not seen for long"],
)
def test_a_pid_reused_within_two_seconds(make: Any, seen: int, dead: int | None, expected: str) -> None:
    """The context starts 100 ms after the second process: only proof decides."""
    looks = () if dead is None else (make.look(0, seen, gone=dead, died=True),)
    found = names(make.identity("a", 0, seen=seen), make.identity("b", 50_000, seen=60_000, ticks=2), looks=looks)
    assert subject(found.at("box", 7, make.at(50_100), make.at(51_000))) == expected


def test_a_process_born_after_the_start_is_not_trusted_beside_an_earlier_life(make: Any) -> None:
    """Within the tolerance the clocks may disagree, so an earlier life that is not proven dead will do as well."""
    young, old = make.identity("b", 50_000, seen=60_000, ticks=2), make.identity("a", 0, seen=1000)
    assert subject(names(young).at("box", 7, make.at(49_000), make.at(49_500))) == "b"
    assert subject(names(young, old).at("box", 7, make.at(49_000), make.at(49_500))) == AMBIGUOUS
    dead = make.look(0, 1000, gone=2000, died=True)
    assert subject(names(young, old, looks=[dead]).at("box", 7, make.at(49_000), make.at(49_500))) == "b"


def test_lives_that_overlap_are_ambiguous(make: Any) -> None:
    """Two processes seen alive under one pid at one time: the clock was set, and nobody can tell."""
    found = names(make.identity("a", 0, seen=90_000), make.identity("b", 50_000, seen=95_000, ticks=2))
    assert subject(found.at("box", 7, make.at(70_000), make.at(71_000))) == AMBIGUOUS


def test_two_lives_of_one_name_are_no_question(make: Any) -> None:
    """A worker that was restarted under its own pid is the same subject."""
    found = names(make.identity("w", 0, seen=49_999), make.identity("w", 50_000, seen=60_000, ticks=2))
    assert subject(found.at("box", 7, make.at(50_100), make.at(51_000))) == "w"


def test_a_reboot_starts_pids_anew(make: Any) -> None:
    """The same pid and ticks under another boot id is another process."""
    found = names(make.identity("a", 0, seen=10_000), make.identity("b", 90_000, seen=99_000, boot_id="b2"))
    assert found.at("box", 7, make.at(95_000), make.at(96_000)) == Name("b", ("b2", 1), "identity:box.agent/2")


def test_the_program_in_force_at_the_start_counts(make: Any) -> None:
    """A process that became another program is named by the highest exec number read by then, else the lowest."""
    found = names(
        make.identity("shell", 0, seen=1000), make.identity("train", 0, seen=5000, exec_number=1),
        make.identity("train", 0, seen=90_000, exec_number=1),
    )  # fmt: skip
    at = [subject(found.at("box", 7, make.at(ms), make.at(ms + 1))) for ms in (500, 4_999, 5_000, 80_000)]
    assert at == ["shell", "shell", "train", "train"]


def test_a_look_names_its_context_unless_it_contradicts_it(make: Any) -> None:
    """The agent saw that very process, but a process cannot hold a context older than itself."""
    found = names(make.identity("a", 0, seen=90_000), make.identity("b", 50_000, seen=95_000, ticks=2))
    assert subject(found.proven("box", 7, {("b", 2)}, make.at(60_000))) == "b"
    assert found.proven("box", 7, {("b", 2)}, make.at(47_000)) is None
    assert found.proven("box", 7, {("b", 1), ("b", 2)}, make.at(60_000)) is None
    assert not found.knows_any("box", 7, {("b", 9)})


def test_claims_count_where_the_kernel_says_nothing(make: Any) -> None:
    """A pid map within 2 s of the context; it is stronger than the driver's process name."""
    found = names(make.claim("xtts", 10_000), make.claim("C+G", 10_000, method="nvidia-smi"))
    assert subject(found.at("box", 7, make.at(11_900), make.at(13_000))) == "xtts"
    assert found.at("box", 7, make.at(12_001), make.at(13_000)) is None
    assert subject(names(make.claim("C+G", 10_000, method="nvidia-smi")).at("box", 7, make.at(9_000), make.at(13_000)))


def test_kernel_facts_beat_claims(make: Any) -> None:
    """A pid map that says otherwise does not rename what was read from the kernel."""
    found = names(make.claim("mine", 10_000), make.identity("theirs", 9_000, seen=11_000))
    assert subject(found.at("box", 7, make.at(10_000), make.at(10_500))) == "theirs"


def test_two_claims_are_ambiguous(make: Any) -> None:
    """Two services claim one pid in one context."""
    found = names(make.claim("a", 10_000), make.claim("b", 10_400))
    assert subject(found.at("box", 7, make.at(10_000), make.at(11_000))) == AMBIGUOUS


def test_without_a_start_only_one_possible_answer_is_an_answer(make: Any) -> None:
    """Every process born before the latest start can be it."""
    one, two = make.identity("a", 0, seen=50_000), make.identity("b", 60_000, seen=90_000, ticks=2)
    when = {"start_us": make.at(95_000), "read_us": make.at(99_000)}
    assert subject(names(one).sometime("box", 7, **when)) == "a"
    assert subject(names(one, two).sometime("box", 7, **when)) == AMBIGUOUS
    assert subject(names(one, two).sometime("box", 7, start_us=make.at(30_000), read_us=make.at(99_000))) == "a"
    assert names().sometime("box", 7, **when) is None


def test_without_a_start_the_proven_dead_are_out(make: Any) -> None:
    """A death by the moment that the context lasted to rules a process out; no death is told where nothing is known."""
    found = names(make.identity("a", 0, seen=50_000), looks=[make.look(0, 50_000, gone=51_000, died=True)])
    when = {"start_us": make.at(95_000), "read_us": make.at(99_000)}
    assert subject(found.sometime("box", 7, **when)) == "a"
    assert subject(found.sometime("box", 7, **when, lasted_us=make.at(50_999))) == "a"
    assert found.sometime("box", 7, **when, lasted_us=make.at(51_000)) is None


def test_without_a_start_the_later_life_is_told_from_the_dead_one(make: Any) -> None:
    """A is proven dead, B has its pid: once the row cannot be A's, it is no question."""
    rows = make.identity("a", 0, seen=50_000), make.identity("b", 60_000, seen=90_000, ticks=2)
    found = names(*rows, looks=[make.look(0, 50_000, gone=51_000, died=True)])
    when = {"start_us": make.at(95_000), "read_us": make.at(99_000)}
    assert subject(found.sometime("box", 7, **when)) == AMBIGUOUS
    assert subject(found.sometime("box", 7, **when, lasted_us=make.at(97_000))) == "b"


def test_without_a_start_a_life_must_be_long_enough(make: Any) -> None:
    """A process proven dead after 51 s held no device for 54 s, whenever the row was read."""
    found = names(make.identity("a", 0, seen=50_000), looks=[make.look(0, 50_000, gone=51_000, died=True)])
    when = {"start_us": make.at(95_000), "read_us": make.at(999_000)}
    assert subject(found.sometime("box", 7, **when, length_us=53_000_000)) == "a"
    assert found.sometime("box", 7, **when, length_us=53_000_001) is None


@pytest.mark.parametrize("method", ["pid-map", "nvidia-smi"])
def test_a_claim_older_than_a_death_of_its_pid_is_about_the_dead(make: Any, method: str) -> None:
    """Also where /proc of the dead could not be read; a claim after the death counts, and any where no death counts."""
    gone = make.look(0, 50_000, gone=51_000, died=True, start_ticks=0, boot_id="")
    when = {"start_us": make.at(95_000), "read_us": make.at(99_000)}
    old = names(make.claim("a", 51_000, method=method), looks=[gone])
    assert old.sometime("box", 7, **when, lasted_us=make.at(97_000)) is None
    assert subject(old.sometime("box", 7, **when)) == "a"
    young = names(make.claim("b", 51_001, method=method), looks=[gone])
    assert subject(young.sometime("box", 7, **when, lasted_us=make.at(97_000))) == "b"


def test_a_pid_map_may_be_older_or_younger_than_its_file(make: Any) -> None:
    """Its times are its writer's; a process name of the driver must not be younger than the reading."""
    when = {"start_us": make.at(95_000), "read_us": make.at(99_000)}
    assert subject(names(make.claim("xtts", 900_000)).sometime("box", 7, **when)) == "xtts"
    assert names(make.claim("xtts", 900_000, method="nvidia-smi")).sometime("box", 7, **when) is None


def test_a_birth_nobody_knows_is_the_first_sight(make: Any) -> None:
    """A kernel identity without a start time is joined from when it was read."""
    found = names(make.identity("a", 0, seen=10_000, started_at_us=Missing("no boot time")))
    assert found.at("box", 7, make.at(7_000), make.at(7_500)) is None
    assert subject(found.at("box", 7, make.at(9_000), make.at(9_500))) == "a"
    assert found.born(("box", "b", 7, 1)) is None


def test_births_and_deaths_are_told(make: Any) -> None:
    """For the join of looks to rows: when a process began, and whether it was found gone."""
    found = names(make.identity("a", 500), looks=[make.look(0, 1000, gone=2000, died=True)])
    assert found.born(("box", "b", 7, 1)) == make.at(500)
    assert found.died(("box", "b", 7, 1))
    assert not found.died(("box", "b", 7, 2))


def test_no_name_says_why() -> None:
    """The subject of an unnamed amount carries its cause."""
    assert unnamed(Cause.WATCH_GAP) == Name("unattributed:watch-gap", ("", 0), "")


UNREADABLE = "unattributed:identity-unreadable"


def test_a_process_that_was_there_and_could_not_be_read_has_no_name(make: Any) -> None:
    """That is known of it, so it is said, with the row that says so; and nobody else's name is taken."""
    unread = make.identity("", 10_000, seen=10_004, ticks=0, method="connector")
    found = names(unread, make.identity("a", 0, seen=7_000))
    name = found.at("box", 7, make.at(10_001), make.at(10_004))
    assert name == Name(UNREADABLE, ("b", 0), unread.ref)
    assert subject(names(unread).at("box", 7, make.at(10_001), make.at(10_004))) == UNREADABLE


def test_what_a_process_was_before_an_exec_that_was_not_read_is_not_its_name(make: Any) -> None:
    """A shell forks, the child execs and dies unread: it is not the shell."""
    rows = [
        make.identity("bash", 10_000, method="connector"),
        make.identity("", 10_000, seen=10_002, exec_number=1, method="connector"),
        make.identity("", 10_000, seen=10_020, exec_number=1, method="connector"),
    ]
    found = names(*rows)
    assert subject(found.at("box", 7, make.at(10_005), make.at(10_020))) == UNREADABLE
    assert subject(found.at("box", 7, make.at(10_001), make.at(10_020))) == "bash"


def test_two_processes_whose_starts_could_not_be_read_are_two(make: Any) -> None:
    """Both have 0 for their ticks: they are told apart by when they were met, and nobody lived in between."""
    rows = [
        make.identity("bash", 10_000, seen=10_020, ticks=0, method="connector"),
        make.identity("", 900_000, seen=900_020, ticks=0, method="connector"),
    ]
    found = names(*rows)
    assert found.at("box", 7, make.at(400_000), make.at(400_100)) is None
    assert subject(found.at("box", 7, make.at(10_010), make.at(10_020))) == "bash"
    assert subject(found.at("box", 7, make.at(900_010), make.at(900_020))) == UNREADABLE


def test_under_events_a_process_is_not_alive_after_its_end(make: Any) -> None:
    """A pid comes back within two slow looks, its new process unread: it is not called by the old one's name."""
    row = make.identity("old", 0, seen=30_000, method="ebpf")
    assert names(row, interval_ms=0).at("box", 7, make.at(32_001), make.at(33_000)) is None
