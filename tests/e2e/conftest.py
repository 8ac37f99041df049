"""Fixtures of the end-to-end tests: the libraries, built once; and a machine for each test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from e2e.box import GPU, Box
from e2e.machine import build_clock
from fake_driver.fake_driver import build


@pytest.fixture(scope="session")
def libraries(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The fake driver's libraries and the clock, compiled once."""
    folder = build(tmp_path_factory.mktemp("libraries"))
    build_clock(folder)
    return folder


@pytest.fixture
def bare(tmp_path: Path, libraries: Path) -> Iterator[Box]:
    """A machine without a device yet."""
    box = Box(tmp_path, libraries)
    yield box
    box.close()


@pytest.fixture
def box(bare: Box) -> Box:
    """A machine with one GPU, accounting on."""
    bare.driver.add_gpu(GPU, accounting=True)
    return bare
