"""The map of a trace: which column of a CSV file says what, in which units, and what is done with rows that lack it.

In: a YAML document of the person who knows the file, or the name of a preset. Out: a ``TraceMap``.
Nothing is guessed from a file's header: what the map does not declare is not read, and an unknown key is an
error that names its line.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC

from gpuledger.errors import BadInput, Misconfigured
from gpuledger.sources.trace_presets import PRESETS
from gpuledger.sources.trace_times import COUNTED, ISO, LASTING, Times, ZoneNeeded, is_pattern, zone_named
from gpuledger.sources.yaml_nodes import MappingReader, compose

WORDS: dict[str, str] = {
    "id": "the workload's own id; several columns are joined by /",
    "pending": "when it was asked for",
    "start": "when it began to hold its devices",
    "end": "when it let go of them",
    "duration": "how long it held them: instead of the end, or beside it, to tell which hour of two it was",
    "devices": "how many devices, whole or shared",
    "device_ids": "which devices, by their ids",
    "instances": "how many times the devices of the row were taken",
    "share": "the part of each device that it held; whole devices where nothing tells",
    "class": "what was placed",
    "requested_class": "what was asked for, which may be several (A|B)",
    "user": "who asked",
    "team": "of which team, group or virtual cluster",
    "project": "for which project",
    "machine": "on which machine",
    "region": "where",
    "pool": "in which pool or partition",
    "outcome": "how it ended; the words for failure are listed under `failed`",
}
"""What a column can say."""

CONSTANT: tuple[str, ...] = (
    "devices", "instances", "share", "class", "requested_class", "user", "team", "project", "machine", "region", "pool",
)  # fmt: skip
"""What may be declared once for the whole file, and stands where a cell is empty."""

PER: dict[str, dict[str, int]] = {
    "share": {"fraction": 1, "percent": 100, "milli": 1000},
    "devices": {"one": 1, "percent": 100, "milli": 1000},
}
"""Units of shares and devices, and how many of them make one device."""

CHOICES: dict[str, tuple[str, ...]] = {
    "without_start": ("left-out", "pending", "begun"),
    "without_end": ("left-out", "open"),
    "without_devices": ("left-out", "cpu"),
    "censored": ("open", "ended"),
}
"""What is done with rows that lack something, the default first; ``censored`` has none and must be declared."""

_KEYS = (
    "columns", "labels", "constants", "units", "zone", "repeated_hour", "origin", "begins_at", "censored_at", "rows",
    "missing", "failed", "classes", "prefix", "optional", "delimiter", "decimal", "header",
)  # fmt: skip
_DELIMITERS = {"tab": "\t", "comma": ",", "semicolon": ";", "pipe": "|", "space": " "}
_HINT = "a map starts like: columns: {id: job, start: started, end: ended, devices: gpus, class: gpu_type}"
_LONGEST_TEXT = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceMap:
    """What a person declared of a file.

    Args:
        columns: word of :data:`WORDS` to its columns; only ``id`` may have several.
        constants: word of :data:`CONSTANT` to its text.
        labels: (label, column), sorted by label.
        constant_labels: (label, text), sorted by label; stands where the label has no column or an empty cell.
        classes: the trace's spelling of a class to the accounting class; others stay as they are.
        failed: words of ``outcome`` that mean failure.
        missing: word to the texts that mean "not told", besides an empty cell.
        times: how times are written.
        duration_unit: of :data:`LASTING`.
        share_per, devices_per: how many units of the cell make one device.
        begins_at: the beginning of the trace, written as its times are; empty where nothing ran before it.
        censored_at: the end of the trace, written as its times are; empty where it was not declared.
        rows: key of :data:`CHOICES` to what was chosen.
        optional: columns that a file may lack; it then says nothing of their words.
        prefix: put before every id, so that two traces that count from 1 never meet.
        delimiter: one character.
        header: names of the columns where the file has no header; empty: its first line is one.
    """

    columns: Mapping[str, tuple[str, ...]]
    constants: Mapping[str, str] = field(default_factory=dict)
    labels: tuple[tuple[str, str], ...] = ()
    constant_labels: tuple[tuple[str, str], ...] = ()
    classes: Mapping[str, str] = field(default_factory=dict)
    failed: frozenset[str] = frozenset()
    missing: Mapping[str, frozenset[str]] = field(default_factory=dict)
    times: Times = field(default_factory=Times)
    duration_unit: str = "s"
    share_per: int = 1
    devices_per: int = 1
    begins_at: str = ""
    censored_at: str = ""
    rows: Mapping[str, str] = field(default_factory=lambda: {key: known[0] for key, known in CHOICES.items()})
    prefix: str = ""
    optional: frozenset[str] = frozenset()
    delimiter: str = ","
    header: tuple[str, ...] = ()

    def without(self, lacking: Collection[str]) -> TraceMap:
        """The map for a file that lacks some of the columns that are optional."""
        return replace(
            self,
            columns={word: names for word, names in self.columns.items() if not {*names} & {*lacking}},
            labels=tuple((label, column) for label, column in self.labels if column not in lacking),
        )

    def instead(self, *, zone: str = "", origin: str = "") -> TraceMap:
        """The map, with what the person says beside it: ``--zone``, ``--origin``; empty where nothing is said.

        Raises:
            Misconfigured: ``unknown-zone``, or ``bad-origin`` where it is no time or the times count from none.
        """
        times = self.times
        if zone:
            try:
                times = replace(times, zone=zone_named(zone))
            except ValueError as error:
                raise Misconfigured("unknown-zone", str(error), hint="--zone UTC, --zone Europe/Berlin") from None
        if origin:
            try:
                times = replace(times, origin_us=_origin(origin, times))
            except ValueError as error:
                raise Misconfigured(
                    "bad-origin", f"{origin!r} cannot be an origin: {error}", hint=_ORIGIN_HINT
                ) from None
        return replace(self, times=times)


def preset(name: str) -> TraceMap:
    """The map of a trace that is known by name.

    Raises:
        Misconfigured: ``unknown-preset``.
    """
    if name not in PRESETS:
        message = f"{name!r} is not a trace known by name"
        hint = f"--preset {', --preset '.join(PRESETS)}, or --map FILE.yaml for any other"
        raise Misconfigured("unknown-preset", message, hint=hint)
    return parse(PRESETS[name], path=f"preset {name}")


def parse(text: str, *, path: str) -> TraceMap:
    """Understand a map.

    Args:
        text: the whole document.
        path: the file as the user named it; errors carry it with the line.

    Raises:
        BadInput: ``bad-map``, naming the line.
    """
    if len(text) > _LONGEST_TEXT:
        raise BadInput("bad-map", "longer than any map", path=path, hint="check that this is the map")
    try:
        return _map(compose(text, path=path, place="the map", hint=_HINT))
    except BadInput as error:
        # the reader of YAML speaks of policies in its codes; a map has one code for all
        where = f"{path}:{error.line}: " if error.line else f"{path}: "
        sentence = error.message.removeprefix(where)
        raise BadInput("bad-map", sentence, path=path, line=error.line, hint=error.hint) from None


def _map(document: MappingReader) -> TraceMap:
    document.refuse_unknown(_KEYS)
    columns = _columns(document)
    constants, constant_labels = _constants(document)
    labels = document.mapping("labels")
    units = _units(document)
    made = TraceMap(
        columns=columns,
        constants=constants,
        labels=tuple(sorted((name, labels.text(name)) for name in labels.names)) if labels else (),
        constant_labels=constant_labels,
        classes=_texts_by_name(document, "classes"),
        failed=frozenset(document.all_written("failed")),
        missing=_missing(document),
        times=_times(document, units["time"]),
        duration_unit=units["duration"],
        share_per=PER["share"][units["share"]],
        devices_per=PER["devices"][units["devices"]],
        begins_at=document.written("begins_at"),
        censored_at=document.written("censored_at"),
        rows=_rows(document),
        prefix=document.text("prefix"),
        optional=frozenset(document.texts("optional")),
        delimiter=_delimiter(document),
        header=document.texts("header"),
    )
    _check(document, made)
    return made


def _columns(document: MappingReader) -> dict[str, tuple[str, ...]]:
    columns = document.mapping("columns", required=True)
    assert columns is not None
    columns.refuse_unknown(tuple(WORDS))
    found = {}
    for word in columns.names:
        several = word == "id" and columns.is_list(word)
        found[word] = columns.texts(word) if several else (columns.text(word, required=True),)
        if not found[word]:
            raise columns.error("bad-map", "`id` names no column", word, "write id: COLUMN, or id: [COLUMN, COLUMN]")
    for word in ("id", "start"):
        if word not in found:
            raise columns.error("bad-map", f"`columns` lacks `{word}`", word, f"add {word}: COLUMN")
    if "end" not in found and "duration" not in found:
        message = "a row needs an end or a duration"
        raise document.error("bad-map", message, "columns", "write end: COLUMN, or duration: COLUMN with its unit")
    return found


def _constants(document: MappingReader) -> tuple[dict[str, str], tuple[tuple[str, str], ...]]:
    constants = document.mapping("constants")
    if constants is None:
        return {}, ()
    constants.refuse_unknown((*CONSTANT, "labels"))
    labels = constants.mapping("labels")
    return (
        {word: constants.written(word) for word in constants.names if word != "labels"},
        tuple(sorted((name, labels.written(name)) for name in labels.names)) if labels else (),
    )


def _units(document: MappingReader) -> dict[str, str]:
    units = document.mapping("units")
    known = {"time": (*COUNTED, ISO), "duration": LASTING, **{word: tuple(PER[word]) for word in PER}}
    chosen = {word: words[0] for word, words in known.items()}
    if units is None:
        return chosen
    units.refuse_unknown(tuple(known))
    for word in units.names:
        chosen[word] = units.text(word, required=True)
        if chosen[word] not in known[word] and not (word == "time" and is_pattern(chosen[word])):
            hint = f"one of {', '.join(known[word])}" + (", or a pattern such as '%d.%m.%Y %H:%M'" * (word == "time"))
            raise units.error("bad-map", f"{chosen[word]!r} is not a unit of {word}", word, hint)
    return chosen


def _times(document: MappingReader, unit: str) -> Times:
    zone = origin_us = None
    if name := document.text("zone"):
        try:
            zone = zone_named(name)
        except ValueError as error:
            raise document.error("bad-map", str(error), "zone", "zone: UTC, or zone: Europe/Berlin") from None
    if origin := document.written("origin"):
        try:
            origin_us = _origin(origin, Times(unit=unit, zone=zone))
        except ValueError as error:
            raise document.error("bad-map", str(error), "origin", _ORIGIN_HINT) from None
    repeated = document.text("repeated_hour")
    if repeated not in ("", "first", "second"):
        message = f"{repeated!r} is neither the first nor the second"
        raise document.error("bad-map", message, "repeated_hour", "repeated_hour: first, or repeated_hour: second")
    return Times(
        unit=unit, zone=zone, origin_us=origin_us, repeated_hour=repeated, decimal_comma=_decimal(document) == ","
    )


_ORIGIN_HINT = "a time such as 2020-07-01T00:00:00Z; 1970-01-01 where nobody knows the year"


def _origin(text: str, times: Times) -> int:
    if times.unit not in COUNTED:
        raise ValueError(f"times written {times.unit!r} do not count from an origin")
    return Times(unit=ISO, zone=times.zone or UTC).read(text)[0]


def _decimal(document: MappingReader) -> str:
    decimal = document.text("decimal") or "."
    if decimal not in (".", ","):
        raise document.error("bad-map", f"{decimal!r} is no decimal sign", "decimal", "decimal: ',' or decimal: '.'")
    return decimal


def _rows(document: MappingReader) -> dict[str, str]:
    chosen = {key: known[0] for key, known in CHOICES.items()}
    rows = document.mapping("rows")
    if rows is not None:
        rows.refuse_unknown(tuple(CHOICES))
        for key in rows.names:
            chosen[key] = rows.text(key, required=True)
            if chosen[key] not in CHOICES[key]:
                hint = f"{key}: {' or '.join(CHOICES[key])}"
                raise rows.error("bad-map", f"{chosen[key]!r} is nothing that can be done with them", key, hint)
    if ("censored_at" in document.names) != (rows is not None and "censored" in rows.names):
        message = "`censored_at` and rows: {censored: ...} belong together: when the trace ends, and what that means"
        hint = "censored: open where such rows ran on, censored: ended where they ended just then"
        raise document.error("bad-map", message, "censored_at" if document.written("censored_at") else "rows", hint)
    return chosen


def _missing(document: MappingReader) -> dict[str, frozenset[str]]:
    missing = document.mapping("missing")
    if missing is None:
        return {}
    missing.refuse_unknown(tuple(WORDS))
    return {word: frozenset(missing.all_written(word)) for word in missing.names}


def _texts_by_name(document: MappingReader, key: str) -> dict[str, str]:
    texts = document.mapping(key)
    return {name: texts.text(name, required=True) for name in texts.names} if texts else {}


def _delimiter(document: MappingReader) -> str:
    word = document.text("delimiter")
    delimiter = _DELIMITERS.get(word, word or ",")
    if len(delimiter) != 1 or delimiter in "\"'" or delimiter.isalnum():
        hint = f"one character, or one of {', '.join(_DELIMITERS)}"
        raise document.error("bad-map", f"{word!r} cannot separate columns", "delimiter", hint)
    return delimiter


def _check(document: MappingReader, made: TraceMap) -> None:
    """What only all parts together can tell."""
    for words, hint in (
        (("devices", "device_ids"), "devices: COLUMN, or constants: {devices: 1}"),
        (("class",), "class: COLUMN, or constants: {class: A100-SXM4-40GB}"),
    ):
        if not any(word in made.columns or word in made.constants for word in words):
            raise document.error("bad-map", f"nothing tells `{words[0]}`", "columns", hint)
    if made.rows["without_start"] == "pending" and "pending" not in made.columns:
        message = "rows without a start can only be pending if a column tells since when"
        raise document.error("bad-map", message, "rows", "pending: COLUMN")
    if (made.rows["without_start"] == "begun") != bool(made.begins_at):
        message = (
            "`begins_at` and rows: {without_start: begun} belong together: when what has no start is taken to begin"
        )
        raise document.error("bad-map", message, "begins_at" if made.begins_at else "rows", "begins_at: 0")
    named = {name for names in made.columns.values() for name in names} | {column for _, column in made.labels}
    if strange := sorted(made.optional - named):
        message = f"the column {strange[0]!r} is optional, and nothing is read from it"
        raise document.error("bad-map", message, "optional", f"columns that are: {', '.join(sorted(named))}")
    needed = {name for word in ("id", "start") for name in made.columns[word]}
    if needed & made.optional:
        message = "no row can be read without its id and start"
        raise document.error("bad-map", message, "optional", "leave the columns of id and start out of it")
    if made.failed and "outcome" not in made.columns:
        raise document.error("bad-map", "nothing tells the `outcome`", "failed", "columns: {outcome: COLUMN}")
    for key, text in (("begins_at", made.begins_at), ("censored_at", made.censored_at)):
        try:
            if text:
                made.times.read(text)
        except ZoneNeeded:
            pass  # the zone may still be given beside the map; the reader of rows asks for it
        except ValueError as error:
            hint = "write it as the trace writes its times"
            raise document.error("bad-map", str(error), key, hint) from None
