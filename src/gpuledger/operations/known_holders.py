"""What a ledger knows of the processes that hold a device at this moment: who they are, and since when.

For ``top``. A process is known by its boot id, pid and start. Where its start cannot be read (``/proc``
is closed to this user) the agent's own sighting ties pid and device to it, and only while that is sure:
the driver's start of the context is the same, or the agent is looking at this moment.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gpuledger.ledger.store import Ledger
from gpuledger.model.identity import IdentityText
from gpuledger.model.missing import Missing
from gpuledger.model.moments import CLOCK_TOLERANCE_US
from gpuledger.model.rows import ProcessIdentity, Sighting
from gpuledger.operations.pulse import hear

HolderPlace = tuple[str, int]
"""Device UUID and pid."""

_UNSEEN = Missing("no agent has seen it without a break up to now")


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """A living context and the process behind it.

    Args:
        device: UUID of the GPU or MIG instance.
        pid: process id.
        start_ticks: start of the process; 0 where it could not be read.
        started_at_us: the driver's start of the context, as this look gives it.
    """

    device: str
    pid: int
    start_ticks: int
    started_at_us: int | Missing

    @property
    def place(self) -> HolderPlace:
        """Where it is, and its pid."""
        return self.device, self.pid


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownHolder:
    """What the ledger knows of one of them.

    Args:
        start_ticks: start of the process.
        text: who it is; None where its text was forgotten, or never read.
        since_us: since when the context is held, as far as the agent knows.
        is_at_least: ``since_us`` is the agent's first sight of it, without a break up to now, and not the
            driver's start.
    """

    start_ticks: int
    text: IdentityText | None
    since_us: int | Missing
    is_at_least: bool


def known_holders(
    ledger: Ledger, held: Sequence[Held], *, host: str, boot_id: str, now_us: int
) -> dict[HolderPlace, KnownHolder]:
    """What the ledger knows of these, by device and pid; nothing of those that it cannot be sure of.

    Args:
        ledger: open to read.
        held: who holds what now.
        host: name of this machine in the ledger.
        boot_id: this boot's id; where it is empty, no process of the ledger is surely of this boot.
        now_us: now, microseconds UTC.
    """
    if not boot_id or not held:
        return {}
    pulse = hear(ledger, now_us=now_us)
    is_writing = pulse is not None and pulse.is_beating(now_us) and not pulse.stuck_us
    is_looking = pulse is not None and pulse.host == host and pulse.answered and is_writing
    found: dict[HolderPlace, tuple[int, list[Sighting]]] = {}
    for one in held:
        run = _run(ledger, one, host=host, boot_id=boot_id)
        start_ticks = one.start_ticks or _ticks_of(one, run, is_looking=is_looking)
        if start_ticks:
            found[one.place] = (start_ticks, run if is_looking else [])
    texts = _texts(ledger, {(place[1], ticks) for place, (ticks, _) in found.items()}, host=host, boot_id=boot_id)
    known: dict[HolderPlace, KnownHolder] = {}
    for place, (ticks, run) in found.items():
        since_us, is_at_least = _since(run)
        text = texts.get((place[1], ticks))
        known[place] = KnownHolder(start_ticks=ticks, text=text, since_us=since_us, is_at_least=is_at_least)
    return known


def _run(ledger: Ledger, one: Held, *, host: str, boot_id: str) -> list[Sighting]:
    """The agent's sightings of a living context, newest first, back to where it began or nobody looked."""
    run: list[Sighting] = []
    rows = ledger.scan(Sighting, pids={(host, one.pid)}, devices=[one.device], order="time", descending=True)
    for row in rows:
        if not isinstance(row.gone_at_us, Missing) or not _is_of(row, one, boot_id):
            break
        if run and row.until_us < run[-1].since_us:
            break
        run.append(row)
        if not isinstance(row.context_started_at_us, Missing):
            break  # the driver's start: what is older adds nothing
    return run


def _is_of(row: Sighting, one: Held, boot_id: str) -> bool:
    """Whether a sighting can be of this context: the same process and start, as far as both are known."""
    if row.method == "import" or (row.boot_id and row.boot_id != boot_id):
        return False
    if row.start_ticks and one.start_ticks and row.start_ticks != one.start_ticks:
        return False
    start_us, started_us = row.context_started_at_us, one.started_at_us
    if isinstance(start_us, Missing) or isinstance(started_us, Missing):
        return True
    return abs(start_us - started_us) <= CLOCK_TOLERANCE_US


def _ticks_of(one: Held, run: Sequence[Sighting], *, is_looking: bool) -> int:
    """Start of the process that the agent saw there; 0 where it is not sure that it is still this one."""
    has_same_start = not isinstance(one.started_at_us, Missing) and any(
        not isinstance(row.context_started_at_us, Missing) for row in run
    )
    if not (is_looking or has_same_start):
        return 0
    return next((row.start_ticks for row in run if row.start_ticks), 0)


def _since(run: Sequence[Sighting]) -> tuple[int | Missing, bool]:
    if not run:
        return _UNSEEN, False
    started_us = run[-1].context_started_at_us
    return (run[-1].since_us, True) if isinstance(started_us, Missing) else (started_us, False)


def _texts(
    ledger: Ledger, processes: set[tuple[int, int]], *, host: str, boot_id: str
) -> dict[tuple[int, int], IdentityText]:
    """The text of each process' last program, by pid and start."""
    if not processes:
        return {}
    latest: dict[tuple[int, int], ProcessIdentity] = {}
    for row in ledger.scan(ProcessIdentity, pids={(host, pid) for pid, _ in processes}):
        key = (row.pid, row.start_ticks)
        if row.boot_id != boot_id or key not in processes:
            continue
        before = latest.get(key)
        if before is None or (row.exec_number, row.seen_at_us) > (before.exec_number, before.seen_at_us):
            latest[key] = row
    texts = ledger.texts({row.text_key for row in latest.values()})
    return {key: texts[row.text_key] for key, row in latest.items() if row.text_key in texts}
