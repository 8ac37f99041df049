"""Rows become integers and text, and come back the same."""

from __future__ import annotations

from dataclasses import fields, replace
from enum import IntEnum

import pytest

from gpuledger.errors import Refused
from gpuledger.ledger.codec import CODECS, NOT_RECORDED, driver_ended_at_us
from gpuledger.model.missing import Missing
from gpuledger.model.reasons import UnknownReason
from gpuledger.model.rows import DriverRecord, Watch


def test_every_kind_comes_back_as_it_went(make) -> None:
    """Encoding and decoding is the identity, save for the reason of an absence."""
    for row in [make.archive(), *make.one_of_each()]:
        codec = CODECS[type(row)]
        cells = codec.encode([row])[0]
        width = len(codec.fields) - 2
        (back,) = codec.decode([("box.agent", 7, *cells[:width])])
        expected = {
            field.name: NOT_RECORDED if isinstance(value := getattr(row, field.name), Missing) else value
            for field in fields(row)
        }
        assert back == type(row)(**expected)
        assert back.ref == f"{row.kind}:box.agent/7"


def test_an_empty_batch_is_nothing() -> None:
    """No rows, no cells."""
    assert CODECS[Watch].encode([]) == []
    assert CODECS[Watch].decode([]) == []
    assert CODECS[Watch].number([], "w", 1) == []


def test_numbering_keeps_the_reason_of_an_absence(make) -> None:
    """What append hands back says why something is missing, as it was given."""
    (row,) = CODECS[DriverRecord].number([make.driver()], "box.agent", 4)
    assert (row.writer, row.number) == ("box.agent", 4)
    assert isinstance(row, DriverRecord)
    assert row.memory_percent == Missing("driver: not supported")


def test_derived_columns_follow_from_the_row(make) -> None:
    """A driver's row carries its natural key and its end."""
    started = make.driver(context_ms=1500)
    *_, natural_key, ended = CODECS[DriverRecord].encode([started])[0]
    assert (natural_key, ended) == (f"start:{started.started_at_us}", started.started_at_us + 1_500_000)
    unstarted = make.driver(started_at_us=Missing("csv"))
    *_, natural_key, ended = CODECS[DriverRecord].encode([unstarted])[0]
    assert (natural_key, ended) == (unstarted.natural_key, unstarted.read_at_us)
    assert driver_ended_at_us(unstarted) == unstarted.read_at_us


def test_an_enum_of_text_is_stored_as_plain_text(make) -> None:
    """A status given as an enum member is the member's text."""
    cells = CODECS[Watch].encode([make.watch(status=UnknownReason.EMPTY_LEDGER)])[0]
    assert "empty-ledger" in cells
    assert {type(cell) for cell in cells} == {int, str}


class _Level(IntEnum):
    LOW = 1


@pytest.mark.parametrize("wrong", [1.0, True, "1", None, Missing("x"), _Level.LOW, b"1"])
def test_what_is_no_whole_number_is_a_bug(make, wrong: object) -> None:
    """A float or truth value would hash differently from what is stored, so it never gets that far."""
    with pytest.raises(TypeError, match=r"watch\.readings cannot hold"):
        CODECS[Watch].encode([make.watch(), replace(make.watch(), readings=wrong)])


def test_a_wrong_value_beside_an_absent_one_is_found(make) -> None:
    """In a column that may be absent, only Missing is."""
    rows = [make.driver(), make.driver(gpu_percent=Missing("x")), make.driver(gpu_percent=0.5)]
    with pytest.raises(TypeError, match=r"driver_record\.gpu_percent cannot hold"):
        CODECS[DriverRecord].encode(rows)
    with pytest.raises(TypeError, match=r"driver_record\.gpu_percent cannot hold"):
        CODECS[DriverRecord].encode([make.driver(gpu_percent=None), make.driver(gpu_percent=Missing("x"))])
    with pytest.raises(TypeError, match=r"driver_record\.gpu_percent cannot hold NoneType"):
        CODECS[DriverRecord].encode([make.driver(gpu_percent=None)])


@pytest.mark.parametrize(("odd", "what"), [("a\0b", "a NUL byte"), ("a\ud800b", "half of a letter")])
@pytest.mark.parametrize("status", ["ok", UnknownReason.EMPTY_LEDGER])
def test_what_is_no_text_is_refused_by_name(make, odd: str, what: str, status: str) -> None:
    """On every store alike, before anything is written: in any column, and beside texts that are enum members."""
    rows = [make.watch(0), make.watch(1, detail="Müller"), make.watch(2, detail=odd, status=status)]
    with pytest.raises(Refused, match=what) as caught:
        CODECS[Watch].encode(rows)
    assert caught.value.code == "row-not-text"
    assert repr(odd) in caught.value.message
    assert "watch.detail" in caught.value.message
    assert CODECS[Watch].encode(rows[:2])


def test_an_odd_text_in_an_enum_column_is_found(make) -> None:
    """A column that has to be looked through for its types is looked through for its letters too."""
    with pytest.raises(Refused, match=r"watch\.status"):
        CODECS[Watch].encode([make.watch(0, status=UnknownReason.EMPTY_LEDGER), make.watch(1, status="o\0k")])
