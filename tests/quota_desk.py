"""A desk where people ask for devices under a policy: the outer edge of every test of quotas."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

from gpuledger.ledger.store import Ledger
from gpuledger.model.lifecycle import Placement, State, Transition
from gpuledger.model.moments import MINUTE_US, parse_moment
from gpuledger.model.outcomes import TransitionReport
from gpuledger.model.quotas import NO_END, AdmitReport, AdmitRequest
from gpuledger.model.rows import PolicyVersion
from gpuledger.operations.admit import admit
from gpuledger.operations.transition import record_transitions

MORNING_US = parse_moment("2026-07-27T10:00:00Z", now_us=0)
USERS = "{al: {team: vision, roles: [student]}, bo: {team: vision}, cy: {team: nlp, roles: [student]}}"


class Desk:
    """One ledger and its policy. Times are minutes after ``start``, 10:00 of 2026-07-27 UTC."""

    def __init__(self, place: str | Path, quotas: str = "", *, start_us: int = MORNING_US, zone: str = "") -> None:
        self.ledger = Ledger.open(place, mode="append")
        self.start_us = start_us
        self.versions = 0
        self._events = 0
        if quotas:
            self.apply(quotas, zone=zone)

    def at(self, minute: float | Fraction) -> int:
        """Microseconds UTC of a minute."""
        return self.start_us + round(Fraction(minute) * MINUTE_US)

    def apply(self, quotas: str, *, minute: float = -1, effective: float | None = None, zone: str = "") -> None:
        """Another policy: one entry a line, each as it stands in YAML."""
        entries = "".join(f"\n  - {line.strip()}" for line in quotas.strip().splitlines())
        document = f"owners: {{users: {USERS}}}\nquotas:{entries or ' []'}\n"
        document += f"billing: {{zone: {zone}}}\n" if zone else ""
        self.versions += 1
        row = PolicyVersion(
            version=self.versions, effective_from_us=self.at(minute if effective is None else effective),
            applied_at_us=self.at(minute), document=document, document_hash=str(self.versions),
        )  # fmt: skip
        self.ledger.append([row], writer="box.apply", at_us=self.at(minute))

    def ask(
        self, workload: str, user: str = "", minute: float = 0, *, until: float | None = None, check: bool = False,
        ledger: Ledger | None = None, writer: str = "box.admit", placement: Placement | None = None, team: str = "",
        labels: tuple[tuple[str, str], ...] = (), project: str = "", span: float | None = None, **where: object,
    ) -> AdmitReport:  # fmt: skip
        """May it run? One H100 where nothing else is said; ``until`` and ``span`` in minutes."""
        words = {"class_name": "H100-80GB"} | where
        if "devices" in words:
            words["count"] = len(words["devices"])  # type: ignore[arg-type]
        request = AdmitRequest(
            workload=workload, placement=placement or Placement(**words), user=user, team=team, labels=labels,  # type: ignore[arg-type]
            project=project, until_us=NO_END if until is None else self.at(until),
            span_us=NO_END if span is None else round(span * MINUTE_US),
        )  # fmt: skip
        return admit(ledger or self.ledger, request, writer=writer, now_us=self.at(minute), is_check=check)

    def tell(
        self, workload: str, state: str, minute: float, placement: Placement | None = None, *, now: float | None = None,
        imported: bool = False, user: str = "", ledger: Ledger | None = None, requested: str = "",
    ) -> TransitionReport:  # fmt: skip
        """One transition of its controller."""
        self._events += 1
        told = Transition(
            workload=workload, event_id=str(self._events), state=State(state), at_us=self.at(minute), source="ctl",
            placement=placement, user=user, requested_class=requested,
        )  # fmt: skip
        now_us = self.at(minute if now is None else now)
        return record_transitions(
            ledger or self.ledger, [told], writer="box.ctl", now_us=now_us, imported=imported
        )  # fmt: skip

    def run(self, workload: str, minute: float) -> None:
        """What was admitted begins to run."""
        self.tell(workload, "provisioning", minute)
        self.tell(workload, "running", minute)
