"""``gpuledger admit``: yes with 0, no with 4, and nothing taken by a check."""

from __future__ import annotations

from pathlib import Path

import pytest

POLICY = """\
owners: {users: {al: {team: vision, roles: [student]}, bo: {team: vision}}}
quotas:
  - {role: student, devices: 1}
  - {team: vision, class: "H100*", device_hours: 10, per: month}
"""
NOW = ("--now", "2026-07-27T10:00:00Z")
LATER = ("--now", "2026-07-27T10:05:00Z")
H100 = ("--class", "H100-80GB")


@pytest.fixture
def desk(gpuledger, tmp_path: Path):
    """A policy with a quota of devices and one of hours."""
    policy = tmp_path / "policy.yaml"
    policy.write_text(POLICY, encoding="utf-8")
    assert gpuledger("apply", policy, "--now", "2026-07-01T00:00:00Z").status == 0
    return gpuledger


def test_yes_then_no_then_the_same_again(desk) -> None:
    """With the hold, every reason, and the earliest place."""
    yes = desk("admit", "w", "--user", "al", *H100, "--until", "4h", *NOW, "--format", "json")
    assert (yes.status, yes.json["admitted"], yes.json["ends"]) == (0, True, "2026-07-27T14:00:00Z")
    assert yes.json["hold"]["expires"] == "2026-07-27T10:10:00Z"
    no = desk("admit", "v", "--user", "al", *H100, *LATER, "--format", "json")
    assert (no.status, no.json["admitted"], no.json["frees"]) == (4, False, "2026-07-27T14:00:00Z")
    assert no.error["code"] == "quota"
    again = desk("admit", "w", "--user", "al", *H100, "--until", "4h", *LATER, "--format", "json")
    assert (again.status, again.json["known"], again.json["hold"]) == (0, True, yes.json["hold"])
    other = desk("admit", "w", "--user", "bo", *H100, *LATER)
    assert other.status == 4
    assert "[conflict]" in other.err


def test_table_csv_and_provisioning(desk) -> None:
    """For eyes and sheets; a transition confirms what was admitted."""
    assert "yes  w: 1 x H100-80GB for user al" in desk("admit", "w", "--user", "al", *H100, *NOW).out
    done = desk("transition", "w", "provisioning", *LATER, "--format", "json")
    assert [hold["change"] for hold in done.json["holds"]] == ["confirmed"]
    refused = desk("admit", "v", "--user", "al", *H100, *LATER)
    assert refused.status == 4
    assert "earliest place: UNKNOWN (w gave no end)" in refused.out
    assert "try: a place comes free: unknown (w gave no end)" in refused.err
    assert "role student of al" in desk("admit", "v", "--user", "al", *H100, *LATER, "--format", "csv").out


@pytest.mark.parametrize("option", ["--check", "--dry-run"])
def test_a_check_takes_nothing(desk, option: str) -> None:
    """As often as it is asked."""
    for workload in ("w", "v"):
        done = desk("admit", workload, "--user", "al", *H100, *NOW, option)
        assert done.status == 0
        assert "nothing was taken" in done.out
    assert desk("admit", "u", "--user", "al", *H100, *NOW).status == 0
    assert desk("admit", "w", "--user", "al", *H100, *NOW, option).status == 4


def test_shares_names_places_and_labels(desk) -> None:
    """Everything that a placement and an owner can say."""
    words = ("--share", "1/4", "--devices", "GPU-b,GPU-a", "--region", "eu", "--machine", "n1", "--pool", "shared",
             "--label", "qos=low", "--project", "p", "--team", "vision", "--source", "ctl")  # fmt: skip
    done = desk("admit", "w", "--user", "bo", *H100, *words, "--until", "2026-07-28", *NOW, "--format", "json").json
    assert (done["devices"], done["share"], done["ends"]) == (["GPU-a", "GPU-b"], "1/4", "2026-07-28T00:00:00Z")
    assert done["quotas"][0]["promised"] == "7.000"


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("w", "--user", "al"), "bad-usage"),
        (("w", *H100, "--share", "5/4"), "bad-placement"),
        (("w", *H100, "--share", "-1/4"), "bad-placement"),
        (("w", *H100, "--devices", "0"), "bad-placement"),
        (("w", *H100, "--until", "-4h"), "bad-time"),
        (("w", *H100, "--until", "yesterday"), "bad-end"),
        (("w", *H100, "--until", "99999999999w"), "bad-end"),
        (("w", *H100, "--until", "soon"), "bad-time"),
        (("w", *H100, "--label", "qos"), "bad-transition"),
        (("w", *H100, "--team", "nobody"), "unknown-team"),
        ((" \n", *H100), "bad-transition"),
        ((), "bad-usage"),
    ],
)
def test_what_cannot_be_understood_is_refused(desk, words: tuple[str, ...], code: str) -> None:
    """With a code and a hint, and nothing is taken."""
    done = desk("admit", *words, *NOW, "--format", "json")
    assert (done.status, done.error["code"]) == (2, code)
    assert done.error["hint"]
    assert done.out == ""


def test_an_end_is_asked_for_in_the_words_of_ends(desk) -> None:
    """Not with an age, as the past is told."""
    for words in ("tomorrow", "18:00", "1h30m"):
        error = desk("admit", "w", *H100, "--until", words, *NOW, "--format", "json").error
        assert (error["code"], error["hint"].startswith("--until 4h")) == ("bad-time", True)


def test_without_a_policy_a_note(gpuledger) -> None:
    """It is admitted, and that no quotas apply is said."""
    done = gpuledger("admit", "w", *H100, *NOW)
    assert done.status == 0
    assert "no quotas apply" in done.err
    assert gpuledger("admit", "v", *H100, "--check", *NOW).status == 0


def test_a_check_needs_a_ledger(gpuledger) -> None:
    """It makes none."""
    assert gpuledger("admit", "w", *H100, "--check", *NOW).status == 5
