"""What is said of an export and of a metering of a lake."""

from __future__ import annotations

import csv
import io

from rich.console import Console, RenderableType

from gpuledger.model.lake import ExportReport, LakeDifference, LakeFile, LakeMeterReport, Manifest
from gpuledger.reports import lake_report

FILE = LakeFile(
    name="pass/2026-11.parquet", table="pass", month="2026-11", rows=3, size=9, sha256="ab", changed_ns=7, numbers={}
)
MANIFEST = Manifest(exported_at_us=5, marks={}, heads={}, root="", files=(FILE,), whole=False)
EXPORT = ExportReport(place="lake", manifest=MANIFEST, written=(FILE.name,), kept=2, removed=("x",))
DIFFERENCE = LakeDifference(
    meter="gpu.reserved", hour_us=0, host="n1", device="d", subject="s" * 64, exported=3600, derived=0
)
METER = LakeMeterReport(
    place="lake", until_us=0, records=7, files=(), unplaced_s=60, checked=True, differences=1, listed=(DIFFERENCE,)
)


def text(shown: RenderableType) -> str:
    """As on a wide terminal."""
    console = Console(width=300)
    with console.capture() as captured:
        console.print(shown)
    return captured.get()


def test_an_export_says_what_it_wrote_and_what_it_is_not() -> None:
    """A part of the ledger, and texts that stay in copies."""
    said = text(lake_report.export_to_table(EXPORT))
    for words in ("1 file written, 2 as they were, 3 rows", "1 file without rows removed", "a part of the ledger"):
        assert words in said
    told = lake_report.export_to_json(EXPORT)
    assert (told["whole"], told["root"], told["written"]) == (False, None, [FILE.name])
    assert next(csv.DictReader(io.StringIO(lake_report.export_to_csv(EXPORT))))["state"] == "written"


def test_a_metering_says_what_it_could_not_place_and_where_it_differs() -> None:
    """Unknown time is no record; a difference has both sides."""
    said = text(lake_report.meter_to_table(METER))
    for words in ("7 records derived", "nothing had changed", "unplaced", "exported 3600, derived 0 s"):
        assert words in said
    assert lake_report.meter_to_json(METER)["differences"] == 1
    assert next(csv.DictReader(io.StringIO(lake_report.meter_to_csv(METER))))["exported"] == "3600"
