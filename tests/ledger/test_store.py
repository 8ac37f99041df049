"""The ledger as its users meet it: references, latest rows, moments, snapshots, seals, several processes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from gpuledger.errors import Misconfigured, NotFound
from gpuledger.ledger import Ledger, verify_ledger
from gpuledger.ledger.chain import GENESIS, read_heads, seal_root
from gpuledger.model.missing import Missing
from gpuledger.model.moments import HOUR_US, SECOND_US
from gpuledger.model.row_kinds import EVIDENCE
from gpuledger.model.rows import (
    DeviceEvent,
    DriverRecord,
    Pass,
    Seal,
    Sighting,
    UsageRecord,
    Watch,
)


def test_every_row_is_found_by_its_reference(ledger: Ledger, make) -> None:
    """What append hands back can be fetched again by its reference."""
    writer = "some.box:with/slashes.agent"
    for row in ledger.append(make.one_of_each(), writer=writer, at_us=1).added:
        found = ledger.get(row.ref)
        assert (type(found), found.ref) == (type(row), row.ref)
    assert ledger.get(f"watch:{writer}/2") == make.watch()


@pytest.mark.parametrize(
    "ref",
    [
        "",
        "watch",
        "watch:w",
        "watch:w/",
        "watch:w/x",
        "nothing:w/1",
        "watch:/1",
        "watch:w/1 ",
        "watch:w/-1",
        "link:w/1",
    ],
)
def test_what_is_no_reference_is_wrong_usage(ledger: Ledger, ref: str) -> None:
    """The hint lists the kinds."""
    with pytest.raises(Misconfigured, match="not a reference") as caught:
        ledger.get(ref)
    assert caught.value.code == "bad-ref"
    assert "driver" in caught.value.hint


@pytest.mark.parametrize("ref", ["watch:w/1", "driver:box/999999999999999999", "watch:w' OR 1=1 --/1"])
def test_an_absent_row_is_not_found(ledger: Ledger, ref: str) -> None:
    """A good reference to nothing."""
    with pytest.raises(NotFound, match="holds no") as caught:
        ledger.get(ref)
    assert caught.value.code == "no-such-row"


def test_the_latest_row_is_last_in_time(ledger: Ledger, make) -> None:
    """Whatever order rows were appended in."""
    assert ledger.latest(Watch) == Missing("no watch row yet")
    ledger.append([make.watch(5), make.watch(2), make.watch(9, host="other")], writer="w", at_us=1)
    assert ledger.latest(Watch) == make.watch(9, host="other")
    assert ledger.latest(Watch, hosts=["box"]) == make.watch(5)
    assert ledger.latest(Watch, devices=["GPU-x"]) == Missing("no watch row yet")


def test_counts_and_writers(ledger: Ledger, make) -> None:
    """How many rows, and whose."""
    assert (ledger.count(Watch), ledger.writers(), ledger.marks(), ledger.heads()) == (0, (), {}, {})
    ledger.append([make.watch(1), make.watch(2)], writer="b", at_us=1)
    ledger.append([make.metering_pass()], writer="a", at_us=1)
    assert (ledger.count(Watch), ledger.count(Pass), ledger.writers()) == (2, 1, ("a", "b"))
    assert ledger.marks() == {"a": 1, "b": 2}


def test_the_span_that_rows_speak_of(ledger: Ledger, make) -> None:
    """From the earliest start to the latest end, also where only a context's start reaches back."""
    kinds = (*EVIDENCE, UsageRecord)
    empty = Missing("the ledger is empty")
    assert ledger.span_of(kinds) == (empty, empty)
    ledger.append([make.watch(3)], writer="w", at_us=1)
    assert ledger.span_of(kinds) == (make.noon + 3 * SECOND_US, make.noon + 4 * SECOND_US)
    late = make.noon + HOUR_US
    rows = [make.sighting(context_started_at_us=7, since_us=late, until_us=late + 5), make.driver(context_ms=1)]
    ledger.append([*rows, make.record(-1)], writer="w", at_us=1)
    assert ledger.span_of(kinds) == (7, late + 5)
    assert ledger.span_of([DriverRecord]) == (make.noon, make.noon + 1000)
    assert ledger.span_of([Sighting])[0] == 7
    assert ledger.last_moment(kinds) == late + 5


def test_the_newest_row_of_each_chain(ledger: Ledger, make) -> None:
    """The last of a kind in each writer's chain; a chain without that kind has none."""
    ledger.append([make.watch(1), make.watch(2)], writer="a", at_us=1)
    ledger.append([make.watch(3), make.metering_pass()], writer="b", at_us=1)
    ledger.append([make.metering_pass(1)], writer="c", at_us=1)
    assert [row.ref for row in ledger.newest(Watch)] == ["watch:a/2", "watch:b/1"]
    assert ledger.newest(Sighting) == []


def test_seals_chain_all_heads(ledger: Ledger, make) -> None:
    """Each seal names every chain's head and the root before it; the last root can be kept elsewhere."""
    assert ledger.latest_root() == Missing("no seal yet")
    ledger.append([make.watch(1)], writer="a", at_us=1)
    ledger.append([make.watch(2)], writer="b", at_us=1)
    heads = ledger.heads()
    first = ledger.seal(5, writer="a")
    assert read_heads(first.heads) == heads
    assert (first.ref, first.previous_root) == ("seal:a/2", GENESIS)
    assert first.root == seal_root(GENESIS, 5, first.heads) == ledger.latest_root()
    second = ledger.seal(5, writer="b")
    assert second.previous_root == first.root
    assert read_heads(second.heads)["a"] == ledger.heads()["a"]
    third = ledger.seal(3, writer="a")
    assert [third.previous_root, ledger.latest_root()] == [second.root, third.root]
    assert ledger.count(Seal) == 3
    assert verify_ledger(ledger, kept_root=first.root) == []


def test_an_empty_ledger_can_be_sealed(ledger: Ledger) -> None:
    """The first row may be a seal."""
    assert ledger.seal(1, writer="a").heads == "{}"
    assert verify_ledger(ledger) == []


def test_a_snapshot_stands_still(ledger: Ledger, place: Path, make) -> None:
    """Several reads inside see one state, whatever another process appends."""
    ledger.append([make.watch(1)], writer="w", at_us=1)
    with Ledger.open(place, mode="read") as reader:
        with reader.snapshot():
            assert reader.count(Watch) == 1
            ledger.append([make.watch(2)], writer="w", at_us=2)
            assert (reader.count(Watch), reader.marks()) == (1, {"w": 1})
        assert reader.count(Watch) == 2


def test_a_scan_in_progress_does_not_see_what_comes(ledger: Ledger, place: Path, make) -> None:
    """A reader in the middle of its rows is not disturbed by a writer."""
    ledger.append([make.driver(n) for n in range(10)], writer="w", at_us=1)
    with Ledger.open(place, mode="read") as reader:
        rows = reader.scan(DriverRecord, batch=2)
        assert next(rows).number == 1
        ledger.append([make.driver(n) for n in range(10, 20)], writer="w", at_us=2)
        assert len(list(rows)) == 9
        assert reader.count(DriverRecord) == 20


def test_scans_can_run_inside_scans(ledger: Ledger, make) -> None:
    """Looking something up while walking rows."""
    ledger.append([*(make.watch(n) for n in range(3)), make.device()], writer="w", at_us=1)
    pairs = [
        (a.number, b.number, ledger.count(DeviceEvent)) for a in ledger.scan(Watch, batch=1) for b in ledger.scan(Watch)
    ]
    assert len(pairs) == 9


def test_closing_twice_is_fine(place: Path) -> None:
    """A context manager and an early close get along."""
    with Ledger.open(place, mode="append") as ledger:
        ledger.close()


_APPENDER = """
import sys
from gpuledger.ledger import Ledger
from gpuledger.model.rows import Watch

EVERY_STORE = True

place, writer, offset = sys.argv[1], sys.argv[2], int(sys.argv[3])
with Ledger.open(place, mode="append") as ledger:
    for batch in range(30):
        rows = [Watch(host="h", device="", source="process", method="poll", interval_ms=1, since_us=n, until_us=n + 1,
                      status="ok") for n in range(offset + batch * 10, offset + batch * 10 + 15)]
        ledger.append(rows, writer=writer, at_us=batch)
"""


@pytest.mark.parametrize("same_writer", [True, False])
def test_two_processes_append_at_once(place: Path, same_writer: bool) -> None:
    """Overlapping evidence from two processes is counted once, into one chain or two, while a reader looks on."""
    Ledger.open(place, mode="append").close()
    writers = ["w", "w"] if same_writer else ["a", "b"]
    started = [
        subprocess.Popen([sys.executable, "-c", _APPENDER, str(place), writer, str(offset)])
        for writer, offset in zip(writers, (0, 100), strict=True)
    ]
    seen = 0
    while any(process.poll() is None for process in started):
        with Ledger.open(place, mode="append") as reader, reader.snapshot():
            count = reader.count(Watch)
            assert count == sum(reader.marks().values())
            assert count >= seen
            seen = count
    assert [process.wait(60) for process in started] == [0, 0]
    with Ledger.open(place, mode="read") as ledger:
        assert ledger.count(Watch) == 405
        assert set(ledger.writers()) == set(writers)
        assert verify_ledger(ledger) == []
