"""``gpuledger audit dashboards``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gpuledger.cli.audit_output import AuditFormatOption, StrictFindingsOption, WaiversOption, audit_session, tell
from gpuledger.cli.options import NowOption, QuietOption
from gpuledger.operations.audit_dashboards import dashboards


def command(
    ctx: typer.Context,
    paths: Annotated[
        list[Path],
        typer.Argument(metavar="PATH", help="Dashboards, rule files, lists of queries; folders; - for stdin."),
    ],
    waivers: WaiversOption = None,
    strict: StrictFindingsOption = False,
    format_: AuditFormatOption = None,
    now: NowOption = None,
    quiet: QuietOption = False,
) -> None:
    """Find figures of a whole device that a dashboard, alert or rule gives to one pod, namespace or team.

    Grafana's JSON, Prometheus' rules and PrometheusRule, autoscalers and adapter rules, lists of queries in YAML, Helm
    templates; of jsonnet and Terraform the strings.
    Every query is parsed and followed: through joins, renamed labels, variables, and recording rules of all the files
    given, so give them all at once. What could not be read is listed.
    """
    session = audit_session(ctx, format_=format_, now=now, quiet=quiet)
    tell(session, dashboards(paths, waivers=waivers, now_us=session.now_us), format_=format_, strict=strict)
