"""Watch spans: merges looks of one source with one status into rows, so that a day is not 86,400 rows."""

from __future__ import annotations

from dataclasses import dataclass

from gpuledger.model.reasons import UnknownReason
from gpuledger.model.rows import Watch


@dataclass(slots=True, kw_only=True)
class WatchSpan:
    """The looks of one source at one device (or host) that are not yet written.

    Args:
        host, device, source, method, interval_ms: as in a :class:`Watch` row.
        since_us, until_us: first moment covered, and last look.
        status: ``ok`` or the reason that holds since ``since_us``.
        readings, new_rows, living, detail: as in a :class:`Watch` row.
    """

    host: str
    device: str
    source: str
    method: str
    interval_ms: int
    since_us: int
    until_us: int
    status: str
    readings: int = 0
    new_rows: int = 0
    living: int = 0
    detail: str = ""

    def look(
        self, at_us: int, status: str, *, interval_ms: int, new_rows: int = 0, living: int = 0, detail: str = ""
    ) -> list[Watch]:
        """Take one more look; a change of status or interval ends the span and begins the next.

        The time between two looks belongs to what the later look found. What is new is written at once,
        so that the last row written of a source always says how it stands.

        Returns:
            The row of the span that ended, and the first of the one that began; mostly nothing.
        """
        ended: list[Watch] = []
        is_new = status != self.status
        told_anew = bool(self.readings and detail and self.detail) and detail != self.detail
        if told_anew or (status, interval_ms) != (self.status, self.interval_ms):
            ended = self.cut(self.until_us)
            self.status, self.interval_ms = status, interval_ms
        self.until_us = at_us
        self.readings += 1
        self.new_rows += new_rows
        self.living = max(self.living, living)
        self.detail = detail or self.detail
        return [*ended, *self.cut(at_us)] if is_new else ended

    def cut(self, at_us: int) -> list[Watch]:
        """Write what is unwritten up to the last look; the next span begins at ``at_us``."""
        rows = [self._row()] if self.readings else []
        self.since_us = self.until_us = at_us
        self.readings = self.new_rows = self.living = 0
        self.detail = ""
        return rows

    def _row(self) -> Watch:
        return Watch(
            host=self.host,
            device=self.device,
            source=self.source,
            method=self.method,
            interval_ms=self.interval_ms,
            since_us=self.since_us,
            until_us=self.until_us,
            status=self.status,
            readings=self.readings,
            new_rows=self.new_rows,
            living=self.living,
            detail=self.detail,
        )

    def gap(self, since_us: int, until_us: int, status: str = UnknownReason.WATCH_GAP, detail: str = "") -> Watch:
        """The row of a span in which this source did not look, or (by ``status``) lost what it looked for."""
        return Watch(
            host=self.host,
            device=self.device,
            source=self.source,
            method=self.method,
            interval_ms=self.interval_ms,
            since_us=since_us,
            until_us=until_us,
            status=status,
            readings=0,
            detail=detail or "no agent was looking",
        )
