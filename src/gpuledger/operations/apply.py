"""``apply``: a policy file becomes the next version. What cannot be understood leaves the ledger untouched."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from fnmatch import fnmatchcase
from pathlib import Path

from gpuledger.ledger.store import Ledger
from gpuledger.model.lifecycle import CPU
from gpuledger.model.missing import Missing
from gpuledger.model.outcomes import Applied
from gpuledger.model.policy import Policy
from gpuledger.model.problem import Problem, unknown_name
from gpuledger.model.quotas import EACH, Scope
from gpuledger.model.rows import DeviceEvent, PolicyVersion
from gpuledger.model.workload_rows import PlacementRow
from gpuledger.operations.reading_files import read_text
from gpuledger.sources import policy_file


def apply(open_ledger: Callable[[], Ledger], path: Path, *, now_us: int, writer: str) -> Applied:
    """Apply a policy file.

    Raises:
        BadInput: a document that cannot be understood, with its line; the ledger is then not even opened.
    """
    document = read_text(path, hint="give the policy: one YAML document in UTF-8")
    policy, problems = policy_file.parse(document, path=str(path), now_us=now_us)
    digest = hashlib.sha256(document.encode()).hexdigest()
    with open_ledger() as ledger:
        last: PolicyVersion | None = None

        def next_version() -> list[PolicyVersion] | None:
            nonlocal last
            last = max(ledger.scan(PolicyVersion), key=lambda row: row.version, default=None)
            if last is not None and last.document_hash == digest:
                return None
            return [
                PolicyVersion(
                    version=1 if last is None else last.version + 1,
                    effective_from_us=policy.effective_from_us,
                    applied_at_us=now_us,
                    document=document,
                    document_hash=digest,
                )
            ]

        # alone among all who judge: nobody grants by the policy before while this one comes into force
        appended = ledger.append_made(next_version, writer=writer, at_us=now_us, are_new=True)
        row = last if appended is None else appended.added[0]
        assert isinstance(row, PolicyVersion)
        unmet = tuple(_of_no_class(policy, ledger, str(path)))
    return Applied(
        version=row,
        changed=appended is not None,
        services=len(policy.services),
        users=len(policy.users),
        namespaces=len(policy.namespaces),
        hosts=len(policy.hosts),
        quotas=len(policy.quotas),
        accounts=0 if isinstance(policy.shares, Missing) else len(list(policy.shares.every_account())),
        problems=(*problems, *_of_nobody(policy, str(path)), *unmet),
    )


def _of_no_class(policy: Policy, ledger: Ledger, path: str) -> Iterator[Problem]:
    """Patterns of classes, of quotas and weights, that fit none there is so far: ``H100`` fits no ``H100-80GB``."""
    patterns = [(quota.class_glob, "quotas") for quota in policy.quotas if quota.class_glob]
    if not isinstance(policy.shares, Missing):
        patterns += [(pattern, "class_weights") for pattern, _ in policy.shares.class_weights]
    if not patterns:
        return
    known = {row.class_name for row in ledger.scan(PlacementRow)} | {row.class_name for row in ledger.scan(DeviceEvent)}
    for pattern, where in dict.fromkeys(patterns):
        if pattern == CPU:
            message = f"class {CPU} takes no device: `{where}` with it count nothing"
            yield Problem(code="class-of-nothing", message=message, where=path)
        elif known and not any(fnmatchcase(name, pattern) for name in known):
            told = unknown_name("class", pattern, known).message
            message = f"{told}; `{where}` with it count nothing so far"
            yield Problem(code="class-of-nothing", message=message, where=path)


def _of_nobody(policy: Policy, path: str) -> Iterator[Problem]:
    """Quotas whose role or team nobody has: a slip of the pen would limit nobody, and nothing else would show it.

    Where the policy lists no team at all everybody may name their own, so that none is known to be nobody's.
    """
    roles = frozenset(role for user in policy.users.values() for role in user.roles)
    listed = {Scope.ROLE: roles} | ({Scope.TEAM: policy.teams} if policy.teams else {})
    for quota in {(quota.scope, quota.name): quota for quota in policy.quotas}.values():
        if quota.scope in listed and quota.name not in (EACH, *listed[quota.scope]):
            yield Problem(
                code="quota-of-nobody",
                message=f"the policy gives nobody the {quota.scope} {quota.name!r}, so its quota binds nobody",
                where=path,
            )
