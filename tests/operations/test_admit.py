"""``admit``: yes with a hold, no with every reason, and nothing written but a yes."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import pytest

from gpuledger.errors import Misconfigured, Refused
from gpuledger.ledger import Ledger, verify_ledger
from gpuledger.model.lifecycle import Placement
from gpuledger.model.missing import Missing
from gpuledger.model.quotas import HOLD_US, AdmitRequest
from gpuledger.model.workload_rows import ExpectedEnd, Hold, PlacementRow, WorkloadEvent
from gpuledger.operations.admit import Asking, admit
from gpuledger.operations.quota_book import book_of
from gpuledger.operations.workload_memory import memory_of
from quota_desk import Desk

EVERY_STORE = True

QUOTAS = """
{role: student, devices: 1}
{team: vision, devices: 2}
{team: vision, class: "H100*", device_hours: 10, per: day}
"""


@pytest.fixture
def desk(new_place) -> Iterator[Desk]:
    """A policy with a quota of each kind."""
    made = Desk(new_place("desk.db"), QUOTAS)
    yield made
    assert verify_ledger(made.ledger) == []
    made.ledger.close()


def test_a_yes_is_held_for_ten_minutes(desk) -> None:
    """A pending event that says whose it is, the hold, its placement, and the end that it gave."""
    report = desk.ask("w", "al", until=60)
    assert report.admitted
    assert (report.user, report.team, report.roles) == ("al", "vision", ("student",))
    (event,), (hold,) = desk.ledger.scan(WorkloadEvent), desk.ledger.scan(Hold)
    assert (event.state, event.requested_class, event.placement) == ("pending", "H100-80GB", "")
    assert desk.ledger.texts([event.subject])[event.subject].user == "al"
    assert (hold.change, hold.sequence, hold.expires_at_us) == ("taken", event.sequence, desk.at(0) + HOLD_US)
    assert report.hold == hold
    assert [row.placement for row in desk.ledger.scan(PlacementRow)] == [hold.placement]
    assert [(row.sequence, row.until_us) for row in desk.ledger.scan(ExpectedEnd)] == [(1, desk.at(60))]
    used = [(use.bound.words, use.used, use.promised, use.left) for use in report.uses]
    assert used == [
        ("role student of al: 1 device at once", 1, 0, 0),
        ("team vision: 2 devices at once", 1, 0, 1),
        ("team vision, H100*: 10 device-hours a day", 0, 1, 9),
    ]


def test_a_no_writes_nothing_and_tells_every_reason(desk) -> None:
    """Which quota, what is used and asked for, who holds what since when, and the earliest place."""
    desk.ask("w", "al", until=60)
    desk.ask("v", "bo", 1, until=30)
    marks = desk.ledger.marks()
    report = desk.ask("u", "al", 2, until=602)
    assert not report.admitted
    assert desk.ledger.marks() == marks
    assert sorted(report.reasons) == [
        "role student of al: 1 device at once, 1 used, 1 more asked for",
        "team vision, H100*: 10 device-hours a day, 0 used and 1.433 promised, 10 more asked for",
        "team vision: 2 devices at once, 2 used, 1 more asked for",
    ]
    full = next(use for use in report.uses if use.bound.words == "team vision: 2 devices at once")
    assert [(each.workload, each.user, each.since_us) for each in full.holders] == [
        ("w", "al", desk.at(0)), ("v", "bo", desk.at(1)),
    ]  # fmt: skip
    assert full.frees_us == desk.at(30)
    assert report.frees_us == desk.at(14 * 60)  # midnight, when the day's hours are new
    assert report.refusal().code == "quota"


def test_the_earliest_place_is_unknown_with_who_did_not_say(desk) -> None:
    """Known, it is the last of all reasons' moments."""
    desk.ask("w", "al", until=60)
    desk.ask("v", "bo", until=90)
    assert desk.ask("u", "al", 1).frees_us == desk.at(60)
    desk.tell("v", "stopped", 2)
    desk.ask("x", "bo", 3)
    assert desk.ask("u", "al", 4).frees_us == desk.at(60)
    desk.tell("w", "stopped", 5)
    desk.ask("y", "al", 5)
    refused = desk.ask("u", "al", 6)
    assert isinstance(refused.frees_us, Missing)
    assert refused.frees_us.reason == "y gave no end; x gave no end, y gave no end"


def test_the_same_words_again_add_nothing(desk) -> None:
    """While the hold lives, and once it runs; by another process, and with a span that is told later."""
    first = desk.ask("w", "al", span=60)
    marks = desk.ledger.marks()
    with Ledger.open(desk.ledger.place, mode="append") as other:
        again = desk.ask("w", "al", 5, span=60, ledger=other, writer="box.other")
    assert (again.admitted, again.known, again.hold, again.ends_us) == (True, True, first.hold, desk.at(60))
    assert desk.ask("w", "", 5, span=60).known
    assert desk.ledger.marks() == marks
    desk.run("w", 6)
    assert desk.ask("w", "al", 400, span=60).known


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ({"user": "bo", "until": 60}, "another user"),
        ({"user": "al", "until": 61}, "it gave the end"),
        ({"user": "al"}, "and now no end"),
        ({"user": "al", "until": 60, "count": 2}, "asks for 2 x H100-80GB"),
        ({"user": "al", "until": 60, "class_name": "L4"}, "asks for 1 x L4"),
        ({"user": "al", "until": 60, "labels": (("qos", "low"),)}, "labels"),
        ({"user": "al", "until": 60, "project": "p"}, "project"),
    ],
)
def test_other_words_are_a_conflict(desk, words, said) -> None:
    """The first stands; what differs is said, and nothing is added."""
    desk.ask("w", "al", until=60)
    marks = desk.ledger.marks()
    for _ in range(2):
        with pytest.raises(Refused) as caught:
            desk.ask("w", minute=1, **words)
        assert caught.value.code == "conflict"
        assert said in caught.value.message
        assert caught.value.hint
    assert desk.ledger.marks() == marks


def test_a_hold_that_is_not_confirmed_lapses(desk) -> None:
    """To the microsecond; then its place is somebody else's, and it can be asked for again."""
    desk.ask("w", "al")
    assert not desk.ask("v", "al", 9.99999).admitted
    assert desk.ask("v", "al", 10).admitted
    refused = desk.ask("w", "al", 11)
    assert not refused.admitted
    again = desk.ask("w", "al", 20)
    assert again.admitted
    assert not again.known
    changes = [(row.workload, row.change) for row in desk.ledger.scan(Hold)]
    assert changes == [("w", "taken"), ("v", "taken"), ("w", "released"), ("w", "taken")]


def test_confirmed_too_late_it_is_said_that_nothing_is_held(desk) -> None:
    """What was admitted is forgotten with the hold; told on what, or in time, nothing is amiss."""
    desk.ask("w", "al")
    late = desk.tell("w", "provisioning", 11)
    assert [(each.code, "lapsed at 2026-07-27T10:10:00Z" in each.message) for each in late.problems] == [
        ("hold-lapsed", True)
    ]
    assert desk.tell("w", "provisioning", 12, Placement(class_name="H100-80GB")).problems == ()
    desk.ask("v", "bo")
    assert desk.tell("v", "provisioning", 1).problems == ()
    desk.ask("u", "bo")
    assert desk.tell("u", "provisioning", 11, Placement(class_name="H100-80GB")).problems == ()


def test_a_stop_gives_the_place_back(desk) -> None:
    """Of what runs, and of what was only admitted; then it begins anew, without the end it gave before."""
    desk.ask("w", "al", until=60)
    desk.tell("w", "stopped", 1)
    assert desk.ask("v", "al", 2).admitted
    desk.run("v", 3)
    assert not desk.ask("w", "al", 4).admitted
    desk.tell("v", "failed", 5)
    report = desk.ask("w", "al", 6)
    assert report.admitted
    assert isinstance(report.ends_us, Missing)
    refused = desk.ask("u", "al", 7)
    assert isinstance(refused.frees_us, Missing)
    assert refused.frees_us.reason == "w gave no end"


def test_provisioning_confirms_and_may_name_the_devices(desk) -> None:
    """What was admitted by number is held by name from then on, and counts once."""
    desk.ask("w", "al", until=60)
    named = Placement(class_name="H100-80GB", machine="n1", devices=("GPU-a",))
    report = desk.tell("w", "provisioning", 1, named)
    assert [hold.change for hold in report.holds] == ["released", "taken"]
    refused = desk.ask("v", "al", 2)
    assert [(each.workload, each.amount, each.is_confirmed) for each in refused.uses[0].holders] == [("w", 1, True)]
    assert refused.frees_us == desk.at(60)


def test_named_devices_that_are_full_refuse(desk) -> None:
    """Beside the quotas; alone with the code that transitions have."""
    cy = {"user": "cy", "class_name": "L4"}
    assert desk.ask("w", devices=("GPU-a",), share=Fraction(1, 2), until=30, **cy).admitted
    assert desk.ask("v", "bo", class_name="L4", devices=("GPU-a", "GPU-b"), share=Fraction(1, 2)).admitted
    report = desk.ask("u", "bo", 1, class_name="L4", devices=("GPU-a",), share=Fraction(1, 4), until=10)
    assert not report.admitted
    assert report.refusal().code == "device-full"
    assert [each.workload for each in report.full[0].holders] == ["v", "w"]
    assert report.frees_us == desk.at(30)
    assert desk.ask("u", "bo", 1, class_name="L4", devices=("GPU-b",), share=Fraction(1, 2)).admitted
    with pytest.raises(Refused) as caught:
        desk.tell("t", "provisioning", 2, Placement(class_name="L4", devices=("GPU-b",), share=Fraction(1, 4)))
    assert caught.value.code == "device-full"


def test_a_confirmed_hold_counts_once_on_its_device(desk) -> None:
    """Remembered or read anew: half a device is left beside half of it."""
    half = {"class_name": "L4", "devices": ("GPU-a",), "share": Fraction(1, 2)}
    desk.ask("w", "cy", **half)
    desk.run("w", 1)
    assert desk.ask("v", "bo", 2, **half).admitted
    assert not desk.ask("u", "bo", 3, **half).admitted
    desk.tell("v", "stopped", 4)
    assert desk.ask("u", "bo", 5, **half).admitted


def test_a_check_takes_nothing(desk) -> None:
    """On a ledger that may only be read, too."""
    desk.ask("w", "al")
    marks = desk.ledger.marks()
    with Ledger.open(desk.ledger.place, mode="read") as reader:
        yes = desk.ask("v", "bo", 1, check=True, ledger=reader)
        no = desk.ask("v", "al", 1, check=True, ledger=reader)
    assert (yes.admitted, yes.is_check, isinstance(yes.hold, Missing)) == (True, True, True)
    assert (no.admitted, no.reasons) == (False, ("role student of al: 1 device at once, 1 used, 1 more asked for",))
    assert desk.ledger.marks() == marks


def test_without_a_policy_it_is_admitted_and_said(new_place) -> None:
    """No quotas apply: a note, no error."""
    desk = Desk(new_place("bare.db"))
    report = desk.ask("w", "al")
    assert report.admitted
    assert [problem.code for problem in report.problems] == ["no-quotas"]
    desk.ledger.close()


def test_a_user_whom_the_policy_does_not_list_has_no_role(desk) -> None:
    """Their team's quota holds where the request names one; that no role applies is said."""
    report = desk.ask("w", "zoe", team="vision")
    assert [use.bound.scope_words for use in report.uses] == ["team vision", "team vision"]
    assert [problem.code for problem in report.problems] == ["no-roles"]


def test_whose_it_is_stays_as_told_before(desk) -> None:
    """A controller told of the request first: its user counts, though this request names none."""
    desk.tell("w", "pending", -5, user="al")
    report = desk.ask("w")
    assert (report.admitted, report.user) == (True, "al")
    assert not desk.ask("v", "al", 1).admitted
    with Ledger.open(desk.ledger.place, mode="append") as other:
        assert not desk.ask("v", "al", 1, ledger=other).admitted


def test_the_smallest_of_quotas_that_contradict_wins(desk) -> None:
    """All are told."""
    desk.apply("{user: al, devices: 4}\n{user: '*', devices: 2}\n{user: al, class: 'H*', devices: 1}", minute=0)
    assert desk.ask("w", "al").admitted
    report = desk.ask("v", "al", 1)
    assert [(use.bound.quota.limit, use.fits) for use in report.uses] == [(1, False), (2, True), (4, True)]


def test_a_quota_of_nothing_admits_nothing(desk) -> None:
    """And says that it never will."""
    desk.apply("{team: vision, devices: 0}", minute=0)
    report = desk.ask("w", "al")
    assert isinstance(report.frees_us, Missing)
    assert report.frees_us.reason.startswith("never")
    assert desk.ask("c", "al", class_name="cpu", count=0).admitted


def test_a_policy_holds_from_its_date_on(desk) -> None:
    """Applied ahead it changes nothing until then, and then at once, for a process that runs."""
    desk.apply("{role: student, devices: 2}", minute=1, effective=30)
    desk.ask("w", "al", 2)
    assert not desk.ask("v", "al", 3).admitted
    desk.tell("w", "provisioning", 4)
    assert not desk.ask("v", "al", 29.9).admitted
    assert desk.ask("v", "al", 30).admitted


def test_what_events_and_imports_take_counts(desk) -> None:
    """They are facts that no quota stops: it can be over, and nothing more is admitted."""
    for name in "abc":
        desk.tell(name, "provisioning", 0, Placement(class_name="L4"), user="bo")
    desk.tell("h", "running", -60, Placement(class_name="L4"), user="bo", imported=True, now=0)
    report = desk.ask("w", "al", 1)
    team = next(use for use in report.uses if use.bound.words == "team vision: 2 devices at once")
    assert (team.used, team.left, team.is_over, team.fits) == (4, -2, True, False)


def test_who_holds_nobody_knows_how_much_is_told(desk) -> None:
    """A workload that is not placed yet is not counted, and the answer says so."""
    desk.tell("odd", "provisioning", 0, user="bo", requested="H100-80GB")
    report = desk.ask("w", "al", 1)
    assert report.admitted
    assert [(problem.code, problem.where) for problem in report.problems] == [("unplaced", "odd")]
    assert [each.workload for each in report.uses[-1].unknown] == ["odd"]


def test_a_place_is_held_of_one_class(desk) -> None:
    """Of several a quota could count none of them."""
    for several in ("L4|H100-80GB", "H100-80GB | L4"):
        with pytest.raises(Misconfigured) as caught:
            desk.ask("w", "al", class_name=several)
        assert (caught.value.code, caught.value.hint) == ("bad-placement", f"--class {several.split('|')[0].strip()}")


@pytest.mark.parametrize("words", [{"until": -1}, {"until": 0}, {"span": 10**11}])
def test_an_end_that_is_not_ahead_is_refused(desk, words) -> None:
    """Nothing is taken for the past, nor for ever."""
    with pytest.raises(Misconfigured) as caught:
        desk.ask("w", "al", **words)
    assert caught.value.code == "bad-end"
    assert caught.value.hint


def test_a_team_that_the_policy_does_not_list_is_refused(desk) -> None:
    """As of transitions; the next request is answered as ever."""
    with pytest.raises(Misconfigured) as caught:
        desk.ask("w", "al", team="visoin")
    assert caught.value.code == "unknown-team"
    assert desk.ask("w", "al").admitted


def test_what_is_to_be_locked_is_known_before(desk) -> None:
    """Sorted, so that no two wait for each other: the workload, its devices, its user and its team."""
    request = AdmitRequest(
        workload="w", placement=Placement(class_name="L4", count=2, devices=("GPU-a", "GPU-b")), user="al"
    )  # fmt: skip
    book = book_of(desk.ledger)
    book.prepare(desk.at(0))
    asking = Asking(desk.ledger, memory_of(desk.ledger), book, request, now_us=desk.at(0), is_check=False)
    asking.look_ahead(None)
    placement = f"placement:{request.placement.key}"  # nothing of its kind stands in the ledger yet
    assert asking.scopes == ("device:GPU-a", "device:GPU-b", placement, "team:vision", "user:al", "workload:w")


def test_a_stop_that_lies_ahead_still_holds_until_then(desk) -> None:
    """Clocks differ by minutes: the place is free at the moment of the stop."""
    desk.ask("w", "al")
    desk.run("w", 1)
    desk.tell("w", "stopped", 5, now=2)
    assert not desk.ask("v", "al", 3).admitted
    assert desk.ask("v", "al", 5).admitted


def test_asked_again_after_a_stop_ahead_it_comes_after_it(desk) -> None:
    """The order of a workload's own events is kept."""
    desk.ask("w", "al")
    desk.run("w", 1)
    desk.tell("w", "stopped", 5, now=2)
    report = desk.ask("w", "al", 3)
    assert (report.admitted, report.at_us) == (True, desk.at(5))


def test_a_failing_disk_forgets_what_was_not_written(desk, monkeypatch) -> None:
    """The place that a failed yes had in memory is free for the next."""

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as broken:
        broken.setattr("gpuledger.ledger.appending._write", full)
        with pytest.raises(Exception, match=r"[Ss]pace"):
            desk.ask("w", "al", devices=("GPU-a",))
    assert desk.ask("v", "al", devices=("GPU-a",)).admitted


def test_it_can_be_called_without_the_command_line(tmp_path: Path) -> None:
    """The documented call."""
    with Ledger.open(tmp_path / "own.db", mode="append") as ledger:
        request = AdmitRequest(workload="w", placement=Placement(class_name="L4"), user="al")
        assert admit(ledger, request, writer="box.ctl", now_us=1_785_000_000_000_000).admitted


def test_a_policy_applied_by_a_clock_that_is_ahead_stops_nobody(tmp_path) -> None:
    """The one before it holds until then; the question is answered, and not asked for ever."""
    desk = Desk(tmp_path / "ahead.db", "{user: al, devices: 1}")
    desk.apply("{user: al, devices: 0}", minute=5)
    assert desk.ask("w", "al", 0).admitted
    assert not desk.ask("v", "al", 6).admitted
    desk.ledger.close()
