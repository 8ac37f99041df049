"""Fixtures of the end-to-end tests: the libraries, built once; and a machine for each test."""

from __future__ import annotations

import subprocess
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


@pytest.fixture(scope="session")
def worker(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The job of ``worker.c``, compiled once."""
    program = tmp_path_factory.mktemp("worker") / "worker"
    source = Path(__file__).with_name("worker.c")
    command = ["gcc", "-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", "-o", str(program), str(source), "-ldl"]
    subprocess.run(command, check=True)
    return program


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
