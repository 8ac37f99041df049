"""Who used it, as evidence names it: the text of a process identity and the subject it gives."""

from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass
from pathlib import PurePosixPath


@dataclass(frozen=True, slots=True, kw_only=True)
class IdentityText:
    """What was read of a process while it lived, secrets already redacted.

    An empty string means that the evidence names none: no unit, no container. These are the fields
    that policy patterns match on. ``unit``, ``cgroup``, ``uid``, ``user``, ``container`` and ``pod``
    are kernel facts; ``command`` and ``service`` are claims.

    Args:
        exe: path of the executable.
        command: command line, words joined by spaces, redacted.
        user: login name of the real uid, or ``uid:N`` where it has none.
        uid: real user id as text.
        cgroup: the most telling cgroup path.
        unit: systemd unit, ending in ``.service`` or ``.scope``.
        container: container id (64 hex, LXC name, ...).
        runtime: docker, containerd, cri-o, podman, lxc, ...
        image: container image, where a source knows it.
        pod_uid: Kubernetes pod UID.
        pod: ``namespace/name``, where a source knows it.
        namespace: Kubernetes namespace, where a source knows it.
        slurm_job: batch job id.
        slurm_account: batch account, where a source knows it.
        service: a service name declared by the owner (a pid map).
    """

    exe: str = ""
    command: str = ""
    user: str = ""
    uid: str = ""
    cgroup: str = ""
    unit: str = ""
    container: str = ""
    runtime: str = ""
    image: str = ""
    pod_uid: str = ""
    pod: str = ""
    namespace: str = ""
    slurm_job: str = ""
    slurm_account: str = ""
    service: str = ""

    def to_json(self) -> str:
        """Canonical JSON: sorted keys, empty fields left out."""
        return json.dumps({k: v for k, v in asdict(self).items() if v}, sort_keys=True, ensure_ascii=True)

    @classmethod
    def from_json(cls, text: str) -> IdentityText:
        """The inverse of :meth:`to_json`."""
        return cls(**json.loads(text))


_INTERPRETER = re.compile(r"(?:.*/)?(?:python|pypy|perl|ruby|node|bash|sh|dash|zsh|java|Rscript|julia|lua)[\d.]*")
_SCRIPT = re.compile(r"[^-\s]\S*\.(?:py|pl|rb|js|mjs|cjs|sh|jar|R|jl|lua)")


def subject_label(text: IdentityText) -> str:
    """The subject of an identity as ``kind:value``.

    The most binding name wins: a declared service, pod, batch job, container, a ``.service`` unit,
    else the script (or program) and its user. A login or terminal ``.scope`` is no name: it would
    lump a person's programs together.
    """
    if text.service:
        return f"service:{text.service}"
    if text.pod or text.pod_uid:
        return f"pod:{text.pod or text.pod_uid}"
    if text.slurm_job:
        return f"job:{text.slurm_job}"
    if text.container:
        return f"container:{text.container[:12] if len(text.container) == 64 else text.container}"
    if text.unit.endswith(".service"):
        return f"unit:{text.unit}"
    return f"script:{program(text)} by {text.user or 'unknown user'}"


def program(text: IdentityText) -> str:
    """The script an interpreter runs (or its ``-m module``), else the executable, else the command's first word."""
    words = text.command.split()
    if words and _INTERPRETER.fullmatch(words[0]):
        for position, word in enumerate(words[1:], start=1):
            if word == "-m" and position + 1 < len(words):
                return f"-m {words[position + 1]}"
            if word == "-c":
                break
            if not word.startswith("-") and (_SCRIPT.fullmatch(word) or position == 1):
                return word
    return text.exe or (words[0] if words else "unknown program")


def short_program(text: IdentityText) -> str:
    """The last path component of :func:`program`, for narrow tables."""
    return PurePosixPath(program(text)).name or program(text)
