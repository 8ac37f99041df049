"""What several outputs of one look say of one GPU, merged."""

from __future__ import annotations

from gpuledger.model.missing import Missing
from gpuledger.model.readings import DeviceReading
from gpuledger.sources.nvidia_smi_devices import DeviceLook
from gpuledger.sources.nvidia_smi_outputs import NOT_READ, AccountedRow, DevicePart, Kind, ListedProcess, Slice


def row(pid: int, context_ms: int) -> AccountedRow:
    return AccountedRow(
        pid=pid, running=context_ms == 0, context_ms=context_ms, peak_memory_mib=1, gpu_percent=0, memory_percent=0
    )


def process(
    pid: int, kinds: str = "C", memory_mib: int | Missing = 5, name: str = "", slice_ids: tuple[int, int] | None = None
) -> ListedProcess:
    gpu_instance, compute_instance = slice_ids or (NOT_READ, NOT_READ)
    return ListedProcess(
        pid=pid,
        kinds=kinds,
        memory_mib=memory_mib,
        process_name=name,
        gpu_instance=gpu_instance,
        compute_instance=compute_instance,
    )


def merged(*parts: DevicePart, slices: tuple[Slice, ...] = ()) -> DeviceReading:
    look = DeviceLook()
    for part in parts:
        look.add(part)
    return look.reading("GPU-1", slices)


def test_one_process_in_several_lists_is_one_context() -> None:
    """Letters of all lists; memory is never added, and a known figure wins over an absent one."""
    reading = merged(
        DevicePart(processes=(process(7, "G", 5), process(7, "C", Missing("N/A"), "python"))),
        DevicePart(processes=(process(7, "C", 5),)),
    )
    [one] = reading.living
    assert (one.kinds, one.memory_mib, one.process_name) == ("CG", 5, "python")


def test_accounted_needs_a_list_that_was_read_while_the_mode_was_on() -> None:
    """False only where it was on and the list had not this process; else it is not known."""
    listed = DevicePart(processes=(process(7), process(8)))
    on = merged(DevicePart(accounting="enabled", accounted=(row(7, 0),)), listed)
    assert [one.accounted for one in on.living] == [True, False]
    off = merged(DevicePart(accounting="disabled", accounted=(row(9, 5),)), listed)
    unread = merged(DevicePart(accounting="enabled"), listed)
    assert all(isinstance(one.accounted, Missing) for one in (*off.living, *unread.living))


def test_a_pid_that_finished_and_runs_again_is_both() -> None:
    """The driver lists a reused pid twice."""
    reading = merged(DevicePart(accounted=(row(7, 5000), row(7, 0), row(7, 5000))))
    assert [one.context_ms for one in reading.finished] == [5000]
    assert [one.pid for one in reading.living] == [7]
    assert reading.listed == 2


def test_the_later_list_knows_what_still_runs() -> None:
    """A process that ended between two outputs of one look is finished, not also alive."""
    reading = merged(DevicePart(accounted=(row(7, 0),)), DevicePart(accounted=(row(7, 9000),)))
    assert ([one.context_ms for one in reading.finished], reading.living) == ([9000], ())


def test_a_process_on_an_instance_is_not_also_on_the_parent() -> None:
    """CSV names the parent, ``-q`` the instance; without ``-L`` the instance has the old driver's name."""
    part = DevicePart(
        mig=True, accounting="disabled", slices=(Slice(place=0, gpu_instance=3, compute_instance=0, memory_mib=19968),),
        processes=(process(7), process(7, slice_ids=(3, 0)), process(8, slice_ids=(4, 0))),
    )  # fmt: skip
    reading = merged(part)
    assert [(one.pid, one.device) for one in reading.living] == [(7, "MIG-GPU-1/3/0"), (8, "GPU-1")]
    assert (reading.accounting, reading.mig) == ("unsupported", True)
    named = merged(part, slices=(Slice(place=0, uuid="MIG-9", profile="4g.20gb"),))
    assert [(one.uuid, one.profile, one.memory_mib) for one in named.slices] == [("MIG-9", "4g.20gb", 19968)]


def test_contradicting_modes_are_unknown() -> None:
    """One output says on, another off: neither is believed."""
    look = DeviceLook()
    look.add(DevicePart(accounting="enabled"))
    look.add(DevicePart(accounting="disabled"))
    assert (look.accounting, look.is_contradicted) == ("unknown", True)


def test_a_csv_list_without_a_row_of_a_device_is_its_empty_list() -> None:
    """The list is of all GPUs, so silence about one says that its list is empty."""
    look = DeviceLook()
    look.add(DevicePart(accounting="enabled", processes=(process(7),)))
    look.was_listed(Kind.ACCOUNTED)
    assert [one.accounted for one in look.reading("GPU-1", ()).living] == [False]


def test_process_names_leave_redacted() -> None:
    """Newer drivers give whole command lines as names."""
    reading = merged(DevicePart(processes=(process(7, name="serve --api-key abc123"),)))
    assert reading.living[0].process_name == "serve --api-key [redacted]"
