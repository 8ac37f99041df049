"""``gpuledger apply``: a policy file becomes a version, or is refused with its line."""

from __future__ import annotations

from pathlib import Path

POLICY = "services:\n  - {service: assistant, team: home, match: {unit: 'chat'}}\n"


def test_an_applied_policy_names_what_was_used_before(gpuledger, morning, now: str, tmp_path: Path) -> None:
    """Service rules hold for all time."""
    path = tmp_path / "policy.yaml"
    path.write_text(POLICY, encoding="utf-8")
    done = gpuledger("apply", path, "--now", now)
    assert (done.status, "policy 1 applied" in done.out) == (0, True)
    rows = gpuledger("usage", "--now", now, "--by", "service,team", "--format", "json").json["rows"]
    assert ("assistant", "home", 3_600_000) in {(row["service"], row["team"], row["quantity"]) for row in rows}
    assert "already holds" in gpuledger("apply", path, "--now", now).out
    assert gpuledger("apply", path, "--now", now, "--format", "json").json["changed"] is False


def test_an_unknown_key_is_refused_with_its_line(gpuledger, tmp_path: Path) -> None:
    """Status 2, and no ledger is made."""
    path = tmp_path / "policy.yaml"
    path.write_text(POLICY + "sevices: []\n", encoding="utf-8")
    done = gpuledger("apply", path)
    assert (done.status, f"{path}:3" in done.err) == (2, True)
    assert not (tmp_path / "box.db").exists()
