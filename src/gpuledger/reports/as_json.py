"""JSON: the shapes of a contract, and the pieces that several views share."""

from __future__ import annotations

from collections.abc import Iterable

from gpuledger.model.missing import Missing
from gpuledger.model.moments import iso
from gpuledger.model.problem import Problem
from gpuledger.model.reasons import IDLE_MEANING
from gpuledger.model.usage import NeverAccounted, SeenOnce, UnattributedLine, UnknownSpan, UnsettledRow, Watched

Json = None | bool | int | str | list["Json"] | dict[str, "Json"]
"""What JSON holds here: no floats. Exact products are strings of digits."""


def number(value: int | Missing) -> Json:
    """A quantity; ``null`` where it is not known."""
    return None if isinstance(value, Missing) else value


def moment(at_us: int | Missing) -> Json:
    """A time as ISO 8601; ``null`` where it is not known."""
    return None if isinstance(at_us, Missing) else iso(at_us)


def missing(**values: int | Missing) -> dict[str, Json]:
    """Why each ``null`` of a row is one; nothing at all where every value is known."""
    reasons: dict[str, Json] = {name: value.reason for name, value in values.items() if isinstance(value, Missing)}
    return {"missing": reasons} if reasons else {}


def idle(watched: Watched) -> Json:
    """``{seconds, why}``: the part of the watched time that is proven idle; ``why`` is empty where there is none."""
    return {"seconds": watched.idle, "why": IDLE_MEANING if watched.idle else ""}


def unattributed(quantity: int | Missing, lines: Iterable[UnattributedLine]) -> Json:
    """``{quantity, causes}``."""
    return {"quantity": number(quantity), "causes": {line.cause: line.quantity for line in lines}}


def unsettled(quantity: int | Missing, rows: Iterable[UnsettledRow]) -> Json:
    """``{quantity, rows}``."""
    return {
        "quantity": number(quantity),
        "rows": [
            {
                "service": row.service,
                "pid": row.pid,
                "device": row.device,
                "host": row.host,
                "since": moment(row.since_us),
                "quantity": number(row.quantity),
                **missing(since=row.since_us, quantity=row.quantity),
            }
            for row in rows
        ],
    }


def unknown(spans: Iterable[UnknownSpan], *, detailed: bool = False) -> Json:
    """``[{reason, host, device, since, until, seconds}]``, and ``detail`` where looks were asked for it."""
    return [
        {
            "reason": span.reason,
            "host": span.host,
            "device": span.device,
            "since": iso(span.since_us),
            "until": iso(span.until_us),
            "seconds": span.seconds,
            **({"detail": span.detail} if detailed else {}),
        }
        for span in spans
    ]


def seen_once(lines: Iterable[SeenOnce]) -> Json:
    """``[{service, contexts}]``: contexts whose time is not known."""
    return [{"service": line.service, "contexts": line.contexts} for line in lines]


def never_accounted(rows: Iterable[NeverAccounted]) -> Json:
    """``[{service, subject, user, pid, device, host, uptime_ms, memory_mib, quantity}]``."""
    return [
        {
            "service": row.service,
            "subject": row.subject,
            "user": row.user,
            "pid": row.pid,
            "device": row.device,
            "host": row.host,
            "uptime_ms": number(row.uptime_ms),
            "memory_mib": number(row.memory_mib),
            "quantity": number(row.quantity),
            **missing(uptime_ms=row.uptime_ms, memory_mib=row.memory_mib, quantity=row.quantity),
        }
        for row in rows
    ]


def problems(values: Iterable[Problem]) -> Json:
    """``[{code, message, where}]``."""
    return [{"code": problem.code, "message": problem.message, "where": problem.where} for problem in values]
