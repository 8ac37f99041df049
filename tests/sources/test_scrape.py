"""Fetching from an endpoint that does everything wrong: within bounds of time and bytes, and with a code for each."""

from __future__ import annotations

import gzip
import socket
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress

import pytest

from gpuledger.errors import Misconfigured, Unavailable
from gpuledger.sources import scrape

BODY = b"# TYPE up gauge\nup 1\n"
Behaviour = Callable[[socket.socket, str], None]


class Endpoint:
    """An HTTP endpoint on 127.0.0.1 that answers as a test wants it, byte by byte.

    Args:
        behave: gets the open connection and the request's text.
    """

    def __init__(self, behave: Behaviour) -> None:
        self._behave = behave
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.asked: list[str] = []
        self.url = f"http://127.0.0.1:{self._listening.getsockname()[1]}/metrics"
        threading.Thread(target=self._serve, daemon=True).start()

    def close(self) -> None:
        self._listening.close()

    def _serve(self) -> None:
        with suppress(OSError):
            while True:
                connection, _ = self._listening.accept()
                threading.Thread(target=self._answer, args=(connection,), daemon=True).start()

    def _answer(self, connection: socket.socket) -> None:
        with suppress(OSError), connection:
            asked = b""
            while b"\r\n\r\n" not in asked:
                asked += connection.recv(4096)
            self.asked.append(asked.decode())
            self._behave(connection, asked.decode())


@pytest.fixture
def serve() -> Iterator[Callable[[Behaviour], Endpoint]]:
    """Starts endpoints, and closes them."""
    started: list[Endpoint] = []

    def start(behave: Behaviour) -> Endpoint:
        started.append(Endpoint(behave))
        return started[-1]

    yield start
    for endpoint in started:
        endpoint.close()


def head(status: str = "200 OK", **headers: object) -> bytes:
    words = {"Connection": "close", "Content-Type": "text/plain; version=0.0.4"}
    words |= {name.replace("_", "-"): str(value) for name, value in headers.items()}
    return (
        f"HTTP/1.1 {status}\r\n" + "".join(f"{name}: {value}\r\n" for name, value in words.items()) + "\r\n"
    ).encode()


def answering(content: bytes) -> Behaviour:
    return lambda connection, _: connection.sendall(content)


def refused(endpoint: Endpoint, **words: int) -> Unavailable:
    with pytest.raises(Unavailable) as caught:
        scrape.read(endpoint.url, **words)
    return caught.value


def test_a_whole_answer(serve) -> None:
    """Its body, its kind, and where it came from; nothing is cut."""
    endpoint = serve(answering(head(Content_Length=len(BODY)) + BODY))
    answer = scrape.read(endpoint.url)
    assert (answer.content, answer.url, answer.cut) == (BODY, endpoint.url, "")
    assert answer.kind.startswith("text/plain")
    assert "version=0.0.4" in endpoint.asked[0]


def test_without_a_path_metrics_are_asked_for(serve) -> None:
    """People type host and port."""
    endpoint = serve(answering(head() + BODY))
    assert scrape.read(endpoint.url.removesuffix("/metrics")).content == BODY
    assert endpoint.asked[0].startswith("GET /metrics HTTP/1.1")


def test_credentials_are_sent_and_never_shown(serve) -> None:
    """As basic authentication; messages and places do not have them."""
    endpoint = serve(answering(head() + BODY))
    answer = scrape.read(endpoint.url.replace("http://", "http://ana:s3cret@"))
    assert "Authorization: Basic YW5hOnMzY3JldA==" in endpoint.asked[0]
    assert "s3cret" not in answer.url
    denied = serve(answering(head("401 Unauthorized") + b""))
    with pytest.raises(Unavailable, match="401") as caught:
        scrape.read(denied.url.replace("http://", "http://ana:s3cret@"))
    assert "s3cret" not in caught.value.message


def test_an_answer_packed_as_gzip(serve) -> None:
    """Unpacked; one that ends too early is cut, one that is damaged too."""
    packed = gzip.compress(BODY * 100)
    whole = serve(answering(head(Content_Encoding="gzip") + packed))
    assert scrape.read(whole.url).content == BODY * 100
    half = serve(answering(head(Content_Encoding="gzip") + packed[: len(packed) // 2]))
    assert "ends too early" in scrape.read(half.url).cut
    broken = serve(answering(head(Content_Encoding="gzip") + b"no gzip at all"))
    assert "damaged" in scrape.read(broken.url).cut


def test_half_a_page_is_given_with_that_fact(serve) -> None:
    """By its declared length, by chunks without an end, and by a connection that is reset."""
    short = serve(answering(head(Content_Length=1000) + BODY))
    assert scrape.read(short.url).cut == f"the answer has {len(BODY)} of 1,000 bytes"
    chunks = serve(answering(head(Transfer_Encoding="chunked") + b"15\r\n" + BODY + b"\r\n40\r\nhalf"))
    answer = scrape.read(chunks.url)
    assert answer.content.startswith(BODY)
    assert "last chunk" in answer.cut


def test_an_endpoint_that_hangs(serve) -> None:
    """Before a byte, in the headers, in the body: the bound is for all of it."""
    for sent in (b"", b"HTTP/1.1 200 OK\r\nConte", head(Content_Length=1000) + BODY):

        def hang(connection: socket.socket, _: str, sent: bytes = sent) -> None:
            connection.sendall(sent)
            time.sleep(30)

        began = time.monotonic()
        error = refused(serve(hang), timeout_s=1)
        assert error.code == "exporter-slow"
        assert time.monotonic() - began < 3


def test_an_endpoint_that_drips(serve) -> None:
    """A byte at a time never meets a bound on reads; headers that drip do not either."""

    def drip(connection: socket.socket, _: str) -> None:
        for byte in head(Content_Length=100_000) + BODY * 1000:
            connection.sendall(bytes([byte]))
            time.sleep(0.02)

    began = time.monotonic()
    assert refused(serve(drip), timeout_s=1).code == "exporter-slow"
    assert time.monotonic() - began < 3


def test_more_bytes_than_allowed(serve) -> None:
    """Plain without an end, and packed a thousandfold: neither is taken into memory."""

    def endless(connection: socket.socket, _: str) -> None:
        connection.sendall(head())
        while True:
            connection.sendall(b"up 1\n" * 10_000)

    assert refused(serve(endless), most=1024 * 1024).code == "exporter-too-large"
    packing = zlib.compressobj(9, wbits=31)
    bomb = b"".join([packing.compress(b"\0" * 1024 * 1024) for _ in range(64)]) + packing.flush()
    assert len(bomb) < 100_000
    assert (
        refused(serve(answering(head(Content_Encoding="gzip") + bomb)), most=1024 * 1024).code == "exporter-too-large"
    )


@pytest.mark.parametrize(
    ("status", "hint"), [("404 Not Found", "/metrics"), ("503 Service Unavailable", "log"), ("500 Oh", "log")]
)
def test_a_status_that_is_no_answer(serve, status: str, hint: str) -> None:
    """What it said, and what helps."""
    error = refused(serve(answering(head(status, Content_Length=0))))
    assert error.code == "exporter-status"
    assert status.split(maxsplit=1)[0] in error.message
    assert hint in error.hint


def test_redirects_are_followed_within_a_bound(serve) -> None:
    """A few lead on; a circle, an address of another kind, and none at all are refused."""
    target = serve(answering(head() + BODY))
    first = serve(answering(head("302 Found", Location=target.url)))
    assert scrape.read(first.url).url == target.url
    circle = serve(answering(head("301 Moved", Location="/metrics")))
    assert refused(circle).code == "exporter-redirects"
    assert len(circle.asked) == scrape.MOST_REDIRECTS + 1
    away = serve(answering(head("307 Temporary", Location="file:///etc/passwd")))
    assert refused(away).code == "exporter-redirects"


def test_credentials_do_not_follow_to_another_host(serve) -> None:
    """A redirect elsewhere is asked without them."""
    target = serve(answering(head() + BODY))
    first = serve(answering(head("302 Found", Location=target.url)))
    scrape.read(first.url.replace("http://", "http://ana:s3cret@"))
    assert "Authorization" in first.asked[0]
    assert "Authorization" not in target.asked[0]


def test_what_is_no_text_of_metrics(serve) -> None:
    """A page for browsers and bytes are refused; a wrong content type over a right text is not."""
    page = serve(answering(head(Content_Type="text/html") + b"<html><title>GPU Exporter</title></html>"))
    assert refused(page).code == "exporter-not-metrics"
    raw = serve(answering(head(Content_Type="application/octet-stream") + b"\x7fELF\0\0\0\1" * 100))
    assert refused(raw).code == "exporter-not-metrics"
    odd = serve(answering(head(Content_Type="application/json") + BODY))
    assert scrape.read(odd.url).content == BODY


def test_what_does_not_speak_http(serve) -> None:
    """Another protocol on that port; nobody on it; a name that is none; https where there is none."""
    other = serve(answering(b"SSH-2.0-OpenSSH_9.2\r\n"))
    assert refused(other).code == "exporter-not-http"
    assert "closed the connection" in refused(serve(answering(b""))).message
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with pytest.raises(Unavailable, match="refused"):
        scrape.read(f"http://127.0.0.1:{port}/metrics")
    with pytest.raises(Unavailable) as caught:
        scrape.read("http://no-such-host.invalid:9400/metrics", timeout_s=5)
    assert caught.value.code in ("exporter-unreachable", "exporter-slow")
    plain = serve(answering(head() + BODY))
    with pytest.raises(Unavailable) as caught:
        scrape.read(plain.url.replace("http://", "https://"), timeout_s=2)
    assert caught.value.code == "exporter-unreachable"


@pytest.mark.parametrize(
    "url", ["http://", "http://host:99999/", "http://host:0/", "ftp://host/", "http://ho st/", "x"]
)
def test_addresses_that_are_none(url: str) -> None:
    """Refused before anything is asked."""
    with pytest.raises(Misconfigured) as caught:
        scrape.read(url)
    assert caught.value.code == "bad-url"


def test_what_counts_as_an_address() -> None:
    """Everything else is a file's name."""
    assert [scrape.is_url(word) for word in ("HTTP://host", "https://host", "scrape.prom", "-")] == [
        True,
        True,
        False,
        False,
    ]
