"""``forget``: drops identity texts for good. Amounts, records, chains and seals stand."""

from __future__ import annotations

import shlex

from gpuledger.accounting.forgetting import NEVER_READ, chosen, lines, still_named, unknown_names
from gpuledger.accounting.owners import Naming
from gpuledger.errors import Misconfigured
from gpuledger.ledger.reserved import reading
from gpuledger.ledger.store import Ledger
from gpuledger.ledger.verify import verify_ledger
from gpuledger.metering.lifecycles import NEVER_LIVED, OpenLife
from gpuledger.model.durations import several
from gpuledger.model.forgetting import Choice, ForgetReport
from gpuledger.model.meters import GPU_CONTEXT
from gpuledger.model.missing import Missing
from gpuledger.model.problem import Problem
from gpuledger.model.rows import ProcessIdentity, Sighting, Watch
from gpuledger.model.workload_rows import WorkloadEvent
from gpuledger.operations.usage import answer_window, policies, window

_NOT_DONE = Missing("nothing was dropped")


def forget(
    ledger: Ledger,
    choice: Choice,
    *,
    typed: tuple[tuple[str, str], ...],
    done: bool,
    host: str,
    writer: str,
    now_us: int,
) -> ForgetReport:
    """Say what a choice would drop, or drop it.

    Afterwards pages, chains, seals and the texts left are checked. Records are not derived again: they rest on
    rows, and no row was touched.

    Args:
        ledger: open to append where it is to be done.
        choice: which texts.
        typed: the options as they were given, name and value.
        done: drop them; else nothing is changed.
        host, writer: under which the deed is told in the journal: how many, never who.
        now_us: owners are those of now.

    Raises:
        Misconfigured: ``nothing-chosen`` when the choice is empty.
        Unavailable: ``log-in-use``.
    """
    if choice.is_empty:
        raise Misconfigured(
            "nothing-chosen",
            "nothing says what to forget, and everything is not meant",
            hint="gpuledger forget --user NAME   (or --subject, --service, --before TIME; several must all fit)",
        )
    since_us, until_us = window(ledger, since=None, until=None, now_us=now_us)
    answer = answer_window(ledger, meters=(GPU_CONTEXT,), by=(), since_us=since_us, until_us=until_us, now_us=now_us)
    texts = ledger.texts(None)
    versions = policies(ledger, now_us=now_us)
    naming = Naming(texts=texts, versions=versions)
    read_us, seen_us = _last_seen(ledger, choice.before_us, now_us)
    keys = chosen(choice, texts, naming, seen_us, now_us=now_us)
    dropped, left = _drop(ledger, keys, host=host, writer=writer, now_us=now_us) if done else (0, "")
    problems = [*unknown_names(choice, texts, naming, now_us=now_us), *still_named(choice, versions)]
    if left:
        problems.append(Problem(code="left-in-server", message=left))
    return ForgetReport(
        done=done,
        words=" ".join(f"{name} {shlex.quote(value)}" for name, value in typed),
        lines=lines(
            keys, naming, read_us=read_us, amounts=answer.amounts, open_contexts=answer.open_contexts, now_us=now_us
        ),
        total=sum(amount.quantity for amount in answer.amounts),
        dropped=dropped,
        verified=not verify_ledger(ledger) if done else _NOT_DONE,
        problems=tuple(problems),
    )


def _last_seen(ledger: Ledger, before_us: int | Missing, now_us: int) -> tuple[dict[str, int], dict[str, int]]:
    """By key, when its text was last read, and when one of its processes was last seen alive, as far as it matters.

    A workload's text is read with each event that names it, void or not. While the workload is open every text of
    its life is in use: an hour is named by the text of the event that placed it. That is until now; of a controller
    with a heartbeat until its last beat, and of declared history until it was known.

    Looks tell of a daemon that was read months ago; only those since ``before_us`` can keep its text.
    """
    read_us: dict[str, int] = {}
    processes: dict[tuple[str, str, int, int], set[str]] = {}
    for row in ledger.scan(ProcessIdentity):
        read_us[row.text_key] = max(row.seen_at_us, read_us.get(row.text_key, row.seen_at_us))
        processes.setdefault((row.host, row.boot_id, row.pid, row.start_ticks), set()).add(row.text_key)
    lives: dict[str, OpenLife] = {}
    for event in ledger.scan(WorkloadEvent, order="time"):
        read_us[event.subject] = max(event.at_us, read_us.get(event.subject, event.at_us))
        lives[event.workload] = lives.get(event.workload, NEVER_LIVED).followed_by(event)
    seen_us = dict(read_us)
    if lives:
        with reading(ledger, ledger.marks()) as read:
            beats = read.beats
        for life in lives.values():
            beat = beats.get(life.source, NEVER_READ)
            known_us = life.at_us if life.is_declared else now_us
            for key in life.subjects:
                seen_us[key] = max(seen_us[key], known_us if isinstance(beat, Missing) else min(beat, now_us))
    if not isinstance(before_us, Missing):
        for look in ledger.scan(Sighting, since_us=before_us):
            for key in processes.get((look.host, look.boot_id, look.pid, look.start_ticks), ()):
                seen_us[key] = max(look.until_us, seen_us[key])
    return read_us, seen_us


def _drop(ledger: Ledger, keys: frozenset[str], *, host: str, writer: str, now_us: int) -> tuple[int, str]:
    """Delete the texts, and tell the journal that it was done. Returns how many, and where they may still be."""
    dropped, left = ledger.forget(keys)
    if dropped:
        told = Watch(
            host=host, device="", source="driver", method="forget", interval_ms=0, since_us=now_us, until_us=now_us,
            status="ok", readings=0, detail=f"{several(dropped, 'identity text')} forgotten; amounts stand",
        )  # fmt: skip
        ledger.append([told], writer=writer, at_us=now_us)
    return dropped, left
