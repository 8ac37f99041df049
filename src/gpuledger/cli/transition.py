"""``gpuledger transition``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gpuledger.cli.options import ConfigOption, FormatOption, Globals, LedgerOption, NowOption, QuietOption
from gpuledger.cli.session import Session
from gpuledger.errors import Misconfigured
from gpuledger.model.controller_clock import words
from gpuledger.model.lifecycle import Transition, event_id_of, parse_labels, parse_state
from gpuledger.model.moments import CLOCK_TOLERANCE_US
from gpuledger.operations.from_runtime import from_runtime
from gpuledger.operations.transition import heartbeat, record_transitions
from gpuledger.reports import transition_report
from gpuledger.settings import parse_span_us
from gpuledger.sources.transition_lines import parse_placement


def command(
    ctx: typer.Context,
    workload: Annotated[
        str | None, typer.Argument(metavar="WORKLOAD", help="The control plane's own id of the workload.")
    ] = None,
    state: Annotated[
        str | None,
        typer.Argument(
            metavar="STATE",
            help="pending, provisioning, downloading, booting, running, stopping, stopped or failed.",
        ),
    ] = None,
    at: Annotated[
        str | None, typer.Option("--at", metavar="TIME", help="When it happened at the runtime. Default: now.")
    ] = None,
    event: Annotated[
        str,
        typer.Option(
            "--id", metavar="EVENT", help="The event's own id: told twice, it counts once. Default: of its content."
        ),
    ] = "",
    source: Annotated[
        str, typer.Option("--source", metavar="NAME", help="Who says so: the controller's name.")
    ] = "cli",
    user: Annotated[str, typer.Option("--user", metavar="NAME", help="Whose it is; told once, it stays.")] = "",
    team: Annotated[str, typer.Option("--team", metavar="NAME", help="Its team; told once, it stays.")] = "",
    project: Annotated[str, typer.Option("--project", metavar="NAME", help="Its project; told once, it stays.")] = "",
    requested_class: Annotated[
        str,
        typer.Option(
            "--requested-class", metavar="CLASS", help="The class asked for, where not placed yet or another."
        ),
    ] = "",
    class_name: Annotated[
        str, typer.Option("--class", metavar="CLASS", help="The class it is placed on: H100-80GB, cpu.")
    ] = "",
    region: Annotated[str, typer.Option("--region", metavar="NAME", help="The region it is placed in.")] = "",
    machine: Annotated[str, typer.Option("--machine", metavar="NAME", help="The machine it is placed on.")] = "",
    pool: Annotated[str, typer.Option("--pool", metavar="NAME", help="The pool it is placed in.")] = "",
    devices: Annotated[
        str, typer.Option("--devices", metavar="N|UUID,...", help="How many devices, or which. Default: 1.")
    ] = "",
    share: Annotated[
        str, typer.Option("--share", metavar="SHARE", help="The share of each device: 1/4. Default: 1.")
    ] = "",
    label: Annotated[
        list[str] | None, typer.Option("--label", metavar="NAME=VALUE", help="A label, to group by; may stand often.")
    ] = None,
    runtime: Annotated[
        Path | None,
        typer.Option(
            "--from-runtime", metavar="FILE", help="Append what was missed, of the runtime's own conditions (JSON)."
        ),
    ] = None,
    beat: Annotated[
        str, typer.Option("--heartbeat", metavar="SOURCE", help="Say that this controller is alive, and nothing else.")
    ] = "",
    clock: Annotated[
        str | None,
        typer.Option("--clock", metavar="TIME", help="With --heartbeat: what the controller's own clock reads now."),
    ] = None,
    every: Annotated[str, typer.Option("--every", metavar="SPAN", help="How often the heartbeat comes.")] = "60s",
    ledger: LedgerOption = None,
    config: ConfigOption = None,
    format_: FormatOption = None,
    now: NowOption = None,
    quiet: QuietOption = False,
) -> None:
    """Append a lifecycle event: from when on a workload stands in a state, and what it is placed on.

    Only `running` is metered. `provisioning` takes a hold on capacity, `stopped` and `failed` release it. What
    the rules forbid is refused, and nothing is written. The same event told twice adds nothing.
    """
    session = Session(ctx, Globals(ledger=ledger, config=config, format=format_, now=now, quiet=quiet))
    writer = session.writer("transition")
    if beat:
        _refuse_words(workload, "--heartbeat")
        clock_us = session.moment_or_none(clock)
        interval_us = parse_span_us(every, name="--every")
        with session.append() as opened:
            heartbeat(opened, beat, writer=writer, at_us=session.now_us, interval_us=interval_us, clock_us=clock_us)
        offset_us = 0 if clock_us is None else clock_us - session.now_us
        skewed = f": its clock is {words(offset_us)}" if abs(offset_us) > CLOCK_TOLERANCE_US else ""
        session.talk(f"heartbeat of {beat}{skewed}")
        return
    if clock is not None:
        raise Misconfigured(
            "bad-usage", "--clock goes with --heartbeat", hint="gpuledger transition --heartbeat NAME --clock TIME"
        )
    if runtime is not None:
        _refuse_words(workload, "--from-runtime")
        report = from_runtime(session.append, runtime, now_us=session.now_us, writer=writer)
    else:
        if workload is None or state is None:
            raise Misconfigured(
                "bad-usage", "which workload, and which state?", hint="gpuledger transition WORKLOAD STATE"
            )
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
        labels = parse_labels(label or ())
        at_us = session.moment_or_none(at)
        at_us = session.now_us if at_us is None else at_us
        key = placement.key if placement else ""
        told = Transition(
            workload=workload,
            event_id=event
            or event_id_of(workload, state, at_us, source, key, requested_class, user, team, project, labels),
            state=parse_state(state),
            at_us=at_us,
            source=source,
            user=user,
            team=team,
            project=project,
            requested_class=requested_class,
            placement=placement,
            labels=labels,
        )
        with session.append() as opened:
            report = record_transitions(opened, [told], writer=writer, now_us=session.now_us)
    session.problems(report.problems)
    session.answer(
        table=lambda: transition_report.to_table(report),
        as_json=lambda: transition_report.to_json(report),
        as_csv=lambda: transition_report.to_csv(report),
    )


def _refuse_words(workload: str | None, option: str) -> None:
    if workload is not None:
        raise Misconfigured(
            "bad-usage", f"{option} takes no WORKLOAD and STATE", hint=f"gpuledger transition {option} ..."
        )
