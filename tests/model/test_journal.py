"""The journal's lines and how much each asks of its reader."""

from __future__ import annotations

from gpuledger.model.journal import JournalLine, JournalReport, Level


def test_a_line_is_equal_by_what_it_says() -> None:
    """A journal asked twice is the same journal."""
    words = {
        "at_us": 0, "until_us": 5, "host": "box", "device": "", "source": "driver", "sentence": "looked", "ref": "r",
    }  # fmt: skip
    lines = (JournalLine(**words, level=Level.OK),)
    assert JournalReport(since_us=0, until_us=9, lines=lines) == JournalReport(
        since_us=0, until_us=9, lines=(JournalLine(**words, level=Level.OK),)
    )


def test_levels_are_the_words_that_are_printed() -> None:
    """Scripts filter on them."""
    assert [str(level) for level in Level] == ["ok", "change", "unknown"]
