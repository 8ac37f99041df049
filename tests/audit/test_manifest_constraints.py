"""OpenShift's constraints: whom they are for, and what they forbid of an exporter's pod."""

from __future__ import annotations

import pytest

from gpuledger.audit.documents import documents
from gpuledger.audit.manifest_constraints import Forbidden, forbidden
from gpuledger.audit.templates import MARK
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
    found = forbidden(nodes[:-1], nodes[-1], "dcgm", namespace, ())
    return None if found is None else found.refused


RESTRICTED = (
    "kind: SecurityContextConstraints\nmetadata: {name: restricted-v2}\nallowHostPID: false\n"
    "allowHostDirVolumePlugin: true\nallowedCapabilities: [SYS_ADMIN]\ngroups: ['system:authenticated']\n"
)
UNNAMED = OPEN.replace("users: ['system:serviceaccount:gpu:dcgm']\n", "")
BINDING = (
    "kind: RoleBinding\nmetadata: {name: b, namespace: gpu}\nroleRef: {kind: ClusterRole, name: r}\n"
    "subjects: [{kind: ServiceAccount, name: dcgm, namespace: gpu}]\n"
)
OF_OPENSHIFT = BINDING.replace("name: r}", "name: 'system:openshift:scc:privileged'}")
ROLE = (
    "kind: ClusterRole\nmetadata: {name: r}\nrules: [{apiGroups: [security.openshift.io], "
    "resources: [securitycontextconstraints], resourceNames: [dcgm], verbs: [use]}]\n"
)
GATHERS = "kind: ClusterRole\nmetadata: {name: r}\naggregationRule: {clusterRoleSelectors: [{matchLabels: {a: b}}]}\n"


def judged(*texts: str, account: str = "dcgm") -> Forbidden | None:
    read = [each for text in (*texts, POD) for each in documents(Written(path="f", text=text))[0]]
    constraints = [each.root for each in read if each.root.at("kind").text == "SecurityContextConstraints"]
    return forbidden(constraints, read[-1].root, account, "gpu", read)


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


@pytest.mark.parametrize(
    "texts",
    [
        (UNNAMED.replace("dcgm", "privileged"), OF_OPENSHIFT),
        (UNNAMED, BINDING, ROLE),
        (UNNAMED, BINDING.replace("kind: RoleBinding", "kind: ClusterRoleBinding"), ROLE),
        (UNNAMED, BINDING, ROLE.replace("[use]", "['*']").replace("resourceNames: [dcgm], ", "")),
        (UNNAMED, BINDING.replace("kind: ClusterRole", "kind: Role"), ROLE.replace("kind: ClusterRole", "kind: Role")),
    ],
)
def test_whom_a_binding_lets_use_it(texts: tuple[str, ...]) -> None:
    """By OpenShift's own role of a constraint, or by one that may use it; one that admits is enough."""
    assert judged(RESTRICTED, *texts) is None
    closed = (texts[0].replace("allowHostPID: true", "allowHostPID: false"), *texts[1:])
    assert judged(*closed) is not None


@pytest.mark.parametrize(
    ("texts", "doubt"),
    [
        ((OF_OPENSHIFT,), "ClusterRole system:openshift:scc:privileged lets it use privileged, which is not here"),
        ((BINDING,), "it is bound to ClusterRole r, which is not here"),
        ((BINDING, ROLE), "ClusterRole r lets it use dcgm, which is not here"),
        ((BINDING, ROLE.replace("resourceNames: [dcgm], ", "")), "ClusterRole r lets it use every one"),
        ((BINDING, GATHERS), "ClusterRole r gathers roles that are not here"),
        ((BINDING.replace("dcgm", "other"), ROLE), ""),
        ((BINDING.replace("namespace: gpu}\nroleRef", "namespace: other}\nroleRef"), ROLE), ""),
        ((BINDING.replace("name: r}", "name: view}"),), ""),
        ((BINDING, ROLE.replace("[use]", "[get]")), ""),
        ((BINDING, ROLE.replace("security.openshift.io", "apps")), ""),
    ],
)
def test_where_a_binding_leaves_a_doubt(texts: tuple[str, ...], doubt: str) -> None:
    """A constraint that is not here may admit the pod, so nobody can say that it is not made."""
    found = judged(RESTRICTED, *texts)
    assert found is not None
    assert (found.name, found.doubt) == ("restricted-v2", doubt)


def test_an_account_that_a_template_names() -> None:
    """Groups of every account are for it, and nobody can say what else is."""
    found = judged(RESTRICTED, account=MARK)
    assert found is not None
    assert found.doubt == "the account is a template's"
