"""``migrate``: the tables of a ledger brought up to date, and granted to those who use them."""

from __future__ import annotations

from collections.abc import Sequence

from gpuledger.ledger.owning import bring_up_to_date
from gpuledger.ledger.places import Place
from gpuledger.model.stores import MigrateReport


def migrate(place: Place, *, applications: Sequence[str], readers: Sequence[str]) -> MigrateReport:
    """Make the tables, or bring them up to date; no row is ever rewritten.

    Args:
        place: where the ledger lies; on a server with its owner's name.
        applications, readers: roles of a server that add rows, and that only read.

    Raises:
        Misconfigured, Unavailable: as :func:`gpuledger.ledger.owning.bring_up_to_date` says.
    """
    return bring_up_to_date(place, applications=applications, readers=readers)
