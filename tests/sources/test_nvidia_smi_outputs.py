"""The words between the parsers and the looks."""

from __future__ import annotations

import pytest

from gpuledger.errors import BadInput
from gpuledger.model.missing import Missing
from gpuledger.sources import nvidia_smi_outputs as outputs
from gpuledger.sources.nvidia_smi_outputs import Complaints, DevicePart, Kind, Output, accounting_word, kinds_of


def test_the_first_problems_are_told_by_line_and_the_rest_by_number() -> None:
    """A wrong file does not print a page a row."""
    complaints = Complaints("dump")
    for line in range(1, 31):
        complaints.add(line, "broken")
    taken = complaints.taken()
    assert [problem.where for problem in taken[:2]] == ["dump:1", "dump:2"]
    assert (len(taken), taken[-1].message) == (21, "10 more lines like these were left out")
    assert complaints.taken() == ()


def test_a_file_of_nothing_but_broken_lines_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond a bound it is not a table with faults, but another file."""
    monkeypatch.setattr(outputs, "MOST_BROKEN", 3)
    complaints = Complaints("dump")
    for line in range(1, 24):
        complaints.add(line, "broken")
    with pytest.raises(BadInput, match="more than 3 lines"):
        complaints.add(24, "broken")


def test_a_quoted_line_is_redacted() -> None:
    """A broken line may be a process' command line."""
    complaints = Complaints("dump")
    complaints.add(1, "not a row: 'serve --api-key abc123 --port 80'")
    assert "abc123" not in complaints.taken()[0].message


def test_an_output_tells_when_it_holds_a_list_or_a_mode() -> None:
    """Names alone say nothing of use; an empty list does."""
    assert Output(kind=Kind.ACCOUNTED, line=1).tells
    assert Output(kind=Kind.LOG, line=1, parts=(DevicePart(accounting="disabled"),)).tells
    assert Output(kind=Kind.XML, line=1, parts=(DevicePart(processes=()),)).tells
    assert not Output(kind=Kind.GPU, line=1, parts=(DevicePart(uuid="GPU-1", product="L4"),)).tells


def test_modes_and_types_have_one_spelling() -> None:
    """N/A is unsupported, nothing said is nothing; a type may name several lists."""
    assert [accounting_word(True, "Enabled"), accounting_word(False, "Disabled")] == ["enabled", "disabled"]
    assert [accounting_word(Missing("N/A"), "N/A"), accounting_word(Missing(""), "")] == ["unsupported", ""]
    assert [kinds_of("C+G"), kinds_of("M+C"), kinds_of(""), kinds_of("g")] == ["CG", "CM", "C", "G"]
