"""The Pod Security Standards: which level admits a pod, and what exactly a lower one would reject it for.

Rules as the Kubernetes documentation states them (Pod Security Standards, 1.34): baseline forbids what is known to
escape a container, restricted asks for hardening on top. Policies of Kyverno and rules of admission are named by the
same controls.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from gpuledger.audit.documents import NOTHING, Kind, Node


class PodLevel(StrEnum):
    """A level of the standards, the most open first."""

    PRIVILEGED = "privileged"
    BASELINE = "baseline"
    RESTRICTED = "restricted"


@dataclass(frozen=True, slots=True, kw_only=True)
class Breach:
    """One thing of a pod that a level rejects.

    Args:
        level: the most open level that rejects it: ``baseline``, and with it ``restricted``; or ``restricted`` alone.
        control: the standard's name of the rule: ``Host Namespaces``.
        what: what stands there: ``hostPID: true``.
        line: where, 1-based; 0 where it is something that is missing.
    """

    level: PodLevel
    control: str
    what: str
    line: int = 0


_CAPABILITIES = frozenset(
    [
        "AUDIT_WRITE",
        "CHOWN",
        "DAC_OVERRIDE",
        "FOWNER",
        "FSETID",
        "KILL",
        "MKNOD",
        "NET_BIND_SERVICE",
        "SETFCAP",
        "SETGID",
        "SETPCAP",
        "SETUID",
        "SYS_CHROOT",
    ]
)
_VOLUMES = frozenset(
    ["configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "persistentVolumeClaim", "projected", "secret"]
)
_SYSCTLS = frozenset(
    [
        "kernel.shm_rmid_forced",
        "net.ipv4.ip_local_port_range",
        "net.ipv4.ip_unprivileged_port_start",
        "net.ipv4.tcp_syncookies",
        "net.ipv4.ping_group_range",
        "net.ipv4.ip_local_reserved_ports",
        "net.ipv4.tcp_keepalive_time",
        "net.ipv4.tcp_fin_timeout",
        "net.ipv4.tcp_keepalive_intvl",
        "net.ipv4.tcp_keepalive_probes",
        "net.ipv4.tcp_rmem",
        "net.ipv4.tcp_wmem",
    ]
)
_SELINUX = frozenset(["", "container_t", "container_init_t", "container_kvm_t", "container_engine_t"])
_APPARMOR = frozenset(["", "RuntimeDefault", "Localhost"])
_LISTS = ("containers", "initContainers", "ephemeralContainers")


def breaches(spec: Node) -> tuple[Breach, ...]:
    """What each level below ``privileged`` rejects a pod for, in the order of the standard.

    What a template gives is not judged: it may be either.

    Args:
        spec: the pod's ``spec``.
    """
    return (*_baseline(spec), *_restricted(spec))


def level_of(found: tuple[Breach, ...]) -> PodLevel:
    """The strictest level that admits the pod."""
    levels = {breach.level for breach in found}
    if PodLevel.BASELINE in levels:
        return PodLevel.PRIVILEGED
    return PodLevel.BASELINE if levels else PodLevel.RESTRICTED


def rejects(enforced: str, found: tuple[Breach, ...]) -> tuple[Breach, ...]:
    """What a namespace that enforces a level rejects; nothing for ``privileged`` and for no level."""
    if enforced == PodLevel.RESTRICTED:
        return found
    return tuple(breach for breach in found if enforced == PodLevel.BASELINE and breach.level is PodLevel.BASELINE)


def _containers(spec: Node) -> Iterator[tuple[str, Node]]:
    for key in _LISTS:
        for each in spec.at(key).entries:
            if each.kind is Kind.MAPPING and not any(name.startswith("\ue000") for name, _ in each.pairs):
                yield each.at("name").text or key.removesuffix("s"), each


def _baseline(spec: Node) -> Iterator[Breach]:
    def breach(control: str, what: str, node: Node = NOTHING) -> Breach:
        return Breach(level=PodLevel.BASELINE, control=control, what=what, line=node.line)

    for _, context in _contexts(spec):
        if (process := context.at("windowsOptions", "hostProcess")).truth:
            yield breach("HostProcess", "windowsOptions.hostProcess: true", process)
    for key in ("hostNetwork", "hostPID", "hostIPC"):
        if spec.at(key).truth:
            yield breach("Host Namespaces", f"{key}: true", spec.at(key))
    for name, container in _containers(spec):
        context = container.at("securityContext")
        if context.at("privileged").truth:
            yield breach("Privileged Containers", f"privileged: true in {name}", context.at("privileged"))
        for added in context.at("capabilities", "add").entries:
            if added.text.removeprefix("CAP_") not in _CAPABILITIES and not added.opaque:
                yield breach("Capabilities", f"capability {added.text} in {name}", added)
    for volume in spec.at("volumes").entries:
        if volume.at("hostPath").is_there:
            path = volume.at("hostPath", "path")
            shown = "a hostPath that a template gives" if path.opaque else f"hostPath {path.text}"
            yield breach("HostPath Volumes", shown, volume.at("hostPath"))
    yield from _baseline_details(spec)


def _baseline_details(spec: Node) -> Iterator[Breach]:
    def breach(control: str, what: str, node: Node) -> Breach:
        return Breach(level=PodLevel.BASELINE, control=control, what=what, line=node.line)

    for name, container in _containers(spec):
        for port in container.at("ports").entries:
            if (host := port.at("hostPort")).text not in ("", "0") and not host.opaque:
                yield breach("Host Ports", f"hostPort {host.text} in {name}", host)
        mount = container.at("securityContext", "procMount")
        if mount.text not in ("", "Default") and not mount.opaque:
            yield breach("/proc Mount Type", f"procMount: {mount.text} in {name}", mount)
    for name, context in _contexts(spec):
        armor = context.at("appArmorProfile", "type")
        if armor.text not in _APPARMOR and not armor.opaque:
            yield breach("AppArmor", f"appArmorProfile {armor.text} in {name}", armor)
        selinux = context.at("seLinuxOptions")
        if selinux.at("type").text not in _SELINUX or selinux.at("user").text or selinux.at("role").text:
            yield breach("SELinux", f"seLinuxOptions in {name}", selinux)
        seccomp = context.at("seccompProfile", "type")
        if seccomp.text == "Unconfined":
            yield breach("Seccomp", f"seccompProfile Unconfined in {name}", seccomp)
    for sysctl in spec.at("securityContext", "sysctls").entries:
        if (named := sysctl.at("name")).text not in _SYSCTLS and not named.opaque:
            yield breach("Sysctls", f"sysctl {named.text}", named)


def _contexts(spec: Node) -> Iterator[tuple[str, Node]]:
    yield "the pod", spec.at("securityContext")
    for name, container in _containers(spec):
        yield name, container.at("securityContext")


def _restricted(spec: Node) -> Iterator[Breach]:
    def breach(control: str, what: str, node: Node = NOTHING) -> Breach:
        return Breach(level=PodLevel.RESTRICTED, control=control, what=what, line=node.line)

    for volume in spec.at("volumes").entries:
        kinds = [key for key, _ in volume.pairs if key != "name"]
        if kinds and not volume.opaque and kinds[0] not in {*_VOLUMES, "hostPath"}:
            yield breach("Volume Types", f"a volume of type {kinds[0]}", volume)
    pod = spec.at("securityContext")
    for name, container in _containers(spec):
        context = container.at("securityContext")
        if context.opaque:
            continue
        escalation = context.at("allowPrivilegeEscalation")
        if escalation.truth is not False and not escalation.opaque:
            yield breach("Privilege Escalation", f"allowPrivilegeEscalation is not false in {name}", escalation)
        nonroot = context.at("runAsNonRoot") if context.at("runAsNonRoot").is_there else pod.at("runAsNonRoot")
        if nonroot.truth is not True and not nonroot.opaque and not pod.opaque:
            yield breach("Running as Non-root", f"runAsNonRoot is not true in {name}", nonroot)
        user = context.at("runAsUser") if context.at("runAsUser").is_there else pod.at("runAsUser")
        if user.whole == 0:
            yield breach("Running as Non-root user", f"runAsUser: 0 in {name}", user)
        own = context.at("seccompProfile", "type")
        seccomp = own if own.is_there else pod.at("seccompProfile", "type")
        if seccomp.text not in ("RuntimeDefault", "Localhost") and not seccomp.opaque and not pod.opaque:
            yield breach("Seccomp", f"seccompProfile is not RuntimeDefault or Localhost in {name}", seccomp)
        capabilities = context.at("capabilities")
        if "ALL" not in [dropped.text for dropped in capabilities.at("drop").entries]:
            yield breach("Capabilities", f"capabilities are not all dropped in {name}", capabilities)
        for added in capabilities.at("add").entries:
            plain = added.text.removeprefix("CAP_")
            if plain in _CAPABILITIES and plain != "NET_BIND_SERVICE":
                yield breach("Capabilities", f"capability {added.text} in {name}", added)
