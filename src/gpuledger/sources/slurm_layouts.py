"""Columns that known programs ask ``sacct`` for without a header, so that what to type can be said for their dumps.

Nothing is read by them: which columns a file has is its owner's to say. Each is as the program's source asks for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gpuledger.sources.slurm_fields import shape_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """The columns of one program, in its order."""

    program: str
    columns: tuple[str, ...]


LAYOUTS = (
    Layout(
        program="Open XDMoD",
        columns=(
            "jobid", "jobidraw", "cluster", "partition", "qos", "account", "group", "gid", "user", "uid", "submit",
            "eligible", "start", "end", "elapsed", "exitcode", "state", "nnodes", "ncpus", "reqcpus", "reqmem",
            "reqtres", "alloctres", "timelimit", "nodelist", "jobname",
        ),
    ),
    Layout(
        program="Sonar",
        columns=(
            "JobID", "JobIDRaw", "User", "Account", "State", "Start", "End", "AveCPU", "AveDiskRead", "AveDiskWrite",
            "AveRSS", "AveVMSize", "ElapsedRaw", "ExitCode", "Layout", "MaxRSS", "MaxVMSize", "MinCPU", "ReqCPUS",
            "ReqMem", "ReqNodes", "Reservation", "Submit", "Suspended", "SystemCPU", "TimelimitRaw", "UserCPU",
            "NodeList", "Partition", "AllocTRES", "Priority", "JobName",
        ),
    ),
)  # fmt: skip
"""Those of Open XDMoD (``xdmod-slurm-helper``) and of Sonar (``sonar slurm``)."""


def known_layout(cells: Sequence[str]) -> Layout | None:
    """The layout that a row's fields can be of: as many as it has columns, and each in its column's shape."""
    for layout in LAYOUTS:
        if len(cells) == len(layout.columns):
            shapes = [shape_of(column) for column in layout.columns]
            if all(shape is None or shape(cell) for shape, cell in zip(shapes, cells, strict=True)):
                return layout
    return None
