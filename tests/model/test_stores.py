"""What the verbs about the store have done."""

from __future__ import annotations

from gpuledger.model.stores import CopyReport, Granted, MigrateReport


def test_reports_are_plain_values() -> None:
    """Equal by what they say."""
    granted = Granted(role="al", may_append=True, is_there=True)
    report = MigrateReport(ledger="l", by_itself=False, before=0, after=2, granted=(granted,))
    assert report == MigrateReport(ledger="l", by_itself=False, before=0, after=2, granted=(granted,))
    copy = CopyReport(source="a", target="b", chains=1, rows=2, links=1, texts=0, known_rows=0, root="")
    assert copy.rows + copy.known_rows == 2
