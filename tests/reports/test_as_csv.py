"""CSV: plain, quoted where needed, and safe to encode."""

from __future__ import annotations

from gpuledger.model.missing import Missing
from gpuledger.reports import as_csv


def test_fields() -> None:
    """Commas and line ends are quoted, absence is empty, half characters are shown."""
    text = as_csv.text(["a", "b"], [["x,y", 0], ["l\nm", Missing("gone")], ["\ud800", -5]])
    assert text == 'a,b\n"x,y",0\n"l\nm",\n\\ud800,-5\n'
    text.encode("utf-8")
