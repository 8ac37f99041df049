"""The living: open contexts as lines of a report, named, and those that the driver's accounting does not hold."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from gpuledger.accounting.amounts import OpenContext
from gpuledger.accounting.owners import Naming
from gpuledger.model.missing import Missing
from gpuledger.model.usage import NeverAccounted, SeenOnce, UnsettledRow


def unsettled(contexts: Iterable[OpenContext], naming: Naming, *, at_us: int) -> tuple[UnsettledRow, ...]:
    """Every open context: most first, then those whose time is not known."""
    rows = [
        UnsettledRow(
            service=naming.owner(context.subject, at_us).service,
            pid=context.pid,
            host=context.host,
            device=context.device,
            since_us=context.since_us,
            quantity=context.quantity,
        )
        for context in contexts
    ]
    return tuple(sorted(rows, key=_most_first))


def never_accounted(contexts: Iterable[OpenContext], naming: Naming, *, at_us: int) -> tuple[NeverAccounted, ...]:
    """The open contexts that are proven absent from the accounting list, by host, device and pid."""
    rows = []
    for context in contexts:
        if context.accounted != "no":
            continue
        owner = naming.owner(context.subject, at_us)
        started = context.process_started_at_us
        rows.append(
            NeverAccounted(
                service=owner.service,
                subject=owner.subject,
                user=owner.user,
                pid=context.pid,
                host=context.host,
                device=context.device,
                uptime_ms=started if isinstance(started, Missing) else (context.seen_at_us - started) // 1000,
                memory_mib=context.memory_mib,
                quantity=context.quantity,
            )
        )
    return tuple(sorted(rows, key=lambda row: (row.host, row.device, row.pid)))


def seen_once(contexts: Mapping[str, int], naming: Naming, *, at_us: int) -> tuple[SeenOnce, ...]:
    """Contexts without a length, counted by subject, as lines by service: most first."""
    services: dict[str, int] = {}
    for subject, number in contexts.items():
        service = naming.owner(subject, at_us).service
        services[service] = services.get(service, 0) + number
    ordered = sorted(services.items(), key=lambda item: (-item[1], item[0]))
    return tuple(SeenOnce(service=service, contexts=number) for service, number in ordered)


def _most_first(row: UnsettledRow) -> tuple[bool, int, str, str, str, int]:
    missing = isinstance(row.quantity, Missing)
    most = 0 if isinstance(row.quantity, Missing) else -row.quantity
    return (missing, most, row.service, row.host, row.device, row.pid)
