"""``policy``: the versions that were applied."""

from __future__ import annotations

import pytest

from gpuledger.errors import NotFound
from gpuledger.model.rows import PolicyVersion
from gpuledger.operations.policy import versions


def row(version: int) -> PolicyVersion:
    return PolicyVersion(
        version=version, effective_from_us=version, applied_at_us=version, document=f"# {version}\n", document_hash="h"
    )


def test_versions_stand_in_the_order_of_their_numbers(box) -> None:
    """Whichever chain they were written to."""
    box.append(row(2), role="policy")
    box.append(row(1), role="import")
    assert [one.version for one in versions(box.ledger)] == [1, 2]
    assert [one.document for one in versions(box.ledger, 2)] == ["# 2\n"]


def test_a_version_that_was_never_applied_is_not_found(box) -> None:
    """No version at all is an empty list; one that is asked for by number is an error."""
    assert versions(box.ledger) == []
    with pytest.raises(NotFound) as refused:
        versions(box.ledger, 3)
    assert refused.value.code == "no-such-policy"
