"""``gpuledger audit exporter``."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer

from gpuledger.cli.audit_output import (
    AuditFormatOption,
    StrictFindingsOption,
    WaiversOption,
    audit_session,
    tell,
)
from gpuledger.cli.options import NowOption, QuietOption
from gpuledger.operations.audit_exporter import audit_endpoint


def command(
    ctx: typer.Context,
    target: Annotated[
        str,
        typer.Argument(metavar="URL|FILE", help="http://HOST:9400/metrics, or a scrape kept in a file; - for stdin."),
    ],
    pods: Annotated[
        Path | None,
        typer.Option(
            "--pods", metavar="FILE", help="From `kubectl get pods -A -o json` (- for stdin): stale and missing pods."
        ),
    ] = None,
    twice: Annotated[
        int,
        typer.Option(
            "--twice",
            metavar="SECONDS",
            help="Scrape again after so long, and tell what moved. 35 outlasts an exporter.",
        ),
    ] = 0,
    timeout: Annotated[
        int, typer.Option("--timeout", metavar="SECONDS", min=1, max=600, help="For a whole scrape.")
    ] = 10,
    insecure: Annotated[bool, typer.Option("--insecure", help="Take any certificate of an https address.")] = False,
    waivers: WaiversOption = None,
    strict: StrictFindingsOption = False,
    format_: AuditFormatOption = None,
    now: NowOption = None,
    quiet: QuietOption = False,
) -> None:
    """What an exporter of GPU figures really emits, and which of its numbers cannot be defended.

    It is judged by its figures and rows, never by its version: whether pods that share a GPU have figures of their
    own, rows that are counted twice, pods that are not the user, blanks, labels. Best while two pods of one GPU are
    busy, since idle ones tell nothing. The end is a list of what to change. It also reads the exporter's own log, and
    answers of Prometheus.
    """
    session = audit_session(ctx, format_=format_, now=now, quiet=quiet)
    report = audit_endpoint(
        target,
        pods=pods,
        waivers=waivers,
        again_after_s=twice,
        timeout_s=timeout,
        insecure=insecure,
        wait=time.sleep,
        now_us=session.now_us,
    )
    tell(session, report, format_=format_, strict=strict)
