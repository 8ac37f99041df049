"""``journal``: what each reading found, and what was done with it, oldest to newest."""

from __future__ import annotations

from gpuledger.accounting import journal as lines
from gpuledger.ledger.store import Ledger
from gpuledger.model.archive import Archive
from gpuledger.model.journal import JournalReport
from gpuledger.model.rows import DeviceEvent, Pass, PolicyVersion, Seal, Watch


def journal(ledger: Ledger, *, since_us: int, until_us: int) -> JournalReport:
    """The lines of a window."""
    # a window's last moment belongs to it here: a journal that leaves out the newest line misleads
    until_us += 1
    rows: list[Watch | DeviceEvent | Pass | PolicyVersion | Archive | Seal] = [
        *ledger.scan(DeviceEvent, since_us=since_us, until_us=until_us),
        *ledger.scan(Watch, since_us=since_us, until_us=until_us),
        *ledger.scan(Pass, since_us=since_us, until_us=until_us),
        *ledger.scan(PolicyVersion, since_us=since_us, until_us=until_us),
        *ledger.scan(Archive, since_us=since_us, until_us=until_us),
        *ledger.scan(Seal, since_us=since_us, until_us=until_us),
    ]
    return lines.journal(rows, since_us=since_us, until_us=until_us)
