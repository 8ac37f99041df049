"""Whose a context is: by identity, by cgroup, by pid and time; and what could be the command's."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from gpuledger.accounting.ownership import Ownership, is_unnamed, is_unsized
from gpuledger.model.identity import IdentityText
from gpuledger.model.missing import Missing
from gpuledger.model.moments import SECOND_US
from gpuledger.model.quantities import Context
from gpuledger.model.receipt import Member, Membership, Ran

NAME = "gpuledger-run-0123456789abcdef"
RAN = Ran(command="x", pid=70, began_us=100 * SECOND_US, ended_us=110 * SECOND_US, wall_ms=10_000, status=0)
MEMBERSHIP = Membership(
    boot_id="boot",
    members=(Member(pid=70, start_ticks=7, born_us=100 * SECOND_US, seen_us=105 * SECOND_US, is_alive=False),),
    cgroup=NAME,
    blind_us=30_000,
    are_the_drivers_pids=True,
)
TEXTS = {
    "ours": IdentityText(cgroup=f"/a/{NAME}/b"),
    "near": IdentityText(cgroup=f"/a/{NAME}b"),
    "named": IdentityText(),
}
UNNAMED = "unattributed:between-samples"


def context(pid: int, start_s: float, ms: int, subject: str, ticks: int = 0, **words: Any) -> Context:
    """A settled context."""
    start_us = round(start_s * SECOND_US)
    given: dict[str, Any] = {
        "host": "box", "device": "GPU-1", "pid": pid, "subject": subject, "process": ("boot" if ticks else "", ticks),
        "spans": ((start_us, start_us + ms * 1000),), "settled": True, "context_ms": ms, "open": False,
        "started_at_us": start_us, "placed": "driver", "accounted": "yes", "peak_memory_mib": 1,
        "last_seen_us": start_us + ms * 1000, "evidence": (),
    }  # fmt: skip
    return Context(**given | words)


@pytest.mark.parametrize(
    ("one", "is_ours"),
    [
        (context(70, 101, 5, "named", 7), True),
        (context(70, 101, 5, "named", 8), False),
        (context(70, 101, 5, "named", 7, process=("before", 7)), False),
        (context(99, 101, 5, "ours", 1), True),
        (context(99, 101, 5, "near", 1), False),
        (context(70, 106, 5, UNNAMED), True),
        (context(70, 108, 5, UNNAMED), False),
        (context(70, 97, 5, UNNAMED), False),
        (context(70, 101, 5, "unattributed:pid-ambiguous"), False),
        (context(70, 101, 5, UNNAMED, placed="latest"), False),
    ],
)
def test_whose(one: Context, is_ours: bool) -> None:
    """The very process; whoever was born in the cgroup; the nameless with a pid that was ours then."""
    assert Ownership(RAN, MEMBERSHIP, TEXTS).is_ours(one) == is_ours


@pytest.mark.parametrize(
    ("one", "with_cgroup", "without"),
    [
        (context(99, 101, 59, UNNAMED), True, True),
        (context(99, 101, 60, UNNAMED), False, False),
        (context(99, 97, 5, UNNAMED), False, False),
        (context(99, 97, 5, UNNAMED, placed="latest"), True, True),
        (context(99, 101, 5, "named", 1), False, True),
        (context(99, 101, 0, UNNAMED, settled=False, started_at_us=Missing("-")), True, True),
    ],
)
def test_what_could_be_ours(one: Context, with_cgroup: bool, without: bool) -> None:
    """Short and late; a named one only where there is no cgroup whose name it lacks."""
    assert Ownership(RAN, MEMBERSHIP, TEXTS).could_be_ours(one) == with_cgroup
    bare = replace(MEMBERSHIP, cgroup=Missing("not made"))
    assert Ownership(RAN, bare, TEXTS).could_be_ours(one) == without


def test_other_peoples_pids_prove_nothing() -> None:
    """In a container only the cgroup does."""
    told = Ownership(RAN, replace(MEMBERSHIP, are_the_drivers_pids=False), TEXTS)
    assert not told.is_ours(context(70, 101, 5, "named", 7))
    assert told.is_ours(context(99, 101, 5, "ours", 1))


def test_in_the_time_of_the_command() -> None:
    """With some room where clocks disagree."""
    told = Ownership(RAN, MEMBERSHIP, TEXTS)
    early = context(9, 99, 500, UNNAMED)
    assert (told.overlaps(early), told.overlaps(early, SECOND_US)) == (False, True)
    assert told.overlaps(context(9, 90, 60_000, "named"))
    assert not told.overlaps(context(9, 110, 5, "named"))


def test_without_a_name_and_without_a_length() -> None:
    """A zero of a settled row is a length."""
    assert is_unnamed(context(9, 1, 1, UNNAMED))
    assert not is_unsized(context(9, 1, 0, "named"))
