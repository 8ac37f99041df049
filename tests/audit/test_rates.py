"""Rates held against what exists, and what exists against the rates."""

from __future__ import annotations

import os
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from gpuledger.audit.rates import audit_rates
from gpuledger.model.findings import AuditReport, Written
from gpuledger.model.missing import Missing
from gpuledger.model.rates import NO_RATES, RateCard, Rates

SHARED = Path(__file__).resolve().parents[3] / "shared" / "data"
NOW = 1000


def node(name: str, product: str, *, replicas: int = 1, pool: str = "", resource: str = "gpu") -> str:
    label = f"nvidia.com/{resource}"
    labels = f'{label}.product: "{product}", {label}.count: "2", {label}.replicas: "{replicas}"'
    labels += f", agentpool: {pool}" if pool else ""
    offered = f'{{{label}: "{2 * replicas}"}}'
    status = f"status: {{allocatable: {offered}, capacity: {offered}}}"
    return f"kind: Node\nmetadata: {{name: {name}, labels: {{{labels}}}}}\n{status}\n---\n"


WHOLE = node("a", "NVIDIA-H100-80GB", pool="whole")
BY_4 = node("b", "NVIDIA-H100-80GB-SHARED", replicas=4, pool="shared")
SLICES = node("c", "NVIDIA-A100-SXM4-80GB-MIG-1g.10gb", resource="mig-1g.10gb")


def card(pattern: str = "", meter: str = "gpu.reserved", line: int = 1, **words: Any) -> RateCard:
    return RateCard(meter=meter, rate=Decimal(1), unit="device-hour", class_pattern=pattern, line=line, **words)


def audited(text: str, *cards: RateCard, rates: Rates | Missing | None = None, **words: Any) -> AuditReport:
    given = Rates(currency="EUR", cards=cards) if rates is None else rates
    return audit_rates(given, [Written(path="n.yaml", text=text)], path="p.yaml", now_us=NOW, **words)


def verdicts(text: str, *cards: RateCard, **words: Any) -> list[str]:
    return [finding.check.verdict for finding in audited(text, *cards, **words).findings]


ALL = (card("H100*", pool="whole"), card("H100*", pool="shared", replicas=4), card("*/1g.10gb", meter="mig.memory"))


def test_one_rate_for_everything() -> None:
    """Whole, shared by four, and a slice by its memory: nothing to say, each with the card that prices it."""
    report = audited(WHOLE + BY_4 + SLICES, *ALL)
    assert report.findings == ()
    assert [(each.verdict, each.why) for each in report.looked if each.where.path == "n.yaml"] == [
        ("fine", "gpu.reserved pool whole class H100*"),
        ("fine", "gpu.reserved pool shared class H100* replicas 4"),
        ("fine", "mig.memory class */1g.10gb"),
    ]


@pytest.mark.parametrize(
    ("text", "cards", "struck"),
    [
        (WHOLE, (), ["no-rate"]),
        (WHOLE, (card("H100*", effective_from_us=NOW + 1),), ["no-rate"]),
        (WHOLE, (card("A100*"),), ["matches-nothing", "no-rate"]),
        (WHOLE, (card("H100*", pool="gold"),), ["matches-nothing", "no-rate"]),
        (BY_4, (card("H100*", replicas=8),), ["matches-nothing", "no-rate"]),
        (SLICES, (card("A100*"),), ["matches-nothing", "no-rate"]),
        (SLICES, (card("*/2g.20gb", meter="mig.memory"),), ["matches-nothing", "no-rate"]),
        (WHOLE, (card("H100*"), card("H*")), ["two-rates"]),
        (SLICES, (card("*/1g.10gb", meter="mig.memory"), card("A100*/*")), ["two-rates"]),
        (BY_4, (card("H100-80GB-SHARED"),), ["spelling", "no-rate"]),
        (WHOLE, (card("NVIDIA-H100-80GB"),), ["spelling", "no-rate"]),
        (WHOLE, (card("NVIDIA H100 80GB"),), ["spelling", "no-rate"]),
        (SLICES, (card("A100-SXM4-80GB-MIG-1g.10gb"),), ["spelling", "no-rate"]),
        (SLICES + node("d", "NVIDIA-H100-80GB-MIG-1g.10gb", resource="mig-1g.10gb"), ALL[2:], ["one-rate-for-parents"]),
        ('kind: Node\nmetadata: {name: n}\nstatus: {allocatable: {nvidia.com/gpu: "2"}}', (), ["class-unknown"]),
        ("kind: Node\nmetadata: {name: n}", (card("H100*"),), ["nothing-exists"]),
    ],
)  # fmt: skip
def test_what_does_not_fit(text: str, cards: tuple[RateCard, ...], struck: list[str]) -> None:
    """In both directions."""
    assert verdicts(text, *cards) == struck


def test_how_a_card_misses() -> None:
    """The finding names the cards of its class, and by what they miss it."""
    report = audited(
        BY_4, card("H100*", pool="whole", line=7), card("H100-80GB-SHARED", pool="shared", replicas=4, line=9)
    )
    (missing,) = [finding for finding in report.findings if finding.check.verdict == "no-rate"]
    assert "line 7 misses it by pool whole" in missing.evidence
    assert "line 9 misses it by its spelling H100-80GB-SHARED" in missing.evidence
    (spelling,) = [finding for finding in report.findings if finding.check.verdict == "spelling"]
    assert spelling.fix == 'Write class: "H100-80GB", with its pool and replicas.'


def test_pools_of_the_policy_go_before_labels() -> None:
    """As accounting has it."""
    assert verdicts(WHOLE, card("H100*", pool="gold"), pools={"a": "gold"}) == []


def test_replaced_and_other_cards_are_no_faults() -> None:
    """An older card of the same scope, and meters that nodes do not tell of."""
    tokens = card(meter="tokens.output", model_pattern="llama*")
    report = audited(WHOLE, card("H100*"), card("H100*", effective_from_us=5, line=2), tokens)
    assert report.findings == ()
    assert [each.verdict for each in report.looked] == ["replaced", "fine", "not-judged", "fine"]


def test_no_money_at_all() -> None:
    """Said so, it is fine; a policy without a word is asked."""
    assert verdicts(WHOLE, rates=Rates(never=True)) == []
    assert verdicts(WHOLE, rates=NO_RATES) == ["none"]
    assert not audited(WHOLE, rates=NO_RATES).found()


def test_bad_texts_are_unread() -> None:
    """Told; what could be read is judged."""
    report = audited(WHOLE + "a: [\n", card("H100*"))
    assert ([problem.code for problem in report.unread], report.findings) == (["not-yaml"], ())


def real(place: str, *cards: RateCard) -> list[tuple[str, str]]:
    """The audit of one real node."""
    if not SHARED.exists():
        if os.environ.get("CI"):
            pytest.fail("../shared/data is not there")
        pytest.skip("../shared/data is not there")
    text = (SHARED / "k8s" / place).read_text(encoding="utf-8")
    return [(finding.check.verdict, finding.message) for finding in audited(text, *cards).findings]


def test_real_nodes() -> None:
    """The T4 node is priced by its class; the A100 by each of its profiles; the slices of DRA by their product."""
    assert real("runai-samples/node_fraction_1_workload.yaml", card("Tesla-T4")) == []
    assert real("runai-samples/node_mig_3_instances.yaml", card("A100-SXM4-40GB/1g.5gb", meter="mig.memory")) == [
        ("no-rate", "A100-SXM4-40GB/2g.10gb has no rate.")
    ]
    assert real("runai-samples/node_mig_4_instances.yaml", card("A100-SXM4-40GB/*", meter="mig.memory")) == []
    assert real("dra/resourceslices_2x8_h100.yaml", card("H100-80GB-HBM3")) == []
    assert real("dra/resourceslices_2x8_h100.yaml", card("H100-80GB-HBM3-SHARED"))[0][0] == "spelling"


def test_a_rate_may_be_of_the_unknown_class() -> None:
    """Where a node does not tell its class, nobody can say that a card prices nothing."""
    bare = "kind: Node\nmetadata: {name: a}\nstatus: {allocatable: {nvidia.com/gpu: 8}}\n"
    report = audited(bare, card("H100*", replicas=1), card("H100*", replicas=4, line=2))
    assert [finding.check.verdict for finding in report.findings] == ["matches-nothing", "class-unknown"]
    assert [each.verdict for each in report.looked] == ["cannot-tell", "matches-nothing", "class-unknown"]


def test_devices_of_other_makers_are_told_as_not_priced() -> None:
    """Nobody takes a cluster of both for priced whole."""
    other = "kind: Node\nmetadata: {name: m}\nstatus: {allocatable: {amd.com/gpu: '8'}}\n---\n"
    report = audited(WHOLE + other, ALL[0])
    assert report.findings == ()
    assert dict(report.facts)["not priced on m"] == "8 x amd.com/gpu"


def test_a_template_of_nodes_is_unread() -> None:
    """What it will say is not known."""
    text = "{{ if .Values.x }}\nkind: Node\nmetadata: {labels: {nvidia.com/gpu.product: {{ .Values.p }} }}\n{{ end }}\n"
    report = audited(text, ALL[0])
    assert [problem.code for problem in report.unread] == ["template"]
    assert not any("UNKNOWN" in value for _, value in report.facts)
