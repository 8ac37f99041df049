"""Settings: environment before file before default, and nothing that is not in the list."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpuledger.errors import BadInput, Misconfigured
from gpuledger.settings import SETTINGS, load_settings, parse_span_us


def written(folder: Path, text: str) -> Path:
    path = folder / "gpuledger.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_without_file_and_environment_every_setting_has_its_default() -> None:
    """Each setting is there, as the text that would be typed."""
    assert load_settings(None, {}) == {setting.name: setting.default for setting in SETTINGS}


def test_the_environment_wins_over_the_file_and_the_file_over_the_default(tmp_path: Path) -> None:
    """What is nearer to the person wins; an empty variable says nothing."""
    config = written(tmp_path, 'ledger = "/from/file.db"\nhost = "file"\n[agent]\ninterval = "2s"\n')
    environment = {"GPULEDGER_LEDGER": "/from/environment.db", "GPULEDGER_HOST": ""}
    found = load_settings(config, environment)
    assert (found["ledger"], found["host"], found["agent.interval"], found["agent.flush"]) == (
        "/from/environment.db", "file", "2s", "5m",
    )  # fmt: skip


def test_numbers_and_truth_values_are_read_as_they_would_be_typed(tmp_path: Path) -> None:
    """TOML's ``true`` is the text ``true``, 60 is ``60``."""
    found = load_settings(written(tmp_path, "[agent]\nenable_accounting = true\nflush = 60\n"), {})
    assert (found["agent.enable_accounting"], found["agent.flush"]) == ("true", "60")


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("agent = {intervall = '1s'}", "unknown setting 'agent.intervall'"),
        ("leger = '/x'", "unknown setting 'leger'"),
        ("ledger = ", "Invalid value"),
    ],
)
def test_a_file_that_cannot_be_understood_is_refused_by_name(tmp_path: Path, text: str, what: str) -> None:
    """A misspelt key must not be a silent default."""
    path = written(tmp_path, text)
    with pytest.raises(BadInput, match=what) as refused:
        load_settings(path, {})
    assert (refused.value.code, refused.value.path) == ("bad-settings", str(path))
    assert "agent.flush, agent.interval" in refused.value.hint or what == "Invalid value", "names, as they are typed"


def test_a_file_that_is_not_text_is_refused(tmp_path: Path) -> None:
    """Binary junk is bad input, not a bug."""
    path = tmp_path / "junk.toml"
    path.write_bytes(b"\xff\xfe\x00\x01")
    with pytest.raises(BadInput) as refused:
        load_settings(path, {})
    assert refused.value.code == "bad-settings"


def test_a_named_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    """``--config`` with a typing error does not fall back to the defaults."""
    with pytest.raises(Misconfigured) as refused:
        load_settings(tmp_path / "none.toml", {})
    assert refused.value.code == "no-settings-file"


@pytest.mark.parametrize(
    ("text", "span_us"),
    [("500ms", 500_000), ("1s", 1_000_000), ("60", 60_000_000), (" 5m ", 300_000_000), ("2h", 7_200_000_000)],
)
def test_spans_are_read_as_people_type_them(text: str, span_us: int) -> None:
    """A bare number is seconds."""
    assert parse_span_us(text, name="--interval") == span_us


@pytest.mark.parametrize("text", ["", "0", "9ms", "-1s", "1.5s", "1d", "soon", "1 s"])
def test_what_is_no_span_is_refused_with_the_options_name(text: str) -> None:
    """Shorter than 10 ms would be a busy loop."""
    with pytest.raises(Misconfigured, match="--flush") as refused:
        parse_span_us(text, name="--flush")
    assert refused.value.code == "bad-span"


@pytest.mark.parametrize("host", ["a\0b", "a\nb", " a", "h" * 254, "a\udc80"])
def test_a_machine_has_a_name_that_a_chain_can_carry(host: str) -> None:
    """Every row would carry it for good."""
    with pytest.raises(Misconfigured, match="no name of a machine") as refused:
        load_settings(None, {"GPULEDGER_HOST": host})
    assert refused.value.code == "bad-host"
    assert load_settings(None, {"GPULEDGER_HOST": "lab-3.example"})["host"] == "lab-3.example"
