"""Fair share explained: every factor that a rank is made of, with its numbers, and what is not known beside it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction

from gpuledger.accounting.decay import ONE, Decay
from gpuledger.accounting.share_usage import ShareUsage
from gpuledger.model.durations import count, decimal, duration_us, several
from gpuledger.model.explanation import Explanation, Figure
from gpuledger.model.fairshare import INFINITE, NOT_TOLD, ClassPart, FairShareReport, LevelFs, ShareLine
from gpuledger.model.missing import Missing
from gpuledger.model.moments import DAY_US, HOUR_US, hour_floor, iso
from gpuledger.model.rounding import nearest
from gpuledger.model.shares import PARENT, Algorithm, Place, Shares

NOBODY = Missing("neither the tree nor any usage names it")

_MOST_BELOW = 20
"""How many of those below an account are listed with what they used."""


def explain_share(
    report: FairShareReport, *, shares: Shares, usage: ShareUsage, decay: Decay, name: str
) -> Explanation | Missing:
    """The way from a rank back to shares and usage.

    Args:
        report: the answer.
        shares, usage, decay: what it was made of.
        name: a user, or an account; where a user stands in several accounts each is explained.
    """
    by_place = {line.place: line for line in report.lines}
    lines = [line for line in report.lines if line.place.user == name]
    lines += [line for line in report.lines if not line.place.user and line.place.account == name]
    outside = [one for one in usage.outside if one.user == name]
    if not lines and not outside:
        return NOBODY
    if not report.told:
        return Explanation(
            title=f"fair share of {name} at {iso(report.at_us)}, by {_algorithm(shares)}",
            figures=(("policy", report.policy), ("rank", NOT_TOLD)),
            refs=(report.policy_ref,),
        )
    children = [_standing(report, by_place, usage, line) for line in lines]
    children += [
        Explanation(
            title=f"usage of {one.user} that no place of the tree names: {one.why}",
            figures=(
                ("device_seconds", sixth(one.usage)),
                ("team", one.team),
                ("project", one.project),
                ("counts_for", one.account or "nobody"),
            ),
        )
        for one in outside
    ]
    children += [_decay(report, decay), _weights(report), _unknown(report), _evidence(report, name, is_user=bool(
        outside or any(line.place.user == name for line in lines)))]  # fmt: skip
    return Explanation(
        title=f"fair share of {name} at {iso(report.at_us)}, by {_algorithm(shares)}",
        figures=(("policy", report.policy), ("places_in_line", report.ranked)),
        refs=(report.policy_ref,),
        children=tuple(children),
    )


def sixth(value: Fraction) -> str:
    """A value with six decimals, as Slurm prints shares and factors."""
    return decimal(nearest(value * 1_000_000), 6)


def _algorithm(shares: Shares) -> str:
    return "Fair Tree" if shares.algorithm is Algorithm.FAIR_TREE else "the classic formula"


def _standing(
    report: FairShareReport, by_place: Mapping[Place, ShareLine], usage: ShareUsage, line: ShareLine
) -> Explanation:
    way = [line]
    while (above := way[0].stands_below) and (found := by_place.get(Place(account=above))) is not None:
        way.insert(0, found)
    level = _fair_level if report.algorithm is Algorithm.FAIR_TREE else _classic_level
    children = [_used(report, usage, line), *(level(report, by_place, each) for each in way), _rank(report, line)]
    rank = line.rank if isinstance(line.rank, Missing) else f"{line.rank} of {report.ranked}"
    figures: list[tuple[str, Figure]] = [
        ("rank", rank),
        ("factor", line.factor if isinstance(line.factor, Missing) else sixth(line.factor)),
    ]
    return Explanation(title=line.place.words, figures=tuple(figures), children=tuple(children))


def _used(report: FairShareReport, usage: ShareUsage, line: ShareLine) -> Explanation:
    parts = usage.parts(line.place)
    below = _below(report.lines, line)
    children = [*map(_of_class, parts), *_listed(below)]
    title = f"its usage: {sixth(line.usage)} device-seconds, decayed and weighted"
    if not line.place.user and not isinstance(line.rank, Missing):
        title += "; the tree names none of its users, so it is one place for all of them"
    elif not line.place.user and line.usage:
        title += f"; {sixth(line.own_usage)} of it by users whom the tree does not name"
    return Explanation(
        title=title,
        figures=() if parts or below else (("classes", "none: nothing that counts was reserved by it itself"),),
        children=tuple(children),
    )


def _of_class(part: ClassPart) -> Explanation:
    """From what was reserved to what counts: each figure is the one before it times the factor between them."""
    average = part.decayed / Fraction(part.device_seconds) if part.device_seconds else Fraction(0)
    return Explanation(
        title=f"class {part.class_name}",
        figures=(
            ("device_seconds_reserved", sixth(part.device_seconds)),
            ("an_hour_counts_on_average", sixth(average)),
            ("decayed_to", sixth(part.decayed)),
            ("each_counts", str(part.weight)),
            ("usage", sixth(part.usage)),
        ),
    )


def _below(lines: Sequence[ShareLine], line: ShareLine) -> list[ShareLine]:
    """Who stands directly below an account and has used anything, the most first."""
    found: list[ShareLine] = []
    for each in lines[lines.index(line) + 1 :]:
        if each.depth <= line.depth:
            break
        if each.depth == line.depth + 1 and each.usage:
            found.append(each)
    return sorted(found, key=lambda each: (-each.usage, each.place))


def _listed(below: Sequence[ShareLine]) -> list[Explanation]:
    said = [Explanation(title=each.place.words, figures=(("usage", sixth(each.usage)),)) for each in below]
    if len(said) <= _MOST_BELOW:
        return said
    rest = sum((each.usage for each in below[_MOST_BELOW:]), Fraction(0))
    more = Explanation(title=f"{count(len(said) - _MOST_BELOW)} more", figures=(("usage", sixth(rest)),))
    return [*said[:_MOST_BELOW], more]


def _shared(line: ShareLine) -> str:
    return line.stands_below or "the root"


def _fair_level(report: FairShareReport, by_place: Mapping[Place, ShareLine], line: ShareLine) -> Explanation:
    above = by_place.get(Place(account=line.stands_below))
    whole = above.usage if above else report.total
    if line.shares == PARENT:
        what = "it is the highest" if line.place.user else "what is below it stands"
        title = f"{line.place.words} takes its parent's shares: {what} among those below {_shared(line)}"
        return Explanation(title=title)
    figures: list[tuple[str, Figure]] = [
        ("S", f"{line.shares}/{count(line.level_shares)} = {sixth(line.norm_shares)}"),
        (
            "U",
            f"{sixth(line.usage)}/{sixth(whole)} = {sixth(line.effective_usage)}" if whole else "nothing was used here",
        ),
        ("level_S/U", _level(line.level_fs)),
    ]
    return Explanation(title=f"{line.place.words} among those below {_shared(line)}", figures=tuple(figures))


def _level(level: LevelFs) -> Figure:
    if level == INFINITE:
        return "infinite: it has used nothing that counts"
    return sixth(level) if isinstance(level, Fraction) else level


def _classic_level(report: FairShareReport, by_place: Mapping[Place, ShareLine], line: ShareLine) -> Explanation:
    above = by_place.get(Place(account=line.stands_below))
    if line.shares == PARENT:
        return Explanation(
            title=f"{line.place.words} takes the shares and the effective usage of {_shared(line)}",
            figures=(("S", sixth(line.norm_shares)), ("UE", sixth(line.effective_usage))),
        )
    share = f"{line.shares}/{count(line.level_shares)}"
    norm = f"{sixth(above.norm_shares)} x {share}" if above else share
    used = (
        f"{sixth(line.usage)}/{sixth(report.total)} = {sixth(line.norm_usage)}" if report.total else "nothing was used"
    )
    if above:
        effective = f"{sixth(line.norm_usage)} + ({sixth(above.effective_usage)} - {sixth(line.norm_usage)}) x {share}"
        effective += f" = {sixth(line.effective_usage)}"
    else:
        effective = f"U = {sixth(line.effective_usage)}, at the top"
    return Explanation(
        title=f"{line.place.words} among those below {_shared(line)}",
        figures=(("S", f"{norm} = {sixth(line.norm_shares)}"), ("U", used), ("UE", effective)),
    )


def _rank(report: FairShareReport, line: ShareLine) -> Explanation:
    if isinstance(line.factor, Missing):
        return Explanation(title="an account has no rank; its users have", figures=(("factor", line.factor),))
    if report.algorithm is Algorithm.CLASSIC:
        how = (
            f"2^-({sixth(line.effective_usage)}/{sixth(line.norm_shares)})" if line.norm_shares else "0 without shares"
        )
        if isinstance(line.rank, Missing):
            return Explanation(title=f"factor 2^(-UE/S) = {how} = {sixth(line.factor)}")
        before = sum(1 for each in report.lines if not isinstance(each.rank, Missing) and each.rank < line.rank)
        title = f"factor 2^(-UE/S) = {how} = {sixth(line.factor)}; {_ahead(before)}"
    else:
        assert not isinstance(line.rank, Missing)
        how = f"({report.ranked} - {line.rank} + 1)/{report.ranked}"
        title = f"from the root down, the highest level first: {_ahead(line.rank - 1)}"
        title += f"; factor {how} = {sixth(line.factor)}"
    return Explanation(title=title, children=tuple(_equals(report.lines, line)))


def _ahead(number: int) -> str:
    return "nobody stands before it" if not number else f"{several(number, 'place')} before it"


def _equals(lines: Iterable[ShareLine], line: ShareLine) -> list[Explanation]:
    equal = [each.place.words for each in lines if each.rank == line.rank and each.place != line.place]
    if not equal:
        return []
    shown = ", ".join(equal[:8]) + (f" and {len(equal) - 8} more" if len(equal) > 8 else "")
    return [Explanation(title=f"it shares this rank with {shown}")]


def _decay(report: FairShareReport, decay: Decay) -> Explanation:
    """How fast usage is forgotten, shown at the hours that people can check."""
    return Explanation(
        title=f"decay: half after {duration_us(report.half_life_us)}, by whole hours; an hour now counts whole",
        figures=(
            ("an_hour_ago_counts", sixth(Fraction(decay.weight(hour_floor(report.at_us) - HOUR_US), ONE))),
            ("a_day_ago", sixth(Fraction(decay.weight(hour_floor(report.at_us) - DAY_US), ONE))),
            ("counts_from", iso(decay.first_us)),
        ),
    )


def _weights(report: FairShareReport) -> Explanation:
    given = ", ".join(f"{pattern} {weight}" for pattern, weight in report.class_weights)
    return Explanation(
        title=f"class weights: {given}; every other class 1" if given else "class weights: every class 1"
    )


def _unknown(report: FairShareReport) -> Explanation:
    """What is not in the figures, and whose it is nobody knows."""
    if not report.gaps and not report.problems:
        return Explanation(title="nothing is known to be missing from the reservations of this time")
    notes = [Explanation(title=f"{problem.code}: {problem.message}") for problem in report.problems]
    return Explanation(
        title="UNKNOWN, and so in nobody's usage unless it says that it is counted",
        children=(
            *(
                Explanation(
                    title=f"{gap.reason}: {gap.what}, {gap.detail}",
                    figures=(("seconds", gap.seconds), ("since", iso(gap.since_us)), ("until", iso(gap.until_us))),
                )
                for gap in report.gaps
            ),
            *notes,
        ),
    )


def _evidence(report: FairShareReport, name: str, *, is_user: bool) -> Explanation:
    words = ("user",) if is_user else ("team", "project")
    until = f"--meter gpu.reserved --until {iso(report.at_us)}"
    return Explanation(
        title="down to the records and the events behind them",
        figures=tuple((f"run_for_{word}", f"gpuledger explain {word}:{name} {until}") for word in words),
    )
