"""Whether an exporter's account may read pods, by the roles and bindings of the texts.

The exporter asks the API for the UID of every pod of its node, since the kubelet's list has none (FACTS A.2).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from gpuledger.audit.documents import Document, Node, objects

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


def access_to_pods(read: Iterable[Document], account: str, namespace: str) -> Access:
    """What the texts say of one service account.

    Args:
        read: every document.
        account: its name.
        namespace: its namespace; empty where it is not known, and then any namespace of that name counts.
    """
    found = [node for document in read for node in objects(document)]
    roles = {
        (node.at("kind").text, node.at("metadata", "name").text): node
        for node in found
        if node.at("kind").text in ("ClusterRole", "Role")
    }
    narrow = None
    for node in found:
        kind = node.at("kind").text
        if kind not in ("ClusterRoleBinding", "RoleBinding") or not _binds(node, account, namespace):
            continue
        name = node.at("roleRef", "name").text
        role = roles.get((node.at("roleRef", "kind").text or "ClusterRole", name))
        if kind == "RoleBinding":
            why = f"RoleBinding {node.at('metadata', 'name').text} reaches one namespace, and GPUs are held in all"
            narrow = Access(reading=Reading.DENIED, why=why, line=node.line)
        elif role is None:
            known = name in ("cluster-admin", "view", "edit", "admin")
            reading = Reading.ALLOWED if known else Reading.UNSEEN
            return Access(reading=reading, why=f"bound to ClusterRole {name}, which is not here", line=node.line)
        elif _reads_pods(role):
            return Access(reading=Reading.ALLOWED, why=f"ClusterRole {name}", line=role.line)
        else:
            why = f"ClusterRole {name} does not let it get, list and watch pods"
            narrow = Access(reading=Reading.DENIED, why=why, line=role.line)
    if narrow is not None:
        return narrow
    return Access(reading=Reading.UNSEEN, why=f"no binding of the account {account or 'default'} is in these files")


def _binds(binding: Node, account: str, namespace: str) -> bool:
    for subject in binding.at("subjects").entries:
        where = subject.at("namespace").text
        if subject.at("name").text == (account or "default") and (not namespace or not where or where == namespace):
            return subject.at("kind").text in ("ServiceAccount", "")
    return False


def _reads_pods(role: Node) -> bool:
    verbs: set[str] = set()
    for rule in role.at("rules").entries:
        groups = {entry.text for entry in rule.at("apiGroups").entries}
        resources = {entry.text for entry in rule.at("resources").entries}
        if groups & {"", "*"} and resources & {"pods", "*"} and not rule.at("resourceNames").is_there:
            verbs |= {entry.text for entry in rule.at("verbs").entries}
    return "*" in verbs or verbs >= VERBS
