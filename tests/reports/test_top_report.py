"""``top`` as one table and for programs: an absence is ``-`` with its reason, never a zero."""

from __future__ import annotations

import csv
import io
import json
from typing import Any

import pytest

from gpuledger.model.holders import Arrangement, Figure, Grouping, HeldDevice, Order
from gpuledger.model.missing import Missing
from gpuledger.model.problem import Problem
from gpuledger.reports import top_report
from reports.holders_rows import FORBIDDEN, GPU, OLLAMA, holders_look, holders_report, holders_row, lost_row


def test_the_table_says_who_holds_what_and_how_much_has_no_name(printed) -> None:
    """At 80 columns, as on a pipe: the longest in whole minutes, cut and not rounded."""
    text = printed(top_report.to_table(holders_report(OLLAMA), width=80), width=80)
    assert text.splitlines()[:3] == [
        "top by service  box, 2026-11-29T15:40:02Z, 1 device, driver 595.45.04 by nvml",
        "most memory first; ledger /var/lib/gpuledger/ledger.db",
        "",
    ]
    lines = {line.split("  ")[0]: " ".join(line.split()) for line in text.splitlines()}
    assert lines["ollama"] == "ollama 2 4 h 1 min 14 GiB 45 %"
    assert lines["unattributed:identity-unreadable"] == "unattributed:identity-unreadable 1 - 900 MiB none seen"
    assert "  - held for: seen once, and no start is known" in text
    assert "Not named  1 of 2 contexts, 900 MiB of 14.8 GiB of held memory" in text
    assert "what helps: sudo gpuledger" in text


def test_a_wide_table_has_devices_bars_and_pids(printed) -> None:
    """What one needs to act."""
    text = printed(top_report.to_table(holders_report(OLLAMA, unnamed=False), width=120), width=120)
    (line,) = [line for line in text.splitlines() if line.startswith("ollama")]
    assert line.split() == [
        "ollama", "2", "GPU-5a3c1f2e", "4", "h", "1", "min", "14", "GiB", "████▋", "45", "%", "2488996,", "2488997",
    ]  # fmt: skip
    assert "Not named  0 of 1 context" in text


@pytest.mark.parametrize("width", [40, 60, 80, 120])
@pytest.mark.parametrize("by", list(Grouping))
def test_no_figure_is_cut_at_any_width(printed, width: int, by: Grouping) -> None:
    """Names are folded, spare columns left out, memory and time held always whole."""
    row = holders_row(
        "script:/home/al/a/very/long/folder/train.py by al", (7,), Figure(value=14_436), user="al", detail="train.py"
    )
    text = printed(top_report.to_table(holders_report(row, arrangement=Arrangement(by=by)), width=width), width=width)
    assert max(len(line) for line in text.splitlines()) <= width
    assert "14.1 GiB" in text
    assert "1 min 1 s" in text


def test_the_least_it_can_be_is_marked_and_absence_explained(printed) -> None:
    """Partly known sums, a held time since first seen, and nothing known at all."""
    partly = holders_row(
        "a", (1, 2), Figure(value=100, left_out=1, why=("driver: no permission",)), is_at_least=True
    )  # fmt: skip
    none = holders_row("b", (3,), Figure(value=FORBIDDEN, left_out=1, why=(FORBIDDEN.reason,)))
    whole = Figure(value=100, left_out=2, why=(FORBIDDEN.reason,))
    told = holders_report(partly, none, unnamed=False, memory=whole)
    text = printed(top_report.to_table(told, width=100), width=100)
    rows = [" ".join(line.split()) for line in text.splitlines()]
    assert "a 2 GPU-5a3c1f2e >= 1 min 1 s >= 100 MiB" in " ".join(rows)
    assert any(row.startswith("b 1 GPU-5a3c1f2e 1 min 1 s - ") for row in rows)
    assert text.count("- memory: driver: no permission") == 1
    assert "of >= 100 MiB of held memory; of 2 contexts the memory is not known" in " ".join(text.split())


def test_by_device_a_silent_one_has_its_reason_and_an_idle_one_its_zero(printed) -> None:
    """They are never the same."""
    idle = holders_row(GPU, (), Figure(value=0), detail="L4", held_us=Missing("nobody holds it"))
    told = holders_report(lost_row(), idle, unnamed=False, arrangement=Arrangement(by=Grouping.DEVICE))
    lines = [" ".join(line.split()) for line in printed(top_report.to_table(told), width=100).splitlines()]
    assert "GPU-66666666 - - - - - -" in lines
    assert "GPU-5a3c1f2e L4 0 0 0 MiB none seen" in lines, "`-` is what is not known"
    assert "- GPU-66666666: the GPU is lost" in lines
    assert not any("nobody holds it" in line for line in lines)


@pytest.mark.parametrize(
    ("devices", "words"),
    [
        ((), "The driver lists no device."),
        ((HeldDevice(uuid=GPU, class_name="L4", memory_mib=1, silence="lost"),), "UNKNOWN: no device told"),
        ((HeldDevice(uuid=GPU, class_name="L4", memory_mib=1),), "No process holds a device."),
    ],
)
def test_no_row_is_one_of_three_things(printed, devices: tuple[HeldDevice, ...], words: str) -> None:
    """No device, no answer, no holder."""
    told = holders_report(unnamed=False, look=holders_look(holdings=(), devices=devices))
    assert words in printed(top_report.to_table(told))


def test_without_a_ledger_it_says_so(printed) -> None:
    """With the reason, on one line; control characters of a path are printed, not sent."""
    told = holders_report(look=holders_look(ledger=Missing("there is no ledger at /x\x1b[2J")))
    assert r"without a ledger (there is no ledger at /x\x1b[2J)" in printed(top_report.to_table(told))


def test_names_are_text_and_never_markup(printed) -> None:
    """A process can call itself what it likes."""
    text = printed(top_report.to_table(holders_report(holders_row("[red]x\x1b[2J[/red]", (7,), Figure(value=1)))))
    assert r"[red]x\x1b[2J[/red]" in text


@pytest.mark.parametrize("order", list(Order))
def test_every_order_has_its_words(order: Order) -> None:
    """Both ways."""
    forth = top_report.status(holders_report(arrangement=Arrangement(order=order)))
    back = top_report.status(holders_report(arrangement=Arrangement(order=order, is_reversed=True)))
    assert forth != back


def test_many_pids_are_counted() -> None:
    """A table is no list of pids; JSON is."""
    row = holders_row("a", (1, 2, 3, 4, 5), Figure(value=1))
    columns = top_report.columns(holders_report(row), [row], width=200)
    assert str(columns[-1].cells[0]) == "1, 2, 3 +2"


def test_json_holds_everything_and_null_with_its_reason() -> None:
    """The contract."""
    told = top_report.to_json(holders_report(OLLAMA, look=holders_look(problems=(Problem(code="x", message="y"),))))
    assert json.loads(json.dumps(told)) == told
    assert told["rows"] == [
        {
            "service": "ollama", "pids": [2488996, 2488997], "devices": [GPU], "contexts": 2, "held_ms": 14_519_000,
            "at_least": False, "memory_mib": 14_300, "memory_left_out": 0, "busy_percent": 45, "busy_left_out": 0,
        }
    ]  # fmt: skip
    assert told["unnamed"] == [
        {
            "cause": "identity-unreadable", "pids": [9], "devices": [GPU], "contexts": 1, "held_ms": None,
            "at_least": False, "memory_mib": 900, "memory_left_out": 0, "busy_percent": 0, "busy_left_out": 0,
            "missing": {"held_ms": "seen once, and no start is known"},
        }
    ]  # fmt: skip
    assert told["not_named"] == {
        "contexts": 1, "of_contexts": 2, "memory_mib": 900, "of_memory_mib": 15_200, "memory_left_out": 0,
    }  # fmt: skip
    assert (told["at"], told["by"], told["ledger"]) == (
        "2026-11-29T15:40:02.5Z", "service", "/var/lib/gpuledger/ledger.db",
    )  # fmt: skip
    assert told["problems"] == [{"code": "x", "message": "y", "where": ""}]


@pytest.mark.parametrize(
    ("by", "keys"),
    [
        (Grouping.USER, {"user": "ollama"}),
        (Grouping.TEAM, {"team": "ollama"}),
        (Grouping.PROCESS, {"service": "ollama", "program": "serve", "user": "al"}),
        (Grouping.DEVICE, {"device": "ollama", "class": "serve", "unnamed": 0}),
    ],
)
def test_json_rows_are_keyed_by_what_they_are(by: Grouping, keys: dict[str, Any]) -> None:
    """As usage's rows are."""
    row = holders_row("ollama", (7,), Figure(value=1), detail="serve", user="al")
    told = top_report.to_json(holders_report(row, unnamed=False, arrangement=Arrangement(by=by)))
    (only,) = told["rows"]  # type: ignore[misc]
    assert isinstance(only, dict)
    assert list(only.items())[: len(keys)] == list(keys.items())
    assert list(only)[len(keys)] == "pids"


def test_csv_has_a_line_for_each_row_and_nothing_for_what_is_not_known() -> None:
    """The unnamed after the named."""
    rows = list(csv.DictReader(io.StringIO(top_report.to_csv(holders_report(OLLAMA)))))
    assert [(row["service"], row["cause"], row["pids"], row["held_ms"]) for row in rows] == [
        ("ollama", "", "2488996 2488997", "14519000"),
        ("unattributed:identity-unreadable", "identity-unreadable", "9", ""),
    ]
    assert rows[0]["memory_mib"] == "14300"
