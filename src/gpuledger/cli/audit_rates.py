"""``gpuledger audit rates``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gpuledger.cli.audit_output import AuditFormatOption, StrictFindingsOption, WaiversOption, audit_session, tell
from gpuledger.cli.options import NowOption, QuietOption
from gpuledger.operations.audit_rates import rates


def command(
    ctx: typer.Context,
    policy: Annotated[Path, typer.Argument(metavar="POLICY", help="The policy file with the rates; - for stdin.")],
    nodes: Annotated[
        list[Path], typer.Argument(metavar="NODES", help="What `kubectl get nodes -o json` printed; - for stdin.")
    ],
    pool_label: Annotated[
        str,
        typer.Option(
            "--pool-label", metavar="KEY", help="The label of nodes that names their pool, if no host says it."
        ),
    ] = "",
    waivers: WaiversOption = None,
    strict: StrictFindingsOption = False,
    format_: AuditFormatOption = None,
    now: NowOption = None,
    quiet: QuietOption = False,
) -> None:
    """Find classes, MIG profiles and pools without a rate or with two, and rates that price nothing.

    A node's pool is that of its host in the policy, else of its label. Classes are spelled as in usage: without
    NVIDIA, without -SHARED, a MIG profile after a slash; a card that is spelled otherwise never meets anything.
    """
    session = audit_session(ctx, format_=format_, now=now, quiet=quiet)
    report = rates(policy, nodes, pool_label=pool_label, waivers=waivers, now_us=session.now_us)
    tell(session, report, format_=format_, strict=strict)
