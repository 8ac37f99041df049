"""Who was named: each process of the crowd against what a ledger says of it, and why the others were not.

In: lives, and a ledger. Out: a :class:`Share`. Contexts are those that every verb prints; what no context tells of
must lie in time that ``usage`` prints as UNKNOWN, or it was missed in silence.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from naming_box import JOB, Life

from gpuledger.ledger.store import Ledger
from gpuledger.metering.contexts import contexts
from gpuledger.model.moments import parse_moment
from gpuledger.model.quantities import Context
from gpuledger.model.reasons import UNATTRIBUTED
from gpuledger.operations.evidence import load_evidence

MARGIN_US = 2_000_000
"""By which the driver's times and the crowd's may differ, as in the product."""
SILENT = "nobody says why"
EXAMPLES = 3
DYING = "read while it died"
"""Told with the short name that the kernel has for it when its command line is gone: not its own, and no other's."""


@dataclass(slots=True, kw_only=True)
class Share:
    """What a source says of some processes.

    Args:
        of: how many lived.
        named: told with their own command line.
        misses: how many were not, by cause.
        misnamed: told with another's; the first few of them stand in ``told_as``.
        settled, observed: contexts known from the driver's rows, and from looks or events alone.
        unlisted: missed because no look found the row, or the context alive, in time: no source of names helps that.
        twice: contexts beyond one for each process.
    """

    of: int
    named: int = 0
    misses: Counter[str] = field(default_factory=Counter)
    misnamed: int = 0
    told_as: list[str] = field(default_factory=list)
    settled: int = 0
    observed: int = 0
    unlisted: int = 0
    twice: int = 0

    @property
    def silent(self) -> int:
        """Missed, and nothing says why."""
        return self.misses[SILENT]

    @property
    def adds_up(self) -> bool:
        """Named and missed are all there were."""
        return self.named + self.misses.total() + self.misnamed == self.of

    def as_json(self) -> dict[str, Any]:
        """For the result."""
        return {**asdict(self), "misses": dict(self.misses), "adds_up": self.adds_up, "silent": self.silent}


class LifeFinder:
    """Finds who had a pid at a time.

    Args:
        lives: all of them.
    """

    def __init__(self, lives: Iterable[Life]) -> None:
        self._by_pid: defaultdict[int, list[Life]] = defaultdict(list)
        for life in sorted(lives, key=lambda one: one.began_us):
            self._by_pid[life.pid].append(life)

    def at(self, pid: int, at_us: int) -> Life | None:
        """The process of the crowd that had this pid then."""
        lives = self._by_pid.get(pid, [])
        number = bisect_right(lives, at_us + MARGIN_US, key=lambda one: one.began_us)
        found = lives[number - 1] if number else None
        return found if found is not None and at_us <= found.ended_us + MARGIN_US else None


def of_ledger(path: Path, lives: Sequence[Life], usage: Any) -> Share:
    """What a ledger says.

    Args:
        lives: of one load.
        usage: what ``usage`` printed of their window.
    """
    since_us, until_us = min(one.began_us for one in lives), max(one.ended_us for one in lives)
    with Ledger.open(path, mode="read") as ledger:
        found = contexts(load_evidence(ledger, since_us=since_us, until_us=until_us + MARGIN_US))
        commands = {key: text.command for key, text in ledger.texts(None).items()}
    told, matched = _told(found, lives)
    unknown = _unknown(usage)
    share = Share(of=len(lives), twice=matched - len(told))
    for life in lives:
        context = told.get(life.word)
        if context is None:
            reason = _reason(life, unknown)
            share.misses[reason] += 1
            share.unlisted += reason != SILENT
        elif context.subject.startswith(UNATTRIBUTED):
            share.misses[context.subject.removeprefix(UNATTRIBUTED)] += 1
        elif commands.get(context.subject, "").split(" ")[-1] == life.word:
            share.named += 1
        elif commands.get(context.subject) == f"[{JOB}]":
            share.misses[DYING] += 1
        else:
            share.misnamed += 1
            if share.misnamed <= EXAMPLES:
                share.told_as.append(f"{life.word} (pid {life.pid}) as {commands.get(context.subject)!r}")
        share.settled += context is not None and context.settled
        share.observed += context is not None and not context.settled
    return share


def _told(found: Iterable[Context], lives: Iterable[Life]) -> tuple[dict[str, Context], int]:
    """A context by word, and how many contexts there are of all of them."""
    finder = LifeFinder(lives)
    told: dict[str, Context] = {}
    matched = 0
    for context in found:
        life = finder.at(context.pid, context.spans[0][0])
        if life is not None and life.gpu == context.device:
            told.setdefault(life.word, context)
            matched += 1
    return told, matched


def _unknown(usage: Any) -> dict[str, list[tuple[int, int, str]]]:
    """UNKNOWN spans by device."""
    found: defaultdict[str, list[tuple[int, int, str]]] = defaultdict(list)
    for span in usage["unknown"]:
        since_us, until_us = (parse_moment(span[key], now_us=0) for key in ("since", "until"))
        found[span["device"]].append((since_us, until_us, span["reason"]))
    return found


def _reason(life: Life, unknown: dict[str, list[tuple[int, int, str]]]) -> str:
    """Why the time is UNKNOWN in which a process lived."""
    spans = unknown.get(life.gpu, []) + unknown.get("", [])
    for since_us, until_us, reason in spans:
        if since_us <= life.ended_us and life.began_us <= until_us:
            return reason
    return SILENT


def identities(path: Path, words: Iterable[str]) -> int:
    """How many of these words stand in the command lines that a ledger keeps."""
    with Ledger.open(path, mode="read") as ledger:
        kept = {text.command.split(" ")[-1] for text in ledger.texts(None).values()}
    return len(kept & set(words))
