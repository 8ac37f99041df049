"""The receipt in text: no zero without its proof, no figure cut, and JSON that loses nothing."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from rich.console import Console

from gpuledger.model.missing import Missing
from gpuledger.model.receipt import (
    Doubt,
    Doubtful,
    Neighbour,
    Ran,
    Receipt,
    ReceiptContext,
    ReceiptDevice,
    State,
    UnknownTime,
    Watcher,
)
from gpuledger.reports.receipt_report import to_json, to_table

GPU = "GPU-5a3c1f2e-1111-2222-3333-444455556666"
OTHER = "GPU-99999999-1111-2222-3333-444455556666"
PROVEN = ReceiptDevice(
    host="box", device=OTHER, class_name="L4", contexts=0, unsized=0, context_ms=0, settled_ms=0, observed_ms=0,
    peak_memory_mib=Missing("no sample"), busy_ms=Missing("no sample"), why="its time was watched without loss",
)  # fmt: skip
HELD = ReceiptDevice(
    host="box", device=GPU, class_name="L4", contexts=2, unsized=0, context_ms=4500, settled_ms=4000, observed_ms=500,
    peak_memory_mib=2232, busy_ms=1200,
)  # fmt: skip
LINES = (
    ReceiptContext(device=GPU, pid=70, service="train", since_us=10**15, context_ms=4000, state=State.SETTLED,
                   peak_memory_mib=2232, refs=("driver:box.agent/70",)),
    ReceiptContext(device=GPU, pid=71, service="train", since_us=10**15, context_ms=500, state=State.RUNNING,
                   peak_memory_mib=Missing("its memory was never readable"), refs=()),
)  # fmt: skip
WHOLE = Receipt(
    host="box",
    ran=Ran(command="python train.py", pid=70, began_us=10**15, ended_us=10**15 + 5_000_000, wall_ms=5000, status=0),
    watched_by=Watcher.RUN,
    naming="ebpf",
    processes=3,
    alive=1,
    devices=(HELD, PROVEN),
    contexts=LINES,
    neighbours=(
        Neighbour(device=GPU, service="chat", meaning="", contexts=1, context_ms=5000, peak_memory_mib=14_300),
    ),
    unnamed=(
        Neighbour(device=GPU, service="unattributed:between-samples", meaning="lived and died between two polls",
                  contexts=3, context_ms=90, peak_memory_mib=Missing("no sample")),
    ),
    unknown=(
        UnknownTime(reason="accounting-disabled", ms=1500, devices=1, meaning="accounting was off", command="agent"),
    ),
    doubts=(Doubtful(doubt=Doubt.COULD_BE_OURS, sentence="3 contexts could be ours", refs=("driver:box.agent/9",)),),
    explain="gpuledger explain total --since 2001-09-09T01:46:40Z --until 2001-09-09T01:46:45Z",
)  # fmt: skip


def shown(receipt: Receipt, width: int = 120) -> str:
    console = Console(width=width, highlight=False)
    with console.capture() as captured:
        console.print(to_table(receipt))
    return captured.get()


@pytest.mark.parametrize("width", [40, 80, 120])
def test_no_figure_is_cut(width: int) -> None:
    """Whatever the room."""
    text = shown(WHOLE, width)
    assert all(len(line.rstrip()) <= width for line in text.splitlines())
    for figure in ("4.5 s", "2.2 GiB", "1.2 s", "14 GiB", "90 ms", "4,000"):
        assert figure in text, text


def test_all_of_it_is_told() -> None:
    """Exit, times, who looked, neighbours, the unnamed apart, what is unknown and what helps, the references."""
    text = shown(WHOLE)
    for words in (
        "python train.py", "5 s by the clock, exit status 0; pid 70, 3 processes seen, 1 still runs",
        "this run looked itself, processes named by kernel events (eBPF)", "at least 4.5 s (4,500 ms)",
        "contexts overlap, so a sum can exceed the wall clock", "GPU-99999999: 0 ms, its time was watched without loss",
        "chat", "between-samples: lived and died between two polls", "UNKNOWN accounting-disabled  1.5 s",
        "what helps: agent", "3 contexts could be ours", "driver:box.agent/9", "driver:box.agent/70",
        "not written yet", "gpuledger explain total --since",
    ):  # fmt: skip
        assert words in text, (words, text)


def test_a_command_that_a_signal_ended() -> None:
    """By its name."""
    ran = replace(WHOLE.ran, status=137, signal="SIGKILL")
    assert "exit status 137, ended by SIGKILL" in shown(replace(WHOLE, ran=ran))


def test_what_is_not_known_is_never_a_zero() -> None:
    """UNKNOWN, with the reason; and nothing is said of neighbours."""
    dark = replace(PROVEN, context_ms=Missing("no driver here"), why="")
    bare = replace(
        WHOLE, devices=(dark,), contexts=(), neighbours=(), unnamed=(), doubts=(), watched_by=Watcher.NOBODY, naming=""
    )
    text = shown(bare)
    assert "GPU context time  UNKNOWN" in text
    assert "UNKNOWN, no driver here" in text
    assert "0 ms" not in text
    assert "Neighbours" not in text
    document = to_json(bare)
    assert (document["context_ms"], document["missing"]) == (None, {"context_ms": "no driver here"})


def test_nothing_unknown_is_said_too() -> None:
    """And nobody else on the same device."""
    sure = replace(WHOLE, contexts=LINES[:1], alive=0, neighbours=(), unnamed=(), unknown=(), doubts=())
    text = shown(sure)
    assert "nobody else was seen on the same devices" in text
    assert "nothing: the whole time was watched" in text
    assert "at least" not in text


def test_hundreds_of_contexts_are_counted_not_listed() -> None:
    """JSON has them all."""
    many = replace(WHOLE, contexts=LINES[:1] * 300)
    assert "and 290 more" in shown(many)
    assert len(to_json(many)["contexts"]) == 300  # type: ignore[arg-type]


def test_json_holds_every_figure() -> None:
    """Integers and text alone; null has a reason."""
    document = json.loads(json.dumps(to_json(WHOLE)))
    assert (document["wall_ms"], document["status"], document["at_least"]) == (5000, 0, True)
    assert [one["state"] for one in document["contexts"]] == ["settled", "running"]
    assert document["contexts"][1]["missing"] == {"peak_memory_mib": "its memory was never readable"}
    assert document["devices"][0]["observed_ms"] == 500
    assert document["unnamed_neighbours"][0]["service"] == "unattributed:between-samples"
    assert document["doubts"] == [
        {"doubt": "could-be-ours", "sentence": "3 contexts could be ours", "refs": ["driver:box.agent/9"]}
    ]


def test_commands_are_made_safe_for_a_terminal() -> None:
    """Other people's bytes never clear a screen."""
    assert "\x1b" not in shown(replace(WHOLE, ran=replace(WHOLE.ran, command="evil \x1b[2J [bold]x")))
