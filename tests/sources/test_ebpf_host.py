"""Which machine can have kernel events, and what is said where one cannot."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from gpuledger.errors import Unavailable
from gpuledger.sources.ebpf_host import EbpfHost

DEVICES = """Character devices:
  1 mem
195 nvidia
195 nvidiactl
195 nvidia-modeset
234 nvidia-caps
235 nvidia-nvswitch
511 nvidia-uvm

Block devices:
  7 loop
259 nvidia-is-no-disk
"""


class Machine:
    """A made-up ``/proc`` and ``/sys``, of a machine where all is well.

    Args:
        folder: where they are made.
    """

    def __init__(self, folder: Path) -> None:
        self.proc, self.sys = folder / "proc", folder / "sys"
        self.host = EbpfHost(proc=self.proc, sys=self.sys)
        (self.proc / "self/ns").mkdir(parents=True)
        (self.proc / "sys/kernel").mkdir(parents=True)
        (self.sys / "kernel/btf").mkdir(parents=True)
        (self.sys / "kernel/security").mkdir(parents=True)
        (self.sys / "kernel/btf/vmlinux").touch()
        (self.proc / "self/ns/pid").symlink_to("pid:[4026531836]")
        (self.proc / "self/ns/user").symlink_to("user:[4026531837]")
        (self.proc / "sys/kernel/osrelease").write_text("5.15.0-91-generic\n")
        (self.proc / "devices").write_text(DEVICES)
        self.capabilities("CAP_BPF", "CAP_PERFMON", "CAP_NET_ADMIN")
        self.lockdown("none")

    def capabilities(self, *names: str) -> None:
        """Hold these and no others."""
        numbers = {"CAP_BPF": 39, "CAP_PERFMON": 38, "CAP_NET_ADMIN": 12, "CAP_SYS_ADMIN": 21}
        held = sum(1 << numbers[name] for name in names)
        (self.proc / "self/status").write_text(f"Name:\tx\nCapPrm:\tffffffff\nCapEff:\t{held:016x}\nCapBnd:\t0\n")

    def lockdown(self, mode: str) -> None:
        """As the kernel's file has it."""
        modes = ("none", "integrity", "confidentiality")
        text = " ".join(f"[{one}]" if one == mode else one for one in modes)
        (self.sys / "kernel/security/lockdown").write_text(text + "\n")

    def mounts(self, *lines: str) -> None:
        """What is mounted."""
        (self.proc / "self/mountinfo").write_text("".join(f"{line}\n" for line in lines))

    def inode(self, link: str, target: str) -> None:
        """Be in another namespace."""
        (self.proc / "self/ns" / link).unlink()
        (self.proc / "self/ns" / link).symlink_to(target)


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    """A machine where all is well."""
    return Machine(tmp_path)


def test_a_good_machine_is_let_through(machine: Machine) -> None:
    """Nothing is asked of it that it has not."""
    machine.host.check()
    assert machine.host.missing_capabilities() == []


def test_a_containers_pids_are_refused(machine: Machine) -> None:
    """The kernel's events have other numbers than the driver tells this container."""
    machine.inode("pid", "pid:[4026532201]")
    with pytest.raises(Unavailable) as raised:
        machine.host.check()
    assert raised.value.code == "ebpf-pid-namespace"
    assert "--pid=host" in raised.value.hint
    (machine.proc / "self/ns/pid").unlink()
    with pytest.raises(Unavailable, match="pid namespace"):
        machine.host.check()


def test_a_kernel_without_btf_is_refused(machine: Machine) -> None:
    """Nobody knows where its fields are."""
    (machine.sys / "kernel/btf/vmlinux").unlink()
    with pytest.raises(Unavailable) as raised:
        machine.host.check()
    assert raised.value.code == "ebpf-no-btf"
    assert "CONFIG_DEBUG_INFO_BTF" in raised.value.hint


def test_cgroup_v1_alone_is_refused(machine: Machine) -> None:
    """v2 can be mounted beside it, and the hint does."""
    machine.mounts("32 31 0:29 / /sys/fs/cgroup/cpu rw,relatime shared:7 - cgroup cgroup rw,cpu")
    with pytest.raises(Unavailable) as raised:
        machine.host.cgroup_root()
    assert raised.value.code == "ebpf-no-cgroup2"
    assert "mount -t cgroup2" in raised.value.hint


def test_a_part_of_the_cgroups_is_refused(machine: Machine, tmp_path: Path) -> None:
    """A container's view of them: whoever is outside would go unseen."""
    (tmp_path / "cgroup").mkdir()
    machine.mounts(
        f"41 31 0:38 / {tmp_path}/gone rw - cgroup2 cgroup2 rw",
        f"42 31 0:38 / {tmp_path}/cgroup rw - cgroup2 cgroup2 rw",
    )
    with pytest.raises(Unavailable) as raised:
        machine.host.cgroup_root()
    assert raised.value.code == "ebpf-cgroup-namespace"
    assert "--cgroupns=host" in raised.value.hint


def test_the_root_is_found_among_mounts(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hybrid or alone, however its path is written; its inode is 1, as is that of /proc, which lies over another."""
    real = Path.stat

    def stat(self: Path, **words: bool) -> os.stat_result:
        if str(self) == "/a b/unified":
            return os.stat_result((0, 1, os.makedev(0, 38), *[0] * 7))
        return real(self, **words)

    monkeypatch.setattr(Path, "stat", stat)
    machine.mounts(
        "31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw",
        "40 31 0:99 / /proc rw - cgroup2 cgroup2 rw",
        r"41 31 0:38 / /a\040b/unified rw,nosuid shared:9 master:3 - cgroup2 none rw,nsdelegate",
    )
    assert machine.host.cgroup_root() == Path("/a b/unified")


def test_majors_are_those_of_loaded_modules(machine: Machine) -> None:
    """Numbers dealt out differ from machine to machine; without the driver its fixed one stays."""
    assert machine.host.nvidia_majors() == {195, 234, 235, 511}
    (machine.proc / "devices").write_text("Character devices:\n  1 mem\n\nBlock devices:\n")
    assert machine.host.nvidia_majors() == {195}


def test_hierarchies_are_read_as_the_kernel_numbers_them(machine: Machine) -> None:
    """A path may hold colons; v2 is 0 and has no controllers."""
    (machine.proc / "self/cgroup").write_text("9:name=systemd:/a:b\n4:cpu,cpuacct:/\n0::/x\n")
    assert machine.host.hierarchies() == {9: b"name=systemd", 4: b"cpu,cpuacct", 0: b""}


@pytest.mark.parametrize(
    ("held", "said"),
    [
        ((), "CAP_BPF, CAP_PERFMON and CAP_NET_ADMIN missing"),
        (("CAP_BPF", "CAP_NET_ADMIN"), ": CAP_PERFMON missing"),
        (("CAP_SYS_ADMIN",), ": CAP_NET_ADMIN missing"),
    ],
)
@pytest.mark.parametrize("number", [errno.EPERM, errno.EACCES, errno.EINVAL])
def test_missing_capabilities_are_named(machine: Machine, held: tuple[str, ...], said: str, number: int) -> None:
    """And the hint is the line that grants them."""
    machine.capabilities(*held)
    error = machine.host.refusal(OSError(number, "no"))
    assert (error.code, error.message.endswith(said)) == ("ebpf-forbidden", True)
    assert "AmbientCapabilities=CAP_BPF CAP_PERFMON CAP_NET_ADMIN" in error.hint


def test_capabilities_of_a_user_namespace_do_not_count(machine: Machine) -> None:
    """Rootless containers show all of them, and the kernel refuses all the same."""
    machine.inode("user", "user:[4026532300]")
    error = machine.host.refusal(OSError(errno.EPERM, "no"))
    assert error.code == "ebpf-forbidden"
    assert "user namespace" in error.message


def test_a_filter_is_suspected_where_nothing_is_missing(machine: Machine) -> None:
    """Docker's default seccomp profile forbids bpf(2) without the capability in its own list."""
    error = machine.host.refusal(OSError(errno.EPERM, "Operation not permitted"))
    assert error.code == "ebpf-forbidden"
    assert "seccomp" in error.message
    assert "Operation not permitted" in error.message


@pytest.mark.parametrize("number", [errno.EPERM, errno.EINVAL])
def test_a_locked_kernel_says_so(machine: Machine, number: int) -> None:
    """Its memory may not be read by anybody."""
    machine.lockdown("confidentiality")
    assert machine.host.refusal(OSError(number, "no")).code == "ebpf-lockdown"
    machine.lockdown("integrity")
    assert machine.host.refusal(OSError(number, "no")).code != "ebpf-lockdown"


@pytest.mark.parametrize("number", [errno.EINVAL, errno.E2BIG, errno.EOPNOTSUPP, errno.ENOTSUP, errno.ESRCH])
def test_an_older_kernel_is_named(machine: Machine, number: int) -> None:
    """With what it would need."""
    (machine.sys / "kernel/security/lockdown").unlink()
    error = machine.host.refusal(OSError(number, os.strerror(number)))
    assert error.code == "ebpf-refused"
    assert "5.15.0-91-generic" in error.message
    assert "5.17" in error.hint


def test_no_bpf_and_no_room_are_told_apart(machine: Machine) -> None:
    """One is for another kernel, the other for a quieter hour."""
    assert machine.host.refusal(OSError(errno.ENOSYS, "no")).code == "ebpf-refused"
    for number in (errno.ENOMEM, errno.EMFILE, errno.ENFILE, errno.ENOSPC):
        assert machine.host.refusal(OSError(number, "no")).code == "ebpf-no-room"
