"""Home-made pid maps: claims, or a refusal of the whole file."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuledger.errors import BadInput
from gpuledger.sources.pid_map import PidClaim, parse

SHARED = Path(__file__).resolve().parents[2].parent / "shared" / "data"


def test_each_line_is_a_claim() -> None:
    """Comments, empty lines, CRLF and a byte order mark do not matter; identical lines count once."""
    text = "\ufeff# pid map\r\n\r\n17\tollama\t1785166000\r\n17\tollama\t1785166000\r\n  # more\n"
    text += "18\tmy tts \t1785166001.5\n"
    assert parse(text, path="map") == [
        PidClaim(pid=17, service="ollama", seen_at_us=1_785_166_000_000_000, line=3),
        PidClaim(pid=18, service="my tts", seen_at_us=1_785_166_001_500_000, line=6),
    ]


def test_one_pid_may_have_been_two_services() -> None:
    """At two moments, or by two words: both are kept, and the join decides."""
    assert len(parse("17\ta\t100\n17\tb\t100\n17\ta\t200\n", path="map")) == 3


@pytest.mark.parametrize(
    "line",
    ["abc\tollama\t1785166000", "-5\tollama\t1785166000", "0\tollama\t1785166000", "4194305\tollama\t1785166000",
     "17\tollama", "17 ollama 1785166000", "17\tollama\t1785166000\textra", "17\t\t1785166000", "17\tollama\tsoon",
     "17\tollama\t", "17\tollama\t-1", "17\tollama\t1785166000000", "17\tollama\t1e9", "17\tollama\t0",
     "\u0661\u0667\tollama\t1785166000", "pid\tservice\tepoch", "17\tol\x1blama\t1785166000", "\0\0\0",
     "17\tollama\t1785166000.1234567"],
)  # fmt: skip
def test_a_bad_line_refuses_the_file_and_is_named(line: str) -> None:
    """Nothing is half-imported: the line number and the shape that is expected are told."""
    with pytest.raises(BadInput, match="map:2") as caught:
        parse(f"17\tollama\t1785166000\n{line}\n", path="map")
    assert (caught.value.code, caught.value.line) == ("bad-pid-map", 2)
    assert "TAB" in caught.value.hint


def test_an_empty_map_claims_nothing() -> None:
    """It is no error to know nothing."""
    assert parse("", path="map") == []


@settings(max_examples=200)
@given(st.lists(st.sampled_from(["17", "\t", "x", "\n", "#", "1785166000", " "]) | st.text(max_size=5)).map("".join))
def test_any_text_gives_claims_or_an_error_of_ours(text: str) -> None:
    """And every claim has a pid, a name and a time."""
    try:
        claims = parse(text, path="map")
    except BadInput:
        return
    assert all(claim.pid > 0 and claim.service and claim.seen_at_us > 0 for claim in claims)


def test_the_storys_map_is_read() -> None:
    """The owner's own map of the home box."""
    if not SHARED.is_dir():
        if os.environ.get("CI"):
            pytest.fail("../shared/data is absent, and CI must try the real inputs")
        pytest.skip("../shared/data is absent: the real map is not tried")
    claims = parse((SHARED / "story" / "pidmap.tsv").read_text(encoding="utf-8"), path="pidmap.tsv")
    assert [(claim.pid, claim.service) for claim in claims] == [
        (2994471, "ollama"),
        (2290087, "xtts"),
        (2488996, "ollama"),
    ]
