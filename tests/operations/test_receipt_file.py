"""A receipt in a file: whole under its name, or what was there before."""

from __future__ import annotations

import os
import resource
from pathlib import Path

import pytest

from gpuledger.errors import Misconfigured, Unavailable
from gpuledger.operations.receipt_file import check_place, write_receipt


def test_it_takes_the_place_of_an_older_one(tmp_path: Path) -> None:
    """Nothing else is left in the folder; a link stays a link."""
    place, link = tmp_path / "receipt.json", tmp_path / "link.json"
    link.symlink_to(place)
    for text in ("first\n", "second\n"):
        write_receipt(place, text)
        assert place.read_text() == text
    write_receipt(link, "third\n")
    assert (place.read_text(), link.is_symlink()) == ("third\n", True)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link.json", "receipt.json"]


def test_what_cannot_be_written_leaves_what_was_there(tmp_path: Path) -> None:
    """A full disk: a sentence, the old receipt, and no half of a new one."""
    place = tmp_path / "receipt.json"
    write_receipt(place, "old\n")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10, before[1]))
    try:
        with pytest.raises(Unavailable, match=r"receipt\.json: "):
            write_receipt(place, "x" * 100)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert place.read_text() == "old\n"
    assert [path.name for path in tmp_path.iterdir()] == ["receipt.json"]


def test_what_is_no_regular_file_is_written_straight(tmp_path: Path) -> None:
    """A pipe keeps its name, and so does a device."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    check_place(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    write_receipt(pipe, "told\n")
    assert os.read(reader, 100) == b"told\n"
    os.close(reader)
    check_place(Path("/dev/null"))
    write_receipt(Path("/dev/null"), "nobody reads it\n")
    assert Path("/dev/null").is_char_device()


def test_a_place_that_cannot_be_is_refused_before_anything_runs(tmp_path: Path) -> None:
    """A directory, and a folder that is not there."""
    check_place(tmp_path / "receipt.json")
    with pytest.raises(Misconfigured, match="is a directory"):
        check_place(tmp_path)
    with pytest.raises(Misconfigured, match="is no directory"):
        check_place(tmp_path / "gone" / "receipt.json")
