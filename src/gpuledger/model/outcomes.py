"""What a verb that writes has done: a pass, an import, an applied policy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gpuledger.model.missing import Missing
from gpuledger.model.problem import Problem
from gpuledger.model.rows import PolicyVersion, UsageCorrection, UsageRecord
from gpuledger.model.workload_rows import Hold, WorkloadEvent


@dataclass(frozen=True, slots=True, kw_only=True)
class MeterReport:
    """What one metering pass did.

    Args:
        at_us: the time it ran for.
        covered_from_us, covered_until_us: the hours it closed; equal when none was new.
        hours_derived: hours it derived of processes, late ones included.
        reserved_hours_derived: hours it derived of reserved time, late ones included: those from the first that new
            events can have changed on.
        records: rows inserted; their number is at hand, they are read while the ledger is open.
        corrections: corrections booked.
        open_from_us: start of the first hour that is not recorded yet.
        problems: conflicts met while booking.
        late: differences of reserved time in final hours, which only ``correct`` books.
    """

    at_us: int
    covered_from_us: int
    covered_until_us: int
    hours_derived: int
    reserved_hours_derived: int = 0
    records: Sequence[UsageRecord] = ()
    corrections: tuple[UsageCorrection, ...] = ()
    open_from_us: int
    problems: tuple[Problem, ...] = ()
    late: int = 0


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
class HistoryReport:
    """What one import of a history brought in.

    Args:
        path: the file as named.
        source: who says so.
        rows_read: rows of the file that were understood.
        added, known: transitions that are new, and that were there already, conflicts included.
        conflicts: transitions that the ledger knows with other content; the first stays.
        since_us, until_us: the first and the last moment it tells of; Missing where it tells of none.
        running, waiting: workloads that it leaves open, holding their devices and waiting for them.
        as_of_us: until when it can tell of these; Missing where nothing is open, or nothing tells.
        by: what it can be grouped by: the first of user, team and project that it names, else the class.
        problems: what was imperfect, by line.
    """

    path: str
    source: str
    rows_read: int
    added: int
    known: int
    conflicts: int
    since_us: int | Missing
    until_us: int | Missing
    running: int
    waiting: int
    as_of_us: int | Missing
    by: str = "class"
    problems: tuple[Problem, ...] = ()

    @property
    def codes(self) -> tuple[str, ...]:
        """The codes of its problems, each once, in the order in which they were met."""
        return tuple(dict.fromkeys(problem.code for problem in self.problems))


@dataclass(frozen=True, slots=True, kw_only=True)
class Applied:
    """What ``apply`` did.

    Args:
        version: the version that now holds.
        changed: whether it is new; the same document applied again changes nothing.
        services, users, namespaces, hosts: how many rules and owners it has.
        quotas, accounts: how many entries of quotas, and accounts of the share tree.
        problems: what it holds that this version does not act on, or that binds nobody.
    """

    version: PolicyVersion
    changed: bool
    services: int
    users: int
    namespaces: int
    hosts: int
    quotas: int = 0
    accounts: int = 0
    problems: tuple[Problem, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TransitionReport:
    """What came of transitions: all of them are in the ledger, or none.

    Args:
        added: events that are new, with their reference, in the order of the chain.
        known: (workload, event id) of those that were there already, with the same content.
        holds: what was taken, confirmed and released because of them.
        problems: of an importer's: what breaks a rule and is kept, and what was left out.
    """

    added: tuple[WorkloadEvent, ...] = ()
    known: tuple[tuple[str, str], ...] = ()
    holds: tuple[Hold, ...] = ()
    problems: tuple[Problem, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CorrectReport:
    """What ``correct`` did.

    Args:
        done: whether it was booked; else it would be.
        why, by: the reason and who decided it.
        corrections: of final hours of reserved time.
        ran: the metering pass that ran first; Missing where none did.
    """

    done: bool
    why: str
    by: str
    corrections: tuple[UsageCorrection, ...]
    ran: MeterReport | Missing
