"""The verify report: one verdict over all checks."""

from __future__ import annotations

import pytest

from gpuledger.model.checks import Check, Verdict, VerifyReport
from gpuledger.reports import verify_report


def report(verdict: Verdict, root: str = "ab" * 32) -> VerifyReport:
    checks = (Check(name="chains", verdict=verdict, sentence="3 chains"),)
    return VerifyReport(ledger="/l.db", at_us=0, checks=checks, counts=(("driver", 1234), ("seal", 0)), root=root)


@pytest.mark.parametrize(
    ("verdict", "said", "ok", "damaged"),
    [
        (Verdict.OK, "Every check passed.", True, False),
        (Verdict.NOTE, "Every check passed.", True, False),
        (Verdict.SKIPPED, "Every check that could be made passed; see above for what could not.", True, False),
        (Verdict.FOUND, "Something does not agree; see above.", False, False),
        (Verdict.DAMAGED, "The ledger is damaged.", False, True),
    ],
)
def test_the_verdict_is_a_sentence(verdict: Verdict, said: str, ok: bool, damaged: bool, printed) -> None:
    """What a check came to decides the last sentence and the exit status."""
    text = printed(verify_report.to_table(report(verdict)))
    assert said in text
    assert "Rows: 1,234 driver\n" in text
    assert "ab" * 32 in text
    document = verify_report.to_json(report(verdict))
    assert (document["ok"], document["damaged"]) == (ok, damaged)
    assert document["rows"] == {"driver": 1234, "seal": 0}


def test_an_unsealed_ledger_has_no_root(printed) -> None:
    """Nothing sealed is said, and null in JSON."""
    assert "Nothing is sealed yet." in printed(verify_report.to_table(report(Verdict.OK, "")))
    assert verify_report.to_json(report(Verdict.OK, ""))["root"] is None
    assert verify_report.to_csv(report(Verdict.OK)).splitlines()[1] == "chains,ok,3 chains,,"
