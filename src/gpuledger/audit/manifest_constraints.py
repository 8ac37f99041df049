"""OpenShift's SecurityContextConstraints: whether those that an exporter's account may use admit its pod.

OpenShift admits a pod by any one that its account may use; where the texts hold such, and none of them lets the pod
see the processes of the host, it is not made. An account may use those that name it or a group of it, and those that
a binding lets it use. Source: security.openshift.io/v1; OpenShift has a ClusterRole ``system:openshift:scc:NAME`` for
each of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from gpuledger.audit.documents import NOTHING, Document, Node, objects
from gpuledger.audit.manifest_access import binds
from gpuledger.audit.templates import MARK

_OF_OPENSHIFT = "system:openshift:scc:"
_WITHOUT_USE = frozenset({"view", "edit", "admin"})
"""ClusterRoles that every cluster has, and that let nobody use a constraint; ``cluster-admin`` does."""

_EVERY = "*"


@dataclass(frozen=True, slots=True, kw_only=True)
class Forbidden:
    """No constraint of the texts admits a pod.

    Args:
        name: of the constraint that comes nearest.
        refused: what it forbids.
        doubt: why another one may admit it all the same; empty where none does.
    """

    name: str
    refused: tuple[str, ...]
    doubt: str


def forbidden(
    constraints: Sequence[Node], pod: Node, account: str, namespace: str, read: Iterable[Document]
) -> Forbidden | None:
    """What the constraints forbid; None where one admits the pod, or none is for it.

    Args:
        constraints: of the texts.
        pod: its spec.
        account: the service account.
        namespace: where it runs; empty where nobody says, and then any namespace counts.
        read: every document, for roles and bindings.
    """
    if not constraints:
        return None
    account = account or "default"
    named = [(each.at("metadata", "name").text, each) for each in constraints]
    granted, doubts = _granted(read, account, namespace)
    usable = [
        (tuple(_refused(each, pod)), name)
        for name, each in named
        if granted.keys() & {name, _EVERY} or _names(each, account, namespace)
    ]
    if not usable or not all(refused for refused, _ in usable):
        return None
    refused, nearest = min(usable, key=lambda pair: len(pair[0]))
    away = [(name, role) for name, role in granted.items() if name not in dict(named)]
    reasons = [
        f"{role} lets it use {'every one' if name == _EVERY else f'{name}, which is not here'}" for name, role in away
    ]
    reasons += doubts
    reasons += ["the account is a template's"] if MARK in account else []
    return Forbidden(name=nearest, refused=refused, doubt="; ".join(reasons[:3]))


def _granted(read: Iterable[Document], account: str, namespace: str) -> tuple[dict[str, str], list[str]]:
    """The constraints that bindings let an account use, with the role that does; and why that may not be all."""
    found = [node for document in read for node in objects(document)]
    granted: dict[str, str] = {}
    doubts = []
    for binding in found:
        kind, place = binding.at("kind").text, binding.at("metadata", "namespace").text
        if kind not in ("ClusterRoleBinding", "RoleBinding") or not binds(binding, account, namespace):
            continue
        if kind == "RoleBinding" and namespace and place not in ("", namespace):
            continue
        of, name = binding.at("roleRef", "kind").text, binding.at("roleRef", "name").text
        role = next((node for node in found if _is_role(node, of, name, place)), NOTHING)
        shown = f"{of} {name}"
        if role.is_there:
            granted |= dict.fromkeys(_uses(role), shown)
            doubts += [f"{shown} gathers roles that are not here"] if role.at("aggregationRule").is_there else []
        elif name.startswith(_OF_OPENSHIFT):
            granted[name.removeprefix(_OF_OPENSHIFT)] = shown
        elif name not in _WITHOUT_USE:
            doubts.append(f"it is bound to {shown}, which is not here")
    return granted, doubts


def _is_role(node: Node, kind: str, name: str, namespace: str) -> bool:
    if node.at("kind").text != kind or node.at("metadata", "name").text != name:
        return False
    return kind == "ClusterRole" or not namespace or node.at("metadata", "namespace").text in ("", namespace)


def _uses(role: Node) -> Iterator[str]:
    """Names of the constraints that a role lets one use; ``*`` for every one."""
    for rule in role.at("rules").entries:
        groups, resources, verbs = (
            {entry.text for entry in rule.at(key).entries} for key in ("apiGroups", "resources", "verbs")
        )
        of_constraints = resources & {"securitycontextconstraints", "*"} and groups & {"security.openshift.io", "*"}
        if of_constraints and verbs & {"use", "*"}:
            yield from [entry.text for entry in rule.at("resourceNames").entries] or [_EVERY]


def _names(constraint: Node, account: str, namespace: str) -> bool:
    for user in constraint.at("users").entries:
        place, _, name = user.text.removeprefix("system:serviceaccount:").partition(":")
        if user.text.startswith("system:serviceaccount:") and name == account and namespace in ("", place):
            return True
    groups = {group.text for group in constraint.at("groups").entries}
    return bool(groups & {"system:serviceaccounts", f"system:serviceaccounts:{namespace}", "system:authenticated"})


def _refused(constraint: Node, pod: Node) -> Iterator[str]:
    """What of the pod it does not allow; the host's processes are needed, set or not."""
    if constraint.at("allowHostPID").truth is not True:
        yield "allowHostPID is not true: hostPID, which it needs"
    if any(volume.at("hostPath").is_there for volume in pod.at("volumes").entries):
        volumes = {each.text for each in constraint.at("volumes").entries}
        if constraint.at("allowHostDirVolumePlugin").truth is not True and not volumes & {"hostPath", "*"}:
            yield "allowHostDirVolumePlugin is not true: hostPath, for pod-resources"
    if pod.at("hostNetwork").truth and constraint.at("allowHostNetwork").truth is not True:
        yield "allowHostNetwork is not true: hostNetwork"
    allowed = {each.text.removeprefix("CAP_") for each in constraint.at("allowedCapabilities").entries}
    allowed |= {each.text.removeprefix("CAP_") for each in constraint.at("defaultAddCapabilities").entries}
    for container in pod.at("containers").entries:
        context = container.at("securityContext")
        if context.at("privileged").truth and constraint.at("allowPrivilegedContainer").truth is not True:
            yield f"allowPrivilegedContainer is not true: privileged in {container.at('name').text}"
        for added in context.at("capabilities", "add").entries:
            if not added.opaque and added.text.removeprefix("CAP_") not in allowed and "*" not in allowed:
                yield f"allowedCapabilities lacks {added.text} of {container.at('name').text}"
