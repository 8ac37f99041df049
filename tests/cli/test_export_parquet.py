"""``gpuledger export parquet`` and the verbs that read a lake: what they print, and how they end."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

from lakes import told


@pytest.fixture
def lake(gpuledger, tmp_path: Path) -> Path:
    """A lake of the machine's ledger, metered and exported at an hour of the morning."""
    plane = told(tmp_path / "box.db")
    plane.meter(150)
    plane.ledger.close()
    done = gpuledger("export", "parquet", "--to", tmp_path / "lake", "--now", "2026-08-02T06:00:00Z")
    assert (done.status, "files written, 0 as they were" in done.out) == (0, True)
    return tmp_path / "lake"


def test_a_lake_is_exported_checked_and_asked(gpuledger, lake: Path) -> None:
    """The tour of the guide."""
    again = gpuledger("export", "parquet", "--to", lake, "--now", "2026-08-02T06:00:00Z", "--format", "json").json
    assert (again["written"], again["whole"]) == ([], True)
    checked = gpuledger("meter", "--lake", lake, "--check", "--format", "json")
    assert (checked.status, checked.json["differences"], checked.json["unplaced_seconds"]) == (0, 0, 1800)
    asked = gpuledger("usage", "--lake", lake, "--meter", "gpu.reserved", "--by", "team", "--format", "json")
    assert {row["team"]: row["seconds"] for row in asked.json["rows"]} == {"vision": 9000, "nlp": 18000}
    assert asked.json["gaps"] is None
    assert "does not look for" in asked.err
    assert gpuledger("usage", "--lake", lake, "--meter", "gpu.reserved", "--strict").status == 1


def test_a_file_from_elsewhere_is_named(gpuledger, lake: Path) -> None:
    """By the next export, which leaves it; a check refuses."""
    shutil.copy(lake / "pass" / "2026-08.parquet", lake / "pass" / "2031-01.parquet")
    again = gpuledger("export", "parquet", "--to", lake, "--now", "2026-08-02T06:00:00Z", "--format", "json")
    assert again.json["strangers"] == ["pass/2031-01.parquet"]
    assert "pass/2031-01.parquet: no export wrote it" in again.err
    checked = gpuledger("meter", "--lake", lake, "--check", "--format", "json")
    assert (checked.status, checked.error["code"]) == (6, "lake-damaged")


def test_engines_are_chosen_by_name(gpuledger, lake: Path) -> None:
    """Nothing is new after the built-in one."""
    done = gpuledger("meter", "--engine", "duckdb", "--now", "2026-08-02T06:00:00Z", "--format", "json")
    assert (done.status, done.json["records_added"]) == (0, 0)


@pytest.mark.parametrize(
    ("words", "code", "status"),
    [
        (("usage", "--lake", "LAKE"), "not-in-a-lake", 2),
        (("usage", "--lake", "nowhere", "--meter", "gpu.reserved"), "no-lake", 2),
        (("meter", "--check"), "lake-needed", 2),
        (("export", "parquet", "--to", "LAKE", "--table", "x"), "unknown-table", 2),
        (("export", "parquet", "--to", "LAKE/pass"), "not-a-lake", 2),
    ],
)
def test_what_cannot_be_done_says_so(gpuledger, lake: Path, words: tuple[str, ...], code: str, status: int) -> None:
    """With its code and a hint."""
    done = gpuledger(*(word.replace("LAKE", str(lake)) for word in words), "--format", "json")
    assert (done.status, done.error["code"]) == (status, code)
    assert done.error["hint"]


def test_without_the_extra_the_install_command_is_told(gpuledger, lake: Path, monkeypatch) -> None:
    """Of each verb that needs it."""
    monkeypatch.setitem(sys.modules, "duckdb", None)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    for words in (
        ("export", "parquet", "--to", lake),
        ("meter", "--engine", "duckdb"),
        ("meter", "--lake", lake),
        ("usage", "--lake", lake, "--meter", "gpu.reserved"),
    ):
        done = gpuledger(*words, "--format", "json")
        assert (done.status, done.error["code"], done.error["hint"]) == (
            5, "missing-extra", "pip install 'gpuledger[lake]'",
        )  # fmt: skip
