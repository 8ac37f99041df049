"""Transitions as other programs write them: one JSON object a line, or one row of a query, in the words of the CLI.

In: text, or rows. Out: transitions, or the line that is wrong and why. Nothing is guessed: an unknown word is an
error, since a mistyped ``devices`` would be a GPU that nobody is asked about.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, tzinfo
from fractions import Fraction
from typing import Any

from gpuledger.errors import BadInput, Misconfigured
from gpuledger.model.addresses import device_named, is_index, lacks_host
from gpuledger.model.lifecycle import (
    CPU,
    Placement,
    Transition,
    event_id_of,
    parse_share,
    parse_state,
)
from gpuledger.model.problem import Problem
from gpuledger.sources.trace_times import ISO, Skipped, Times, ZoneNeeded

WORDS: tuple[str, ...] = (
    "workload", "state", "at", "id", "source", "user", "team", "project", "requested_class", "class", "region",
    "machine", "pool", "devices", "share", "labels",
)  # fmt: skip
"""What a line may hold; ``workload``, ``state`` and ``at`` must be there."""

_TEXTS = ("workload", "id", "source", "user", "team", "project", "requested_class")
_PLACING = ("class", "region", "machine", "pool", "devices", "share")
_COUNT = re.compile(r"[0-9]{1,9}")
_NUMBER = re.compile(r"[-+]?[0-9][0-9.]*(?:[eE][-+]?[0-9]+)?")
_HINT = f"known words: {', '.join(WORDS)}"
_TIME_HINT = "2026-11-29T14:00:00Z"
_OR_ZONE = "; or say which clock they are of: --zone UTC, --zone Europe/Berlin"


@dataclass(frozen=True, slots=True, kw_only=True)
class Lines:
    """What a text or a query holds.

    Args:
        transitions: in the order of the lines.
        rows_read: lines that were understood.
        problems: lines that were left out.
    """

    transitions: tuple[Transition, ...]
    rows_read: int
    problems: tuple[Problem, ...] = ()


def parse(
    text: str, *, path: str, source: str, keep_going: bool = False, zone: tzinfo | None = None
) -> Lines:  # fmt: skip
    """The transitions of JSON lines.

    Args:
        text: one JSON object a line; empty lines are passed over.
        path: the file as the user named it, for errors.
        source: who says so, where a line does not say.
        keep_going: leave broken lines out, with a problem each; else the first one refuses the whole text.
        zone: of times that carry none; without it such a time is an error.

    Raises:
        BadInput: the line that cannot be understood; its code says why.
    """
    # a line ends with a line feed alone: texts in it may hold what else ends one to Python (U+2028, U+0085)
    lines = ((number, line) for number, line in enumerate(text.split("\n"), 1) if line.strip())
    return _read(((number, _mapping(line)) for number, line in lines), path, source, keep_going, zone)


def parse_rows(
    rows: Iterable[Mapping[str, Any]], *, path: str, source: str, keep_going: bool = False, beside: Sequence[str] = (),
    zone: tzinfo | None = None,
) -> Lines:  # fmt: skip
    """The transitions of a query's rows, as :func:`parse`; the line number is that of the row.

    Args:
        beside: columns that are no words of a transition and are passed over: the cursor.
    """
    named = (
        (number, {k: v for k, v in row.items() if k not in beside or k in WORDS}) for number, row in enumerate(rows, 1)
    )
    return _read(named, path, source, keep_going, zone)


def parse_placement(words: Mapping[str, Any]) -> Placement | None:
    """The placement of words as typed; None where none of them is given.

    ``devices`` is a number, or UUIDs with commas, or a list of them; ``share`` such as ``1/4``.

    Raises:
        Misconfigured: ``bad-placement``.
    """
    given = {name: words[name] for name in _PLACING if words.get(name) not in (None, "", [])}
    if not given:
        return None
    class_name = _text("class", given.get("class", ""))
    devices = given.get("devices", 0 if class_name == CPU else 1)
    listed: tuple[str, ...] = ()
    if isinstance(devices, str) and _COUNT.fullmatch(devices.strip()):
        devices = int(devices)
    if isinstance(devices, int) and not isinstance(devices, bool):
        count = devices
    else:
        names = devices.split(",") if isinstance(devices, str) else devices
        if not isinstance(names, list | tuple):
            raise Misconfigured("bad-placement", f"devices {devices!r}", hint="a number, or UUIDs with commas")
        texts = [_text("a device", name).strip() for name in names]
        if wrong := [text for text in texts if _NUMBER.fullmatch(text) or (is_index(text) and not lacks_host(text))]:
            raise Misconfigured(
                "bad-placement",
                f"{wrong[0][:40]} is neither a number of devices nor a UUID; an index names another on each machine",
                hint="--devices 2, or --devices UUID,UUID as nvidia-smi -L prints them",
            )
        machine = _text("machine", given.get("machine", ""))
        listed = tuple(sorted(device_named(text, machine) for text in texts))
        count = len(listed)
        if "" in listed:
            raise Misconfigured("bad-placement", "a device without a UUID", hint="--devices UUID,UUID")
    placement = Placement(
        class_name=class_name,
        region=_text("region", given.get("region", "")),
        machine=_text("machine", given.get("machine", "")),
        pool=_text("pool", given.get("pool", "")),
        devices=listed,
        count=count,
        share=parse_share(str(given["share"])) if "share" in given else Fraction(1),
    )
    placement.refuse_odd_names()
    return placement


def parse_at(value: object, zone: tzinfo | None = None, *, needed: str = "") -> int:
    """Microseconds UTC of a time in a file: ISO 8601, or a database's own time.

    Args:
        value: as it was read.
        zone: of a time that carries none.
        needed: what else helps where it has neither, beside writing it with its zone.

    Raises:
        Misconfigured: ``bad-time``, or ``zone-needed`` for a time that carries none where none was declared.
    """
    text = value.isoformat() if isinstance(value, datetime) else value
    if not isinstance(text, str):
        raise Misconfigured("bad-time", f"at {str(value)[:40]!r} is not a time", hint=_TIME_HINT)
    try:
        moments = Times(unit=ISO, zone=zone).read(text.strip())
    except ZoneNeeded as error:
        raise Misconfigured("zone-needed", f"at {error}", hint=f"{_TIME_HINT}, with its zone{needed}") from None
    except Skipped as error:
        hint = f"{_both_offsets(text, zone)}, by the clock that wrote it; or name that clock's own zone: --zone UTC"
        raise Misconfigured("bad-time", f"at {error}", hint=hint) from None
    except ValueError as error:
        raise Misconfigured("bad-time", f"at {error}", hint=_TIME_HINT) from None
    if len(moments) > 1:
        shown_twice = f"at {text!r} was shown twice by the clocks of {zone}"
        raise Misconfigured("bad-time", shown_twice, hint=f"{_both_offsets(text, zone)}, whichever is meant")
    return moments[0]


def _both_offsets(text: str, zone: tzinfo | None) -> str:
    """A local time beside a change of the clocks, with the offset before it and with the one after it."""
    local = datetime.fromisoformat(text.strip())
    return " or ".join(local.replace(tzinfo=zone, fold=fold).isoformat() for fold in (0, 1))


def _read(
    numbered: Iterable[tuple[int, Any]], path: str, source: str, keep_going: bool, zone: tzinfo | None
) -> Lines:  # fmt: skip
    found: list[Transition] = []
    problems: list[Problem] = []
    placements: dict[Placement, Placement] = {}
    for number, told in numbered:
        try:
            found.append(_transition(told, source, placements, zone))
        except Misconfigured as error:
            if not keep_going:
                raise BadInput(error.code, error.message, path=path, line=number, hint=error.hint) from None
            problems.append(Problem(code="broken-line", message=f"{error.message}; left out", where=f"{path}:{number}"))
    return Lines(transitions=tuple(found), rows_read=len(found), problems=tuple(problems))


def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object of JSON whose words stand once each: of two nobody knows which is meant.

    Raises:
        ValueError: naming the word that stands twice.
    """
    told = dict(pairs)
    if len(told) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"{twice[:40]!r} stands twice in one object")
    return told


def _mapping(line: str) -> Any:
    try:
        return json.loads(line, parse_float=str, object_pairs_hook=once)
    except (ValueError, RecursionError) as error:
        return Misconfigured("bad-json", f"not JSON: {error}", hint="one JSON object a line")


def _transition(
    told: Any, source: str, placements: dict[Placement, Placement], zone: tzinfo | None
) -> Transition:  # fmt: skip
    if isinstance(told, Misconfigured):
        raise told
    if not isinstance(told, Mapping):
        raise Misconfigured("bad-transition", "not one JSON object", hint=_HINT)
    if unknown := [str(name) for name in told if name not in WORDS]:
        raise Misconfigured("bad-transition", f"unknown word {unknown[0][:40]!r}", hint=_HINT)
    if absent := [name for name in ("workload", "state", "at") if told.get(name) in (None, "")]:
        raise Misconfigured("bad-transition", f"{absent[0]} is missing", hint=_HINT)
    texts = {name: _text(name, told.get(name) or "") for name in _TEXTS}
    placement = parse_placement(told)
    placement = placements.setdefault(placement, placement) if placement is not None else None
    state, at_us = parse_state(_text("state", told["state"])), parse_at(told["at"], zone, needed=_OR_ZONE)
    says = texts["source"] or source
    key = placement.key if placement else ""
    owner = {name: texts[name] for name in ("user", "team", "project", "requested_class")}
    return Transition(
        workload=texts["workload"],
        event_id=texts["id"] or event_id_of(texts["workload"], state, at_us, says, key),
        state=state,
        at_us=at_us,
        source=says,
        placement=placement,
        labels=_labels(told.get("labels")),
        **owner,
    )


def _labels(value: object) -> tuple[tuple[str, str], ...]:
    if isinstance(value, str) and value:
        value = _mapping(value)  # a database's JSON column, given as text
    if value in (None, ""):
        return ()
    if not isinstance(value, Mapping):
        raise Misconfigured("bad-transition", "labels are no JSON object of texts", hint='"labels": {"qos": "LS"}')
    return tuple(sorted((_text("a label", name), _text(f"label {name}", text)) for name, text in value.items()))


def _text(name: str, value: object) -> str:
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)  # a database's own number as an id
    if not isinstance(value, str):
        raise Misconfigured("bad-transition", f"{name} is {str(value)[:40]!r}, not a text", hint=_HINT)
    return value
