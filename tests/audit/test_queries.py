"""A query with what stands around it."""

from __future__ import annotations

from gpuledger.audit.queries import NOTHING_SHOWN, Query, Role
from gpuledger.model.findings import Where


def test_a_query_stands_alone_by_default() -> None:
    """Nothing is shown beside it, and no variable is known."""
    query = Query(where=Where(path="f"), text="x", role=Role.LISTED)
    assert query.shown is NOTHING_SHOWN
    assert query.variables == {}
    assert query.is_certain
