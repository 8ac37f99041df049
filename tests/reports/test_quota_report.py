"""Quotas as a table, as JSON, as CSV."""

from __future__ import annotations

import csv
import io
from dataclasses import replace
from fractions import Fraction

import pytest

from gpuledger.model.missing import Missing
from gpuledger.model.quotas import Bound, Holder, Per, Quota, QuotaReport, QuotaUse, Scope
from gpuledger.model.reasons import ReservedReason
from gpuledger.model.reserved import ReservedGap
from gpuledger.reports import quota_report

HOLDERS = tuple(
    Holder(
        workload=f"train-{n}", user="al", team="vision", class_name="H100-80GB", amount=Fraction(1, 2), since_us=n,
        ends_us=3_600_000_000, lapses_us=Missing("-"),
    )
    for n in range(5)
)  # fmt: skip
ODD = replace(HOLDERS[0], workload="odd", amount=Missing("nothing says on how many devices"))
HOURS = QuotaUse(
    bound=Bound(
        quota=Quota(scope=Scope.TEAM, name="vision", per=Per.MONTH, limit=Fraction(2), class_glob="H100*"),
        name="vision",
    ),
    since_us=0, until_us=60_000_000, used=Fraction(9, 4), promised=Fraction(1, 3), asked=Fraction(0), fits=True,
    holders=HOLDERS, unknown=(ODD,), frees_us=0,
)  # fmt: skip
DEVICES = replace(
    HOURS,
    bound=Bound(
        quota=Quota(scope=Scope.ROLE, name="student", per=Per.AT_ONCE, limit=Fraction(3)), name="student", user="al"
    ),
    used=Fraction(5, 2), promised=Fraction(0), unknown=(),
)  # fmt: skip
GAP = ReservedGap(
    reason=ReservedReason.CONTROLLER_SILENT, what="ctl", seconds=90, since_us=0, until_us=1, detail="1 open workload"
)
REPORT = QuotaReport(at_us=60_000_000, version=3, uses=(DEVICES, HOURS), unknown=(GAP,), told=True)


@pytest.mark.parametrize("width", [80, 120])
def test_a_line_a_quota_and_who_is_over_plainly(printed, width: int) -> None:
    """No figure is cut, whatever the width; what nobody told stands beside it."""
    text = printed(quota_report.to_table(REPORT), width)
    assert "role student of al" in text.replace("\n", " ").replace("  ", " ") or width == 80
    for figure in ("5/2", "1/2", "2.250", "0.333", "-0.583"):
        assert figure in text
    assert "team vision, H100*: 2 device-hours a month: 2.250 used" in " ".join(text.split())
    assert "controller-silent" in text
    assert "odd" in text


def test_what_may_count_is_no_amount(printed) -> None:
    """A device of nobody knows which class stands by the quota of a class, and not with its number."""
    any_card = replace(HOURS, holders=(), unknown=(replace(HOLDERS[0], class_name="gpu"),))
    text = printed(quota_report.to_table(replace(REPORT, uses=(any_card,))), 120)
    assert "train-0 (UNKNOWN)" in text


def test_json_and_csv(printed) -> None:
    """The contract: exact shares, hours with three decimals."""
    first, second = quota_report.to_json(REPORT)["quotas"]  # type: ignore[misc]
    assert (first["scope"], first["user"], first["used"], first["over"]) == ("role", "al", "5/2", False)
    assert (second["unit"], second["per"], second["used"], second["over"]) == ("device-hours", "month", "2.250", True)
    assert [each["workload"] for each in second["not_counted"]] == ["odd"]
    rows = list(csv.DictReader(io.StringIO(quota_report.to_csv(REPORT))))
    assert [(row["name"], row["used"], row["left"], row["over"], row["holders"]) for row in rows] == [
        ("student", "5/2", "1/2", "0", "5"), ("vision", "2.250", "-0.583", "1", "5"),
    ]  # fmt: skip


def test_nobody_told_is_unknown_and_no_quotas_say_so(printed) -> None:
    """Never a zero."""
    silent = replace(REPORT, told=False, uses=(replace(DEVICES, used=Fraction(0), holders=()),), unknown=())
    assert printed(quota_report.to_table(silent)).count("UNKNOWN") >= 3
    assert quota_report.to_json(silent)["quotas"][0]["used"] is None  # type: ignore[index]
    assert next(csv.DictReader(io.StringIO(quota_report.to_csv(silent))))["used"] == ""
    none = replace(REPORT, uses=(), unknown=(), version=0)
    text = printed(quota_report.to_table(none))
    assert "no quotas apply" in text
    assert "no policy is in force" in text
    assert quota_report.to_json(none)["policy"] is None
