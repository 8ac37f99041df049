"""What forget is asked, and its sums."""

from __future__ import annotations

from gpuledger.model.forgetting import Choice, ForgetReport, ForgottenLine
from gpuledger.model.missing import Missing

ANY_TIME = Missing("not given")


def test_an_empty_choice_would_mean_everything() -> None:
    """So it is told from one that says something, a time included."""
    assert Choice(before_us=ANY_TIME).is_empty
    assert not Choice(before_us=0).is_empty
    assert not Choice(before_us=ANY_TIME, user="al").is_empty


def test_the_sums_are_those_of_the_lines() -> None:
    """Texts, amount and open contexts."""
    line = ForgottenLine(subject="a", service="a", user="al", texts=2, read_us=5, quantity=70, open=1)
    report = ForgetReport(done=False, words="", lines=(line, line), total=200, dropped=0, verified=ANY_TIME)
    assert (report.texts, report.quantity, report.open) == (4, 140, 2)
