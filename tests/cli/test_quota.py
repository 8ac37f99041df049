"""``gpuledger quota``: who has what; 3 where nobody told anything, 1 where a strict reader finds unknown parts."""

from __future__ import annotations

from pathlib import Path

import pytest

POLICY = """\
owners: {users: {al: {team: vision, roles: [student]}, bo: {team: nlp}}}
quotas:
  - {role: student, devices: 1}
  - {team: vision, class: "H100*", device_hours: 2, per: day}
"""
NOW = ("--now", "2026-07-27T10:00:00Z")


@pytest.fixture
def desk(gpuledger, tmp_path: Path):
    """A policy with a quota of devices and one of hours."""
    policy = tmp_path / "policy.yaml"
    policy.write_text(POLICY, encoding="utf-8")
    assert gpuledger("apply", policy, "--now", "2026-07-01T00:00:00Z").status == 0
    return gpuledger


def test_nothing_told_is_unknown(desk) -> None:
    """The limits are shown, and no zero."""
    done = desk("quota", *NOW)
    assert done.status == 3
    assert "1 at once" in done.out
    assert "UNKNOWN" in done.out
    assert "`gpuledger transition` or `gpuledger import` brings them" in " ".join(done.err.split())
    assert [each["used"] for each in desk("quota", *NOW, "--format", "json").json["quotas"]] == [None, None]


def test_what_is_told_later_is_said(desk) -> None:
    """Before the first transition nothing is known up to then, and the line on stderr names it."""
    desk("transition", "w", "provisioning", "--user", "al", "--class", "L4", *NOW)
    done = desk("quota", "--now", "2026-07-27T09:00:00Z")
    assert (done.status, "no lifecycle transition is known up to then" in done.out) == (3, True)
    assert "the first is of 2026-07-27T10:00:00Z; ask by `--now` after it" in " ".join(done.err.split())
    assert desk("quota", *NOW).status == 0


def test_in_each_format_and_for_each_filter(desk) -> None:
    """Used, promised and left; whom it binds."""
    desk("admit", "w", "--user", "al", "--class", "H100-80GB", "--until", "1h", *NOW)
    desk("transition", "w", "provisioning", *NOW)
    desk("transition", "w", "running", *NOW)
    later = ("--now", "2026-07-27T10:30:00Z")
    assert "w (1)" in desk("quota", *later).out
    first, second = desk("quota", *later, "--format", "json").json["quotas"]
    assert (first["used"], first["left"]) == ("1", "0")
    assert (second["used"], second["promised"], second["left"]) == ("0.500", "0.500", "1.000")
    assert "team,vision,,H100*,2,device-hours,day" in desk("quota", *later, "--format", "csv").out
    for words, found in (
        (("--user", "al"), 2),
        (("--user", "bo"), 0),
        (("--team", "vision"), 1),
        (("--role", "student"), 1),
        (("--class", "L4"), 1),
    ):
        assert len(desk("quota", *later, *words, "--format", "json").json["quotas"]) == found


def test_strict_tells_unknown_parts(desk) -> None:
    """A workload of which nothing says on what it runs."""
    desk("transition", "w", "provisioning", "--user", "al", "--requested-class", "H100-80GB", *NOW)
    assert desk("quota", *NOW).status == 0
    done = desk("quota", "--strict", *NOW)
    assert done.status == 1
    assert "w (UNKNOWN)" in done.out


def test_over_is_shown_plainly(desk) -> None:
    """Events are facts."""
    desk("transition", "w", "provisioning", "--user", "al", "--class", "L4", "--devices", "4", *NOW)
    done = desk("quota", *NOW)
    assert "[over-quota]" in done.out
    assert "role student of al: 1 device at once: 4 used" in done.out


def test_without_a_policy(gpuledger) -> None:
    """No quotas apply, which is an answer."""
    gpuledger("admit", "w", "--class", "L4", *NOW)
    done = gpuledger("quota", *NOW)
    assert done.status == 0
    assert "no quotas apply" in done.out


def test_a_name_that_nothing_knows_is_said(desk) -> None:
    """On stderr, in the JSON, and to a strict reader by the status."""
    done = desk("quota", "--team", "visoin", *NOW)
    assert "nothing knows a team called 'visoin'; known: nlp, vision [unknown-name]" in done.err
    assert "no quotas apply: nothing knows a team called 'visoin'" in done.out
    assert desk("quota", "--team", "visoin", *NOW, "--format", "json").json["problems"][0]["code"] == "unknown-name"
    assert desk("quota", "--team", "nlp", *NOW, "--format", "json").json["problems"] == []
    assert desk("quota", "--team", "visoin", "--strict", *NOW).status == 1
