"""Versions of the exporter in image tags."""

from __future__ import annotations

import pytest

from gpuledger.audit.versions import FOLLOWS_SLICES, MAPS_PROCESSES, chart_version, exporter_version


@pytest.mark.parametrize(
    ("image", "version"),
    [
        ("nvcr.io/nvidia/k8s/dcgm-exporter:4.5.3-4.8.2-distroless", (4, 8, 2)),
        ("nvidia/dcgm-exporter:3.1.3-3.1.2-ubuntu20.04", (3, 1, 2)),
        ("r:5000/dcgm-exporter:v4.6.0-4.8.10@sha256:00", (4, 8, 10)),
        ("dcgm-exporter:latest", None),
        ("dcgm-exporter@sha256:c1418a43", None),
        ("dcgm-exporter:4.8.2", None),
        ("FILLED BY THE OPERATOR", None),
        ("", None),
    ],
)
def test_the_second_half_of_a_tag(image: str, version: tuple[int, int, int] | None) -> None:
    """The first half is DCGM's own; other tags do not tell."""
    assert exporter_version(image) == version


def test_versions_are_in_order() -> None:
    """Ten comes after nine."""
    assert (4, 8, 1) < MAPS_PROCESSES < FOLLOWS_SLICES < (4, 8, 10)


@pytest.mark.parametrize(
    ("chart", "version", "told"),
    [
        ("dcgm-exporter", "4.8.2", (4, 8, 2)),
        ("dcgm-exporter", "3.4.0", (3, 4, 0)),
        ("dcgm-exporter", "4.x", None),
        ("dcgm-exporter", ">=4.8.2", None),
        ("gpu-operator", "v25.3.3", (4, 8, 1)),
        ("gpu-operator", "v26.3.1", None),
        ("gpu-operator", "v26.3.2", (4, 8, 2)),
        ("gpu-operator", "27.1.0", (4, 8, 2)),
        ("other", "1.2.3", None),
        ("dcgm-exporter", "", None),
    ],
)
def test_the_version_that_a_chart_runs(chart: str, version: str, told: tuple[int, int, int] | None) -> None:
    """The exporter's chart has its version; the operator's is known by the one that ships the first that maps."""
    assert chart_version(chart, version) == told
