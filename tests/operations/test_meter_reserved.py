"""Metering of reserved time: closed hours once, late facts for 48 hours, history at any age, nothing twice."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from typing import Any

import pytest

from control_plane import ControlPlane
from gpuledger.ledger.store import Ledger
from gpuledger.model.meters import GPU_RESERVED
from gpuledger.model.rows import Pass, UsageCorrection, UsageRecord
from gpuledger.model.workload_rows import PlacementRow, WorkloadEvent
from gpuledger.operations.blind_reserved import late_differences
from gpuledger.operations.meter import meter
from gpuledger.operations.usage_reserved import usage_reserved
from gpuledger.operations.verify import verify
from gpuledger.operations.verify_reserved import differences

EVERY_STORE = True


def agrees(plane: ControlPlane, hour: float) -> None:
    """What is recorded is what the events say, and a second pass changes nothing."""
    again = plane.meter(hour)
    assert (again.records, again.corrections) == ((), ())
    assert verify(plane.ledger, now_us=plane.at(hour)).checks[-2].findings == ()


def test_a_closed_hour_becomes_a_record_of_each_placement(plane) -> None:
    """Five minutes after its end, in whole seconds, with the events that decide it."""
    plane.run("a", Fraction(1, 2), None, plane.placement("n1"))
    assert not plane.meter(Fraction(61, 60)).records
    report = plane.meter(Fraction(66, 60))
    assert [(row.quantity, row.host, row.evidence_count, row.context) for row in report.records] == [
        (1800, "n1", 2, "reserved")
    ]
    agrees(plane, Fraction(67, 60))


def test_class_decides_the_meters(plane) -> None:
    """A CPU fallback is cpu time, whatever was asked for; a MIG slice has its memory counted beside."""
    plane.run("fallback", 0, 1, plane.placement(class_name="cpu", count=0))
    plane.run("slice", 0, 1, plane.placement(class_name="A100-SXM4-40GB/1g.5gb"))
    plane.meter(2)
    assert plane.held("cpu.reserved") == {(0, "fallback", "n1"): 3600}
    assert plane.held("gpu.reserved") == {(0, "slice", "n1"): 3600} == plane.held("mig.memory")


def test_a_stop_that_comes_late_is_a_correction(plane) -> None:
    """Within 48 hours: the hours after it are taken back, and the correction names the stop."""
    plane.run("a", 0, None, plane.placement())
    plane.meter(4)
    plane.tell("a", "stopped", Fraction(3, 2))
    report = plane.meter(5)
    assert [(row.delta, row.reason) for row in report.corrections] == [
        (-1800, "late-evidence"), (-3600, "late-evidence"),
    ]  # fmt: skip
    assert plane.held() == {(0, "a", "n1"): 3600, (1, "a", "n1"): 1800}
    agrees(plane, 5)


def test_a_move_corrects_both_placements(plane) -> None:
    """A restart elsewhere that is told late: what stood on the old machine goes, what ran on the new one comes."""
    plane.run("a", 0, None, plane.placement("n1"))
    plane.meter(3)
    plane.tell("a", "running", 1, plane.placement("n2"))
    report = plane.meter(Fraction(31, 10))
    assert plane.held() == {(0, "a", "n1"): 3600, (1, "a", "n2"): 3600, (2, "a", "n2"): 3600}
    assert sorted(row.delta for row in report.corrections) == [-3600, 3600]
    agrees(plane, Fraction(31, 10))


def test_a_restart_elsewhere_never_rewrites_an_earlier_hour(plane) -> None:
    """Each interval keeps the placement of its own admission."""
    plane.run("a", 0, 1, plane.placement("n1"))
    plane.run("a", 2, 3, plane.placement("n2"))
    plane.meter(5)
    assert plane.held() == {(0, "a", "n1"): 3600, (2, "a", "n2"): 3600}


def test_what_is_final_is_listed_and_not_booked(plane) -> None:
    """48 hours after the first pass that covered an hour, its difference waits for a person."""
    plane.run("a", 0, 2, plane.placement())
    plane.meter(3)
    plane.tell("a", "stopped", 1, event_id="late")
    report = plane.meter(3 + 49)
    assert not report.corrections
    assert report.late == 1
    (late,) = late_differences(plane.ledger, since_us=plane.at(0), until_us=plane.at(52), now_us=plane.at(52))
    assert (late.workload, late.recorded, late.derived) == ("a", 3600, 0)
    assert verify(plane.ledger, now_us=plane.at(53)).checks[-2].findings == ()


def test_an_outage_of_the_meter_loses_nothing(plane) -> None:
    """Off for three days: hours never covered are inserted, and their 48 hours begin then."""
    plane.run("a", 0, None, plane.placement())
    plane.meter(2)
    report = plane.meter(75)
    assert len(report.records) == 73
    plane.tell("a", "stopped", 30)
    assert sum(row.delta for row in plane.meter(76).corrections) == -3600 * 44
    agrees(plane, 77)


def test_history_is_inserted_at_any_age(plane) -> None:
    """A declared past is metered once, whatever was covered meanwhile; a second import adds nothing."""
    plane.run("live", 0, None, plane.placement())
    plane.meter(2)
    plane.meter(100)
    plane.run("old", -1000, -998, plane.placement("old"), declared=True)
    plane.run("job", 10, 11, plane.placement("n3"), declared=True, source="trace")
    report = plane.meter(101)
    assert {(row.hour_us, row.host, row.quantity) for row in report.records if row.host != "n1"} == {
        (plane.at(-1000), "old", 3600), (plane.at(-999), "old", 3600), (plane.at(10), "n3", 3600),
    }  # fmt: skip
    assert not report.corrections
    agrees(plane, 101)


def test_history_that_is_open_ends_with_its_dump(plane) -> None:
    """A running row of a dump is metered to the dump's own time, and no further."""
    plane.run("job", 0, None, plane.placement(), declared=True, source="slurm")
    plane.meter(5)
    assert plane.held() == {}
    plane.beat(2, source="slurm")
    plane.meter(6)
    assert sum(plane.held().values()) == 7200
    plane.tell("job", "stopped", 4, declared=True, source="slurm")
    plane.beat(7, source="slurm")
    plane.meter(8)
    assert sum(plane.held().values()) == 4 * 3600
    agrees(plane, 9)


def test_a_late_placement_is_inserted_at_any_age(plane) -> None:
    """Running without one is skipped, never of an empty class; when it comes, the time is booked."""
    plane.tell("a", "provisioning", 0)
    plane.tell("a", "running", 1)
    plane.tell("a", "stopped", 2)
    assert not plane.meter(3).records
    plane.tell("a", "booting", Fraction(1, 2), plane.placement("n4"))
    report = plane.meter(80)
    assert [(row.host, row.quantity) for row in report.records] == [("n4", 3600)]
    assert (report.corrections, report.late) == ((), 0)
    agrees(plane, 81)


def test_a_late_placement_may_begin_before_all_that_was_covered(plane) -> None:
    """The hours before it stand ready as new ones: they are booked once, with those that were without a placement;
    those that were not running are late."""
    plane.run("b", 1, None, plane.placement("n2"))
    plane.tell("a", "running", 4)
    plane.meter(6)
    plane.tell("a", "running", Fraction(1, 4), plane.placement("n4"))
    report = plane.meter(60)
    hours = {hour: seconds for (hour, workload, _), seconds in plane.held().items() if workload == "a"}
    assert (hours[0], hours[4], hours[5], 1 in hours, 3 in hours) == (2700, 3600, 3600, False, False)
    assert sum(hours.values()) == 2700 + 55 * 3600
    assert report.late == 3
    assert not plane.meter(60).records
    agrees(plane, 60)


def test_history_and_a_late_placement_meet_in_one_hour(plane) -> None:
    """Declared time stands ready at any age; what ran on without a placement is booked beside it, each once."""
    plane.run("b", 0, None, plane.placement("n2"))
    plane.tell("a", "running", Fraction(21, 2))
    plane.meter(20)
    plane.tell("a", "provisioning", 5, plane.placement("n4"), declared=True, user="bo")
    plane.tell("a", "running", 5, declared=True, user="bo")
    plane.tell("a", "booting", Fraction(41, 4), plane.placement("n5"), declared=True, user="bo")
    plane.tell("a", "stopped", 12, declared=True, user="bo")
    plane.meter(80)
    held = {(hour, where): seconds for (hour, workload, where), seconds in plane.held().items() if workload == "a"}
    assert held == {
        **{(hour, "n4"): 3600 for hour in range(5, 10)}, (10, "n4"): 900, (10, "n5"): 1800, (11, "n5"): 3600,
    }  # fmt: skip
    agrees(plane, 80)


def test_a_silent_controller_is_counted_to_its_last_beat(plane) -> None:
    """When it returns, what it missed is counted too; a stop it missed ends it where it says."""
    plane.run("a", 0, None, plane.placement())
    plane.run("b", 0, None, plane.placement("n2"))
    plane.beat(Fraction(3, 2))
    plane.meter(5)
    assert plane.held() == {(0, "a", "n1"): 3600, (1, "a", "n1"): 1800, (0, "b", "n2"): 3600, (1, "b", "n2"): 1800}
    plane.tell("b", "stopped", Fraction(13, 2))
    plane.beat(7)
    plane.meter(Fraction(71, 10))
    assert sum(seconds for (_, workload, _), seconds in plane.held().items() if workload == "a") == 7 * 3600
    assert sum(seconds for (_, workload, _), seconds in plane.held().items() if workload == "b") == 6 * 3600 + 1800
    agrees(plane, Fraction(72, 10))


def test_flapping_within_an_hour_is_rounded_once(plane) -> None:
    """A hundred stays of 1.5 s are 150 s, not 100."""
    plane.tell("a", "provisioning", 0, plane.placement())
    for number in range(100):
        second = Fraction(number * 3)
        plane.tell("a", "running", second / 3600)
        plane.tell("a", "booting", (second + Fraction(3, 2)) / 3600)
    plane.tell("a", "stopped", Fraction(1, 2))
    (record,) = plane.meter(2).records
    assert record.quantity == 150
    assert record.evidence_count == 202
    agrees(plane, 3)


@pytest.mark.parametrize("parts", [3, 7, 4])
def test_parts_of_a_device_make_a_device(plane, parts) -> None:
    """Thirds, sevenths and quarters over an hour: exactly 3,600 device-seconds."""
    for part in range(parts):
        plane.run(f"w{part}", 0, 1, plane.placement(share=f"1/{parts}"))
    plane.meter(2)
    report = usage_reserved(
        plane.ledger, meter=GPU_RESERVED, by=("workload",), since_us=plane.at(0), until_us=plane.at(1),
        now_us=plane.at(2),
    )  # fmt: skip
    assert report.total == 3600
    assert len(report.rows) == parts


def test_two_meters_at_once_book_nothing_twice(plane) -> None:
    """The one that comes second derives again from what now stands."""
    plane.run("a", 0, 2, plane.placement())
    with Ledger.open(plane.place, mode="append") as other:
        one, two = plane.meter(3), plane.meter(3, other, writer="far.meter")
    assert len(one.records) == 2
    assert not two.records
    plane.tell("a", "stopped", 1, event_id="late")
    with Ledger.open(plane.place, mode="append") as other:
        one, two = plane.meter(4), plane.meter(4, other, writer="far.meter")
    assert len(one.corrections) == 1
    assert not two.corrections
    assert plane.held() == {(0, "a", "n1"): 3600}


def test_meters_that_race_agree(plane) -> None:
    """Four processes, each with its own pass over the same day: every hour once."""
    for number in range(20):
        plane.run(f"w{number}", 0, 24, plane.placement(f"n{number}"))
    plane.ledger.close()
    program = (
        "import sys; from gpuledger.ledger.store import Ledger\n"
        "from gpuledger.operations.meter import meter\n"
        "with Ledger.open(sys.argv[1], mode='append') as ledger:\n"
        "    meter(ledger, now_us=int(sys.argv[2]), writer=sys.argv[3])\n"
    )
    racing = [
        subprocess.Popen([sys.executable, "-c", program, str(plane.place), str(plane.at(30)), f"m{number}.meter"])
        for number in range(4)
    ]
    assert [one.wait(timeout=120) for one in racing] == [0, 0, 0, 0]
    plane.ledger = Ledger.open(plane.place, mode="append")
    assert plane.ledger.count(UsageRecord) == 20 * 24
    assert plane.ledger.count(UsageCorrection) == 0
    assert set(plane.held().values()) == {3600}


def test_a_pass_that_is_killed_books_all_or_nothing(plane) -> None:
    """kill -9 in the middle of its transaction: the next pass books what it would have booked."""
    for number in range(50):
        plane.run(f"w{number}", 0, 48, plane.placement(f"n{number}"))
    plane.ledger.close()
    program = (
        "import os, signal, sys\n"
        "import gpuledger.ledger.appending as appending\n"
        "from gpuledger.ledger.store import Ledger\n"
        "from gpuledger.operations.meter import meter\n"
        "appending.link_hash = lambda *words, **more: os.kill(os.getpid(), signal.SIGKILL)\n"
        "ledger = Ledger.open(sys.argv[1], mode='append')\n"
        "meter(ledger, now_us=int(sys.argv[2]), writer='box.meter')\n"
    )
    killed = subprocess.run([sys.executable, "-c", program, str(plane.place), str(plane.at(60))], check=False)
    assert killed.returncode == -9
    plane.ledger = Ledger.open(plane.place, mode="append")
    assert plane.ledger.count(UsageRecord) == plane.ledger.count(Pass) == 0
    assert len(plane.meter(60).records) == 50 * 48
    agrees(plane, 60)


def test_with_nothing_new_nobody_is_looked_at(plane, monkeypatch) -> None:
    """The rule is not even run: work does not grow with history."""
    plane.run("a", 0, 2, plane.placement())
    plane.meter(10)

    def never(*words: object, **more: object) -> None:
        raise AssertionError("derived again")

    monkeypatch.setattr("gpuledger.ledger.reserved.Reading.derive", never)
    assert not plane.meter(10).records


def test_processes_and_reservations_share_one_pass(box, new_place) -> None:
    """A box with an agent and a control plane: neither takes back what the other recorded."""
    box.tell_a_morning()
    plane = ControlPlane(new_place("plane.db"))
    plane.ledger.close()
    plane.ledger, plane.place = box.ledger, box.place
    plane.run("a", 0, 2, plane.placement("box"))
    meter(box.ledger, now_us=box.at(125), writer="box.meter")
    box.append(box.settled(11, 30, 60_000, read=126), minute=126)
    plane.tell("a", "stopped", 1, event_id="late")
    report = meter(box.ledger, now_us=box.at(130), writer="box.meter")
    assert {(row.meter, row.delta) for row in report.corrections} == {("gpu.context", 60_000), ("gpu.reserved", -3600)}
    assert not meter(box.ledger, now_us=box.at(130), writer="box.meter").corrections
    assert all(check.findings == () for check in verify(box.ledger, now_us=box.at(131)).checks)


def in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Backlogs in parts of a few events and records."""
    monkeypatch.setattr("gpuledger.operations.reserved_windows.EVENTS_AT_ONCE", 7)
    monkeypatch.setattr("gpuledger.operations.meter_reserved.RECORDS_AT_ONCE", 10)


def test_a_backlog_in_parts_is_the_same(plane, monkeypatch) -> None:
    """Three days off, a hundred records, many transactions: each hour once, and covered without a gap."""
    in_parts(monkeypatch)
    plane.run("first", 0, 1, plane.placement("n9"))
    plane.meter(2)
    for number in range(5):
        plane.run(f"w{number}", 2 + number * 9, 20 + number * 12, plane.placement(f"n{number}"))
    report = plane.meter(75)
    assert len(report.records) == sum(18 + number * 3 for number in range(5)) == plane.ledger.count(UsageRecord) - 1
    assert {row.number for row in report.records} == {row.number for row in plane.ledger.scan(UsageRecord)} - {1}
    passes = list(plane.ledger.scan(Pass))
    assert len(passes) > 5
    assert all(one.covered_until_us == two.covered_from_us for one, two in pairwise(passes))
    assert (report.covered_from_us, report.covered_until_us) == (plane.at(1), plane.at(74))
    assert sum(row.records_added for row in passes) == plane.ledger.count(UsageRecord)
    agrees(plane, 75)


def test_a_backlog_that_is_cut_off_goes_on(plane, monkeypatch) -> None:
    """Killed between two parts: what is booked stands and verifies, the next pass books the rest."""
    in_parts(monkeypatch)
    for number in range(4):
        plane.run(f"w{number}", number, number + 10, plane.placement(f"n{number}"))
    append_if, appended = plane.ledger.append_if, []

    def once(*words: Any, **more: Any) -> Any:
        if appended:
            raise KeyboardInterrupt
        appended.append(append_if(*words, **more))
        return appended[0]

    monkeypatch.setattr(plane.ledger, "append_if", once)
    with pytest.raises(KeyboardInterrupt):
        plane.meter(20)
    monkeypatch.setattr(plane.ledger, "append_if", append_if)
    assert 0 < plane.ledger.count(UsageRecord) < 40
    assert verify(plane.ledger, now_us=plane.at(20)).checks[-2].findings == ()
    plane.meter(20)
    assert plane.ledger.count(UsageRecord) == 40
    assert plane.ledger.count(UsageCorrection) == 0
    agrees(plane, 20)


def test_two_meters_in_the_same_backlog(plane, monkeypatch) -> None:
    """The one that is overtaken in the middle begins anew with what is left."""
    in_parts(monkeypatch)
    for number in range(4):
        plane.run(f"w{number}", number, number + 10, plane.placement(f"n{number}"))
    append_if, calls = plane.ledger.append_if, []

    def overtaken(*words: Any, **more: Any) -> Any:
        calls.append(1)
        if len(calls) == 2:
            with Ledger.open(plane.place, mode="append") as other:
                plane.meter(20, other, writer="far.meter")
        return append_if(*words, **more)

    monkeypatch.setattr(plane.ledger, "append_if", overtaken)
    report = plane.meter(20)
    assert 0 < len(report.records) < 40
    assert plane.ledger.count(UsageRecord) == 40
    assert set(plane.held().values()) == {3600}
    agrees(plane, 20)


def test_late_history_of_new_workloads_is_inserted_in_covered_hours(plane) -> None:
    """Beside time that is metered live; a workload that a pass knew already is compared."""
    plane.run("live", 0, None, plane.placement("n1"))
    plane.meter(10)
    for number in range(3):
        plane.run(f"old{number}", 2, 5, plane.placement(f"n{number}"), declared=True)
    report = plane.meter(11)
    assert len([row for row in report.records if row.hour_us < plane.at(9)]) == 9
    assert report.corrections == ()
    plane.tell("old0", "failed", 4, declared=True)
    assert [row.delta for row in plane.meter(11).corrections] == [-3600]
    agrees(plane, 11)


@pytest.mark.parametrize("engine", ["sqlite"], indirect=True)
def test_records_that_no_pass_tells_of_stand(plane) -> None:
    """A ledger whose passes are not all there: what is recorded is not recorded twice."""
    plane.run("a", 0, 3, plane.placement("n1"))
    records = list(plane.meter(2).records)
    with Ledger.open(plane.place.with_name("other.db"), mode="append") as other:
        texts = plane.ledger.texts()
        keys = {key: other.key_of(text) for key, text in texts.items()}
        events = [replace(row, subject=keys[row.subject]) for row in plane.ledger.scan(WorkloadEvent)]
        other.append([*plane.ledger.scan(PlacementRow), *events], writer="box.transition", at_us=plane.at(3))
        other.append([replace(row, subject=keys[row.subject]) for row in records], writer="box.meter", at_us=0)
        report = plane.meter(5, other, writer="box.meter")
        assert len(report.records) == 2
        assert other.count(UsageRecord) == 3


@pytest.mark.parametrize("hour", [5, 10])
def test_what_a_clock_ahead_took_for_late_is_booked_by_the_right_one(plane, hour) -> None:
    """It had seen the stop, and its hours were final to it alone; a heartbeat that came back as well."""
    plane.run("a", 0, None, plane.placement())
    plane.run("b", 0, None, plane.placement("n2"), source="other")
    plane.beat(1, source="other")
    plane.meter(4)
    plane.tell("a", "stopped", 1)
    plane.beat(3, source="other")
    assert plane.meter(60).late == 4
    assert verify(plane.ledger, now_us=plane.at(hour)).checks[-2].findings == ()
    report = plane.meter(hour)
    assert sorted(row.delta for row in report.corrections) == [-3600, -3600, 3600, 3600]
    assert all(row.evidence_count for row in report.corrections)
    agrees(plane, 60)


def test_a_pass_by_a_clock_behind_books_all_that_it_marks_as_seen(plane) -> None:
    """Two servers a second apart, or --now: hours that another closed later than this clock says are corrected too."""
    plane.run("a", 0, None, plane.placement())
    plane.meter(30)
    plane.tell("a", "stopped", 1)
    plane.run("b", 15, None, plane.placement("n2"))
    assert len(plane.meter(20).corrections) == 28 + 14
    assert not plane.meter(31.5).corrections
    assert sum(seconds for (_, name, _), seconds in plane.held().items() if name == "a") == 3600
    assert sum(seconds for (_, name, _), seconds in plane.held().items() if name == "b") == 16 * 3600
    assert list(differences(plane.ledger, now_us=plane.at(31.5))) == []
