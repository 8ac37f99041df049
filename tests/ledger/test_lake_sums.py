"""Sums over a lake: grouped by what decides, and differences between what was exported and derived."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gpuledger.ledger.duck import Duck
from gpuledger.ledger.lake import Lake
from gpuledger.ledger.lake_sums import differences, sums
from gpuledger.operations.meter_lake import meter_lake
from lakes import exported, told


def metered(folder: Path) -> tuple[Lake, dict[str, Any]]:
    """A lake of which passes had covered all, and the window to ask for."""
    plane = told(folder / "a.db")
    plane.meter(150)
    exported(plane, folder / "lake", 150)
    plane.ledger.close()
    return Lake.open(folder / "lake"), {"since_us": plane.at(0), "until_us": plane.at(149), "uncovered": ()}


def test_subjects_that_differ_in_nothing_asked_are_one(tmp_path: Path) -> None:
    """Seconds by team and placement; without fields nobody is told apart."""
    lake, window = metered(tmp_path)
    with Duck(tmp_path) as duck:
        by_team = sums(lake, duck, "gpu.reserved", step="window", fields=("team",), places=("class_name",), **window)
        assert {one.text: one.seconds for one in by_team} == {("vision",): 9000, ("nlp",): 5 * 3600}
        nobody = list(sums(lake, duck, "gpu.reserved", step="month", fields=(), places=("count",), **window))
        assert {one.text for one in nobody} == {()}
        assert sum(one.seconds for one in nobody) == 27_000
        with pytest.raises(ValueError, match="no colour"):
            list(sums(lake, duck, "gpu.reserved", step="month", fields=("colour",), places=("count",), **window))


def test_placements_that_differ_in_nothing_asked_are_one(tmp_path: Path) -> None:
    """A third of a device and a whole other one, without names: told apart by share or machine, and else together."""
    lake, window = metered(tmp_path)
    with Duck(tmp_path) as duck:
        seconds = {
            places: sorted(
                one.seconds
                for one in sums(lake, duck, "gpu.reserved", step="window", fields=(), places=places, **window)
            )
            for places in (("class_name",), ("class_name", "share_den"), ("machine",), ("devices",))
        }
    assert seconds == {
        ("class_name",): [27_000],
        ("class_name", "share_den"): [9000, 18_000],
        ("machine",): [9000, 18_000],
        ("devices",): [27_000],
    }


def test_late_events_show_as_differences(tmp_path: Path) -> None:
    """A stop told after the pass: exported hours say more than the events now do."""
    plane = told(tmp_path / "a.db")
    plane.meter(150)
    plane.tell("late", "stopped", 145)
    exported(plane, tmp_path / "lake", 150)
    plane.ledger.close()
    meter_lake(tmp_path / "lake")
    with Duck(tmp_path) as duck:
        found = differences(Lake.open(tmp_path / "lake"), duck)
    assert [(one.exported, one.derived) for one in found] == [(3600, 0)] * 4
