"""The living: open contexts named, those outside the driver's accounting apart."""

from __future__ import annotations

from gpuledger.accounting.amounts import OpenContext
from gpuledger.accounting.living import never_accounted, unsettled
from gpuledger.accounting.owners import Naming
from gpuledger.model.identity import IdentityText
from gpuledger.model.missing import Missing

NAMING = Naming(texts={"o": IdentityText(unit="ollama.service", user="ollama")})
NO_START = Missing("no start")


def context(
    pid: int, quantity: int | Missing, accounted: str = "yes", subject: str = "o", **more: object
) -> OpenContext:
    fields: dict = {"process_started_at_us": 1_000_000, "memory_mib": 512, "since_us": 5, **more}
    return OpenContext(
        host="box", device="GPU-1", pid=pid, subject=subject, quantity=quantity, accounted=accounted,
        seen_at_us=61_000_000, **fields,
    )  # fmt: skip


def test_most_first_then_the_unknown() -> None:
    """A context whose time is not known is listed, never as a zero."""
    rows = unsettled([context(1, NO_START), context(2, 5), context(3, 9)], NAMING, at_us=0)
    assert [(row.pid, row.quantity) for row in rows] == [(3, 9), (2, 5), (1, NO_START)]
    assert {row.service for row in rows} == {"ollama"}


def test_unnamed_contexts_keep_their_cause() -> None:
    """A living process that could not be read is still listed."""
    (row,) = unsettled([context(1, 5, subject="unattributed:identity-unreadable")], NAMING, at_us=0)
    assert row.service == "unattributed:identity-unreadable"


def test_never_accounted_only_where_it_is_proven() -> None:
    """`unknown` is not `no`: one reading proves nothing."""
    rows = never_accounted(
        [context(1, 5), context(2, 5, "unknown"), context(3, 5, "no", memory_mib=NO_START)], NAMING, at_us=0
    )
    assert [(row.pid, row.uptime_ms, row.memory_mib, row.user) for row in rows] == [(3, 60_000, NO_START, "ollama")]


def test_uptime_is_missing_where_the_start_is() -> None:
    """No start, no uptime."""
    (row,) = never_accounted([context(3, 5, "no", process_started_at_us=NO_START)], NAMING, at_us=0)
    assert row.uptime_ms is NO_START
