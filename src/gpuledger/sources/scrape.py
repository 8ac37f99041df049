"""What an endpoint of metrics answers: fetched over HTTP within a bound of time, of bytes and of redirects.

The bound of time is for all of it together, since an endpoint that sends a byte a second never meets a bound on reads.
An answer that stops before its end is given with that fact; everything else that goes wrong is an error with a code.
"""

from __future__ import annotations

import base64
import http.client
import socket
import ssl
import threading
import zlib
from contextlib import suppress
from dataclasses import dataclass
from urllib.parse import SplitResult, unquote, urljoin, urlsplit

from gpuledger.errors import Misconfigured, Unavailable

MOST_BYTES = 64 * 1024 * 1024
"""Of the text, unpacked. A node of 8 GPUs and 64 pods answers 1 MiB; Prometheus' body_size_limit is off by default."""

MOST_REDIRECTS = 5
_CHUNK = 64 * 1024
_LATER_S = 5
"""After the bound of the whole a thread that nobody waits for may still end by itself."""

_HEADERS = {
    "Accept": "text/plain;version=0.0.4, application/openmetrics-text;q=0.5, */*;q=0.1",
    "Accept-Encoding": "gzip",
    "User-Agent": "gpuledger-audit",
}
_REDIRECTS = (301, 302, 303, 307, 308)


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What came back.

    Args:
        url: where it came from at last, without credentials.
        content: the body, unpacked.
        kind: its declared content type; empty where there is none.
        cut: why it is not whole; empty for a whole one.
    """

    url: str
    content: bytes
    kind: str
    cut: str = ""


def is_url(text: str) -> bool:
    """Whether a word of a command line means an endpoint and not a file."""
    return text.lower().startswith(("http://", "https://"))


def shown_url(url: str) -> str:
    """An address as it may be printed: without credentials."""
    parts = urlsplit(url)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()


def read(url: str, *, timeout_s: int = 10, most: int = MOST_BYTES, insecure: bool = False) -> Answer:
    """One answer of an endpoint; where the address has no path, of ``/metrics``.

    Args:
        url: ``http`` or ``https``; credentials in it are sent as basic authentication.
        timeout_s: for all of it, from the look-up of the name to the last byte.
        most: bytes of the body, unpacked.
        insecure: take any certificate.

    Raises:
        Misconfigured: ``bad-url``.
        Unavailable: ``exporter-unreachable``, ``exporter-slow``, ``exporter-status``, ``exporter-redirects``,
            ``exporter-too-large``, ``exporter-not-http`` or ``exporter-not-metrics``.
    """
    fetching = _Fetching(url, timeout_s=timeout_s, most=most, insecure=insecure)
    worker = threading.Thread(target=fetching.run, name="scrape", daemon=True)  # a name look-up knows no timeout
    worker.start()
    worker.join(timeout_s)
    if worker.is_alive():
        fetching.give_up()
        if not fetching.connected:
            raise _unreachable(_parts(url), TimeoutError())
        got = f" after {fetching.received:,} bytes" if fetching.received else ""
        raise Unavailable(
            "exporter-slow",
            f"{shown_url(url)} did not finish within {timeout_s} s{got}",
            hint="--timeout 60, or look at the exporter's log: Prometheus gives up after 10 s by default",
        )
    if isinstance(fetching.came_to, Answer):
        return fetching.came_to
    raise fetching.came_to


class _Fetching:
    """One fetch, in a thread of its own.

    Args:
        url: as typed.
        timeout_s: of the whole, which the caller keeps; no single step here ends before it.
        most: bytes.
        insecure: take any certificate.
    """

    def __init__(self, url: str, *, timeout_s: int, most: int, insecure: bool) -> None:
        self._url = url
        self._timeout_s = timeout_s + _LATER_S
        self._most = most
        self._insecure = insecure
        self._connection: http.client.HTTPConnection | None = None
        self._response: http.client.HTTPResponse | None = None
        self._socket: socket.socket | None = None
        self.received = 0
        self.came_to: Answer | Exception = Unavailable("exporter-unreachable", "nothing was tried")

    def run(self) -> None:
        """Fetch; whatever comes of it is in ``came_to``."""
        try:
            self.came_to = self._follow()
        except Exception as error:  # noqa: BLE001 - carried to the caller's thread, which raises it there
            self.came_to = error
        finally:
            self._close()

    @property
    def connected(self) -> bool:
        """Whether anybody took the connection."""
        return self._socket is not None

    def give_up(self) -> None:
        """End whatever goes on, so that a read in the other thread ends too."""
        if self._socket is not None:
            with suppress(OSError):
                self._socket.shutdown(socket.SHUT_RDWR)

    def _close(self) -> None:
        for part in (self._response, self._connection):
            if part is not None:
                part.close()

    def _follow(self) -> Answer:
        url, credentials = self._url, True
        for _ in range(MOST_REDIRECTS + 1):
            parts = _parts(url)
            response = self._ask(parts, credentials=credentials)
            if response.status not in _REDIRECTS:
                return self._answer(parts, response)
            target = urljoin(parts.geturl(), response.getheader("Location", ""))
            self._close()
            if not is_url(target) or (parts.scheme == "https" and not target.lower().startswith("https")):
                raise _redirects(self._url, f"leads to {shown_url(target) or 'nowhere'}")
            credentials = credentials and _parts(target).netloc == parts.netloc
            url = target
        raise _redirects(self._url, f"leads on more than {MOST_REDIRECTS} times")

    def _ask(self, parts: SplitResult, *, credentials: bool) -> http.client.HTTPResponse:
        host, port = parts.hostname or "", parts.port
        if parts.scheme == "https":
            context = ssl._create_unverified_context() if self._insecure else ssl.create_default_context()  # noqa: S323, SLF001 - asked for by --insecure
            connection: http.client.HTTPConnection = http.client.HTTPSConnection(
                host, port, timeout=self._timeout_s, context=context
            )
        else:
            connection = http.client.HTTPConnection(host, port, timeout=self._timeout_s)
        self._connection = connection
        headers = dict(_HEADERS)
        if credentials and parts.username is not None:
            word = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
            headers["Authorization"] = "Basic " + base64.b64encode(word.encode()).decode()
        path = (parts.path or "/metrics") + (f"?{parts.query}" if parts.query else "")
        try:
            connection.connect()
            self._socket = connection.sock
            connection.request("GET", path, headers=headers)
            self._response = connection.getresponse()
        except ssl.SSLError as error:
            raise _unreachable(
                parts, error, hint="--insecure takes any certificate; http:// where it has none"
            ) from None
        except http.client.RemoteDisconnected:
            raise _unreachable(parts, OSError("it closed the connection without an answer")) from None
        except (http.client.HTTPException, ValueError) as error:
            message = f"{shown_url(parts.geturl())} does not speak HTTP ({type(error).__name__})"
            raise Unavailable(
                "exporter-not-http", message, hint="https:// instead of http://, or another port"
            ) from None
        except OSError as error:
            raise _unreachable(parts, error) from None
        return self._response

    def _answer(self, parts: SplitResult, response: http.client.HTTPResponse) -> Answer:
        url = shown_url(parts.geturl())
        if response.status != http.client.OK:
            raise _status(url, response)
        kind = response.getheader("Content-Type", "") or ""
        packed = (response.getheader("Content-Encoding", "") or "").strip().lower()
        declared = response.length
        unpacking = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16) if packed in ("gzip", "x-gzip") else None
        body, cut = bytearray(), ""
        try:
            while chunk := response.read1(_CHUNK):
                self.received += len(chunk)
                body += self._unpacked(unpacking, chunk, url, room=self._most - len(body))
        except http.client.IncompleteRead as error:
            body += self._unpacked(unpacking, error.partial, url, room=self._most - len(body))
            cut = "the answer ends before its last chunk"
        except zlib.error:
            cut = "the answer is packed as gzip and damaged"
        except OSError as error:
            cut = f"the connection broke: {error.strerror or error}"
        except (http.client.HTTPException, ValueError):
            cut = "the answer ends before its last chunk"
        if not cut and declared is not None and self.received < declared:
            cut = f"the answer has {self.received:,} of {declared:,} bytes"
        if not cut and unpacking is not None and not unpacking.eof:
            cut = "the answer is packed as gzip and ends too early"
        content = bytes(body)
        _refuse_other(url, kind, content)
        return Answer(url=url, content=content, kind=kind, cut=cut)

    def _unpacked(self, unpacking: zlib._Decompress | None, chunk: bytes, url: str, *, room: int) -> bytes:
        """A chunk as it counts: unpacked, and never more than there is room for."""
        plain = chunk if unpacking is None else unpacking.decompress(chunk, max(room, 0) + 1)
        if len(plain) > room:
            message = f"{url} answers with more than {self._most // 1024**2:,} MiB"
            raise Unavailable("exporter-too-large", message, hint="curl it into a file, and audit a part of that")
        return plain


def _parts(url: str) -> SplitResult:
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        parts, port = SplitResult("", "", "", "", ""), None
    blank = any(sign.isspace() or ord(sign) < 32 for sign in url)
    if parts.scheme not in ("http", "https") or not parts.hostname or port == 0 or blank:
        message = f"{url!r} is no address of an endpoint"
        raise Misconfigured("bad-url", message, hint="http://HOST:9400/metrics")
    return parts


def _unreachable(parts: SplitResult, error: OSError, *, hint: str = "") -> Unavailable:
    reason = error.strerror or str(error) or type(error).__name__
    if isinstance(error, TimeoutError):
        reason = "no connection in time"
    message = f"{shown_url(parts.geturl())} cannot be reached: {reason}"
    return Unavailable(
        "exporter-unreachable",
        message,
        hint=hint or "kubectl port-forward POD 9400, then http://127.0.0.1:9400/metrics",
    )


def _redirects(url: str, what: str) -> Unavailable:
    message = f"{shown_url(url)} {what}"
    return Unavailable("exporter-redirects", message, hint="give the address that answers itself")


def _status(url: str, response: http.client.HTTPResponse) -> Unavailable:
    hints = {
        401: "http://USER:PASSWORD@HOST:9400/metrics",
        403: "audit it from where Prometheus may scrape it, or with kubectl port-forward",
        404: "dcgm-exporter answers at /metrics",
        503: "the exporter is not ready: see its log",
    }
    message = f"{url} answers {response.status} {response.reason}".rstrip()
    return Unavailable("exporter-status", message, hint=hints.get(response.status, "see the exporter's log"))


def _refuse_other(url: str, kind: str, content: bytes) -> None:
    """Refuse what is no text of metrics: a page for browsers, or bytes."""
    head = content[:512].lstrip().lower()
    if head.startswith((b"<!doctype", b"<html")):
        message = f"{url} answers with a page for browsers"
        raise Unavailable("exporter-not-metrics", message, hint="dcgm-exporter answers at /metrics")
    if b"\0" in content[:65536] and content[:2] not in (b"\xff\xfe", b"\xfe\xff"):
        message = f"{url} answers with bytes that are no text ({kind or 'no content type'})"
        raise Unavailable("exporter-not-metrics", message, hint="dcgm-exporter answers at /metrics, as text/plain")
