"""The Pod Security Standards: each control at each level, as the standard states it."""

from __future__ import annotations

import pytest

from gpuledger.audit.documents import Node, documents
from gpuledger.audit.pod_security import PodLevel, breaches, level_of, rejects
from gpuledger.model.findings import Written

HARDENED = """\
securityContext: {runAsNonRoot: true, seccompProfile: {type: RuntimeDefault}}
containers:
- name: c
  securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL], add: [NET_BIND_SERVICE]}}
volumes: [{name: a, emptyDir: {}}, {name: b, configMap: {name: x}}]
"""


def spec(text: str) -> Node:
    (document,), unread = documents(Written(path="p", text=text))
    assert not unread
    return document.root


def controls(text: str, level: PodLevel) -> list[str]:
    return [breach.control for breach in breaches(spec(text)) if breach.level is level]


def test_a_hardened_pod_is_admitted_by_all() -> None:
    """Nothing to say."""
    assert breaches(spec(HARDENED)) == ()
    assert level_of(()) is PodLevel.RESTRICTED


@pytest.mark.parametrize(
    ("text", "control"),
    [
        ("hostPID: true", "Host Namespaces"),
        ("hostNetwork: true", "Host Namespaces"),
        ("hostIPC: true", "Host Namespaces"),
        ("containers: [{name: c, securityContext: {privileged: true}}]", "Privileged Containers"),
        ("initContainers: [{name: c, securityContext: {privileged: true}}]", "Privileged Containers"),
        ("containers: [{name: c, securityContext: {capabilities: {add: [SYS_ADMIN]}}}]", "Capabilities"),
        ("containers: [{name: c, securityContext: {capabilities: {add: [CAP_SYS_PTRACE]}}}]", "Capabilities"),
        ("volumes: [{name: v, hostPath: {path: /x}}]", "HostPath Volumes"),
        ("containers: [{name: c, ports: [{hostPort: 9400}]}]", "Host Ports"),
        ("containers: [{name: c, securityContext: {procMount: Unmasked}}]", "/proc Mount Type"),
        ("securityContext: {appArmorProfile: {type: Unconfined}}", "AppArmor"),
        ("securityContext: {seLinuxOptions: {type: spc_t}}", "SELinux"),
        ("securityContext: {seLinuxOptions: {user: root}}", "SELinux"),
        ("securityContext: {seccompProfile: {type: Unconfined}}", "Seccomp"),
        ("securityContext: {sysctls: [{name: kernel.msgmax, value: '1'}]}", "Sysctls"),
        ("securityContext: {windowsOptions: {hostProcess: true}}", "HostProcess"),
    ],
)
def test_what_baseline_rejects(text: str, control: str) -> None:
    """Each of its controls."""
    assert controls(text, PodLevel.BASELINE) == [control]
    assert level_of(breaches(spec(text))) is PodLevel.PRIVILEGED


@pytest.mark.parametrize(
    "text",
    [
        "hostPID: false",
        "containers: [{name: c, securityContext: {capabilities: {add: [CHOWN, NET_BIND_SERVICE]}}}]",
        "containers: [{name: c, ports: [{containerPort: 9400, hostPort: 0}]}]",
        "securityContext: {sysctls: [{name: net.ipv4.tcp_syncookies, value: '1'}]}",
        "securityContext: {seLinuxOptions: {type: container_t}}",
        "volumes: [{name: v, nfs: {server: x}}]",
    ],
)
def test_what_baseline_admits(text: str) -> None:
    """The defaults, and what it lists."""
    assert controls(text, PodLevel.BASELINE) == []


@pytest.mark.parametrize(
    ("old", "new", "control"),
    [
        ("allowPrivilegeEscalation: false, ", "", "Privilege Escalation"),
        ("runAsNonRoot: true, ", "", "Running as Non-root"),
        ("runAsNonRoot: true", "runAsNonRoot: true, runAsUser: 0", "Running as Non-root user"),
        ("RuntimeDefault", "''", "Seccomp"),
        ("drop: [ALL], ", "", "Capabilities"),
        ("NET_BIND_SERVICE", "CHOWN", "Capabilities"),
        ("emptyDir", "nfs", "Volume Types"),
    ],
)
def test_what_restricted_rejects_beyond_it(old: str, new: str, control: str) -> None:
    """Each of its own controls; baseline admits them."""
    assert controls(HARDENED.replace(old, new), PodLevel.RESTRICTED) == [control]
    assert level_of(breaches(spec(HARDENED.replace(old, new)))) is PodLevel.BASELINE


def test_what_a_namespace_rejects() -> None:
    """By the level it enforces; none and privileged reject nothing."""
    found = breaches(spec("hostPID: true\ncontainers: [{name: c}]"))
    assert len(rejects("restricted", found)) == len(found) > 1
    assert [breach.control for breach in rejects("baseline", found)] == ["Host Namespaces"]
    assert rejects("privileged", found) == rejects("", found) == ()


def test_what_a_template_gives_is_not_judged() -> None:
    """It may be either."""
    text = (
        "hostPID: {{ .Values.a }}\ncontainers:\n- name: c\n"
        "  securityContext:\n    {{- toYaml .Values.b | nindent 4 }}\n"
    )
    assert breaches(spec(text)) == ()
