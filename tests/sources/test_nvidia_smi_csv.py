"""Rows of nvidia-smi's CSV: what they say, by look and by device."""

from __future__ import annotations

from datetime import datetime

from gpuledger.model.missing import Missing
from gpuledger.sources.nvidia_smi_csv import parse_rows
from gpuledger.sources.nvidia_smi_header import Header, read_header
from gpuledger.sources.nvidia_smi_outputs import NOT_READ, AccountedRow, Output


def outputs(text: str) -> list[Output]:
    first, *rest = text.strip().split("\n")
    header = read_header(first, 1)
    assert isinstance(header, Header)
    return list(parse_rows(header, rest, path="dump", line=1, section="idle"))


def accounted(output: Output) -> list[AccountedRow]:
    return [row for part in output.parts if not isinstance(part.accounted, Missing) for row in part.accounted]


def test_units_stand_in_the_cell_in_the_header_or_nowhere() -> None:
    """``nounits`` keeps them in the header; a tool may drop them altogether."""
    for text in (
        "pid, gpu_utilization [%], max_memory_usage [MiB], time [ms]\n7, 3 %, 184 MiB, 679 ms",
        "pid, gpu_utilization [%], max_memory_usage [MiB], time [ms]\n7, 3, 184, 679",
        "time,max_memory_usage,gpu_util,pid\n679,184,3,7",
    ):
        [output] = outputs(text)
        [row] = accounted(output)
        assert (row.pid, row.gpu_percent, row.peak_memory_mib, row.context_ms, row.running) == (7, 3, 184, 679, False)
        assert row.memory_percent == NOT_READ


def test_a_loop_under_one_header_is_one_output_a_turn() -> None:
    """``-l 5`` prints the rows again; GPUs of one turn differ by milliseconds."""
    made = outputs("""
timestamp, gpu_uuid, pid, time [ms]
2026/03/02 10:00:00.100, GPU-1, 7, 0 ms
2026/03/02 10:00:00.130, GPU-2, 7, 0 ms
2026/03/02 10:00:05.100, GPU-1, 7, 4000 ms
2026/03/02 10:00:05.300, GPU-1, 7, 4000 ms
""")
    assert [len(accounted(output)) for output in made] == [2, 1, 1]
    assert made[0].at == datetime(2026, 3, 2, 10, 0, 0, 130_000)  # noqa: DTZ001 - local by nature


def test_rows_are_kept_by_device() -> None:
    """By whatever names it: UUID, bus id in one spelling, serial."""
    [output] = outputs(
        "gpu_uuid, gpu_bus_id, gpu_serial, pid, time\n[N/A], 0000:0c:00.0, 77, 7, 5\nGPU-2, [N/A], [N/A], 8, 6"
    )
    assert [(part.uuid, part.bus_id, part.serial) for part in output.parts] == [
        ("", "00000000:0C:00.0", "77"),
        ("GPU-2", "", ""),
    ]


def test_a_device_that_keeps_no_list_is_unsupported() -> None:
    """One row of nothing but a token stands for it, and is no process."""
    [output] = outputs("gpu_uuid, pid, time [ms]\nGPU-1, [Not Supported], [Not Supported]")
    assert [part.accounting for part in output.parts] == ["unsupported"]
    assert not output.problems
    assert outputs("pid, name, used_memory [MiB]\n[Not Supported], [Not Supported], [Not Supported]")[0].parts == ()


def test_a_row_without_a_time_is_a_problem() -> None:
    """It cannot be told finished from running."""
    [output] = outputs("pid, time [ms]\n7, [N/A]\n8, 5 ms")
    assert [row.pid for row in accounted(output)] == [8]
    assert "cannot be told finished from running" in output.problems[0].message
    assert output.problems[0].where == "dump:2"


def test_noise_behind_an_empty_line_is_passed_over_and_later_rows_are_not() -> None:
    """A capture's noise is no problem; a table with empty lines in it loses nothing."""
    [output] = outputs("pid, time [ms]\n7, 5 ms\n\n$ uname\n\n8, 6 ms\n")
    assert [row.pid for row in accounted(output)] == [7, 8]
    assert not output.problems


def test_gpu_rows_tell_mode_memory_driver_and_host() -> None:
    """``--query-gpu`` in any order."""
    [output] = outputs("hostname, mig.mode.current, accounting.mode, memory.total [MiB], driver_version, uuid\n"
                       "box, Disabled, Enabled, 49140 MiB, 610.62 [Deprecated], GPU-1")  # fmt: skip
    part = output.parts[0]
    assert (part.uuid, part.accounting, part.mig, part.memory_mib) == ("GPU-1", "enabled", False, 49140)
    assert (output.host_name, output.driver_version, output.section) == ("box", "610.62", "idle")
