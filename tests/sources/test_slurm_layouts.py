"""Columns of known programs: told for a dump that has no header, never used by themselves."""

from __future__ import annotations

from zoneinfo import ZoneInfo

import pytest

from gpuledger.errors import BadInput
from gpuledger.sources.slurm_layouts import LAYOUTS, Layout, known_layout
from gpuledger.sources.slurm_sacct import parse

XDMOD = (
    "9|9|hpc|gpu|normal|vis|vis|100|ann|2001|2026-03-02T08:00:00|2026-03-02T08:00:00|2026-03-02T09:00:00|"
    "2026-03-02T10:00:00|01:00:00|0:0|CANCELLED by 2001|1|4|4|8Gn|cpu=4,node=1|cpu=4,gres/gpu=2,node=1|02:00:00|n1|a"
)


def test_a_row_in_the_shapes_of_a_layout_has_it() -> None:
    """As many fields, and a job, a state and times where the program asks for them."""
    layout = known_layout(XDMOD.split("|"))
    assert layout is not None
    assert layout.program == "Open XDMoD"
    assert known_layout(XDMOD.replace("2026-03-02T09:00:00", "soon").split("|")) is None
    assert known_layout(XDMOD.split("|")[:-1]) is None


@pytest.mark.parametrize("layout", LAYOUTS)
def test_each_names_what_an_import_needs(layout: Layout) -> None:
    """So that what is told to be typed works."""
    assert {"jobid", "state", "start", "end", "alloctres"} <= {column.lower() for column in layout.columns}
    assert len(set(layout.columns)) == len(layout.columns)


def test_a_dump_without_header_says_what_to_type() -> None:
    """And with that it is read."""
    with pytest.raises(BadInput) as error:
        parse(f"{XDMOD}\n", path="dump", zone=None)
    assert error.value.code == "no-header"
    told = error.value.hint.partition("--columns ")[2].partition(";")[0]
    [row] = parse(f"{XDMOD}\n", path="dump", zone=ZoneInfo("UTC"), columns=told.split(",")).rows
    assert (row.job, row.state, row.allocated) == ("9", "CANCELLED", "cpu=4,gres/gpu=2,node=1")
