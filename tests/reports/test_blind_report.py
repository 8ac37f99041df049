"""The blind report: sizes, reasons, odds, and what helps."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace
from fractions import Fraction

import pytest

from gpuledger.model.blind import BlindReport, Chance
from gpuledger.model.missing import Missing
from gpuledger.model.usage import SeenOnce, UnknownSize, Watched
from gpuledger.reports import blind_report


@pytest.fixture
def blind(day_fields: dict) -> BlindReport:
    shared = ("since_us", "until_us", "unknown", "sizes", "watched", "unattributed", "unsettled", "never_accounted")
    return BlindReport(
        **{name: day_fields[name] for name in shared},
        total_ms=15_153_362,
        chances=tuple(
            Chance(length_ms=length, interval_ms=interval, chance=min(Fraction(1), Fraction(length, interval)))
            for interval in (1000, 60_000)
            for length in (1000, 6000)
        ),
        looked_once=True,
        seen_once=(SeenOnce(service="tts", contexts=3),),
        nameless=(
            UnknownSize(reason="watch-gap", seconds=3600, spans=2, devices=1, meaning="nobody took names", command="x"),
            UnknownSize(reason="events-lost", seconds=3, spans=1, devices=1, meaning="dropped", command="y"),
        ),
        named=Watched(seconds=82_797, of=86_400),
        problems=(),
    )


def test_table_names_size_meaning_and_help(blind: BlindReport, printed) -> None:
    """Every blind spot says how large it is, what it means, and what helps."""
    text = printed(blind_report.to_table(blind))
    for said in (
        "Watched 21 h 26 min of 24 h device time (89.3 %)",
        "UNKNOWN accounting-disabled  2 h 34 min",
        "what helps: sudo nvidia-smi -am 1",
        "Naming  names can be missing of 1 h 0 min 3 s of 24 h host time",
        "events-lost   3 s      1  dropped",
        "what helps: y",
        "Not named  14 min 56.8 s of 4 h 12 min 33.4 s context time, never spread over the named",
        "before-watch     12 min 53.1 s  773,149  5.1 %  dead before the agent first looked",
        "Still running  18 min 20 s",
        "tts       77  box GPU-5a3c1f2e  25 h 1 min 1 s   5 GiB",
        "a job of  every 1 s  every 1 min",
        "     6 s      100 %       10.0 %",
        "some looks were single ones",
        "Seen once  3 contexts alive at one look and gone at the next: time UNKNOWN",
    ):
        assert said in text


def test_narrow_terminals_get_the_longest_interval(blind: BlindReport, printed) -> None:
    """Odds that do not fit are counted, not squeezed; the worst interval is shown."""
    text = printed(blind_report.to_table(blind, width=30), 30)
    assert "every 1 min" in text
    assert "every 1 s" not in text
    assert "and 1 shorter interval" in text


@pytest.mark.parametrize("width", range(40, 141, 7))
def test_no_figure_is_cut_at_any_width(blind: BlindReport, printed, width: int) -> None:
    """Where there is no room a column is left out; what stands there stands whole."""
    text = printed(blind_report.to_table(blind, width=width), width)
    assert all(len(each) <= width for each in text.splitlines())
    for figure in ("773,149", "123,676", "18 min 20 s", "2488996", "25 h 1 min 1 s", "5 GiB", "1.7 %", "100 %"):
        assert figure in text


def test_what_looks_said_of_a_span_stands_with_it(blind: BlindReport, printed) -> None:
    """Behind its times, in the same line, and in every format."""
    (span,) = blind.unknown
    told = replace(blind, unknown=(replace(span, detail="opened by pid 77\nof which nothing is listed"),))
    text = " ".join(printed(blind_report.to_table(told)).split())
    assert "to 2026-07-27T02:34:00Z: opened by pid 77\\nof which nothing is listed" in text
    assert blind_report.to_json(told)["unknown"][0]["detail"] == told.unknown[0].detail
    first, second, *_ = csv.DictReader(io.StringIO(blind_report.to_csv(told)))
    assert (first["detail"], second["detail"]) == (told.unknown[0].detail, "")


def test_json_holds_exact_odds(blind: BlindReport) -> None:
    """Chances are fractions; contexts seen once are counted."""
    document = json.loads(json.dumps(blind_report.to_json(blind)))
    assert document["chances"][-1] == {"interval_ms": 60000, "length_ms": 6000, "chance": "1/10", "percent": "10.0 %"}
    assert document["unattributed"]["quantity"] == sum(each["quantity"] for each in document["unattributed"]["causes"])
    assert document["unattributed"]["of"] == 15153362
    assert document["seen_once"] == [{"service": "tts", "contexts": 3}]
    assert document["reasons"][0]["command"] == "sudo nvidia-smi -am 1"
    assert document["idle"] == {"seconds": 0, "why": ""}
    assert (document["naming"]["seconds"], document["naming"]["of"]) == (82_797, 86_400)
    assert document["naming"]["reasons"][1] == {
        "reason": "events-lost", "seconds": 3, "spans": 1, "hosts": 1, "meaning": "dropped", "command": "y",
    }  # fmt: skip
    assert document["never_accounted"][0]["missing"] == {"quantity": "no start time"}


def test_csv_tells_kinds_apart(blind: BlindReport) -> None:
    """One sheet holds every kind of blind spot, each with its unit."""
    rows = list(csv.DictReader(io.StringIO(blind_report.to_csv(blind))))
    assert [(row["kind"], row["quantity"], row["unit"]) for row in rows] == [
        ("unknown", "9240", "s"),
        ("nameless", "3600", "s"),
        ("nameless", "3", "s"),
        ("unattributed", "773149", "ms"),
        ("unattributed", "123676", "ms"),
        ("unsettled", "1100000", "ms"),
        ("unsettled", "", "ms"),
        ("never-accounted", "", "ms"),
        ("seen-once", "3", "contexts"),
    ]


def test_nothing_known_and_nothing_unnamed(day_fields: dict, printed) -> None:
    """UNKNOWN where nothing was seen; `nothing of` where all was named."""
    empty: dict = {
        "since_us": day_fields["since_us"], "until_us": day_fields["until_us"], "unknown": (), "sizes": (),
        "unattributed": (), "unsettled": (), "never_accounted": (), "chances": (), "looked_once": False,
        "seen_once": (), "problems": (), "nameless": (), "named": Watched(seconds=9, of=9),
    }  # fmt: skip
    unseen = BlindReport(**empty, total_ms=Missing("not watched"), watched=Watched(seconds=0, of=0))
    text = printed(blind_report.to_table(unseen))
    assert "Not named  UNKNOWN: not watched" in text
    assert "no device is known for this time" in text
    assert blind_report.to_json(unseen)["unattributed"]["quantity"] is None
    named = BlindReport(**empty, total_ms=5000, watched=Watched(seconds=9, of=9))
    assert "Not named  nothing of 5 s context time" in printed(blind_report.to_table(named))
    idle = BlindReport(**empty, total_ms=0, watched=Watched(seconds=9, of=9))
    assert "Not named  nothing: no context time is known" in printed(blind_report.to_table(idle))
