"""Places in a text."""

from __future__ import annotations

from exporter_texts import USED, UTIL, mapped
from gpuledger.audit.exporter_rows import NOBODY, Pod, lay_out
from gpuledger.audit.exporter_scope import judge
from gpuledger.audit.exporter_scrape import Scrape, first_line, line_of, listed
from gpuledger.audit.exposition import read_exposition


def test_lines_are_those_of_the_text() -> None:
    """Of a unit, of a metric, of a pod's row of it; 0 where it is not."""
    exposition = read_exposition(mapped().text())
    rows = lay_out(exposition)
    scrape = Scrape(path="x", exposition=exposition, rows=rows, judgement=judge(rows))
    (unit,) = rows.units
    assert (first_line(unit), line_of(unit, UTIL), line_of(unit, USED, Pod("team-a", "train"))) == (3, 3, 9)
    assert line_of(unit, USED, NOBODY) == 8
    assert line_of(unit, "nothing") == 0
    assert str(scrape.where("here", 3)) == "x:3 (here)"


def test_a_few_names_and_how_many_more() -> None:
    """A sentence stays a sentence."""
    assert listed(["a", "b"]) == "a, b"
    assert listed(["a", "b", "c", "d", "e"]) == "a, b, c and 2 more"
