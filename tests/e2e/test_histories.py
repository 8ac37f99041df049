"""Real traces and real accounting by the installed command: imported, metered, and asked for their known answers."""

from __future__ import annotations

import csv
import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from e2e.box import Box
from e2e.machine import need
from gpuledger.model.durations import decimal
from gpuledger.model.moments import DAY_US, iso
from gpuledger.model.rounding import nearest

REAL = Path(__file__).resolve().parents[3] / "shared" / "data"
NOW = ("--now", "2026-11-29T12:00:00Z")
MONTH_US = 30 * DAY_US
FOX = (
    "JobID,JobIDRaw,User,Account,State,Start,End,AveCPU,AveDiskRead,AveDiskWrite,AveRSS,AveVMSize,ElapsedRaw,ExitCode,"
    "Layout,MaxRSS,MaxVMSize,MinCPU,ReqCPUS,ReqMem,ReqNodes,Reservation,Submit,Suspended,SystemCPU,TimelimitRaw,"
    "UserCPU,NodeList,Partition,AllocTRES,Priority,JobName"
)


@pytest.fixture
def real() -> Path:
    """The folder of real inputs."""
    need(REAL.is_dir(), "the real inputs are not here: ../shared/data")
    return REAL


def brought(box: Box, *words: str) -> Any:
    """Import, a second time too, and meter: what the first import said."""
    first = box.run("import", *words, *NOW, "--format", "json").json
    again = box.run("import", *words, *NOW, "--format", "json").json
    assert (again["added"], again["known"], again["conflicts"]) == (0, first["added"], 0)
    assert box.run("meter", *NOW, "--format", "json").json["records_added"] > 0
    assert box.run("meter", *NOW, "--format", "json").json["records_added"] == 0
    return first


def used(box: Box, by: str, *words: str) -> dict[str, Fraction]:
    """Device-seconds by one word; what stands in the rows adds up to the total."""
    found = box.run("usage", "--meter", "gpu.reserved", "--by", by, *words, *NOW, "--format", "json").json
    rows = {row[by]: Fraction(row["quantity"]) for row in found["rows"]}
    assert sum(rows.values()) == Fraction(found["total"])
    return rows


def recorded(box: Box) -> Fraction:
    """Device-seconds of the hourly records alone, out of the tables: devices and share stand with the placement."""
    rows = box.sql(
        "SELECT r.quantity, p.count, p.share_num, p.share_den FROM usage_record AS r JOIN placement AS p"
        " ON r.device = 'placement:' || p.placement WHERE r.meter = 'gpu.reserved'"
    )
    return sum((Fraction(seconds * count * num, den) for seconds, count, num, den in rows), Fraction(0))


def whole_devices(box: Box) -> int:
    """The same without the shares."""
    ((seconds,),) = box.sql(
        "SELECT SUM(r.quantity * p.count) FROM usage_record AS r JOIN placement AS p"
        " ON r.device = 'placement:' || p.placement WHERE r.meter = 'gpu.reserved'"
    )
    return int(seconds)


def test_openb(box: Box, real: Path) -> None:
    """185,294,426.970 device-seconds with fractions, 214,603,958 whole; by qos, by 30-day month, and in the records."""
    trace = str(real / "traces" / "openb" / "openb_pod_list_default.csv")
    first = brought(box, "trace", trace, "--preset", "openb")
    assert (first["rows_read"], first["running"]) == (8152 - 897 - 1052, 32)
    assert [problem["code"] for problem in first["problems"]] == ["no-devices", "not-scheduled"]
    window = ("--since", "1970-01-01", "--until", "1970-06-01")
    assert used(box, "label:qos", *window) == {
        "LS": Fraction("149088096.090"),
        "Burstable": Fraction("26853122.000"),
        "BE": Fraction("4721888.880"),
        "Guaranteed": Fraction("4631320.000"),
    }
    months = [
        sum(used(box, "class", "--since", iso(month * MONTH_US), "--until", iso((month + 1) * MONTH_US)).values())
        for month in range(5)
    ]
    assert months == [
        Fraction(text)
        for text in ("4621490.940", "15542125.760", "25735758.980", "46358724.340", "93036326.950")
    ]  # fmt: skip
    assert recorded(box) == sum(months) == Fraction("185294426.970")
    assert whole_devices(box) == 214_603_958
    planned = box.run("capacity", *NOW, "--format", "json").json["all"]
    seconds = Fraction("185294426.970")
    assert Fraction(planned["mean"]) * planned["of_us"] / 1_000_000 == seconds


def test_fox(box: Box, real: Path) -> None:
    """3,360,033 device-seconds by class and by user: no step is added, typed and untyped never summed."""
    dump = str(real / "slurm" / "fox" / "sacct_output.txt")
    first = brought(box, "slurm", dump, "--zone", "Europe/Oslo", "--cluster", "fox", "--columns", FOX)
    assert (first["source"], first["rows_read"]) == ("slurm:fox", 301)
    assert used(box, "class") == {
        "a100": 1_995_103, "a100_80": 1_235_751, "rtx30": 63_737, "l40s": 41_786, "a40": 17_529, "gpu": 6127,
    }  # fmt: skip
    users = used(box, "user")
    assert (len(users), max(users.values()), sum(users.values())) == (14, 1_192_379, 3_360_033)
    assert recorded(box) == 3_360_033


@pytest.mark.parametrize(
    ("name", "seconds", "missing"),
    [
        ("sample-sacct-multiple-multiline.txt", 103_664_640, "200131"),
        ("sample-sacct-output-invalid-utf8.txt", 8004, "3557893"),
    ],
)
def test_gcm(box: Box, real: Path, name: str, seconds: int, missing: str) -> None:
    """Identical rows once, line breaks inside fields, bytes that are no UTF-8; a missing allocation is told."""
    first = brought(box, "slurm", str(real / "slurm" / "gcm" / name), "--zone", "UTC")
    told = [problem["message"] for problem in first["problems"] if problem["code"] == "allocation-missing"]
    assert len(told) == 1
    assert f"job {missing} " in told[0]
    assert sum(used(box, "user").values()) == recorded(box) == seconds


def test_xdmod(box: Box, real: Path) -> None:
    """Every published day to four decimals."""
    folder = real / "slurm" / "xdmod"
    fields = json.loads((folder / "key_expectations.json").read_text(encoding="utf-8"))["fields_1based"]
    columns = ",".join(sorted(fields, key=fields.__getitem__))
    brought(box, "slurm", str(folder / "phillips.sacct.log"), "--zone", "UTC", "--columns", columns)
    told = (folder / "expected_resource_total_gpu_hours_timeseries-Day.csv").read_text(encoding="utf-8")
    rows = [row for row in csv.reader(told.splitlines()) if len(row) > 2 and row[0][:1].isdigit()]
    published = {row[0]: row[1] for row in rows}
    assert len(published) == 11
    days = used(box, "day")
    assert {day: decimal(nearest(seconds * 10_000 / 3600), 4) for day, seconds in days.items()} == published


def test_xdmod_cpu_hours(box: Box, real: Path) -> None:
    """What is metered of them, each published day to four decimals: jobs without a GPU, seconds times CPUs.

    The rest is not metered: the one GPU job's 12 CPUs beside its 2 GPUs, so 6 CPU-hours a GPU-hour.
    """
    folder = real / "slurm" / "xdmod"
    fields = json.loads((folder / "key_expectations.json").read_text(encoding="utf-8"))["fields_1based"]
    columns = ",".join(sorted(fields, key=fields.__getitem__))
    brought(box, "slurm", str(folder / "phillips.sacct.log"), "--zone", "UTC", "--columns", columns, "--include-cpu")
    told = (folder / "expected_resource_total_cpu_hours_timeseries-Day.csv").read_text(encoding="utf-8")
    rows = [row for row in csv.reader(told.splitlines()) if len(row) > 2 and row[0][:1].isdigit()]
    words = ("usage", "--meter", "cpu.reserved", "--by", "day,label:cpus", *NOW, "--format", "json")
    days = {day: 6 * seconds for day, seconds in used(box, "day").items()}
    for row in box.run(*words).json["rows"]:
        days[row["day"]] = days.get(row["day"], Fraction(0)) + row["seconds"] * int(row["label:cpus"])
    assert {day: decimal(nearest(seconds * 10_000 / 3600), 4) for day, seconds in days.items()} == {
        row[0]: row[5] for row in rows
    }
    assert decimal(nearest(sum(days.values()) * 10_000 / 3600), 4) == "11767.9883"


def test_a_dump_of_half_the_people_ends_nobody_else(box: Box, tmp_path: Path) -> None:
    """Ann's job was seen at 10:30; a later dump of bob's alone adds no hour to it, and one of both does."""
    header = "JobID|User|State|Start|End|ElapsedRaw|AllocTRES\n"

    def dump(*rows: tuple[str, str, int]) -> str:
        path = tmp_path / "sacct.txt"
        path.write_text(
            header
            + "".join(
                f"{job}|{user}|RUNNING|2026-11-20T10:00:00|Unknown|{elapsed}|gres/gpu=1\n"
                for job, user, elapsed in rows
            ),
            encoding="utf-8",
        )
        return str(path)

    def bring(path: str) -> None:
        box.run("import", "slurm", path, "--zone", "UTC", *NOW)
        box.run("meter", *NOW)

    bring(dump(("1", "ann", 1800)))
    bring(dump(("2", "bob", 7200)))
    assert used(box, "user") == {"bob": 7200, "ann": 1800}
    bring(dump(("1", "ann", 9000), ("2", "bob", 9000)))
    assert used(box, "user") == {"ann": 9000, "bob": 9000}
