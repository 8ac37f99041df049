"""``copy``: one ledger into another, of either engine, byte for byte."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

from gpuledger.errors import Misconfigured
from gpuledger.ledger.copying import copy_ledger
from gpuledger.ledger.places import Place, place_of
from gpuledger.ledger.store import Ledger
from gpuledger.model.stores import CopyReport


def copy(source: str, target: str, *, progress: Callable[[int, int], None] | None = None) -> CopyReport:
    """Copy what the target does not have yet: rows, links, seals, identity texts with their salts.

    A second call adds nothing. Afterwards ``verify`` says the same of both.

    Args:
        source, target: places, as for ``--ledger``.
        progress: called with rows done and rows in all.

    Raises:
        Misconfigured: ``same-ledger``.
        Refused, Corrupt: as :func:`gpuledger.ledger.copying.copy_ledger` says.
    """
    origin, copied = place_of(source), place_of(target)
    if _itself(origin) == _itself(copied):
        raise Misconfigured("same-ledger", f"{origin} is both ends of the copy", hint="gpuledger copy FROM TO")
    with Ledger.open(origin, mode="read") as opened, Ledger.open(copied, mode="append") as into:
        return copy_ledger(opened, into, progress=progress)


def _itself(place: Place) -> Path | tuple[str, list[str]]:
    """What two spellings of one place have in common: the file behind links; database and schema, no password."""
    if isinstance(place, Path):
        return place.resolve()
    return str(place), [value for name, value in parse_qsl(urlsplit(place.url).query) if name == "options"]
