"""``import nvidia-smi``: a dump, and maybe a map of pids, into the ledger: all of it or nothing, and once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gpuledger.errors import BadInput, Misconfigured
from gpuledger.ledger.store import Ledger
from gpuledger.model.moments import parse_moment
from gpuledger.model.outcomes import ImportReport
from gpuledger.model.rows import DriverRecord, ProcessIdentity, Row, Sighting, Watch
from gpuledger.operations.import_nvidia_smi import import_nvidia_smi
from gpuledger.operations.usage import usage

GPU = "GPU-5a3c1f2e-1111-2222-3333-444455556666"
MASKED = "GPU-00000000-0000-0000-0000-000000000000"
NOW_US = parse_moment("2026-07-28T12:00:00Z", now_us=0)
CSV = f"""\
timestamp, gpu_uuid, pid, gpu_utilization [%], mem_utilization [%], max_memory_usage [MiB], time [ms]
2026/07/27 12:00:00.000, {GPU}, 764032, 67 %, 33 %, 328 MiB, 4115 ms
2026/07/27 12:00:00.000, {GPU}, 898345, 0 %, 0 %, 184 MiB, 679 ms
"""
MAP = "764032\tollama\t1785153500\n898345\txtts\t1785153580\n"


class Desk:
    """A folder with files to import and a ledger that may not exist yet."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.place = folder / "ledger.db"

    def file(self, name: str, text: str) -> Path:
        path = self.folder / name
        path.write_text(text, encoding="utf-8")
        return path

    def bring_in(self, text: str = CSV, *, pid_map: str | None = None, **words: Any) -> ImportReport:
        base: dict[str, Any] = {
            "host": "box", "local_host": "here", "device": "", "zone": "UTC", "taken_at_us": None, "now_us": NOW_US,
            "role": "import", "pid_map": None if pid_map is None else self.file("map.tsv", pid_map),
        }  # fmt: skip
        return import_nvidia_smi(
            lambda: Ledger.open(self.place, mode="append"), self.file("dump.csv", text), **base | words
        )

    def rows(self, kind: type[Row]) -> list[Any]:
        with Ledger.open(self.place, mode="read") as ledger:
            return list(ledger.scan(kind))

    def named(self) -> dict[str, int]:
        with Ledger.open(self.place, mode="read") as ledger:
            report = usage(ledger, meter="gpu.context", by=("service",), since_us=0, until_us=NOW_US, now_us=NOW_US)
        return {row.key[0]: row.quantity for row in report.rows}


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    """An empty one."""
    return Desk(tmp_path)


def test_finished_rows_and_their_names_come_in(desk: Desk) -> None:
    """Counted, filed under the host, named by the map, placed before the dump."""
    report = desk.bring_in(pid_map=MAP)
    assert (report.host, report.finished, report.claims, report.known) == ("box", 2, 2, 0)
    assert desk.named() == {"ollama": 4115, "xtts": 679}
    assert [row.context_ms for row in desk.rows(DriverRecord)] == [4115, 679]
    assert {row.grade for row in desk.rows(ProcessIdentity)} == {"claimed"}


def test_the_same_file_again_adds_nothing(desk: Desk) -> None:
    """Not a row, not a look; what was there is counted as known."""
    first = desk.bring_in(pid_map=MAP)
    again = desk.bring_in(pid_map=MAP)
    assert again.added == 0
    assert again.known > 0
    assert first.added == sum(len(desk.rows(kind)) for kind in (DriverRecord, ProcessIdentity, Watch)) + 1


def test_the_same_rows_in_a_later_dump_count_once(desk: Desk) -> None:
    """The driver lists a dead process for days."""
    desk.bring_in()
    later = desk.bring_in(CSV.replace("12:00:00", "18:00:00"))
    assert len(desk.rows(DriverRecord)) == 2
    assert later.finished == 2


def test_an_earlier_dump_is_a_tighter_bound_and_still_one_process(desk: Desk) -> None:
    """The row had ended by then: kept as evidence, counted once."""
    desk.bring_in(CSV.replace("12:00:00", "18:00:00"), pid_map=MAP)
    desk.bring_in()
    assert len(desk.rows(DriverRecord)) == 4
    assert desk.named() == {"ollama": 4115, "xtts": 679}


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ({"zone": None}, "zone-needed"),
        ({"zone": "Europe/Atlantis"}, "unknown-zone"),
        ({"zone": "../../etc/passwd"}, "unknown-zone"),
        ({"text": CSV.replace(GPU, MASKED), "host": None}, "host-needed"),
    ],
)
def test_what_must_be_told_is_asked_for(desk: Desk, words: dict[str, Any], code: str) -> None:
    """Local times need a zone, masked devices a machine; nothing is guessed, and no ledger is made."""
    with pytest.raises(Misconfigured) as refused:
        desk.bring_in(**words)
    assert (refused.value.code, bool(refused.value.hint)) == (code, True)
    assert not desk.place.exists()


def test_two_machines_with_masked_devices_do_not_merge(desk: Desk) -> None:
    """The same zeroed UUID, told apart by host."""
    masked = CSV.replace(GPU, MASKED)
    desk.bring_in(masked, host="one")
    desk.bring_in(masked, host="two")
    assert {row.host for row in desk.rows(DriverRecord)} == {"one", "two"}
    assert len(desk.rows(DriverRecord)) == 4


def test_a_real_uuid_without_a_host_is_filed_under_this_machine_and_says_so(desk: Desk) -> None:
    """An assumption is a problem beside the result, never silent."""
    report = desk.bring_in(host=None)
    assert report.host == "here"
    assert "host-assumed" in {problem.code for problem in report.problems}


@pytest.mark.parametrize("pid_map", ["764032\tollama\t1785153500\nabc\txtts\t1785153580\n", "764032 ollama\n"])
def test_a_bad_map_imports_nothing_at_all(desk: Desk, pid_map: str) -> None:
    """Not the dump either: no ledger is made, and one that is there is not touched."""
    with pytest.raises(BadInput, match=r"map\.tsv:\d"):
        desk.bring_in(pid_map=pid_map)
    assert not desk.place.exists()
    desk.bring_in()
    before = desk.place.read_bytes()
    with pytest.raises(BadInput):
        desk.bring_in(pid_map=pid_map)
    assert desk.place.read_bytes() == before


@pytest.mark.parametrize("text", ["", "hello\nworld\n", "\x00\x01\x02"])
def test_a_file_that_is_no_dump_imports_nothing(desk: Desk, text: str) -> None:
    """An error that names the file, and no ledger is made."""
    with pytest.raises(BadInput, match=r"dump\.csv"):
        desk.bring_in(text, device=GPU, taken_at_us=NOW_US)
    assert not desk.place.exists()


def test_a_dump_without_times_is_taken_as_told_else_as_now(desk: Desk) -> None:
    """And read again later it is still the dump of then."""
    bare = f"gpu_uuid, pid, time [ms]\n{GPU}, 7, 4115 ms\n"
    assert "time-assumed" in {problem.code for problem in desk.bring_in(bare, zone=None).problems}
    assert {row.read_at_us for row in desk.rows(DriverRecord)} == {NOW_US}
    again = desk.bring_in(bare, zone=None, now_us=NOW_US + 10**9)
    assert again.added == 0
    told = desk.bring_in(bare.replace(" 7,", " 8,"), zone=None, taken_at_us=NOW_US - 10**9)
    assert not [problem for problem in told.problems if problem.code == "time-assumed"]
    assert NOW_US - 10**9 in {row.read_at_us for row in desk.rows(DriverRecord)}


def test_accounting_that_is_off_is_told_as_unknown(desk: Desk) -> None:
    """A dump of a machine whose driver kept nothing is no idle machine."""
    xml = f"""<?xml version="1.0" ?>
<nvidia_smi_log><timestamp>Mon Jul 27 12:00:00 2026</timestamp><driver_version>590.48.01</driver_version>
<attached_gpus>1</attached_gpus><gpu id="00000000:01:00.0"><product_name>NVIDIA L4</product_name>
<uuid>{GPU}</uuid><accounting_mode>Disabled</accounting_mode><processes><process_info><pid>4242</pid><type>C</type>
<process_name>/usr/bin/ollama</process_name><used_memory>512 MiB</used_memory></process_info></processes>
</gpu></nvidia_smi_log>
"""
    report = desk.bring_in(xml)
    assert report.unknown == ((GPU, "accounting-disabled"),)
    assert report.living == 1
    assert [(row.pid, row.peak_memory_mib) for row in desk.rows(Sighting)] == [(4242, 512)]
    assert [row.status for row in desk.rows(Watch)] == ["accounting-disabled"]
    assert [row.method for row in desk.rows(ProcessIdentity)] == ["nvidia-smi"]
