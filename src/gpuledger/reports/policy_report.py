"""Policy versions, and what ``apply`` did."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group, RenderableType

from gpuledger.model.durations import several
from gpuledger.model.moments import iso
from gpuledger.model.outcomes import Applied
from gpuledger.model.rows import PolicyVersion
from gpuledger.reports import as_csv
from gpuledger.reports.as_json import Json
from gpuledger.reports.cells import cell, stacked
from gpuledger.reports.columns import Column, Fitted


def applied_table(applied: Applied) -> RenderableType:
    """One or two sentences."""
    row = applied.version
    if not applied.changed:
        return cell(f"policy {row.version} already holds: nothing changed")
    return stacked(
        cell(f"policy {row.version} applied; owners hold from {iso(row.effective_from_us)}, services for all time"),
        cell(
            f"{several(applied.services, 'service rule')}, {several(applied.users, 'user')}, "
            f"{several(applied.namespaces, 'namespace')}, {several(applied.hosts, 'host')}"
        ),
        *([cell(f"{several(applied.quotas, 'quota')}: gpuledger quota")] if applied.quotas else []),
        *(
            [cell(f"{several(applied.accounts, 'account')} with shares: gpuledger fairshare")]
            if applied.accounts
            else []
        ),
    )


def applied_json(applied: Applied) -> dict[str, Json]:
    """The version and whether it is new."""
    return {
        **_version(applied.version),
        "changed": applied.changed,
        "services": applied.services,
        "users": applied.users,
        "namespaces": applied.namespaces,
        "hosts": applied.hosts,
        "quotas": applied.quotas,
        "accounts": applied.accounts,
        "problems": [{"code": p.code, "message": p.message, "where": p.where} for p in applied.problems],
    }


def applied_csv(applied: Applied) -> str:
    """The version as one row."""
    return versions_csv([applied.version])


def versions_table(versions: Sequence[PolicyVersion], *, whole: bool) -> RenderableType:
    """The versions, or with ``whole`` the one version's document as it was applied."""
    if whole:
        lines = versions[0].document.splitlines() if versions else []
        return Group(*(cell(line) for line in lines))
    if not versions:
        return cell("no policy was applied yet: `gpuledger apply FILE`; built-in rules name the common services")
    return Fitted(
        [
            Column(head="version", cells=[str(row.version) for row in versions], justify="left"),
            Column(head="owners hold from", cells=[iso(row.effective_from_us) for row in versions], justify="left"),
            Column(head="applied", cells=[iso(row.applied_at_us) for row in versions], justify="left", spare=2),
            Column(head="sha-256", cells=[row.document_hash[:16] for row in versions], justify="left", spare=1),
        ]
    )


def versions_json(versions: Sequence[PolicyVersion]) -> list[Json]:
    """The versions with their documents."""
    return [{**_version(row), "document": row.document} for row in versions]


def versions_csv(versions: Sequence[PolicyVersion]) -> str:
    """The versions without their documents."""
    rows = [(row.version, iso(row.effective_from_us), iso(row.applied_at_us), row.document_hash) for row in versions]
    return as_csv.text(("version", "effective_from", "applied_at", "document_hash"), rows)


def _version(row: PolicyVersion) -> dict[str, Json]:
    return {
        "ref": row.ref,
        "version": row.version,
        "effective_from": iso(row.effective_from_us),
        "applied_at": iso(row.applied_at_us),
        "document_hash": row.document_hash,
    }
