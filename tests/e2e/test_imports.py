"""Imports by the installed command: real machines' dumps with their known answers, and dumps nobody can read."""

from __future__ import annotations

from pathlib import Path

import pytest

from e2e.box import GPU, Box, short, sums_up
from e2e.machine import need
from gpuledger.model.moments import iso, parse_moment

REAL = Path(__file__).resolve().parents[3] / "shared" / "data"
H200_MIG_MS = (8110, 39_376, 42_479, 42_532, 42_571, 41_397)
STORY = ("--pid-map", str(REAL / "story" / "pidmap.tsv"), "--host", "home", "--device", GPU, "--zone", "UTC")


@pytest.fixture
def real() -> Path:
    """The folder of real inputs."""
    need(REAL.is_dir(), "the real inputs are not here: ../shared/data")
    return REAL


def test_the_story_of_a_home_box(box: Box, real: Path) -> None:
    """3,981,583 ms settled: ollama, xtts, the rest unnamed; the living process is unsettled, never 0 used."""
    dump = str(real / "story" / "accounted.csv")
    taken = ("--taken-at", "2026-07-27T20:00:00Z")
    first = box.run("import", "nvidia-smi", dump, *STORY, *taken, "--format", "json").json
    again = box.run("import", "nvidia-smi", dump, *STORY, *taken, "--format", "json").json
    assert (first["finished"], first["living"], first["claims"]) == (11, 1, 3)
    assert again["added"] == 0
    (usage,) = box.read("usage")
    assert sum(row["settled"] for row in usage["rows"]) + usage["unattributed"]["quantity"] == 3_981_583
    settled = {row["service"]: row["settled"] for row in usage["rows"]}
    assert settled == {"ollama": 3_540_615, "xtts": 6748}
    assert usage["unattributed"]["quantity"] == 434_220
    assert set(usage["unattributed"]["causes"]) <= {"no-start-time", "before-watch"}
    (alive,) = usage["unsettled"]["rows"]
    assert (alive["service"], alive["pid"], alive["quantity"]) == ("ollama", 2_488_996, None)
    assert "missing" in alive
    sums_up(usage)
    table = box.run("usage").stdout
    assert "2488996" in table


def test_a_pid_map_that_comes_late_is_a_correction(box: Box, real: Path) -> None:
    """The hours are recorded unnamed first; the map moves the amounts to their services, and the total stands."""
    dump, now = str(real / "story" / "accounted.csv"), ("--now", "2026-07-28T12:00:00Z")
    where = ("--host", "home", "--device", GPU, "--taken-at", "2026-07-27T20:00:00Z")
    box.run("import", "nvidia-smi", dump, *where)
    meter = box.run("meter", *now, "--format", "json").json
    assert meter["records_added"] > 0
    (unnamed,) = box.read("usage --now 2026-07-28T12:00:00Z")
    assert (unnamed["rows"], unnamed["total"]) == ([], 3_981_583)
    assert unnamed["provisional"]["quantity"] == 0
    box.run("import", "nvidia-smi", dump, *where, "--pid-map", str(real / "story" / "pidmap.tsv"))
    late = box.run("meter", *now, "--format", "json").json
    deltas = [one["delta"] for one in late["corrections"] if one["meter"] == "gpu.context"]
    assert sum(deltas) == 0
    assert sum(delta for delta in deltas if delta < 0) == -3_547_363
    assert {one["reason"] for one in late["corrections"]} == {"late-name"}
    third = box.run("meter", *now, "--format", "json").json
    assert (third["records_added"], third["corrections_added"]) == (0, 0)
    (named,) = box.read("usage --now 2026-07-28T12:00:00Z")
    assert short(named) == {"ollama": 3_540_615, "xtts": 6748}
    assert named["total"] == 3_981_583
    box.ask("verify")


def test_captures_of_real_machines(box: Box, real: Path) -> None:
    """Masked UUIDs need a host; off is UNKNOWN; MIG keeps six frozen rows; idle and loaded count a process once."""
    folder = real / "nvidia-smi" / "captures"
    captures = sorted(folder.glob("*.txt"))
    assert len(captures) == 5
    refused = box.run("import", "nvidia-smi", str(captures[0]), "--zone", "UTC", status=2)
    assert "[host-needed]" in refused.stderr
    assert not box.ledger.exists()
    for number, capture in enumerate(captures):
        words = (
            "import",
            "nvidia-smi",
            str(capture),
            "--host",
            f"machine-{number}",
            "--zone",
            "UTC",
            "--format",
            "json",
        )
        report = box.run(*words).json
        assert report["host"] == f"machine-{number}"
        assert {one["reason"] for one in report["unknown"]} & {"accounting-disabled", "accounting-unsupported"}, capture
        if number < 2:
            assert box.run(*words).json["added"] == 0, capture
    hosts, devices = box.read("usage --by host", "usage --by host,device")
    mig = next(number for number, capture in enumerate(captures) if "h200-mig" in capture.name)
    settled = dict(
        box.sql(
            "SELECT host, sum(context_ms) FROM (SELECT DISTINCT host, pid, context_ms FROM driver_record) GROUP BY host"
        )
    )
    assert settled[f"machine-{mig}"] == sum(H200_MIG_MS)
    sums_up(hosts)
    sums_up(devices)
    assert hosts["total"] >= sum(H200_MIG_MS)
    assert {span["reason"] for span in hosts["unknown"]} & {"accounting-disabled", "accounting-unsupported"}


def test_xml_of_real_machines(box: Box, real: Path) -> None:
    """Every card's XML is read; accounting off is UNKNOWN, and a process that is listed lives."""
    for document in sorted((real / "nvidia-smi" / "xml").glob("*.xml")):
        words = ("import", "nvidia-smi", str(document), "--host", document.stem, "--zone", "UTC", "--format", "json")
        report = box.run(*words).json
        assert report["readings"] == 1, document
        assert {one["reason"] for one in report["unknown"]} <= {
            "accounting-disabled",
            "accounting-unsupported",
            "empty-ledger",
        }
        assert report["unknown"] or report["finished"], document
    (usage,) = box.read("usage", status=3)
    assert usage["total"] is None
    assert usage["unsettled"]["rows"] == [] or all(row["quantity"] is None for row in usage["unsettled"]["rows"])


HEADER = "timestamp, gpu_uuid, pid, gpu_utilization [%], mem_utilization [%], max_memory_usage [MiB], time [ms]\n"
ROW = f"2026/11/29 10:00:00.000, {GPU}, 4711, 0 %, 0 %, 184 MiB, 679 ms\n"
OK = ("--host", "box", "--zone", "UTC")


def test_bad_input_names_the_file_and_its_line_and_leaves_the_ledger_alone(box: Box) -> None:
    """Unreadable, binary, letters for a pid, a map with letters, no zone, an unknown zone: status, place, no change."""
    dump, masked = box.folder / "dump.csv", box.folder / "masked.csv"
    dump.write_text(HEADER + ROW)
    masked.write_text((HEADER + ROW).replace(GPU, "GPU-00000000-0000-0000-0000-000000000000"))
    junk, truncated, plain = box.folder / "junk.bin", box.folder / "half.xml", box.folder / "plain.txt"
    junk.write_bytes(bytes(range(256)) * 16)
    truncated.write_text('<?xml version="1.0" ?>\n<nvidia_smi_log>\n<gpu id="0">\n')
    plain.write_text("once upon a time\nthere was a file\n")
    letters, columns = box.folder / "letters.tsv", box.folder / "columns.tsv"
    letters.write_text("# a map\n4711\tollama\t1785166000\nabc\tollama\t1785166000\n")
    columns.write_text("4711 ollama 1785166000\n")
    policy = box.folder / "policy.yaml"
    policy.write_text("services:\n  - service: a\n    match: {command: a}\n    colour: red\n")
    tabs = box.folder / "tabs.yaml"
    tabs.write_text("services:\n\t- a\n")
    cases: list[tuple[tuple[str, ...], int, str, str]] = [
        (("import", "nvidia-smi", "missing.csv", *OK), 2, "unreadable-file", "missing.csv"),
        (("import", "nvidia-smi", str(box.folder), *OK), 2, "unreadable-file", str(box.folder)),
        (("import", "nvidia-smi", str(junk), *OK), 2, "not-text", f"{junk}:"),
        (("import", "nvidia-smi", str(truncated), *OK), 2, "broken-xml", f"{truncated}:2"),
        (("import", "nvidia-smi", str(plain), *OK), 2, "not-nvidia-smi", str(plain)),
        (("import", "nvidia-smi", str(dump), *OK, "--pid-map", str(letters)), 2, "bad-pid-map", f"{letters}:3"),
        (("import", "nvidia-smi", str(dump), *OK, "--pid-map", str(columns)), 2, "bad-pid-map", f"{columns}:1"),
        (("import", "nvidia-smi", str(dump), *OK, "--pid-map", str(junk)), 2, "", f"{junk}:"),
        (("import", "nvidia-smi", str(dump), "--host", "box"), 2, "zone-needed", str(dump)),
        (("import", "nvidia-smi", str(dump), "--host", "box", "--zone", "Mars/Olympus"), 2, "unknown-zone", "Mars"),
        (("import", "nvidia-smi", str(masked), "--zone", "UTC"), 2, "host-needed", str(masked)),
        (("apply", str(policy)), 2, "policy-unknown-key", f"{policy}:4"),
        (("apply", str(tabs)), 2, "policy-not-yaml", f"{tabs}:2"),
        (("apply", str(junk)), 2, "", f"{junk}:"),
        (("apply", "missing.yaml"), 2, "unreadable-file", "missing.yaml"),
    ]  # fmt: skip
    refuse(box, cases)
    assert not box.ledger.exists()
    assert list(box.ledger.parent.iterdir()) == []
    box.run("import", "nvidia-smi", str(dump), *OK)
    before = {path.name: path.read_bytes() for path in box.ledger.parent.iterdir()}
    refuse(box, cases[5:7] + cases[11:12])
    assert {path.name: path.read_bytes() for path in box.ledger.parent.iterdir()} == before


def refuse(box: Box, cases: list[tuple[tuple[str, ...], int, str, str]]) -> None:
    """Each command ends with its status, its code, and the place it is about."""
    for number, (words, status, code, place) in enumerate(cases):
        answer = box.run(*words, status=status) if number == 0 else box.ask(*words, status=status)
        assert f"{code}]" in answer.stderr, answer.stderr
        assert place in answer.stderr.replace("\n", ""), answer.stderr
        assert answer.stdout == ""


def test_the_pid_of_a_dump_is_named_by_an_older_map(box: Box) -> None:
    """pid, service and epoch seconds, tab by tab: the claim names the row, and explain shows whose word it is."""
    dump, claims = box.folder / "dump.csv", box.folder / "map.tsv"
    dump.write_text(HEADER + ROW)
    seconds = parse_moment("2026-11-29T09:59:59Z", now_us=0) // 1_000_000
    claims.write_text(f"4711\tollama\t{seconds}\n")
    box.run("import", "nvidia-smi", str(dump), *OK, "--pid-map", str(claims))
    (usage,) = box.read("usage")
    assert short(usage) == {"ollama": 679}
    told = box.run("explain", "service:ollama").stdout
    assert "pid-map" in told
    assert "claimed" in told
    assert iso(seconds * 1_000_000) in told
