"""Sums over the records of a lake, by who and where: what ``usage --lake`` asks, each with one statement on DuckDB.

In: a lake and an engine. Out: sums by whatever of the identity texts and placements decides the answer, so that two
million subjects of fifty teams on a thousand machines are some hundred rows. The same hours are never counted twice:
exported records and corrections where passes covered them, derived ones elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from gpuledger.ledger.duck import Duck
from gpuledger.ledger.lake import Lake
from gpuledger.ledger.lake_rule import files
from gpuledger.model.identity import IdentityText
from gpuledger.model.lake import DERIVED, TEXTS, LakeDifference, month_span
from gpuledger.model.moments import DAY_US
from gpuledger.model.reserved import PLACED, RESERVED

STEPS = {
    "hour": "r.hour_us",
    "day": f"r.hour_us - r.hour_us % {DAY_US}",
    "month": "EPOCH_US(DATE_TRUNC('month', MAKE_TIMESTAMP(r.hour_us)))",
    "window": "0",
}
"""How finely time is told apart."""

WHOLE_TEXT = "json"
"""Asked for in place of fields where all of a text decides."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LakeSum:
    """Seconds of one meter of everybody whose texts do not differ in what was asked.

    Args:
        text: the values of the fields asked for, or the whole text as JSON; None where the text was forgotten.
        placement: key of one placement; the sum is of all that do not differ from it in what was asked.
        at_us: start of the step; 0 where time is not told apart.
        seconds: signed.
        provisional: whether no pass had covered the hours.
    """

    text: tuple[str, ...] | None
    placement: str
    at_us: int
    seconds: int
    provisional: bool


def sums(
    lake: Lake,
    duck: Duck,
    meter: str,
    *,
    since_us: int,
    until_us: int,
    step: str,
    fields: Sequence[str],
    places: Sequence[str],
    uncovered: Sequence[tuple[int, int]],
) -> Iterator[LakeSum]:
    """What stands in the hours of [since, until).

    Args:
        lake, duck: whose, and by what.
        meter: its name.
        since_us, until_us: whole hours.
        step: out of :data:`STEPS`.
        fields: of identity texts; none where nobody is told apart; :data:`WHOLE_TEXT` alone for all of a text.
        places: columns of placements by which they are told apart; at least one.
        uncovered: spans of hours that no pass covered: there what was derived counts.
    """
    for name in fields:
        if name != WHOLE_TEXT and name not in IdentityText.__slots__:
            raise ValueError(f"a text has no {name}")
    bound = {"meter": meter, "since": since_us, "until": until_us}
    parts = [
        *_part(lake, "usage_record", "quantity", f"r.context = '{RESERVED}'", "FALSE", since_us, until_us),
        *_part(lake, "usage_correction", "delta", "TRUE", "FALSE", since_us, until_us),
    ]
    if uncovered:
        spans = " OR ".join(f"(r.hour_us >= {int(low)} AND r.hour_us < {int(high)})" for low, high in uncovered)
        parts += _part(lake, DERIVED, "quantity", f"({spans})", "TRUE", since_us, until_us)
    if not parts:
        return
    texts = lake.paths(TEXTS)
    named = bool(fields) and bool(texts)
    if named:
        picked = [_picked(name) for name in fields]
        duck.run(
            "CREATE OR REPLACE TEMP TABLE text_of AS SELECT text_key, "  # noqa: S608 names from above
            f"{', '.join(f'{each} AS f{place}' for place, each in enumerate(picked))} FROM {files(texts)}"
        )
        columns = ", ".join(f"f{place}" for place in range(len(fields)))
        duck.run(
            f"CREATE OR REPLACE TEMP TABLE group_of AS SELECT ROW_NUMBER() OVER () AS number, {columns} "  # noqa: S608
            f"FROM (SELECT DISTINCT {columns} FROM text_of)"
        )
        same = " AND ".join(f"g.f{place} = t.f{place}" for place in range(len(fields)))
        duck.run(
            "CREATE OR REPLACE TEMP TABLE subject_of AS SELECT t.text_key, g.number "  # noqa: S608
            f"FROM text_of AS t JOIN group_of AS g ON {same}"
        )
    duck.run(
        f"CREATE OR REPLACE TEMP TABLE place_of AS SELECT DENSE_RANK() OVER (ORDER BY {', '.join(places)}) AS number, "  # noqa: S608 columns of a table
        f"placement, '{PLACED}' || placement AS device FROM {files(lake.paths('placement'))}"
    )
    who, join = ("o.number", "LEFT JOIN subject_of AS o ON o.text_key = r.subject") if named else ("0", "")
    union = " UNION ALL ".join(parts)
    rows = duck.rows(
        f"SELECT {who}, p.number, {STEPS[step]}, r.provisional, CAST(SUM(r.amount) AS BIGINT) "  # noqa: S608
        f"FROM ({union}) AS r JOIN place_of AS p ON p.device = r.device {join} GROUP BY 1, 2, 3, 4",
        bound,
    )
    groups = {number: tuple(values) for number, *values in duck.rows("SELECT * FROM group_of")} if named else {}
    shown = dict(duck.rows("SELECT number, MIN(placement) FROM place_of GROUP BY number"))
    for number, place, at_us, provisional, seconds in rows:
        if seconds:
            text = groups.get(number) if named else (None if fields else ())
            yield LakeSum(
                text=text, placement=shown[place], at_us=int(at_us), seconds=int(seconds),
                provisional=bool(provisional),
            )  # fmt: skip


def _picked(name: str) -> str:
    return WHOLE_TEXT if name == WHOLE_TEXT else f"COALESCE(JSON_EXTRACT_STRING(json, '$.{name}'), '')"


def _part(
    lake: Lake, table: str, amount: str, condition: str, provisional: str, since_us: int, until_us: int
) -> list[str]:
    """The rows of a table in a window; only the files of its months are opened."""
    paths = [
        lake.sound(file)
        for file in lake.manifest.of(table)
        if month_span(file.month)[0] < until_us and month_span(file.month)[1] > since_us
    ]
    if not paths:
        return []
    columns = f"r.subject, r.device, r.hour_us, r.{amount} AS amount, {provisional} AS provisional"
    hours = "r.hour_us >= $since AND r.hour_us < $until"
    return [f"SELECT {columns} FROM {files(paths)} AS r WHERE r.meter = $meter AND {hours} AND {condition}"]  # noqa: S608


_DIFFERENT = """
SELECT meter, hour_us, host, device, subject, CAST(SUM(exported) AS BIGINT), CAST(SUM(derived) AS BIGINT)
FROM ({parts}) AS r
WHERE EXISTS (SELECT 1 FROM covered AS c WHERE r.hour_us >= c.since_us AND r.hour_us < c.until_us)
    AND r.hour_us < $until
GROUP BY meter, hour_us, host, device, subject HAVING SUM(exported) <> SUM(derived)
ORDER BY hour_us, meter, host, device, subject"""


def differences(lake: Lake, duck: Duck) -> list[LakeDifference]:
    """Covered hours of which exported records and corrections do not add up to what was derived."""
    passes = lake.paths("pass")
    if not passes:
        return []
    duck.run(
        "CREATE OR REPLACE TEMP TABLE covered AS SELECT covered_from_us AS since_us, "  # noqa: S608
        f"covered_until_us AS until_us FROM {files(passes)} WHERE covered_from_us < covered_until_us"
    )
    found: list[LakeDifference] = []
    for month in sorted({file.month for file in lake.manifest.of("usage_record", "usage_correction", DERIVED)}):
        parts = []
        for table, exported, derived, condition in (
            ("usage_record", "quantity", "0", f"context = '{RESERVED}'"),
            ("usage_correction", "delta", "0", "meter IN ('gpu.reserved', 'cpu.reserved', 'mig.memory')"),
            (DERIVED, "0", "quantity", "TRUE"),
        ):
            paths = [lake.sound(file) for file in lake.manifest.of(table) if file.month == month]
            if paths:
                parts.append(
                    f"SELECT meter, hour_us, host, device, subject, {exported} AS exported, {derived} AS derived "  # noqa: S608
                    f"FROM {files(paths)} WHERE {condition}"
                )
        rows = duck.rows(_DIFFERENT.format(parts=" UNION ALL ".join(parts)), {"until": lake.manifest.metered_until_us})
        found += [
            LakeDifference(
                meter=meter, hour_us=hour_us, host=host, device=device, subject=subject, exported=exported,
                derived=derived,
            )
            for meter, hour_us, host, device, subject, exported, derived in rows
        ]  # fmt: skip
    return found
