"""Dumps of nvidia-smi become readings, bad ones clear errors; and the program itself as a source."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Sequence
from datetime import UTC
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuledger.errors import BadInput, GpuledgerError, Misconfigured, Unavailable
from gpuledger.model.missing import Missing
from gpuledger.model.moments import iso
from gpuledger.model.readings import DeviceReading, Reading
from gpuledger.sources import nvidia_smi
from gpuledger.sources.nvidia_smi import NvidiaSmiSource, Ran, parse

CAPTURES = Path(__file__).parents[1] / "captures" / "nvidia-smi"
SHARED = Path(__file__).resolve().parents[2].parent / "shared" / "data"
NO_TIME = Missing("the file gives no time")
ACCOUNTED = "pid, gpu_utilization [%], mem_utilization [%], max_memory_usage [MiB], time [ms]\n"


def read(text: str, *, zone: str | None = "UTC", device: str = "") -> list[Reading]:
    return parse(text, path="dump", zone=ZoneInfo(zone) if zone else None, taken_at_us=NO_TIME, device=device)


def capture(name: str, *, zone: str = "UTC") -> list[Reading]:
    return read((CAPTURES / name).read_text(encoding="utf-8"), zone=zone)


def only(reading: Reading) -> DeviceReading:
    [device] = reading.devices.values()
    return device


def times(device: DeviceReading) -> list[tuple[int, int]]:
    return [(row.pid, row.context_ms) for row in device.finished]


def codes(reading: Reading) -> list[str]:
    return [problem.code for problem in reading.problems]


@pytest.fixture
def shared() -> Path:
    """The real inputs beside the project; skipped where they are absent, but never in CI."""
    if not SHARED.is_dir():
        if os.environ.get("CI"):
            pytest.fail("../shared/data is absent, and CI must try the real inputs")
        pytest.skip("../shared/data is absent: the real inputs are not tried")
    return SHARED


def shared_readings(path: Path) -> list[Reading]:
    return parse(path.read_text(encoding="utf-8"), path=path.name, zone=UTC, taken_at_us=NO_TIME)


def test_a_capture_gives_one_reading_for_each_look() -> None:
    """Idle and under load are two looks; the rows that persist between them are the same in both."""
    idle, load = capture("idle_and_load.txt", zone="Europe/Berlin")
    assert [iso(reading.at_us) for reading in (idle, load)] == ["2026-03-02T09:00:01.9Z", "2026-03-02T09:00:21.3Z"]
    assert times(only(idle)) == times(only(load)) == [(4101, 679), (4102, 61250)]
    assert only(idle).accounting == only(load).accounting == "enabled"
    assert idle.driver_version == "595.10"
    assert (only(idle).living, only(idle).listed, only(load).listed) == ((), 2, 3)
    assert only(load).memory_mib == 49140
    assert not idle.problems


def test_a_running_row_is_alive_and_not_zero() -> None:
    """0 ms means that it runs: a living context, accounted, and nothing of it is finished."""
    load = capture("idle_and_load.txt")[1]
    serve, xorg = only(load).living
    assert (serve.pid, serve.kinds, serve.memory_mib, serve.accounted) == (4200, "C", 2048, True)
    assert isinstance(serve.started_at_us, Missing)
    assert isinstance(serve.busy_percent, Missing)
    assert (xorg.pid, xorg.kinds, xorg.accounted) == (900, "G", False)


def test_mig_is_unsupported_and_keeps_its_frozen_rows() -> None:
    """Under MIG the mode is off for good; rows of before stay, and processes stand on their instance."""
    [reading] = capture("mig.txt")
    device = only(reading)
    assert (device.accounting, device.mig) == ("unsupported", True)
    assert times(device) == [(6001, 5100), (6002, 41000)]
    assert [(one.uuid, one.profile, one.memory_mib) for one in device.slices] == [
        ("MIG-00000000-0000-0000-0000-000000000000", "2g.12gb", 11968),
        ("MIG-00000001-0000-0000-0000-000000000001", "1g.6gb", 5952),
    ]
    [python] = device.living
    assert (python.device, python.memory_mib) == ("MIG-00000001-0000-0000-0000-000000000001", 1200)
    assert codes(reading) == ["masked-device", "frozen-rows"]


def test_windows_gives_no_memory_and_names_with_commas() -> None:
    """WDDM knows no memory of a process: absent with the driver's words, never 0."""
    [reading] = capture("windows.txt")
    explorer, system, app = only(reading).living
    assert explorer.memory_mib == Missing("nvidia-smi: Not available in WDDM driver model")
    assert (explorer.kinds, app.kinds) == ("CG", "C")
    assert app.process_name == "C:\\Program Files\\A, B and C\\app.exe"
    assert system.process_name == ""
    assert reading.driver_version == "610.10"


def test_xml_tells_what_runs_and_counts_identical_rows_once() -> None:
    """One GPU with a running, a finished (printed twice) and a never-accounted process; one without accounting."""
    [reading] = capture("two_gpus.xml")
    first, second = reading.devices.values()
    assert times(first) == [(501, 18228)]
    assert [(one.pid, one.accounted) for one in first.living] == [(510, True), (77, False)]
    assert isinstance(first.living[1].memory_mib, Missing)
    assert (first.listed, first.accounting) == (2, "enabled")
    assert (second.accounting, second.finished) == ("unsupported", ())


def test_a_log_of_accounting_alone_knows_bus_ids_only() -> None:
    """Without a UUID the bus id names the device, and a problem says so."""
    [reading] = capture("accounting.log")
    first, second = reading.devices.values()
    assert (first.uuid, second.uuid) == ("PCI-00000000:13:00.0", "PCI-00000000:37:00.0")
    assert times(first) == [(9001, 90000)]
    assert [(one.pid, one.kinds) for one in first.living] == [(9002, "A")]
    assert set(codes(reading)) == {"no-device-uuid"}


def test_rows_without_a_device_take_the_one_named() -> None:
    """The person knows which GPU it was; without that the rows are of an unidentified one, and that is said."""
    text = ACCOUNTED + "7, 0 %, 0 %, 184 MiB, 679 ms\n"
    named, unnamed = read(text, device="GPU-1")[0], read(text)[0]
    assert list(named.devices) == ["GPU-1"]
    assert not named.problems
    assert list(unnamed.devices) == ["GPU-unidentified"]
    assert codes(unnamed) == ["no-device-uuid"]
    assert only(unnamed).accounting == "unknown"


def test_an_empty_list_is_a_reading_and_not_an_error() -> None:
    """A header without rows says that the list was read and held nothing; the mode stays unknown."""
    [reading] = read(ACCOUNTED, device="GPU-1")
    assert (only(reading).listed, only(reading).accounting) == (0, "unknown")


def test_local_times_need_a_zone() -> None:
    """A zone is never guessed; the hint shows what to type."""
    text = "timestamp, gpu_uuid, pid, time [ms]\n2026/03/02 10:00:01.900, GPU-1, 7, 5 ms\n"
    with pytest.raises(Misconfigured) as caught:
        read(text, zone=None)
    assert caught.value.code == "zone-needed"
    assert "--zone UTC or --zone Europe/Berlin" in caught.value.hint
    assert iso(read(text, zone="Europe/Berlin")[0].at_us) == "2026-03-02T09:00:01.9Z"


def test_a_dump_without_times_was_taken_when_told() -> None:
    """``taken_at_us`` fills in, and where it is missing too the reading says so."""
    text = ACCOUNTED + "7, 0 %, 0 %, 184 MiB, 679 ms\n"
    assert parse(text, path="dump", zone=None, taken_at_us=42)[0].at_us == 42
    assert read(text)[0].at_us == NO_TIME


def test_broken_rows_are_reported_by_line_and_the_rest_is_kept() -> None:
    """One unreadable row costs one row."""
    text = (
        ACCOUNTED
        + "7, 0 %, 0 %, 184 MiB, 679 ms\nseven, 0 %, 0 %, 1 MiB, 1 ms\n8, 0 %, 0 %\n9, 1 %, 1 %, 1 MiB, 3 ms\n"
    )
    [reading] = read(text, device="GPU-1")
    assert times(only(reading)) == [(7, 679), (9, 3)]
    assert [problem.where for problem in reading.problems] == ["dump:3", "dump:4"]


def test_a_line_cut_off_is_not_a_smaller_figure() -> None:
    """A file that ends in the middle of ``3540615 ms`` must not settle 354 ms."""
    text = ACCOUNTED + "7, 0 %, 0 %, 184 MiB, 679 ms\n8, 0 %, 0 %, 5378 MiB, 354"
    [reading] = read(text, device="GPU-1")
    assert times(only(reading)) == [(7, 679)]
    assert codes(reading) == ["broken-line"]


@pytest.mark.parametrize(
    ("text", "code", "line"),
    [
        ("", "not-nvidia-smi", 0),
        ("hello\nworld\n", "not-nvidia-smi", 0),
        ("\x7fELF\x02\x01\0\0", "not-text", 1),
        ("ok\nno\udcff\n", "not-text", 2),
        ("7, 0 %, 0 %, 184 MiB, 679 ms\n8, 0 %, 0 %, 1 MiB, 1 ms\n", "no-header", 1),
        ("# note\nGPU-1b2c3d4e-0011-2233-4455-66778899aabb, 7, 5\n", "no-header", 2),
        ("gpu_utilization [%], mem_utilization [%], max_memory_usage [MiB], time [ms]\n0 %, 0 %, 1 MiB, 5 ms\n",
         "columns-missing", 1),
        ("\n\npid, max_memory_usage [MiB]\n7, 1 MiB\n", "columns-missing", 3),
        ("gpu_uuid, pid\nGPU-1, 7\n", "columns-missing", 1),
        ("<?xml version='1.0'?>\n<nvidia_smi_log>\n<gpu>\n", "broken-xml", 2),
        ("<nvidia_smi_log>\n<gpu></gpux>\n</nvidia_smi_log>\n", "broken-xml", 1),
        ("<!DOCTYPE x [\n<!ENTITY a 'b'>]>\n<nvidia_smi_log>&a;</nvidia_smi_log>", "xml-entities", 2),
        ("<html>no</html>", "not-nvidia-smi", 0),
        ("uuid, memory.total [MiB]\nGPU-1, 1 MiB\n", "not-nvidia-smi", 0),
    ],
)  # fmt: skip
def test_what_is_not_understood_is_an_error_with_its_line(text: str, code: str, line: int) -> None:
    """Nothing is imported from a file in which nothing is understood; the hint says what would be."""
    with pytest.raises(BadInput) as caught:
        read(text)
    assert (caught.value.code, caught.value.line) == (code, line)
    assert caught.value.hint
    assert "dump" in caught.value.message


def test_a_loop_of_xml_killed_in_the_middle_keeps_its_whole_documents() -> None:
    """The documents before the cut are readings, the cut one a problem."""
    whole = (CAPTURES / "two_gpus.xml").read_text(encoding="utf-8")
    later = whole.replace("06:07:08", "06:08:08").replace("<time>18228 ms", "<time>18229 ms")
    readings = read(whole + later + whole[: len(whole) // 2])
    assert [iso(reading.at_us) for reading in readings] == ["2026-03-05T06:07:08Z", "2026-03-05T06:08:08Z"]
    assert codes(readings[0]) == ["broken-xml"]


def test_two_machines_never_merge() -> None:
    """One masked UUID on two products is two machines in one file."""
    text = "name, uuid, accounting.mode\nNVIDIA H100, GPU-0000, Disabled\n\nNVIDIA H200, GPU-0000, Disabled\n"
    with pytest.raises(BadInput) as caught:
        read(text)
    assert caught.value.code == "two-machines"


def test_secrets_in_process_names_do_not_leave() -> None:
    """Newer drivers print whole command lines as names, and a broken line is quoted."""
    text = "gpu_uuid, pid, process_name, used_memory [MiB]\nGPU-1, 7, serve --api-key abc123xyz, 5 MiB\n"
    [reading] = read(text + "GPU-1, x --token abc123xyz, 5\n")
    assert only(reading).living[0].process_name == "serve --api-key [redacted]"
    assert "abc123xyz" not in repr(reading)


@pytest.mark.parametrize("rows", [4000])
def test_a_full_list_is_read_quickly(rows: int) -> None:
    """4,000 rows, the most a driver lists, in well under 0.3 s."""
    header = "timestamp, gpu_name, gpu_bus_id, gpu_serial, gpu_uuid, " + ACCOUNTED
    device = "NVIDIA H200, 00000000:83:00.0, 165, GPU-1b2c3d4e-0011-2233-4455-66778899aabb"
    row = f"2026/03/02 10:00:01.900, {device}, {{}}, 0 %, 0 %, 9 MiB, {{}} ms\n"
    text = header + "".join(row.format(pid, pid * 7) for pid in range(1, rows + 1))
    began = time.process_time()
    [reading] = read(text)
    took = time.process_time() - began
    assert len(only(reading).finished) == rows
    assert took < 0.3, f"{took:.3f} s"


def test_a_large_file_of_noise_is_refused_in_bounded_time() -> None:
    """50 MB that are nothing of nvidia-smi's, in lines and in one line."""
    for text in ("lorem ipsum, dolor sit amet, 17 %\n" * 1_500_000, "a," * 25_000_000):
        began = time.process_time()
        with pytest.raises(BadInput):
            read(text)
        assert time.process_time() - began < 15


_PIECES = st.sampled_from([
    ACCOUNTED, "gpu_uuid, pid, process_name, used_memory [MiB]\n", "uuid, accounting.mode, mig.mode.current\n",
    "GPU-1, Enabled, N/A\n", "7, 0 %, 0 %, 1 MiB, 5 ms\n", "\n", "# idle :: x\n", "# load :: x\n",
    "==============NVSMI LOG==============\n", "GPU 00000000:01:00.0\n", "    Accounting Mode : Enabled\n",
    "    Accounted Processes\n", "        Process ID : 5\n", "            Time : 0 ms\n", "<nvidia_smi_log>",
    "</nvidia_smi_log>\n", "<gpu id='00000000:01:00.0'>", "</gpu>", "</accounted_process_info></accounted_processes>",
    "<accounted_processes><accounted_process_info><pid>3</pid><time>4 ms</time>", "GPU 0: X (UUID: GPU-1)\n",
    "Timestamp : Fri Jul  3 22:22:00 2026\n", "  MIG 1g.5gb     Device  0: (UUID: MIG-1)\n", "\r\n", '"', ",", "[N/A]",
    "timestamp, gpu_bus_id, pid, time [ms]\n", "2026/07/03 22:22:00.000, 00000000:01:00.0, 5, 7 ms\n",
    "99999999999999999999",
])  # fmt: skip


@settings(max_examples=200, deadline=None)
@given(st.lists(_PIECES | st.text(max_size=40), max_size=25).map("".join))
def test_any_text_gives_readings_or_an_error_of_ours(text: str) -> None:
    """No text whatever ends in another exception."""
    try:
        readings = read(text)
    except GpuledgerError:
        return
    assert readings


def test_the_story_adds_up(shared: Path) -> None:
    """Twelve rows of one home box: 3,981,583 ms settled, and one that lives and is not 0."""
    [reading] = shared_readings(shared / "story" / "accounted.csv")
    device = only(reading)
    assert sum(row.context_ms for row in device.finished) == 3_981_583
    assert sum(row.context_ms for row in device.finished if row.gpu_percent == 0) == 3_913_002
    assert [one.pid for one in device.living] == [2488996]
    assert device.listed == 12


def test_the_real_captures_read_as_they_should(shared: Path) -> None:
    """Every capture: two looks, one masked device, accounting off, nothing that could not be understood."""
    for path in sorted((shared / "nvidia-smi" / "captures").glob("*x86_64*.txt")):
        readings = shared_readings(path)
        assert len(readings) == 2, path.name
        for reading in readings:
            device = only(reading)
            assert device.uuid == "GPU-00000000-0000-0000-0000-000000000000"
            assert device.accounting == ("unsupported" if device.mig else "disabled"), path.name
            assert set(codes(reading)) <= {"masked-device", "frozen-rows"}, path.name
            assert device.product
            assert device.memory_mib


def test_mig_of_the_real_capture_keeps_six_frozen_rows(shared: Path) -> None:
    """The H200 under MIG lists six rows of before, the same in both looks, and five instances."""
    [path] = (shared / "nvidia-smi" / "captures").glob("*h200-mig*")
    for reading in shared_readings(path):
        device = only(reading)
        assert [row.context_ms for row in device.finished] == [8110, 39376, 42479, 42532, 42571, 41397]
        assert (device.mig, device.accounting, len(device.slices)) == (True, "unsupported", 5)


def test_the_real_xml_files_read_as_they_should(shared: Path) -> None:
    """All have accounting off; the A100 has four instances, the T4 a python process of 1,005 MiB."""
    read_of = {path.stem: shared_readings(path) for path in (shared / "nvidia-smi" / "xml").glob("*.xml")}
    assert all(len(readings) == 1 and not readings[0].problems for readings in read_of.values())
    devices = {name: only(readings[0]) for name, readings in read_of.items()}
    assert {name for name, device in devices.items() if device.accounting == "disabled"} == set(devices) - {
        "a100-sxm4-v12"
    }
    assert (len(devices["a100-sxm4-v12"].slices), devices["a100-sxm4-v12"].accounting) == (4, "unsupported")
    assert [(one.process_name, one.kinds, one.memory_mib) for one in devices["tesla-t4"].living][1] == (
        "python",
        "C",
        1005,
    )


def ran(stdout: str = "", stderr: str = "", status: int = 0) -> NvidiaSmiSource:
    return NvidiaSmiSource(run=lambda command: Ran(status=status, stdout=stdout, stderr=stderr))


def test_the_source_looks_at_the_time_it_is_given() -> None:
    """The program's own local time is not used; a non-zero status beside whole output is a problem."""
    text = (CAPTURES / "two_gpus.xml").read_text(encoding="utf-8")
    reading = ran(text).read(1_790_000_000_000_000)
    assert (reading.at_us, reading.method, len(reading.devices)) == (1_790_000_000_000_000, "nvidia-smi", 2)
    assert codes(ran(text, "WARNING: infoROM is corrupted\n", 14).read(1)) == ["driver-complains"]


def test_a_driver_that_does_not_answer_is_unreachable_in_its_own_words() -> None:
    """What nvidia-smi says first is what the person reads."""
    said = "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.\nmore\n"
    with pytest.raises(Unavailable, match="communicate with the NVIDIA driver") as caught:
        ran(said, status=9).read(1)
    assert caught.value.code == "driver-unreachable"


def test_accounting_is_enabled_by_uuid() -> None:
    """The command is the documented one; a refusal is told with the way out."""
    asked: list[Sequence[str]] = []

    def run(command: Sequence[str]) -> Ran:
        asked.append(command)
        return Ran(status=0, stdout="", stderr="")

    NvidiaSmiSource(run=run).enable_accounting("GPU-1")
    assert asked == [("nvidia-smi", "-i", "GPU-1", "-am", "1")]
    with pytest.raises(Unavailable, match="Insufficient Permissions") as caught:
        ran("Unable to set accounting mode: Insufficient Permissions\n", status=4).enable_accounting("GPU-1")
    assert caught.value.hint == "sudo nvidia-smi -am 1"


def test_the_program_is_run_for_real(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program of that name on the PATH is found, run in the C locale and read; none is an error that says so."""
    program = tmp_path / "nvidia-smi"
    program.write_text(f'#!/bin/sh\n[ "$LC_ALL" = C ] && exec /bin/cat "{CAPTURES / "two_gpus.xml"}"\n')
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert len(NvidiaSmiSource().read(1).devices) == 2
    program.write_text("#!/bin/sh\nexec /bin/sleep 5\n")
    monkeypatch.setattr(nvidia_smi, "PATIENCE_S", 0.2)
    with pytest.raises(Unavailable, match="did not answer"):
        NvidiaSmiSource().read(1)
    program.unlink()
    with pytest.raises(Unavailable, match="cannot be run") as caught:
        NvidiaSmiSource().read(1)
    assert caught.value.code == "driver-unreachable"
