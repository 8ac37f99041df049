"""``transition``: lifecycle events of workloads into the ledger, each by the rules, all of a call or none.

The documented Python call: ``record_transitions``. It judges inside the one transaction that writes, so two
controllers cannot both take the last device. Guide: docs/guides/embed-in-a-control-plane.md.
"""

from __future__ import annotations

from collections.abc import Sequence

from gpuledger.errors import Misconfigured
from gpuledger.ledger.store import Ledger
from gpuledger.model.controller_clock import clock_row
from gpuledger.model.lifecycle import LONGEST_NAME, Transition
from gpuledger.model.outcomes import TransitionReport
from gpuledger.model.rows import Watch
from gpuledger.model.workload_rows import Hold, WorkloadEvent
from gpuledger.operations.judging import Batch
from gpuledger.operations.workload_memory import forget_memory, memory_of

HEARTBEAT = "heartbeat"
"""The method of a watch that a controller's heartbeat writes."""


def record_transitions(
    ledger: Ledger, transitions: Sequence[Transition], *, writer: str, now_us: int, imported: bool = False
) -> TransitionReport:
    """Append transitions, in one transaction: all of them, or none.

    They may come in any order, and late: what counts is (``at_us``, then the order of arrival). An event whose id
    is known with the same content adds nothing.

    Args:
        ledger: open to append.
        transitions: any number, of any workloads.
        writer: the chain, ``HOST.ROLE``.
        now_us: now, microseconds UTC.
        imported: the past as an importer declares it. It is a fact: what breaks a rule is kept, and told as a problem.

    Raises:
        Refused: ``forbidden-transition``, ``end-before-start``, ``no-placement``, ``no-hold``, ``device-full``,
            ``at-ahead``; ``other-source`` or ``release-unconfirmed`` by the rules of its pool; ``conflict`` for
            a known id with other content.
        Misconfigured: ``unknown-team`` where the policy in force lists teams, and not this one.
        Unavailable: ``ledger-busy`` and the like.
    """
    if not transitions:
        return TransitionReport()
    memory = memory_of(ledger)
    batch = Batch(ledger, memory, now_us=now_us, imported=imported)
    try:
        appended = ledger.append_made(lambda: batch.judge(transitions), writer=writer, at_us=now_us, are_new=True)
    except BaseException:
        forget_memory(ledger)
        raise
    assert appended is not None
    memory.wrote(writer, appended.added)
    return TransitionReport(
        added=tuple([row for row in appended.added if isinstance(row, WorkloadEvent)]),
        known=tuple(batch.known),
        holds=tuple([row for row in appended.added if isinstance(row, Hold)]),
        problems=tuple(batch.problems),
    )


def heartbeat(
    ledger: Ledger, source: str, *, writer: str, at_us: int, interval_us: int, clock_us: int | None = None
) -> None:
    """Say that a controller is alive and would have told of every transition until now.

    Once a source has a heartbeat, its open intervals are metered to its last beat, and no further.

    Args:
        ledger: open to append.
        source: the controller's name, as in its transitions.
        writer: the chain, ``HOST.ROLE``.
        at_us: now, microseconds UTC.
        interval_us: how often it promises to beat.
        clock_us: what its own clock reads at this moment; beyond 2 s of ``at_us`` what it tells is marked
            ``clock-skew``. None: it does not say.

    Raises:
        Misconfigured: ``bad-transition`` for a source that is no name, or an interval below a second.
    """
    if not 0 < len(source) <= LONGEST_NAME or not source.isprintable() or interval_us < 1_000_000:
        raise Misconfigured(
            "bad-transition",
            f"a heartbeat of {source[:40]!r} every {interval_us} microseconds: a name and a second or more are needed",
            hint="gpuledger transition --heartbeat NAME --every 60s",
        )
    beat = Watch(
        host=source, device="", source="controller", method=HEARTBEAT, interval_ms=interval_us // 1000,
        since_us=at_us, until_us=at_us, status="ok", readings=0, detail=f"{source} is alive",
    )  # fmt: skip
    clock = [] if clock_us is None else [clock_row(source, at_us=at_us, clock_us=clock_us)]
    ledger.append([beat, *clock], writer=writer, at_us=at_us)
