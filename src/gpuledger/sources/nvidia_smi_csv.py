"""The rows of ``--query-accounted-apps``, ``--query-compute-apps`` and ``--query-gpu`` in CSV.

In: a header understood and the lines after it. Out: what they say, by device. Rows that cannot be
understood become problems with their line, and the others are kept.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta

from gpuledger.model.missing import Missing
from gpuledger.sources import nvidia_smi_values as values
from gpuledger.sources.nvidia_smi_header import Header, cells_of
from gpuledger.sources.nvidia_smi_outputs import (
    NO_TIME,
    NOT_READ,
    AccountedRow,
    Complaints,
    DevicePart,
    Kind,
    ListedProcess,
    Output,
    accounting_word,
)

_LOOP_US = timedelta(seconds=1)
"""``-l`` repeats the rows under one header: rows a second apart are two looks. Within one, GPUs differ by ms."""

_UNITS_LOST = "the time has lost its unit, so the line may have been cut off"


def parse_rows(header: Header, lines: Sequence[str], *, path: str, line: int, section: str) -> Iterator[Output]:
    """The outputs under one header: one, or with ``-l`` one for each time the rows were printed.

    Args:
        header: what :func:`read_header` gave.
        lines: the lines after it.
        path: the file, for problems.
        line: the header's line number.
        section: the capture's name for the moment.
    """
    complaints = Complaints(path)
    rows = _Rows(header)
    in_table = True
    for number, content in enumerate(lines, start=line + 1):
        if not content.strip():
            in_table = False
            continue
        cells = cells_of(content, header)
        if cells is None:
            # behind an empty line this is the noise of a capture, no longer the table
            if in_table:
                quoted = "" if complaints.is_full else f": {content.strip()[:80]!r}"
                complaints.add(number, f"{header.width} columns were expected{quoted}")
            continue
        try:
            at = values.local_time(cells[header.place["timestamp"]]) if "timestamp" in header.place else NO_TIME
            if rows.begins_anew(cells, at):
                yield rows.output(line, section, complaints)
                rows = _Rows(header)
            rows.add(cells, at)
            in_table = True
        except ValueError as problem:
            complaints.add(number, str(problem))
    yield rows.output(line, section, complaints)


class _Rows:
    """The rows of one look under one header, by device."""

    def __init__(self, header: Header) -> None:
        self._header = header
        self._at: datetime | Missing = NO_TIME
        self._with_unit: bool | None = None
        self._accounted: dict[tuple[str, str, str], list[AccountedRow]] = {}
        self._processes: dict[tuple[str, str, str], list[ListedProcess]] = {}
        self._products: dict[tuple[tuple[str, str, str], str], None] = {}
        self._gpus: list[DevicePart] = []
        self._driver_version = ""
        self._host_name = ""
        self._seen: set[tuple[str, ...]] = set()

    def begins_anew(self, cells: list[str], at: datetime | Missing) -> bool:
        """Whether a row of this time belongs to a later look: a second on, or the same pid at another time."""
        if isinstance(at, Missing) or isinstance(self._at, Missing) or at == self._at:
            return False
        return abs(at - self._at) >= _LOOP_US or self._key(cells) in self._seen

    def _key(self, cells: list[str]) -> tuple[str, ...]:
        return tuple(self._cell(cells, field) for field in ("uuid", "bus_id", "serial", "pid"))

    def add(self, cells: list[str], at: datetime | Missing) -> None:
        """Take one row.

        Raises:
            ValueError: a cell is not what its column holds.
        """
        device = (
            values.name(self._cell(cells, "uuid")),
            values.bus_id(self._cell(cells, "bus_id")),
            values.name(self._cell(cells, "serial")),
        )
        if self._header.kind is Kind.ACCOUNTED:
            self._add_accounted(cells, device)
        elif self._header.kind is Kind.COMPUTE:
            self._add_process(cells, device)
        else:
            self._add_gpu(cells, device)
        if product := values.name(self._cell(cells, "product")):
            self._products[device, product] = None
        if not isinstance(at, Missing):
            self._at = at
        self._seen.add(self._key(cells))

    def _cell(self, cells: list[str], field: str) -> str:
        column = self._header.place.get(field)
        return "" if column is None else cells[column]

    def _add_accounted(self, cells: list[str], device: tuple[str, str, str]) -> None:
        pid = values.process_id(self._cell(cells, "pid"))
        if isinstance(pid, Missing):
            # one row of nothing but "[Not Supported]" stands for a list that the device does not keep
            self._gpus.append(self._part(device, accounting="unsupported"))
            return
        said = self._cell(cells, "time")
        context_ms = values.milliseconds(said, self._header.units.get("time", ""))
        if isinstance(context_ms, Missing):
            raise ValueError(f"pid {pid} has no time ({context_ms.reason}), so it cannot be told finished from running")  # noqa: TRY004
        if self._with_unit is None:
            self._with_unit = not said[-1].isdigit()
        elif self._with_unit and said[-1].isdigit():
            raise ValueError(_UNITS_LOST)
        row = AccountedRow(
            pid=pid,
            running=context_ms == 0,
            context_ms=context_ms,
            peak_memory_mib=self._memory(cells, "max_memory_usage"),
            gpu_percent=self._percent(cells, "gpu_util"),
            memory_percent=self._percent(cells, "mem_util"),
        )
        self._accounted.setdefault(device, []).append(row)

    def _add_process(self, cells: list[str], device: tuple[str, str, str]) -> None:
        pid = values.process_id(self._cell(cells, "pid"))
        if isinstance(pid, Missing):
            return  # "[Not Supported]": the device keeps no such list
        process = ListedProcess(
            pid=pid,
            kinds="C",
            memory_mib=self._memory(cells, "used_memory"),
            process_name=values.name(self._cell(cells, "process_name")),
        )
        self._processes.setdefault(device, []).append(process)

    def _add_gpu(self, cells: list[str], device: tuple[str, str, str]) -> None:
        mode = self._cell(cells, "accounting.mode")
        mig = self._cell(cells, "mig.mode.current")
        part = self._part(
            device,
            accounting=accounting_word(values.switch(mode), mode),
            mig=values.switch(mig) if mig else NOT_READ,
            memory_mib=self._memory(cells, "memory.total"),
        )
        self._gpus.append(part)
        self._driver_version = (
            values.name(self._cell(cells, "driver_version")).partition(" ")[0] or self._driver_version
        )
        self._host_name = values.name(self._cell(cells, "hostname")) or self._host_name

    def _memory(self, cells: list[str], field: str) -> int | Missing:
        if field not in self._header.place:
            return NOT_READ
        return values.memory_mib(self._cell(cells, field), self._header.units.get(field, ""))

    def _percent(self, cells: list[str], field: str) -> int | Missing:
        return values.percent(self._cell(cells, field)) if field in self._header.place else NOT_READ

    @staticmethod
    def _part(
        device: tuple[str, str, str],
        *,
        accounting: str = "",
        mig: bool | Missing = NOT_READ,
        memory_mib: int | Missing = NOT_READ,
        product: str = "",
        accounted: tuple[AccountedRow, ...] | Missing = NOT_READ,
        processes: tuple[ListedProcess, ...] | Missing = NOT_READ,
    ) -> DevicePart:
        uuid, bus_id, serial = device
        return DevicePart(
            uuid=uuid, bus_id=bus_id, serial=serial, product=product, memory_mib=memory_mib,
            accounting=accounting, mig=mig, accounted=accounted, processes=processes,
        )  # fmt: skip

    def output(self, line: int, section: str, complaints: Complaints) -> Output:
        """What the rows so far say."""
        parts = list(self._gpus)
        parts += [self._part(device, accounted=tuple(rows)) for device, rows in self._accounted.items()]
        parts += [self._part(device, processes=tuple(rows)) for device, rows in self._processes.items()]
        parts += [self._part(device, product=product) for device, product in self._products]
        return Output(
            kind=self._header.kind,
            line=line,
            section=section,
            at=self._at,
            driver_version=self._driver_version,
            host_name=self._host_name,
            parts=tuple(parts),
            problems=complaints.taken(),
        )
