"""``policy``: the versions that were applied."""

from __future__ import annotations

from gpuledger.errors import NotFound
from gpuledger.ledger.store import Ledger
from gpuledger.model.rows import PolicyVersion


def versions(ledger: Ledger, version: int | None = None) -> list[PolicyVersion]:
    """All versions, oldest first, or the one asked for.

    Raises:
        NotFound: ``no-such-policy``.
    """
    found = sorted(ledger.scan(PolicyVersion), key=lambda row: row.version)
    if version is None:
        return found
    one = [row for row in found if row.version == version]
    if not one:
        raise NotFound("no-such-policy", f"there is no policy version {version}", hint="gpuledger policy")
    return one
