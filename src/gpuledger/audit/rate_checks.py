"""The rules of ``audit rates``: one rate for everything that exists, and nothing priced that does not."""

from __future__ import annotations

from gpuledger.model.findings import AuditCheck, Level

NO_RATE = AuditCheck(
    id="rates/no-rate",
    verdict="no-rate",
    rule="Each class, profile and pool that exists has a rate.",
    fix="Add a card for it, or say money: never.",
    level=Level.ERROR,
)
TWO_RATES = AuditCheck(
    id="rates/two-rates",
    verdict="two-rates",
    rule="No class, profile and pool has two rates.",
    fix="Narrow one of the cards by pool, class or replicas; gpuledger apply refuses the policy as it is.",
    level=Level.ERROR,
)
MATCHES_NOTHING = AuditCheck(
    id="rates/matches-nothing",
    verdict="matches-nothing",
    rule="Each rate prices something that exists.",
    fix="Mend its class, pool or replicas, or remove it.",
    level=Level.ERROR,
)
SPELLING = AuditCheck(
    id="rates/spelling",
    verdict="spelling",
    rule="Cards name classes as accounting does: without NVIDIA, without -SHARED, a MIG profile after a slash.",
    fix="Write the class as it is shown here; what is shared is told by pool and replicas.",
    level=Level.ERROR,
)
ONE_RATE_FOR_PARENTS = AuditCheck(
    id="rates/one-rate-for-parents",
    verdict="one-rate-for-parents",
    rule="A MIG profile has a rate for each parent: 1g.10gb of an A100 is not that of an H100.",
    fix="Name the parent in the class: A100-SXM4-80GB/1g.10gb.",
    level=Level.WARNING,
)
CLASS_UNKNOWN = AuditCheck(
    id="rates/class-unknown",
    verdict="class-unknown",
    rule="Every node tells the class of its devices, so that it can be priced.",
    fix="Run gpu-feature-discovery there; see gpuledger audit nodes.",
    level=Level.WARNING,
)
NO_RATES = AuditCheck(
    id="rates/none",
    verdict="none",
    rule="A policy that is audited for rates has some, or says that money is never spoken of.",
    fix="Add rates, or money: never.",
    level=Level.WARNING,
)
NOTHING_EXISTS = AuditCheck(
    id="rates/nothing-exists",
    verdict="nothing-exists",
    rule="The texts show nodes or slices with GPUs to hold the rates against.",
    fix="Give what kubectl get nodes -o json printed.",
    level=Level.WARNING,
)

CHECKS: tuple[AuditCheck, ...] = (
    NO_RATE, TWO_RATES, MATCHES_NOTHING, SPELLING, ONE_RATE_FOR_PARENTS, CLASS_UNKNOWN, NO_RATES, NOTHING_EXISTS,
)  # fmt: skip
"""Every check of this audit."""
