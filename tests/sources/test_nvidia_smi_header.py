"""Headers of nvidia-smi's CSV, and the cells of its rows."""

from __future__ import annotations

import pytest

from gpuledger.sources.nvidia_smi_header import Header, cells_of, cut, looks_like_rows, read_header
from gpuledger.sources.nvidia_smi_outputs import Kind, Rejected


def header(line: str) -> Header:
    found = read_header(line, 1)
    assert isinstance(found, Header)
    return found


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("pid, gpu_utilization [%], mem_utilization [%], max_memory_usage [MiB], time [ms]", Kind.ACCOUNTED),
        ("time [ms], pid", Kind.ACCOUNTED),
        ("gpu_uuid,pid,gpu_util,time", Kind.ACCOUNTED),
        ('"pid","time [ms]"', Kind.ACCOUNTED),
        ("pid;time [ms]", Kind.ACCOUNTED),
        ("pid\ttime [ms]", Kind.ACCOUNTED),
        ("timestamp, gpu_uuid, pid, process_name, used_gpu_memory [MiB]", Kind.COMPUTE),
        ("pid, used_memory [MiB]", Kind.COMPUTE),
        ("pid, name", Kind.COMPUTE),
        ("uuid, accounting.mode", Kind.GPU),
        ("index, name, uuid, memory.total [MiB]", Kind.GPU),
    ],
)
def test_a_header_is_known_by_its_columns(line: str, kind: Kind) -> None:
    """Any order, any subset, units or not, quoted or not, three delimiters."""
    assert header(line).kind is kind


@pytest.mark.parametrize(
    "line",
    ["hello, world", "pid", "GPU-1, 7, 5 ms", "timestamp, gpu_uuid, retired_pages.address",
     "memory [MHz], graphics [MHz]", "one of, many things", ""],
)  # fmt: skip
def test_other_lines_are_no_headers(line: str) -> None:
    """Noise, rows, and headers of queries that say nothing of use."""
    assert read_header(line, 1) is None


@pytest.mark.parametrize(
    ("line", "lost"),
    [
        ("gpu_util, mem_util, max_memory_usage, time", "pid"),
        ("pid, max_memory_usage", "time"),
        ("gpu_uuid, pid", "pids alone"),
    ],
)
def test_a_list_that_cannot_be_counted_is_rejected(line: str, lost: str) -> None:
    """Without pid or time rows cannot be told apart or finished from running; the hint gives the command."""
    found = read_header(line, 9)
    assert isinstance(found, Rejected)
    assert lost in found.message
    assert (found.line, "--query-accounted-apps=" in found.hint) == (9, True)


def test_the_command_before_it_settles_a_list_of_pids() -> None:
    """A capture says which query it was."""
    found = read_header("gpu_uuid, pid", 1, asked="compute")
    assert isinstance(found, Header)
    assert found.kind is Kind.COMPUTE


def test_spellings_of_a_field_are_one() -> None:
    """As asked for and as printed; ``name`` is the process among processes, the product among GPUs."""
    assert header("pid, gpu_util, time").place == header("pid, gpu_utilization [%], time [ms]").place
    assert "process_name" in header("pid, name").place
    assert "product" in header("uuid, name, accounting.mode").place
    assert header("pid, time [ms]").units["time"] == "ms"


@pytest.mark.parametrize(
    ("line", "cells"),
    [
        ("7, python, 5 MiB", ["7", "python", "5 MiB"]),
        ('7, "a, b", 5 MiB', ["7", "a, b", "5 MiB"]),
        ("7, a, b,c, 5 MiB", ["7", "a, b,c", "5 MiB"]),
        ('7, say "x, y", 5 MiB', ["7", 'say "x, y"', "5 MiB"]),
        ("7, python, 5 MiB,,", ["7", "python", "5 MiB"]),
    ],
)
def test_a_name_may_hold_commas(line: str, cells: list[str]) -> None:
    """Escaped or not, the surplus belongs to the name, since no other column can hold a comma."""
    assert cells_of(line, header("pid, process_name, used_memory [MiB]")) == cells


def test_a_row_of_another_width_is_none() -> None:
    """Without a name there is nothing that could hold the surplus."""
    assert cells_of("7, 5 ms, 9", header("pid, time [ms]")) is None
    assert cells_of("7", header("pid, time [ms]")) is None


def test_an_endless_quoted_cell_is_cut_plainly() -> None:
    """What the csv module refuses is still a line."""
    assert cut('"' + "a" * 200_000, ",") == ['"' + "a" * 200_000]


def test_rows_without_a_header_are_recognised() -> None:
    """For the message that says what is wrong with a file."""
    assert looks_like_rows("764032, 67 %, 33 %, 328 MiB, 4115 ms")
    assert looks_like_rows("764032, 67, 33, 328, 4115")
    assert not looks_like_rows("one, two")
    assert not looks_like_rows("17")
