"""A line of nvidia-smi's CSV: which list a header announces, and the cells of a row.

Any columns in any order, with units in the header, in the cells, or nowhere; quoted cells; process
names with commas that older drivers do not escape. A line in, a header or cells out.
"""

from __future__ import annotations

import csv
import re
from dataclasses import dataclass

from gpuledger.sources.nvidia_smi_outputs import Kind, Rejected

_CELL = re.compile(r"([a-z_][A-Za-z0-9_.]*)(?: ?\[([^\]]*)\])?")
_NAMES = {
    "gpu_uuid": "uuid", "gpu_bus_id": "bus_id", "pci.bus_id": "bus_id", "gpu_serial": "serial", "gpu_name": "product",
    "gpu_utilization": "gpu_util", "mem_utilization": "mem_util", "memory_utilization": "mem_util",
    "memory_util": "mem_util", "used_gpu_memory": "used_memory", "mig.mode": "mig.mode.current",
    "accounting_mode": "accounting.mode",
}  # fmt: skip
"""Spellings of one field: as it is asked for, as it is printed, and as older drivers printed it."""

_ACCOUNTED_ONLY = frozenset({"gpu_util", "mem_util", "max_memory_usage"})
_GPU_TELLS = frozenset({"accounting.mode", "mig.mode.current", "memory.total", "driver_version", "hostname"})
_ASK = "nvidia-smi --query-accounted-apps=gpu_uuid,pid,gpu_util,mem_util,max_memory_usage,time --format=csv"


@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    """A header understood: its kind, and where each field stands.

    Args:
        place: field, in one spelling, to column.
        units: field to the unit in the header; not every field.
        width: number of columns.
        delimiter: between cells.
        elastic: the column that may hold unescaped delimiters (a process name), or -1.
    """

    kind: Kind
    place: dict[str, int]
    units: dict[str, str]
    width: int
    delimiter: str
    elastic: int


def read_header(line: str, number: int, *, asked: str = "") -> Header | Rejected | None:
    """The header that a line is; None when it is none of nvidia-smi's.

    Args:
        line: the line.
        number: its number in the file.
        asked: ``accounted`` or ``compute`` where a command line before it says which list it is.
    """
    delimiter = next((mark for mark in ",;\t" if mark in line), "")
    if not delimiter:
        return None
    place: dict[str, int] = {}
    units: dict[str, str] = {}
    cells = cut(line, delimiter)
    while cells and not cells[-1]:
        cells.pop()
    for column, cell in enumerate(cells):
        match = _CELL.fullmatch(cell)
        if match is None:
            return None
        field = _NAMES.get(match[1], match[1])
        place.setdefault(field, column)
        units.setdefault(field, match[2] or "")
    kind = _kind(place, asked)
    if kind is None:
        return _rejection(place, number)
    if "name" in place:
        place["process_name" if kind is Kind.COMPUTE else "product"] = place.pop("name")
    missing = _rejection(place, number) if kind is Kind.ACCOUNTED and not {"pid", "time"} <= place.keys() else None
    if missing is not None:
        return missing
    elastic = place.get("process_name", -1)
    return Header(kind=kind, place=place, units=units, width=len(cells), delimiter=delimiter, elastic=elastic)


def _kind(place: dict[str, int], asked: str) -> Kind | None:
    fields = place.keys()
    if fields & _ACCOUNTED_ONLY or {"pid", "time"} <= fields:
        return Kind.ACCOUNTED
    if "pid" in fields and (fields & {"process_name", "name", "used_memory"} or asked == "compute"):
        return Kind.COMPUTE
    if "pid" not in fields and (fields & {"uuid", "bus_id", "serial"} or "accounting.mode" in fields):
        return Kind.GPU if fields & _GPU_TELLS else None
    return None


def _rejection(place: dict[str, int], number: int) -> Rejected | None:
    fields = place.keys()
    if fields & _ACCOUNTED_ONLY:
        lost = " and ".join(name for name in ("pid", "time") if name not in fields)
        message = f"the list has no column {lost}, so its rows cannot be told apart or counted"
        return Rejected(code="columns-missing", message=message, hint=f"export it again: {_ASK}", line=number)
    if "pid" in fields and fields & {"uuid", "bus_id", "serial", "product", "timestamp"}:
        message = "a list of pids alone can be of living or of finished processes"
        return Rejected(code="columns-missing", message=message, hint=f"export it again: {_ASK}", line=number)
    return None


def looks_like_rows(line: str) -> bool:
    """Whether a line is a row of nvidia-smi's CSV, whose header (``noheader``) is missing."""
    if len(line) > 65_536 or "," not in line:
        return False
    cells = cut(line, ",")
    if not 2 <= len(cells) <= 300:
        return False
    if any(re.fullmatch(r"(?:GPU|MIG)-[0-9A-Fa-f]{8}-[0-9A-Fa-f-]{20,40}|[0-9]+ (?:ms|MiB|%)", cell) for cell in cells):
        return True
    return all(re.fullmatch(r"[0-9.]+|\[[^\]]+\]", cell) for cell in cells)


def cut(line: str, delimiter: str) -> list[str]:
    """The cells of a line, stripped; quotes are honoured where they are whole."""
    if '"' in line:
        try:
            return [cell.strip() for cell in next(csv.reader([line], delimiter=delimiter, skipinitialspace=True), [])]
        except csv.Error:  # a stray quote or an endless cell: cut it plainly
            pass
    return [cell.strip() for cell in line.split(delimiter)]


def cells_of(line: str, header: Header) -> list[str] | None:
    """The cells of a row, or None when it has not the header's columns."""
    cells = cut(line, header.delimiter)
    if len(cells) == header.width:
        return cells
    raw = line.split(header.delimiter)
    while len(raw) > header.width and not raw[-1].strip():
        raw.pop()
    surplus = len(raw) - header.width
    if surplus < 0 or (surplus > 0 and header.elastic < 0):
        return None
    if surplus > 0:
        end = header.elastic + surplus + 1
        raw[header.elastic : end] = [header.delimiter.join(raw[header.elastic : end])]
    return [cell.strip() for cell in raw]
