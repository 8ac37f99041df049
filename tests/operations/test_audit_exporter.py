"""``audit exporter``: from a file or an endpoint to the report."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from exporter_texts import Exporter, duplicated, mapped
from gpuledger.errors import BadInput, Misconfigured, Unavailable
from gpuledger.model.findings import AuditReport
from gpuledger.model.moments import parse_moment
from gpuledger.operations.audit_exporter import audit_endpoint

NOW = parse_moment("2026-11-29", now_us=0)
Serve = Callable[..., str]


def audited(target: object, **words: object) -> AuditReport:
    return audit_endpoint(str(target), **{"wait": lambda _: None, "now_us": NOW} | words)  # type: ignore[arg-type]


@pytest.fixture
def serve() -> Iterator[Serve]:
    """An endpoint that gives one text after the other, and says that it has more of each where asked to."""
    servers: list[HTTPServer] = []

    def start(*texts: str, more: int = 0) -> str:
        left = list(texts)

        class Answers(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                body = (left.pop(0) if len(left) > 1 else left[0]).encode()
                self.send_response(200)
                self.send_header("Content-Length", str(len(body) + more))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                """Nothing: tests read what they need."""

        server = HTTPServer(("127.0.0.1", 0), Answers)
        servers.append(server)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        return f"http://127.0.0.1:{server.server_port}/metrics"

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


def test_a_file(tmp_path: Path) -> None:
    """Its name is the place of every finding."""
    path = tmp_path / "scrape.prom"
    path.write_text(duplicated().text(), encoding="utf-8")
    report = audited(path)
    assert {finding.where.path for finding in report.findings} == {str(path)}
    assert report.found()


def test_bytes_that_are_no_text_are_told_and_the_rest_is_judged(tmp_path: Path) -> None:
    """A pod's name in Latin-1 does not hide the others."""
    path = tmp_path / "scrape.prom"
    path.write_bytes(duplicated().text().encode() + b'a{pod="caf\xe9"} 1\n')
    report = audited(path)
    assert [(problem.code, problem.where) for problem in report.unread] == [("not-utf8", str(path))]
    assert "exporter/device-scope" in {finding.check.id for finding in report.findings}


def test_an_endpoint(serve: Serve) -> None:
    """Its address is the place."""
    url = serve(mapped().text())
    report = audited(url)
    assert dict(report.facts)["scope of figures on pods"].startswith("process")
    assert {finding.where.path for finding in report.findings} == {url}


def test_half_a_page_is_judged_and_told(serve: Serve) -> None:
    """As an error of its own, and as something that was not read."""
    report = audited(serve(mapped().text(), more=1000))
    (cut,) = [finding for finding in report.findings if finding.check.id == "exporter/answer-cut"]
    assert "of" in cut.message
    assert [problem.code for problem in report.unread] == ["answer-cut"]
    assert dict(report.facts)["scope of figures on pods"].startswith("process")


def test_two_scrapes(serve: Serve) -> None:
    """The wait between them is the one asked for."""
    waited: list[int] = []
    url = serve(Exporter().device(util=1, energy=5).text(), Exporter().device(util=9, energy=7).text())
    report = audited(url, again_after_s=35, wait=waited.append)
    assert waited == [35]
    assert dict(report.facts)["moved between the scrapes"] == "2 of 2 figures, 1 of 1 counters of energy"


def test_waivers_are_laid_over_the_report(tmp_path: Path) -> None:
    """By check and device, until their day."""
    scrape, waivers = tmp_path / "scrape.prom", tmp_path / "waivers.yaml"
    scrape.write_text(Exporter().pod("runai-reservation/x", used=5).text(), encoding="utf-8")
    entry = "{check: exporter/*, where: '*', reason: whole nodes, owner: ana, until: 2027-01-31}"
    waivers.write_text(f"- {entry}\n", encoding="utf-8")
    assert audited(scrape).found()
    assert not audited(scrape, waivers=waivers).found(strict=True)
    assert audited(scrape, waivers=waivers, now_us=parse_moment("2027-02-01", now_us=0)).found()


def test_pods_are_compared(tmp_path: Path) -> None:
    """From a file of kubectl's."""
    scrape, pods = tmp_path / "scrape.prom", tmp_path / "pods.json"
    scrape.write_text(Exporter().pod("a/train", util=5).text(), encoding="utf-8")
    pods.write_text('{"items": [{"metadata": {"namespace": "a", "name": "x"}}]}', encoding="utf-8")
    assert "exporter/stale-pod" in {finding.check.id for finding in audited(scrape, pods=pods).findings}


def test_what_cannot_be_asked_for(tmp_path: Path) -> None:
    """A file does not move; a file that is not there; an address of nothing; an endless wait."""
    with pytest.raises(Misconfigured) as caught:
        audited(tmp_path / "x", again_after_s=5)
    assert caught.value.code == "not-an-endpoint"
    with pytest.raises(Misconfigured) as caught:
        audited("http://127.0.0.1:9/", again_after_s=100_000)
    assert caught.value.code == "bad-wait"
    with pytest.raises(BadInput):
        audited(tmp_path / "absent.prom")
    with pytest.raises(Unavailable) as refused:
        audited("http://127.0.0.1:9/metrics")
    assert refused.value.code == "exporter-unreachable"
