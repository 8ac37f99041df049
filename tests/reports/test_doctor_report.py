"""The doctor report: what is missing, and what mends it."""

from __future__ import annotations

from gpuledger.model.checks import Check, DoctorReport, Verdict
from gpuledger.reports import doctor_report


def report(verdict: Verdict) -> DoctorReport:
    return DoctorReport(
        host="box", at_us=0, checks=(Check(name="driver", verdict=verdict, sentence="no driver", hint="install it"),)
    )


def test_missing_parts_are_named_with_their_cure(printed) -> None:
    """The hint stands below the check, the verdict at the end."""
    text = printed(doctor_report.to_table(report(Verdict.FOUND)))
    assert "what helps: install it" in text
    assert text.endswith("Something is missing; see above.")
    assert printed(doctor_report.to_table(report(Verdict.NOTE))).endswith("Nothing is missing.")


def test_json_and_csv() -> None:
    """Programs get the same checks."""
    assert doctor_report.to_json(report(Verdict.FOUND))["ok"] is False
    assert doctor_report.to_csv(report(Verdict.FOUND)).splitlines()[1] == "driver,found,no driver,,install it"
