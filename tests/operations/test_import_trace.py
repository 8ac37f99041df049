"""A trace and its map, read together."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpuledger.errors import BadInput, Misconfigured
from gpuledger.model.lifecycle import State
from gpuledger.model.moments import iso
from gpuledger.operations.import_trace import preset_map, presets, read_trace

TRACE = "job,who,from,to,gpus\n1,ann,2026-11-01 10:00:00,2026-11-01 12:00:00,2\n"
MAP = "columns: {id: job, user: who, start: from, end: to, devices: gpus}\nconstants: {class: L4}\nunits: {time: iso}\n"


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    """A trace in local time, and a map without a zone."""
    trace, trace_map = tmp_path / "book.csv", tmp_path / "lab.yaml"
    trace.write_text(TRACE, encoding="utf-8")
    trace_map.write_text(MAP, encoding="utf-8")
    return trace, trace_map


def test_a_map_names_the_source_and_a_zone_may_stand_beside_it(files: tuple[Path, Path]) -> None:
    """By the map's name, which is the same for next month's file."""
    history = read_trace(files[0], preset=None, map_file=files[1], zone="Europe/Berlin")
    assert history.source == "trace:lab"
    assert [(each.state, iso(each.at_us)) for each in history.transitions] == [
        (State.PROVISIONING, "2026-11-01T09:00:00Z"),
        (State.RUNNING, "2026-11-01T09:00:00Z"),
        (State.STOPPED, "2026-11-01T11:00:00Z"),
    ]
    named = read_trace(files[0], preset=None, map_file=files[1], zone="UTC", source="trace:cluster-7")
    assert {each.source for each in named.transitions} == {"trace:cluster-7"}


def test_local_times_need_a_zone(files: tuple[Path, Path]) -> None:
    """With the line."""
    with pytest.raises(BadInput) as refused:
        read_trace(files[0], preset=None, map_file=files[1])
    assert (refused.value.code, refused.value.line) == ("zone-needed", 2)


@pytest.mark.parametrize("both", [True, False])
def test_a_trace_is_read_by_a_preset_or_a_map(files: tuple[Path, Path], both: bool) -> None:
    """One of the two."""
    with pytest.raises(Misconfigured) as refused:
        read_trace(files[0], preset="openb" if both else None, map_file=files[1] if both else None)
    assert refused.value.code == "map-needed"


def test_presets_are_maps_to_start_from() -> None:
    """Each can be printed; an unknown one is refused with the known names."""
    for name in presets():
        assert preset_map(name).startswith("#")
    with pytest.raises(Misconfigured) as refused:
        preset_map("philly")
    assert (refused.value.code, "openb" in refused.value.hint) == ("unknown-preset", True)


def test_a_file_that_is_no_text_says_what_helps(files: tuple[Path, Path]) -> None:
    """Latin-1 out of a spreadsheet."""
    files[0].write_bytes("job,who\n1,Jürgen\n".encode("latin-1"))
    with pytest.raises(BadInput) as refused:
        read_trace(files[0], preset=None, map_file=files[1], zone="UTC")
    assert (refused.value.code, "iconv" in refused.value.hint) == ("not-text", True)
