"""The words of a lake: months, and the manifest's text."""

from __future__ import annotations

import pytest

from gpuledger.model.lake import (
    LakeFile,
    Manifest,
    NotThisFormat,
    month_of,
    month_span,
    numbers_of,
    read_manifest,
)
from gpuledger.model.moments import DAY_US, parse_moment

FILE = LakeFile(
    name="pass/2026-11.parquet", table="pass", month="2026-11", rows=1, size=9, sha256="ab", changed_ns=7,
    numbers={"box.meter": (1, 4)},
)  # fmt: skip
MANIFEST = Manifest(
    exported_at_us=5, marks={"box.meter": 4}, heads={"box.meter": (4, "00")}, root="", files=(FILE,), metered_of="x"
)


def test_a_month_has_a_start_and_an_end() -> None:
    """Leap years and the turn of the year."""
    for month, days in (("2026-12", 31), ("2028-02", 29), ("2026-11", 30)):
        since_us, until_us = month_span(month)
        assert (until_us - since_us) == days * DAY_US
        assert [month_of(at_us) for at_us in (since_us, until_us - 1)] == [month, month]
    assert month_span("2026-11")[0] == parse_moment("2026-11-01T00:00:00Z", now_us=0)


def test_a_manifest_reads_as_it_was_written() -> None:
    """To the last field."""
    assert read_manifest(MANIFEST.to_json()) == MANIFEST
    assert MANIFEST.of("pass", "policy") == [FILE]


@pytest.mark.parametrize("hurt", ['"sha256"', '"files"', '"marks"', "gpuledger-lake", "{"])
def test_a_hurt_manifest_is_none(hurt: str) -> None:
    """A word that is missing, another's file, half a text: never half a manifest."""
    with pytest.raises(ValueError, match="not the manifest"):
        read_manifest(MANIFEST.to_json().replace(hurt, '"other"' if hurt != "{" else "", 1))


def test_another_version_is_told_apart_from_damage() -> None:
    """It may be right, and is not read."""
    with pytest.raises(NotThisFormat):
        read_manifest(MANIFEST.to_json().replace('"version": 1', '"version": 9'))


def test_numbers_are_lowest_and_highest() -> None:
    """By writer."""
    assert numbers_of([("b", 3), ("a", 1), ("b", 2)]) == {"a": (1, 1), "b": (2, 3)}
