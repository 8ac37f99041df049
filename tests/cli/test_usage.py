"""``gpuledger usage``: the answer in three formats, and its exit status."""

from __future__ import annotations

import csv
import io

import pytest


def test_json_is_the_contract(gpuledger, morning, now: str) -> None:
    """The words of DESIGN section 8; total = rows + unattributed."""
    answer = gpuledger("usage", "--now", now, "--format", "json").json
    assert (answer["meter"], answer["unit"], answer["by"]) == ("gpu.context", "ms", ["service"])
    assert {row["service"]: row["quantity"] for row in answer["rows"]} == {
        "unit:chat.service": 3_600_000,
        "unit:tts.service": 1_800_000,
    }
    assert answer["unattributed"] == {"quantity": 600, "causes": {"between-samples": 600}}
    assert answer["total"] == 5_400_600
    assert answer["unsettled"]["quantity"] == 1_800_000
    assert answer["watched"] == {"seconds": 6600, "of": 7200}


def test_csv_has_one_line_a_row(gpuledger, morning, now: str) -> None:
    """Unattributed amounts too, so that a sum over the column is the total."""
    done = gpuledger("usage", "--now", now, "--format", "csv", "--by", "service,hour")
    rows = list(csv.DictReader(io.StringIO(done.out)))
    assert sum(int(row["quantity"]) for row in rows) == 5_400_600
    assert {row["hour"] for row in rows} >= {"2026-07-27T00:00:00Z", "2026-07-27T01:00:00Z"}


def test_the_table_prints_the_unseen_beside_the_rows(gpuledger, morning, now: str) -> None:
    """Names, unattributed by cause, and what is not settled."""
    done = gpuledger("usage", "--now", now)
    assert done.status == 0
    for word in ("unit:chat.service", "between-samples", "UNKNOWN"):
        assert word in done.out


def test_the_window_cuts_the_answer(gpuledger, morning, now: str) -> None:
    """Half an hour of it."""
    done = gpuledger(
        "usage", "--now", now, "--since", "2026-07-27T00:30", "--until", "2026-07-27T01:00", "--format", "json"
    )
    assert done.json["total"] == 30 * 60_000 + 600


@pytest.mark.parametrize(("words", "status"), [((), 0), (("--strict",), 1)])
def test_unknown_parts_are_printed_and_counted_only_when_strict(
    gpuledger, morning, now: str, words: tuple[str, ...], status: int
) -> None:
    """0 with what could not be seen beside it; 1 for scripts that must not go on with it."""
    done = gpuledger("usage", "--now", now, *words)
    assert done.status == status
    assert "between-samples" in done.out


def test_a_strict_answer_without_unknown_parts_is_0(gpuledger, morning, now: str) -> None:
    """A window that was watched and in which all is named."""
    window = ("--since", "2026-07-27T01:00", "--until", "2026-07-27T01:30")
    assert gpuledger("usage", "--now", now, "--strict", *window).status == 0


def test_nothing_known_is_status_3_and_no_zero(gpuledger, box) -> None:
    """UNKNOWN, on stderr what to do; the JSON has null, not 0."""
    box.append(box.device(0))
    box.ledger.close()
    done = gpuledger("usage", "--now", "2026-07-27T02:00:00Z", "--since", "2026-07-27", "--format", "json")
    assert (done.status, done.json["total"]) == (3, None)
    assert "gpuledger doctor" in done.err


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("--meter", "gpu.power"), "unknown-meter"),
        (("--by", "planet"), "bad-grouping"),
        (("--by", "user,user"), "bad-grouping"),
        (("--since", "now", "--until", "today"), "empty-window"),
    ],
)
def test_what_cannot_be_asked_is_status_2(gpuledger, morning, now: str, words: tuple[str, ...], code: str) -> None:
    """With the list of what can."""
    done = gpuledger("usage", "--now", now, *words)
    assert (done.status, code in done.err, done.out) == (2, True, "")


def test_blanks_between_groupings_are_allowed(gpuledger, morning, now: str) -> None:
    """`--by "service, user"` as people type it."""
    assert gpuledger("usage", "--now", now, "--by", "service, user", "--format", "json").json["by"] == [
        "service",
        "user",
    ]


def test_what_a_guest_did_leaves_the_reservation_no_unknown_part(gpuledger) -> None:
    """A device handed through is told, and does not fail a strict answer; a clock that is off does."""
    at = ("--now", "2026-11-29T10:00Z")
    placed = ("--class", "L40S", "--machine", "lab-3", "--devices", "65:00.0")
    gpuledger("transition", "vm", "provisioning", *placed, *at)
    gpuledger("transition", "vm", "running", *at)
    words = ("usage", "--meter", "gpu.reserved", "--since", "2026-11-29", "--now", "2026-11-29T11:00Z", "--strict")
    done = gpuledger(*words, "--format", "json")
    assert (done.status, [gap["reason"] for gap in done.json["gaps"]]) == (0, ["passthrough"])
    spent = gpuledger("usage", "--since", "2026-11-29T09:00Z", "--now", "2026-11-29T11:00Z", "--format", "json")
    assert (spent.status, spent.json["total"], spent.json["watched"]) == (3, None, {"seconds": 0, "of": 3600})
    (guest,) = spent.json["unknown"]
    assert (guest["reason"], guest["device"], guest["seconds"]) == ("passthrough", "lab-3/0000:65:00.0", 3600)
    assert (
        gpuledger("usage", "--meter", "gpu.memory", "--now", "2026-11-29T11:00Z").out.count("UNKNOWN passthrough") == 1
    )
    gpuledger("transition", "--heartbeat", "cli", "--clock", "2026-11-29T10:01Z", *at)
    gpuledger("transition", "vm", "stopped", "--now", "2026-11-29T10:30Z")
    assert gpuledger(*words).status == 1


def test_hours_before_the_first_policy_say_so(gpuledger, tmp_path) -> None:
    """A history that is older than its owners has no teams, and the reason is one line away."""
    dump, policy = tmp_path / "sacct.txt", tmp_path / "policy.yaml"
    header = "JobID|User|State|Start|End|ElapsedRaw|AllocTRES|NodeList"
    dump.write_text(
        f"{header}\n7|al|COMPLETED|2026-11-20T10:00:00|2026-11-20T11:00:00|3600|gres/gpu=1|n1\n", encoding="utf-8"
    )
    owners = "owners: {users: {al: {team: vision}}, hosts: {n1: {owner: prof-x}}}\n"
    at = ("--now", "2026-11-29T10:00Z")
    gpuledger("import", "slurm", str(dump), "--zone", "UTC", *at)
    policy.write_text(owners, encoding="utf-8")
    gpuledger("apply", str(policy), *at)
    words = ("usage", "--meter", "gpu.reserved", "--since", "2026-11-20", *at, "--by")
    for by in ("team", "host-owner"):
        assert "owners hold from 2026-11-29T10:00:00Z" in gpuledger(*words, by).err
    assert "owners hold from" not in gpuledger(*words, "user").err
    policy.write_text(f"effective_from: 2026-11-01T00:00:00Z\n{owners}", encoding="utf-8")
    gpuledger("apply", str(policy), *at)
    for by, who in (("team", "vision"), ("host-owner", "prof-x")):
        done = gpuledger(*words, by, "--format", "json")
        assert ([row[by] for row in done.json["rows"]], "owners hold from" in done.err) == ([who], False)
