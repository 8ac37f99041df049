"""``apply``: a policy file becomes the next version. What cannot be understood leaves the ledger untouched."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path

from gpuledger.ledger.store import Ledger
from gpuledger.model.outcomes import Applied
from gpuledger.model.rows import PolicyVersion
from gpuledger.operations.reading_files import read_text
from gpuledger.sources import policy_file


def apply(open_ledger: Callable[[], Ledger], path: Path, *, now_us: int, writer: str) -> Applied:
    """Apply a policy file.

    Raises:
        BadInput: a document that cannot be understood, with its line; the ledger is then not even opened.
    """
    document = read_text(path)
    policy, problems = policy_file.parse(document, path=str(path), now_us=now_us)
    digest = hashlib.sha256(document.encode()).hexdigest()
    with open_ledger() as ledger:
        last = max(ledger.scan(PolicyVersion), key=lambda row: row.version, default=None)
        changed = last is None or last.document_hash != digest
        if last is None or changed:
            row = PolicyVersion(
                version=1 if last is None else last.version + 1,
                effective_from_us=policy.effective_from_us,
                applied_at_us=now_us,
                document=document,
                document_hash=digest,
            )
            ledger.append([row], writer=writer, at_us=now_us)
            row = max(ledger.scan(PolicyVersion), key=lambda stored: stored.version)
        else:
            row = last
    return Applied(
        version=row,
        changed=changed,
        services=len(policy.services),
        users=len(policy.users),
        namespaces=len(policy.namespaces),
        hosts=len(policy.hosts),
        problems=tuple(problems),
    )
