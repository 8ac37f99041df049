"""``meter --engine duckdb`` books what ``meter`` books, to the byte."""

from __future__ import annotations

import shutil
from pathlib import Path

from gpuledger.ledger.store import Ledger
from gpuledger.operations.meter import meter
from gpuledger.operations.meter_duckdb import meter_duckdb
from gpuledger.operations.verify import verify
from lakes import told


def test_chains_are_the_same(tmp_path: Path) -> None:
    """Pass after pass, late evidence between them; and the ledger verifies."""
    plane = told(tmp_path / "a.db")
    plane.ledger.close()
    shutil.copy(tmp_path / "a.db", tmp_path / "b.db")
    heads = []
    for name, engine in (("a.db", meter), ("b.db", meter_duckdb)):
        with Ledger.open(tmp_path / name, mode="append") as ledger:
            for hour in (3, 10, 150, 150):
                engine(ledger, now_us=plane.at(hour), writer="box.meter")
            heads.append(ledger.heads())
            assert not any(check.findings for check in verify(ledger, now_us=plane.at(150)).checks)
    assert heads[0] == heads[1]
