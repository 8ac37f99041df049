"""Checks and their verdicts: what makes a command exit with 1, and what with 6."""

from __future__ import annotations

import pytest

from gpuledger.model.checks import Check, DoctorReport, Verdict, VerifyReport


def checks(*verdicts: Verdict) -> tuple[Check, ...]:
    return tuple(Check(name=f"check-{n}", verdict=verdict, sentence="s") for n, verdict in enumerate(verdicts))


@pytest.mark.parametrize(
    ("verdicts", "ok", "damaged"),
    [
        ((), True, False),
        ((Verdict.OK, Verdict.NOTE, Verdict.SKIPPED), True, False),
        ((Verdict.OK, Verdict.FOUND), False, False),
        ((Verdict.DAMAGED, Verdict.SKIPPED), False, True),
        ((Verdict.FOUND, Verdict.DAMAGED), False, True),
    ],
)
def test_the_worst_check_decides(verdicts: tuple[Verdict, ...], ok: bool, damaged: bool) -> None:
    """A note or a skipped check is nothing found; damage is told apart from a difference."""
    report = VerifyReport(ledger="x", at_us=0, checks=checks(*verdicts))
    assert (report.ok, report.damaged) == (ok, damaged)


def test_a_machine_is_well_when_nothing_was_found() -> None:
    """Notes alone do not make ``doctor`` exit with 1."""
    assert DoctorReport(host="box", at_us=0, checks=checks(Verdict.OK, Verdict.NOTE)).ok
    assert not DoctorReport(host="box", at_us=0, checks=checks(Verdict.OK, Verdict.FOUND)).ok
