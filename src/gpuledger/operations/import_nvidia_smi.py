"""``import nvidia-smi``: a dump, and maybe a map of pids, into the ledger. All of it or nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import tzinfo
from pathlib import Path
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from gpuledger.errors import Misconfigured
from gpuledger.ledger.store import Ledger
from gpuledger.model.identity import IdentityText
from gpuledger.model.missing import Missing
from gpuledger.model.outcomes import ImportReport
from gpuledger.model.problem import Problem
from gpuledger.model.readings import DeviceReading, LivingContext, Reading
from gpuledger.model.rows import DeviceEvent, DriverRecord, ProcessIdentity, Row, Sighting, Watch
from gpuledger.operations.reading_files import read_text
from gpuledger.sources import nvidia_smi, pid_map
from gpuledger.watching.accounting import device_status, driver_record
from gpuledger.watching.devices import changes, device_rows

_MAP = "give the map of pids in UTF-8: a pid, a service and seconds since 1970 a line, with tabs between"


def import_nvidia_smi(
    open_ledger: Callable[[], Ledger],
    path: Path,
    *,
    pid_map: Path | None,
    host: str | None,
    local_host: str,
    device: str,
    zone: str | None,
    taken_at_us: int | None,
    now_us: int,
    role: str,
) -> ImportReport:
    """Read everything, then append everything in one transaction.

    Raises:
        BadInput: a file that cannot be understood, with its line; the ledger is then not even opened.
        Misconfigured: ``zone-needed``, ``host-needed``, ``unknown-zone``.
    """
    problems: list[Problem] = []
    readings = nvidia_smi.parse(
        read_text(path, hint="give the text that nvidia-smi printed"),
        path=str(path),
        zone=_zone(zone),
        taken_at_us=Missing("the file gives no time") if taken_at_us is None else taken_at_us,
        device=device,
    )
    claims = _claims(pid_map)
    name = _host(readings, host, local_host, str(path), problems)
    with open_ledger() as ledger:
        problems += _elsewhere(ledger, readings, name, str(path))
        rows: list[Row] = []
        counts = [0, 0]
        unknown: dict[tuple[str, str], None] = {}
        devices = {row.device: row for row in ledger.scan(DeviceEvent, hosts=[name], order="time")}
        for reading in readings:
            problems += reading.problems
            at_us = _taken_at(ledger, reading, name, now_us, str(path), problems)
            for found in reading.devices.values():
                rows += changes(devices, device_rows(found, reading, host=name, at_us=at_us))
                fresh = [driver_record(row, host=name, device=found.uuid, reading=reading, at_us=at_us, driver_epoch="")
                         for row in found.finished]  # fmt: skip
                counts[0] += len(fresh)
                counts[1] += len(found.living)
                rows += _tighter(ledger, fresh)
                rows += [_sighting(seen, name, reading, at_us) for seen in found.living]
                rows += _driver_names(ledger, found, name, at_us)
                status = device_status(found)
                if status != "ok":
                    unknown[found.uuid, status] = None
                rows.append(_watch(found, reading, name, at_us, status))
        for claim in claims:
            rows.append(
                ProcessIdentity(
                    host=name,
                    boot_id="",
                    pid=claim.pid,
                    start_ticks=claim.line,
                    started_at_us=Missing("a pid map gives no start"),
                    seen_at_us=claim.seen_at_us,
                    method="pid-map",
                    grade="claimed",
                    text_key=ledger.key_of(IdentityText(service=claim.service)),
                )
            )
        dropped = counts[0] - sum(isinstance(row, DriverRecord) for row in rows)
        appended = ledger.append(rows, writer=f"{name}.{role}", at_us=now_us)
    return ImportReport(
        path=str(path),
        host=name,
        readings=len(readings),
        finished=counts[0],
        living=counts[1],
        claims=len(claims),
        added=len(appended.added),
        known=appended.known + dropped,
        unknown=tuple(unknown),
        problems=(*problems, *appended.conflicts),
    )


def _zone(zone: str | None) -> tzinfo | None:
    if zone is None:
        return None
    try:
        return ZoneInfo(zone)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise Misconfigured(
            "unknown-zone", f"{zone!r} is not a time zone", hint="--zone UTC, --zone Europe/Berlin"
        ) from None


def _claims(path: Path | None) -> list[pid_map.PidClaim]:
    return [] if path is None else pid_map.parse(read_text(path, hint=_MAP), path=str(path))


def _host(readings: list[Reading], host: str | None, local_host: str, path: str, problems: list[Problem]) -> str:
    """The machine: as told; else this one, unless the dump's devices could be any machine's."""
    if host:
        return host
    masked = [problem for reading in readings for problem in reading.problems if problem.code == "masked-device"]
    if masked:
        raise Misconfigured(
            "host-needed",
            f"{masked[0].where or path}: a UUID is masked, and two machines must not merge",
            hint="--host NAME, the machine it was printed on",
        )
    problems.append(
        Problem(
            code="host-assumed", where=path, message=f"filed under this machine, {local_host}; --host says otherwise"
        )
    )
    return local_host


def _elsewhere(ledger: Ledger, readings: list[Reading], host: str, path: str) -> Iterable[Problem]:
    """A real UUID is one GPU: under a second host its time would count a second time."""
    masked = any(problem.code == "masked-device" for reading in readings for problem in reading.problems)
    uuids = {uuid for reading in readings for uuid in reading.devices if uuid.startswith("GPU-") and not masked}
    hosts = {(event.device, event.host) for event in ledger.scan(DeviceEvent, devices=uuids)} if uuids else set()
    for uuid, other in sorted(hosts - {(uuid, host) for uuid in uuids}):
        if uuid != "GPU-unidentified":
            told = f"{uuid} is known at {other}: filed under {host} too, its time counts for both"
            yield Problem(code="device-elsewhere", where=path, message=told)


def _taken_at(ledger: Ledger, reading: Reading, host: str, now_us: int, path: str, problems: list[Problem]) -> int:
    """When a look was taken: as the dump says, else as it was filed before, else now."""
    if not isinstance(reading.at_us, Missing):
        return reading.at_us
    rows = [(device.uuid, row) for device in reading.devices.values() for row in device.finished]
    known = {
        (row.device, row.pid, row.content): row.read_at_us
        for row in (ledger.scan(DriverRecord, pids={(host, row.pid) for _, row in rows}) if rows else ())
    }
    filed = {known.get((uuid, row.pid, row.content)) for uuid, row in rows}
    if len(filed) == 1 and isinstance(before_us := filed.pop(), int):
        return before_us  # the very dump again: its looks are the ones that are there
    problems.append(
        Problem(
            code="time-assumed",
            where=path,
            message="the file gives no time, so it is taken as printed now; --taken-at says otherwise",
        )
    )
    return now_us


def _tighter(ledger: Ledger, rows: list[DriverRecord]) -> Iterable[DriverRecord]:
    """Rows not known yet, or read earlier than known: the earliest reading bounds when a row had ended."""
    known: dict[tuple[str, str, int, tuple[str, ...]], int] = {}
    for row in ledger.scan(DriverRecord, pids={(row.host, row.pid) for row in rows}) if rows else ():
        key = (row.host, row.device, row.pid, row.content)
        known[key] = min(row.read_at_us, known.get(key, row.read_at_us))
    for row in rows:
        earliest_us = known.get((row.host, row.device, row.pid, row.content))
        if earliest_us is None or row.read_at_us < earliest_us:
            yield row


def _sighting(seen: LivingContext, host: str, reading: Reading, at_us: int) -> Sighting:
    accounted = "unknown" if isinstance(seen.accounted, Missing) else "yes" if seen.accounted else "unknown"
    return Sighting(
        host=host,
        device=seen.device,
        pid=seen.pid,
        boot_id="",
        start_ticks=0,
        context_started_at_us=seen.started_at_us,
        since_us=at_us,
        until_us=at_us,
        accounted=accounted,
        peak_memory_mib=seen.memory_mib,
        gone_at_us=Missing("still alive"),
        method=reading.method,
    )


def _driver_names(ledger: Ledger, device: DeviceReading, host: str, at_us: int) -> Iterable[ProcessIdentity]:
    """The driver's own process names: somebody's word, but better than none."""
    for seen in device.living:
        if not seen.process_name:
            continue
        text = IdentityText(exe=seen.process_name, command=seen.process_name)
        yield ProcessIdentity(
            host=host, boot_id="", pid=seen.pid, start_ticks=0, started_at_us=Missing("nvidia-smi gives no start"),
            seen_at_us=at_us, method="nvidia-smi", grade="claimed", text_key=ledger.key_of(text),
        )  # fmt: skip


def _watch(device: DeviceReading, reading: Reading, host: str, at_us: int, status: str) -> Watch:
    return Watch(
        host=host,
        device=device.uuid,
        source="driver",
        method=reading.method,
        interval_ms=0,
        since_us=at_us,
        until_us=at_us,
        status=status,
        new_rows=len(device.finished),
        living=len(device.living),
        detail="a dump of nvidia-smi",
    )
