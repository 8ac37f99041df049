"""The agent in namespaces of its own, as a container has them: what it still sees, and what it says it does not."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from e2e.box import COMMAND, Answer, Box
from e2e.machine import PATIENCE_S, need

OWN_PIDS = ("--pid", "--fork", "--mount-proc", "--kill-child")


def inside(box: Box, *arguments: str, status: int, namespaces: tuple[str, ...]) -> Answer:
    """Run the command in new namespaces, to its end."""
    need(os.geteuid() == 0, "namespaces need root")
    done = subprocess.run(
        ["unshare", *namespaces, str(COMMAND), *arguments],
        env=box.environment(),
        cwd=box.folder,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    return Answer(arguments, done.returncode, done.stdout, done.stderr).must(status)


def test_in_a_pid_namespace_of_its_own_the_agent_polls_and_doctor_says_why(box: Box) -> None:
    """Events and driver would speak of pids that are not those of this ``/proc``: no event source is used."""
    why = {"ebpf": "this is a pid namespace of a container", "connector": "this is not the host's own pid namespace"}
    told = " ".join(inside(box, "doctor", status=1, namespaces=OWN_PIDS).stdout.split())
    assert "found pid-namespace not the host's pid namespace" in told
    assert "note naming by polling" in told
    for method, reason in why.items():
        assert f"not by {method}: " in told
        assert reason in told
    assert "docker run --pid=host, or hostPID: true" in told

    said = inside(box, "agent", "--once", "--watch", "auto", status=0, namespaces=OWN_PIDS).stderr
    ((method, detail),) = box.sql("SELECT method, detail FROM watch WHERE source = 'process'")
    assert method == "poll"
    for reason in why.values():
        assert reason in said
        assert reason in detail


def test_in_a_network_namespace_of_its_own_only_the_connector_is_mute(box: Box) -> None:
    """Kernel programs see the whole machine from any network namespace; the connector speaks in the host's."""
    namespaces = ("--net",)
    told = " ".join(inside(box, "doctor", status=0, namespaces=namespaces).stdout.split())
    assert "ok naming by kernel events (eBPF)" in told
    refused = inside(box, "agent", "--once", "--watch", "connector", status=5, namespaces=namespaces)
    assert "only to be had in the host's own network namespace" in refused.stderr


@pytest.fixture
def cgroup(tmp_path: Path) -> Iterator[Path]:
    """A cgroup below the root, whose namespace does not show the root."""
    need(os.geteuid() == 0, "namespaces need root")
    root = tmp_path / "cgroup"
    root.mkdir()
    mounted = subprocess.run(["mount", "-t", "cgroup2", "none", str(root)], capture_output=True, text=True, check=False)
    need(mounted.returncode == 0, f"cgroup v2 is there: {mounted.stderr.strip()}")
    made = root / f"gpuledger-{os.getpid()}"
    made.mkdir()
    yield made
    made.rmdir()
    subprocess.run(["umount", str(root)], check=True)


OWN_CGROUPS = """
echo $$ >"$1"/cgroup.procs
exec unshare --cgroup --mount sh -c 'umount -a -t cgroup2 && mount -t cgroup2 none "$1" && exec "$0" doctor' "$0" "$2"
"""


def test_in_a_cgroup_namespace_of_its_own_opens_by_others_go_unseen(box: Box, cgroup: Path) -> None:
    """Opens are seen at the root of the cgroups, which is not to be reached there: said, with what to mount."""
    done = subprocess.run(
        ["sh", "-c", OWN_CGROUPS, str(COMMAND), str(cgroup), str(cgroup.parent)],
        env=box.environment(), cwd="/", capture_output=True, text=True, timeout=PATIENCE_S, check=False,
    )  # fmt: skip
    told = " ".join(done.stdout.split())
    assert "shows only this container's cgroups: opens by others would go unseen" in told, done.stderr
    assert "docker run --cgroupns=host" in told
