"""A progress bar on stderr, when stderr is a terminal and the work is long."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from gpuledger.cli.session import Session


@contextmanager
def progress(session: Session, sentence: str) -> Iterator[Callable[[int, int], None]]:
    """Yields what the work calls with (done, in all); shows nothing on a pipe or with ``--quiet``."""
    if session.quiet or not session.err.is_terminal:
        yield _nothing
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=session.err, transient=True) as bar:
        task = bar.add_task(sentence, total=None)
        yield lambda done, of: bar.update(task, completed=done, total=of)


def _nothing(done: int, of: int) -> None:
    """No one is looking."""
    del done, of
