"""How every verb over a window begins: the ledger is opened to read, and ``--since`` and ``--until`` become times."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from gpuledger.cli.archived import archive_under
from gpuledger.cli.session import Session
from gpuledger.errors import Unavailable
from gpuledger.ledger.store import Ledger
from gpuledger.model.meters import METERS, RESERVED_METERS
from gpuledger.operations.usage import window

MeterOption = Annotated[
    str, typer.Option("--meter", metavar="METER", help=f"One of {', '.join(meter.name for meter in METERS)}.")
]


@contextmanager
def windowed(
    session: Session, since: str | None, until: str | None, *, meter: str = "", archive: Path | None = None
) -> Iterator[tuple[Ledger, int, int]]:
    """The ledger with the window asked for, microseconds UTC: ``[since_us, until_us)``.

    Args:
        session: the run of the verb.
        since: ``--since`` as typed; None where it was not.
        until: ``--until`` as typed; None where it was not.
        meter: what is asked about, where it is one meter: evidence of reserved time begins elsewhere.
        archive: where archived evidence lies, as typed; None where it was not.

    Raises:
        Misconfigured: ``bad-time``; ``empty-window`` when it ends before it begins.
        Unavailable: ``archive-missing``, where the archive that an edge needs is not at hand.
        Corrupt: ``archive-damaged``, where a file of it is not what left the ledger.
    """
    since_asked, until_asked = session.moment_or_none(since), session.moment_or_none(until)
    with session.read() as ledger:
        is_reserved = meter in {each.name for each in RESERVED_METERS}
        try:
            asked = window(ledger, since=since_asked, until=until_asked, now_us=session.now_us, reserved=is_reserved)
        except Unavailable as error:
            if error.code != "archive-missing":
                raise
            with archive_under(session, ledger, archive):
                asked = window(
                    ledger, since=since_asked, until=until_asked, now_us=session.now_us, reserved=is_reserved
                )
        yield ledger, *asked
