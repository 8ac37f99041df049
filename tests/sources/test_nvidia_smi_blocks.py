"""Which outputs a text holds, and where each begins and ends."""

from __future__ import annotations

from gpuledger.sources.nvidia_smi_blocks import Block, find_blocks
from gpuledger.sources.nvidia_smi_outputs import Kind, Rejected


def found(text: str) -> list[tuple[Kind, int, str]]:
    return [(one.kind, one.line, one.section) for one in find_blocks(text) if isinstance(one, Block)]


def test_every_output_is_found_between_the_noise() -> None:
    """By kind, first line and the capture's own name of the moment."""
    text = """$ uptime
# idle :: accounted
# $ nvidia-smi --query-accounted-apps=pid,time --format=csv
pid, time [ms]
7, 5 ms

some noise, of a shell

==============NVSMI LOG==============

Timestamp : Fri Jul  3 22:22:00 2026
GPU 00000000:83:00.0
    Accounting Mode : Enabled
$ nvidia-smi -L
GPU 0: NVIDIA L4 (UUID: GPU-1)
  MIG 1g.6gb      Device  0: (UUID: MIG-1)
# load :: xml
<?xml version="1.0" ?>
<nvidia_smi_log>
</nvidia_smi_log>
uuid, accounting.mode
GPU-1, Enabled
"""
    assert found(text) == [
        (Kind.ACCOUNTED, 4, "idle"),
        (Kind.LOG, 9, "idle"),
        (Kind.LIST, 15, "idle"),
        (Kind.XML, 19, "load"),
        (Kind.GPU, 21, "load"),
    ]


def test_two_documents_on_one_line_are_two() -> None:
    """XML may be minified."""
    text = "<nvidia_smi_log></nvidia_smi_log><nvidia_smi_log></nvidia_smi_log>"
    assert found(text) == [(Kind.XML, 1, ""), (Kind.XML, 1, "")]


def test_a_document_without_its_end_is_marked() -> None:
    """A cut one before a whole one does not swallow it."""
    text = "<nvidia_smi_log>\n<gpu>\n<nvidia_smi_log>\n</nvidia_smi_log>\n"
    blocks = [one for one in find_blocks(text) if isinstance(one, Block)]
    assert [(one.line, one.whole) for one in blocks] == [(1, False), (3, True)]


def test_field_names_one_a_line_are_no_table() -> None:
    """Captures list the fields that were asked for."""
    assert found("timestamp\nuuid\naccounting.mode\npid\ntime\n") == []


def test_a_header_of_no_use_is_rejected_with_its_line() -> None:
    """It is passed on, so that the person reads why."""
    [one] = find_blocks("# note\npid, max_memory_usage [MiB]\n7, 1 MiB\n")
    assert isinstance(one, Rejected)
    assert one.line == 2


def test_the_command_before_a_list_of_pids_is_used() -> None:
    """``--query-compute-apps`` says that the pids are alive."""
    text = "user@box:~$ nvidia-smi --query-compute-apps=gpu_uuid,pid --format=csv\ngpu_uuid, pid\nGPU-1, 7\n"
    assert found(text) == [(Kind.COMPUTE, 2, "")]
