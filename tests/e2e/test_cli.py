"""The command line: what every line and total rests on, hours that close, options that are wrong, formats, demo."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from typing import Any

from e2e.box import GPU, Box, short, sums_up
from e2e.machine import ME
from gpuledger.model.moments import HOUR_US, iso, parse_moment

MORNING_US = parse_moment("2026-11-29T10:10:00Z", now_us=0)
LATER = ("--now", "2026-11-29T12:00:00Z")


def busy_box(box: Box) -> int:
    """A morning: a named job, one between two polls, one before the watch, one still open. Settled ms in all."""
    box.clock.stand_at(MORNING_US)
    box.driver.add_finished(3_000_001, GPU, started_at_us=MORNING_US - HOUR_US, context_ms=4161)
    ollama, train = box.job("ollama"), box.job("train.py")
    since_us = box.opens(ollama)
    box.opens(train, memory_mib=2048)
    box.look("60s")
    box.clock.advance(20)
    box.driver.add_finished(3_000_002, GPU, started_at_us=box.clock.now_us() - 6_000_000, context_ms=6000)
    box.closes(ollama, at_us=since_us + 14_249_000)
    box.clock.advance(40)
    box.look("60s")
    return 4161 + 6000 + 14_249


def walk(node: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """A tree of explain, every node."""
    yield node
    for child in node["children"]:
        yield from walk(child)


def figure(tree: dict[str, Any]) -> int:
    """The amount at the top of a tree."""
    figures = tree["figures"]
    return int(figures["total"] if "total" in figures else figures["quantity"])


def test_every_line_and_total_walks_down_to_the_drivers_own_row(box: Box) -> None:
    """Before and after the hour is recorded: explain says the same amount, and every reference round-trips."""
    settled_ms = busy_box(box)
    driver_rows = {
        f"driver:{writer}/{number}" for writer, number in box.sql("SELECT writer, number FROM driver_record")
    }
    assert len(driver_rows) == 3
    for now in (("--now", iso(box.clock.now_us())), LATER):
        if now == LATER:
            box.run("meter", *LATER)
        usage, subjects, users = (
            answer.must(0).json
            for answer in box.together(
                *(("usage", "--format", "json", *now, "--by", by) for by in ("service", "subject", "user"))
            )
        )
        sums_up(usage)
        lines = {row["service"]: row["quantity"] for row in usage["rows"]}
        asked = {
            "total": usage["total"],
            "unattributed": usage["unattributed"]["quantity"],
            **{f"unattributed:{cause}": ms for cause, ms in usage["unattributed"]["causes"].items()},
            **{f"service:{name}": ms for name, ms in lines.items()},
            subjects["rows"][0]["subject"]: subjects["rows"][0]["quantity"],
            f"user:{users['rows'][0]['user']}": users["rows"][0]["quantity"],
        }
        assert usage["unattributed"]["causes"] == {"before-watch": 4161, "between-samples": 6000}
        assert sum(row["settled"] for row in usage["rows"]) + 4161 + 6000 == settled_ms
        trees = {ref: box.ask("explain", ref, "--format", "json", *now).json for ref in asked}
        assert {ref: figure(tree) for ref, tree in trees.items()} == asked
        refs = {ref: {one for node in walk(tree) for one in node["refs"]} for ref, tree in trees.items()}
        assert refs["total"] >= driver_rows
        for ref in ("unattributed:before-watch", "unattributed:between-samples", "service:ollama"):
            if ref in refs:
                assert len(refs[ref] & driver_rows) == 1, ref
        if now == LATER:
            assert any(ref.startswith("record:") for ref in refs["total"])
    kinds = {ref.partition(":")[0]: ref for ref in sorted(refs["total"])}
    assert {"driver", "identity", "sighting", "record"} <= set(kinds)
    for ref in kinds.values():
        assert box.ask("explain", ref, "--format", "json", *LATER).json["refs"] == [ref]
    told = box.run("explain", kinds["driver"], *LATER).stdout
    assert kinds["driver"] in told
    for ref in ("driver:box.agent/999999", "nonsense", "service:nobody"):
        answer = box.ask("explain", ref, status=2)
        assert answer.stderr.startswith("error: "), ref
        assert "try:" in answer.stderr


def test_hours_close_by_now_and_a_second_pass_changes_nothing(box: Box) -> None:
    """Before the grace period is over the hour stays open; then its records are final, and usage says the same."""
    busy_box(box)
    provisional = box.run("usage", "--format", "json", "--now", "2026-11-29T12:00:00Z").json
    early = box.run("meter", "--now", "2026-11-29T11:04:00Z", "--format", "json").json
    assert early["open_from"] == "2026-11-29T10:00:00Z"
    closed = box.run("meter", "--now", "2026-11-29T11:06:00Z", "--format", "json").json
    assert closed["open_from"] == "2026-11-29T11:00:00Z"
    assert closed["records_added"] > 0
    before = box.ledger.read_bytes()
    again = box.run("meter", "--now", "2026-11-29T11:06:00Z", "--format", "json").json
    assert (again["records_added"], again["corrections_added"]) == (0, 0)
    assert box.ledger.read_bytes() == before
    final, records = box.together(
        ("usage", "--format", "json", *LATER), ("usage", "--format", "json", *LATER, "--since", "2026-11-29T09:00Z")
    )
    for key in ("rows", "unattributed", "total"):
        assert final.must(0).json[key] == provisional[key]
        assert records.must(0).json[key] == provisional[key]
    assert final.json["provisional"]["quantity"] == 0
    box.run("verify")


def test_wrong_usage_is_said_with_the_right_status(box: Box) -> None:
    """Status 2, one sentence, what to type instead, nothing on stdout, and no ledger made."""
    cases = (
        (("usage", "--by", "nonsense"), 2, "bad-grouping"),
        (("usage", "--meter", "gpu.love"), 2, "unknown-meter"),
        (("usage", "--since", "yesteryear"), 2, "bad-time"),
        (("blind", "--since", "2026-13"), 2, "bad-time"),
        (("usage", "--since", "2026-11-30", "--until", "2026-11-29"), 2, "empty-window"),
        (("explain", "total", "--format", "csv"), 2, "no-csv"),
        (("agent", "--once", "--interval", "soon"), 2, "bad-span"),
        (("agent", "--once", "--watch", "crystal-ball"), 2, "unknown-watch"),
        (("usage", "--config", "missing.toml"), 2, "no-settings-file"),
        (("usage", "--ledger", "mysql://localhost/x"), 2, "bad-ledger-place"),
        (("usage", "--ledger", "elsewhere.db"), 5, "no-ledger"),
        (("demo", "--keep", str(box.folder)), 2, "folder-not-empty"),
    )
    box.look()
    before = {path.name: path.read_bytes() for path in box.ledger.parent.iterdir()}
    for words, status, code in cases:
        answer = box.run(*words, status=status) if words[0] in ("agent", "demo") else box.ask(*words, status=status)
        assert f"[{code}]" in answer.stderr, answer.stderr
        assert "try:" in answer.stderr
        assert answer.stdout == ""
    unknown, nothing, as_json = box.together(
        ("frobnicate",), ("usage", "--frob"), ("usage", "--by", "x", "--format", "json")
    )
    assert unknown.must(2).stderr
    assert "--frob" in nothing.must(2).stderr
    assert '"code": "bad-grouping"' in as_json.must(2).stderr
    assert {path.name: path.read_bytes() for path in box.ledger.parent.iterdir()} == before
    assert not (box.folder / "elsewhere.db").exists()


def test_formats_places_and_strictness(box: Box) -> None:
    """CSV adds up to the JSON total; --strict is 1 where something is unknown; options stand before or after."""
    busy_box(box)
    as_json, as_csv, strict, before, url = box.together(
        ("usage", "--format", "json", *LATER),
        ("usage", "--format", "csv", *LATER),
        ("usage", "--strict", "--quiet", *LATER),
        ("--ledger", str(box.ledger), "--format", "json", *LATER, "usage"),
        ("usage", "--ledger", f"sqlite:///{box.ledger}", "--format", "json", *LATER),
    )
    rows = list(csv.DictReader(io.StringIO(as_csv.must(0).stdout)))
    assert sum(int(row["quantity"]) for row in rows) == as_json.must(0).json["total"]
    assert strict.must(1).stderr == ""
    assert before.must(0).json == url.must(0).json == as_json.json
    version, tables = box.together(("--version",), ("blind", *LATER))
    assert version.must(0).stdout.startswith("gpuledger ")
    assert "between-samples" in tables.must(0).stdout


def test_policy_names_services_and_owners_for_all_time(box: Box) -> None:
    """Applied late, service rules name what was recorded before; the same document again is no new version."""
    busy_box(box)
    box.run("meter", *LATER)
    policy = box.folder / "policy.yaml"
    policy.write_text(
        "effective_from: 2026-11-01T00:00:00Z\n"
        "services:\n  - {service: lab-training, team: vision, match: {command: 'train\\.py'}}\n"
        f"owners:\n  users: {{{ME}: {{team: ops}}}}\n"
    )
    first = box.run("apply", str(policy), "--format", "json").json
    second = box.run("apply", str(policy), "--format", "json").json
    assert (first["version"], second["version"]) == (1, 1)
    by_service, by_team = (
        answer.must(0).json
        for answer in box.together(
            ("usage", "--format", "json", *LATER), ("usage", "--by", "team", "--format", "json", *LATER)
        )
    )
    services, teams = short(by_service), short(by_team, "team")
    assert "lab-training" in services
    assert teams == {"vision": services["lab-training"], "ops": sum(services.values()) - services["lab-training"]}
    (versions,) = box.read("policy 1")
    assert [one["document"] for one in versions] == [policy.read_text()]


def test_demo_is_the_whole_of_it_in_20_seconds(box: Box, played_demo) -> None:
    """Usage, blind spots, records, a clean verify, status 0; --keep leaves a ledger that every verb reads."""
    assert played_demo.status == 0, played_demo.talk
    assert "Traceback" not in "".join(played_demo.talk)
    report = played_demo.report
    assert report["sound"] is True
    assert report["meter"]["records_added"] > 0
    sums_up(report["usage"])
    assert report["usage"]["unattributed"]["quantity"] > 0
    assert {one["reason"] for one in report["blind"]["reasons"]} >= {"accounting-reset"}
    assert report["usage"]["never_accounted"]
    ledger = str(played_demo.folder / "ledger.db")
    for answer in box.together(("verify", "--ledger", ledger), ("journal", "--ledger", ledger, "--format", "json")):
        answer.must(0)
