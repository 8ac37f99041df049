"""``smi``: the machines at one moment, device by device, each followed by its processes. Values in, text out."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import RenderableType
from rich.text import Text

from gpuledger.model.durations import count, memory_mib
from gpuledger.model.meters import Grade
from gpuledger.model.missing import Missing
from gpuledger.model.moments import DAY_US, day_floor, iso
from gpuledger.model.snapshot import Snapshot, SnapshotDevice, SnapshotProcess
from gpuledger.model.usage import NO_NAME
from gpuledger.reports import as_csv, as_json, unseen
from gpuledger.reports.as_json import Json
from gpuledger.reports.cells import UNKNOWN, cell, device_name, heading, indented, stacked
from gpuledger.reports.columns import Column, Fitted

ABSENT = "-"
"""A figure that is not known, in the cells of this table; why stands under it."""


def to_json(report: Snapshot) -> dict[str, Json]:
    """The contract of ``smi --format json``."""
    return {
        "at": iso(report.at_us),
        "devices": [
            {
                "host": device.host,
                "device": device.device,
                "product": device.product,
                "class": device.class_name,
                "driver_version": device.driver_version,
                "memory_mib": as_json.number(device.memory_mib),
                "slices": [
                    {"device": part.device, "profile": part.profile, "memory_mib": as_json.number(part.memory_mib)}
                    for part in device.slices
                ],
                "watched": not device.reason,
                "unknown": {"reason": device.reason, "meaning": device.meaning, "command": device.command}
                if device.reason
                else None,
                "looked": as_json.moment(device.looked_us),
                "processes": [_process(process) for process in device.processes],
                **as_json.missing(memory_mib=device.memory_mib, looked=device.looked_us),
            }
            for device in report.devices
        ],
    }


def _process(process: SnapshotProcess) -> Json:
    memory = process.memory
    mib: int | Missing = memory if isinstance(memory, Missing) else memory.mib
    over: Json = None
    if not isinstance(memory, Missing):
        over = {"since": iso(memory.since_us), "until": iso(memory.until_us)}
    return {
        "pid": process.pid,
        "device": process.device,
        "profile": process.profile,
        "program": process.program,
        "service": process.service,
        "team": process.team,
        "user": process.user,
        "subject": process.subject,
        "since": iso(process.since_us),
        "since_by": process.since_by,
        "until": as_json.moment(process.until_us),
        "last_seen": iso(process.last_seen_us),
        "memory_mib": as_json.number(mib),
        "memory_over": over,
        "peak_memory_mib": as_json.number(process.peak_memory_mib),
        "known": process.grade.value,
        "certain": not process.doubt,
        "doubt": process.doubt,
        "ref": process.ref,
        **as_json.missing(until=process.until_us, memory_mib=mib, peak_memory_mib=process.peak_memory_mib),
    }


def to_csv(report: Snapshot) -> str:
    """A line for each device, by ``kind``, and after it one for each of its processes."""
    header = [
        "kind", "host", "device", "product", "driver_version", "device_memory_mib", "unknown", "profile", "pid",
        "program", "service", "team", "user", "subject", "since", "until", "memory_mib", "peak_memory_mib", "known",
        "certain", "ref",
    ]  # fmt: skip
    rows: list[list[as_csv.Value]] = []
    for device in report.devices:
        where: list[as_csv.Value] = [device.product, device.driver_version, device.memory_mib, device.reason]
        rows.append(["device", device.host, device.device, *where, *[""] * (len(header) - 7)])
        rows += [
            [
                "process", device.host, process.device, *where, process.profile, process.pid, process.program,
                process.service, process.team, process.user, process.subject, iso(process.since_us),
                process.until_us if isinstance(process.until_us, Missing) else iso(process.until_us),
                process.memory if isinstance(process.memory, Missing) else process.memory.mib,
                process.peak_memory_mib, process.grade.value, "no" if process.doubt else "yes", process.ref,
            ]
            for process in device.processes
        ]  # fmt: skip
    return as_csv.text(header, rows)


def to_table(report: Snapshot) -> RenderableType:
    """For eyes: as nvidia-smi lays it out, each device and then its processes."""
    title = heading("GPUs", f"at {iso(report.at_us)}")
    if not report.devices:
        return stacked(title, Text(f"{UNKNOWN}: no device is known", style="bold yellow"))
    return stacked(title, "", *unseen.spaced([_device(device, report.at_us) for device in report.devices]))


def _device(device: SnapshotDevice, at_us: int) -> list[RenderableType]:
    driver = f"  driver {device.driver_version}" if device.driver_version else ""
    title = f"{device.host}  {device.product}  {_size(device.memory_mib)}{driver}"
    lines: list[RenderableType] = [cell(title, "bold"), cell(device.device, "dim")]
    lines += [
        indented(cell(f"{part.profile or 'MIG'}  {_size(part.memory_mib)}  {part.device}", "dim"))
        for part in device.slices
    ]
    certain = [process for process in device.processes if not process.doubt]
    doubtful = [process for process in device.processes if process.doubt]
    if certain:
        lines += [indented(_processes(certain, at_us)), *_notes(certain, at_us)]
    elif not device.reason:
        lines.append(indented(Text("no process held it")))
    if device.reason:
        lines += _unwatched(device, bool(certain), at_us)
    if doubtful:
        lines.append(indented(heading("May have held it")))
        lines += [indented(_processes(doubtful, at_us)), *_doubts(doubtful)]
    return lines


def _size(mib: int | Missing) -> str:
    return f"memory {UNKNOWN}" if isinstance(mib, Missing) else f"{count(mib)} MiB"


def _unwatched(device: SnapshotDevice, some: bool, at_us: int) -> list[RenderableType]:
    line = Text(f"{UNKNOWN} {device.reason}", style="yellow")
    line.append(", so there may have been more" if some else "", style="not yellow")
    looked = device.looked_us
    lines: list[RenderableType] = [indented(line), indented(indented(Text(device.meaning)))]
    if not isinstance(looked, Missing) and looked < at_us:
        lines.append(indented(indented(Text(f"last look by then: {iso(looked)}"))))
    return [*lines, indented(indented(Text.assemble("what helps: ", (device.command, "bold"))))]


def _processes(processes: Sequence[SnapshotProcess], at_us: int) -> RenderableType:
    columns = [
        Column(head="pid", cells=[str(process.pid) for process in processes]),
        Column(head="program", cells=[cell(process.program) for process in processes], justify="left", least=14),
        Column(head="MiB", cells=[_memory(process, at_us) for process in processes]),
    ]
    if any(process.profile for process in processes):
        cells = [cell(f"{process.profile} {device_name(process.device)}".strip()) for process in processes]
        columns.append(Column(head="slice", cells=cells, justify="left", least=8))
    services = [cell(process.service) for process in processes]
    columns.append(Column(head="service", cells=services, justify="left", least=15))
    if any(process.team != NO_NAME for process in processes):
        cells = [cell(process.team) for process in processes]
        columns.append(Column(head="team", cells=cells, justify="left", least=6, spare=5))
    columns += [
        Column(head="user", cells=[cell(process.user) for process in processes], justify="left", least=6, spare=1),
        Column(head="since", cells=[_since(process, at_us) for process in processes], justify="left", spare=2),
        Column(head="until", cells=[_until(process, at_us) for process in processes], justify="left", spare=4),
        Column(head="known", cells=[process.grade.value for process in processes], justify="left", spare=3),
        Column(head="ref", cells=[cell(process.ref, "dim") for process in processes], justify="left", spare=6),
    ]
    return Fitted(columns)


def _memory(process: SnapshotProcess, at_us: int) -> Text:
    """Held then, or by the last sample written before; of a settled context without one the driver's own peak."""
    if not isinstance(process.memory, Missing):
        return Text(f"{'~' if process.memory.until_us < at_us else ''}{count(process.memory.mib)}")
    peak = process.peak_memory_mib
    if process.grade is Grade.SETTLED and not isinstance(peak, Missing):
        return Text(f"<= {count(peak)}")
    return Text(ABSENT, style="yellow")


def _since(process: SnapshotProcess, at_us: int) -> str:
    return _clock(process.since_us, at_us) + ("" if process.since_by == "driver" else "?")


def _until(process: SnapshotProcess, at_us: int) -> str:
    return "open" if isinstance(process.until_us, Missing) else _clock(process.until_us, at_us)


def _clock(moment_us: int, at_us: int) -> str:
    """Whole seconds; the day only where it is another one than the moment asked about."""
    text = iso(moment_us - moment_us % 1_000_000)
    return text[11:] if 0 <= moment_us - day_floor(at_us) < DAY_US else f"{text[:10]} {text[11:16]}Z"


def _notes(processes: Sequence[SnapshotProcess], at_us: int) -> list[RenderableType]:
    """What the cells leave out: why a figure is absent, what a mark means, why a name is."""
    said: dict[str, None] = {}
    for process in processes:
        if isinstance(process.memory, Missing):
            if process.grade is Grade.SETTLED and not isinstance(process.peak_memory_mib, Missing):
                said["<= : the driver's peak over its whole life; no sample covers this moment"] = None
            else:
                peak = process.peak_memory_mib
                known_peak = "" if isinstance(peak, Missing) else f"; highest so far {memory_mib(peak)}"
                said[f"{ABSENT} : memory {UNKNOWN}, {process.memory.reason}{known_peak}"] = None
        elif process.memory.until_us < at_us:
            until = _clock(process.memory.until_us, at_us)
            said[f"~ : by the last sample written, of {until}; what goes on is written every few minutes"] = None
        if process.since_by != "driver":
            said["? : the first look at it, or the latest start it can have had; the driver gave none"] = None
        if process.cause:
            said[f"{process.service}: {process.cause}"] = None
    return [indented(cell(sentence, "dim")) for sentence in said]


def _doubts(processes: Sequence[SnapshotProcess]) -> list[RenderableType]:
    return [indented(cell(f"pid {process.pid}: {process.doubt}", "dim")) for process in processes]
