"""Records of reserved time from the relations of the rule into the ledger, without a Python value for each of them.

In: intervals as heads of records, and the amounts that :class:`~gpuledger.ledger.reserved.Reading` cut. Out: rows that
stand ready in a relation, for :meth:`gpuledger.ledger.store.Ledger.append_if` to number, insert and chain; and their
sums, for who asks before they are booked.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from json.encoder import encode_basestring_ascii as _text
from operator import itemgetter
from typing import ClassVar, cast

from sqlalchemy.engine.interfaces import DBAPICursor

from gpuledger.ledger import metered
from gpuledger.ledger.codec import CODECS
from gpuledger.ledger.engine import bare_cursor, rows_of
from gpuledger.ledger.reserved import Reading
from gpuledger.ledger.store import Ledger
from gpuledger.model.moments import DAY_US, SECOND_US
from gpuledger.model.reserved import RESERVED
from gpuledger.model.rows import Row, UsageRecord

_HEADS_OF_RUN = 4
"""More than the meters that one run can have: its heads are numbered from this times its number on."""

# In the order of hour and place, which is the order of the record's key: each index grows at its end.
_READY = f"""
INSERT INTO metered_ready (head, hour_us, seconds)
SELECT r.head, a.hour_us, a.amount_us / {SECOND_US}
FROM metered_amount AS a CROSS JOIN metered_run AS i CROSS JOIN metered_hour AS h CROSS JOIN metered_head AS r
WHERE i.run = a.run AND h.start_us = a.hour_us AND a.amount_us >= {SECOND_US} AND {metered.INSERTED}
    AND r.head >= a.run * {_HEADS_OF_RUN} AND r.head < (a.run + 1) * {_HEADS_OF_RUN}
ORDER BY a.hour_us, r.place"""  # noqa: S608 constants

_COLUMNS = CODECS[UsageRecord].columns
_INSERT = f"""
INSERT INTO usage_record ({", ".join(_COLUMNS)})
SELECT :writer, :before + b.number, r.meter, b.hour_us, r.host, r.device, r.subject, '{RESERVED}', b.seconds,
    r.evidence_count, r.evidence_hash, :recorded_at_us
FROM metered_ready AS b CROSS JOIN metered_head AS r
WHERE r.head = b.head ORDER BY b.number"""  # noqa: S608 constants

Head = tuple[int, str, str, str, str, int, str]
"""(run, meter, host, device, subject, evidence count, evidence hash): what the records of an interval share."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadyRecords:
    """Records that stand ready in a relation of the connection, until something else is derived.

    Args:
        count: how many.
        first: the number under which the first of them stands there; the others follow it.
        recorded_at_us: when the pass runs, microseconds UTC.
    """

    kind: ClassVar[type[Row]] = UsageRecord

    count: int
    first: int
    recorded_at_us: int

    def write(self, cursor: DBAPICursor, writer: str, first: int) -> None:
        """Insert them, numbered from ``first``."""
        cursor.execute(_INSERT, {"writer": writer, "before": first - self.first, "recorded_at_us": self.recorded_at_us})

    def encoded(self, cursor: DBAPICursor, writer: str, first: int) -> Iterator[str]:
        """Them as a link's JSON has them, joined by commas, some thousand at a time."""
        cursor.execute("SELECT head, meter, host, device, subject, evidence_count, evidence_hash FROM metered_head")
        opening = f"[{_text(UsageRecord.kind)},{_text(writer)},"
        reserved, closing = f",{_text(RESERVED)},", f",{self.recorded_at_us}]"
        around = {
            head: (
                f",{_text(meter)},",
                f",{_text(host)},{_text(device)},{_text(subject)}{reserved}",
                f",{evidence_count},{_text(evidence_hash)}{closing}",
            )
            for head, meter, host, device, subject, evidence_count, evidence_hash in cursor.fetchall()
        }
        before = first - self.first
        for rows in rows_of(cursor, "SELECT number, head, hour_us, seconds FROM metered_ready ORDER BY number"):
            yield ",".join(
                [
                    f"{opening}{before + number}{meter}{hour_us}{place}{seconds}{behind}"
                    for number, head, hour_us, seconds in rows
                    for meter, place, behind in (around[head],)
                ]
            )


def make_ready(read: Reading, heads: Iterable[Head] | None, *, recorded_at_us: int) -> ReadyRecords:
    """Make records of the amounts that were cut and of these heads; None: of the heads as they stand.

    Only amounts that are inserted: see :class:`gpuledger.ledger.reserved.Way`. A run without a head has no records.
    """
    cursor = read.cursor
    cursor.execute("DELETE FROM metered_ready")
    if heads is not None:
        cursor.execute("DELETE FROM metered_head")
        in_order = sorted(heads, key=itemgetter(1, 2, 3, 4))
        several: dict[int, int] = {}
        rows = []
        for place, (run, *rest) in enumerate(in_order):
            nth = several[run] = several.get(run, -1) + 1
            rows.append((run * _HEADS_OF_RUN + nth, run, place, *rest))
        cursor.executemany("INSERT INTO metered_head VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", rows)
    cursor.execute(_READY)
    cursor.execute("SELECT COUNT(*), MIN(number) FROM metered_ready")
    ((count, first),) = cursor.fetchall()
    return ReadyRecords(count=int(count), first=int(first or 0), recorded_at_us=recorded_at_us)


def ready_rows(read: Reading) -> Iterator[tuple[str, int, str, str, str, int]]:
    """What stands ready: meter, hour, host, device, subject and seconds."""
    query = """
        SELECT r.meter, b.hour_us, r.host, r.device, r.subject, b.seconds
        FROM metered_ready AS b CROSS JOIN metered_head AS r WHERE r.head = b.head"""
    for rows in rows_of(read.cursor, query):
        yield from cast("list[tuple[str, int, str, str, str, int]]", rows)


def stand_already(read: Reading) -> bool:
    """Whether a record of what stands ready is there already, whosever it is."""
    read.cursor.execute(
        "SELECT 1 FROM metered_ready AS b CROSS JOIN metered_head AS r CROSS JOIN usage_record AS u "
        "WHERE r.head = b.head AND u.meter = r.meter AND u.hour_us = b.hour_us AND u.subject = r.subject LIMIT 1"
    )
    return bool(read.cursor.fetchall())


def ready_sums(
    ledger: Ledger, meter: str, since_us: int, until_us: int, step_us: int
) -> Iterator[tuple[str, str, int, int]]:
    """Of the records that stand ready, (subject, device, step, seconds) of one meter in the hours of [since, until).

    Args:
        ledger: whose relations they are.
        meter: its name.
        since_us, until_us: the window.
        step_us: how finely time is told apart: an hour, a day, or 0 for not at all.
    """
    step = f"b.hour_us - b.hour_us % {int(step_us or DAY_US)}" if step_us else "0"
    cursor = bare_cursor(ledger.connection)
    cursor.execute(
        f"SELECT r.subject, r.device, {step}, SUM(b.seconds) FROM metered_ready AS b CROSS JOIN metered_head AS r "  # noqa: S608 constants
        "WHERE r.head = b.head AND r.meter = ? AND b.hour_us >= ? AND b.hour_us < ? GROUP BY 1, 2, 3",
        (meter, since_us, until_us),
    )
    yield from cursor.fetchall()
