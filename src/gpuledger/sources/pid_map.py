"""A home-made map of pids to services: ``pid<TAB>service<TAB>epoch seconds``, one claim a line.

Text in, claims out; pure. Somebody wrote down that a pid was that service at that moment: a claim,
never a kernel fact. One bad line refuses the whole file, so that nothing is imported by half.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from gpuledger.errors import BadInput
from gpuledger.model.moments import SECOND_US

LARGEST_PID = 4_194_304
"""PID_MAX_LIMIT of 64-bit Linux (include/linux/threads.h)."""

LATEST_SECONDS = 32_503_680_000
"""The year 3000: a larger figure is milliseconds or microseconds, not seconds."""

_SECONDS = re.compile(r"([0-9]{1,20})(?:\.([0-9]{1,6}))?")
_HINT = "each line is: pid, TAB, service, TAB, seconds since 1970; lines that begin with # are comments"


@dataclass(frozen=True, slots=True, kw_only=True)
class PidClaim:
    """Somebody's word that a process was a service.

    Args:
        pid: process id.
        service: the service's name.
        seen_at_us: when the claim was written, microseconds UTC: the process lived then.
        line: 1-based line in the map.
    """

    pid: int
    service: str
    seen_at_us: int
    line: int


def parse(text: str, *, path: str) -> list[PidClaim]:
    """The claims of a pid map, in the order of the file; identical lines count once.

    Raises:
        BadInput: ``bad-pid-map`` naming the line; then nothing of the file is taken.
    """
    claims: dict[tuple[int, str, int], PidClaim] = {}
    for number, content in enumerate(text.removeprefix("\ufeff").split("\n"), start=1):
        line = content.removesuffix("\r")
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        claim = _claim(line, number, path)
        claims.setdefault((claim.pid, claim.service, claim.seen_at_us), claim)
    return list(claims.values())


def _claim(line: str, number: int, path: str) -> PidClaim:
    def refused(message: str) -> BadInput:
        return BadInput("bad-pid-map", message, path=path, line=number, hint=_HINT)

    cells = [cell.strip(" ") for cell in line.rstrip("\t ").split("\t")]
    if len(cells) != 3:
        raise refused(f"three columns separated by tabs were expected, and there are {len(cells)}: {line[:60]!r}")
    pid, service, seconds = cells
    if not (pid.isascii() and pid.isdigit()) or len(pid) > 10 or not 0 < int(pid) <= LARGEST_PID:
        raise refused(f"{pid[:40]!r} is not a process id (1 to {LARGEST_PID})")
    if not service:
        raise refused("the service has no name")
    if not service.isprintable():
        raise refused(f"{service[:40]!r} holds characters that no service name has")
    match = _SECONDS.fullmatch(seconds)
    if match is None:
        raise refused(f"{seconds[:40]!r} is not a time in seconds since 1970")
    if not 0 < int(match[1]) < LATEST_SECONDS:
        raise refused(f"{seconds[:40]} seconds since 1970 is no time that can be meant; seconds are expected, not ms")
    seen_at_us = int(match[1]) * SECOND_US + int((match[2] or "0").ljust(6, "0"))
    return PidClaim(pid=int(pid), service=service, seen_at_us=seen_at_us, line=number)
