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
