"""A live cluster, asked read only: pages, accounts, refusals, silence; against a small API server on 127.0.0.1."""

from __future__ import annotations

import builtins
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from gpuledger.errors import Unavailable
from gpuledger.sources import kubernetes_nodes


class ApiServer(ThreadingHTTPServer):
    """Answers lists, two objects a page."""

    lists: dict[str, list[dict[str, Any]]]
    refused: set[str]
    broken: set[str]
    asked: list[tuple[str, str]]


class Answers(BaseHTTPRequestHandler):
    """One request."""

    server: ApiServer

    def do_GET(self) -> None:
        """A page of a list, a refusal, or half an answer."""
        parts = urlsplit(self.path)
        self.server.asked.append((parts.path, self.headers.get("Authorization", "")))
        kind = parts.path.rsplit("/", 1)[-1]
        if kind in self.server.broken:
            self._say(200, b'{"kind": "NodeList", "items": [')
        elif kind in self.server.refused:
            self._say(403, b'{"kind": "Status", "message": "forbidden"}')
        elif kind not in self.server.lists:
            self._say(404, b'{"kind": "Status"}')
        else:
            start = int(parse_qs(parts.query).get("continue", ["0"])[0])
            items = self.server.lists[kind]
            more = str(start + 2) if start + 2 < len(items) else ""
            page = {"kind": "NodeList", "items": items[start : start + 2], "metadata": {"continue": more}}
            self._say(200, json.dumps(page).encode())

    def _say(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - http.server's name
        """Nothing is printed."""


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ApiServer]:
    """A server with three nodes, and a kubeconfig that points at it."""
    server = ApiServer(("127.0.0.1", 0), Answers)
    server.lists = {"nodes": [{"metadata": {"name": f"gpu-{place}"}} for place in range(3)], "pods": []}
    server.refused, server.broken, server.asked = set(), set(), []
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    file = tmp_path / "kubeconfig"
    file.write_text(kubeconfig(server.server_address[1]), encoding="utf-8")
    monkeypatch.setenv("KUBECONFIG", str(file))
    monkeypatch.setattr("kubernetes.config.kube_config.KUBE_CONFIG_DEFAULT_LOCATION", str(file))
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


def kubeconfig(port: int) -> str:
    return f"""\
apiVersion: v1
kind: Config
current-context: here
clusters: [{{name: c, cluster: {{server: "http://127.0.0.1:{port}"}}}}]
users: [{{name: u, user: {{token: sesame}}}}]
contexts: [{{name: here, context: {{cluster: c, user: u}}}}]
"""


def test_lists_come_page_by_page(cluster: ApiServer) -> None:
    """All nodes, as one list; with the account's token; kinds that the cluster does not know are told."""
    texts, missed = kubernetes_nodes.read()
    by_path = {written.path: json.loads(written.text) for written in texts}
    assert [node["metadata"]["name"] for node in by_path["cluster:nodes"]["items"]] == ["gpu-0", "gpu-1", "gpu-2"]
    assert by_path["cluster:nodes"]["items"][0]["kind"] == "Node"
    assert by_path["cluster:pods"]["items"] == []
    assert {authorization for _, authorization in cluster.asked} == {"Bearer sesame"}
    assert {problem.where for problem in missed} == {
        "cluster:configmaps", "cluster:daemonsets", "cluster:resourceslices", "cluster:resourceclaims",
    }  # fmt: skip


def test_what_may_not_be_listed_is_told(cluster: ApiServer) -> None:
    """Pods that are refused are unread; nodes that are refused are an error."""
    cluster.refused = {"pods"}
    _, missed = kubernetes_nodes.read()
    (pods,) = [problem for problem in missed if problem.where == "cluster:pods"]
    assert (pods.code, "403" in pods.message) == ("cluster-refused", True)
    cluster.refused = {"nodes"}
    with pytest.raises(Unavailable) as refused:
        kubernetes_nodes.read()
    assert refused.value.code == "cluster-refused"


def test_half_an_answer_is_no_list(cluster: ApiServer) -> None:
    """It is not taken for an empty one."""
    cluster.broken = {"nodes"}
    with pytest.raises(Unavailable, match="no list"):
        kubernetes_nodes.read()


def test_endless_pages_end(cluster: ApiServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """A list that never ends is told, not followed for ever."""
    monkeypatch.setattr(kubernetes_nodes, "MOST_PAGES", 1)
    with pytest.raises(Unavailable, match="more than"):
        kubernetes_nodes.read()


def test_a_server_that_is_not_there(cluster: ApiServer, tmp_path: Path) -> None:
    """Unreachable, at once."""
    (tmp_path / "kubeconfig").write_text(kubeconfig(1), encoding="utf-8")
    with pytest.raises(Unavailable) as refused:
        kubernetes_nodes.read()
    assert refused.value.code == "cluster-unreachable"


def test_no_cluster_is_configured(cluster: ApiServer, tmp_path: Path) -> None:
    """Neither a kubeconfig nor a pod's account; or a context that is not in it."""
    with pytest.raises(Unavailable) as refused:
        kubernetes_nodes.read(context="elsewhere")
    assert refused.value.code == "no-cluster"
    (tmp_path / "kubeconfig").write_text("", encoding="utf-8")
    with pytest.raises(Unavailable) as refused:
        kubernetes_nodes.read()
    assert refused.value.code == "no-cluster"


def test_a_missing_extra_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the command that installs it."""
    real = builtins.__import__

    def without(name: str, *given: Any, **more: Any) -> Any:
        if name.startswith("kubernetes"):
            raise ImportError(name)
        return real(name, *given, **more)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(Unavailable) as refused:
        kubernetes_nodes.read()
    assert (refused.value.code, "gpuledger[kubernetes]" in refused.value.hint) == ("missing-extra", True)
