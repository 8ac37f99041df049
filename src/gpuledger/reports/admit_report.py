"""The answer of ``admit``: yes with the hold, or no with every reason, who holds what, and when a place comes free."""

from __future__ import annotations

from rich.console import RenderableType
from rich.text import Text

from gpuledger.model.missing import Missing
from gpuledger.model.moments import iso
from gpuledger.model.quotas import NEVER_FITS, AdmitReport, QuotaUse
from gpuledger.reports import as_csv, as_json
from gpuledger.reports.as_json import Json
from gpuledger.reports.cells import UNKNOWN, cell, heading, indented, stacked
from gpuledger.reports.columns import LEAST_NAME, Column, Fitted
from gpuledger.reports.quota_cells import amounts, asked_words, holder_columns, holder_to_json, use_to_json


def to_json(report: AdmitReport) -> dict[str, Json]:
    """The contract of ``admit --format json``."""
    request, hold = report.request, report.hold
    missing: dict[str, Json] = {
        name: value.reason
        for name, value in (("ends", report.ends_us), ("frees", report.frees_us))
        if isinstance(value, Missing)
    }
    return {
        "workload": request.workload,
        "admitted": report.admitted,
        "known": report.known,
        "check": report.is_check,
        "at": iso(report.at_us),
        "user": report.user,
        "team": report.team,
        "roles": list(report.roles),
        "class": request.placement.class_name,
        "devices": list(request.placement.devices) or request.placement.count,
        "share": str(request.placement.share),
        "ends": as_json.moment(report.ends_us),
        "hold": None
        if isinstance(hold, Missing)
        else {"ref": hold.ref, "change": hold.change, "expires": as_json.moment(hold.expires_at_us)},
        "quotas": [
            {
                **use_to_json(use),
                "asked": None if isinstance(use.asked, Missing) else asked_words(use),
                "fits": use.fits,
                "frees": as_json.moment(use.frees_us),
            }
            for use in report.uses
        ],
        "full_devices": [
            {
                "device": full.device,
                "asked": str(full.asked),
                "frees": as_json.moment(full.frees_us),
                "holders": [holder_to_json(holder) for holder in full.holders],
            }
            for full in report.full
        ],
        "reasons": list(report.reasons),
        "frees": None if report.admitted else as_json.moment(report.frees_us),
        **({"missing": missing} if missing else {}),
        "problems": as_json.problems(report.problems),
    }


def to_csv(report: AdmitReport) -> str:
    """One row for each quota that applies, and for each device that is full."""
    header = ("workload", "admitted", "of", "class", "limit", "unit", "used", "promised", "asked", "left", "fits")
    rows: list[tuple[as_csv.Value, ...]] = []
    for use in report.uses:
        quota = use.bound.quota
        used, promised, left = amounts(use)
        asked = use.asked if isinstance(use.asked, Missing) else asked_words(use)
        rows.append(
            (
                report.request.workload, int(report.admitted), use.bound.scope_words, quota.class_glob,
                str(quota.limit), quota.unit, used, promised, asked, left, int(use.fits),
            )
        )  # fmt: skip
    for full in report.full:
        used = str(sum(holder.amount for holder in full.holders if not isinstance(holder.amount, Missing)))
        rows.append(
            (report.request.workload, 0, f"device {full.device}", "", "1", "devices", used, "0", str(full.asked), "", 0)
        )
    return as_csv.text(header, rows)


def to_table(report: AdmitReport) -> RenderableType:
    """For eyes: the answer, each quota, and on a no who holds what and the earliest place."""
    parts: list[RenderableType] = [_answer(report)]
    if report.uses:
        parts += ["", Fitted(_columns(report))]
    if report.admitted:
        return stacked(*parts)
    parts += ["", heading("Why not")]
    parts += [indented(cell(reason, "red")) for reason in report.reasons]
    against = [full.holders for full in report.full] + [use.holders for use in report.uses if not use.fits]
    holders = {holder.workload: holder for several in against for holder in several}
    if holders:
        listed = sorted(holders.values(), key=lambda each: (each.since_us, each.workload))
        parts += ["", heading("Who holds it"), indented(Fitted(holder_columns(listed)))]
    frees = report.frees_us
    if frees == NEVER_FITS:
        when = Text(f"earliest place: {NEVER_FITS.reason}")
    elif isinstance(frees, Missing):
        when = Text.assemble("earliest place: ", (UNKNOWN, "yellow"), f" ({frees.reason})")
    else:
        when = Text.assemble("earliest place: ", (iso(frees), "bold"), ", if who holds it ends when it said")
    return stacked(*parts, "", when)


def _answer(report: AdmitReport) -> Text:
    request = report.request
    what = f"{request.workload}: {request.placement.words} for user {report.user}, team {report.team}"
    if not report.admitted:
        return cell(f"no   {what}", "bold red")
    hold = report.hold
    if report.is_check:
        return cell(f"yes  {what}; only asked, nothing was taken", "bold green")
    if isinstance(hold, Missing) or isinstance(hold.expires_at_us, Missing):
        return cell(f"yes  {what}; it holds already, nothing was added", "bold green")
    again = " already" if report.known else ""
    return cell(f"yes  {what}; held{again} until {iso(hold.expires_at_us)}", "bold green")


def _columns(report: AdmitReport) -> list[Column]:
    uses = report.uses
    figures = [amounts(use) for use in uses]
    columns = [
        Column(head="quota", cells=[_quota(use) for use in uses], justify="left", least=LEAST_NAME),
        Column(head="used", cells=[each[0] for each in figures]),
    ]
    if any(use.promised for use in uses):
        columns.append(Column(head="promised", cells=[each[1] for each in figures]))
    if not report.admitted or report.is_check:
        columns.append(Column(head="asked", cells=[asked_words(use) for use in uses]))
    columns += [
        Column(head="left", cells=[each[2] for each in figures]),
        Column(head="", cells=["" if use.fits else "full" for use in uses], justify="left", style="red"),
    ]
    return columns


def _quota(use: QuotaUse) -> Text:
    return cell(use.bound.words, "" if use.fits else "red")
