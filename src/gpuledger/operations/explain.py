"""``explain``: from a total, a line or a row down to the driver's own row."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace

from gpuledger.accounting.amounts import METERS_BY_NAME
from gpuledger.accounting.explanation import explain_row, explain_total
from gpuledger.accounting.owners import Naming
from gpuledger.errors import Misconfigured, NotFound
from gpuledger.ledger.store import Ledger
from gpuledger.metering.contexts import contexts
from gpuledger.metering.derive import derive
from gpuledger.model.explanation import Explanation
from gpuledger.model.meters import RESERVED_METERS
from gpuledger.model.missing import Missing
from gpuledger.model.moments import HOUR_US, iso
from gpuledger.model.quantities import Context
from gpuledger.model.reasons import UNATTRIBUTED
from gpuledger.model.reserved import PLACED
from gpuledger.model.row_kinds import ROWS
from gpuledger.model.rows import (
    DriverRecord,
    Pass,
    ProcessIdentity,
    Row,
    Sighting,
    UsageCorrection,
    UsageRecord,
)
from gpuledger.model.workload_rows import ExpectedEnd, Hold, PlacementRow, WorkloadEvent
from gpuledger.operations.archived import holding, missing, needed_for, note_of
from gpuledger.operations.evidence import counted_from, load_evidence, uncovered, within
from gpuledger.operations.explain_reserved import explain_line, explain_reserved
from gpuledger.operations.living import present_evidence
from gpuledger.operations.pulse import UNWRITTEN
from gpuledger.operations.usage import policies, recorded_spans, usage

_MOST_CHILDREN = 20
_FINAL_AFTER_US = 48 * HOUR_US
"""What comes later than this is for invoices of a later period; showback is corrected at any age."""


def explain(ledger: Ledger, ref: str, *, meter: str, since_us: int, until_us: int, now_us: int) -> Explanation:
    """The way down from a reference.

    Args:
        ref: a row (``KIND:WRITER/NUMBER``), ``total``, ``unattributed[:CAUSE]``, a line of usage
            (``service:NAME``, ``user:NAME``, ``team:``, ``project:``, ``device:``, ``host:``), or a subject
            (``unit:ollama.service``); of reserved time any grouping, ``class:H100-80GB``.
        meter, since_us, until_us: the filters of the usage that printed the line.

    What left for an archive and does not lie under the ledger is told where the way would go on.

    Raises:
        Misconfigured: ``bad-ref``; NotFound: ``no-such-row`` or ``nothing-to-explain``.
        Unavailable: ``archive-missing`` for a row that left.
    """
    if left := holding(ledger, ref):
        raise missing(left, f"{ref} is archived", f"gpuledger explain {ref}")
    tree = _explain(ledger, ref, meter=meter, since_us=since_us, until_us=until_us, now_us=now_us)
    if left := needed_for(ledger, ref, since_us, until_us):
        tree = replace(tree, children=(*tree.children, note_of(left, ref)))
    return tree


def _explain(ledger: Ledger, ref: str, *, meter: str, since_us: int, until_us: int, now_us: int) -> Explanation:
    if meter not in METERS_BY_NAME:
        raise Misconfigured("unknown-meter", f"{meter!r} is no meter", hint=f"one of {', '.join(METERS_BY_NAME)}")
    is_reserved = meter in {each.name for each in RESERVED_METERS}
    way = _Way(ledger, now_us=now_us)
    kind, colon, rest = ref.partition(":")
    writer, _, number = rest.rpartition("/")
    # an old MIG UUID has slashes and ends in a digit too (device:MIG-GPU-.../7/0): a row's writer is known
    if (
        colon
        and kind in {row.kind for row in ROWS}
        and number.isdigit()
        and (kind != "device" or writer in ledger.writers())
    ):
        return way.row(ledger.get(ref))
    if not colon and ref not in ("total", "unattributed"):
        raise Misconfigured(
            "bad-ref",
            f"{ref!r} is no reference",
            hint="driver:HOST.agent/12, record:HOST.meter/3, total, unattributed, service:NAME, unit:NAME.service",
        )
    if is_reserved:
        held = METERS_BY_NAME[meter]
        return explain_line(ledger, ref, meter=held, since_us=since_us, until_us=until_us, now_us=now_us)
    return way.line(ref, meter=meter, since_us=since_us, until_us=until_us)


class _Way:
    """The way down, over one ledger, with names as of now."""

    def __init__(self, ledger: Ledger, *, now_us: int) -> None:
        self._ledger = ledger
        self._now_us = now_us
        self._texts = ledger.texts(None)
        self._naming = Naming(texts=self._texts, versions=policies(ledger, now_us=now_us))

    def line(self, ref: str, *, meter: str, since_us: int, until_us: int) -> Explanation:
        """A total or a line of usage: the recorded hours behind it, then what is derived at once."""
        report = usage(
            self._ledger, meter=meter, by=("subject",), since_us=since_us, until_us=until_us, now_us=self._now_us
        )
        from_us = counted_from(self._ledger, since_us)
        gaps = uncovered(recorded_spans(self._ledger), since_us=from_us, until_us=until_us)
        booked: list[UsageRecord | UsageCorrection] = []
        for start_us, end_us in within(gaps, since_us=from_us, until_us=until_us):
            booked += self._ledger.scan(UsageRecord, since_us=start_us, until_us=end_us)
            booked += self._ledger.scan(UsageCorrection, since_us=start_us, until_us=end_us)
        booked = [
            row
            for row in booked
            if row.meter == meter and self._belongs(row.subject, row.host, row.device, ref, row.hour_us)
        ]
        booked.sort(key=lambda row: (-abs(_amount(row)), row.hour_us, row.ref))
        children = [self.row(row) for row in booked[:_MOST_CHILDREN]]
        if rest := booked[_MOST_CHILDREN:]:
            children.append(
                Explanation(
                    title=f"and {len(rest)} more records and corrections; a shorter --since/--until shows them",
                    figures=(("quantity", sum(_amount(row) for row in rest)),),
                )
            )
        total = sum(_amount(row) for row in booked)
        for start_us, end_us in gaps:
            node, amount = self._provisional(ref, meter, start_us, end_us)
            total += amount
            if node is not None:
                children.append(node)
        if ref == "total":
            return explain_total(report, children)
        if not children:
            raise NotFound(
                "nothing-to-explain",
                f"{ref} has nothing of {meter} between {iso(since_us)} and {iso(until_us)}",
                hint="gpuledger usage --by service,user   shows the lines there are",
            )
        return Explanation(
            title=f"{ref}: {meter} in {METERS_BY_NAME[meter].unit}, {iso(since_us)} to {iso(until_us)}",
            figures=(("quantity", total),),
            children=tuple(children),
        )

    def _provisional(self, ref: str, meter: str, since_us: int, until_us: int) -> tuple[Explanation | None, int]:
        evidence = present_evidence(self._ledger, since_us=since_us, until_us=until_us, now_us=self._now_us)
        found = [
            piece
            for piece in derive(evidence, since_us=since_us, until_us=until_us)
            if piece.meter == meter and self._belongs(piece.subject, piece.host, piece.device, ref, piece.hour_us)
        ]
        if not found:
            return None, 0
        refs = {row for piece in found for row in piece.evidence}
        subjects = {piece.subject for piece in found}
        behind = [one for one in contexts(evidence) if one.subject in subjects and refs & set(one.evidence)]
        total = sum(piece.quantity for piece in found)
        return (
            Explanation(
                title=f"not recorded, or cut by the window; derived at once: {iso(since_us)} to {iso(until_us)}",
                figures=(("quantity", total), ("contexts", len(behind))),
                children=tuple(self._contexts(behind)),
            ),
            total,
        )

    def row(self, row: Row) -> Explanation:
        """A row of the ledger and what it rests on."""
        if isinstance(row, WorkloadEvent | PlacementRow | Hold | ExpectedEnd) or (
            isinstance(row, UsageRecord | UsageCorrection) and row.device.startswith(PLACED)
        ):
            return explain_reserved(self._ledger, row, self._naming)
        if isinstance(row, UsageRecord | UsageCorrection):
            evidence = load_evidence(self._ledger, since_us=row.hour_us, until_us=row.hour_us + HOUR_US)
            behind = [
                one
                for one in contexts(evidence)
                if (one.subject, one.host, one.device) == (row.subject, row.host, row.device)
                and any(start < row.hour_us + HOUR_US and end >= row.hour_us for start, end in one.spans)
            ]
            owner = self._naming.owner(row.subject, row.hour_us)
            told = explain_row(row, owner=owner, children=self._contexts(behind))
            return replace(told, figures=(*told.figures, ("final_from", self._final_from(row.hour_us))))
        if isinstance(row, DriverRecord | Sighting):
            return explain_row(row, children=self._fed_by(row))
        text = self._texts.get(row.text_key) if isinstance(row, ProcessIdentity) else None
        return explain_row(row, text=text)

    def _final_from(self, hour_us: int) -> str | Missing:
        """When a recorded hour is final: 48 hours after the first pass that covered it."""
        passes = [row.at_us for row in self._ledger.scan(Pass) if row.covered_from_us <= hour_us < row.covered_until_us]
        return iso(min(passes) + _FINAL_AFTER_US) if passes else Missing("no pass has covered this hour")

    def _fed_by(self, row: DriverRecord | Sighting) -> list[Explanation]:
        """The context that a piece of evidence belongs to."""
        if isinstance(row, Sighting):
            since_us, until_us = row.since_us, row.until_us + 1
        elif isinstance(row.started_at_us, Missing):
            since_us, until_us = row.read_at_us - row.context_ms * 1000, row.read_at_us + 1
        else:
            since_us, until_us = row.started_at_us, row.started_at_us + row.context_ms * 1000 + 1
        evidence = load_evidence(self._ledger, since_us=since_us, until_us=until_us)
        return self._contexts([one for one in contexts(evidence) if row.ref in one.evidence])

    def _contexts(self, found: Sequence[Context]) -> list[Explanation]:
        by_length = sorted(found, key=lambda one: (-one.context_ms, one.spans[0][0]))
        nodes = [self._context(one) for one in by_length[:_MOST_CHILDREN]]
        if len(by_length) > _MOST_CHILDREN:
            rest = by_length[_MOST_CHILDREN:]
            nodes.append(
                Explanation(
                    title=f"and {len(rest)} more contexts",
                    figures=(("context_ms", sum(one.context_ms for one in rest)),),
                )
            )
        return nodes

    def _context(self, one: Context) -> Explanation:
        state = "settled by the driver" if one.settled else "still open" if one.open else "observed, gone without a row"
        name = (
            one.subject
            if one.subject.startswith(UNATTRIBUTED)
            else self._naming.owner(one.subject, one.spans[0][0]).subject
        )
        rows: dict[str, list[Row]] = defaultdict(list)
        for ref in one.evidence:
            if ref.endswith(UNWRITTEN):
                continue
            rows[ref.partition(":")[0]].append(self._ledger.get(ref))
        children: list[Explanation] = []
        for kind, members in rows.items():
            kept = members if kind != Sighting.kind else _ends(members)
            children += [self._plain(row) for row in kept]
            if len(kept) < len(members):
                children.append(Explanation(title=f"and {len(members) - len(kept)} sightings between them"))
        return Explanation(
            title=f"context of pid {one.pid} on {one.device}, {state}: {name}",
            figures=(
                ("context_ms", one.context_ms),
                ("since", iso(one.spans[0][0])),
                ("until", iso(one.spans[-1][1])),
                ("placed_by", one.placed),
            ),
            children=tuple(children),
        )

    def _plain(self, row: Row) -> Explanation:
        text = self._texts.get(row.text_key) if isinstance(row, ProcessIdentity) else None
        return replace(explain_row(row, text=text), children=())

    def _belongs(self, subject: str, host: str, device: str, ref: str, at_us: int) -> bool:
        if ref == "total":
            return True
        unnamed = subject.startswith(UNATTRIBUTED)
        if ref == "unattributed":
            return unnamed
        if ref.startswith(UNATTRIBUTED):
            return subject == ref
        if ref == f"device:{device}" or ref == f"host:{host}":
            return not unnamed
        if unnamed:
            return False
        owner = self._naming.owner(subject, at_us)
        return ref in _names(owner.service, owner.user, owner.team, owner.project) or ref == owner.subject


def _amount(row: UsageRecord | UsageCorrection) -> int:
    return row.quantity if isinstance(row, UsageRecord) else row.delta


def _names(service: str, user: str, team: str, project: str) -> Iterable[str]:
    return (f"service:{service}", f"user:{user}", f"team:{team}", f"project:{project}")


def _ends(sightings: list[Row]) -> list[Row]:
    """The first and the last of many sightings."""
    ordered = sorted(sightings, key=lambda row: row.since_us if isinstance(row, Sighting) else 0)
    return ordered if len(ordered) <= 3 else [ordered[0], ordered[-1]]
