"""Explaining: rows of the ledger and lines of a report as nodes of a tree that leads to the evidence.

In: rows, with the identity text where it is still there. Out: :class:`Explanation` nodes; the operation
hangs them under each other, since only it can look a reference up.
"""

from __future__ import annotations

from collections.abc import Iterable

from gpuledger.accounting.journal import line_of
from gpuledger.accounting.meanings import cause_sentence, meaning_of
from gpuledger.accounting.owners import FORGOTTEN, Owner
from gpuledger.model.archive import Archive
from gpuledger.model.durations import duration_ms
from gpuledger.model.explanation import Explanation, Figure
from gpuledger.model.identity import IdentityText
from gpuledger.model.missing import Missing
from gpuledger.model.moments import HOUR_US, iso
from gpuledger.model.reasons import UNATTRIBUTED, WATCHED
from gpuledger.model.rows import (
    DeviceEvent,
    DriverRecord,
    Pass,
    PolicyVersion,
    ProcessIdentity,
    Row,
    Seal,
    Sighting,
    UsageCorrection,
    UsageRecord,
    Watch,
)
from gpuledger.model.usage import UsageReport


def explain_row(
    row: Row, *, text: IdentityText | None = None, owner: Owner | None = None, children: Iterable[Explanation] = ()
) -> Explanation:
    """One row as a node.

    Args:
        row: any row of the ledger.
        text: for an identity its text; none when it was forgotten.
        owner: for a record or correction who answers for it; none for an unattributed one.
        children: what it rests on.
    """
    title, figures = _told(row, text, owner)
    refs = (row.ref,) if row.number else ()
    return Explanation(title=title, figures=figures, refs=refs, children=tuple(children))


def explain_total(report: UsageReport, children: Iterable[Explanation] = ()) -> Explanation:
    """The total of a usage report as the root of a tree."""
    figures: list[tuple[str, Figure]] = [
        ("total", report.total),
        ("rows", sum(row.quantity for row in report.rows) if report.answered else report.total),
        ("unattributed", report.unattributed_quantity),
        ("unsettled", report.unsettled_quantity),
        ("provisional", report.provisional),
        ("watched_seconds", report.watched.seconds),
        ("of_seconds", report.watched.of),
    ]
    title = f"{report.meter} in {report.unit}, {iso(report.since_us)} to {iso(report.until_us)}"
    return Explanation(title=title, figures=tuple(figures), children=tuple(children))


def _told(row: Row, text: IdentityText | None, owner: Owner | None) -> tuple[str, tuple[tuple[str, Figure], ...]]:
    match row:
        case UsageRecord():
            hour = f"{iso(row.hour_us)} to {iso(row.hour_us + HOUR_US)}"
            return f"record: {row.meter} of {_name(row.subject, owner)}, {hour}", _record(row, owner)
        case UsageCorrection():
            title = f"correction {row.correction_number} of {row.meter} of {_name(row.subject, owner)}: {row.reason}"
            return title, (
                ("hour", iso(row.hour_us)),
                ("host", row.host),
                ("device", row.device),
                ("delta", row.delta),
                ("recorded_at", iso(row.recorded_at_us)),
                *_evidence(row),
            )
        case DriverRecord():
            title = f"the driver's own row: pid {row.pid} held {row.device} for {duration_ms(row.context_ms)}"
            return title, _driver(row)
        case Sighting():
            return _sighting(row)
        case ProcessIdentity():
            return _named(row, text), _identity(row, text)
        case Watch() | DeviceEvent() | Pass() | PolicyVersion() | Archive() | Seal():
            return _journaled(row)
    raise ValueError(f"no explanation for a row of kind {row.kind!r}")


def _record(row: UsageRecord, owner: Owner | None) -> tuple[tuple[str, Figure], ...]:
    named: tuple[tuple[str, Figure], ...] = ()
    if owner is not None:
        named = (("subject", owner.subject), ("user", owner.user), ("team", owner.team), ("project", owner.project))
    return (
        ("host", row.host),
        ("device", row.device),
        *named,
        ("context", row.context),
        ("quantity", row.quantity),
        ("recorded_at", iso(row.recorded_at_us)),
        *_evidence(row),
    )


def _evidence(row: UsageRecord | UsageCorrection) -> tuple[tuple[str, Figure], ...]:
    return (("evidence_count", row.evidence_count), ("evidence_hash", row.evidence_hash))


def _driver(row: DriverRecord) -> tuple[tuple[str, Figure], ...]:
    return (
        ("host", row.host),
        ("started_at", _moment(row.started_at_us)),
        ("context_ms", row.context_ms),
        ("peak_memory_mib", row.peak_memory_mib),
        ("gpu_percent", row.gpu_percent),
        ("memory_percent", row.memory_percent),
        ("read_at", iso(row.read_at_us)),
        ("method", row.method),
    )


def _sighting(row: Sighting) -> tuple[str, tuple[tuple[str, Figure], ...]]:
    is_alive = isinstance(row.gone_at_us, Missing)
    title = f"pid {row.pid} seen alive on {row.device}, {iso(row.since_us)} to {iso(row.until_us)}"
    title += ", still alive at the last look" if is_alive else ""
    return title, (
        ("host", row.host),
        ("context_started_at", _moment(row.context_started_at_us)),
        ("samples", row.samples),
        ("accounted", row.accounted),
        ("peak_memory_mib", row.peak_memory_mib),
        ("busy_ms", row.busy_ms),
        *(() if is_alive else (("gone_at", _moment(row.gone_at_us)),)),
        ("method", row.method),
    )


def _named(row: ProcessIdentity, text: IdentityText | None) -> str:
    """Who says so: only what the agent read itself was read while the process lived."""
    name = "" if text is None else text.service or text.command or text.exe
    said = f": {name}" if name else ""
    if row.method == "pid-map":
        return f"pid {row.pid}, claimed by a pid map{said}"
    if row.method == "nvidia-smi":
        return f"pid {row.pid}, named by nvidia-smi{said}"
    if not row.text_key:
        return f"pid {row.pid}, of which an event told, and which ended before it could be read"
    return f"pid {row.pid}, as read while it lived"


def _identity(row: ProcessIdentity, text: IdentityText | None) -> tuple[tuple[str, Figure], ...]:
    why = "forgotten: its text was dropped" if row.text_key else "nothing of it was read"
    words: tuple[tuple[str, Figure], ...] = (("text", Missing(why)),)
    if text is not None:
        shown = ("service", "exe", "command", "user", "unit", "container", "runtime", "image", "pod", "pod_uid")
        more = ("namespace", "slurm_job", "slurm_account", "cgroup", "cwd")
        words = tuple((name, getattr(text, name)) for name in (*shown, *more) if getattr(text, name))
    return (
        *words,
        ("host", row.host),
        ("started_at", _moment(row.started_at_us)),
        ("seen_at", iso(row.seen_at_us)),
        ("exec_number", row.exec_number),
        ("method", row.method),
        ("grade", row.grade),
    )


def _journaled(
    row: Watch | DeviceEvent | Pass | PolicyVersion | Archive | Seal,
) -> tuple[str, tuple[tuple[str, Figure], ...]]:
    line = line_of(row)
    figures: list[tuple[str, Figure]] = [("at", iso(line.at_us))]
    if line.until_us != line.at_us:
        figures.append(("until", iso(line.until_us)))
    figures += [(name, value) for name, value in (("host", line.host), ("device", line.device)) if value]
    if isinstance(row, Watch) and row.status not in WATCHED:
        figures.append(("what_helps", meaning_of(row.status)[1]))
    return line.sentence, tuple(figures)


def _name(subject: str, owner: Owner | None) -> str:
    if subject.startswith(UNATTRIBUTED):
        return f"{subject} ({cause_sentence(subject.removeprefix(UNATTRIBUTED))})"
    return owner.service if owner else FORGOTTEN


def _moment(at_us: int | Missing) -> str | Missing:
    return at_us if isinstance(at_us, Missing) else iso(at_us)
