"""A live cluster's nodes, and what stands beside them: lists of the API as texts, asked for page by page.

In: a context of the kubeconfig, or the account of the pod this runs in. Out: one text of JSON for each kind. A kind
that may not be listed, or that the cluster does not know, is told; nodes are not optional.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from http import HTTPStatus
from typing import Any

from gpuledger.errors import Unavailable
from gpuledger.model.findings import Written
from gpuledger.model.problem import Problem

PAGE = 500
"""Objects asked for at once; a Node has 20 KB."""

MOST_PAGES = 200
"""Of one kind: 100,000 objects. Beyond it the kind is told as not read."""

TIMEOUT_S = (5, 60)
"""To connect, and to be answered; each request."""

KINDS: tuple[tuple[str, str], ...] = (
    ("nodes", "/api/v1/nodes"),
    ("configmaps", "/api/v1/configmaps"),
    ("pods", "/api/v1/pods"),
    ("daemonsets", "/apis/apps/v1/daemonsets"),
    ("resourceslices", "/apis/resource.k8s.io/v1/resourceslices"),
    ("resourceclaims", "/apis/resource.k8s.io/v1/resourceclaims"),
)
"""What is asked for, nodes first."""

Get = Callable[[str, dict[str, str]], bytes]
"""Asks the API server for a path with a query."""


def read(*, context: str = "") -> tuple[tuple[Written, ...], tuple[Problem, ...]]:
    """Every list of :data:`KINDS`.

    Args:
        context: of the kubeconfig; empty for the current one, or the pod's own account.

    Returns:
        The texts, and a problem for each kind that could not be read.

    Raises:
        Unavailable: ``missing-extra``, ``no-cluster``, ``cluster-unreachable``, ``cluster-refused``.
    """
    get = _client(context)
    texts: list[Written] = []
    missed: list[Problem] = []
    for kind, path in KINDS:
        try:
            texts.append(Written(path=f"cluster:{kind}", text=_listed(get, path)))
        except _NotListed as error:
            code = "cluster-refused" if error.answered else "cluster-unreachable"
            if kind == "nodes":
                message = f"nodes cannot be listed: {error}"
                hint = "kubectl auth can-i list nodes; or kubectl get nodes -o json | gpuledger audit nodes -"
                raise Unavailable(code, message, hint=hint) from None
            missed.append(Problem(code=code, message=f"{kind} cannot be listed: {error}", where=f"cluster:{kind}"))
    return tuple(texts), tuple(missed)


class _NotListed(Exception):
    """A list that did not come; ``answered``: the server said no, or something that is no list."""

    def __init__(self, message: str, *, answered: bool) -> None:
        super().__init__(message)
        self.answered = answered


def _listed(get: Get, path: str) -> str:
    """All pages of a list as one."""
    items: list[Any] = []
    query = {"limit": str(PAGE)}
    for _ in range(MOST_PAGES):
        try:
            page = json.loads(get(path, query))
            entries, kind = page["items"], str(page.get("kind", "List")).removesuffix("List")
            follows = (page.get("metadata") or {}).get("continue")
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            raise _NotListed("the answer is no list", answered=True) from None
        items += [{"kind": kind, **entry} if kind else entry for entry in entries or ()]
        if not follows:
            return json.dumps({"kind": f"{kind}List", "items": items}, indent=1)
        query = {"limit": str(PAGE), "continue": str(follows)}
    raise _NotListed(f"more than {PAGE * MOST_PAGES:,} objects", answered=True)


def _client(context: str) -> Get:
    """The seam to the kubernetes client: plain GETs with its address, certificates and account."""
    try:
        from kubernetes import client, config  # noqa: PLC0415 - the extra is only needed here, and costs 0.5 s
        from urllib3.exceptions import HTTPError  # noqa: PLC0415 - it comes with the extra
    except ImportError:
        raise Unavailable(
            "missing-extra", "asking a cluster needs the kubernetes client", hint="pip install 'gpuledger[kubernetes]'"
        ) from None
    try:
        configuration = client.Configuration()
        configuration.retries = False
        try:
            config.load_kube_config(  # type: ignore[no-untyped-call]
                context=context or None, client_configuration=configuration
            )
        except config.ConfigException:
            if context:
                raise
            config.load_incluster_config(client_configuration=configuration)  # type: ignore[no-untyped-call]
    except config.ConfigException as error:
        raise Unavailable(
            "no-cluster", f"no cluster is configured: {error}", hint="kubectl config get-contexts, then --context NAME"
        ) from None
    api = client.ApiClient(configuration)

    def get(path: str, query: dict[str, str]) -> bytes:
        try:
            request = api.param_serialize(
                "GET", path, query_params=list(query.items()), header_params={"Accept": "application/json"},
                auth_settings=["BearerToken"],
            )  # fmt: skip
            answer = api.call_api(*request, _request_timeout=TIMEOUT_S)
            content = bytes(answer.read() or b"")  # type: ignore[no-untyped-call]
        except (client.ApiException, HTTPError, OSError, ValueError) as error:
            said = str(error).strip().splitlines()
            raise _NotListed(said[0][:200] if said else type(error).__name__, answered=False) from None
        if answer.status != HTTPStatus.OK:
            raise _NotListed(f"{answer.status} {answer.reason or ''}".rstrip(), answered=True)
        return content

    return get
