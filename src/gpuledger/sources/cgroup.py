"""What ``/proc/PID/cgroup`` says a process belongs to: pod, container, batch job, LXC, or systemd unit.

Lines in, one :class:`CgroupIdentity` out; pure. All hierarchies are looked at, v1 and v2 alike, since
runtimes do not put a process into all of them. The rule, most binding first: pod UID, else container
id, else batch job (Slurm, OAR), else LXC, else systemd unit, else none. Ids may be nested (kind, Docker
in Docker): the pod is the outermost, the container the innermost.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from gpuledger.errors import BadInput


class Kind(StrEnum):
    """What a process belongs to, most binding first."""

    POD = "pod"
    CONTAINER = "container"
    SLURM = "slurm"
    OAR = "oar"
    LXC = "lxc"
    UNIT = "unit"
    NONE = "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class CgroupIdentity:
    """What the kernel's cgroup path names. Empty strings where it names none.

    Args:
        kind: the most binding of what was found.
        pod_uid: Kubernetes pod UID with dashes, or the 32 hex digits of a static pod.
        container_id: 64 hex digits; the name of an LXC; the id of an ECS task or Garden container.
        runtime: docker, containerd, cri-o, podman, lxc, ecs, garden; empty where the path does not tell.
        qos: guaranteed, burstable or besteffort.
        unit: systemd unit as systemd spells it (``\\x2d`` stays), also one inside a container.
        slurm_job_id: the batch job, Slurm or OAR.
        slurm_step: ``0``, ``batch``, ``extern``, ``interactive``.
        slurm_task: ``0``, ``special``.
        path: the path that told it.
    """

    kind: Kind = Kind.NONE
    pod_uid: str = ""
    container_id: str = ""
    runtime: str = ""
    qos: str = ""
    unit: str = ""
    slurm_job_id: str = ""
    slurm_step: str = ""
    slurm_task: str = ""
    path: str = ""


_LINE = re.compile(r"[0-9]{1,10}:([^:/]*):(/.*)", re.DOTALL)
_UUID = r"[0-9a-f]{8}[-_][0-9a-f]{4}[-_][0-9a-f]{4}[-_][0-9a-f]{4}[-_][0-9a-f]{12}"
_WHOLE_UUID = re.compile(_UUID)
_POD = re.compile(rf"(?:[\w.-]*kubepods[\w.-]*-)?pod({_UUID}|[0-9a-f]{{32}})(?:\.slice)?")
_CONTAINER = re.compile(r"(?:([A-Za-z][\w.-]*)[-_])?([0-9a-f]{64})(?:\.scope)?")
_COLONS = re.compile(r"(.*):([\w.-]+):([0-9a-f]{64})")
"""``SLICE:PREFIX:ID``: a systemd-style cgroup path that a runtime with the cgroupfs driver took literally."""
_ECS_TASK = re.compile(r"[0-9a-f]{32}-[0-9]{6,20}")
"""A Fargate container: the task's id and a number."""
_GARDEN = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{4,12}")
"""Cloud Foundry's ids: five groups, the last one often short."""
_JOB = re.compile(r"job_([0-9]+(?:[_.+][0-9]+)*)")
_STEP = re.compile(r"step_([\w.+-]+)")
_TASK = re.compile(r"task_(\w+)")
_SLURM_ABOVE = re.compile(r"slurm(?:_.*)?|(?:.*_)?slurmstepd\.scope|uid_[0-9]+")
"""``slurm`` (v1), ``slurm_NODE`` and ``NODE_slurmstepd.scope`` where several slurmd share a machine."""
_OAR_2 = re.compile(r".+_([0-9]+)")
_OAR_3 = re.compile(r"oar-u[0-9]+-j([0-9]+)(?:\.(?:slice|scope))?")
_UNIT = re.compile(r".+\.(?:service|scope)")
_LOGIN = re.compile(r"session-[\w-]+\.scope")
"""A login session: it names a person's terminal, not what runs."""

_RUNTIME_OF_PREFIX = {
    "docker": "docker", "crio": "cri-o", "cri-o": "cri-o", "cri-containerd": "containerd", "containerd": "containerd",
    "nerdctl": "containerd", "libpod": "podman", "libpod-payload": "podman", "podman": "podman",
}  # fmt: skip
_RUNTIME_OF_FOLDER = _RUNTIME_OF_PREFIX | {
    "lxc": "docker", "ecs": "ecs", "garden": "garden", "libpod_parent": "podman",
}  # fmt: skip
"""A bare id under /lxc is Docker's old LXC driver (1.1): an LXC has a name."""


def parse(lines: Iterable[str], *, path: str = "cgroup") -> CgroupIdentity:
    """The identity that the lines of a cgroup file mean.

    Args:
        lines: lines of ``/proc/PID/cgroup``; empty ones are passed over.
        path: the file, for messages.

    Raises:
        BadInput: ``not-cgroup`` at the first line that is not ``ID:CONTROLLERS:PATH``.
    """
    found: list[tuple[tuple[int, ...], CgroupIdentity]] = []
    for number, line in enumerate(lines, start=1):
        content = line.rstrip("\r\n")
        if not content:
            continue
        match = _LINE.fullmatch(content)
        if match is None:
            message = f"not a cgroup line: {content[:60]!r}"
            raise BadInput("not-cgroup", message, path=path, line=number, hint="cat /proc/PID/cgroup shows the shape")
        one = read_path(match[2].removesuffix(" (deleted)"))
        found.append((_rank(one, match[1], number), one))
    if not found:
        return CgroupIdentity()
    best = min(found, key=lambda pair: pair[0])[1]
    job = next((one for _, one in found if one.slurm_job_id), best)
    # a container started inside a batch job: another hierarchy may tell the job
    return replace(best, slurm_job_id=job.slurm_job_id, slurm_step=job.slurm_step, slurm_task=job.slurm_task)


def _rank(one: CgroupIdentity, controllers: str, number: int) -> tuple[int, ...]:
    """Smaller tells more: the kind, a container, systemd's own hierarchy for units, depth, first in the file."""
    by_systemd = one.kind in (Kind.UNIT, Kind.NONE) and controllers not in ("", "name=systemd")
    return (
        list(Kind).index(one.kind),
        0 if one.container_id else 1,
        1 if one.unit == "init.scope" else 0,
        1 if by_systemd else 0,
        -one.path.rstrip("/").count("/"),
        number,
    )


def read_path(path: str) -> CgroupIdentity:
    """What one cgroup path names. A path seen from another namespace begins with ``/..``; that is passed over."""
    parts = _parts(path)
    pod_at, pod_uid = _pod(parts)
    container_at, container_id, runtime = _container(parts)
    job_at, job, step, task = _slurm(parts)
    oar_at, oar_job = _oar(parts)
    lxc_at, lxc = _lxc(parts)
    within = parts[max(pod_at, container_at, job_at, oar_at, lxc_at) + 1 :]
    unit = next((part for part in reversed(within) if _UNIT.fullmatch(part) and not _LOGIN.fullmatch(part)), "")
    if pod_uid and "conmon-" in unit:
        unit = ""  # the monitor beside a container: the pod's, and no unit of its own
    if pod_uid:
        kind = Kind.POD
    elif container_id:
        kind = Kind.CONTAINER
    elif job:
        kind = Kind.SLURM
    elif oar_job:
        kind = Kind.OAR
    elif lxc:
        kind = Kind.LXC
    else:
        kind = Kind.UNIT if unit else Kind.NONE
    is_lxc = kind is Kind.LXC
    return CgroupIdentity(
        kind=kind,
        pod_uid=pod_uid,
        container_id=lxc if is_lxc else container_id,
        runtime="lxc" if is_lxc else runtime,
        qos=_qos(parts[: pod_at + 1]) if pod_uid else "",
        unit=unit,
        slurm_job_id=job or oar_job,
        slurm_step=step,
        slurm_task=task,
        path=path,
    )


def _parts(path: str) -> list[str]:
    parts: list[str] = []
    for part in path.split("/"):
        if colons := _COLONS.fullmatch(part):
            parts += colons.groups()
        elif part not in ("", ".", ".."):
            parts.append(part)
    return parts


def _plain(part: str) -> str:
    """A component with systemd's escaped dashes undone."""
    return part.replace("\\x2d", "-")


def _pod(parts: Sequence[str]) -> tuple[int, str]:
    """Place and UID of the outermost pod; (-1, "") where there is none."""
    for place, part in enumerate(parts):
        if match := _POD.fullmatch(_plain(part)):
            return place, match[1].replace("_", "-")
    return -1, ""


def _qos(above: Sequence[str]) -> str:
    for qos in ("besteffort", "burstable"):
        if any(qos in part for part in above):
            return qos
    return "guaranteed" if any("kubepods" in part for part in above) else ""


def _container(parts: Sequence[str]) -> tuple[int, str, str]:
    """Place, id and runtime of the innermost container; (-1, "", "") where there is none."""
    for place in range(len(parts) - 1, -1, -1):
        part = _plain(parts[place])
        folder = parts[place - 1] if place else ""
        match = _CONTAINER.fullmatch(part)
        if match is not None:
            prefix = match[1] or ""
            if prefix.endswith(("conmon", "libpod_pod")):
                continue  # the monitor of a container, and podman's pod: neither is the process's container
            return place, match[2], _RUNTIME_OF_PREFIX.get(prefix, "") if prefix else _folder_runtime(parts[:place])
        if folder == "garden" and _GARDEN.fullmatch(part):
            return place, part, "garden"
        if _ECS_TASK.fullmatch(part) and "ecs" in parts[:place]:
            return place, part, "ecs"
    return -1, "", ""


def _folder_runtime(above: Sequence[str]) -> str:
    """The runtime whose folder a bare id lies in, up to the next pod outwards."""
    for part in reversed(above):
        if _POD.fullmatch(_plain(part)):
            return ""
        if part in _RUNTIME_OF_FOLDER:
            return _RUNTIME_OF_FOLDER[part]
    return ""


def _slurm(parts: Sequence[str]) -> tuple[int, str, str, str]:
    """Place of the deepest component of the job, job id, step and task; (-1, "", "", "") where there is none."""
    for place in range(len(parts) - 1, -1, -1):
        job = _JOB.fullmatch(parts[place])
        if job is None:
            continue
        below = list(enumerate(parts[place + 1 :], start=place + 1))
        step = next(((at, match[1]) for at, part in below if (match := _STEP.fullmatch(part))), (place, ""))
        task = next(((at, match[1]) for at, part in below if (match := _TASK.fullmatch(part))), (place, ""))
        if step[1] or any(_SLURM_ABOVE.fullmatch(part) for part in parts[:place]):
            return max(step[0], task[0]), job[1], step[1], task[1]
    return -1, "", "", ""


def _oar(parts: Sequence[str]) -> tuple[int, str]:
    for place, part in enumerate(parts):
        if match := _OAR_3.fullmatch(_plain(part)):
            return place, match[1]
        if place and parts[place - 1] == "oar" and (match := _OAR_2.fullmatch(part)):
            return place, match[1]
    return -1, ""


def _lxc(parts: Sequence[str]) -> tuple[int, str]:
    """Place and name of the innermost LXC. A UUID under /lxc is a platform's id (Heroku), not the name of one."""
    for place in range(len(parts) - 1, -1, -1):
        part = parts[place]
        if part.startswith("lxc.payload.") and len(part) > len("lxc.payload."):
            return place, part.removeprefix("lxc.payload.")
        if place and parts[place - 1] in ("lxc", "lxc.payload") and not _WHOLE_UUID.fullmatch(part):
            return place, part
    return -1, ""
