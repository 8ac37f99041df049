"""``import trace``: a CSV file of who held devices from when to when, by a preset or a map of the person's own."""

from __future__ import annotations

from pathlib import Path

from gpuledger.errors import Misconfigured
from gpuledger.model.lifecycle import History
from gpuledger.operations.import_history import begun_anew
from gpuledger.operations.reading_files import MOST_HISTORY_BYTES, read_text
from gpuledger.sources import trace_csv, trace_map
from gpuledger.sources.trace_presets import PRESETS

_TEXT = "a trace is CSV in UTF-8; `iconv -t UTF-8` makes it so"
_MAP = "a map is YAML in UTF-8"


def read_trace(
    path: Path,
    *,
    preset: str | None,
    map_file: Path | None,
    zone: str | None = None,
    origin: str | None = None,
    source: str | None = None,
) -> History:
    """What a trace tells.

    Args:
        path: the CSV file; ``-`` for stdin.
        preset: name of a map that is known.
        map_file: a map; one of the two is needed.
        zone: of its local times, instead of the map's.
        origin: what its times count from, instead of the map's.
        source: who says so; by default ``trace:`` and the name of the preset or of the map's file.

    Raises:
        Misconfigured: ``map-needed`` without a preset and a map, or with both; ``unknown-preset``, ``unknown-zone``,
            ``bad-origin``.
        BadInput: a map or a trace that cannot be understood, with its line.
    """
    if (preset is None) == (map_file is None):
        message = "a trace is read by a preset or by a map: one of the two"
        hint = "--preset openb, or --map FILE.yaml; `import trace --show-preset openb` prints a map to start from"
        raise Misconfigured("map-needed", message, hint=hint)
    if map_file is not None:
        found = trace_map.parse(read_text(map_file, hint=_MAP), path=str(map_file))
        named = "" if str(map_file) == "-" else map_file.stem
    else:
        assert preset is not None
        found, named = trace_map.preset(preset), preset
    found = found.instead(zone=zone or "", origin=origin or "")
    text = read_text(path, most=MOST_HISTORY_BYTES, hint=_TEXT)
    told_by = source or (f"{trace_csv.SOURCE}:{named}" if named else trace_csv.SOURCE)
    return begun_anew(trace_csv.parse(text, path=str(path), trace_map=found, source=told_by))


def presets() -> tuple[str, ...]:
    """The names of the traces that are known."""
    return tuple(PRESETS)


def preset_map(name: str) -> str:
    """The map of a known trace, as YAML.

    Raises:
        Misconfigured: ``unknown-preset``.
    """
    trace_map.preset(name)
    return PRESETS[name]
