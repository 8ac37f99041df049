"""Versions of dcgm-exporter as image tags give them, and since which one it does what (``FACTS`` A.2)."""

from __future__ import annotations

import re

Version = tuple[int, int, int]
"""Of the exporter itself: the second half of a tag such as ``4.5.3-4.8.2-distroless``."""

MAPS_PROCESSES: Version = (4, 8, 2)
"""4.5.3-4.8.2 (2026-05): the first with #594, which tells the processes of one device apart."""

FOLLOWS_SLICES: Version = (4, 8, 3)
"""4.6.0-4.8.3 (2026-07): the first that asks today's ResourceSlices for a device (#654), not a memory of them."""

_TAG = re.compile(r":v?\d+\.\d+\.\d+-(\d+)\.(\d+)\.(\d+)(?![0-9])")


def exporter_version(image: str) -> Version | None:
    """The exporter's version of an image with a tag of NVIDIA's form; None where it does not tell."""
    found = _TAG.search(image)
    return (int(found[1]), int(found[2]), int(found[3])) if found else None


_EXACT = re.compile(r"v?(\d+)\.(\d+)\.(\d+)")
_OPERATOR_MAPS = (26, 3, 2)
"""The gpu-operator that ships 4.5.3-4.8.2. Releases before 26.3.0 (2026-03) are older than that exporter (2026-05)."""


def chart_version(chart: str, version: str) -> Version | None:
    """The exporter's version that a chart runs where its values name no tag; None where it cannot be told.

    Args:
        chart: ``dcgm-exporter``, whose version is the exporter's own, or ``gpu-operator``.
        version: of the chart, as a release pins it; a range tells nothing.
    """
    found = _EXACT.fullmatch(version.strip())
    if found is None:
        return None
    told = (int(found[1]), int(found[2]), int(found[3]))
    if chart == "dcgm-exporter":
        return told
    if chart != "gpu-operator" or (26, 3, 0) <= told < _OPERATOR_MAPS:
        return None
    return MAPS_PROCESSES if told >= _OPERATOR_MAPS else (MAPS_PROCESSES[0], MAPS_PROCESSES[1], MAPS_PROCESSES[2] - 1)
