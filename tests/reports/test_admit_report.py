"""The answer of ``admit`` as a table, as JSON, as CSV."""

from __future__ import annotations

import csv
import io
from dataclasses import replace
from fractions import Fraction

import pytest

from gpuledger.model.lifecycle import Placement
from gpuledger.model.missing import Missing
from gpuledger.model.quotas import (
    NO_END,
    AdmitReport,
    AdmitRequest,
    Bound,
    FullDevice,
    Holder,
    Per,
    Quota,
    QuotaUse,
    Scope,
)
from gpuledger.model.workload_rows import Hold
from gpuledger.reports import admit_report

HOLDER = Holder(
    workload="train-1", user="bo", team="vision", class_name="H100-80GB", amount=Fraction(2), since_us=1_000_000,
    ends_us=3_600_000_000, lapses_us=Missing("-"), devices=("GPU-a", "GPU-b"),
)  # fmt: skip
USE = QuotaUse(
    bound=Bound(quota=Quota(scope=Scope.TEAM, name="vision", per=Per.AT_ONCE, limit=Fraction(3)), name="vision"),
    since_us=0, until_us=0, used=Fraction(2), promised=Fraction(0), asked=Fraction(2), fits=False, holders=(HOLDER,),
    frees_us=3_600_000_000,
)  # fmt: skip
HOURS = replace(
    USE,
    bound=Bound(
        quota=Quota(scope=Scope.USER, name="al", per=Per.WEEK, limit=Fraction(5), class_glob="H*"), name="al"
    ),
    used=Fraction(1), promised=Fraction(1, 2), asked=NO_END, fits=True, holders=(), frees_us=0,
)  # fmt: skip
FULL = FullDevice(device="GPU-a", asked=Fraction(1, 2), holders=(replace(HOLDER, amount=Fraction(1)),), frees_us=NO_END)
REQUEST = AdmitRequest(workload="w", placement=Placement(class_name="H100-80GB", devices=("GPU-a",)), user="al")
NO = AdmitReport(
    request=REQUEST, at_us=0, user="al", team="vision", roles=("student",), admitted=False,
    hold=Missing("nothing was taken"), ends_us=NO_END, uses=(USE, HOURS), full=(FULL,),
    frees_us=Missing("x gave no end"),
)  # fmt: skip
HOLD = Hold(
    writer="b.admit", number=2, workload="w", sequence=1, change="taken", at_us=0, placement="p",
    expires_at_us=600_000_000,
)  # fmt: skip
YES = replace(NO, admitted=True, uses=(replace(USE, fits=True), HOURS), full=(), hold=HOLD, frees_us=0)


@pytest.mark.parametrize("width", [80, 120])
def test_a_no_says_why_who_holds_it_and_when(printed, width: int) -> None:
    """Every reason, every holder once, and the earliest place or why it is not known."""
    text = " ".join(printed(admit_report.to_table(NO), width).split())
    assert text.startswith("no w: 1 x H100-80GB for user al, team vision")
    assert "team vision: 3 devices at once, 2 used, 2 more asked for" in text
    assert "GPU-a is held by train-1 (1, since 1970-01-01T00:00:01Z): 1/2 more is too much" in text
    assert "earliest place: UNKNOWN (x gave no end)" in text
    assert text.count("1970-01-01T01:00:00Z") == 1
    assert "UNKNOWN" in text
    known = " ".join(printed(admit_report.to_table(replace(NO, frees_us=3_600_000_000)), width).split())
    assert "earliest place: 1970-01-01T01:00:00Z, if who holds it ends when it said" in known


def test_a_yes_says_until_when(printed) -> None:
    """Held now, held already, only asked, or held for good."""
    assert "held until 1970-01-01T00:10:00Z" in printed(admit_report.to_table(YES), 120)
    assert "held already until" in printed(admit_report.to_table(replace(YES, known=True)), 120)
    assert "nothing was taken" in printed(admit_report.to_table(replace(YES, is_check=True)), 120)
    kept = replace(YES, known=True, hold=replace(HOLD, expires_at_us=Missing("confirmed")))
    assert "it holds already" in printed(admit_report.to_table(kept), 120)
    assert "Why not" not in printed(admit_report.to_table(YES))


def test_json_is_a_contract() -> None:
    """Answer, hold, every quota, every reason."""
    no = admit_report.to_json(NO)
    assert (no["admitted"], no["hold"], no["frees"]) == (False, None, None)
    assert no["missing"] == {"ends": "nobody said when it will be done", "frees": "x gave no end"}
    assert no["reasons"] == list(NO.reasons)
    assert [(use["fits"], use["asked"]) for use in no["quotas"]] == [(False, "2"), (True, None)]  # type: ignore[index,union-attr]
    assert no["full_devices"][0]["holders"][0]["workload"] == "train-1"  # type: ignore[index,call-overload]
    yes = admit_report.to_json(YES)
    assert yes["hold"] == {"ref": "hold:b.admit/2", "change": "taken", "expires": "1970-01-01T00:10:00Z"}
    assert (yes["devices"], yes["frees"]) == (["GPU-a"], None)


def test_csv_has_a_row_for_each_quota_and_full_device() -> None:
    """What is not known is empty."""
    rows = list(csv.DictReader(io.StringIO(admit_report.to_csv(NO))))
    assert [(row["of"], row["used"], row["asked"], row["fits"]) for row in rows] == [
        ("team vision", "2", "2", "0"), ("user al", "1.000", "", "1"), ("device GPU-a", "1", "1/2", "0"),
    ]  # fmt: skip
