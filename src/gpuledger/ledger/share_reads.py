"""What fair share reads of the ledger: recorded hours, added up with what each counts, and the workloads that may wait.

In: the connection of an open ledger, inside a snapshot. Out: tuples and rows.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence, Set
from json import JSONDecoder
from typing import NamedTuple, cast

import sqlalchemy as sa

from gpuledger.errors import Corrupt
from gpuledger.ledger.codec import CODECS
from gpuledger.ledger.engine import bare_cursor, engine_of
from gpuledger.ledger.schema import HOLD, IDENTITY_TEXT, USAGE_CORRECTION, USAGE_RECORD, WORKLOAD_EVENT
from gpuledger.model.lifecycle import State
from gpuledger.model.missing import Missing
from gpuledger.model.workload_rows import WorkloadEvent

_AT_ONCE = 500
_decode = JSONDecoder().raw_decode  # ``loads`` takes twice the time, looking for blanks that no text here has

_RELATION = {
    "share_hour": "hour_us INTEGER PRIMARY KEY, epoch_us BIGINT, high BIGINT, middle BIGINT, low BIGINT",
}

_SUMS = """
SELECT r.subject, r.device, w.epoch_us, SUM(r.{amount}),
       SUM(r.{amount} * w.high), SUM(r.{amount} * w.middle), SUM(r.{amount} * w.low)
FROM share_hour AS w JOIN {table} AS r ON r.hour_us = w.hour_us
WHERE r.meter = :meter
GROUP BY r.subject, r.device, w.epoch_us"""


class HourWeight(NamedTuple):
    """What one hour counts.

    Args:
        hour_us: its start.
        epoch_us: since when the owners hold that it is charged to.
        high, middle, low: limbs of the weight.
    """

    hour_us: int
    epoch_us: int
    high: int
    middle: int
    low: int


def first_hour(connection: sa.Connection, meter: str) -> int | Missing:
    """Start of the first recorded hour of a meter, microseconds UTC."""
    columns = USAGE_RECORD.c
    found = connection.execute(sa.select(sa.func.min(columns.hour_us)).where(columns.meter == meter)).scalar()
    return Missing("nothing is recorded") if found is None else int(found)


def make_relations(connection: sa.Connection) -> None:
    """Make the relation of hours and what each counts, which belongs to the connection; before a snapshot begins."""
    engine_of(connection).make_relations(connection, _RELATION)


def weighted_sums(
    connection: sa.Connection, meter: str, weights: Sequence[HourWeight]
) -> Iterator[tuple[str, str, int, int, int, int, int]]:
    """Subject, device, epoch, and the sums of quantity, and of quantity times each limb of its hour's weight.

    Records and corrections come apart, so a key can come twice. What an hour counts is a relation, so that the store
    adds up all of it in one statement.

    Args:
        connection: of the ledger; finish before it is used for anything else.
        meter: its name.
        weights: of every hour that counts.
    """
    cursor = bare_cursor(connection)
    cursor.execute("DELETE FROM share_hour")
    if not weights:
        return
    cursor.executemany("INSERT INTO share_hour VALUES (?, ?, ?, ?, ?)", weights)
    engine_of(connection).weigh(cursor, ("share_hour",))
    for table, amount in ((USAGE_RECORD.name, "quantity"), (USAGE_CORRECTION.name, "delta")):
        cursor.execute(_SUMS.format(table=table, amount=amount), {"meter": meter})
        for subject, device, epoch_us, *sums in cursor.fetchall():
            plain, high, middle, low = (int(each) for each in sums)
            yield subject, device, epoch_us, plain, high, middle, low


def identity_values(connection: sa.Connection, keys: Collection[str]) -> dict[str, dict[str, str]]:
    """The filled fields of identity texts by key, all at once; forgotten keys are left out.

    Raises:
        Corrupt: ``ledger-damaged`` when a text is none that this program wrote.
    """
    columns = IDENTITY_TEXT.c
    statement = sa.select(columns.text_key, columns.json)
    if len(keys) <= _AT_ONCE:
        statement = statement.where(columns.text_key.in_(sorted(keys)))
    result = connection.execute(statement)
    cursor = result.cursor
    assert cursor is not None
    found: dict[str, dict[str, str]] = {}
    wanted = keys if isinstance(keys, Set) else set(keys)
    for key, text in cursor.fetchall():
        if key in wanted:
            found[key] = values_of(key, text)
    result.close()
    return found


def values_of(key: str, text: str) -> dict[str, str]:
    """The filled fields of an identity text.

    Raises:
        Corrupt: ``ledger-damaged`` when it is none that this program wrote.
    """
    try:
        values, end = _decode(text)
    except ValueError as error:
        raise _damaged(key, str(error)) from error
    if end != len(text):
        raise _damaged(key, f"more follows after {end} letters")
    return cast("dict[str, str]", values)


def _damaged(key: str, why: str) -> Corrupt:
    return Corrupt("ledger-damaged", f"the identity text {key} is damaged: {why}", hint="gpuledger verify")


def may_wait(connection: sa.Connection, *, at_us: int) -> list[str]:
    """Workloads that were pending at or before a moment, and that nothing has placed or ended since."""
    asked, later = WORKLOAD_EVENT.alias("asked"), WORKLOAD_EVENT.alias("later")
    left = (State.PROVISIONING.value, State.STOPPED.value, State.FAILED.value)
    follows = sa.or_(
        later.c.at_us > asked.c.at_us, sa.and_(later.c.at_us == asked.c.at_us, later.c.sequence > asked.c.sequence)
    )
    gone = sa.exists().where(
        later.c.workload == asked.c.workload, later.c.at_us <= at_us, later.c.state.in_(left), follows
    )
    statement = (
        sa.select(asked.c.workload)
        .where(asked.c.state == State.PENDING.value, asked.c.at_us <= at_us, ~gone)
        .distinct()
        .order_by(asked.c.workload)
    )
    return [str(name) for name in connection.execute(statement).scalars()]


def admitted_until(connection: sa.Connection, workloads: Sequence[str], *, at_us: int) -> dict[str, int]:
    """Those of these workloads whose place ``admit`` held at a moment, unconfirmed: until when, microseconds UTC."""
    columns = HOLD.c
    last: dict[str, tuple[str, int | None]] = {}
    for start in range(0, len(workloads), _AT_ONCE):
        statement = (
            sa.select(columns.workload, columns.change, columns.expires_at_us)
            .where(columns.workload.in_(workloads[start : start + _AT_ONCE]), columns.at_us <= at_us)
            .order_by(columns.workload, columns.sequence, columns.change)
        )
        last |= {workload: (change, expires_at_us) for workload, change, expires_at_us in connection.execute(statement)}
    return {
        workload: expires_at_us
        for workload, (change, expires_at_us) in last.items()
        if change == "taken" and expires_at_us is not None and expires_at_us > at_us
    }


def open_history(connection: sa.Connection, *, at_us: int) -> dict[str, int]:
    """Workloads of declared history that held devices at a moment, as far as anybody told; their number by source."""
    last, later = WORKLOAD_EVENT.alias("last"), WORKLOAD_EVENT.alias("later")
    follows = sa.or_(
        later.c.at_us > last.c.at_us, sa.and_(later.c.at_us == last.c.at_us, later.c.sequence > last.c.sequence)
    )
    more = sa.exists().where(later.c.workload == last.c.workload, later.c.at_us <= at_us, follows)
    statement = (
        sa.select(last.c.source, sa.func.count())
        .where(last.c.is_declared == 1, last.c.state == State.RUNNING.value, last.c.at_us <= at_us, ~more)
        .group_by(last.c.source)
    )
    return {str(source): int(number) for source, number in connection.execute(statement)}


def events_of(connection: sa.Connection, workloads: Sequence[str], *, until_us: int) -> dict[str, list[WorkloadEvent]]:
    """The events of these workloads up to a moment, by workload, in the order of (at, sequence)."""
    codec, columns = CODECS[WorkloadEvent], WORKLOAD_EVENT.c
    found: dict[str, list[WorkloadEvent]] = {name: [] for name in workloads}
    for start in range(0, len(workloads), _AT_ONCE):
        statement = (
            codec.select.where(columns.workload.in_(workloads[start : start + _AT_ONCE]), columns.at_us <= until_us)
            .order_by(columns.workload, columns.at_us, columns.sequence)
        )  # fmt: skip
        rows = codec.decode([tuple(row) for row in connection.execute(statement)])
        for row in cast("list[WorkloadEvent]", rows):
            found[row.workload].append(row)
    return found
