"""``gpuledger transition``: what is typed becomes an event, what is forbidden is refused with its status."""

from __future__ import annotations

import json
from pathlib import Path

NOW = "2026-11-29T16:00:00Z"
PLACED = ("--class", "L4", "--devices", "GPU-a", "--machine", "m1")


def told(gpuledger, *words: object):
    """One transition, as JSON."""
    return gpuledger("transition", *words, "--now", NOW, "--format", "json")


def test_a_life_from_the_command_line(gpuledger) -> None:
    """Each event with its reference; what it holds; whose it is stays; then it is metered."""
    first = told(gpuledger, "w", "provisioning", "--at", "2026-11-29T10:00:00Z", *PLACED, "--user", "al",
                 "--share", "1/2", "--label", "qos=LS")  # fmt: skip
    assert (first.status, first.json["added"][0]["ref"]) == (0, "event:box.transition/2")
    assert [hold["change"] for hold in first.json["holds"]] == ["taken"]
    told(gpuledger, "w", "running", "--at", "2026-11-29T10:00:00Z")
    assert told(gpuledger, "w", "running", "--at", "2026-11-29T10:00:00Z").json["known"] != []
    told(gpuledger, "w", "stopped", "--at", "2026-11-29T12:00:00Z")
    gpuledger("meter", "--now", NOW)
    report = gpuledger("usage", "--meter", "gpu.reserved", "--by", "user", "--now", NOW, "--format", "json").json
    assert [row["user"] for row in report["rows"]] == ["al"]
    assert gpuledger("verify", "--now", NOW).status == 0


def test_what_is_forbidden_exits_with_4_and_what_is_no_transition_with_2(gpuledger, tmp_path: Path) -> None:
    """By code, with a hint; nothing is half-written, and a ledger is not even made of a typing error."""
    wrong = [
        (("w", "pausing"), "unknown-state"), (("w",), "bad-usage"), ((), "bad-usage"),
        (("w", "running", "--class", "L4", "--share", "0"), "bad-placement"),
        (("w", "running", "--class", "L4", "--share", "5/4"), "bad-placement"),
        (("w", "running", "--class", "L4", "--devices", "10000"), "bad-placement"),
        (("w", "running", "--devices", "2"), "bad-placement"),
        (("w", "running", "--label", "qos"), "bad-transition"),
        (("w", "running", "--at", "noon"), "bad-time"),
        (("w", "running", "--from-runtime", "x.json"), "bad-usage"),
        (("w", "running", "--heartbeat", "ctl"), "bad-usage"),
    ]  # fmt: skip
    for words, code in wrong:
        done = told(gpuledger, *words)
        assert (done.status, done.error["code"], bool(done.error["hint"])) == (2, code, True)
    assert not (tmp_path / "box.db").exists()
    for words, code in [
        (("w", "running", *PLACED), "forbidden-transition"),
        (("w", "stopped"), "end-before-start"),
        (("w", "provisioning"), "no-hold"),
        (("w", "provisioning", *PLACED, "--at", "2026-11-29T16:06:00Z"), "at-ahead"),
    ]:
        done = told(gpuledger, *words)
        assert (done.status, done.error["code"], bool(done.error["hint"])) == (4, code, True)


def test_a_conflict_is_refused(gpuledger) -> None:
    """The same id with other content."""
    told(gpuledger, "w", "pending", "--id", "1", "--at", "2026-11-29T10:00:00Z")
    done = told(gpuledger, "w", "pending", "--id", "1", "--at", "2026-11-29T10:00:01Z")
    assert (done.status, done.error["code"]) == (4, "conflict")


def test_what_a_controller_missed(gpuledger, tmp_path: Path) -> None:
    """Of the runtime's own conditions, once."""
    told(gpuledger, "w", "provisioning", "--at", "2026-11-29T10:00:00Z", *PLACED)
    told(gpuledger, "w", "running", "--at", "2026-11-29T10:01:00Z")
    path = tmp_path / "runtime.json"
    path.write_text(json.dumps({"workload": "w", "conditions": [{"type": "Terminated", "at": "2026-11-29T11:00:00Z"}]}))
    done = told(gpuledger, "--from-runtime", path)
    assert [(event["state"], event["source"]) for event in done.json["added"]] == [("stopped", "runtime")]
    assert told(gpuledger, "--from-runtime", path).json["added"] == []


def test_a_heartbeat_stands_in_the_journal(gpuledger) -> None:
    """As what it is, and with its own interval."""
    done = gpuledger("transition", "--heartbeat", "ctl", "--every", "5m", "--now", NOW)
    assert (done.status, done.out) == (0, "")
    assert "ctl is alive" in gpuledger("journal", "--now", NOW).out
    assert gpuledger("transition", "--heartbeat", "ctl", "--every", "soon").status == 2


def test_the_table_says_what_was_done(gpuledger) -> None:
    """For the person who typed it."""
    done = gpuledger("transition", "w", "provisioning", *PLACED, "--at", "2026-11-29T10:00:00Z", "--now", NOW)
    assert done.out.splitlines() == ["w provisioning at 2026-11-29T10:00:00Z  event:box.transition/2", "1 hold taken"]
    assert "ref,workload" in gpuledger("transition", "w", "running", "--now", NOW, "--format", "csv").out
