"""What a verb that writes has done: a pass, an import, an applied policy."""

from __future__ import annotations

from dataclasses import dataclass

from gpuledger.model.problem import Problem
from gpuledger.model.rows import PolicyVersion, UsageCorrection, UsageRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class MeterReport:
    """What one metering pass did.

    Args:
        at_us: the time it ran for.
        covered_from_us, covered_until_us: the hours it closed; equal when none was new.
        hours_derived: hours it derived, late ones included.
        records: rows inserted.
        corrections: corrections booked.
        open_from_us: start of the first hour that is not recorded yet.
        problems: conflicts met while booking.
    """

    at_us: int
    covered_from_us: int
    covered_until_us: int
    hours_derived: int
    records: tuple[UsageRecord, ...] = ()
    corrections: tuple[UsageCorrection, ...] = ()
    open_from_us: int
    problems: tuple[Problem, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportReport:
    """What one import brought in.

    Args:
        path: the file as named.
        host: the machine it was filed under.
        readings: looks found in the file.
        finished, living, claims: finished rows, living contexts and lines of a pid map found.
        added: rows of the ledger that are new; known: rows that were there.
        unknown: (device, reason) where the dump says nothing about use.
        problems: what was imperfect.
    """

    path: str
    host: str
    readings: int
    finished: int
    living: int
    claims: int
    added: int
    known: int
    unknown: tuple[tuple[str, str], ...]
    problems: tuple[Problem, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Applied:
    """What ``apply`` did.

    Args:
        version: the version that now holds.
        changed: whether it is new; the same document applied again changes nothing.
        services, users, namespaces, hosts: how many rules and owners it has.
        problems: what it holds that this version does not act on.
    """

    version: PolicyVersion
    changed: bool
    services: int
    users: int
    namespaces: int
    hosts: int
    problems: tuple[Problem, ...]
