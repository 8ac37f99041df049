"""The machine that kernel programs are to be loaded on: its cgroups, NVIDIA's major numbers, what it refuses and why.

In: ``/proc`` and ``/sys``. Out: facts of this host, or ``Unavailable`` with the command that grants what is missing.
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from gpuledger.errors import Unavailable
from gpuledger.sources.process_events import NVIDIA_MAJOR

CAPABILITIES: Mapping[str, int] = {"CAP_BPF": 39, "CAP_PERFMON": 38, "CAP_NET_ADMIN": 12}
"""What loading takes, with their numbers (``linux/capability.h``): for programs at all, for reading the kernel's
memory, and for a program on a cgroup. No less and no more is needed (tests/sources/test_ebpf.py)."""

_ADMIN = 21
"""CAP_SYS_ADMIN stands for the first two."""
_FIRST_PID_NAMESPACE = "pid:[4026531836]"
_FIRST_USER_NAMESPACE = "user:[4026531837]"
"""The inodes are constants of the kernel (``PROC_PID_INIT_INO``, ``PROC_USER_INIT_INO``; ``linux/proc_ns.h``)."""
_ROOT_CGROUP = 1
"""Inode, and so id, of the root of cgroup v2 (``kernfs`` numbers from 1)."""
_CHARACTER = re.compile(rb"Character devices:\n(.*?)(?:\n\n|\Z)", re.DOTALL)
_GRANT = "run the agent as root, or in its unit: AmbientCapabilities=" + " ".join(CAPABILITIES)


@dataclass(frozen=True, slots=True)
class EbpfHost:
    """A machine to load kernel programs on.

    Args:
        proc: where ``/proc`` is.
        sys: where ``/sys`` is; others in tests.
    """

    proc: Path = Path("/proc")
    sys: Path = Path("/sys")

    def check(self) -> None:
        """Whether it is worth trying.

        Raises:
            Unavailable: ``ebpf-pid-namespace``, ``ebpf-no-btf``.
        """
        if _link(self.proc / "self/ns/pid") != _FIRST_PID_NAMESPACE:
            raise Unavailable(
                "ebpf-pid-namespace",
                "this is a pid namespace of a container: the kernel's events and the driver would speak of other pids",
                hint="start the container with the host's: docker run --pid=host, or hostPID: true",
            )
        if not (self.sys / "kernel/btf/vmlinux").exists():
            raise Unavailable(
                "ebpf-no-btf",
                "this kernel does not say how it is built (no /sys/kernel/btf/vmlinux): no program can be fitted to it",
                hint="a kernel with CONFIG_DEBUG_INFO_BTF=y, as distributions have had since about 2021; until then "
                "gpuledger agent --watch connector",
            )

    def cgroup_root(self) -> Path:
        """Where the root of cgroup v2 is mounted: alone, or beside v1 (hybrid).

        Raises:
            Unavailable: ``ebpf-no-cgroup2``, ``ebpf-cgroup-namespace``.
        """
        mounts = [line.split(b" ") for line in (self.proc / "self/mountinfo").read_bytes().splitlines()]
        mounts = [words for words in mounts if words[words.index(b"-") + 1] == b"cgroup2"]
        for device, place in ((words[2], Path(_unescaped(words[4]))) for words in mounts):
            try:
                found = place.stat()
            except OSError:
                continue  # not ours to see: another mount of it may be
            # another device: something else is mounted over it
            if found.st_ino == _ROOT_CGROUP and device == b"%d:%d" % (os.major(found.st_dev), os.minor(found.st_dev)):
                return place
        if mounts:
            raise Unavailable(
                "ebpf-cgroup-namespace",
                f"{_unescaped(mounts[0][4])} shows only this container's cgroups: opens by others would go unseen",
                hint="start the container with the host's: docker run --cgroupns=host -v /sys/fs/cgroup:/sys/fs/cgroup",
            )
        raise Unavailable(
            "ebpf-no-cgroup2",
            "cgroup v2 is not mounted, and opens of device nodes are seen at its root",
            hint="sudo mkdir -p /sys/fs/cgroup/unified && sudo mount -t cgroup2 none /sys/fs/cgroup/unified",
        )

    def nvidia_majors(self) -> frozenset[int]:
        """Major numbers of NVIDIA's device nodes: the fixed one, and what the loaded modules have been given."""
        table = _CHARACTER.search((self.proc / "devices").read_bytes())
        lines = [line.split() for line in (table[1] if table else b"").splitlines()]
        return frozenset({NVIDIA_MAJOR}) | {
            int(words[0]) for words in lines if len(words) == 2 and words[1].startswith(b"nvidia")
        }

    def hierarchies(self) -> dict[int, bytes]:
        """Cgroup hierarchies: number to controllers, as lines of ``/proc/PID/cgroup`` begin. v2 is 0 and has none."""
        lines = [line.split(b":", 2) for line in (self.proc / "self/cgroup").read_bytes().splitlines()]
        return {int(words[0]): words[1] for words in lines if len(words) == 3 and words[0].isdigit()}

    def refusal(self, error: OSError) -> Unavailable:
        """What the kernel's refusal means here, and what grants it."""
        if error.errno in (errno.EPERM, errno.EACCES) or (error.errno == errno.EINVAL and self.missing_capabilities()):
            return self._forbidden(error)  # without CAP_PERFMON a helper is not refused but unknown: EINVAL
        if error.errno == errno.ENOSYS:
            return Unavailable("ebpf-refused", "this kernel has no bpf(2)", hint="gpuledger agent --watch connector")
        if error.errno in (errno.ENOMEM, errno.EMFILE, errno.ENFILE, errno.ENOSPC):
            return Unavailable(
                "ebpf-no-room", f"no room for kernel programs: {error.strerror}", hint="free -m; ulimit -n"
            )
        if self._lockdown() == "confidentiality":
            return self._locked()
        return Unavailable(
            "ebpf-refused",
            f"kernel {self._release()} refuses a program: {error.strerror}",
            hint="kernel 5.17 or newer is needed, built with CONFIG_CGROUP_BPF and CONFIG_DEBUG_INFO_BTF; "
            "until then gpuledger agent --watch connector",
        )

    def _forbidden(self, error: OSError) -> Unavailable:
        if missing := self.missing_capabilities():
            words = missing[0] if len(missing) == 1 else f"{', '.join(missing[:-1])} and {missing[-1]}"
            return Unavailable("ebpf-forbidden", f"kernel programs may not be loaded: {words} missing", hint=_GRANT)
        if _link(self.proc / "self/ns/user") != _FIRST_USER_NAMESPACE:
            return Unavailable(
                "ebpf-forbidden",
                "capabilities of a user namespace do not count for kernel programs",
                hint="run the agent outside of rootless containers: " + _GRANT,
            )
        if self._lockdown() == "confidentiality":
            return self._locked()
        return Unavailable(
            "ebpf-forbidden",
            f"kernel programs may not be loaded although every capability is there ({error.strerror}): a seccomp "
            "filter or security module forbids it, or the root cgroup has a program that lets no other beside it",
            hint="docker run --security-opt seccomp=unconfined; bpftool cgroup show /sys/fs/cgroup",
        )

    def _locked(self) -> Unavailable:
        return Unavailable(
            "ebpf-lockdown",
            "this kernel is locked down (confidentiality): no program may read its memory",
            hint="lockdown=integrity on the kernel's command line; until then gpuledger agent --watch connector",
        )

    def missing_capabilities(self) -> list[str]:
        """Which of :data:`CAPABILITIES` this process does not have in effect."""
        found = re.search(rb"^CapEff:\s*([0-9a-f]+)$", (self.proc / "self/status").read_bytes(), re.MULTILINE)
        held = int(found[1], 16) if found else 0
        is_admin = bool(held >> _ADMIN & 1)
        return [
            name
            for name, number in CAPABILITIES.items()
            if not held >> number & 1 and not (is_admin and name != "CAP_NET_ADMIN")
        ]

    def _lockdown(self) -> str:
        """``none``, ``integrity`` or ``confidentiality``; empty where the kernel has none or does not say."""
        try:
            text = (self.sys / "kernel/security/lockdown").read_text(encoding="ascii")
        except OSError:
            return ""
        found = re.search(r"\[(\w+)\]", text)
        return found[1] if found else ""

    def _release(self) -> str:
        return (self.proc / "sys/kernel/osrelease").read_text(encoding="ascii").strip()


def _link(path: Path) -> str:
    try:
        return str(path.readlink())
    except OSError:
        return ""


def _unescaped(word: bytes) -> str:
    """A path of mountinfo: blanks and the like are written in octal (proc(5))."""
    return re.sub(rb"\\([0-7]{3})", lambda match: bytes([int(match[1], 8)]), word).decode("utf-8", "surrogateescape")
