"""Transitions of JSON lines and of query rows: every word is understood, or the line is named."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from fractions import Fraction
from zoneinfo import ZoneInfo

import pytest

from gpuledger.errors import BadInput, Misconfigured
from gpuledger.model.lifecycle import Placement, State
from gpuledger.model.moments import parse_moment
from gpuledger.sources.transition_lines import parse, parse_at, parse_placement, parse_rows

AT = "2026-11-29T14:00:00Z"
LINE = {"workload": "w", "state": "running", "at": AT}


def one(**words: object):
    """The transition of one line."""
    (found,) = parse(json.dumps(LINE | words), path="f", source="cp").transitions
    return found


def test_every_word_is_read() -> None:
    """As the command line has them."""
    found = one(
        id="e1", source="ctl", user="al", team="t", project="p", requested_class="H100",
        **{"class": "L4", "region": "eu", "machine": "m", "pool": "x", "devices": ["GPU-b", "GPU-a"], "share": "1/4"},
        labels={"qos": "LS"},
    )  # fmt: skip
    assert found.placement == Placement(
        class_name="L4", region="eu", machine="m", pool="x", devices=("GPU-a", "GPU-b"), count=2, share=Fraction(1, 4)
    )
    assert (found.event_id, found.source, found.user, found.team, found.project) == ("e1", "ctl", "al", "t", "p")
    assert (found.requested_class, found.labels, found.state) == ("H100", (("qos", "LS"),), State.RUNNING)
    assert found.at_us == parse_moment(AT, now_us=0)


def test_what_a_line_does_not_say() -> None:
    """The source is that of the import; the id is made of the content; nowhere is no placement."""
    assert (one().source, one().placement) == ("cp", None)
    assert one().event_id == one().event_id != one(state="stopped").event_id


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ({"class": "L4"}, Placement(class_name="L4")),
        ({"class": "cpu"}, Placement(class_name="cpu", count=0)),
        ({"class": "L4", "devices": 4}, Placement(class_name="L4", count=4)),
        ({"class": "L4", "devices": "4"}, Placement(class_name="L4", count=4)),
        ({"class": "L4", "devices": "b, a"}, Placement(class_name="L4", devices=("a", "b"), count=2)),
        ({"class": "L4", "share": 0.25}, Placement(class_name="L4", share=Fraction(1, 4))),
        ({"class": "", "devices": None}, None),
    ],
)
def test_placements_as_people_write_them(words: dict[str, object], expected: Placement | None) -> None:
    """A number, names with commas, a list; a share exactly as it was written."""
    assert one(**words).placement == expected


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("{", "bad-json"),
        ("[" * 100_000, "bad-json"),
        ("[]", "bad-transition"),
        (json.dumps(LINE | {"devcies": 2}), "bad-transition"),
        (json.dumps({"workload": "w", "state": "running"}), "bad-transition"),
        (json.dumps(LINE | {"workload": ""}), "bad-transition"),
        (json.dumps(LINE | {"workload": True}), "bad-transition"),
        (json.dumps(LINE | {"state": "runing"}), "unknown-state"),
        (json.dumps(LINE | {"at": "today"}), "bad-time"),
        (json.dumps(LINE | {"at": 1700000000}), "bad-time"),
        (json.dumps(LINE | {"at": "9999-12-31T23:59:59-12:00"}), "bad-time"),
        (json.dumps(LINE | {"at": "1960-01-01T00:00:00Z"}), "bad-time"),
        (json.dumps(LINE | {"at": "2026-11-29T14:00:00"}), "zone-needed"),
        (json.dumps(LINE | {"class": "L4", "share": "1e999999999"}), "bad-placement"),
        (json.dumps(LINE)[:-1] + ', "workload": "v"}', "bad-json"),
        (json.dumps(LINE | {"class": "L4", "share": "0"}), "bad-placement"),
        (json.dumps(LINE | {"class": "L4", "share": "5/4"}), "bad-placement"),
        (json.dumps(LINE | {"class": "L4", "devices": 10_000}), "bad-placement"),
        (json.dumps(LINE | {"class": "L4", "devices": "a,,b"}), "bad-placement"),
        (json.dumps(LINE | {"class": "L4", "devices": "-1"}), "bad-placement"),
        (json.dumps(LINE | {"class": "L4", "devices": "1.5"}), "bad-placement"),
        (json.dumps(LINE | {"class": "L4", "devices": "9" * 20}), "bad-placement"),
        (json.dumps(LINE | {"class": "L4", "devices": "0, 1"}), "bad-placement"),
        (json.dumps(LINE | {"class": "L4", "devices": {}}), "bad-placement"),
        (json.dumps(LINE | {"devices": 2}), "bad-placement"),
        (json.dumps(LINE | {"class": "L\04"}), "bad-placement"),
        (json.dumps(LINE | {"workload": "w\0"}), "bad-transition"),
        (json.dumps(LINE | {"labels": ["a"]}), "bad-transition"),
        (json.dumps(LINE | {"labels": {"a": None}}), "bad-transition"),
    ],
)
def test_a_broken_line_refuses_all_or_is_left_out(line: str, code: str) -> None:
    """With its number either way."""
    text = f"{json.dumps(LINE)}\n\n{line}\n{json.dumps(LINE | {'state': 'stopped'})}\n"
    with pytest.raises(BadInput) as caught:
        parse(text, path="f", source="cp")
    assert (caught.value.code, caught.value.line) == (code, 3)
    assert caught.value.hint
    lines = parse(text, path="f", source="cp", keep_going=True)
    assert [(problem.code, problem.where) for problem in lines.problems] == [("broken-line", "f:3")]
    assert [each.state for each in lines.transitions] == ["running", "stopped"]
    assert lines.rows_read == 2


def test_rows_of_a_query_read_as_lines() -> None:
    """A database's own times, numbers and JSON text; the cursor's column is passed over."""
    rows = [{"n": 7, "workload": 12, "state": "running", "at": datetime(2026, 11, 29, 14, tzinfo=UTC), "user": None,
             "labels": '{"qos": "LS"}'}]  # fmt: skip
    (found,) = parse_rows(rows, path="query", source="cp", beside=("n",)).transitions
    assert (found.workload, found.user, found.labels) == ("12", "", (("qos", "LS"),))
    assert found.at_us == parse_moment(AT, now_us=0)
    with pytest.raises(BadInput, match="unknown word 'n'"):
        parse_rows(rows, path="query", source="cp")


def test_a_time_without_a_zone_is_of_the_clock_that_was_declared() -> None:
    """Nothing else says so: the local time of a machine read as UTC would be hours that nobody had."""
    berlin = ZoneInfo("Europe/Berlin")
    assert parse_at("2026-11-29T15:00:00+01:00") == parse_at(AT)
    assert parse_at("2026-11-29 14:00:00", UTC) == parse_at("2026-11-29 15:00:00", berlin) == parse_at(AT)
    assert parse_at(datetime(2026, 11, 29, 15), berlin) == parse_at(AT)  # noqa: DTZ001 as a database gives it
    for text, zone, code in (
        ("2026-11-29T14:00:00", None, "zone-needed"),
        ("2026-10-25T02:30:00", berlin, "bad-time"),
        ("2026-03-29T02:30:00", berlin, "bad-time"),
        (None, None, "bad-time"),
    ):
        with pytest.raises(Misconfigured) as caught:
            parse_at(text, zone)
        assert caught.value.code == code
        assert caught.value.hint
    (found,) = parse(json.dumps(LINE | {"at": "2026-11-29T15:00"}), path="f", source="cp", zone=berlin).transitions
    assert found.at_us == parse_moment(AT, now_us=0)


@pytest.mark.parametrize(
    ("text", "zone", "offered"),
    [
        ("2026-11-01 01:30:00", "America/New_York", ("2026-11-01T01:30:00-04:00", "2026-11-01T01:30:00-05:00")),
        ("2026-10-25T02:30", "Europe/Berlin", ("2026-10-25T02:30:00+02:00", "2026-10-25T02:30:00+01:00")),
        ("2026-03-29 02:30", "Europe/Berlin", ("2026-03-29T02:30:00+01:00", "2026-03-29T02:30:00+02:00")),
        ("2026-03-08 02:30", "America/New_York", ("2026-03-08T02:30:00-05:00", "2026-03-08T02:30:00-04:00")),
    ],
)
def test_an_hour_shown_twice_or_never_is_told_with_the_offsets_of_its_zone(
    text: str, zone: str, offered: tuple[str, str]
) -> None:
    """What is offered is read as it stands: two moments an hour apart, and no clock of another zone."""
    with pytest.raises(Misconfigured) as caught:
        parse_at(text, ZoneInfo(zone))
    assert caught.value.code == "bad-time"
    assert caught.value.hint.startswith(" or ".join(offered))
    assert abs(parse_at(offered[0]) - parse_at(offered[1])) == 3_600_000_000


def test_a_line_ends_with_a_line_feed_alone() -> None:
    """JSON may hold what else ends a line to Python, as it stands: the error is the name's, and the number its own."""
    text = json.dumps(LINE) + "\r\n" + json.dumps(LINE | {"user": "a\u2028b"}, ensure_ascii=False)
    with pytest.raises(BadInput, match="user is") as caught:
        parse(f"{text}\n", path="f", source="cp")
    assert (caught.value.code, caught.value.line) == ("bad-transition", 2)


def test_no_word_of_a_placement_is_no_placement() -> None:
    """Empty texts are what the command line gives for options that were not typed."""
    assert parse_placement({"class": "", "devices": "", "share": ""}) is None


@pytest.mark.parametrize("devices", ["0,1", "nvidia0", ["0", "1"], ["cuda:1"], "/dev/nvidia3", "card0", "-1", "1.5"])
def test_a_device_by_its_number_is_refused(devices: object) -> None:
    """Every machine has a card 0. By host and address it is one, also where the platform has none but a slot."""
    with pytest.raises(Misconfigured, match="an index names another on each machine"):
        parse_placement({"class": "L4", "machine": "n1", "devices": devices})
    placed = parse_placement({"class": "L4", "machine": "mac-1", "devices": "gpu0,GPU-8c1f"})
    assert placed is not None
    assert placed.devices == ("GPU-8c1f", "mac-1/gpu0")
