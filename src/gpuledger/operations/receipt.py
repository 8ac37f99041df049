"""The receipt of a command out of a ledger: the evidence of its time, joined to the processes that were its own."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence

from gpuledger.accounting.owners import Naming
from gpuledger.accounting.receipt import Seen, receipt
from gpuledger.ledger.store import Ledger
from gpuledger.metering.contexts import contexts
from gpuledger.metering.coverage import coverage
from gpuledger.model.moments import SECOND_US, iso
from gpuledger.model.quantities import Coverage
from gpuledger.model.reasons import UnknownReason
from gpuledger.model.receipt import Membership, Ran, Receipt, Watcher
from gpuledger.model.rows import Watch
from gpuledger.operations.living import present_evidence
from gpuledger.operations.pulse import hear, unwritten_watches
from gpuledger.operations.usage import devices_of, policies


def receipt_of(
    ledger: Ledger,
    *,
    ran: Ran,
    membership: Membership,
    host: str,
    watched_by: Watcher,
    looks_after: int,
    trouble: str,
    place: str,
    now_us: int,
    unstored: str = "",
) -> Receipt:
    """The receipt of a command, as far as the ledger tells now.

    Args:
        ledger: open to read.
        ran, membership, watched_by, looks_after, trouble: as in :func:`gpuledger.accounting.receipt.receipt`.
        host: name of this machine in the ledger.
        place: the ledger as it was asked for, for the command line that explains; empty for the default.
        unstored: why this is a ledger of the run's own, which goes with it; empty where it is the one asked for.
        now_us: now, microseconds UTC.
    """
    since_us, until_us = ran.began_us, max(ran.ended_us, ran.began_us + 1)
    evidence = present_evidence(ledger, since_us=since_us, until_us=max(until_us, now_us), now_us=now_us)
    found = contexts(evidence)
    classes, physical = devices_of(ledger)
    mine = [pair for pair in physical if pair[0] == host]
    unwritten = list(unwritten_watches(ledger, hear(ledger, now_us=now_us)))
    watches = [*ledger.watched_spans(mine, since_us, until_us), *unwritten]
    texts = ledger.texts({one.subject for one in found})
    naming_watch = _naming_watch(ledger, host, since_us, until_us)
    seen = Seen(
        host=host,
        contexts=found,
        looks=evidence.sightings,
        coverage=coverage(watches, mine, since_us=since_us, until_us=until_us),
        classes=classes,
        naming=Naming(texts=texts, versions=policies(ledger, now_us=now_us)),
        texts=texts,
        watched_by=watched_by,
        method=_method([*naming_watch, *(row for row in unwritten if not row.device)]),
        looks_after=looks_after,
        lost=[row.detail or "how many is not known" for row in naming_watch if row.status == UnknownReason.EVENTS_LOST],
        trouble=trouble,
        unstored=unstored,
    )
    explain = "" if unstored else explain_line(ran, place)
    return receipt(seen, ran=ran, membership=membership, explain=explain)


def receipt_without_a_ledger(
    *, ran: Ran, membership: Membership, host: str, trouble: str, devices: Iterable[str] = ()
) -> Receipt:
    """What can be said where there is no ledger: what ran, and that nothing is known of the GPUs."""
    nothing: Sequence[Coverage] = [
        Coverage(host=host, device=device, since_us=ran.began_us, until_us=ran.ended_us, reason="watch-gap")
        for device in devices
    ]
    seen = Seen(
        host=host,
        contexts=(),
        looks=(),
        coverage=nothing,
        classes={},
        naming=Naming(texts={}),
        texts={},
        watched_by=Watcher.NOBODY,
        method="",
        looks_after=0,
        trouble=trouble,
    )
    return receipt(seen, ran=ran, membership=membership, explain="")


def explain_line(ran: Ran, place: str) -> str:
    """The command line that explains all that was held while the command ran, neighbours and all."""
    until_us = -(-ran.ended_us // SECOND_US) * SECOND_US
    words = ["gpuledger", "explain", "total", "--since", iso(ran.began_us), "--until", iso(until_us)]
    return shlex.join([*words, *(["--ledger", place] if place else [])])


def _naming_watch(ledger: Ledger, host: str, since_us: int, until_us: int) -> list[Watch]:
    rows = ledger.scan(Watch, hosts=[host], devices=[""], since_us=since_us, until_us=until_us + 1, order="time")
    return [row for row in rows if row.source == "process"]


def _method(rows: Sequence[Watch]) -> str:
    """The way of naming last used; empty where nobody named."""
    found = [row.method for row in rows if row.source == "process" and row.status != UnknownReason.WATCH_GAP]
    return found[-1] if found else ""
