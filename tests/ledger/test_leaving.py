"""Which rows leave: none that an hour after the bound, an agent or a later event can need."""

from __future__ import annotations

from pathlib import Path

from gpuledger.ledger.leaving import LEAVE, REASONS, Leaving
from gpuledger.ledger.store import Ledger
from gpuledger.model.missing import Missing
from gpuledger.model.moments import DAY_US, HOUR_US
from gpuledger.model.rows import DriverRecord, Row, Sighting
from gpuledger.model.workload_rows import ExpectedEnd, Hold, WorkloadEvent
from old_evidence import JULY_US, JUNE_US, MAY_US, NOW_US, OldBox

MONTHS = [("2026-05", MAY_US, JUNE_US), ("2026-06", JUNE_US, JULY_US)]


def box(place: Path | str) -> OldBox:
    made = OldBox(place, days=75, jobs=4)
    made.fill()
    return made


def rows(ledger: Ledger, before_us: int, kind: type[Row], unplaced: tuple[str, ...] = ()) -> set[tuple[str, int]]:
    """Writer and number of what leaves of a kind."""
    leaving = Leaving(ledger, before_us, [month for month in MONTHS if month[1] < before_us], unplaced)
    return {
        (row[0], row[1]) for month in leaving.months(kind) for part in leaving.rows(kind, month, 50) for row in part
    }


def test_what_lives_across_the_bound_stays(tmp_path: Path) -> None:
    """The daemon of May and June stays before June, all of it, and leaves before July but for what settles hours."""
    ledger = box(tmp_path / "l.db").ledger
    daemon = {(row.writer, row.number) for row in ledger.scan(Sighting) if row.pid == 77}
    assert not rows(ledger, JUNE_US, Sighting) & daemon
    assert daemon <= rows(ledger, JULY_US, Sighting)
    settles = {(row.writer, row.number) for row in ledger.scan(DriverRecord) if row.pid == 77}
    assert not settles & rows(ledger, JULY_US, DriverRecord)


def test_what_is_near_the_bound_or_newest_stays(tmp_path: Path) -> None:
    """Rows of the last four hours before the bound, and the newest 128 that a driver may still list."""
    ledger = box(tmp_path / "l.db").ledger
    gone = rows(ledger, JULY_US, DriverRecord)
    told = {(row.writer, row.number): row for row in ledger.scan(DriverRecord)}
    assert gone
    assert all(told[key].read_at_us < JULY_US - 3 * HOUR_US for key in gone)
    newest = sorted(told)[-128:]
    assert not gone & set(newest)


def test_of_a_workload_the_last_event_stays(tmp_path: Path) -> None:
    """Ended before the bound: all but its stop and release leaves. Ended after it, or unplaced: nothing does."""
    ledger = box(tmp_path / "l.db").ledger
    events = {(row.writer, row.number): row for row in ledger.scan(WorkloadEvent)}
    gone = [events[key] for key in rows(ledger, JUNE_US, WorkloadEvent, ("w3",))]
    names = {row.workload for row in gone}
    assert "w2" in names
    assert not {"across", "w3", "w40"} & names
    assert {row.state for row in gone if row.workload == "w2"} == {"pending", "provisioning", "running"}
    holds = {(row.writer, row.number): row for row in ledger.scan(Hold)}
    assert {holds[key].change for key in rows(ledger, JUNE_US, Hold)} == {"taken"}
    assert not rows(ledger, JUNE_US, ExpectedEnd)


def test_rows_without_a_start_stay(tmp_path: Path) -> None:
    """Of a pid that a dump told without a start every row stays: they decide each other."""
    ledger = box(tmp_path / "l.db").ledger
    row = next(row for row in ledger.scan(DriverRecord) if row.pid == 1003)
    before = rows(ledger, JULY_US, Sighting)
    pid = {(each.writer, each.number) for each in ledger.scan(Sighting) if each.pid == 1003}
    assert pid & before
    dump = DriverRecord(
        host="box", device=row.device, pid=1003, started_at_us=Missing("a dump gives none"), context_ms=17,
        peak_memory_mib=1, gpu_percent=1, memory_percent=1, read_at_us=NOW_US, method="import",
    )  # fmt: skip
    ledger.append([dump], writer="box.import", at_us=NOW_US)
    assert not pid & rows(ledger, JULY_US, Sighting)


def test_every_reason_has_its_words(tmp_path: Path) -> None:
    """What stays is counted by reason, and each reason reads as the end of a sentence."""
    ledger = box(tmp_path / "l.db").ledger
    leaving = Leaving(ledger, JULY_US, MONTHS, ())
    assert {kind for kind, _ in leaving.staying} <= set(LEAVE)
    assert {reason for _, reason in leaving.staying} <= set(REASONS)
    for kind in LEAVE:
        left = sum(len(part) for month in leaving.months(kind) for part in leaving.rows(kind, month, 100))
        stays = sum(count for (each, _), count in leaving.staying.items() if each is kind)
        assert left + stays == sum(1 for row in ledger.scan(kind) if _ends(row) < JULY_US)
    first_us, last_us = leaving.span(DriverRecord, "2026-05")
    assert MAY_US <= first_us < MAY_US + DAY_US
    assert JUNE_US - DAY_US < last_us < JUNE_US


def _ends(row: Row) -> int:
    if isinstance(row, DriverRecord):
        return int(row.started_at_us) + row.context_ms * 1000  # type: ignore[call-overload]
    return row.until_us if isinstance(row, Sighting) else row.at_us  # type: ignore[attr-defined, no-any-return]
