"""The text of ``nvidia-smi -q`` and ``-L``."""

from __future__ import annotations

from gpuledger.model.missing import Missing
from gpuledger.sources.nvidia_smi_log import parse_list, parse_log
from gpuledger.sources.nvidia_smi_outputs import Output


def log(text: str) -> Output:
    return parse_log(text.split("\n"), path="dump", line=10, section="")


def test_a_log_is_read_by_its_labels_wherever_they_stand() -> None:
    """Columns, neighbours and versions differ; memory of BAR1 is not that of the device."""
    output = log("""
Timestamp : Fri Jul  3 22:22:00 2026
Driver Version                      : 610.62 [Deprecated]
GPU 0000:02:00.0
    Product Name : NVIDIA L4
    FB Memory Usage
        Total : 23034 MiB
    BAR1 Memory Usage
        Total : 32768 MiB
    Utilization
        GPU : 0 %
    Accounting Mode : Disabled
    Processes
        GPU instance ID : N/A
        Process ID : 77
            Type : G
            Name : C:\\odd : name.exe
            Used GPU Memory : 3 MiB
""")
    [part] = output.parts
    assert (part.bus_id, part.product, part.memory_mib, part.accounting) == (
        "00000000:02:00.0",
        "NVIDIA L4",
        23034,
        "disabled",
    )
    assert output.driver_version == "610.62"
    [process] = part.processes  # type: ignore[misc]
    assert (process.pid, process.kinds, process.process_name) == (77, "G", "C:\\odd : name.exe")


def test_a_process_stands_on_the_instance_named_before_it() -> None:
    """The two ids come first, one level above what is told of the process."""
    output = log("""
GPU 00000000:83:00.0
    MIG Mode
        Current : Enabled
    Processes
        GPU instance ID : 2
        Compute instance ID : 1
        Process ID : 5
            Type : C
        GPU instance ID : 9
        Compute instance ID : 0
        Process ID : 6
            Type : C
""")
    assert [(one.pid, one.gpu_instance, one.compute_instance) for one in output.parts[0].processes] == [  # type: ignore[union-attr]
        (5, 2, 1),
        (6, 9, 0),
    ]


def test_none_is_an_empty_list_and_silence_is_no_list() -> None:
    """``Processes : None`` was read and is empty; accounted processes are not in a plain ``-q``."""
    output = log("GPU 00000000:83:00.0\n    Processes : None\n")
    assert output.parts[0].processes == ()
    assert isinstance(output.parts[0].accounted, Missing)


def test_broken_entries_are_problems_at_their_line() -> None:
    """The line is the file's."""
    output = log("GPU 00000000:83:00.0\n    Accounted Processes\n        Process ID : x\n            Time : 5 ms\n")
    assert [problem.where for problem in output.problems] == ["dump:13"]
    assert log("Timestamp : once\n").problems[0].where == "dump:10"


def test_the_list_names_gpus_and_their_instances() -> None:
    """``-L`` is the only one that gives instances a UUID and a profile."""
    output = parse_list(
        [
            "GPU 0: NVIDIA A30 (UUID: GPU-1)",
            "  MIG 1g.6gb      Device  3: (UUID: MIG-9)",
            "GPU 1: NVIDIA T4 (UUID: GPU-2)",
        ],
        line=1,
        section="",
    )
    assert [(part.uuid, part.product) for part in output.parts] == [("GPU-1", "NVIDIA A30"), ("GPU-2", "NVIDIA T4")]
    [one] = output.parts[0].slices
    assert (one.place, one.uuid, one.profile) == (3, "MIG-9", "1g.6gb")


def test_deep_and_odd_indentation_is_bounded() -> None:
    """No depth exhausts the stack."""
    output = log("GPU 00000000:83:00.0\n" + "\n".join(" " * depth + "a" for depth in range(1, 5000)))
    assert len(output.parts) == 1
