"""``explain``: from a total, a line or a record down to the driver's own row."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from gpuledger.errors import Misconfigured, NotFound
from gpuledger.model.explanation import Explanation
from gpuledger.model.rows import DriverRecord, ProcessIdentity, Sighting, UsageRecord
from gpuledger.operations.explain import explain
from gpuledger.operations.meter import meter
from gpuledger.operations.usage import usage

EVERY_STORE = True


def asked(box, ref: str, until: float = 130, **words: str) -> Explanation:
    return explain(
        box.ledger, ref, meter=words.get("meter", "gpu.context"), since_us=box.at(0), until_us=box.at(until),
        now_us=box.at(130),
    )  # fmt: skip


def all_refs(node: Explanation) -> Iterator[str]:
    yield from node.refs
    for child in node.children:
        yield from all_refs(child)


def figure(node: Explanation, name: str) -> object:
    return dict(node.figures)[name]


@pytest.fixture
def metered(box):
    """The morning, its two hours recorded, ten minutes after still open."""
    box.tell_a_morning()
    meter(box.ledger, now_us=box.at(126), writer="box.meter")
    return box


def test_a_record_leads_to_its_context_and_to_the_drivers_row(metered) -> None:
    """And to the identity that named it."""
    record = next(row for row in metered.ledger.scan(UsageRecord) if row.quantity == 2_400_000)
    node = asked(metered, record.ref)
    assert node.refs == (record.ref,)
    (context,) = node.children
    assert "settled by the driver: unit:chat.service" in context.title
    kinds = {ref.partition(":")[0] for ref in all_refs(context)}
    assert kinds == {"driver", "identity"}


@pytest.mark.parametrize("kind", [DriverRecord, Sighting])
def test_a_row_of_evidence_leads_to_the_context_it_is_part_of(metered, kind) -> None:
    """Upwards from the driver's row, or from a look."""
    row = next(iter(metered.ledger.scan(kind)))
    (context,) = asked(metered, row.ref).children
    assert row.ref in set(all_refs(context))


def test_an_identity_shows_what_was_read(metered) -> None:
    """Its text, and how it is known."""
    row = next(iter(metered.ledger.scan(ProcessIdentity)))
    assert figure(asked(metered, row.ref), "unit") == "chat.service"


@pytest.mark.parametrize("ref", ["service:unit:chat.service", "user:al", "host:box", f"device:{'GPU'}", "unattributed"])
@pytest.mark.parametrize("is_metered", [True, False])
def test_a_line_of_usage_adds_up_to_what_usage_printed(box, ref: str, is_metered: bool) -> None:
    """Recorded or provisional."""
    box.tell_a_morning()
    if is_metered:
        meter(box.ledger, now_us=box.at(126), writer="box.meter")
    by = {"service": "service", "user": "user", "host": "host", "device": "device"}.get(
        ref.partition(":")[0], "service"
    )
    report = usage(
        box.ledger, meter="gpu.context", by=(by,), since_us=box.at(0), until_us=box.at(130), now_us=box.at(130)
    )
    if by == "device":
        ref = f"device:{box.gpu}"
    wanted = {f"{by}:{row.key[0]}": row.quantity for row in report.rows} | {
        "unattributed": sum(line.quantity for line in report.unattributed)
    }
    assert figure(asked(box, ref), "quantity") == wanted[ref]


def test_a_subject_and_a_cause_are_lines_too(metered) -> None:
    """As the reference says: `unit:...`, `unattributed:CAUSE`."""
    assert figure(asked(metered, "unit:tts.service"), "quantity") == 1_800_000
    assert figure(asked(metered, "unattributed:between-samples"), "quantity") == 600


def test_the_total_is_explained_with_its_parts(metered) -> None:
    """Recorded hours and what is derived at once; nothing is missing."""
    node = asked(metered, "total")
    assert figure(node, "total") == 5_400_600
    assert sum(int(figure(child, "quantity")) for child in node.children) == 5_400_600  # type: ignore[call-overload]


def test_long_lists_end_with_the_size_of_the_rest(box) -> None:
    """Twenty-five records are twenty nodes and one that adds the others up."""
    box.append(box.device(0), box.naming(0, 60))
    box.append(*(row for pid in range(1, 26) for row in (
        box.named(pid, pid, f"job{pid}", seen=pid + 1), box.settled(pid, pid + 1, 1000 * pid, read=60),
    )))  # fmt: skip
    meter(box.ledger, now_us=box.at(66), writer="box.meter")
    node = asked(box, "user:al", until=60)
    assert len(node.children) == 21
    assert figure(node, "quantity") == 1000 * sum(range(1, 26))
    assert figure(node.children[-1], "quantity") == 1000 * sum(range(1, 6))


@pytest.mark.parametrize(
    ("ref", "kind", "code"),
    [
        ("nonsense", Misconfigured, "bad-ref"),
        ("", Misconfigured, "bad-ref"),
        ("driver:box.agent/999", NotFound, "no-such-row"),
        ("service:nobody", NotFound, "nothing-to-explain"),
        ("unattributed:watch-gap", NotFound, "nothing-to-explain"),
    ],
)
def test_what_is_not_there_is_said(metered, ref: str, kind: type[Exception], code: str) -> None:
    """No empty tree that reads as an answer."""
    with pytest.raises(kind) as refused:
        asked(metered, ref)
    assert refused.value.code == code  # type: ignore[attr-defined]


def test_a_meter_that_does_not_exist_is_refused(metered) -> None:
    """Before anything is looked up."""
    with pytest.raises(Misconfigured) as refused:
        asked(metered, "total", meter="gpu.power")
    assert refused.value.code == "unknown-meter"
