"""``import slurm``: a dump of Slurm's accounting, text or JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import tzinfo
from pathlib import Path
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from gpuledger.errors import Misconfigured
from gpuledger.operations.import_history import begun_anew
from gpuledger.operations.reading_files import MOST_HISTORY_BYTES, read_bytes, refuse_packed
from gpuledger.sources import slurm_jobs
from gpuledger.sources.slurm_jobs import SlurmHistory


def read_slurm(
    path: Path,
    *,
    columns: Sequence[str] = (),
    zone: str | None = None,
    cluster: str = "",
    source: str | None = None,
    include_cpu: bool = False,
    shards_per_gpu: int = 0,
) -> SlurmHistory:
    """What a dump tells; whether it is text or JSON is seen by itself.

    Args:
        path: what ``sacct -P`` or ``sacct --json`` printed; ``-`` for stdin.
        columns: their names, for text without header.
        zone: of its local times.
        cluster: of rows that name none; it is a part of each workload's id.
        source: who says so; by default ``slurm:CLUSTER``, ``slurm`` where no cluster is told.
        include_cpu: whether jobs without a GPU come in too, as class ``cpu``.
        shards_per_gpu: how many ``gres/shard`` make one GPU; 0: not given.

    Raises:
        Misconfigured: ``unknown-zone``, ``zone-needed``.
        BadInput: a file that cannot be understood.
    """
    content = read_bytes(path, most=MOST_HISTORY_BYTES, split="dump it by month: sacct -S 2026-10-01 -E 2026-11-01")
    refuse_packed(content, path)
    found = slurm_jobs.parse(
        content,
        path=str(path),
        zone=_zone(zone),
        columns=columns,
        cluster=cluster,
        source=source or "",
        include_cpu=include_cpu,
        shards_per_gpu=shards_per_gpu,
    )
    return replace(found, history=begun_anew(found.history))


def _zone(zone: str | None) -> tzinfo | None:
    if zone is None:
        return None
    try:
        return ZoneInfo(zone)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise Misconfigured(
            "unknown-zone", f"{zone!r} is not a time zone", hint="--zone UTC, --zone Europe/Berlin"
        ) from None
