"""``audit dashboards``: read, judge, lay waivers over it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from gpuledger.audit.dashboards import audit_dashboards
from gpuledger.model.findings import AuditReport
from gpuledger.operations.audit_files import gather, judged, waivers_of

_TEXTS = (".json", ".yaml", ".yml", ".rules", ".tpl", ".tmpl", ".gotmpl", ".j2", ".promql")
_PROGRAMS = (".jsonnet", ".libsonnet", ".cue", ".tf", ".dhall")
SUFFIXES = (*_TEXTS, *_PROGRAMS)
"""Files of a folder that can hold queries; of those of programs the strings are judged."""


def dashboards(paths: Sequence[Path], *, waivers: Path | None, now_us: int) -> AuditReport:
    """Judge the queries of files and folders.

    Args:
        paths: what to read; ``-`` for stdin. Recording rules are followed through all of them together.
        waivers: a file of waivers; comments in the files are waivers too.
        now_us: the present, with which the ends of waivers are compared.

    Raises:
        BadInput: a path that is not there, or a waiver that lacks something.
    """
    given = waivers_of(waivers)
    texts, unread = gather(paths, suffixes=SUFFIXES)
    return judged(audit_dashboards(texts), texts=texts, waivers=given, unread=unread, now_us=now_us)
