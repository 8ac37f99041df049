"""``verify``: the chains and seals of the ledger, its records derived again, and the laws.

Records are derived from the evidence that the last pass had seen, so that evidence which simply
waits for the next pass is no difference.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from gpuledger.errors import Unavailable
from gpuledger.ledger import sums
from gpuledger.ledger.archived import archived_until
from gpuledger.ledger.laying import Laid, months_of
from gpuledger.ledger.store import Ledger
from gpuledger.ledger.verify import CHECKS, verify_ledger
from gpuledger.metering.derive import derive
from gpuledger.metering.records import compare
from gpuledger.model.archive import Archive
from gpuledger.model.checks import Check, Verdict, VerifyReport
from gpuledger.model.durations import several
from gpuledger.model.meters import METERS, RESERVED_METERS
from gpuledger.model.missing import Missing
from gpuledger.model.moments import DAY_US, HOUR_US, hour_floor, iso
from gpuledger.model.row_kinds import ROWS
from gpuledger.model.rows import DriverRecord, Pass, Sighting, UsageCorrection, UsageRecord, Watch
from gpuledger.operations.evidence import covered_spans, load_evidence, of_processes
from gpuledger.operations.touched import seen_by
from gpuledger.operations.verify_reserved import differences

_MOST_FINDINGS = 20
_LAST_US = 2**62
"""After every moment."""


def verify(
    ledger: Ledger,
    *,
    now_us: int,
    kept_root: str = "",
    laid: Laid | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> VerifyReport:
    """Every check, in order; a check that finds something does not stop the next.

    Args:
        ledger: open in either mode.
        laid: what came of laying its archive under it; None where nobody tried.
        now_us: the time of the report.
        kept_root: a root printed earlier and kept elsewhere, which must be among the seals; may be empty.
        progress: called with days done and days in all.

    Raises:
        Unavailable: ``ledger-busy`` where rows left for an archive while the checks ran.
    """
    left = ledger.count(Archive) if laid is None else len(laid.archives)
    checks = [*_stored(ledger, kept_root), *_archived(ledger, laid)]
    if not any(check.verdict is Verdict.DAMAGED for check in checks):
        checks.append(_derived_again(ledger, progress, laid, now_us=now_us))
        checks.append(_positive(ledger))
    else:
        checks.append(
            Check(
                name="records-derived-again",
                verdict=Verdict.SKIPPED,
                sentence="the rows themselves are damaged, so deriving from them would prove nothing",
            )
        )
    if ledger.count(Archive) != left:
        raise Unavailable(
            "ledger-busy", f"rows of {ledger.place} left for an archive while they were checked",
            hint="run the command again",
        )  # fmt: skip
    return VerifyReport(
        ledger=str(ledger.place),
        at_us=now_us,
        checks=tuple(checks),
        counts=tuple((kind.kind, ledger.count(kind)) for kind in ROWS),
        root=_root(ledger),
    )


def _stored(ledger: Ledger, kept_root: str) -> list[Check]:
    """The checks of the ledger itself: what they find is damage."""
    found = verify_ledger(ledger, kept_root=kept_root)
    titles = {check.code: check.title for check in CHECKS}
    codes = [*titles, *(finding.code for finding in found if finding.code not in titles)]
    return [
        _check(
            code,
            titles.get(code, "the ledger can be read and is sealed as it was"),
            [f"{finding.where}: {finding.sentence}" for finding in found if finding.code == code],
            Verdict.DAMAGED,
            "restore the ledger from a backup, and compare its latest root with one kept elsewhere",
        )
        for code in dict.fromkeys(codes)
    ]


def _archived(ledger: Ledger, laid: Laid | None) -> list[Check]:
    """Of what left for an archive: whether it is there and is what left; nothing where nothing did."""
    archives = list(ledger.scan(Archive)) if laid is None else list(laid.archives)
    if not archives:
        return []
    gone = several(sum(row.row_count for row in archives), "row")
    if laid is not None and laid.damaged:
        findings = [f"{path}: {why}" for path, why in laid.damaged]
        sentence = "every file of the archive holds what left the ledger"
        hint = "take the file from a backup of the archive's folder"
        return [_check("archived-rows", sentence, findings, Verdict.DAMAGED, hint)]
    if laid is not None and laid.is_whole:
        sentence = f"{gone} of {months_of(archives)} are in the archive as they left, and under all checks"
        return [_check("archived-rows", sentence, [])]
    absent, folder = (archives, "") if laid is None else (laid.missing, laid.folder)
    return [
        Check(
            name="archived-rows",
            verdict=Verdict.SKIPPED,
            sentence=f"{gone} of {months_of(archives)} left for an archive that is not here: the hashes of their links "
            "are checked as a chain and not over their rows, and hours before "
            f"{iso(max(row.before_us for row in archives))} are not derived again",
            findings=tuple(f"{row.file_name} is not in {folder or row.folder}" for row in absent[:_MOST_FINDINGS]),
            hint="gpuledger verify --archive FOLDER",
        )
    ]


def _derived_again(
    ledger: Ledger, progress: Callable[[int, int], None] | None, laid: Laid | None, *, now_us: int
) -> Check:
    """Derived = recorded + corrections, for every recorded hour whose evidence can be read."""
    passes = list(ledger.scan(Pass))
    marks = seen_by(passes)
    closed_us = archived_until(ledger)
    parts = [] if laid is None or not laid.is_whole else _closed_parts(laid.archives, passes)
    parts.append((parts[-1][1] if parts else closed_us or -_LAST_US, _LAST_US, marks))
    findings: list[str] = []
    for since_us, until_us, seen in parts:
        findings += differences_of_processes(
            ledger, passes, seen, since_us=since_us, until_us=until_us, progress=progress
        )
    findings += differences(ledger, now_us=now_us, since_us=parts[0][0])
    which = f"hour from {iso(closed_us)} on" if closed_us else "hour"
    return _check(
        "records-derived-again",
        f"every recorded {which}, derived again from its evidence, equals records + corrections",
        findings,
    )


def _closed_parts(archives: Sequence[Archive], passes: Sequence[Pass]) -> list[tuple[int, int, dict[str, int]]]:
    """The spans of hours that were archived one after the other, each with what passes had seen by then.

    What came for such an hour later changed no record, so it is derived from what was there.
    """
    parts: list[tuple[int, int, dict[str, int]]] = []
    for before_us, at_us in sorted({(row.before_us, row.archived_at_us) for row in archives}):
        since_us = parts[-1][1] if parts else -_LAST_US
        if since_us < before_us:
            parts.append((since_us, before_us, seen_by(row for row in passes if row.at_us <= at_us)))
    return parts


def differences_of_processes(
    ledger: Ledger,
    passes: Sequence[Pass],
    marks: Mapping[str, int],
    *,
    since_us: int,
    until_us: int,
    progress: Callable[[int, int], None] | None = None,
) -> list[str]:
    """Recorded hours of [since, until) that the evidence up to ``marks`` contradicts, each as a sentence."""
    findings: list[str] = []
    covered = [
        (max(low_us, since_us), min(high_us, until_us))
        for low_us, high_us in covered_spans(passes)
        if low_us < until_us and high_us > since_us
    ]
    days = list(_days(_with_processes(ledger, covered)))
    for done, (since_us, until_us) in enumerate(days, start=1):
        hours = range(since_us, until_us, HOUR_US)
        evidence = load_evidence(ledger, since_us=since_us, until_us=until_us, upto=marks)
        _, corrections = compare(
            derive(evidence, since_us=since_us, until_us=until_us),
            of_processes(ledger.scan(UsageRecord, since_us=since_us, until_us=until_us), hours),
            of_processes(ledger.scan(UsageCorrection, since_us=since_us, until_us=until_us), hours),
            covered_hours=hours,
            recorded_at_us=0,
            watches=evidence.watches,
        )
        findings += [
            f"{row.meter} {iso(row.hour_us)} {row.host} {row.device} {row.subject}: "
            f"derived again it differs by {row.delta:+d}"
            for row in corrections
        ]
        if progress is not None:
            progress(done, len(days))
    return findings


def _with_processes(ledger: Ledger, spans: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """The parts of spans of hours between the first and the last sign of processes: evidence, or what was recorded.

    History that only reserves may reach back for decades.
    """
    first_us, last_us = ledger.span_of((DriverRecord, Sighting, Watch))
    with ledger.mapped():
        recorded = sums.hours_of(ledger.connection, [meter.name for meter in METERS if meter not in RESERVED_METERS])
    signs = [each for each in (first_us, last_us, *recorded) if not isinstance(each, Missing)]
    if not signs:
        return []
    low_us, high_us = hour_floor(min(signs)), hour_floor(max(signs)) + HOUR_US
    parts = [(max(since_us, low_us), min(until_us, high_us)) for since_us, until_us in spans]
    return [part for part in parts if part[0] < part[1]]


def _positive(ledger: Ledger) -> Check:
    """No key of any meter adds up to less than nothing."""
    known = {meter.name for meter in METERS}
    with ledger.mapped():
        findings = [
            f"{meter} {iso(hour_us)} {host} {device} {subject}: {total}"
            for meter, hour_us, host, device, subject, total in sums.negative_sums(ledger.connection)
        ]
        findings += [f"unknown meter {name}" for name in sums.recorded_meters(ledger.connection) if name not in known]
    return _check("sums-not-negative", "record + corrections of every key is 0 or more, of a known meter", findings)


def _check(
    name: str,
    sentence: str,
    findings: list[str],
    verdict: Verdict = Verdict.FOUND,
    hint: str = "gpuledger explain REF   (from a record to its evidence)",
) -> Check:
    shown = tuple(findings[:_MOST_FINDINGS])
    if len(findings) > _MOST_FINDINGS:
        shown = (*shown, f"and {len(findings) - _MOST_FINDINGS} more")
    return Check(
        name=name,
        verdict=verdict if findings else Verdict.OK,
        sentence=sentence,
        findings=shown,
        hint=hint if findings else "",
    )


def _root(ledger: Ledger) -> str:
    root = ledger.latest_root()
    return "" if isinstance(root, Missing) else root


def _days(spans: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    for since_us, until_us in spans:
        for start_us in range(since_us, until_us, DAY_US):
            yield start_us, min(start_us + DAY_US, until_us)
