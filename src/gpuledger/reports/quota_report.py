"""``quota``: each quota, what of it is used and left, and who holds it; for eyes, programs and sheets."""

from __future__ import annotations

from rich.console import RenderableType
from rich.text import Text

from gpuledger.model.durations import several
from gpuledger.model.missing import Missing
from gpuledger.model.moments import iso
from gpuledger.model.quotas import OVER, Per, QuotaReport, QuotaUse
from gpuledger.reports import as_csv, as_json
from gpuledger.reports.as_json import Json
from gpuledger.reports.cells import UNKNOWN, cell, heading, indented, stacked
from gpuledger.reports.columns import LEAST_NAME, Column, Fitted
from gpuledger.reports.quota_cells import amounts, holder_columns, holder_words, use_to_json
from gpuledger.reports.reserved_report import gaps_to_json, not_told

_NOBODY = Missing("no lifecycle transition is known up to then, so nobody told what is held")


def to_json(report: QuotaReport) -> dict[str, Json]:
    """The contract of ``quota --format json``."""
    return {
        "at": iso(report.at_us),
        "policy": report.version or None,
        "quotas": [use_to_json(use, told=report.told) for use in report.uses],
        "told": report.told,
        "unknown": gaps_to_json(report.unknown),
        "problems": as_json.problems(report.problems),
    }


def to_csv(report: QuotaReport) -> str:
    """One row for each quota and everybody whom it binds."""
    header = (
        "scope", "name", "user", "class", "limit", "unit", "per", "since", "until", "used", "promised", "left", "over",
        "holders", "not_counted",
    )  # fmt: skip
    rows = []
    for use in report.uses:
        quota = use.bound.quota
        rows.append(
            (
                quota.scope, use.bound.name, use.bound.user, quota.class_glob, str(quota.limit), quota.unit, quota.per,
                iso(use.since_us), iso(use.until_us), *_figures(report, use), int(use.is_over), len(use.holders),
                len(use.unknown),
            )
        )  # fmt: skip
    return as_csv.text(header, rows)


def to_table(report: QuotaReport) -> RenderableType:
    """For eyes: one line a quota, then who holds what, who is over, and what nobody told."""
    version = f"policy {report.version}" if report.version else "no policy is in force"
    parts: list[RenderableType] = [heading("quotas", f"{iso(report.at_us)}, {version}"), ""]
    if not report.uses:
        why = report.problems[0].message if report.problems else "the policy in force has none of these"
        parts.append(cell(f"no quotas apply: {why} (gpuledger apply FILE)"))
    else:
        parts.append(Fitted(_columns(report)))
    if not report.told:
        parts += ["", Text(f"{UNKNOWN}: {_NOBODY.reason}", style="bold yellow")]
    over = [use for use in report.uses if use.is_over]
    if over:
        parts += ["", heading("Over", f"{several(len(over), 'quota')}: [{OVER}]")]
        parts += [indented(cell(_over(use), "red")) for use in over]
    holders = {holder.workload: holder for use in report.uses for holder in (*use.holders, *use.unknown)}
    if holders:
        listed = sorted(holders.values(), key=lambda each: (each.since_us, each.workload))
        parts += ["", heading("Held", several(len(listed), "workload")), indented(Fitted(holder_columns(listed)))]
    told = not_told(report.unknown)
    return stacked(*parts, *(["", *told] if told else []))


def _columns(report: QuotaReport) -> list[Column]:
    uses = report.uses
    figures = [amounts(use) if report.told else (UNKNOWN, UNKNOWN, UNKNOWN) for use in uses]
    columns = [
        Column(head="of", cells=[cell(use.bound.scope_words) for use in uses], justify="left", least=LEAST_NAME),
        Column(head="class", cells=[cell(use.bound.quota.class_glob or "every") for use in uses], justify="left"),
        Column(head="limit", cells=[_limit(use) for use in uses], justify="left", least=LEAST_NAME),
        Column(head="used", cells=[_styled(use, each[0]) for use, each in zip(uses, figures, strict=True)]),
    ]
    if any(use.promised for use in uses):
        columns.append(Column(head="promised", cells=[each[1] for each in figures]))
    columns += [
        Column(head="left", cells=[_styled(use, each[2]) for use, each in zip(uses, figures, strict=True)]),
        Column(
            head="held by",
            cells=[cell(_held(use) if report.told else UNKNOWN) for use in uses],
            justify="left",
            least=LEAST_NAME,
            spare=1,
        ),
    ]
    return columns


def _figures(report: QuotaReport, use: QuotaUse) -> tuple[as_csv.Value, as_csv.Value, as_csv.Value]:
    """Used, promised, left; nothing held is no zero where nobody told."""
    return amounts(use) if report.told else (_NOBODY, _NOBODY, _NOBODY)


def _limit(use: QuotaUse) -> str:
    quota = use.bound.quota
    return f"{quota.limit} at once" if quota.per is Per.AT_ONCE else f"{quota.limit} h a {quota.per}"


def _styled(use: QuotaUse, figure: str) -> Text:
    return Text(figure, style="bold red" if use.is_over else "")


def _held(use: QuotaUse) -> str:
    everybody = [*map(holder_words, use.holders), *(f"{each.workload} ({UNKNOWN})" for each in use.unknown)]
    shown = ", ".join(everybody[:3])
    return f"{shown}, {len(everybody) - 3} more" if len(everybody) > 3 else shown or "nobody"


def _over(use: QuotaUse) -> str:
    used, _, _ = amounts(use)
    return f"{use.bound.words}: {used} used. Events and imports are facts: no quota stops them"
