"""``usage --lake``: whole hours, and nothing that the lake cannot know is made up."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpuledger.errors import Misconfigured
from gpuledger.ledger.store import Ledger
from gpuledger.model.meters import GPU_RESERVED
from gpuledger.operations.apply import apply
from gpuledger.operations.export_parquet import export_parquet
from gpuledger.operations.meter_lake import meter_lake
from gpuledger.operations.usage_lake import usage_lake
from gpuledger.operations.usage_reserved import usage_reserved
from gpuledger.reports import reserved_report
from lakes import exported, told

POLICY = """
effective_from: 2026-08-02T01:00:00Z
owners:
  users: {al: {team: robots}}
  hosts: {n1: {owner: prof-x}}
"""


def ask(folder: Path, now_us: int, by: tuple[str, ...] = (), since: int | None = None, until: int | None = None):
    """One question of a lake."""
    return usage_lake(folder, meter=GPU_RESERVED, by=by, since_us=since, until_us=until, now_us=now_us)


@pytest.mark.parametrize(
    "by",
    [
        ("team", "month"),
        ("host-owner",),
        ("team", "hour"),
        ("workload",),
        ("host",),
        ("class", "device"),
        ("region",),
        (),
    ],
)
def test_the_ledgers_answer_with_its_policies(tmp_path: Path, by: tuple[str, ...]) -> None:
    """Owners that change on a day, a person that was forgotten, and the default window."""
    plane = told(tmp_path / "a.db")
    plane.run("nobodys", 24 * 6, 24 * 6 + 3, plane.placement("n1"), team="")
    (tmp_path / "p.yaml").write_text(POLICY)
    apply(
        lambda: Ledger.open(plane.place, mode="append"), tmp_path / "p.yaml", now_us=plane.at(100), writer="box.apply"
    )
    plane.meter(150)
    plane.ledger.forget([key for key, text in plane.ledger.texts().items() if text.workload == "early"])
    exported(plane, tmp_path / "lake", 150)
    now_us = plane.at(150)
    ours = ask(tmp_path / "lake", now_us, by)
    theirs = usage_reserved(
        plane.ledger, meter=GPU_RESERVED, by=by, since_us=ours.since_us, until_us=ours.until_us, now_us=now_us
    )
    assert (ours.since_us, ours.until_us) == (plane.at(1), plane.at(149))
    assert reserved_report.to_json(ours) == {**reserved_report.to_json(theirs), "gaps": None}
    assert reserved_report.to_csv(ours) == reserved_report.to_csv(theirs)
    plane.ledger.close()


def test_what_is_not_known_is_refused(tmp_path: Path) -> None:
    """Hours that nobody metered, parts of hours, months that are not there, and nothing at all."""
    plane = told(tmp_path / "a.db")
    lake, now_us = tmp_path / "lake", plane.at(150)
    exported(plane, lake, 150)
    codes = []
    for window in ({}, {"since": plane.at(1) + 1}):
        with pytest.raises(Misconfigured) as refused:
            ask(lake, now_us, **window)
        codes.append(refused.value.code)
    plane.meter(5)
    exported(plane, lake, 150)
    assert ask(lake, now_us).until_us == plane.at(4)
    meter_lake(lake)
    assert ask(lake, now_us).until_us == plane.at(149)
    assert ask(lake, now_us).provisional == 5 * 3600
    part = tmp_path / "part"
    plane.meter(150)
    export_parquet(plane.ledger, part, now_us=now_us, since_us=plane.at(24 * 6))
    for window in ({"since": plane.at(0)}, {"since": plane.at(149)}):
        with pytest.raises(Misconfigured) as refused:
            ask(part, now_us, **window)
        codes.append(refused.value.code)
    assert ask(part, now_us, since=plane.at(24 * 6)).total == 5 * 3600
    assert codes == ["lake-not-metered", "whole-hours", "lake-incomplete", "empty-window"]
    plane.ledger.close()
