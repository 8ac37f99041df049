"""The rule on every engine: whatever is told, SQLite, DuckDB over Arrow and over Parquet, and the oracle agree."""

from __future__ import annotations

import shutil
import tempfile
from collections import defaultdict
from pathlib import Path
from unittest.mock import patch

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from control_plane import MIDNIGHT_US, ControlPlane, as_row
from gpuledger.accounting.reserved import parse_reserved_by
from gpuledger.ledger.store import Ledger
from gpuledger.metering.records import closed_until
from gpuledger.model.identity import IdentityText
from gpuledger.model.meters import CPU_RESERVED, GPU_RESERVED, MIG_MEMORY
from gpuledger.model.reserved import PLACED
from gpuledger.model.rows import UsageRecord
from gpuledger.model.workload_rows import WorkloadEvent
from gpuledger.operations.meter_duckdb import meter_duckdb
from gpuledger.operations.meter_lake import meter_lake
from gpuledger.operations.usage_lake import usage_lake
from gpuledger.operations.usage_reserved import usage_reserved
from gpuledger.reports import reserved_report
from lakes import derived, exported, recorded
from reserved_oracle import HOUR, seconds

STATES = ["pending", "provisioning", "downloading", "booting", "running", "running", "stopping", "stopped", "failed"]
LAST = 20
NOW = LAST + 2

told = st.lists(
    st.tuples(
        st.sampled_from(["a", "b", "c", ""]),
        st.sampled_from(STATES),
        st.one_of(st.integers(0, LAST * 4).map(lambda q: q * HOUR // 4), st.integers(0, LAST * HOUR)),
        st.sampled_from([None, None, "n1", "n2", "cpu", "mig"]),
        st.booleans(),
        st.sampled_from([0, 0, 1]),
    ),
    max_size=18,
)


def tell(plane: ControlPlane, events: list[tuple[str, str, int, str | None, bool, int]], *, beat: bool) -> None:
    """Append them, one transaction each; workloads without a name in their texts share one subject."""
    kinds = {
        "n1": plane.placement("n1", share="1/3"), "n2": plane.placement("n2", count=2),
        "cpu": plane.placement("n1", class_name="cpu", count=0),
        "mig": plane.placement("n3", class_name="A100-SXM4-40GB/1g.5gb"),
    }  # fmt: skip
    for number, (workload, state, offset_us, machine, other, declared) in enumerate(events):
        placement = kinds[machine] if machine else None
        named = workload if workload in ("a", "b") else ""
        text = IdentityText(workload=named, user="bo" if other else "al", labels='{"qos": "LS"}' if other else "")
        event = WorkloadEvent(
            workload=workload or "z", event_id=f"{number}", sequence=number, state=state, at_us=MIDNIGHT_US + offset_us,
            recorded_at_us=MIDNIGHT_US, source="cp", is_declared=declared, subject=plane.ledger.key_of(text),
            placement=placement.key if placement else "",
        )  # fmt: skip
        rows = [as_row(placement), event] if placement else [event]
        plane.ledger.append(rows, writer="box.transition", at_us=MIDNIGHT_US)
    if beat:
        plane.beat(LAST - 3)


@settings(max_examples=25, deadline=None)
@given(events=told, beat=st.booleans(), at_once=st.sampled_from([(1, 1), (4, 3), (700_000, 300_000)]))
def test_every_engine_derives_the_same_records(events, beat, at_once) -> None:
    """Same keys, same seconds, same evidence; in however many parts; and the oracle's seconds."""
    with (
        tempfile.TemporaryDirectory() as folder,
        patch("gpuledger.ledger.lake_rule.EVENTS_AT_ONCE", at_once[0]),
        patch("gpuledger.ledger.lake_rule.ROWS_AT_ONCE", at_once[1]),
        patch("gpuledger.ledger.parquet.ROWS_AT_ONCE", max(1, at_once[0] // 2)),
    ):
        plane = ControlPlane(Path(folder) / "plane.db")
        tell(plane, events, beat=beat)
        lake = Path(folder) / "lake"
        exported(plane, lake, NOW)
        plane.ledger.close()
        shutil.copy(plane.place, Path(folder) / "other.db")
        plane.ledger = Ledger.open(plane.place, mode="append")
        plane.meter(NOW)
        meter_lake(lake)
        assert derived(lake) == recorded(plane)

        with Ledger.open(Path(folder) / "other.db", mode="append") as other:
            meter_duckdb(other, now_us=plane.at(NOW), writer="box.meter")
            assert list(other.scan(UsageRecord)) == list(plane.ledger.scan(UsageRecord))
            assert other.heads() == plane.ledger.heads()

        until_us = closed_until(plane.at(NOW))
        expected: dict[tuple[int, str, str], int] = defaultdict(int)
        beats = {"cp": plane.at(LAST - 3)} if beat else {}
        every = list(plane.ledger.scan(WorkloadEvent))
        for (_, hour_us, placement, subject), amount in seconds(every, until_us=until_us, beats=beats).items():
            expected[hour_us, placement, subject] += amount
        found = {
            (row[0], str(row[3]).removeprefix(PLACED), row[4]): row[6]
            for row in derived(lake)
            if row[1] != MIG_MEMORY.name
        }
        assert found == expected
        plane.ledger.close()


@pytest.mark.parametrize("engine", ["postgresql"], indirect=True)
@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(events=told, beat=st.booleans(), elsewhere=st.booleans())
def test_every_store_is_metered_and_exported_alike(new_place, engine, events, beat, elsewhere) -> None:
    """PostgreSQL's records, derived there or by DuckDB, are those of the lake that was exported from it."""
    with tempfile.TemporaryDirectory() as folder:
        plane = ControlPlane(new_place("plane.db"))
        tell(plane, events, beat=beat)
        lake = Path(folder) / "lake"
        exported(plane, lake, NOW)
        if elsewhere:
            meter_duckdb(plane.ledger, now_us=plane.at(NOW), writer="box.meter")
        else:
            plane.meter(NOW)
        meter_lake(lake)
        assert derived(lake) == recorded(plane)
        plane.ledger.close()


@settings(max_examples=25, deadline=None)
@given(
    events=told,
    metered=st.sampled_from([None, 5, NOW]),
    by=st.sampled_from(["team,month", "user", "workload,class", "service,day", "label:qos", "device,host,hour", ""]),
    meter=st.sampled_from([GPU_RESERVED, CPU_RESERVED, MIG_MEMORY]),
)
def test_a_lake_answers_as_the_ledger_does(events, metered, by, meter) -> None:
    """Of whole hours the same JSON, save that a lake does not look for gaps: recorded, late and derived hours alike."""
    with tempfile.TemporaryDirectory() as folder:
        plane = ControlPlane(Path(folder) / "plane.db")
        half = len(events) if metered == NOW else 0
        tell(plane, events[:half] or events, beat=False)
        if metered:
            plane.meter(metered)
        lake = Path(folder) / "lake"
        exported(plane, lake, NOW)
        if not events:
            plane.ledger.close()
            return
        meter_lake(lake)
        words, now_us = parse_reserved_by(by), plane.at(NOW)
        window = {"since_us": MIDNIGHT_US, "until_us": closed_until(now_us)}
        ours = reserved_report.to_json(usage_lake(lake, meter=meter, by=words, **window, now_us=now_us))
        theirs = reserved_report.to_json(usage_reserved(plane.ledger, meter=meter, by=words, **window, now_us=now_us))
        assert ours == {**theirs, "gaps": None}
        plane.ledger.close()
