"""``forget`` as people and programs read it: nobody drops blindly."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpuledger.model.forgetting import ForgetReport, ForgottenLine
from gpuledger.model.missing import Missing
from gpuledger.model.moments import parse_moment
from gpuledger.reports.forget_report import to_csv, to_json, to_table

READ = parse_moment("2026-11-29T13:24:49Z", now_us=0)
LINE = ForgottenLine(
    subject="script:/home/al/train.py by al", service="script:/home/al/train.py by al", user="al", texts=3,
    read_us=READ, quantity=14_249, open=0,
)  # fmt: skip
ASKED = ForgetReport(
    done=False, words="--user 'al b'", lines=(LINE, replace(LINE, subject="x", texts=1, quantity=51)), total=143_000,
    dropped=0, verified=Missing("nothing was dropped"),
)  # fmt: skip
DONE = replace(ASKED, done=True, dropped=4, verified=True)


def test_what_would_be_dropped_is_sized_first(printed) -> None:
    """Texts, subjects, the amount that loses its name, and what to type."""
    text = printed(to_table(ASKED))
    for word in (
        "Would forget  4 texts, naming 14.3 s of gpu.context (14,300 ms, 10.0 % of all)",
        "script:/home/al/train.py by al", "Nothing is dropped yet", "gpuledger forget --user 'al b' --yes",
    ):  # fmt: skip
        assert word in text


def test_what_was_dropped_says_what_stands(printed) -> None:
    """How many, the total, and the check."""
    text = printed(to_table(DONE))
    for word in ("Forgotten  4 texts", "Totals do not change", "143,000 ms", "Verified: rows, chains and seals"):
        assert word in text
    assert "--yes" not in text


def test_a_check_that_found_something_is_not_called_passed(printed) -> None:
    """Names are gone all the same."""
    assert "The check found something" in printed(to_table(replace(DONE, verified=False)))


def test_an_open_context_stays_nameless(printed) -> None:
    """Said before, and after."""
    for report in (ASKED, DONE):
        shown = printed(to_table(replace(report, lines=(replace(LINE, open=2),))))
        assert "2 contexts of them may still be open" in shown


def test_many_subjects_are_counted(printed) -> None:
    """The first twenty stand there; the sizes above are of all."""
    many = tuple(replace(LINE, subject=f"script:/{number:03}.py by al") for number in range(25))
    text = printed(to_table(replace(ASKED, lines=many)))
    assert "and 5 subjects more" in text
    assert ("/019.py" in text, "/020.py" in text, "75 texts" in text) == (True, False, True)


def test_nothing_fits(printed) -> None:
    """An answer too."""
    assert "nothing to forget" in printed(to_table(replace(ASKED, lines=())))


@pytest.mark.parametrize("width", [40, 60, 80])
def test_no_line_is_wider_than_its_room(printed, width: int) -> None:
    """Names are folded, figures never."""
    text = printed(to_table(ASKED), width=width)
    assert max(len(line) for line in text.splitlines()) <= width
    assert "14,249" in text


def test_json_and_csv() -> None:
    """Absent is null; the check is null until something was dropped."""
    document = to_json(ASKED)
    assert (document["done"], document["texts"], document["dropped"], document["verified"]) == (False, 4, 0, None)
    assert (document["quantity"], document["total"], document["unit"]) == (14_300, 143_000, "ms")
    assert document["lines"][0]["last_read"] == "2026-11-29T13:24:49Z"
    assert to_json(DONE)["verified"] is True
    assert to_csv(ASKED).splitlines()[1].endswith("al,3,2026-11-29T13:24:49Z,14249,ms,0")
