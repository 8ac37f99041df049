"""Maps of traces: what they declare, and that every refusal names its line."""

from __future__ import annotations

from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuledger.errors import BadInput, Misconfigured
from gpuledger.model.moments import parse_moment
from gpuledger.sources.trace_map import CHOICES, CONSTANT, WORDS, parse, preset
from gpuledger.sources.trace_times import Times

LEAST = "columns: {id: job, start: began, end: ended, devices: gpus, class: card}\n"
WHOLE = """
columns:
  id: [job, try]
  pending: asked
  start: began
  end: ended
  devices: gpus
  share: part
  class: card
  requested_class: wanted
  user: who
  team: vc
  machine: node
  outcome: state
labels: {qos: qos, tier: priority}
constants:
  region: eu
  pool: shared
  devices: 1
  labels: {trace: mine}
units: {time: ms, share: percent, devices: one}
origin: 2020-07-01
repeated_hour: second
missing:
  end: [0, "-", None]
failed: [Failed, Killed]
classes: {"P100": P100-PCIE-16GB}
prefix: mine/
delimiter: tab
decimal: ","
header: [job, try, asked]
censored_at: 86400
rows: {censored: ended, without_start: pending, without_end: open, without_devices: cpu}
"""


def refused(text: str) -> BadInput:
    with pytest.raises(BadInput) as caught:
        parse(text, path="map.yaml")
    assert caught.value.code == "bad-map"
    return caught.value


def test_whole_map_is_understood() -> None:
    """Every key of a map, each in its place."""
    made = parse(WHOLE, path="map.yaml")
    assert made.columns["id"] == ("job", "try")
    assert made.columns["requested_class"] == ("wanted",)
    assert made.labels == (("qos", "qos"), ("tier", "priority"))
    assert made.constants == {"region": "eu", "pool": "shared", "devices": "1"}
    assert made.constant_labels == (("trace", "mine"),)
    assert (made.share_per, made.devices_per) == (100, 1)
    assert made.times == Times(
        unit="ms", origin_us=parse_moment("2020-07-01", now_us=0), repeated_hour="second", decimal_comma=True
    )
    assert made.missing == {"end": frozenset({"0", "-", "None"})}
    assert made.failed == {"Failed", "Killed"}
    assert made.classes == {"P100": "P100-PCIE-16GB"}
    assert (made.prefix, made.delimiter, made.header) == ("mine/", "\t", ("job", "try", "asked"))
    assert (made.censored_at, made.rows["censored"], made.rows["without_devices"]) == ("86400", "ended", "cpu")


def test_least_map_takes_nothing_for_granted() -> None:
    """Seconds since 1970, whole devices, and rows that lack something are left out."""
    made = parse(LEAST, path="map.yaml")
    assert made.times == Times(unit="s")
    assert (made.delimiter, made.header, made.censored_at) == (",", (), "")
    assert {key: made.rows[key] for key in ("without_start", "without_end", "without_devices")} == {
        "without_start": "left-out", "without_end": "left-out", "without_devices": "left-out",
    }  # fmt: skip


def test_columns_that_a_file_may_lack() -> None:
    """What they would say is not said; those that the map needs stay."""
    made = parse(f"{LEAST}labels: {{qos: class_of_service}}\noptional: [gpus, class_of_service]\n", path="map.yaml")
    assert made.optional == {"gpus", "class_of_service"}
    less = made.without(["gpus", "class_of_service"])
    assert (set(less.columns), less.labels) == ({"id", "start", "end", "class"}, ())
    assert made.without([]) == made


@pytest.mark.parametrize(
    ("text", "line", "says"),
    [
        (LEAST + "optional: [gpu]\n", 2, "'gpu' is optional, and nothing is read from it"),
        (LEAST + "optional: [began]\n", 2, "without its id and start"),
        (LEAST + "begins_at: 0\n", 2, "belong together"),
        (LEAST + "rows: {without_start: begun}\n", 2, "belong together"),
        (LEAST + "begins_at: soon\nrows: {without_start: begun}\n", 2, "'soon' is not a number of s"),
        (LEAST + "zne: UTC\n", 2, "unknown key 'zne' in the map"),
        ("columns:\n  id: job\n  gpu: x\n", 3, "unknown key 'gpu' in `columns`"),
        (LEAST + "rows:\n  without_ends: open\n", 3, "unknown key"),
        (LEAST + "units:\n  tme: s\n", 3, "unknown key"),
        (LEAST + "missing:\n  ends: [x]\n", 3, "unknown key"),
        (LEAST + "constants:\n  start: 5\n", 3, "unknown key"),
        ("zone: UTC\n", 1, "the map lacks `columns`"),
        ("columns: {start: a, end: b}\n", 1, "`columns` lacks `id`"),
        ("columns: {id: a, end: b}\n", 1, "`columns` lacks `start`"),
        ("columns: {id: [], start: a, end: b}\n", 1, "names no column"),
        ("columns: {id: a, start: b}\n", 1, "an end or a duration"),
        ("columns: {id: a, start: b, end: c, class: d}\n", 1, "nothing tells `devices`"),
        ("columns: {id: a, start: b, end: c, devices: d}\n", 1, "nothing tells `class`"),
        (LEAST + "units: {time: minutes}\n", 2, "'minutes' is not a unit of time"),
        (LEAST + "units: {time: '%d %d'}\n", 2, "is not a unit of time"),
        (LEAST + "units: {share: fraktion}\n", 2, "is not a unit of share"),
        (LEAST + "zone: Mars/Olympus\n", 2, "is not a time zone"),
        (LEAST + "origin: 0\n", 2, "is not a time"),
        (LEAST + "origin: now\n", 2, "is not a time"),
        (LEAST + "units: {time: iso}\norigin: 2020-07-01\n", 3, "do not count from an origin"),
        (LEAST + "repeated_hour: both\n", 2, "neither the first nor the second"),
        (LEAST + "decimal: ;\n", 2, "no decimal sign"),
        (LEAST + "delimiter: ab\n", 2, "cannot separate columns"),
        (LEAST + "delimiter: '\"'\n", 2, "cannot separate columns"),
        (LEAST + "rows: {without_end: closed}\n", 2, "nothing that can be done"),
        (LEAST + "rows: {without_start: pending}\n", 2, "only be pending if a column tells"),
        (LEAST + "censored_at: 5\n", 2, "belong together"),
        (LEAST + "rows: {censored: open}\n", 2, "belong together"),
        (LEAST + "censored_at: soon\nrows: {censored: open}\n", 2, "not a number of s"),
        (LEAST + "failed: [Failed]\n", 2, "nothing tells the `outcome`"),
        (LEAST + LEAST, 2, "stands twice"),
        ("columns: [a\n", 2, "not YAML"),
        ("- a\n", 1, "a list, not a mapping"),
        ("", 0, "empty"),
    ],
)
def test_every_refusal_names_its_line(text: str, line: int, says: str) -> None:
    """One code, the line, and what to write instead."""
    error = refused(text)
    assert error.line == line
    assert says in error.message
    assert error.message.count("map.yaml") == 1
    assert "policy" not in error.message + error.hint
    assert error.hint


def test_what_is_said_beside_the_map_stands_above_it() -> None:
    """An origin or a zone given by option replaces the map's own."""
    made = preset("openb").instead(origin="2023-05-01")
    assert made.times.origin_us == parse_moment("2023-05-01", now_us=0)
    local = parse(LEAST + "units: {time: iso}\n", path="m").instead(zone="Europe/Berlin")
    assert local.times.zone == ZoneInfo("Europe/Berlin")
    assert local.instead() == local


@pytest.mark.parametrize(
    ("said", "code"), [({"zone": "Nowhere"}, "unknown-zone"), ({"origin": "0"}, "bad-origin")]
)  # fmt: skip
def test_what_is_said_beside_the_map_must_be_meant(said: dict[str, str], code: str) -> None:
    """And each refusal says what to type."""
    with pytest.raises(Misconfigured) as caught:
        preset("openb").instead(**said)
    assert caught.value.code == code
    assert caught.value.hint


def test_unknown_presets_list_the_known_ones() -> None:
    """A typing error costs one look."""
    with pytest.raises(Misconfigured, match="'openbee'") as caught:
        preset("openbee")
    assert caught.value.code == "unknown-preset"
    assert "openb" in caught.value.hint


def test_constants_are_words_and_choices_have_a_default() -> None:
    """The tables of the map agree with each other."""
    assert set(CONSTANT) <= set(WORDS)
    assert all(len(known) > 1 for known in CHOICES.values())


@settings(max_examples=150)
@given(st.lists(st.sampled_from([*WHOLE.splitlines(), LEAST, "  ", "- x", "rows: 7", "failed: {a: b}"])).map("\n".join))
def test_any_document_is_a_map_or_an_error_of_ours(text: str) -> None:
    """Lines of a map in any order."""
    try:
        parse(text, path="m")
    except BadInput as error:
        refusal = error.code
    else:
        refusal = "bad-map"
    assert refusal == "bad-map"
