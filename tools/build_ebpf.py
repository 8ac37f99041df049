"""Builds ``processes.json`` from ``processes.bpf.c``: run `make ebpf` after a change of the latter.

What comes out is the kernel's whole part: a loader program that makes the maps and programs inside the kernel,
and what it needs to do so (``bpftool gen skeleton -L``). Nothing but bpf(2) is needed to run it, and no compiler
on the machines where it runs. The same sources and the same compiler give the same bytes wherever it is built.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import shutil
import subprocess
import sys
import tempfile
import textwrap
import zlib
from pathlib import Path
from typing import Any

KERNEL = Path(__file__).resolve().parent.parent / "src" / "gpuledger" / "sources" / "kernel"
SOURCES = ("processes.bpf.c", "kernel_words.h")
BUILT = KERNEL / "processes.json"
NEEDED = ("clang", "bpftool")

_COMPILE = ("clang", "-target", "bpf", "-mcpu=v3", "-O2", "-g", "-fdebug-compilation-dir=.", "-Wall", "-Wextra",
            "-Werror", "-Wno-unused-parameter", "-c", SOURCES[0], "-o")  # fmt: skip
_ESCAPE = re.compile(rb"\\x([0-9a-f]{2})|\\(0)|\\\n|([^\\])", re.DOTALL)


def source_hashes() -> dict[str, str]:
    """SHA-256 of each source, by file name."""
    return {name: hashlib.sha256((KERNEL / name).read_bytes()).hexdigest() for name in SOURCES}


def makers() -> dict[str, str]:
    """The versions of the tools that are here: other ones give other bytes of the same meaning."""
    return {name: " ".join(_run(name, "--version").decode().splitlines()[: 1 + (name == "bpftool")]) for name in NEEDED}


def build() -> dict[str, Any]:
    """What :data:`BUILT` holds, made anew."""
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder) / "processes.o"
        _run(*_COMPILE, str(made))
        skeleton = _run("bpftool", "gen", "skeleton", "-L", str(made))
    return {
        "what": "made by `make ebpf` from the sources below; not to be edited",
        "sources": source_hashes(),
        "made_by": makers(),
        "maps": _names(skeleton, rb"struct bpf_map_desc (\w+);"),
        "programs": _names(skeleton, rb"struct bpf_prog_desc (\w+);"),
        "loader": _packed(_text(skeleton, b"insns")),
        "for_loader": _packed(_text(skeleton, b"data")),
    }


def _names(skeleton: bytes, pattern: bytes) -> list[str]:
    return [name.decode() for name in re.findall(pattern, skeleton)]


def _text(skeleton: bytes, name: bytes) -> bytes:
    """One C string of the skeleton as bytes, filled up to the length that stands beside it."""
    length = int(re.search(rb"opts\.%s_sz = (\d+);" % name, skeleton)[1])  # type: ignore[index]
    literal = re.search(rb'opts\.%s = \(void \*\)"(.*?)";' % name, skeleton, re.DOTALL)[1]  # type: ignore[index]
    found = bytearray()
    for match in _ESCAPE.finditer(literal):
        if match[1]:
            found.append(int(match[1], 16))
        elif match[2]:
            found.append(0)
        elif match[3]:
            found += match[3]
    if len(found) > length or len(literal) != sum(len(match[0]) for match in _ESCAPE.finditer(literal)):
        raise ValueError(f"bpftool writes {name.decode()} in a way that is not understood here")
    return bytes(found.ljust(length, b"\0"))


def _packed(raw: bytes) -> list[str]:
    return textwrap.wrap(base64.b64encode(zlib.compress(raw, 9)).decode(), 116)


def _run(*command: str) -> bytes:
    done = subprocess.run(command, cwd=KERNEL, capture_output=True, check=False)  # noqa: S603 - our own words, no shell
    if done.returncode:
        raise SystemExit(f"{' '.join(command)}\n{done.stderr.decode()}")
    return done.stdout


def main() -> None:
    """Write :data:`BUILT`."""
    missing = [name for name in NEEDED if shutil.which(name) is None]
    if missing:
        sys.exit(f"needed to build the kernel's part: apt install {' '.join(missing)}")
    BUILT.write_text(json.dumps(build(), indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
