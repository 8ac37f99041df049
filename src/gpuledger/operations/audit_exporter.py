"""``audit exporter``: an endpoint or a file is read, once or twice, and judged."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from gpuledger.audit.exporter import ANSWER_CUT, audit_exporter
from gpuledger.audit.exposition import decode
from gpuledger.errors import Misconfigured
from gpuledger.model.findings import AuditReport, Written
from gpuledger.model.problem import Problem
from gpuledger.operations.audit_files import MOST_BYTES, judged, waivers_of
from gpuledger.operations.reading_files import read_bytes, read_text
from gpuledger.sources import scrape

LONGEST_WAIT_S = 3600
"""Between two scrapes."""


def audit_endpoint(
    target: str,
    *,
    pods: Path | None = None,
    waivers: Path | None = None,
    again_after_s: int = 0,
    timeout_s: int = 10,
    insecure: bool = False,
    wait: Callable[[int], None],
    now_us: int,
) -> AuditReport:
    """The report on one endpoint, with its waivers applied.

    Args:
        target: an ``http`` or ``https`` address, a file, or ``-`` for stdin.
        pods: what ``kubectl get pods -A -o json`` printed.
        waivers: a file of waivers.
        again_after_s: seconds until a second scrape; 0 for none.
        timeout_s: for one scrape, all of it.
        insecure: take any certificate.
        wait: sleeps so many seconds.
        now_us: what expiries of waivers are compared with, microseconds UTC.

    Raises:
        Misconfigured: ``not-an-endpoint`` where a file is to be scraped a second time, ``bad-url``, ``bad-wait``.
        BadInput: a file that cannot be read; a list of pods or waivers that is none.
        Unavailable: the endpoint does not answer, or with no metrics.
    """
    allowed = waivers_of(waivers)
    listed = None
    if pods is not None:
        hint = "kubectl get pods -A -o json > pods.json"
        listed = Written(path=str(pods), text=read_text(pods, most=MOST_BYTES, hint=hint))
    endpoint = scrape.is_url(target)
    if again_after_s and not endpoint:
        message = f"{target} is a file, and a file does not move"
        raise Misconfigured("not-an-endpoint", message, hint="give the address of the exporter, or leave --twice out")
    if not 0 <= again_after_s <= LONGEST_WAIT_S:
        message = f"{again_after_s} s between two scrapes: up to {LONGEST_WAIT_S:,} are taken"
        raise Misconfigured("bad-wait", message, hint="--twice 35")

    def once() -> tuple[Written, tuple[Problem, ...]]:
        return _scraped(target, timeout_s, insecure) if endpoint else _held(Path(target))

    first, unread = once()
    later = None
    if again_after_s:
        wait(again_after_s)
        later, more = once()
        unread = (*unread, *more)
    report = audit_exporter(first, later=later, seconds=again_after_s, pods=listed, unread=unread)
    return judged(report, texts=(), waivers=allowed, unread=(), now_us=now_us)


def _held(path: Path) -> tuple[Written, tuple[Problem, ...]]:
    text, problems = decode(read_bytes(path, split="audit a part of it: head -c 60M"))
    return Written(path=str(path), text=text), _placed(problems, str(path))


def _scraped(url: str, timeout_s: int, insecure: bool) -> tuple[Written, tuple[Problem, ...]]:
    answer = scrape.read(url, timeout_s=timeout_s, insecure=insecure)
    text, problems = decode(answer.content)
    if answer.cut:
        problems = (*problems, Problem(code=ANSWER_CUT, message=answer.cut))
    return Written(path=answer.url, text=text), _placed(problems, answer.url)


def _placed(problems: tuple[Problem, ...], where: str) -> tuple[Problem, ...]:
    return tuple(Problem(code=problem.code, message=problem.message, where=where) for problem in problems)
