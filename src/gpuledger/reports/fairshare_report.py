"""``fairshare``: the tree with shares, usage and ranks, and who waits in which order; for eyes, programs, sheets."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction

from rich.console import RenderableType
from rich.text import Text

from gpuledger.model.durations import count, decimal, duration_us, percent
from gpuledger.model.fairshare import NOT_TOLD, FairShareReport, LevelFs, Outside, ShareLine, Waiting
from gpuledger.model.missing import Missing
from gpuledger.model.moments import iso
from gpuledger.model.reserved import ReservedGap
from gpuledger.model.rounding import nearest
from gpuledger.model.shares import Algorithm, Place
from gpuledger.reports import as_csv, as_json
from gpuledger.reports.as_json import Json
from gpuledger.reports.cells import UNKNOWN, cell, heading, indented, stacked
from gpuledger.reports.columns import LEAST_NAME, Column, Fitted

MOST_WAITING = 40
"""Lines of waiting workloads in a table; JSON and CSV have all."""

MOST_INDENTED = 5
"""Levels of the tree that blanks show."""

ABSENT = "-"

_HOUR_S = 3600


def to_table(report: FairShareReport) -> RenderableType:
    """The tree, what it has no place for, what is not known, and who is next."""
    parts: list[RenderableType] = [
        heading("fair share", f"at {iso(report.at_us)}"),
        Text(_subtitle(report), style="dim"),
    ]
    if not report.told:
        return stacked(*parts, "", Text(f"{UNKNOWN}: {NOT_TOLD.reason}", "bold yellow"))
    if report.lines:  # whoever asks for somebody outside of it is not shown an empty one
        parts += ["", _tree(report)]
    for section in (_outside(report), _gaps(report.gaps), _waiting(report)):
        if section:
            parts += ["", *section]
    return stacked(*parts)


def to_json(report: FairShareReport) -> dict[str, Json]:
    """The contract of ``fairshare --format json``: usage in device-seconds, six decimals as text."""
    return {
        "at": iso(report.at_us),
        "policy": report.policy,
        "algorithm": report.algorithm.value,
        "half_life_us": report.half_life_us,
        "class_weights": {pattern: str(weight) for pattern, weight in report.class_weights},
        "since": iso(report.since_us),
        "unit": "device-seconds",
        "told": report.told,
        "total": sixth(report.total) if report.told else None,
        "ranked": report.ranked,
        "lines": [_line_json(line, told=report.told) for line in report.lines],
        "outside": [
            {
                "team": one.team,
                "project": one.project,
                "user": one.user,
                "account": one.account,
                "usage": sixth(one.usage),
                "why": one.why,
            }
            for one in report.outside
        ],
        "pool": report.pool,
        "waiting": [_waiting_json(place, one) for place, one in enumerate(report.waiting, 1)],
        "poolless": report.poolless,
        "unknown": [_gap_json(gap) for gap in report.gaps],
        "problems": as_json.problems(report.problems),
    }


def to_csv(report: FairShareReport) -> str:
    """One row an account or user, in the order of the tree; then usage without a place, its rank empty."""
    header = (
        "account", "user", "depth", "shares", "level_shares", "norm_shares", "usage", "norm_usage", "effective_usage",
        "level_fs", "factor", "rank",
    )  # fmt: skip
    rows: list[list[as_csv.Value]] = []
    for line in report.lines:
        figures = _figures(line, told=report.told)
        del figures["own_usage"]
        rows.append(
            [
                line.place.account, line.place.user, line.depth, line.shares, line.level_shares,
                sixth(line.norm_shares), *figures.values(),
            ]
        )  # fmt: skip
    absent = Missing("no place in the tree")
    rows += [
        [one.account, one.user, absent, absent, absent, absent, sixth(one.usage), *[absent] * 5]
        for one in report.outside
    ]
    return as_csv.text(header, rows)


def sixth(value: Fraction) -> str:
    """Six decimals, as Slurm prints them."""
    return decimal(nearest(value * 1_000_000), 6)


def _level(level: LevelFs) -> str | Missing:
    return sixth(level) if isinstance(level, Fraction) else level


def _figures(line: ShareLine, *, told: bool) -> dict[str, str | int | Missing]:
    """What usage makes of a line, in the order of the columns; where nothing was told, none of it is known."""
    found: dict[str, str | int | Missing] = {
        "usage": sixth(line.usage),
        "own_usage": sixth(line.own_usage),
        "norm_usage": sixth(line.norm_usage),
        "effective_usage": sixth(line.effective_usage),
        "level_fs": _level(line.level_fs),
        "factor": line.factor if isinstance(line.factor, Missing) else sixth(line.factor),
        "rank": line.rank,
    }
    return found if told else dict.fromkeys(found, NOT_TOLD)


def _line_json(line: ShareLine, *, told: bool) -> dict[str, Json]:
    figures = _figures(line, told=told)
    reasons: dict[str, Json] = {name: value.reason for name, value in figures.items() if isinstance(value, Missing)}
    return {
        "account": line.place.account,
        "user": line.place.user,
        "depth": line.depth,
        "stands_below": line.stands_below,
        "shares": line.shares,
        "level_shares": line.level_shares,
        "norm_shares": sixth(line.norm_shares),
        **{name: None if isinstance(value, Missing) else value for name, value in figures.items()},
        **({"missing": reasons} if reasons else {}),
    }


def _waiting_json(place: int, one: Waiting) -> dict[str, Json]:
    values = {"place": one.place, "rank": one.rank, "factor": one.factor}
    reasons: dict[str, Json] = {name: value.reason for name, value in values.items() if isinstance(value, Missing)}
    return {
        "position": place,
        "workload": one.workload,
        "user": one.user,
        "team": one.team,
        "project": one.project,
        "place": None if isinstance(one.place, Missing) else {"account": one.place.account, "user": one.place.user},
        "rank": as_json.number(one.rank),
        "factor": None if isinstance(one.factor, Missing) else sixth(one.factor),
        "since": iso(one.since_us),
        "known_until": iso(one.known_until_us),
        "requested_class": one.requested_class,
        "pools": list(one.pools),
        "admitted_until": as_json.moment(one.admitted_until_us),
        "ref": one.ref,
        **({"missing": reasons} if reasons else {}),
    }


def _gap_json(gap: ReservedGap) -> Json:
    return {
        "reason": gap.reason.value,
        "what": gap.what,
        "seconds": gap.seconds,
        "since": iso(gap.since_us),
        "until": iso(gap.until_us),
        "detail": gap.detail,
    }


def _subtitle(report: FairShareReport) -> str:
    words = f"{report.algorithm}, usage halves in {duration_us(report.half_life_us)}, policy {report.policy}"
    weights = ", ".join(f"{pattern} counts {weight}" for pattern, weight in report.class_weights)
    return f"{words}; {weights}" if weights else words


def _tree(report: FairShareReport) -> RenderableType:
    lines = report.lines
    has_levels = report.algorithm is Algorithm.FAIR_TREE
    names = [_name(line) for line in lines]

    def column(head: str, cells: Sequence[str], spare: int = 0, total: str = "") -> Column:
        return Column(head=head, cells=cells, total=total, spare=spare)

    columns = [
        Column(head="account, user", cells=names, total="all", justify="left", least=LEAST_NAME),
        column("shares", [str(line.shares) for line in lines], 4),
        column("norm", [sixth(line.norm_shares) for line in lines], 2),
        column("device-hours", [hours(line.usage) for line in lines], 0, hours(report.total)),
        column("of all", [percent(line.norm_usage) if report.total else ABSENT for line in lines], 3),
        column("effective", [sixth(line.effective_usage) for line in lines], 1),
    ]
    if has_levels:
        columns.append(column("level fs", [_shown(_level(line.level_fs)) for line in lines], 5))
    factors = [ABSENT if isinstance(line.factor, Missing) else sixth(line.factor) for line in lines]
    columns.append(column("factor", factors))
    columns.append(column("rank", [ABSENT if isinstance(line.rank, Missing) else count(line.rank) for line in lines]))
    return Fitted(columns, styles=["" if line.place.user else "bold" for line in lines], totals=True)


def _name(line: ShareLine) -> str:
    """The name at its level; the level as a number where so many blanks would leave no room for names."""
    name = line.place.user or line.place.account
    if line.depth <= MOST_INDENTED:
        return "  " * line.depth + name
    return f"{'  ' * MOST_INDENTED}{line.depth}: {name}"


def hours(usage: Fraction) -> str:
    """Device-hours with two decimals; what is some never reads 0."""
    hundredths = nearest(usage / Fraction(_HOUR_S) * 100)
    return "<0.01" if usage and not hundredths else decimal(hundredths, 2)


def _shown(value: str | Missing) -> str:
    return ABSENT if isinstance(value, Missing) else value


def _outside(report: FairShareReport) -> list[RenderableType]:
    if not report.outside:
        return []
    total = sum((one.usage for one in report.outside), Fraction(0))
    said = [heading("Not in the tree", f"{hours(total)} device-hours, of no user in it")]
    return [*said, *(indented(cell(_outside_words(one), "yellow")) for one in report.outside)]


def _outside_words(one: Outside) -> str:
    counted = f"counts for {one.account} as a whole" if one.account else "counts for nobody"
    return f"{one.user}: {hours(one.usage)} device-hours, {one.why}; {counted}"


def _gaps(gaps: Iterable[ReservedGap]) -> list[RenderableType]:
    told = [indented(cell(f"{gap.reason}: {gap.what}, {count(gap.seconds)} s, {gap.detail}", "yellow")) for gap in gaps]
    return [heading(UNKNOWN, "time that reservations do not tell, in nobody's usage"), *told] if told else []


def _waiting(report: FairShareReport) -> list[RenderableType]:
    where = f" for pool {report.pool}" if report.pool else ""
    left = []
    if report.poolless:
        left = [cell(f"{count(report.poolless)} more tell no pool; without --pool they are listed", "yellow")]
    if not report.waiting:
        return [cell(f"nothing waits{where}"), *left]
    shown = report.waiting[:MOST_WAITING]
    columns = [
        Column(head="next", cells=[str(place) for place in range(1, len(shown) + 1)]),
        Column(head="workload", cells=[one.workload for one in shown], justify="left", least=LEAST_NAME),
        Column(head="user", cells=[_place_words(one) for one in shown], justify="left", least=LEAST_NAME),
        Column(head="rank", cells=[ABSENT if isinstance(one.rank, Missing) else count(one.rank) for one in shown]),
        Column(head="waits since", cells=[iso(one.since_us) for one in shown], spare=1),
        Column(head="asks for", cells=[one.requested_class or ABSENT for one in shown], justify="left", spare=2),
        Column(head="pool", cells=[", ".join(one.pools) or ABSENT for one in shown], justify="left", spare=3),
    ]
    admitted = ["" if isinstance(one.admitted_until_us, Missing) else "admitted" for one in shown]
    if any(admitted):
        columns.insert(2, Column(head="", cells=admitted, justify="left"))
    more = len(report.waiting) - len(shown)
    rest = [cell(f"and {count(more)} more: --format json has all")] if more else []
    return [heading(f"Waiting{where}", "in the order of fair share"), Fitted(columns), *rest, *left]


def _place_words(one: Waiting) -> str:
    place = one.place
    if isinstance(place, Missing) or not place.user:
        return (
            one.user if isinstance(place, Missing) or place == Place(account="") else f"{one.user} in {place.account}"
        )
    return place.words
