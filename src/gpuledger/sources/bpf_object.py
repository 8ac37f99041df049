"""A built object in the kernel: its maps and programs, and what they are attached to.

In: ``processes.json``, as ``tools/build_ebpf.py`` makes it. Out: file descriptors. The object is brought in by
its own loader, a program that the kernel runs once and that fits every access to the running kernel (CO-RE).
Everything lives by descriptors of this process: it is gone when they are closed, and when the process dies.
"""

from __future__ import annotations

import base64
import json
import os
import struct
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from gpuledger.sources.bpf import Call, Command, address

BUILT = Path(__file__).parent / "kernel" / "processes.json"
LICENSE = b"Dual BSD/GPL"
"""Of the loader, which the kernel asks as well; the programs carry their own."""

_ARRAY, _SYSCALL = 2, 31
_SLEEPABLE = 1 << 4
_CGROUP_DEVICE, _TRACE_ITER = 6, 28
_CONTEXT, _MAP, _PROGRAM = struct.Struct("@IIIIQ"), struct.Struct("@iIQ"), struct.Struct("@i")
_HOLDERS_AT = 120
"""``fd_array`` of the attributes of a program."""
_MISSES_AT, _INFO_BYTES = 208, 216
"""``recursion_misses`` of ``struct bpf_prog_info``, and the structure up to its end (``linux/bpf.h``, 5.12)."""

_PART = 64 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Built:
    """A built object.

    Args:
        maps, programs: names, in the order in which the loader hands them out.
        loader: instructions of the loader.
        for_loader: what it reads: the programs, their types, and where they must be fitted.
    """

    maps: tuple[str, ...]
    programs: tuple[str, ...]
    loader: bytes
    for_loader: bytes


def read_built(path: Path = BUILT) -> Built:
    """The object beside its source."""
    found = json.loads(path.read_text(encoding="utf-8"))
    return Built(
        maps=tuple(found["maps"]),
        programs=tuple(found["programs"]),
        loader=_unpacked(found["loader"]),
        for_loader=_unpacked(found["for_loader"]),
    )


def _unpacked(lines: list[str]) -> bytes:
    return zlib.decompress(base64.b64decode("".join(lines)))


class BpfObject:
    """Maps and programs, brought into the kernel by the constructor.

    Args:
        built: what to bring in.
        call: bpf(2).
        entries: sizes of maps other than those built in, by name.

    Raises:
        OSError: the kernel's refusal; then nothing is left behind.
    """

    def __init__(self, built: Built, *, call: Call, entries: Mapping[str, int]) -> None:
        self._call = call
        self._open: list[int] = []
        maps, programs = self._load(built, entries)
        self.maps = dict(zip(built.maps, maps, strict=True))
        self.programs = dict(zip(built.programs, programs, strict=True))
        self._open += [*programs, *maps]

    def _load(self, built: Built, entries: Mapping[str, int]) -> tuple[list[int], list[int]]:
        """What ``bpf_load_and_run`` of libbpf's ``skel_internal.h`` does."""
        call = self._call
        for_loader, loader, license_text = (
            bytearray(built.for_loader),
            bytearray(built.loader),
            bytearray(LICENSE + b"\0"),
        )
        holder = call(Command.MAP_CREATE, bytearray(struct.pack("@IIIII", _ARRAY, 4, len(for_loader), 1, 0)))
        try:
            first, holders = bytearray(4), bytearray(struct.pack("@i", holder))
            call(
                Command.MAP_UPDATE,
                bytearray(struct.pack("@IIQQQ", holder, 0, address(first), address(for_loader), 0)),
            )
            asked = bytearray(128)
            start = (_SYSCALL, len(loader) // 8, address(loader), address(license_text), 0, 0, 0, 0, _SLEEPABLE)
            struct.pack_into("@IIQQIIQII", asked, 0, *start)
            struct.pack_into("@Q", asked, _HOLDERS_AT, address(holders))
            program = call(Command.PROGRAM_LOAD, asked)
            try:
                return self._run(program, built, entries)
            finally:
                os.close(program)
        finally:
            os.close(holder)

    def _run(self, program: int, built: Built, entries: Mapping[str, int]) -> tuple[list[int], list[int]]:
        size = _CONTEXT.size + _MAP.size * len(built.maps) + _PROGRAM.size * len(built.programs)
        context = bytearray(size)
        _CONTEXT.pack_into(context, 0, size, 0, 0, 0, 0)
        for number, name in enumerate(built.maps):
            _MAP.pack_into(context, _CONTEXT.size + number * _MAP.size, 0, entries.get(name, 0), 0)
        asked = bytearray(80)
        struct.pack_into("@IIIIQQII", asked, 0, program, 0, 0, 0, 0, 0, 0, 0)
        struct.pack_into("@IIQ", asked, 40, size, 0, address(context))
        self._call(Command.PROGRAM_RUN, asked)
        (answer,) = struct.unpack_from("@i", asked, 4)
        if answer < 0:
            raise OSError(-answer, f"the loader: {os.strerror(-answer)}")
        at = _CONTEXT.size + _MAP.size * len(built.maps)
        maps = [_MAP.unpack_from(context, _CONTEXT.size + number * _MAP.size)[0] for number in range(len(built.maps))]
        return maps, [_PROGRAM.unpack_from(context, at + 4 * number)[0] for number in range(len(built.programs))]

    def attach_tracepoint(self, program: str) -> None:
        """Run it at the tracepoint that it was built for."""
        asked = bytearray(struct.pack("@QI", 0, self.programs[program]))
        self._open.insert(0, self._call(Command.TRACEPOINT_OPEN, asked))

    def attach_cgroup(self, program: str, folder: Path) -> None:
        """Ask it at each open of a device node by processes in this cgroup or below, beside whatever else is asked."""
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            asked = bytearray(struct.pack("@IIII", self.programs[program], descriptor, _CGROUP_DEVICE, 0))
            self._open.insert(0, self._call(Command.LINK_CREATE, asked))
        finally:
            os.close(descriptor)

    def attach_iterator(self, program: str) -> int:
        """Make it ready to be run over all that it was built for; the link, for :meth:`iterate`."""
        link = self._call(
            Command.LINK_CREATE, bytearray(struct.pack("@IIII", self.programs[program], 0, _TRACE_ITER, 0))
        )
        self._open.insert(0, link)
        return link

    def iterate(self, link: int) -> bytes:
        """Run it once over everything; what it wrote."""
        descriptor = self._call(Command.ITERATOR_CREATE, bytearray(struct.pack("@II", link, 0)))
        try:
            parts = []
            while part := os.read(descriptor, _PART):
                parts.append(part)
        finally:
            os.close(descriptor)
        return b"".join(parts)

    def numbers(self, name: str) -> set[int]:
        """The keys of a map of 32-bit numbers."""
        found: set[int] = set()
        key, following = bytearray(4), bytearray(4)
        asked = struct.pack("@IIQQ", self.maps[name], 0, 0, address(following))
        while True:
            try:
                self._call(Command.MAP_NEXT_KEY, bytearray(asked))
            except FileNotFoundError:
                return found
            key[:] = following
            found.add(int.from_bytes(key, "little"))
            asked = struct.pack("@IIQQ", self.maps[name], 0, address(key), address(following))

    def put(self, name: str, number: int) -> None:
        """Add a key to a map of 32-bit numbers."""
        key, value = bytearray(number.to_bytes(4, "little")), bytearray(4)
        self._call(
            Command.MAP_UPDATE, bytearray(struct.pack("@IIQQQ", self.maps[name], 0, address(key), address(value), 0))
        )

    def drop(self, name: str, number: int) -> None:
        """Take a key out of a map of 32-bit numbers."""
        key = bytearray(number.to_bytes(4, "little"))
        self._call(Command.MAP_DELETE, bytearray(struct.pack("@IIQQ", self.maps[name], 0, address(key), 0)))

    def missed(self, program: str) -> int:
        """How often the kernel did not run it because it was running already on that CPU."""
        told = bytearray(_INFO_BYTES)
        self._call(Command.INFO, bytearray(struct.pack("@IIQ", self.programs[program], len(told), address(told))))
        return int.from_bytes(told[_MISSES_AT : _MISSES_AT + 8], "little")

    def close(self) -> None:
        """Let everything go: links first, then programs and maps."""
        while self._open:
            os.close(self._open.pop(0))
