"""``gpuledger admit``."""

from __future__ import annotations

from typing import Annotated

import typer

from gpuledger.cli.options import ConfigOption, FormatOption, Globals, LedgerOption, NowOption, QuietOption
from gpuledger.cli.session import Session
from gpuledger.errors import Misconfigured
from gpuledger.model.lifecycle import parse_labels
from gpuledger.model.missing import Missing
from gpuledger.model.moments import length_us
from gpuledger.model.quotas import NO_END, AdmitRequest
from gpuledger.operations.admit import admit
from gpuledger.reports import admit_report
from gpuledger.sources.transition_lines import parse_placement


def command(
    ctx: typer.Context,
    workload: Annotated[str, typer.Argument(metavar="WORKLOAD", help="The control plane's own id of the workload.")],
    user: Annotated[
        str, typer.Option("--user", metavar="NAME", help="Whose it is; told once, it stays. Roles come of the policy.")
    ] = "",
    team: Annotated[str, typer.Option("--team", metavar="NAME", help="Its team, where not the user's own.")] = "",
    project: Annotated[str, typer.Option("--project", metavar="NAME", help="Its project.")] = "",
    class_name: Annotated[
        str, typer.Option("--class", metavar="CLASS", help="The class it asks for: H100-80GB, cpu.")
    ] = "",
    devices: Annotated[
        str, typer.Option("--devices", metavar="N|UUID,...", help="How many devices, or which. Default: 1.")
    ] = "",
    share: Annotated[
        str, typer.Option("--share", metavar="SHARE", help="The share of each device: 1/4. Default: 1.")
    ] = "",
    region: Annotated[str, typer.Option("--region", metavar="NAME", help="The region it asks for.")] = "",
    machine: Annotated[str, typer.Option("--machine", metavar="NAME", help="The machine it asks for.")] = "",
    pool: Annotated[str, typer.Option("--pool", metavar="NAME", help="The pool it asks for.")] = "",
    until: Annotated[
        str,
        typer.Option(
            "--until",
            metavar="TIME|SPAN",
            help="When it expects to be done, 2026-11-29T18:00Z or 4h: tells others when a place comes free.",
        ),
    ] = "",
    label: Annotated[
        list[str] | None, typer.Option("--label", metavar="NAME=VALUE", help="A label, to group by; may stand often.")
    ] = None,
    source: Annotated[str, typer.Option("--source", metavar="NAME", help="Who asks: the controller's name.")] = "cli",
    check: Annotated[bool, typer.Option("--check", "--dry-run", help="Only answer; take nothing.")] = False,
    ledger: LedgerOption = None,
    config: ConfigOption = None,
    format_: FormatOption = None,
    now: NowOption = None,
    quiet: QuietOption = False,
) -> None:
    """May this run? Checks every quota, and on a yes holds the place for 10 minutes, in one transaction.

    `gpuledger transition WORKLOAD provisioning` confirms the hold; unconfirmed it lapses. A no tells every reason, who
    holds what since when, and the earliest place, and exits with 4. Asked again by the same words, a yes adds nothing.
    """
    session = Session(ctx, Globals(ledger=ledger, config=config, format=format_, now=now, quiet=quiet))
    placement = parse_placement(
        {
            "class": class_name,
            "region": region,
            "machine": machine,
            "pool": pool,
            "devices": devices,
            "share": share,
        }
    )
    if placement is None:
        raise Misconfigured("bad-usage", "which class?", hint=f"gpuledger admit {workload} --class H100-80GB")
    until_us, span_us = _end(session, until)
    request = AdmitRequest(
        workload=workload,
        placement=placement,
        user=user,
        team=team,
        project=project,
        labels=parse_labels(label or ()),
        until_us=until_us,
        span_us=span_us,
        source=source,
    )
    with session.read() if check else session.append() as opened:
        report = admit(opened, request, writer=session.writer("admit"), now_us=session.now_us, is_check=check)
    session.problems(report.problems)
    session.answer(
        table=lambda: admit_report.to_table(report),
        as_json=lambda: admit_report.to_json(report),
        as_csv=lambda: admit_report.to_csv(report),
    )
    if not report.admitted:
        raise report.refusal()


def _end(session: Session, until: str) -> tuple[int | Missing, int | Missing]:
    """The end as typed: a time, or a span from the admission on."""
    if not until:
        return NO_END, NO_END
    span_us = length_us(until)
    if not isinstance(span_us, Missing):
        return NO_END, span_us
    try:
        at_us = session.moment_or_none(until)
    except Misconfigured as error:
        hint = "--until 4h, --until 90m or --until 2026-11-29T18:00Z: a span from now on, or a time ahead"
        raise Misconfigured(error.code, error.message, hint=hint) from None
    assert at_us is not None
    return at_us, NO_END
