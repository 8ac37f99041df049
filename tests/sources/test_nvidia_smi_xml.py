"""One ``nvidia-smi -q -x`` document."""

from __future__ import annotations

import pytest

from gpuledger.model.missing import Missing
from gpuledger.sources.nvidia_smi_outputs import Output
from gpuledger.sources.nvidia_smi_xml import accounted_row, parse_document


def document(gpu: str) -> Output:
    return parse_document(f"<nvidia_smi_log>{gpu}</nvidia_smi_log>", path="dump", line=3, section="")


def test_a_schema_of_2012_is_read_too() -> None:
    """It knew compute processes only, neither types nor MIG."""
    output = document(
        "<gpu id='0000:02:00.0'><product_name>Tesla K20</product_name><serial>7</serial><compute_processes>"
        "<process_info><pid>5</pid><process_name>a</process_name><used_memory>64 MB</used_memory></process_info>"
        "</compute_processes></gpu>"
    )
    [part] = output.parts
    assert (part.bus_id, part.product, part.serial) == ("00000000:02:00.0", "Tesla K20", "7")
    assert not isinstance(part.processes, Missing)
    assert [(one.pid, one.kinds, one.memory_mib) for one in part.processes] == [(5, "C", 64)]
    assert isinstance(part.accounted, Missing)
    assert part.accounting == ""


def test_mig_instances_carry_their_ids() -> None:
    """By index, with the ids that processes name."""
    output = document(
        "<gpu><mig_mode><current_mig>Enabled</current_mig></mig_mode><mig_devices><mig_device><index>3</index>"
        "<gpu_instance_id>9</gpu_instance_id><compute_instance_id>1</compute_instance_id>"
        "<fb_memory_usage><total>19968 MiB</total></fb_memory_usage></mig_device></mig_devices></gpu>"
    )
    [one] = output.parts[0].slices
    assert (one.place, one.gpu_instance, one.compute_instance, one.memory_mib) == (3, 9, 1, 19968)
    assert output.parts[0].mig is True


def test_what_is_wrong_inside_costs_only_itself() -> None:
    """A broken entry is a problem with the document's line; the rest is read."""
    output = document(
        "<timestamp>once</timestamp><gpu id='1'><accounting_mode>Perhaps</accounting_mode>"
        "<fb_memory_usage><total>lots</total></fb_memory_usage><accounted_processes><accounted_process_info><pid>x</pid></accounted_process_info>"
        "<accounted_process_info><pid>8</pid><time>4 ms</time></accounted_process_info></accounted_processes></gpu>"
    )
    assert [row.pid for row in output.parts[0].accounted] == [8]  # type: ignore[union-attr]
    assert len(output.problems) == 4
    assert {problem.where for problem in output.problems} == {"dump:3"}


@pytest.mark.parametrize("text", ["<nvidia_smi_log><a></nvidia_smi_log>", "<nvidia_smi_log>&x;</nvidia_smi_log>"])
def test_xml_that_is_not_well_formed_is_refused_with_its_line(text: str) -> None:
    """The line is the file's, not the document's."""
    with pytest.raises(ValueError, match="line 7"):
        parse_document(text, path="dump", line=7, section="")


def row(*, time: str, is_running: str) -> tuple[bool, int]:
    found = accounted_row(7, time=time, is_running=is_running, max_memory="1 MiB", gpu_util="0 %", memory_util="N/A")
    return found.running, found.context_ms


def test_is_running_is_believed_before_the_time() -> None:
    """A finished process of less than a millisecond is finished; without the word 0 means running."""
    assert row(time="0 ms", is_running="1") == (True, 0)
    assert row(time="0 ms", is_running="0") == (False, 0)
    assert row(time="0 ms", is_running="") == (True, 0)
    assert row(time="5 ms", is_running="") == (False, 5)
    assert row(time="N/A", is_running="1") == (True, 0)
    with pytest.raises(ValueError, match="no time"):
        row(time="N/A", is_running="0")
