"""``run``: the receipt of a command. Values in, text out."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import RenderableType
from rich.text import Text

from gpuledger.model.durations import SECOND_MS, count, duration_ms, memory_mib, several
from gpuledger.model.meters import GPU_CONTEXT
from gpuledger.model.missing import Missing
from gpuledger.model.moments import iso
from gpuledger.model.receipt import (
    Doubt,
    Neighbour,
    Receipt,
    ReceiptContext,
    ReceiptDevice,
    State,
    Watcher,
)
from gpuledger.reports import as_json, unseen
from gpuledger.reports.as_json import Json
from gpuledger.reports.cells import UNKNOWN, cell, device_name, heading, indented, known, reasons, stacked
from gpuledger.reports.columns import LEAST_NAME, Column, Fitted

MOST_LINES = 10
"""Contexts and references listed one by one; more are counted, and JSON has them all."""

LONGEST_COMMAND = 300
"""Characters of the command line that a table shows; JSON has all that the ledger would keep."""

_LOOKED = {
    Watcher.RUN: "this run looked itself",
    Watcher.AGENT: "the agent on this ledger looked",
    Watcher.NOBODY: "nobody looked",
}
_METHOD = {"ebpf": "kernel events (eBPF)", "connector": "the process connector", "poll": "polling"}
_STATE = {
    State.SETTLED: "settled",
    State.RUNNING: "running",
    State.AWAITED: "not settled",
    State.OBSERVED: "observed",
}


def to_json(receipt: Receipt) -> dict[str, Json]:
    """The contract of ``run --receipt FILE`` and ``run --format json``."""
    ran, total = receipt.ran, receipt.context_ms
    return {
        "command": ran.command,
        "host": receipt.host,
        "pid": ran.pid,
        "began": iso(ran.began_us),
        "ended": iso(ran.ended_us),
        "wall_ms": ran.wall_ms,
        "status": ran.status,
        "signal": ran.signal,
        "watched_by": receipt.watched_by.value,
        "naming": receipt.naming,
        "processes": {"seen": receipt.processes, "alive": receipt.alive},
        "context_ms": as_json.number(total),
        "at_least": receipt.is_at_least,
        "note": GPU_CONTEXT.sentence,
        "devices": [_device_json(one) for one in receipt.devices],
        "contexts": [_context_json(one) for one in receipt.contexts],
        "neighbours": [_neighbour_json(one) for one in receipt.neighbours],
        "unnamed_neighbours": [_neighbour_json(one) for one in receipt.unnamed],
        "unknown": [
            {
                "reason": one.reason,
                "ms": one.ms,
                "devices": one.devices,
                "meaning": one.meaning,
                "command": one.command,
            }
            for one in receipt.unknown
        ],
        "doubts": [
            {"doubt": one.doubt.value, "sentence": one.sentence, "refs": list(one.refs)} for one in receipt.doubts
        ],
        "explain": receipt.explain,
        **as_json.missing(context_ms=total),
    }


def _device_json(one: ReceiptDevice) -> Json:
    return {
        "host": one.host,
        "device": one.device,
        "class": one.class_name,
        "contexts": one.contexts,
        "unsized": one.unsized,
        "context_ms": as_json.number(one.context_ms),
        "settled_ms": one.settled_ms,
        "observed_ms": one.observed_ms,
        "peak_memory_mib": as_json.number(one.peak_memory_mib),
        "busy_ms": as_json.number(one.busy_ms),
        "why": one.why,
        **as_json.missing(context_ms=one.context_ms, peak_memory_mib=one.peak_memory_mib, busy_ms=one.busy_ms),
    }


def _context_json(one: ReceiptContext) -> Json:
    return {
        "device": one.device,
        "pid": one.pid,
        "service": one.service,
        "since": iso(one.since_us),
        "context_ms": as_json.number(one.context_ms),
        "state": one.state.value,
        "peak_memory_mib": as_json.number(one.peak_memory_mib),
        "refs": list(one.refs),
        **as_json.missing(context_ms=one.context_ms, peak_memory_mib=one.peak_memory_mib),
    }


def _neighbour_json(one: Neighbour) -> Json:
    return {
        "device": one.device,
        "service": one.service,
        "contexts": one.contexts,
        "context_ms": as_json.number(one.context_ms),
        "peak_memory_mib": as_json.number(one.peak_memory_mib),
        **as_json.missing(context_ms=one.context_ms, peak_memory_mib=one.peak_memory_mib),
    }


def to_table(receipt: Receipt) -> RenderableType:
    """For eyes: what it held, who else was there, what is unknown, and where the evidence is."""
    return stacked(
        *unseen.spaced(
            [
                _head(receipt),
                _held(receipt),
                _neighbours(receipt),
                _unnamed(receipt),
                _unknown(receipt),
                _evidence(receipt),
            ]
        )
    )


def _head(receipt: Receipt) -> list[RenderableType]:
    ran = receipt.ran
    end = f"exit status {ran.status}" + (f", ended by {ran.signal}" if ran.signal else "")
    processes = several(receipt.processes, "process", "processes")
    goes_on = f", {count(receipt.alive)} still {'runs' if receipt.alive == 1 else 'run'}" if receipt.alive else ""
    by = f", processes named by {_METHOD.get(receipt.naming, receipt.naming)}" if receipt.naming else ""
    return [
        heading("Receipt", f"{iso(ran.began_us)} to {iso(ran.ended_us)}"),
        cell(ran.command if len(ran.command) <= LONGEST_COMMAND else f"{ran.command[:LONGEST_COMMAND]} ..."),
        Text(f"{duration_ms(ran.wall_ms)} by the clock, {end}; pid {ran.pid}, {processes} seen{goes_on}"),
        Text(f"{_LOOKED[receipt.watched_by]}{by}", style="dim"),
    ]


def _held(receipt: Receipt) -> list[RenderableType]:
    total = receipt.context_ms
    if isinstance(total, Missing):
        size = UNKNOWN
    else:
        exact = f" ({count(total)} ms)" if total >= SECOND_MS else ""
        size = f"{'at least ' if receipt.is_at_least else ''}{duration_ms(total)}{exact}"
    lines: list[RenderableType] = [heading("GPU context time", size)]
    lines.append(Text(GPU_CONTEXT.sentence, style="dim"))
    held = [one for one in receipt.devices if one.contexts]
    if held:
        lines += [indented(_devices(held)), *reasons(*(value for one in held for value in _figures(one)))]
    lines += _not_held([one for one in receipt.devices if not one.contexts], some=bool(held))
    return lines


def _figures(one: ReceiptDevice) -> tuple[int | Missing, int | Missing]:
    return one.context_ms, one.peak_memory_mib


def _devices(held: Sequence[ReceiptDevice]) -> RenderableType:
    names = [cell(device_name(one.device)) for one in held]
    columns = [
        Column(head="device", cells=names, justify="left", least=LEAST_NAME),
        Column(head="class", cells=[cell(one.class_name) for one in held], justify="left", spare=6),
        Column(head="contexts", cells=[count(one.contexts) for one in held], spare=1),
        Column(head="time", cells=[known(one.context_ms, duration_ms) for one in held]),
        Column(head="ms", cells=[known(one.context_ms, count) for one in held], spare=2),
    ]
    if any(one.observed_ms for one in held):
        columns += [
            Column(head="settled", cells=[_part(one.settled_ms) for one in held], spare=4),
            Column(head="observed", cells=[_part(one.observed_ms) for one in held], spare=3),
        ]
    columns += [
        Column(head="peak memory", cells=[known(one.peak_memory_mib, memory_mib) for one in held]),
        Column(head="busy", cells=[_busy(one.busy_ms) for one in held]),
    ]
    return Fitted(columns)


def _part(ms: int) -> str:
    return duration_ms(ms) if ms else ""


def _busy(ms: int | Missing) -> Text:
    return Text("none seen", style="dim") if isinstance(ms, Missing) or not ms else Text(duration_ms(ms))


def _not_held(devices: Sequence[ReceiptDevice], *, some: bool) -> list[RenderableType]:
    """Devices that the command is not known to have held: 0 with its proof, UNKNOWN with its reason."""
    lines: list[RenderableType] = []
    grouped: dict[tuple[str, bool], list[ReceiptDevice]] = {}
    for one in devices:
        value = one.context_ms
        told = value.reason if isinstance(value, Missing) else one.why
        grouped.setdefault((told, isinstance(value, Missing)), []).append(one)
    for (told, is_unknown), same in grouped.items():
        where = (
            device_name(same[0].device) if len(same) == 1 else several(len(same), "other device" if some else "device")
        )
        figure = Text(UNKNOWN, style="yellow") if is_unknown else Text("0 ms")
        lines.append(indented(Text.assemble(f"{where}: ", figure, f", {told}")))
    return lines


def _neighbours(receipt: Receipt) -> list[RenderableType]:
    if not receipt.neighbours:
        nobody = any(one.contexts for one in receipt.devices) and not receipt.unnamed
        return [heading("Neighbours", "nobody else was seen on the same devices")] if nobody else []
    grid = _grid("service", receipt.neighbours, [one.service for one in receipt.neighbours])
    missing = reasons(*(one.context_ms for one in receipt.neighbours))
    return [heading("Neighbours", "on the same devices meanwhile; time within the run"), indented(grid), *missing]


def _unnamed(receipt: Receipt) -> list[RenderableType]:
    if not receipt.unnamed:
        return []
    grid = _grid("cause", receipt.unnamed, [one.service.partition(":")[2] for one in receipt.unnamed])
    meanings = {one.service.partition(":")[2]: one.meaning for one in receipt.unnamed}
    notes = [indented(cell(f"{cause}: {meaning}", "dim")) for cause, meaning in meanings.items()]
    return [heading("Unnamed neighbours", "held the same devices meanwhile"), indented(grid), *notes]


def _grid(head: str, lines: Sequence[Neighbour], names: Sequence[str]) -> RenderableType:
    return Fitted(
        [
            Column(head=head, cells=[cell(name) for name in names], justify="left", least=20),
            Column(head="device", cells=[cell(device_name(one.device)) for one in lines], justify="left", spare=1),
            Column(head="contexts", cells=[count(one.contexts) for one in lines], spare=2),
            Column(head="time", cells=[known(one.context_ms, duration_ms) for one in lines]),
            Column(head="peak memory", cells=[known(one.peak_memory_mib, memory_mib) for one in lines]),
        ]
    )


def _unknown(receipt: Receipt) -> list[RenderableType]:
    """What the receipt cannot tell: time by reason, then doubts."""
    if not receipt.unknown and not receipt.doubts:
        return [heading("Unknown", "nothing: the whole time was watched, and every context is settled or named")]
    lines: list[RenderableType] = [heading("Unknown")]
    for one in receipt.unknown:
        line = Text(f"{UNKNOWN} {one.reason}  ", style="yellow")
        line.append(duration_ms(one.ms), style="bold not yellow")
        line.append(f" of device time, on {several(one.devices, 'device')}", style="not yellow")
        helps = Text.assemble("what helps: ", (one.command, "bold"))
        lines += [indented(line), indented(indented(Text(one.meaning))), indented(indented(helps))]
    for told in receipt.doubts:
        style = "" if told.doubt is Doubt.NOT_SETTLED else "yellow"
        lines += [indented(cell(told.sentence, style)), *_refs(told.refs)]
    return lines


def _refs(refs: Sequence[str]) -> list[RenderableType]:
    if not refs:
        return []
    more = f" and {count(len(refs) - MOST_LINES)} more" if len(refs) > MOST_LINES else ""
    return [indented(indented(cell(" ".join(refs[:MOST_LINES]) + more, "dim")))]


def _evidence(receipt: Receipt) -> list[RenderableType]:
    """Each context with the row to explain it by, and the command that explains the whole time."""
    lines: list[RenderableType] = []
    if receipt.contexts:
        shown = receipt.contexts[:MOST_LINES]
        is_stored = all(one.doubt is not Doubt.NOT_STORED for one in receipt.doubts)
        absent = "not written yet" if is_stored else "not stored"
        grid = Fitted(
            [
                Column(head="pid", cells=[str(one.pid) for one in shown]),
                Column(head="service", cells=[cell(one.service) for one in shown], justify="left", least=15),
                Column(head="device", cells=[cell(device_name(one.device)) for one in shown], justify="left", spare=3),
                Column(head="ms", cells=[known(one.context_ms, count) for one in shown]),
                Column(head="peak memory", cells=[known(one.peak_memory_mib, memory_mib) for one in shown], spare=4),
                Column(head="known", cells=[_STATE[one.state] for one in shown], justify="left", spare=2),
                Column(
                    head="ref", cells=[cell(one.refs[0] if one.refs else absent, "dim") for one in shown],
                    justify="left", least=24,
                ),
            ]
        )  # fmt: skip
        lines += [heading("Evidence", "gpuledger explain REF" if is_stored else ""), indented(grid)]
        lines += [*reasons(*(value for one in shown for value in (one.context_ms, one.peak_memory_mib)))]
        if len(receipt.contexts) > MOST_LINES:
            lines.append(indented(Text(f"and {count(len(receipt.contexts) - MOST_LINES)} more", style="dim")))
    if receipt.explain:
        lines.append(Text.assemble("all of this time: ", (receipt.explain, "bold")))
    return lines
