"""Rows for the tests of measuring: one host, one device, times in ms after a full hour."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from gpuledger.model.missing import Missing
from gpuledger.model.moments import HOUR_US
from gpuledger.model.quantities import Evidence
from gpuledger.model.rows import DriverRecord, ProcessIdentity, Row, Sighting, Watch

BASE_US = 500_000 * HOUR_US
ABSENT = Missing("test: not given")


class Make:
    """Makes rows; each gets a number of its own, so that references tell them apart."""

    def __init__(self) -> None:
        self._number = 0

    def at(self, ms: int) -> int:
        """Microseconds UTC of a number of ms after the full hour."""
        return BASE_US + ms * 1000

    def driver(self, start: int | None, ms: int, *, read: int | None = None, **words: Any) -> DriverRecord:
        """A finished row; ``start=None``: from a source without start times."""
        read = (start or 0) + ms + 1 if read is None else read
        row = DriverRecord(
            host="box", device="GPU-0", pid=7, started_at_us=ABSENT if start is None else self.at(start), context_ms=ms,
            peak_memory_mib=178, gpu_percent=0, memory_percent=0, read_at_us=self.at(read), method="nvml",
        )  # fmt: skip
        return self._own(row, words)

    def look(
        self,
        since: int,
        until: int,
        *,
        start: int | None = None,
        gone: int | None = None,
        died: bool = False,
        **words: Any,
    ) -> Sighting:
        """A sighting; ``start`` is the driver's start of the context."""
        row = Sighting(
            host="box", device="GPU-0", pid=7, boot_id="b", start_ticks=1,
            context_started_at_us=ABSENT if start is None else self.at(start), since_us=self.at(since),
            until_us=self.at(until), peak_memory_mib=ABSENT, gone_at_us=ABSENT if gone is None else self.at(gone),
            process_died=int(died), method="nvml",
        )  # fmt: skip
        return self._own(row, words)

    def identity(
        self, name: str, born: int, *, seen: int | None = None, ticks: int = 1, **words: Any
    ) -> ProcessIdentity:
        """A process read while it lived."""
        row = ProcessIdentity(
            host="box", boot_id="b", pid=7, start_ticks=ticks, started_at_us=self.at(born),
            seen_at_us=self.at(born if seen is None else seen), method="poll", grade="kernel", text_key=name,
        )  # fmt: skip
        return self._own(row, words)

    def claim(self, name: str, seen: int, *, method: str = "pid-map", **words: Any) -> ProcessIdentity:
        """Somebody's word for a pid."""
        row = ProcessIdentity(
            host="box", boot_id="", pid=7, start_ticks=1, started_at_us=ABSENT, seen_at_us=self.at(seen),
            method=method, grade="claimed", text_key=name,
        )  # fmt: skip
        return self._own(row, words)

    def watch(
        self, since: int, until: int, *, source: str = "process", every: int = 1000, status: str = "ok", **words: Any
    ) -> Watch:
        """A span of looking, of naming unless told otherwise."""
        row = Watch(
            host="box", device="" if source == "process" else "GPU-0", source=source,
            method="poll" if source == "process" else "nvml", interval_ms=every, since_us=self.at(since),
            until_us=self.at(until), status=status,
        )  # fmt: skip
        return self._own(row, words)

    def evidence(self, rows: Sequence[Row]) -> Evidence:
        """Rows by kind."""
        return Evidence(
            driver_records=tuple(row for row in rows if isinstance(row, DriverRecord)),
            sightings=tuple(row for row in rows if isinstance(row, Sighting)),
            identities=tuple(row for row in rows if isinstance(row, ProcessIdentity)),
            watches=tuple(row for row in rows if isinstance(row, Watch)),
        )

    def _own(self, row: Any, words: dict[str, Any]) -> Any:
        self._number += 1
        return replace(row, **{"writer": "box.agent", "number": self._number, **words})


@pytest.fixture
def make() -> Make:
    """The maker of rows."""
    return Make()
