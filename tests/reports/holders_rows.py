"""Rows and looks of ``top``, as its two reports show them."""

from __future__ import annotations

from typing import Any

from gpuledger.model.holders import Arrangement, Figure, HeldDevice, HoldersLook, HoldersReport, HoldersRow, Holding
from gpuledger.model.missing import Missing
from gpuledger.model.moments import parse_moment

NOW_US = parse_moment("2026-11-29T15:40:02.5Z", now_us=0)
GPU = "GPU-5a3c1f2e-1111-2222-3333-444455556666"
OTHER = "GPU-66666666-7777-8888-9999-aaaaaaaaaaaa"
FORBIDDEN = Missing("driver: no permission")
ONCE = Missing("seen once, and no start is known")
HOUR_US = 3_600_000_000


def holders_row(label: str, pids: tuple[int, ...], memory: Figure, **words: Any) -> HoldersRow:
    fields: dict[str, Any] = {
        "label": label, "pids": pids, "devices": (GPU,), "contexts": len(pids), "held_us": 61_900_000,
        "memory": memory, "busy": Figure(value=0), "capacity_mib": 24_564,
    }  # fmt: skip
    return HoldersRow(**fields | words)


def lost_row() -> HoldersRow:
    """A device that did not answer."""
    lost = Missing("the GPU is lost")
    return holders_row(
        OTHER, (), Figure(value=lost), devices=(OTHER,), contexts=lost, held_us=lost, busy=Figure(value=lost)
    )  # fmt: skip


def holders_look(**words: Any) -> HoldersLook:
    unnamed = Holding(
        device=GPU, pid=9, service="unattributed:identity-unreadable", user="-", team="-", held_us=ONCE,
        memory_mib=900, busy_percent=0, cause="identity-unreadable",
    )  # fmt: skip
    fields: dict[str, Any] = {
        "at_us": NOW_US, "host": "box", "method": "nvml", "driver_version": "595.45.04", "holdings": (unnamed,),
        "devices": (HeldDevice(uuid=GPU, class_name="L4", memory_mib=23_034),),
        "ledger": "/var/lib/gpuledger/ledger.db",
    }  # fmt: skip
    return HoldersLook(**fields | words)


def holders_report(*rows: HoldersRow, unnamed: bool = True, **words: Any) -> HoldersReport:
    apart = holders_row(
        "unattributed:identity-unreadable",
        (9,),
        Figure(value=900),
        cause="identity-unreadable",
        held_us=ONCE,
        unnamed=1,
    )
    fields: dict[str, Any] = {
        "look": holders_look(**({} if unnamed else {"holdings": ()})),
        "arrangement": Arrangement(),
        "rows": rows,
        "unnamed": (apart,) if unnamed else (),
        "contexts": len(rows) + unnamed,
        "unnamed_contexts": int(unnamed),
        "memory": Figure(value=15_200),
        "unnamed_memory": Figure(value=900 * unnamed),
    }
    return HoldersReport(**fields | words)


OLLAMA = holders_row(
    "ollama", (2488996, 2488997), Figure(value=14_300), held_us=4 * HOUR_US + 119_000_000, busy=Figure(value=45)
)
