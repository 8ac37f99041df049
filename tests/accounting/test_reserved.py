"""Reserved time rolled up: exact products by every grouping, and what was owned beside it."""

from __future__ import annotations

import json
from fractions import Fraction
from typing import Any

import pytest

from gpuledger.accounting.owners import Naming
from gpuledger.accounting.reserved import cut, group_of, in_order, parse_reserved_by, roll_up_reserved
from gpuledger.errors import Misconfigured
from gpuledger.model.identity import IdentityText
from gpuledger.model.meters import CPU_RESERVED, GPU_RESERVED, MIG_MEMORY
from gpuledger.model.missing import Missing
from gpuledger.model.moments import HOUR_US
from gpuledger.model.policy import HostOwner, Policy, UserOwner
from gpuledger.model.reasons import ReservedReason
from gpuledger.model.reserved import OwnedTime, ReservedAmount, ReservedGap, ReservedReport
from gpuledger.model.workload_rows import PlacementRow

TEXTS = {
    "s1": IdentityText(workload="train", user="al", team="vision", project="p", labels='{"qos":"LS"}'),
    "s2": IdentityText(workload="chat", user="bo"),
}
POLICY = Policy(
    effective_from_us=0, users={"bo": UserOwner(team="nlp")}, hosts={"n1": HostOwner(owner="prof-x")}
)  # fmt: skip


def placed(
    machine: str = "n1", count: int = 1, share: str = "1", devices: tuple[str, ...] = (), **words: Any
) -> PlacementRow:
    of = Fraction(share)
    row: dict[str, Any] = {
        "placement": f"{machine}{count}{share}", "class_name": "H100", "region": "", "machine": machine, "pool": "",
        "devices": json.dumps(devices), "count": count, "share_num": of.numerator, "share_den": of.denominator,
    }  # fmt: skip
    return PlacementRow(**row | words)


def amount(
    subject: str = "s1",
    seconds: int = 3600,
    placement: PlacementRow | None = None,
    *,
    at_us: int = 0,
    provisional: bool = False,
) -> ReservedAmount:
    return ReservedAmount(
        subject=subject, placement=placement or placed(), at_us=at_us, seconds=seconds, provisional=provisional
    )  # fmt: skip


def rolled(*amounts: ReservedAmount, by: str = "", meter: Any = GPU_RESERVED, **words: Any) -> ReservedReport:
    return roll_up_reserved(
        meter=meter, by=parse_reserved_by(by), since_us=0, until_us=24 * HOUR_US, amounts=amounts,
        naming=Naming(texts=TEXTS, versions=[(0, POLICY)]), texts=TEXTS, **words,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("by", "first", "second"),
    [
        ("workload", "train", "chat"),
        ("user", "al", "bo"),
        ("team", "vision", "nlp"),
        ("project", "p", "-"),
        ("subject", "workload:train", "workload:chat"),
        ("class", "H100", "L4"),
        ("region", "eu", "-"),
        ("host", "n1", "n2"),
        ("host-owner", "prof-x", "-"),
        ("label:qos", "LS", "-"),
        ("hour", "1970-01-01T00:00:00Z", "1970-01-01T05:00:00Z"),
    ],
)
def test_every_grouping_has_its_key(by, first, second) -> None:
    """The control plane's own word, the placement's, or the policy's."""
    one = amount(placement=placed(region="eu"))
    two = amount("s2", 60, placed("n2", class_name="L4"), at_us=5 * HOUR_US)
    assert [row.key for row in rolled(one, two, by=by).rows] == [(first,), (second,)]


def test_products_are_exact() -> None:
    """Seconds times devices times share, no float and no rounding: sevenths add up."""
    sevenths = [amount(f"x{number}", 3600, placed(share="1/7")) for number in range(7)]
    assert rolled(*sevenths).total == 3600
    assert rolled(amount(placement=placed(count=2, share="1/3"))).total == 2400


def test_a_device_has_its_part() -> None:
    """Of two devices each holds half of the product; without UUIDs it stands under a dash."""
    rows = rolled(amount(placement=placed(devices=("GPU-a", "GPU-b"), count=2)), amount("s2", 60), by="device").rows
    assert {row.key[0]: row.quantity for row in rows} == {"GPU-a": 3600, "GPU-b": 3600, "-": 60}


def test_what_is_taken_back_whole_leaves_no_row() -> None:
    """A record and the correction that undoes it."""
    assert rolled(amount(), amount(seconds=-3600), by="host").rows == ()


def test_provisional_is_told_apart() -> None:
    """As a product too."""
    report = rolled(amount(), amount(seconds=30, placement=placed(share="1/2"), provisional=True))
    assert (report.total, report.provisional) == (3615, 15)


def test_owned_stands_beside_only_where_devices_are_known() -> None:
    """By place and time; by user nobody owns."""
    owned = [OwnedTime(host="n1", device="GPU-a", class_name="H100", since_us=0, until_us=2 * HOUR_US)]
    assert [row.owned for row in rolled(amount(), by="host", owned=owned).rows] == [7200]
    assert [row.owned for row in rolled(amount(), by="host-owner,hour", owned=owned).rows] == [3600]
    assert all(isinstance(row.owned, Missing) for row in rolled(amount(), by="user", owned=owned).rows)
    other = rolled(amount(placement=placed("n2")), by="host", owned=owned).rows
    assert all(isinstance(row.owned, Missing) for row in other)
    assert isinstance(rolled(amount(), meter=CPU_RESERVED, owned=owned).rows[0].owned, Missing)


def test_all_that_is_owned_is_the_same_by_every_grouping_of_places() -> None:
    """Also where nothing of it was reserved: such places are told, most first; of times and people they are not."""
    owned = [
        OwnedTime(host=host, device=f"GPU-{host}", class_name=name, since_us=0, until_us=hours * HOUR_US)
        for host, name, hours in (("n1", "H100", 2), ("n2", "L4", 1), ("n3", "L4", 3))
    ]
    for by, idle in (
        ("host", (("n3",), ("n2",))), ("class", (("L4",),)), ("device", (("GPU-n3",), ("GPU-n1",), ("GPU-n2",))),
        ("host-owner,class", (("-", "L4"),)), ("hour", ()), ("", ()),
    ):  # fmt: skip
        report = rolled(amount(), by=by, owned=owned)
        assert report.owned == 6 * 3600
        assert tuple(key for key, _ in report.idle) == idle
    assert isinstance(rolled(amount(), by="user", owned=owned).owned, Missing)
    assert rolled(amount(), by="user", owned=owned).idle == ()
    assert rolled(by="host", owned=owned, told=False).idle == ()


def test_memory_of_slices_is_in_gib_hours() -> None:
    """20 GiB for half an hour are 10."""
    report = rolled(amount(seconds=1800, placement=placed(class_name="A100/3g.20gb")), meter=MIG_MEMORY)
    assert (report.unit, report.total) == ("GiB-hours", 10)


@pytest.mark.parametrize("by", ["planet", "label:", "user,user"])
def test_what_is_no_grouping_is_refused(by) -> None:
    """With the words that are."""
    with pytest.raises(Misconfigured, match=r"group|twice"):
        parse_reserved_by(by)


def test_a_span_is_cut_at_whole_steps() -> None:
    """And not at all without a step."""
    assert list(cut(5, 25, step_us=10)) == [(5, 10), (10, 20), (20, 25)]
    assert list(cut(5, 25, step_us=0)) == [(5, 25)]


def test_the_largest_gap_comes_first() -> None:
    """Whatever its sign."""

    def gap(seconds: int) -> ReservedGap:
        return ReservedGap(
            reason=ReservedReason.LATE_EVIDENCE, what="a", seconds=seconds, since_us=0, until_us=1, detail=""
        )  # fmt: skip

    assert [one.seconds for one in in_order([gap(5), gap(-9), gap(7)])] == [-9, 7, 5]


def test_a_group_can_be_asked_of_one_amount() -> None:
    """What explain needs to find the records behind a line."""
    finds = group_of(("team", "host"), Naming(texts=TEXTS), TEXTS)
    assert finds(amount()) == ("vision", "n1")
