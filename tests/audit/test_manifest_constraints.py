"""OpenShift's constraints: whom they are for, and what they forbid of an exporter's pod."""

from __future__ import annotations

import pytest

from gpuledger.audit.documents import documents
from gpuledger.audit.manifest_constraints import forbidden
from gpuledger.model.findings import Written

POD = (
    "hostPID: true\nvolumes: [{name: v, hostPath: {path: /x}}]\n"
    "containers: [{name: e, securityContext: {capabilities: {add: [SYS_ADMIN]}}}]\n"
)
OPEN = (
    "kind: SecurityContextConstraints\nmetadata: {name: dcgm}\nallowHostPID: true\nallowHostDirVolumePlugin: true\n"
    "allowedCapabilities: [SYS_ADMIN]\nusers: ['system:serviceaccount:gpu:dcgm']\n"
)


def told(*constraints: str, pod: str = POD, namespace: str = "gpu") -> tuple[str, ...] | None:
    nodes = [documents(Written(path="f", text=text))[0][0].root for text in (*constraints, pod)]
    found = forbidden(nodes[:-1], nodes[-1], "dcgm", namespace)
    return None if found is None else found[1]


@pytest.mark.parametrize(
    ("old", "new", "first"),
    [
        ("allowHostPID: true", "allowHostPID: false", "allowHostPID"),
        ("allowHostPID: true\n", "", "allowHostPID"),
        ("allowHostDirVolumePlugin: true", "allowHostDirVolumePlugin: false", "allowHostDirVolumePlugin"),
        ("allowedCapabilities: [SYS_ADMIN]", "allowedCapabilities: null", "allowedCapabilities"),
    ],
)
def test_what_one_forbids(old: str, new: str, first: str) -> None:
    """Each thing by its own switch."""
    assert told(OPEN) is None
    (why,) = told(OPEN.replace(old, new)) or ()
    assert why.startswith(first)


def test_privileged_and_the_hosts_network() -> None:
    """Only where the pod asks for them."""
    pod = "hostNetwork: true\ncontainers: [{name: e, securityContext: {privileged: true}}]"
    assert [why.split()[0] for why in told(OPEN, pod=pod) or ()] == ["allowHostNetwork", "allowPrivilegedContainer"]
    wide = OPEN + "allowHostNetwork: true\nallowPrivilegedContainer: true\n"
    assert told(wide, pod=pod) is None


def test_whom_it_is_for() -> None:
    """Users and groups of accounts; one that is for others says nothing, and one that admits is enough."""
    closed = OPEN.replace("allowHostPID: true", "allowHostPID: false")
    assert told(closed.replace("gpu:dcgm", "other:dcgm")) is None
    assert told(closed.replace("gpu:dcgm", "other:dcgm"), namespace="") is not None
    group = closed.replace("users: ['system:serviceaccount:gpu:dcgm']", "groups: ['system:serviceaccounts:gpu']")
    assert told(group) is not None
    assert told(closed, OPEN) is None
    assert told() is None
