"""Files that people hand in: whole, as text, within bounds, or not at all."""

from __future__ import annotations

import gzip
import io
from pathlib import Path
from types import SimpleNamespace

import pytest

from gpuledger.errors import BadInput
from gpuledger.operations import reading_files
from gpuledger.operations.reading_files import read_bytes, read_text

HINT = "give a text"


@pytest.mark.parametrize("content", [b"pid, time\n", b"\xef\xbb\xbf" + b"pid, time\n", "pid, time\n".encode("utf-16")])
def test_text_is_read_as_windows_and_linux_write_it(tmp_path: Path, content: bytes) -> None:
    """UTF-8 with or without its mark, and what PowerShell's > writes."""
    path = tmp_path / "dump.csv"
    path.write_bytes(content)
    assert read_text(path, hint=HINT) == "pid, time\n"


def test_a_dash_is_stdin(monkeypatch: pytest.MonkeyPatch) -> None:
    """`nvidia-smi ... | gpuledger import nvidia-smi -`."""
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(b"from a pipe\n")))
    assert read_text(Path("-"), hint=HINT) == "from a pipe\n"


def test_a_closed_stdin_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """Python has no stdin at all where a shell said `<&-`."""
    monkeypatch.setattr("sys.stdin", None)
    with pytest.raises(BadInput, match="stdin is closed") as refused:
        read_text(Path("-"), hint=HINT)
    assert (refused.value.code, refused.value.hint) == ("unreadable-file", "give the name of a file")


def test_a_packed_file_is_told_with_what_unpacks_it(tmp_path: Path) -> None:
    """Its bytes are no text, and which line that is helps nobody."""
    path = tmp_path / "events.jsonl.gz"
    path.write_bytes(gzip.compress(b"{}"))
    with pytest.raises(BadInput, match="packed by gzip") as refused:
        read_text(path, hint=HINT)
    assert (refused.value.code, refused.value.line) == ("not-text", 0)
    assert refused.value.hint.startswith(f"gunzip -c {path} | gpuledger")


def test_a_packed_stdin_is_told_with_what_unpacks_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """`gunzip -c -` in front of it would be no command that a pipe can take; a name with a space is quoted."""
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(gzip.compress(b"{}"))))
    with pytest.raises(BadInput, match="packed by gzip") as refused:
        read_text(Path("-"), hint=HINT)
    assert refused.value.hint == "gunzip | gpuledger ... -"
    path = tmp_path / "my events.gz"
    path.write_bytes(gzip.compress(b"{}"))
    with pytest.raises(BadInput) as refused:
        read_text(path, hint=HINT)
    assert refused.value.hint == f"gunzip -c '{path}' | gpuledger ... -"


def test_stdin_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """`-` for two inputs is told with what to do, and is no crash."""
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(b"once\n")))
    assert read_text(Path("-"), hint=HINT) == "once\n"
    with pytest.raises(BadInput, match="read once") as refused:
        read_text(Path("-"), hint=HINT)
    assert refused.value.code == "stdin-twice"


@pytest.mark.parametrize("content", [b"fine\nfine\n\x80\x81 not fine\n", b"fine\nfine\n\xff"])
def test_what_is_not_text_is_refused_with_its_line(tmp_path: Path, content: bytes) -> None:
    """The line where it stops being text."""
    path = tmp_path / "dump.csv"
    path.write_bytes(content)
    with pytest.raises(BadInput) as refused:
        read_text(path, hint=HINT)
    assert (refused.value.code, refused.value.line) == ("not-text", 3)


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    """Not there, or a folder."""
    for path in (tmp_path / "none.csv", tmp_path):
        with pytest.raises(BadInput, match=str(path)) as refused:
            read_text(path, hint=HINT)
        assert refused.value.code == "unreadable-file"


def test_a_file_larger_than_the_bound_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before it fills the memory; a file of exactly that size is read."""
    monkeypatch.setattr(reading_files, "_MOST_BYTES", 10)
    path = tmp_path / "dump.csv"
    path.write_bytes(b"0123456789")
    assert read_text(path, hint=HINT) == "0123456789"
    path.write_bytes(b"0123456789a")
    with pytest.raises(BadInput) as refused:
        read_text(path, hint=HINT)
    assert refused.value.code == "too-large"


def test_bytes_are_read_as_they_are(tmp_path: Path) -> None:
    """Slurm prints what is no UTF-8; a file larger than asked for says how to split it."""
    path = tmp_path / "sacct.txt"
    path.write_bytes(b"name\xff\n")
    assert read_bytes(path) == b"name\xff\n"
    with pytest.raises(BadInput) as refused:
        read_bytes(path, most=3, split="by month")
    assert (refused.value.code, refused.value.hint) == ("too-large", "by month")


def test_what_text_was_meant_is_the_callers_to_say(tmp_path: Path) -> None:
    """A trace is not what nvidia-smi printed."""
    path = tmp_path / "trace.csv"
    path.write_bytes(b"\xff")
    with pytest.raises(BadInput) as refused:
        read_text(path, hint="a trace is CSV")
    assert refused.value.hint == "a trace is CSV"
