"""One day of one box, as the reports of this room show it."""

from __future__ import annotations

import pytest
from rich.console import Console, RenderableType

from gpuledger.model.meters import GPU_CONTEXT, GPU_MEMORY
from gpuledger.model.missing import Missing
from gpuledger.model.moments import DAY_US, HOUR_US, SECOND_US, parse_moment
from gpuledger.model.problem import Problem
from gpuledger.model.usage import (
    NeverAccounted,
    UnattributedLine,
    UnknownSize,
    UnknownSpan,
    UnsettledRow,
    UsageReport,
    UsageRow,
    Watched,
)

T0 = parse_moment("2026-07-27", now_us=0)
GPU = "GPU-5a3c1f2e-1111-2222-3333-444455556666"
NOT_SAMPLED = Missing("no SM activity was sampled")


def row(key: tuple[str, ...], quantity: int, observed: int = 0, busy_ms: int | Missing = NOT_SAMPLED) -> UsageRow:
    return UsageRow(
        key=key,
        quantity=quantity,
        settled=quantity - observed,
        observed=observed,
        provisional=observed,
        busy_ms=busy_ms,
    )


def line(cause: str, quantity: int, meaning: str) -> UnattributedLine:
    return UnattributedLine(
        cause=cause,
        meaning=meaning,
        quantity=quantity,
        settled=quantity,
        observed=0,
        provisional=0,
        busy_ms=NOT_SAMPLED,
    )


def fields() -> dict:
    return {
        "meter": "gpu.context",
        "unit": "ms",
        "note": GPU_CONTEXT.sentence,
        "sampled": False,
        "since_us": T0,
        "until_us": T0 + DAY_US,
        "by": ("service",),
        "rows": (row(("ollama",), 14_249_789, 1_100_000), row(("xtts",), 6748)),
        "unattributed": (
            line("before-watch", 773_149, "dead before the agent first looked"),
            line("between-samples", 123_676, "lived and died between two polls"),
        ),
        "unsettled": (
            UnsettledRow(
                service="ollama", pid=2_488_996, host="box", device=GPU, since_us=T0 + 19 * HOUR_US, quantity=1_100_000
            ),
            UnsettledRow(
                service="tts", pid=77, host="box", device=GPU, since_us=Missing("no start time"),
                quantity=Missing("no start time"),
            ),
        ),
        "unknown": (
            UnknownSpan(
                reason="accounting-disabled", host="box", device=GPU, since_us=T0, until_us=T0 + 9240 * SECOND_US,
                seconds=9240,
            ),
        ),
        "sizes": (
            UnknownSize(
                reason="accounting-disabled", seconds=9240, spans=1, devices=1, meaning="the accounting was off",
                command="sudo nvidia-smi -am 1",
            ),
        ),
        "watched": Watched(seconds=77_160, of=86_400),
        "never_accounted": (
            NeverAccounted(
                service="tts", subject="unit:tts.service", user="al", pid=77, host="box", device=GPU,
                uptime_ms=90_061_000, memory_mib=5123, quantity=Missing("no start time"),
            ),
        ),
        "problems": (Problem(code="conflict", message="two lengths", where=GPU),),
    }  # fmt: skip


@pytest.fixture
def day() -> UsageReport:
    """The day by service, as DESIGN's example has it."""
    return UsageReport(**fields())


@pytest.fixture
def day_fields() -> dict:
    """The fields of that day, to be changed by a test."""
    return fields()


@pytest.fixture
def memory_day() -> UsageReport:
    """The memory of three services that share one GiB-hour in thirds."""
    rows = tuple(
        UsageRow(key=(name,), quantity=1_228_800, settled=0, observed=0, provisional=0, busy_ms=NOT_SAMPLED)
        for name in ("a", "b", "c")
    )
    return UsageReport(
        **{
            **fields(),
            "meter": "gpu.memory",
            "unit": "MiB-seconds",
            "note": GPU_MEMORY.sentence,
            "sampled": True,
            "rows": rows,
            "unattributed": (),
            "unsettled": (),
            "never_accounted": (),
        }
    )


@pytest.fixture
def nothing_known() -> UsageReport:
    """A day that nobody watched and that left no row."""
    empty = {"rows": (), "unattributed": (), "unsettled": (), "never_accounted": ()}
    return UsageReport(**{**fields(), **empty, "watched": Watched(seconds=0, of=86_400)})


@pytest.fixture
def printed():
    """Prints a renderable as a pipe would get it: no colours, one width; blanks at line ends are dropped."""

    def to_text(renderable: RenderableType, width: int = 100) -> str:
        console = Console(width=width, color_system=None, force_terminal=False, legacy_windows=False)
        with console.capture() as captured:
            console.print(renderable)
        return "\n".join(each.rstrip() for each in captured.get().splitlines())

    return to_text
