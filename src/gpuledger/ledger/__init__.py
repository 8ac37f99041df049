"""2 REMEMBER: append and scan; rows never change."""

from gpuledger.ledger.appending import Appended
from gpuledger.ledger.places import resolve_place
from gpuledger.ledger.store import Ledger
from gpuledger.ledger.sums import UsageSum
from gpuledger.ledger.verify import CHECKS, Finding, verify_ledger

__all__ = ["CHECKS", "Appended", "Finding", "Ledger", "UsageSum", "resolve_place", "verify_ledger"]
