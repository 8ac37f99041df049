"""Whether an exporter's account may read pods, by the roles and bindings of the texts.

The exporter asks the API for the UID of every pod of its node, since the kubelet's list has none (FACTS A.2).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum

from gpuledger.audit.documents import Document, Node, objects
from gpuledger.audit.label_selectors import meets, requirements_of_node

VERBS = frozenset({"get", "list", "watch"})
"""What the exporter's informer does."""


class Reading(StrEnum):
    """What the texts say of an account's right to read pods."""

    ALLOWED = "allowed"
    DENIED = "denied"
    UNSEEN = "unseen"


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """Right to read pods of all namespaces.

    Args:
        reading: what the texts say.
        why: in words.
        line: of the binding or role that it rests on; 0 without one.
    """

    reading: Reading
    why: str
    line: int = 0


_EVERY_ACCOUNT = frozenset({"system:serviceaccounts", "system:authenticated"})
"""Groups that every service account is in (kubernetes.io, RBAC: service accounts are in groups of this prefix)."""

_KNOWN_ROLES = ("cluster-admin", "view", "edit", "admin")
"""ClusterRoles that every cluster has, and that read pods."""


def access_to_pods(read: Iterable[Document], account: str, namespace: str) -> Access:
    """What the texts say of one service account; rights of several bindings add up.

    Args:
        read: every document.
        account: its name; ``default`` where it is empty.
        namespace: its namespace; empty where it is not known, and then any namespace of that name counts.
    """
    found = [node for document in read for node in objects(document)]
    roles = {node.at("metadata", "name").text: node for node in found if node.at("kind").text == "ClusterRole"}
    account = account or "default"
    granted: list[Node] = []
    unseen = narrow = None
    for node in found:
        kind = node.at("kind").text
        if kind not in ("ClusterRoleBinding", "RoleBinding") or not binds(node, account, namespace):
            continue
        name = node.at("roleRef", "name").text
        if kind == "RoleBinding":
            why = f"RoleBinding {node.at('metadata', 'name').text} reaches one namespace, and GPUs are held in all"
            narrow = Access(reading=Reading.DENIED, why=why, line=node.line)
        elif name in roles:
            granted.append(roles[name])
        elif name in _KNOWN_ROLES:
            return Access(reading=Reading.ALLOWED, why=f"bound to ClusterRole {name}", line=node.line)
        else:
            why = f"bound to ClusterRole {name}, which is not here"
            unseen = Access(reading=Reading.UNSEEN, why=why, line=node.line)
    if granted:
        names = ", ".join(role.at("metadata", "name").text for role in granted)
        if _read_pods(granted, roles.values()):
            return Access(reading=Reading.ALLOWED, why=f"ClusterRole {names}", line=granted[0].line)
        for role in granted:
            if role.at("aggregationRule").is_there:  # the cluster's own roles carry such labels too
                why = f"ClusterRole {role.at('metadata', 'name').text} gathers roles that are not here"
                unseen = unseen or Access(reading=Reading.UNSEEN, why=why, line=role.line)
        why = f"ClusterRole {names} does not let it get, list and watch pods"
        narrow = Access(reading=Reading.DENIED, why=why, line=granted[0].line)
    why = f"no binding of the account {account} is in these files"
    if others := sorted(set(_elsewhere(found, account)) - {namespace}):
        why += f"; one of that name in {', '.join(others[:3])} is bound"
    return unseen or narrow or Access(reading=Reading.UNSEEN, why=why)


def _elsewhere(found: Iterable[Node], account: str) -> Iterator[str]:
    """Namespaces in which an account of that name is bound: often the place of a typing error."""
    for node in found:
        if node.at("kind").text == "ClusterRoleBinding":
            for subject in node.at("subjects").entries:
                if subject.at("name").text == account and subject.at("namespace").text:
                    yield subject.at("namespace").text


def binds(binding: Node, account: str, namespace: str) -> bool:
    """Whether a subject of it is the account: by its name, as a user, or by a group that it is in.

    Args:
        binding: of a role, in one namespace or in all.
        account: the service account.
        namespace: its namespace; empty where it is not known, and then any counts.
    """
    return any(_is_subject(subject, account, namespace) for subject in binding.at("subjects").entries)


def _is_subject(subject: Node, account: str, namespace: str) -> bool:
    kind, name, where = subject.at("kind").text, subject.at("name").text, subject.at("namespace").text
    if kind == "Group":
        place = name.removeprefix("system:serviceaccounts:")
        return name in _EVERY_ACCOUNT or (place != name and namespace in ("", place))
    if kind == "User":
        place, _, user = name.removeprefix("system:serviceaccount:").partition(":")
        return name.startswith("system:serviceaccount:") and user == account and namespace in ("", place)
    return kind in ("ServiceAccount", "") and name == account and (not namespace or where in ("", namespace))


def _read_pods(granted: Iterable[Node], every: Iterable[Node]) -> bool:
    """Whether roles together let one get, list and watch pods."""
    verbs: set[str] = set()
    for role in granted:
        for rule in (*role.at("rules").entries, *_aggregated(role, every)):
            groups = {entry.text for entry in rule.at("apiGroups").entries}
            resources = {entry.text for entry in rule.at("resources").entries}
            if groups & {"", "*"} and resources & {"pods", "*"} and not rule.at("resourceNames").is_there:
                verbs |= {entry.text for entry in rule.at("verbs").entries}
    return "*" in verbs or verbs >= VERBS


def _aggregated(role: Node, every: Iterable[Node]) -> Iterator[Node]:
    """The rules of the roles that a role gathers by their labels; the cluster writes them into it."""
    for selector in role.at("aggregationRule", "clusterRoleSelectors").entries:
        asked = requirements_of_node(selector)
        for other in every if asked is not None else ():
            if meets(other.at("metadata", "labels"), asked or ()):
                yield from other.at("rules").entries
