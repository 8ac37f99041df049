"""Cgroup paths of every runtime: pod, container, job, LXC, unit, or none."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuledger.errors import BadInput
from gpuledger.sources.cgroup import CgroupIdentity, Kind, parse

SHARED = Path(__file__).resolve().parents[2].parent / "shared" / "data"
A, B, C = "a1" * 32, "b2" * 32, "0c3d" * 16
UID = "1e597579-417e-482f-bf65-5fe170c3aebd"
UID_ = UID.replace("-", "_")
USER = "user.slice/user-1000.slice/user@1000.service"


def one(path: str) -> CgroupIdentity:
    return parse([f"0::{path}"])


@pytest.mark.parametrize(
    ("path", "container", "runtime", "qos"),
    [
        (f"/kubepods/besteffort/pod{UID}/{A}", A, "", "besteffort"),
        (f"/kubepods.slice/kubepods-pod{UID_}.slice/docker-{A}.scope", A, "docker", "guaranteed"),
        (f"/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{UID_}.slice:cri-containerd:{A}", A,
         "containerd", "burstable"),
        (f"/kubepods-burstable-pod{UID_}.slice:cri-containerd:{A}", A, "containerd", "burstable"),
        (f"/system.slice/containerd.service/kubepods-besteffort-pod{UID_}.slice:cri-containerd:{A}", A, "containerd",
         "besteffort"),
        (f"/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod{UID_}.slice/crio-{A}.scope/container", A,
         "cri-o", "besteffort"),
        (f"/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{UID_}.slice/crio-conmon-{A}.scope", "", "",
         "burstable"),
        (f"/kubelet/kubepods/burstable/pod{UID}/{A}", A, "", "burstable"),
        (f"/docker/{B}/kubelet/kubepods/besteffort/pod{UID}/{A}", A, "", "besteffort"),
        (f"/system.slice/docker-{B}.scope/kubelet.slice/kubelet-kubepods-pod{UID_}.slice/cri-containerd-{A}.scope", A,
         "containerd", "guaranteed"),
        (f"/system.slice/k3s.service/kubepods/burstable/pod{UID}/{A}", A, "", "burstable"),
        (f"/../../kubepods-burstable-pod{UID_}.slice/cri-containerd-{A}.scope", A, "containerd", "burstable"),
        (f"/kubepods/burstable/pod{UID}", "", "", "burstable"),
        (f"/kubepods/pod{UID}/{A} (deleted)", A, "", "guaranteed"),
    ],
)  # fmt: skip
def test_pods_are_known_by_uid(path: str, container: str, runtime: str, qos: str) -> None:
    """cgroupfs and systemd drivers, v1's colons, kind, k3s, monitors, and paths seen from elsewhere."""
    found = one(path)
    assert (found.kind, found.pod_uid) == (Kind.POD, UID)
    assert (found.container_id, found.runtime, found.qos, found.unit) == (container, runtime, qos, "")


def test_the_outermost_pod_and_the_innermost_container_count() -> None:
    """A cluster in a pod: the pod that was scheduled pays, the container that runs is named."""
    other = "7d4424e6-bb13-42f4-a47a-45a4828bf54d"
    found = one(f"/kubepods/burstable/pod{UID}/{A}/docker/{B}/kubepods/pod{other}/{C}")
    assert (found.pod_uid, found.container_id, found.qos) == (UID, C, "burstable")
    static = one(f"/kubepods/burstable/pod9729a196c4723b60ab401eaff722982d/{A}")
    assert static.pod_uid == "9729a196c4723b60ab401eaff722982d"


@pytest.mark.parametrize(
    ("path", "container", "runtime"),
    [
        (f"/docker/{A}", A, "docker"),
        (f"/docker/{A}/docker/{B}", B, "docker"),
        (f"/docker-ce/docker/{A}", A, "docker"),
        (f"/system.slice:docker:{A}", A, "docker"),
        (f"/{USER}/user.slice/docker-{A}.scope", A, "docker"),
        (f"/{A}", A, ""),
        (f"/k8s.io/{A}", A, ""),
        (f"/actions_job/{A}", A, ""),
        (f"/custom-prefix-{A}", A, ""),
        (f"/system.slice/nerdctl-{A}.scope", A, "containerd"),
        (f"/machine.slice/libpod-{A}.scope", A, "podman"),
        (f"/machine.slice/libpod-{A}.scope/container", A, "podman"),
        (f"/machine.slice/machine-libpod_pod_{B}.slice/libpod-{A}.scope", A, "podman"),
        (f"/{USER}/user.slice/user-libpod_pod_{B}.slice/libpod-{A}.scope/container", A, "podman"),
        (f"/libpod_parent/libpod-{A}", A, "podman"),
        (f"/libpod_parent/{B}/{A}", A, "podman"),
        (f"/system.slice/web.service/libpod-payload-{A}", A, "podman"),
        (f"/lxc/{A}", A, "docker"),
        (f"/lxc/box/docker/{A}", A, "docker"),
        (f"/ecs/task-family/0123456789abcdef0123456789abcdef/{A}", A, "ecs"),
        ("/ecs/0123456789abcdef0123456789abcdef/0123456789abcdef0123456789abcdef-2574839563",
         "0123456789abcdef0123456789abcdef-2574839563", "ecs"),
        ("/system.slice/garden.service/garden/70eb4ce5-a065-4401-6990-88ed", "70eb4ce5-a065-4401-6990-88ed", "garden"),
        (f"/garden/{UID}", UID, "garden"),
    ],
)  # fmt: skip
def test_containers_are_known_by_their_id(path: str, container: str, runtime: str) -> None:
    """Docker, rootless too, containerd, nerdctl, podman and its pods and quadlets, ECS, Garden, nested."""
    found = one(path)
    assert (found.kind, found.container_id, found.runtime) == (Kind.CONTAINER, container, runtime)
    assert (found.pod_uid, found.unit) == ("", "")


@pytest.mark.parametrize(
    "path",
    [f"/docker/{A}f", f"/docker/{A[1:]}", f"/docker/{A.upper()}", "/docker/47cbd16b77c5", "/docker", "/kubepods", "/",
     "/kubepods/burstable", "/system.slice", "/user/1000.user/2.session", "/lxc/b6d196c1-50f2-4949-abdb-5d4909864487",
     "/podruntime/runtime", "/libpod_parent/conmon", f"/libpod_parent/libpod-conmon-{A}", "/lxc.monitor.box", "/oar",
     f"/mesos/{UID}", "/system.slice/system-serial\\x2dgetty.slice", "/user.slice/user-1000.slice/session-2.scope",
     "/user.slice/user-1000.slice/session-c1.scope", f"/system.slice/docker-{A}.slice"],
)  # fmt: skip
def test_what_only_looks_like_an_identity_is_none(path: str) -> None:
    """Ids of another length, slices, login sessions, monitors, platforms' own ids."""
    assert one(path).kind is Kind.NONE


@pytest.mark.parametrize(
    ("path", "unit"),
    [
        ("/system.slice/ollama.service", "ollama.service"),
        ("/system.slice/docker.service", "docker.service"),
        ("/system.slice/ollama.service/worker", "ollama.service"),
        ("/system.slice/web.service/runtime", "web.service"),
        (f"/{USER}/app.slice/jupyter.service", "jupyter.service"),
        (f"/{USER}/app.slice/app-org.gnome.Terminal.slice/vte-spawn-{UID}.scope", f"vte-spawn-{UID}.scope"),
        (f"/{USER}/app.slice/dbus-:1.2-org.x@0.service", "dbus-:1.2-org.x@0.service"),
        (f"/{USER}/user.slice/podman-6696.scope", "podman-6696.scope"),
        (f"/system.slice/{A}.service", f"{A}.service"),
        (f"/machine.slice/libpod-conmon-{A}.scope", f"libpod-conmon-{A}.scope"),
        ("/machine.slice/machine-box.scope/payload", "machine-box.scope"),
        ("/machine.slice/machine-qemu\\x2d1\\x2dvm.scope/libvirt/emulator", "machine-qemu\\x2d1\\x2dvm.scope"),
        ("/system.slice/run-ra2ddf9594bbf4a1986439b594f89eb0f.scope", "run-ra2ddf9594bbf4a1986439b594f89eb0f.scope"),
        ("/init.scope", "init.scope"),
    ],
)
def test_units_are_spelled_as_systemd_does(path: str, unit: str) -> None:
    """The deepest component that is a service or a scope; escapes stay, since that is its name."""
    found = one(path)
    assert (found.kind, found.unit, found.container_id) == (Kind.UNIT, unit, "")


@pytest.mark.parametrize(
    ("path", "kind", "job", "step", "task"),
    [
        ("/slurm/uid_1000/job_7/step_batch/task_0", Kind.SLURM, "7", "batch", "0"),
        ("/slurm_node01/uid_1000/job_7", Kind.SLURM, "7", "", ""),
        ("/system.slice/slurmstepd.scope/job_7/step_extern/user/task_special", Kind.SLURM, "7", "extern", "special"),
        ("/system.slice/node01_slurmstepd.scope/job_7/step_3/slurm", Kind.SLURM, "7", "3", ""),
        ("/../../job_7/step_0/user/task_2", Kind.SLURM, "7", "0", "2"),
        ("/slurm/uid_1000/job_7_12/step_0", Kind.SLURM, "7_12", "0", ""),
        ("/oar/alice_smith_456789", Kind.OAR, "456789", "", ""),
        ("/oar.slice/oar-u1000.slice/oar-u1000-j123456", Kind.OAR, "123456", "", ""),
    ],
)
def test_batch_jobs_are_known_by_their_id(path: str, kind: Kind, job: str, step: str, task: str) -> None:
    """Slurm with v1, v2 and several slurmd; OAR 2 and 3."""
    found = one(path)
    assert (found.kind, found.slurm_job_id, found.slurm_step, found.slurm_task) == (kind, job, step, task)
    assert found.unit == ""
    assert one("/scratch/job_7").kind is Kind.NONE


@pytest.mark.parametrize(
    ("path", "name", "unit"),
    [("/lxc/100", "100", ""), ("/lxc/100/ns/system.slice/cron.service", "100", "cron.service"),
     ("/lxc.payload.outer/lxc.payload.inner", "inner", ""), ("/lxc.payload/box/init.scope", "box", "init.scope")],
)  # fmt: skip
def test_lxc_is_known_by_its_name(path: str, name: str, unit: str) -> None:
    """LXC, LXD and Proxmox, and the unit inside."""
    found = one(path)
    assert (found.kind, found.container_id, found.runtime, found.unit) == (Kind.LXC, name, "lxc", unit)


def test_all_hierarchies_are_looked_at() -> None:
    """A runtime puts a process into some of them only; the most binding wins wherever it stands."""
    lines = ["11:hugetlb:/", "10:blkio:/init.scope", f"9:devices:/docker/{A}", "1:name=systemd:/system.slice/x.service"]
    assert parse(lines).container_id == A
    assert parse(reversed(lines[1:2] + lines[3:])).unit == "x.service"
    both = parse([f"9:devices:/docker/{A}", "4:memory:/slurm/uid_1/job_7/step_0/task_1"])
    assert (both.kind, both.slurm_job_id, both.slurm_step) == (Kind.CONTAINER, "7", "0")
    assert parse([f"3:cpu:/kubepods/pod{UID}", f"2:memory:/kubepods/pod{UID}/{A}"]).container_id == A
    assert parse([]) == CgroupIdentity()
    assert parse(["1:name=systemd:/a/b", "0::/"]).path == "/a/b"


@pytest.mark.parametrize("line", ["random garbage", "a:cpu:/", "1:cpu", "1:cpu:relative", ":cpu:/", "1:/x:/"])
def test_a_line_that_is_not_a_cgroup_line_is_an_error(line: str) -> None:
    """And is named."""
    with pytest.raises(BadInput) as caught:
        parse(["0::/", line])
    assert (caught.value.code, caught.value.line) == ("not-cgroup", 2)


@settings(max_examples=200)
@given(
    st.lists(
        st.sampled_from(
            [
                f"pod{UID}",
                A,
                "docker",
                "lxc",
                "slurm",
                "job_7",
                "step_0",
                "x.service",
                ":",
                "..",
                "oar",
                "a_7",
                "ecs",
                "garden",
            ]
        )
        | st.text(max_size=20)
    )
)
def test_any_path_gives_an_identity_or_an_error_of_ours(parts: list[str]) -> None:
    """Whatever a folder is called."""
    try:
        identity = parse([f"0::/{'/'.join(parts)}", *parts[:1]])
    except BadInput:
        return
    assert identity.kind in Kind


def test_every_real_case_means_what_it_should() -> None:
    """48 cases of eleven projects, each with the identity that it means."""
    if not SHARED.is_dir():
        if os.environ.get("CI"):
            pytest.fail("../shared/data is absent, and CI must try the real inputs")
        pytest.skip("../shared/data is absent: the real cgroup cases are not tried")
    cases = [json.loads(line) for line in (SHARED / "cgroup" / "cases.jsonl").read_text(encoding="utf-8").splitlines()]
    wrong = []
    for case in cases:
        try:
            identity = parse(case["lines"])
        except BadInput:
            found = dict.fromkeys(case["expected"]) | {"kind": "error"}
        else:
            found = {name: str(getattr(identity, name)) or None for name in case["expected"]}
        if found != case["expected"]:
            wrong.append((case["id"], found))
    assert len(cases) >= 48
    assert not wrong
