"""The ``rates`` and the ``money`` of a policy document, understood with their line numbers.

In: the document's mapping. Out: :class:`~gpuledger.model.rates.Rates`, each card with its line. Two cards that price
the same line are refused where a policy is applied; an audit asks for them as they stand and tells of each.
"""

from __future__ import annotations

import re
from decimal import Decimal

from gpuledger.errors import Misconfigured
from gpuledger.model.missing import Missing
from gpuledger.model.moments import parse_moment
from gpuledger.model.rates import BASES, NO_RATES, UNITS, RateCard, Rates
from gpuledger.sources.yaml_nodes import MappingReader

_KEYS = (
    "meter", "pool", "class", "replicas", "rate", "unit", "basis", "effective_from", "model",
)  # fmt: skip
_RATE = re.compile(r"[0-9]{1,12}(?:\.[0-9]{1,9})?", re.ASCII)


def rates(document: MappingReader, *, effective_from_us: int, overlapping: bool = False) -> Rates | Missing:
    """What the document says of money.

    Args:
        document: the whole of it.
        effective_from_us: from when a card holds that does not say so itself.
        overlapping: whether two cards may price the same line, for who tells of them.

    Raises:
        BadInput: ``policy-unknown-key``, ``policy-missing-key``, ``policy-bad-value``, ``policy-bad-time`` or
            ``policy-overlapping-rates``; each names the line.
    """
    written = document.mapping("rates")
    if "money" in document.names:
        if document.text("money") != "never":
            raise document.error("policy-bad-value", "`money` can only be `never`", "money", "or give `rates`")
        if written is not None:
            message = "`money: never` switches every price off, and there are rates"
            raise document.error("policy-bad-value", message, "money", "leave out one of the two")
        return Rates(never=True)
    if written is None:
        return NO_RATES
    written.refuse_unknown(("currency", "cards"))
    currency = written.text("currency", required=True)
    if not re.fullmatch(r"[A-Z]{3}", currency):
        message = f"{currency!r} is no currency of ISO 4217"
        raise written.error("policy-bad-value", message, "currency", "three capital letters: EUR")
    readers = written.mappings("cards")
    found = Rates(currency=currency, cards=tuple(_card(reader, effective_from_us) for reader in readers))
    for first, second in () if overlapping else found.overlaps():
        reader = readers[found.cards.index(second)]
        message = f"{second.words} prices what {first.words} at line {first.line} prices too"
        raise reader.error(
            "policy-overlapping-rates", message, "meter", "narrow one of them by pool, class or replicas"
        )
    return found


def _card(reader: MappingReader, effective_from_us: int) -> RateCard:
    reader.refuse_unknown(_KEYS)
    meter = reader.text("meter", required=True)
    if meter not in UNITS:
        message = f"{meter!r} is no meter that can be priced: showback is never an invoice"
        raise reader.error("policy-bad-value", message, "meter", f"one of {', '.join(UNITS)}")
    unit = reader.text("unit", required=True)
    if unit not in UNITS[meter]:
        message = f"{meter} is not priced by {unit!r}"
        raise reader.error("policy-bad-value", message, "unit", f"unit: {', or '.join(UNITS[meter])}")
    card = RateCard(
        meter=meter, unit=unit, rate=_rate(reader), pool=reader.text("pool"), class_pattern=_class(reader, meter),
        replicas=_replicas(reader, unit), basis=reader.text("basis"), model_pattern=reader.text("model"),
        effective_from_us=_from(reader, effective_from_us), line=reader.line_of("meter"),
    )  # fmt: skip
    _check_kind(reader, card)
    return card


def _check_kind(reader: MappingReader, card: RateCard) -> None:
    """Keys that only some meters have."""
    is_token = card.meter.startswith("tokens.")
    for key in ("pool", "class", "replicas", "basis") if is_token else ("model",):
        if key in reader.names:
            raise reader.error("policy-bad-value", f"{card.meter} has no `{key}`", key, f"leave {key} out")
    of_slices = card.meter == "mig.memory" or "/" in card.class_pattern
    if of_slices and card.basis not in BASES:
        key = "basis" if card.basis else "meter"
        code = "policy-bad-value" if card.basis else "policy-missing-key"
        message = "a rate of MIG slices states its basis: what part of the device a slice is taken for"
        raise reader.error(code, message, key, f"basis: {', or '.join(BASES)}")
    if card.basis and not of_slices:
        message = "only a rate of MIG slices has a basis"
        raise reader.error("policy-bad-value", message, "basis", 'leave it out, or write class: "*/1g.10gb"')


def _rate(reader: MappingReader) -> Decimal:
    text = reader.written("rate")
    if "rate" not in reader.names:
        reader.text("rate", required=True)
    if not _RATE.fullmatch(text):
        message = f"`rate` must be a number of money, not {text[:40]!r}"
        raise reader.error("policy-bad-value", message, "rate", 'quoted, with a point: rate: "2.40"')
    return Decimal(text)


def _class(reader: MappingReader, meter: str) -> str:
    pattern = reader.text("class")
    if set(pattern) & set("?[]"):
        message = f"{pattern!r} uses more than `*`"
        raise reader.error("policy-bad-value", message, "class", "only `*` stands for anything, up to a slash")
    if pattern.count("/") > 1 or pattern.startswith("/") or pattern.endswith("/"):
        message = f"{pattern!r} is no class: a slash stands once, between a device and its MIG profile"
        raise reader.error("policy-bad-value", message, "class", 'class: "A100-SXM4-40GB/1g.5gb"')
    if meter == "mig.memory" and pattern and "/" not in pattern:
        message = f"{pattern!r} means whole devices, and mig.memory is of slices"
        parent, _, profile = pattern.removesuffix("-SHARED").partition("-MIG-")  # as product labels spell slices
        raise reader.error("policy-bad-value", message, "class", f'class: "{parent}/{profile or "*"}"')
    return pattern


def _replicas(reader: MappingReader, unit: str) -> int | None:
    if "replicas" not in reader.names:
        if unit == "replica-hour":
            message = "a replica-hour says nothing without the replicas of each device"
            raise reader.error("policy-missing-key", message, "unit", "add replicas: 4, or use device-hour")
        return None
    text = reader.written("replicas")
    if not re.fullmatch(r"[1-9][0-9]{0,3}", text):
        message = f"`replicas` must be a whole number from 1, not {text[:40]!r}"
        raise reader.error("policy-bad-value", message, "replicas", "replicas: 4")
    return int(text)


def _from(reader: MappingReader, effective_from_us: int) -> int:
    text = reader.moment_text("effective_from")
    if not text:
        return effective_from_us
    try:
        return parse_moment(text, now_us=effective_from_us)
    except Misconfigured as error:
        raise reader.error("policy-bad-time", error.message, "effective_from", error.hint) from None
