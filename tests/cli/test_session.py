"""What every command shares: global options before or after the verb, settings, formats, the exit status."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.mark.parametrize("before", [True, False])
def test_global_options_stand_before_or_after_the_verb(gpuledger, morning, now: str, before: bool) -> None:
    """The same answer."""
    options = ("--ledger", morning.place, "--now", now, "--format", "json", "--quiet")
    done = gpuledger(*options, "usage") if before else gpuledger("usage", *options)
    assert (done.status, done.json["total"], done.err) == (0, 5_400_600, "")


def test_after_the_verb_they_win(gpuledger, morning, now: str, tmp_path: Path) -> None:
    """What is nearer to the verb is meant."""
    done = gpuledger(
        "--ledger", tmp_path / "none.db", "--format", "csv", "--now", "2020-01-01",
        "usage", "--ledger", morning.place, "--format", "json", "--now", now,
    )  # fmt: skip
    assert done.json["total"] == 5_400_600


def test_the_ledger_is_a_path_or_a_url_or_an_environment_variable(
    gpuledger, morning, now: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All three lead to the same file."""
    for words in (("--ledger", morning.place), ("--ledger", f"sqlite:///{morning.place}"), ()):
        assert gpuledger("usage", "--now", now, "--format", "json", *words).json["total"] == 5_400_600


def test_a_settings_file_names_the_ledger(
    gpuledger, morning, now: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where neither option nor environment does."""
    monkeypatch.delenv("GPULEDGER_LEDGER")
    config = tmp_path / "gpuledger.toml"
    config.write_text(f'ledger = "{morning.place}"\n', encoding="utf-8")
    assert gpuledger("--config", config, "usage", "--now", now, "--format", "json").json["total"] == 5_400_600
    config.write_text("legder = 1\n", encoding="utf-8")
    done = gpuledger("--config", config, "usage")
    assert (done.status, "bad-settings" in done.err) == (2, True)


@pytest.mark.parametrize(
    ("place", "status", "code"),
    [
        ("none.db", 5, None),
        ("postgresql://u@127.0.0.1:1/db", 5, "ledger-unreachable"),
        ("mysql://host/db", 2, "bad-ledger-place"),
        (".", 2, "bad-ledger-place"),
    ],
)
def test_a_ledger_that_cannot_be_read_is_an_error(
    gpuledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str, status: int, code: str | None
) -> None:
    """Not there, not this version's, or no place at all; a reader never makes one."""
    monkeypatch.chdir(tmp_path)
    done = gpuledger("usage", "--ledger", place, "--format", "json")
    assert done.status == status
    assert code in (None, done.error["code"])
    assert done.error["hint"]
    assert not (tmp_path / "none.db").exists()


def test_a_file_that_is_no_ledger_is_damage(gpuledger, tmp_path: Path) -> None:
    """Status 6, and the file stays as it was."""
    place = tmp_path / "junk.db"
    place.write_bytes(b"no ledger, only text that is long enough " * 100)
    done = gpuledger("usage", "--ledger", place)
    assert (done.status, done.out) == (6, "")
    assert place.read_bytes() == b"no ledger, only text that is long enough " * 100


@pytest.mark.parametrize("verb", ["usage", "blind", "journal"])
@pytest.mark.parametrize("option", ["--since", "--until", "--now"])
def test_a_time_that_is_none_is_refused_everywhere(gpuledger, morning, verb: str, option: str) -> None:
    """With examples of what is one."""
    done = gpuledger(verb, option, "soon")
    assert (done.status, "bad-time" in done.err, "2026-11-29" in done.err) == (2, True, True)


def test_problems_are_told_on_stderr_and_not_when_quiet(gpuledger, tmp_path: Path) -> None:
    """Talk never mixes with the answer; a hundred alike are counted."""
    policy = tmp_path / "policy.yaml"
    policy.write_text("services: []\npools: {shared: {replicas: 4}}\n", encoding="utf-8")
    done = gpuledger("apply", policy, "--format", "json")
    assert done.json["problems"]
    assert done.err.startswith("note: ")
    assert gpuledger("apply", policy, "--quiet").err == ""


def test_a_pipe_gets_no_trailing_blanks(gpuledger, morning, now: str) -> None:
    """Tables end where their text ends."""
    for verb in ("usage", "blind", "journal", "verify"):
        lines = gpuledger(verb, "--now", now).out.splitlines()
        assert lines
        assert [line for line in lines if line != line.rstrip()] == []
