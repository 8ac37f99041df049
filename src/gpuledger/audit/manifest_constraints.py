"""OpenShift's SecurityContextConstraints: whether those that an exporter's account may use admit its pod.

OpenShift admits a pod by any one that its account may use; where the texts hold such, and none of them lets the pod
see the processes of the host, it is not made. Source: security.openshift.io/v1.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gpuledger.audit.document_node import Node


def forbidden(
    constraints: Sequence[Node], pod: Node, account: str, namespace: str
) -> tuple[Node, tuple[str, ...]] | None:
    """The constraint that comes nearest, and what it forbids; None where one admits the pod, or none is for it.

    Args:
        constraints: of the texts.
        pod: its spec.
        account: the service account.
        namespace: where it runs; empty where nobody says, and then any namespace counts.
    """
    usable = [
        (tuple(_refused(each, pod)), each) for each in constraints if _names(each, account or "default", namespace)
    ]
    if not usable or not all(refused for refused, _ in usable):
        return None
    refused, nearest = min(usable, key=lambda pair: len(pair[0]))
    return nearest, refused


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
