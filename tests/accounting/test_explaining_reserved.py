"""Nodes of reserved time: what each says, and where it leads."""

from __future__ import annotations

from fractions import Fraction

from gpuledger.accounting.explaining_reserved import (
    event_node,
    expected_node,
    hold_node,
    line_node,
    placement_node,
    record_node,
    rest_node,
)
from gpuledger.accounting.owners import Owner
from gpuledger.model.meters import GPU_RESERVED
from gpuledger.model.missing import Missing
from gpuledger.model.rows import UsageCorrection, UsageRecord
from gpuledger.model.workload_rows import ExpectedEnd, Hold, PlacementRow, WorkloadEvent

OWNER = Owner(
    service="s", user="al", team="vision", project="-", namespace="-", workload="train", subject="workload:train"
)
PLACE = PlacementRow(
    writer="w", number=1, placement="p", class_name="H100", region="eu", machine="n1", pool="", devices='["GPU-a"]',
    count=1, share_num=1, share_den=3,
)  # fmt: skip


def test_a_record_says_what_a_second_counts() -> None:
    """And when it is final."""
    row = UsageRecord(
        writer="box.meter", number=4, meter="gpu.reserved", hour_us=0, host="n1", device="placement:p", subject="s",
        context="reserved", quantity=60, evidence_count=2, evidence_hash="ab", recorded_at_us=9,
    )  # fmt: skip
    node = record_node(row, PLACE, OWNER, final_from_us=Missing("no pass"), children=[rest_node(3, "events")])
    assert node.refs == ("record:box.meter/4",)
    assert dict(node.figures)["each_second_counts"] == "1/3"
    assert node.children[0].title == "and 3 more events"


def test_a_correction_says_why() -> None:
    """Its reason is in the title."""
    row = UsageCorrection(
        meter="gpu.reserved", hour_us=0, host="n1", device="placement:p", subject="s", correction_number=2, delta=-5,
        reason="late-evidence: the log (al)", evidence_count=2, evidence_hash="ab", recorded_at_us=9,
    )  # fmt: skip
    node = record_node(row, PLACE, OWNER, final_from_us=0, children=[])
    assert "late-evidence: the log (al)" in node.title
    assert node.refs == ()


def test_an_event_that_is_void_says_so() -> None:
    """It stands in the ledger and does not count."""
    row = WorkloadEvent(
        writer="w", number=2, workload="train", event_id="e", sequence=1, state="running", at_us=0, recorded_at_us=0,
        source="cp", subject="s", requested_class="H200", placement="p",
    )  # fmt: skip
    assert "void" in event_node(row, OWNER, stands=False).title
    node = event_node(row, OWNER)
    assert "void" not in node.title
    assert dict(node.figures)["requested_class"] == "H200"


def test_a_placement_and_a_hold_say_what_they_are() -> None:
    """Devices by UUID where they are known."""
    assert dict(placement_node(PLACE).figures)["devices"] == "GPU-a"
    hold = Hold(workload="train", sequence=1, change="taken", at_us=0, placement="p", expires_at_us=60_000_000)
    assert dict(hold_node(hold).figures)["expires_at"] == "1970-01-01T00:01:00Z"
    end = expected_node(ExpectedEnd(workload="train", sequence=1, at_us=0, until_us=60_000_000))
    assert (end.title, dict(end.figures)["until"]) == ("expected end of train", "1970-01-01T00:01:00Z")


def test_a_line_is_in_the_unit_of_the_product() -> None:
    """Three decimals, and the seconds beside them."""
    node = line_node(
        "team:vision", GPU_RESERVED, since_us=0, until_us=1, seconds=10, product=Fraction(10, 3), due=4, children=[]
    )  # fmt: skip
    assert dict(node.figures) == {"device-seconds": "3.333", "seconds": 10, "seconds_not_recorded_yet": 4}
