"""``gpuledger audit nodes``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gpuledger.cli.audit_output import AuditFormatOption, StrictFindingsOption, WaiversOption, audit_session, tell
from gpuledger.cli.options import NowOption, QuietOption
from gpuledger.operations.audit_nodes import nodes


def command(
    ctx: typer.Context,
    paths: Annotated[
        list[Path] | None,
        typer.Argument(metavar="NODES", help="What `kubectl get nodes -o json` printed; - for stdin."),
    ] = None,
    configs: Annotated[
        list[Path] | None,
        typer.Option(
            "--configs", metavar="PATH", help="Sharing configs, pods, resource slices, workloads. May be repeated."
        ),
    ] = None,
    live: Annotated[bool, typer.Option("--live", help="Ask the cluster itself, read only.")] = False,
    context: Annotated[str, typer.Option("--context", metavar="NAME", help="Context of the kubeconfig.")] = "",
    pool_label: Annotated[
        str, typer.Option("--pool-label", metavar="KEY", help="The label of nodes that names their pool.")
    ] = "",
    waivers: WaiversOption = None,
    strict: StrictFindingsOption = False,
    format_: AuditFormatOption = None,
    now: NowOption = None,
    quiet: QuietOption = False,
) -> None:
    """Find nodes whose labels, replicas and resources do not add up to shares that can be billed.

    Mixed replicas inside a pool, labels against what the kubelet offers, the two spellings of shared devices, MIG with
    time-slicing, requests for several replicas, exporters that lose pods where resource slices come and go.
    """
    session = audit_session(ctx, format_=format_, now=now, quiet=quiet)
    report = nodes(
        paths or [], configs=configs or [], live=live, context=context, pool_label=pool_label, waivers=waivers,
        now_us=session.now_us,
    )  # fmt: skip
    tell(session, report, format_=format_, strict=strict)
