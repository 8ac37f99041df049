"""Usage by place: decayed seconds times what was held, times what the class counts, where the tree has a place for it.

In: decayed sums by subject and placement. Out: exact device-seconds by place, by class, and what stands outside.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from fractions import Fraction

from gpuledger.accounting.answering import Answerer, Answering
from gpuledger.accounting.decay import ONE, Sums
from gpuledger.accounting.share_places import Places
from gpuledger.model.fairshare import ClassPart, Outside
from gpuledger.model.meters import GPU_RESERVED
from gpuledger.model.missing import Missing
from gpuledger.model.reserved import PLACED, factor
from gpuledger.model.shares import Place
from gpuledger.model.workload_rows import PlacementRow

_Amounts = dict[str, list[int]]
"""Seconds, and decayed seconds in units of the decay, by device."""


class Held:
    """What a second of each device counts: its shares, times the weight of its class.

    Args:
        placements: by key.
        weights: of classes.
    """

    def __init__(self, placements: Mapping[str, PlacementRow], weights: Sequence[tuple[str, Fraction]]) -> None:
        self._placements = placements
        self._weights = weights
        self._known: dict[str, tuple[str, Fraction, Fraction]] = {}

    def of(self, device: str) -> tuple[str, Fraction, Fraction]:
        """Class, device-seconds of a second, and the weight of the class."""
        found = self._known.get(device)
        if found is None:
            placement = self._placements[device.removeprefix(PLACED)]
            weight = class_weight(placement.class_name, self._weights)
            found = (placement.class_name, factor(GPU_RESERVED.name, placement), weight)
            self._known[device] = found
        return found

    def total(self, amounts: _Amounts) -> Fraction:
        """Decayed and weighted device-seconds of these amounts, of which there is at least one."""
        by_denominator: dict[int, int] = {}  # added up by it: a sum of fractions costs ten times as much
        for device, (_, weighted) in amounts.items():
            _, each, weight = self.of(device)
            of = each.denominator * weight.denominator
            by_denominator[of] = by_denominator.get(of, 0) + weighted * each.numerator * weight.numerator
        first, *rest = (Fraction(number, ONE * of) for of, number in by_denominator.items())
        return sum(rest, first)


class ShareUsage:
    """What everybody has used.

    Attributes:
        by_place: decayed and weighted device-seconds; of an account what belongs to none of its users.
        outside: what no place names, the largest first.
    """

    def __init__(self, *, amounts: Mapping[Place, Sequence[_Amounts]], held: Held, outside: Sequence[Outside]) -> None:
        self._amounts = amounts
        self._held = held
        self.by_place = {
            place: sum(map(held.total, rest), held.total(first)) for place, (first, *rest) in amounts.items()
        }
        self.outside = tuple(outside)

    def parts(self, place: Place) -> tuple[ClassPart, ...]:
        """The usage of a place by class, the largest first."""
        by_class: dict[str, ClassPart] = {}
        for amounts in self._amounts.get(place, ()):
            for device, (seconds, weighted) in amounts.items():
                class_name, each, weight = self._held.of(device)
                part = by_class.get(class_name)
                by_class[class_name] = ClassPart(
                    class_name=class_name,
                    weight=weight,
                    device_seconds=seconds * each + (part.device_seconds if part else 0),
                    decayed=Fraction(weighted, ONE) * each + (part.decayed if part else 0),
                    usage=self._held.total({device: [seconds, weighted]}) + (part.usage if part else 0),
                )
        return tuple(sorted(by_class.values(), key=lambda part: (-part.usage, part.class_name)))


def class_weight(class_name: str, weights: Sequence[tuple[str, Fraction]]) -> Fraction:
    """What a device-second of a class counts: by the first pattern that fits, else 1."""
    return next((weight for pattern, weight in weights if fnmatchcase(class_name, pattern)), Fraction(1))


def weigh(
    sums: Sums,
    *,
    placements: Mapping[str, PlacementRow],
    answering: Answering,
    places: Places,
    weights: Sequence[tuple[str, Fraction]],
) -> ShareUsage:
    """Bring decayed sums to their places.

    Args:
        sums: (subject, device, epoch) to seconds and decayed seconds, of that module.
        placements: by key.
        answering: resolves subjects; an epoch is a moment for it.
        places: the tree.
        weights: of classes.
    """
    listed: dict[Place, _Amounts] = {}
    unlisted: dict[Answerer, _Amounts] = {}
    of_answerer: dict[Answerer, _Amounts] = {}
    for (subject, device, epoch), (seconds, weighted) in sums.items():
        answerer = answering.of(subject, epoch)
        amounts = of_answerer.get(answerer)
        if amounts is None:
            place = places.of(*answerer).place
            if isinstance(place, Missing):
                amounts = of_answerer[answerer] = unlisted.setdefault(answerer, {})
            else:
                amounts = of_answerer[answerer] = listed.setdefault(place, {})
        if device in amounts:
            amounts[device][0] += seconds
            amounts[device][1] += weighted
        else:
            amounts[device] = [seconds, weighted]
    held = Held(placements, weights)
    by_place: dict[Place, list[_Amounts]] = {place: [amounts] for place, amounts in listed.items()}
    outside: list[Outside] = []
    for (user, team, project), amounts in unlisted.items():
        charge = places.of(user, team, project)
        assert isinstance(charge.place, Missing)
        account = ""
        if not isinstance(charge.counts_at, Missing):
            account = charge.counts_at.account
            by_place.setdefault(charge.counts_at, []).append(amounts)
        if total := held.total(amounts):
            outside.append(
                Outside(team=team, project=project, user=user, account=account, usage=total, why=charge.place.reason)
            )
    outside.sort(key=lambda one: (-one.usage, one.team, one.project, one.user))
    return ShareUsage(amounts=by_place, held=held, outside=outside)
