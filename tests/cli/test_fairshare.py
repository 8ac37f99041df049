"""``gpuledger fairshare``: who is next, and why."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest

POLICY = """\
effective_from: 2026-11-01
owners:
  users: {alice: {team: vision}, bob: {team: vision}, carol: {team: nlp}}
  hosts: {n1: {pool: big}}
shares:
  half_life: 7d
  tree:
    vision: {shares: 40, users: {alice: 1, bob: 1}}
    nlp: {shares: 60}
"""
NOW = ("--now", "2026-11-29T12:00:00Z")


@pytest.fixture
def lab(gpuledger, tmp_path: Path):
    """Alice held two devices for four hours; bob and carol wait."""
    policy, told = tmp_path / "policy.yaml", tmp_path / "told.jsonl"
    policy.write_text(POLICY, encoding="utf-8")
    held = {"workload": "a1", "user": "alice"}
    lines = [
        held | {"state": "provisioning", "at": "08:00", "class": "L4", "machine": "n1", "devices": 2},
        held | {"state": "running", "at": "08:00"},
        held | {"state": "stopped", "at": "12:00"},
        {"workload": "b1", "user": "bob", "state": "pending", "at": "13:00", "requested_class": "L4"},
        {"workload": "c1", "user": "carol", "state": "pending", "at": "14:00", "requested_class": "L4"},
    ]
    for number, line in enumerate(lines):
        line |= {"id": str(number), "at": f"2026-11-28T{line['at']}:00Z"}
    told.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    assert gpuledger("import", "transitions", told, *NOW).status == 0
    assert gpuledger("apply", policy, *NOW).status == 0
    return gpuledger


def test_who_used_less_is_next(lab) -> None:
    """As JSON, the contract."""
    found = lab("fairshare", *NOW, "--format", "json").json
    assert [(line["account"], line["user"], line["rank"]) for line in found["lines"]] == [
        ("vision", "", None), ("vision", "alice", 3), ("vision", "bob", 2), ("nlp", "", 1),
    ]  # fmt: skip
    assert [one["workload"] for one in found["waiting"]] == ["c1", "b1"]
    assert found["at"] == "2026-11-29T12:00:00Z"


def test_table_csv_one_user_and_one_pool(lab) -> None:
    """For eyes, for sheets, for bob, for the machine n1."""
    table = lab("fairshare", *NOW, "--pool", "big")
    assert (table.status, "Waiting for pool big" in table.out) == (0, True)
    rows = list(csv.DictReader(io.StringIO(lab("fairshare", "--user", "bob", *NOW, "--format", "csv").out)))
    assert [(row["account"], row["user"]) for row in rows] == [("vision", ""), ("vision", "bob")]
    assert lab("fairshare", "--user", "", *NOW).out == lab("fairshare", *NOW).out


def test_a_pool_that_nothing_knows_is_said(lab) -> None:
    """It is no pool in which nothing waits."""
    done = lab("fairshare", *NOW, "--pool", "nosuch")
    assert "nothing knows a pool called 'nosuch'; known: big" in done.err
    assert done.status == 0
    assert lab("fairshare", *NOW, "--pool", "nosuch", "--strict").status == 1
    assert lab("fairshare", *NOW, "--pool", "nosuch", "--format", "json").json["problems"][0]["code"] == "unknown-name"


def test_a_past_moment(lab) -> None:
    """Before anybody waited."""
    found = lab("fairshare", "--at", "2026-11-28T12:30:00Z", *NOW, "--format", "json").json
    assert found["waiting"] == []
    assert lab("fairshare", "--at", "2026-12-01", *NOW).status == 2


def test_every_factor_is_explained(lab) -> None:
    """As a tree, as JSON; a stranger is an error."""
    assert "factor (3 - 3 + 1)/3 = 0.333333" in lab("fairshare", "--explain", "alice", *NOW).out
    assert "fair share of nlp" in lab("fairshare", "--explain", "nlp", *NOW, "--format", "json").json["title"]
    done = lab("fairshare", "--explain", "zoe", *NOW, "--format", "json")
    assert done.error["code"] == "no-such-share"
    assert lab("fairshare", "--explain", "", *NOW).out == lab("fairshare", *NOW).out


def test_no_shares_and_no_half_life_are_errors(lab, tmp_path: Path) -> None:
    """Never off."""
    bad = tmp_path / "bad.yaml"
    bad.write_text("shares:\n  tree: {a: {shares: 1}}\n", encoding="utf-8")
    done = lab("apply", bad, *NOW, "--format", "json")
    assert (done.error["code"], "bad.yaml:2" in done.error["message"]) == ("policy-missing-key", True)
    bad.write_text("services: []\n", encoding="utf-8")
    assert lab("apply", bad, *NOW).status == 0
    done = lab("fairshare", *NOW, "--format", "json")
    assert (done.status, done.error["code"]) == (2, "no-shares")


def test_without_a_transition_it_is_unknown(gpuledger, tmp_path: Path) -> None:
    """Status 3."""
    policy = tmp_path / "policy.yaml"
    policy.write_text(POLICY, encoding="utf-8")
    assert gpuledger("apply", policy, *NOW).status == 0
    done = gpuledger("fairshare", *NOW)
    assert (done.status, "UNKNOWN" in done.out) == (3, True)
    why = gpuledger("fairshare", "--explain", "alice", *NOW)
    assert (why.status, "rank UNKNOWN (no transition is known" in why.out) == (3, True)
    found = gpuledger("fairshare", *NOW, "--format", "json")
    assert (found.status, found.json["told"], found.json["total"]) == (3, False, None)
    figures = ("usage", "own_usage", "norm_usage", "effective_usage", "level_fs", "factor", "rank")
    assert {line[name] for line in found.json["lines"] for name in figures} == {None}
    assert {name for line in found.json["lines"] for name in line["missing"]} == set(figures)
    rows = list(csv.DictReader(io.StringIO(gpuledger("fairshare", *NOW, "--format", "csv").out)))
    assert {(row["usage"], row["factor"], row["rank"]) for row in rows} == {("", "", "")}


def test_what_is_told_later_is_said(lab) -> None:
    """Up to then nothing is known, and the line on stderr names the first transition; none at all is another line."""
    early = ("--at", "2026-11-28T07:30:00Z")
    for words in (early, (*early, "--explain", "alice")):
        done = lab("fairshare", *words, *NOW)
        assert (done.status, "no transition is known up to then" in done.out) == (3, True)
        assert "up to then, the first is of 2026-11-28T08:00:00Z; ask by `--at` after it" in " ".join(done.err.split())
    assert lab("fairshare", "--at", "2026-11-28T08:00:00Z", *NOW).status == 0


def test_an_explanation_is_as_strict_as_the_list(lab) -> None:
    """Usage outside of the tree is unknown to both; and it is of one name among all."""
    assert lab("fairshare", "--explain", "alice", "--strict", *NOW).status == 0
    for state in ("provisioning", "running"):
        words = ("--user", "dan", "--team", "vision", "--class", "L4", "--at", "2026-11-29T08:00Z")
        assert lab("transition", "d1", state, *words, *NOW).status == 0
    assert lab("fairshare", "--strict", *NOW).status == 1
    assert lab("fairshare", "--explain", "alice", "--strict", *NOW).status == 1
    for option in ("--user", "--pool"):
        done = lab("fairshare", "--explain", "alice", option, "bob", *NOW, "--format", "json")
        assert (done.error["code"], option in done.error["message"]) == ("bad-usage", True)
