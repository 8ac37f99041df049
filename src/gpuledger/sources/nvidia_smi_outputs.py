"""What one nvidia-smi command said, understood but not yet combined: the words between its parsers.

The parsers of CSV, XML and log text give :class:`Output` values; ``nvidia_smi_looks`` combines those
of one moment into a reading. No input or output here.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from gpuledger.errors import BadInput
from gpuledger.model.missing import Missing
from gpuledger.model.problem import Problem
from gpuledger.sources.redaction import redact

NOT_READ = Missing("nvidia-smi: not in this output")
NO_TIME = Missing("nvidia-smi: no timestamp")
MOST_PROBLEMS = 20
"""Problems kept of one output; the rest are counted. A wrong file would else print a page a row."""
MOST_BROKEN = 100_000
"""Lines that cannot be understood in one output before the whole file is refused."""


class Kind(StrEnum):
    """Which command's output a piece of text is."""

    ACCOUNTED = "--query-accounted-apps"
    COMPUTE = "--query-compute-apps"
    GPU = "--query-gpu"
    LOG = "-q"
    XML = "-q -x"
    LIST = "-L"


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountedRow:
    """One row of the accounting list. ``context_ms`` is 0 while it runs, which is not a quantity."""

    pid: int
    running: bool
    context_ms: int
    peak_memory_mib: int | Missing
    gpu_percent: int | Missing
    memory_percent: int | Missing


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedProcess:
    """One living process as a list names it. ``kinds`` as in ``LivingContext``; ids of the MIG instance where told."""

    pid: int
    kinds: str
    memory_mib: int | Missing
    process_name: str
    gpu_instance: int | Missing = NOT_READ
    compute_instance: int | Missing = NOT_READ


@dataclass(frozen=True, slots=True, kw_only=True)
class Slice:
    """One MIG instance as -q, -q -x or -L names it; ``uuid`` and ``profile`` only from -L."""

    place: int
    gpu_instance: int | Missing = NOT_READ
    compute_instance: int | Missing = NOT_READ
    memory_mib: int | Missing = NOT_READ
    uuid: str = ""
    profile: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class DevicePart:
    """What one output says of one GPU.

    Args:
        uuid, bus_id, serial: its names; empty where not told. ``bus_id`` in the current spelling.
        product: empty where not told.
        memory_mib: total memory.
        accounting: ``enabled``, ``disabled``, ``unsupported``, or empty where not told.
        mig: whether MIG mode is on; Missing where not told.
        slices: MIG instances.
        accounted, processes: the lists; Missing where this output holds none.
    """

    uuid: str = ""
    bus_id: str = ""
    serial: str = ""
    product: str = ""
    memory_mib: int | Missing = NOT_READ
    accounting: str = ""
    mig: bool | Missing = NOT_READ
    slices: tuple[Slice, ...] = ()
    accounted: tuple[AccountedRow, ...] | Missing = NOT_READ
    processes: tuple[ListedProcess, ...] | Missing = NOT_READ


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """One command's output.

    Args:
        kind: which command.
        line: where it begins in the file, 1-based.
        section: the capture's own name for the moment, such as ``idle``; may be empty.
        at: local time without zone, as printed.
        driver_version, host_name: empty where not told.
        parts: by GPU; empty for a list without rows.
        problems: lines that could not be understood.
    """

    kind: Kind
    line: int
    section: str = ""
    at: datetime | Missing = NO_TIME
    driver_version: str = ""
    host_name: str = ""
    parts: tuple[DevicePart, ...] = ()
    problems: tuple[Problem, ...] = ()

    @property
    def tells(self) -> bool:
        """Whether it says anything of use: a list, even an empty one, or the accounting mode."""
        if self.kind in (Kind.ACCOUNTED, Kind.COMPUTE):
            return True
        return any(
            part.accounting or not isinstance(part.accounted, Missing) or not isinstance(part.processes, Missing)
            for part in self.parts
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Rejected:
    """A piece of text that is nvidia-smi's, and of no use as it stands.

    Args:
        code, message, hint: as in an error.
        line: where it begins in the file, 1-based.
    """

    code: str
    message: str
    hint: str
    line: int


@dataclass(slots=True)
class Complaints:
    """Collects the problems of one output, the first few by line and the rest by number."""

    path: str
    problems: list[Problem] = field(default_factory=list)
    surplus: int = 0

    @property
    def is_full(self) -> bool:
        """Whether further lines are only counted, so that their message need not be made."""
        return len(self.problems) >= MOST_PROBLEMS

    def add(self, line: int, message: str, code: str = "broken-line") -> None:
        """Note a line that could not be understood.

        Raises:
            BadInput: ``not-nvidia-smi`` when there are :data:`MOST_BROKEN` of them.
        """
        if not self.is_full:
            # a line quoted may hold a process' command line
            said = redact((message,))
            self.problems.append(Problem(code=code, message=said, where=f"{self.path}:{line}"))
        else:
            self.surplus += 1
            if self.surplus > MOST_BROKEN:
                message = f"more than {MOST_BROKEN} lines are not what their header announces"
                hint = "give the text as nvidia-smi printed it"
                raise BadInput("not-nvidia-smi", message, path=self.path, line=line, hint=hint)

    def taken(self) -> tuple[Problem, ...]:
        """The problems so far; begins anew."""
        taken = list(self.problems)
        if self.surplus:
            message = f"{self.surplus} more lines like these were left out"
            taken.append(Problem(code="broken-line", message=message, where=self.path))
        self.problems, self.surplus = [], 0
        return tuple(taken)


def accounting_word(mode: bool | Missing, said: str) -> str:
    """The accounting mode as a reading names it; empty where ``said`` is empty."""
    if not said:
        return ""
    if isinstance(mode, Missing):
        return "unsupported"
    return "enabled" if mode else "disabled"


def kinds_of(said: str) -> str:
    """The letters of a process type such as ``C+G`` or ``M+C``; a list without types is of compute processes."""
    return "".join(letter for letter in "CGM" if letter in said.upper()) or "C"
