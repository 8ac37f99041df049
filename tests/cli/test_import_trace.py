"""``gpuledger import trace``: what came in, what to type next, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

BOOK = """\
Name;Machine;From;Until;GPUs;Share %
ann;turing;24.10.2026 23:00;25.10.2026 05:00;1;100
bob;turing;26.10.2026 09:00;26.10.2026 17:30;2;12,5
eve;turing;25.10.2026 02:30;25.10.2026 02:45;1;100
dan;turing;27.10.2026 10:00;27.10.2026 09:00;1;100
"""
MAP = """\
columns: {id: [Name, From], start: From, end: Until, devices: GPUs, share: Share %, user: Name, machine: Machine}
constants: {class: RTX-4090, pool: lab}
units: {time: "%d.%m.%Y %H:%M", share: percent}
zone: Europe/Berlin
delimiter: semicolon
decimal: ","
"""
NOW = ("--now", "2026-11-29T12:00:00Z")


@pytest.fixture
def book(tmp_path: Path) -> tuple[Path, Path]:
    """The lab's book, kept by hand, and its map."""
    csv, trace_map = tmp_path / "book.csv", tmp_path / "book.yaml"
    csv.write_text(BOOK, encoding="utf-8")
    trace_map.write_text(MAP, encoding="utf-8")
    return csv, trace_map


def test_a_book_kept_by_hand(gpuledger, book: tuple[Path, Path]) -> None:
    """Two rows come in, two are told with their line; a second time nothing is added."""
    words = ("import", "trace", book[0], "--map", book[1], *NOW)
    first = gpuledger(*words)
    assert (first.status, "2 rows read, told by trace:book" in first.out) == (0, True)
    assert "gpuledger usage --meter gpu.reserved --by user" in " ".join(first.out.split())
    assert f"{book[0]}:4: " in first.err
    assert "[ambiguous-local-time]" in first.err
    assert "[end-before-start]" in first.err
    again = gpuledger(*words, "--format", "json").json
    assert (again["added"], again["known"], again["source"]) == (0, 6, "trace:book")


def test_a_changed_row_is_a_conflict(gpuledger, book: tuple[Path, Path]) -> None:
    """Told and not written."""
    words = ("import", "trace", book[0], "--map", book[1], *NOW, "--format", "json")
    gpuledger(*words)
    book[0].write_text(BOOK.replace("26.10.2026 17:30", "26.10.2026 18:30"), encoding="utf-8")
    done = gpuledger(*words)
    assert (done.status, done.json["added"], done.json["conflicts"], "[conflict]" in done.err) == (0, 0, 1, True)


def test_what_has_no_end_needs_a_time(gpuledger, tmp_path: Path) -> None:
    """--as-of says it; status 2 without it, and no ledger is made."""
    csv, trace_map = tmp_path / "open.csv", tmp_path / "open.yaml"
    csv.write_text("j,s,e,n\n1,2026-11-01T00:00:00Z,,1\n", encoding="utf-8")
    trace_map.write_text(
        "columns: {id: j, start: s, end: e, devices: n}\nconstants: {class: L4}\nunits: {time: iso}\n"
        "rows: {without_end: open}\n",
        encoding="utf-8",
    )
    refused = gpuledger("import", "trace", csv, "--map", trace_map, *NOW, "--format", "json")
    assert (refused.status, refused.error["code"]) == (2, "as-of-needed")
    assert not (tmp_path / "box.db").exists()
    done = gpuledger("import", "trace", csv, "--map", trace_map, *NOW, "--as-of", "2026-11-03", "--format", "json")
    assert (done.json["running"], done.json["as_of"]) == (1, "2026-11-03T00:00:00Z")


def test_presets_are_listed_and_shown(gpuledger, tmp_path: Path) -> None:
    """A map to start from."""
    assert gpuledger("import", "trace", "--list-presets").out == "openb\n"
    shown = gpuledger("import", "trace", "--show-preset", "openb").out
    assert shown.startswith("#")
    assert "columns:" in shown
    assert gpuledger("import", "trace", "--show-preset", "x").status == 2
    assert not (tmp_path / "box.db").exists()


@pytest.mark.parametrize(
    ("words", "code"),
    [((), "file-needed"), (("x.csv",), "map-needed"), (("x.csv", "--preset", "openb"), "unreadable-file")],
)
def test_what_is_missing_is_said(gpuledger, words: tuple[str, ...], code: str) -> None:
    """With what to type."""
    done = gpuledger("import", "trace", *words, "--format", "json")
    assert (done.status, done.error["code"], bool(done.error["hint"])) == (2, code, True)
