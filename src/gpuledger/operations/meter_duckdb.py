"""``meter --engine duckdb``: a metering pass whose reserved time DuckDB derives; the very same rows are booked."""

from __future__ import annotations

from collections.abc import Callable

from gpuledger.ledger import parquet
from gpuledger.ledger.duck import Duck
from gpuledger.ledger.duck_reading import DuckReading
from gpuledger.ledger.store import Ledger
from gpuledger.model.outcomes import MeterReport
from gpuledger.operations.meter import meter


def meter_duckdb(
    ledger: Ledger, *, now_us: int, writer: str, progress: Callable[[int, int], None] | None = None
) -> MeterReport:
    """As :func:`gpuledger.operations.meter.meter`.

    Raises:
        Unavailable: ``missing-extra``, ``lake-memory``, ``lake-full``; and as ``meter``.
    """
    parquet.arrow()
    with Duck() as duck:
        return meter(
            ledger,
            now_us=now_us,
            writer=writer,
            progress=progress,
            make=lambda opened, marks: DuckReading(opened, marks, duck),
        )
