"""``archive`` on PostgreSQL: by the owner of the tables, and by nobody else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gpuledger.errors import Refused, Unavailable
from gpuledger.ledger.laying import lay_under
from gpuledger.ledger.store import Ledger
from gpuledger.model.archive import Archive
from gpuledger.model.checks import Verdict
from gpuledger.model.lake import MANIFEST
from gpuledger.model.rows import DriverRecord, Sighting
from gpuledger.operations.archive import archive
from gpuledger.operations.explain import explain
from gpuledger.operations.export_parquet import export_parquet
from gpuledger.operations.usage import usage
from gpuledger.operations.verify import verify
from gpuledger.reports import usage_report
from old_evidence import JULY_US, MAY_US, NOW_US, OldBox
from postgres_server import OWNER


def test_the_owner_archives_and_the_application_cannot(postgres: Any, tmp_path: Path) -> None:
    """The application's role is refused before a file is written; the owner's rows leave, and all of it verifies."""
    place = str(postgres.new_ledger())
    box = OldBox(place, days=63, jobs=1)
    box.fill()
    window = {"meter": "gpu.context", "by": ("user", "day"), "since_us": MAY_US, "until_us": NOW_US, "now_us": NOW_US}
    before, looks = usage_report.to_json(usage(box.ledger, **window)), box.ledger.count(Sighting)
    row = next(iter(box.ledger.scan(DriverRecord)))
    asked = {"before_us": JULY_US, "folder": tmp_path / "archive", "now_us": NOW_US, "writer": "box.archive"}
    shown = archive(box.ledger, done=False, **asked)
    with pytest.raises(Refused) as refused:
        archive(box.ledger, done=True, **asked)
    assert refused.value.code == "not-owner"
    assert "gpuledger_owner" in refused.value.hint
    assert not (tmp_path / "archive").exists()
    box.ledger.close()

    with Ledger.open(postgres.url(OWNER, place.rpartition("/")[2]), mode="append") as owned:
        report = archive(owned, done=True, **asked)
        assert report.row_count == shown.row_count > 300
        assert owned.count(Archive) == len(report.leaving)
        assert owned.count(Sighting) < looks
    with Ledger.open(place, mode="read") as ledger:
        alone = verify(ledger, now_us=NOW_US)
        assert alone.ok
        assert alone.skipped
        assert usage_report.to_json(usage(ledger, **window)) == before
    with Ledger.open(place, mode="read") as ledger:
        laid = lay_under(ledger, folder=None)
        whole = verify(ledger, now_us=NOW_US, laid=laid)
        assert {check.verdict for check in whole.checks} == {Verdict.OK}
        assert ledger.count(Sighting) == looks
        assert explain(ledger, row.ref, meter="gpu.context", since_us=MAY_US, until_us=NOW_US, now_us=NOW_US).children
    for reads in (
        lambda ledger, laid: verify(ledger, now_us=NOW_US, laid=laid),
        lambda ledger, _: export_parquet(ledger, tmp_path / "lake", now_us=NOW_US),
    ):  # the next connection would not have the archive under it: a shorter answer, or damage that is none
        with Ledger.open(place, mode="read") as ledger:
            laid = lay_under(ledger, folder=None)
            assert postgres.cut(place) == 1
            with pytest.raises(Unavailable) as cut:
                reads(ledger, laid)
            assert cut.value.code == "ledger-unreachable"
    assert not (tmp_path / "lake" / MANIFEST).exists()
    with Ledger.open(place, mode="append") as ledger, pytest.raises(Unavailable), ledger.mapped():
        ledger.connection.exec_driver_sql("DELETE FROM sighting")
