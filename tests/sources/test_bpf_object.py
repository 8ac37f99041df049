"""The built object: made of the source beside it, brought into the kernel whole, or not at all."""

from __future__ import annotations

import errno
import json
import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from e2e.machine import need
from gpuledger.sources import ebpf_records
from gpuledger.sources.bpf import Command, system_call
from gpuledger.sources.bpf_object import BUILT, LICENSE, BpfObject, read_built
from gpuledger.sources.process_events import Happened
from sources.kernel_events import descriptors, need_root

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from tools import build_ebpf  # noqa: E402 - the build step is no part of the product

SOURCE = (BUILT.parent / "processes.bpf.c").read_text(encoding="utf-8")


@pytest.fixture
def loaded() -> Iterator[BpfObject]:
    """The object in the kernel, attached to nothing."""
    need_root()
    made = BpfObject(read_built(), call=system_call(), entries={"ring": 4096})
    yield made
    made.close()


def test_the_object_was_built_from_the_source() -> None:
    """`make ebpf` was run after the last change."""
    assert json.loads(BUILT.read_text(encoding="utf-8"))["sources"] == build_ebpf.source_hashes()


def test_the_object_is_what_the_compiler_makes_of_the_source() -> None:
    """Nobody can hand in other instructions than those that can be read."""
    kept = json.loads(BUILT.read_text(encoding="utf-8"))
    for name in build_ebpf.NEEDED:
        need(shutil.which(name) is not None, f"to build the kernel's part: apt install {name}")
    if build_ebpf.makers() != kept["made_by"]:
        need(False, f"other tools than the object was built by, {kept['made_by']}: {build_ebpf.makers()}")
    assert build_ebpf.build() == kept


def test_what_the_licence_line_says_is_what_the_kernel_is_told() -> None:
    """It lends its helpers to GPL-compatible programs only."""
    assert f'LICENSE[] SEC("license") = "{LICENSE.decode()}"' in SOURCE
    assert SOURCE.startswith("/* SPDX-License-Identifier: Apache-2.0 OR BSD-2-Clause OR GPL-2.0-only\n")


def test_both_sides_mean_the_same_numbers() -> None:
    """Kinds and flags stand in C and in Python; a new one here is a new one there."""
    kinds = f"enum {{ {', '.join(f'{kind.name} = {kind.value}' for kind in Happened if kind is not Happened.FORK)} }};"
    flags = ("PROGRAM", "ARGS_READ", "ARGS_CUT", "EXE_WHOLE", "CWD_WHOLE", "CGROUP_WHOLE")
    assert kinds in SOURCE
    assert f"enum {{ {', '.join(f'{flag} = {getattr(ebpf_records, flag)}' for flag in flags)} }};" in SOURCE
    assert f"#define EXIT_BYTES {ebpf_records.EXIT.size}\n" in SOURCE
    assert f"#define SHORT_BYTES {ebpf_records.SHORT.size}\n" in SOURCE


def test_everything_is_brought_in_and_let_go(loaded: BpfObject) -> None:
    """Each map and program is a descriptor of its own, which no child inherits."""
    held = [*loaded.maps.values(), *loaded.programs.values()]
    assert set(loaded.maps) == {"ring", "majors", "told", "slots", "bss"}
    assert set(loaded.programs) == {"on_exec", "on_exit", "on_open", "on_file"}
    assert len(set(held)) == len(held)
    assert not [descriptor for descriptor in held if os.get_inheritable(descriptor)]
    loaded.close()
    for descriptor in held:
        with pytest.raises(OSError, match="Bad file descriptor"):
            os.fstat(descriptor)


def test_a_map_has_the_size_asked_for(loaded: BpfObject) -> None:
    """The ring is made as large as the caller wants it; the others as built."""
    sizes = {}
    for name, descriptor in loaded.maps.items():
        told = Path(f"/proc/self/fdinfo/{descriptor}").read_text()
        sizes[name] = int(told.partition("max_entries:")[2].split()[0])
    assert sizes["ring"] == 4096
    assert sizes["majors"] == 64


def test_numbers_are_put_in_and_taken_out(loaded: BpfObject) -> None:
    """The set of major numbers."""
    assert loaded.numbers("majors") == set()
    for number in (195, 1, 511, 195):
        loaded.put("majors", number)
    assert loaded.numbers("majors") == {1, 195, 511}
    loaded.drop("majors", 1)
    assert loaded.numbers("majors") == {195, 511}
    with pytest.raises(FileNotFoundError):
        loaded.drop("majors", 1)


def test_a_program_that_never_ran_missed_nothing(loaded: BpfObject) -> None:
    """The kernel counts for each what it left out."""
    assert [loaded.missed(program) for program in loaded.programs] == [0, 0, 0, 0]


def test_an_iterator_that_finds_nothing_tells_nothing(loaded: BpfObject) -> None:
    """No major number is meant yet."""
    assert loaded.iterate(loaded.attach_iterator("on_file")) == b""


@pytest.mark.parametrize("at", range(4))
def test_a_refusal_half_way_leaves_no_descriptor(at: int) -> None:
    """Holder made, filled, loader loaded, loader run: each may be refused."""
    need_root()
    real, count = system_call(), iter(range(100))

    def call(command: Command, attributes: bytearray) -> int:
        if next(count) == at:
            raise OSError(errno.E2BIG, "Argument list too long")
        return real(command, attributes)

    before = descriptors()
    with pytest.raises(OSError, match="too long"):
        BpfObject(read_built(), call=call, entries={})
    assert descriptors() == before


def test_what_the_loader_is_refused_is_told() -> None:
    """A ring of no whole page is no ring: the kernel's answer comes through, and what was made before is let go."""
    need_root()
    before = descriptors()
    with pytest.raises(OSError, match="the loader: Invalid argument") as raised:
        BpfObject(read_built(), call=system_call(), entries={"ring": 1000})
    assert raised.value.errno == errno.EINVAL
    assert descriptors() == before


def test_a_folder_that_is_no_cgroup_is_refused(loaded: BpfObject, tmp_path: Path) -> None:
    """Nothing is attached, and its descriptor is let go."""
    before = descriptors()
    with pytest.raises(OSError, match="LINK_CREATE"):
        loaded.attach_cgroup("on_open", tmp_path)
    assert descriptors() == before
