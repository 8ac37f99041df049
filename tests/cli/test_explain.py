"""``gpuledger explain``: a tree for eyes, JSON for scripts, and no CSV."""

from __future__ import annotations

import pytest


def test_a_line_of_usage_leads_to_the_drivers_row(gpuledger, morning, now: str) -> None:
    """The tree names the reference, and that reference can be explained."""
    done = gpuledger("explain", "service:unit:chat.service", "--now", now)
    assert done.status == 0
    assert "driver:box.agent/" in done.out
    ref = "driver:box.agent/" + done.out.partition("driver:box.agent/")[2].split()[0].strip("[](),")
    assert "3600000" in str(gpuledger("explain", ref, "--now", now, "--format", "json").json)


def test_the_total_is_the_total_of_usage(gpuledger, morning, now: str) -> None:
    """With the same filters."""
    window = ("--since", "2026-07-27T00:30", "--until", "2026-07-27T01:00", "--now", now, "--format", "json")
    total = gpuledger("usage", *window).json["total"]
    assert str(total) in str(gpuledger("explain", "total", *window).json)


def test_a_tree_is_no_csv(gpuledger, morning, now: str) -> None:
    """Refused, with what can be asked for."""
    done = gpuledger("explain", "total", "--now", now, "--format", "csv")
    assert (done.status, done.out, "no-csv" in done.err, "--format json" in done.err) == (2, "", True, True)


@pytest.mark.parametrize(
    ("ref", "code"),
    [("nonsense", "bad-ref"), ("record:box.meter/7", "no-such-row"), ("service:nobody", "nothing-to-explain")],
)
def test_a_reference_to_nothing_is_status_2(gpuledger, morning, now: str, ref: str, code: str) -> None:
    """And says where references are found."""
    done = gpuledger("explain", ref, "--now", now, "--format", "json")
    assert (done.status, done.error["code"]) == (2, code)
    assert done.error["hint"]


def test_a_pipe_gets_whole_lines(gpuledger, morning, now: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """However narrow the terminal it was typed in: who looks for a reference finds it on its line."""
    wide = gpuledger("explain", "total", "--now", now).out.splitlines()
    monkeypatch.setenv("COLUMNS", "40")
    assert gpuledger("explain", "total", "--now", now).out.splitlines() == wide
    assert max(len(line) for line in wide) > 120
    assert [line for line in wide if line != line.rstrip()] == []
