"""``gpuledger audit manifests``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from gpuledger.cli.audit_output import AuditFormatOption, StrictFindingsOption, WaiversOption, audit_session, tell
from gpuledger.cli.options import Format, NowOption, QuietOption
from gpuledger.operations.audit_manifests import manifests


def command(
    ctx: typer.Context,
    paths: Annotated[
        list[Path], typer.Argument(metavar="PATH", help="Manifests, chart values, templates; folders; - for stdin.")
    ],
    draft: Annotated[
        str, typer.Option("--draft", metavar="KIND", help="Print the exception to apply: plain (labels) or kyverno.")
    ] = "",
    owner: Annotated[str, typer.Option("--owner", metavar="NAME", help="Who answers for the exception.")] = "",
    until: Annotated[str | None, typer.Option("--until", metavar="DATE", help="When the exception ends.")] = None,
    namespace: Annotated[
        str, typer.Option("--namespace", metavar="NAME", help="Where the exporter runs, if the texts do not say.")
    ] = "",
    waivers: WaiversOption = None,
    strict: StrictFindingsOption = False,
    format_: AuditFormatOption = None,
    now: NowOption = None,
    quiet: QuietOption = False,
) -> None:
    """Find what keeps an exporter of GPU figures from telling the pods on one device apart.

    DaemonSets, chart values, ClusterPolicy, Helm templates: environment, hostPID, access to pods, mounts, resource
    names, version, and the Pod Security level that rejects the pod. Give all texts at once: roles and namespaces
    belong to it. With --draft the exception is printed instead, signed and with an end.
    """
    session = audit_session(ctx, format_=format_, now=now, quiet=quiet)
    report = manifests(
        paths, waivers=waivers, draft=draft, owner=owner, until_us=session.moment_or_none(until), namespace=namespace,
        now_us=session.now_us,
    )  # fmt: skip
    if draft and session.format is Format.TABLE and format_ is None:
        sys.stdout.write(report.draft)
        session.talk("read it before you apply it; without --draft the findings are printed")
        raise typer.Exit(1 if report.found(strict=strict) else 0)
    tell(session, report, format_=format_, strict=strict)
