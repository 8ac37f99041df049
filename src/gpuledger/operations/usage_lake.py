"""``usage --lake``: reserved time out of the Parquet files of a lake, summed by DuckDB, named and rolled up as ever.

Only the sums come from elsewhere: names by policy, products and rounding are those of ``usage``. A lake knows whole
hours: exported records and corrections, and what ``meter --lake`` derived where no pass had been. What reservations do
not tell (unplaced time, silent controllers, late evidence) it does not look for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import cast

from gpuledger.accounting.amounts import Grain, grain_for
from gpuledger.accounting.owners import FORGOTTEN, Naming
from gpuledger.accounting.reserved import parse_reserved_by, roll_up_reserved
from gpuledger.errors import Misconfigured
from gpuledger.ledger import parquet
from gpuledger.ledger.duck import Duck
from gpuledger.ledger.lake import Lake
from gpuledger.ledger.lake_rule import files, placements
from gpuledger.ledger.lake_sums import WHOLE_TEXT, LakeSum, sums
from gpuledger.ledger.parquet import read_rows
from gpuledger.model.identity import IdentityText
from gpuledger.model.lake import Manifest
from gpuledger.model.meters import Meter
from gpuledger.model.moments import HOUR_US, hour_floor, iso
from gpuledger.model.policy import Policy
from gpuledger.model.reserved import LABEL, ReservedAmount, ReservedReport
from gpuledger.model.rows import DeviceEvent, Pass, PolicyVersion
from gpuledger.model.usage import TIME_BY
from gpuledger.operations.evidence import covered_spans
from gpuledger.operations.meter_lake import is_current
from gpuledger.operations.usage import understood
from gpuledger.operations.usage_reserved import owned_of

_WITHOUT_NAMES = frozenset({"class", "region", "device", "host", "host-owner", *TIME_BY})
_BY_WHOLE_TEXT = frozenset({"workload", "subject", "service"})
_DECIDING = ("user", "team", "project", "namespace", "pod")
_MULTIPLYING = ("class_name", "count", "share_num", "share_den")
"""What of a placement makes device-seconds, CPU time or memory of its seconds."""
_PLACES = {"region": "region", "host": "machine", "host-owner": "machine", "device": "devices"}
"""What else of a placement a grouping asks for."""


def usage_lake(
    folder: Path, *, meter: Meter, by: Sequence[str], since_us: int | None, until_us: int | None, now_us: int
) -> ReservedReport:
    """Who held how much of one meter of reserved time in whole hours of a lake.

    Args:
        folder: the lake.
        meter, by: as for ``usage``.
        since_us, until_us: the window; by default all that the lake knows. What lies beyond that is cut off.
        now_us: the time that is asked at: later policies are not known.

    Raises:
        NotFound: ``no-lake``.
        Misconfigured: ``bad-grouping``, ``whole-hours``, ``empty-window``, ``lake-incomplete``, ``lake-not-metered``,
            ``lake-version``.
        Unavailable: ``missing-extra``, ``lake-busy``, ``lake-memory``, ``lake-full``, ``lake-io``.
        Corrupt: ``lake-damaged``.
    """
    grouping = parse_reserved_by(",".join(by))
    parquet.duckdb()
    parquet.arrow()
    lake = Lake.open(folder)
    covered = covered_spans(cast("list[Pass]", _rows(lake, Pass, "pass")))
    first_us, last_us = _window(lake, covered, since_us, until_us)
    uncovered = _without(first_us, last_us, covered)
    if uncovered and not (is_current(lake.manifest) and uncovered[-1][1] <= lake.manifest.metered_until_us):
        raise Misconfigured(
            "lake-not-metered",
            f"no pass had covered {iso(uncovered[0][0])} to {iso(uncovered[-1][1])}, and nothing is derived of it",
            hint=f"gpuledger meter --lake {folder}",
        )
    versions = understood(cast("list[PolicyVersion]", _rows(lake, PolicyVersion, "policy")), now_us=now_us)
    known = placements(lake)
    step = _step(grouping, versions, first_us, last_us)
    fields = _fields(grouping, versions)
    texts: dict[str, IdentityText] = {}
    subjects: dict[tuple[str, ...] | None, str] = {None: FORGOTTEN}
    amounts: list[ReservedAmount] = []
    with Duck() as duck:
        for found in sums(
            lake, duck, meter.name, since_us=first_us, until_us=last_us, step=step, fields=fields,
            places=_places(grouping), uncovered=uncovered,
        ):  # fmt: skip
            if found.text not in subjects:
                key = subjects[found.text] = f"text {len(subjects)}"
                texts[key] = _text(fields, found)
            amounts.append(
                ReservedAmount(
                    subject=subjects[found.text], placement=known[found.placement], at_us=max(found.at_us, first_us),
                    seconds=found.seconds, provisional=found.provisional,
                )
            )  # fmt: skip
    events = cast("list[DeviceEvent]", sorted(_rows(lake, DeviceEvent, "device_event"), key=_in_time))
    report = roll_up_reserved(
        meter=meter,
        by=grouping,
        since_us=first_us,
        until_us=last_us,
        amounts=amounts,
        naming=Naming(texts=texts, versions=versions),
        texts=texts,
        owned=owned_of(events, since_us=first_us, until_us=last_us),
        told=bool(lake.manifest.of("workload_event")),
    )
    return replace(report, looked_for_gaps=False)


def _rows(lake: Lake, kind: type, table: str) -> list[object]:
    return [row for path in lake.paths(table) for row in read_rows(path, kind)]


def _in_time(row: object) -> tuple[int, str, int]:
    assert isinstance(row, DeviceEvent)
    return row.at_us, row.writer, row.number


def _window(
    lake: Lake, covered: Sequence[tuple[int, int]], since_us: int | None, until_us: int | None
) -> tuple[int, int]:
    manifest = lake.manifest
    for asked_us in (since_us, until_us):
        if asked_us is not None and asked_us % HOUR_US:
            raise Misconfigured(
                "whole-hours", f"{iso(asked_us)} is no whole hour, and a lake knows no parts of hours",
                hint=f"--since {iso(hour_floor(asked_us))}, or ask the ledger itself",
            )  # fmt: skip
    known_us = max([end_us for _, end_us in covered], default=0)
    known_us = max(known_us, manifest.metered_until_us if is_current(manifest) else 0)
    last_us = known_us if until_us is None else min(until_us, known_us)
    first_us = _first(lake, last_us) if since_us is None else since_us
    if known_us == 0:
        raise Misconfigured(
            "lake-not-metered",
            f"no hour of {lake.folder} is recorded or derived",
            hint=f"gpuledger meter --lake {lake.folder}",
        )
    if first_us > last_us or (since_us is not None and first_us == last_us):
        raise Misconfigured(
            "empty-window",
            f"the window begins at {iso(first_us)}, and the lake knows no hour from there to {iso(last_us)}",
            hint="--since must lie before --until, and before the export",
        )
    if not _holds(manifest, first_us, last_us):
        raise Misconfigured(
            "lake-incomplete",
            f"{lake.folder} was exported in part, and does not hold all of {iso(first_us)} to {iso(last_us)}",
            hint=f"gpuledger export parquet --to {lake.folder}",
        )
    return first_us, last_us


def _holds(manifest: Manifest, first_us: int, last_us: int) -> bool:
    if manifest.whole and manifest.all_tables:
        return not manifest.until_us or last_us <= manifest.until_us
    inside = first_us >= manifest.since_us and (not manifest.until_us or last_us <= manifest.until_us)
    return manifest.all_tables and inside


def _first(lake: Lake, last_us: int) -> int:
    """The hour of the first event."""
    paths = lake.paths("workload_event")[:1]
    if not paths:
        return last_us
    with Duck() as duck:
        first_us = duck.rows(f"SELECT MIN(at_us) FROM {files(paths)}")[0][0]  # noqa: S608 a name of this program
    return min(hour_floor(int(first_us)), last_us)


def _without(first_us: int, last_us: int, covered: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """The parts of a window that no pass covered."""
    edges = [first_us]
    for since_us, until_us in covered:
        low_us, high_us = max(since_us, first_us), min(until_us, last_us)
        if low_us < high_us:
            edges += [low_us, high_us]
    edges.append(last_us)
    return [(low_us, high_us) for low_us, high_us in list(pairwise(edges))[::2] if low_us < high_us]


def _step(by: Sequence[str], versions: Sequence[tuple[int, Policy]], since_us: int, until_us: int) -> str:
    changes_us = [effective_us for effective_us, _ in versions]

    def grain(words: Sequence[str]) -> Grain:
        return grain_for(by=words, changes_us=changes_us, since_us=since_us, until_us=until_us)

    finest = grain(by)
    if finest is Grain.DAY and grain([word for word in by if word != "month"]) is Grain.WINDOW:
        return "month"
    return str(finest)


def _fields(by: Sequence[str], versions: Sequence[tuple[int, Policy]]) -> tuple[str, ...]:
    """What of a text can change the answer."""
    words = set(by)
    if words <= _WITHOUT_NAMES:
        return ()
    if words & _BY_WHOLE_TEXT:
        return (WHOLE_TEXT,)
    rules = versions[-1][1].services if versions else ()
    labels = ["labels"] if any(word.startswith(LABEL) for word in by) else []
    return tuple(dict.fromkeys([*_DECIDING, *(name for rule in rules for name in rule.match), *labels]))


def _places(by: Sequence[str]) -> tuple[str, ...]:
    """What of a placement can change the answer."""
    return tuple(dict.fromkeys([*_MULTIPLYING, *(_PLACES[word] for word in by if word in _PLACES)]))


def _text(fields: Sequence[str], found: LakeSum) -> IdentityText:
    if not fields or found.text is None:
        return IdentityText()
    if tuple(fields) == (WHOLE_TEXT,):
        return IdentityText.from_json(found.text[0])
    return IdentityText(**dict(zip(fields, found.text, strict=True)))
