"""All stores driven together through any sequence of appends, seals and scans: they must agree to the last hash."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from gpuledger.model.missing import Missing
from gpuledger.model.row_kinds import ROWS
from gpuledger.model.rows import DriverRecord, Pass, PolicyVersion, UsageRecord, Watch
from gpuledger.model.workload_rows import ExpectedEnd, Hold, PlacementRow, WorkloadEvent

small = st.integers(0, 6)
figure = st.one_of(st.just(Missing("n/a")), st.integers(0, 2))
host = st.sampled_from(["a", "b"])
device = st.sampled_from(["x", "y"])
writer = st.sampled_from(["a.agent", "b.agent", "a.meter"])
words = st.sampled_from(["", "é", 'say "no"', "\n\\"])

watches = st.builds(
    lambda since, length, **fields: Watch(since_us=since, until_us=since + length, source="driver", **fields),
    method=st.just("nvml"), since=small, length=st.integers(0, 3), host=host, device=device,
    interval_ms=st.integers(0, 1), status=st.sampled_from(["ok", "ring-overflow"]), detail=words,
)  # fmt: skip
drivers = st.builds(
    DriverRecord, host=host, device=device, pid=st.integers(1, 3),
    started_at_us=st.one_of(st.just(Missing("csv")), small),
    context_ms=st.integers(0, 1), peak_memory_mib=figure, gpu_percent=figure, memory_percent=figure,
    read_at_us=st.integers(0, 2000), method=st.just("nvml"), driver_epoch=words,
)  # fmt: skip
records = st.builds(
    UsageRecord, meter=st.sampled_from(["m", "n"]), hour_us=small, host=host, device=device, subject=words,
    context=st.sampled_from(["settled", "1@2"]), quantity=small, evidence_count=small, evidence_hash=words,
    recorded_at_us=small,
)  # fmt: skip
passes = st.builds(
    Pass, at_us=small, covered_from_us=small, covered_until_us=small, evidence_marks=words, records_added=small,
    corrections_added=small,
)  # fmt: skip
policies = st.builds(
    PolicyVersion, version=st.integers(1, 3), effective_from_us=small, applied_at_us=small, document=words,
    document_hash=words,
)  # fmt: skip
placements = st.builds(
    PlacementRow, placement=st.sampled_from(["p", "q"]), class_name=words, region=words, machine=words, pool=words,
    devices=st.sampled_from(["[]", '["x"]']), count=small, share_num=small, share_den=small,
)  # fmt: skip
workload = st.sampled_from(["v", "w"])
events = st.builds(
    WorkloadEvent, workload=workload, event_id=st.sampled_from("12"), sequence=small, state=words, at_us=small,
    recorded_at_us=small, source=words, is_declared=st.integers(0, 1), subject=words, requested_class=words,
    placement=words,
)  # fmt: skip
holds = st.builds(
    Hold, workload=workload, sequence=st.integers(0, 1), change=st.sampled_from(["taken", "released"]), at_us=small,
    placement=words, expires_at_us=figure,
)  # fmt: skip
ends = st.builds(ExpectedEnd, workload=workload, sequence=st.integers(0, 1), at_us=small, until_us=small)
batches = st.lists(st.one_of(watches, drivers, placements, events, holds, ends, records, passes, policies), max_size=8)
mark = st.dictionaries(writer, st.integers(0, 20))


class Stores(RuleBasedStateMachine):
    """Every store side by side."""

    makers: dict[str, Any]
    root: Path
    made = 0

    def __init__(self) -> None:
        super().__init__()
        type(self).made += 1
        self.stores: list[Any] = []
        for name, maker in self.makers.items():
            place = self.root / f"{name}-{self.made}"
            place.mkdir()
            self.stores.append(maker(place))

    def same(self, ask) -> Any:
        """Ask every store; all must say the same."""
        first, *others = [ask(store) for store in self.stores]
        for other in others:
            assert other == first
        return first

    @rule(rows=batches, writer=writer, at_us=small)
    def append(self, rows, writer, at_us) -> None:
        """Any rows, new, known, twice, in conflict."""
        said = []
        for store in self.stores:
            appended = store.append(rows, writer=writer, at_us=at_us)
            wheres = [problem.where for problem in appended.conflicts]
            said.append((appended.added, [row.ref for row in appended.added], appended.known, wheres))
        assert all(each == said[0] for each in said)
        assert len(said[0][0]) + said[0][2] == len(rows)

    @rule(writer=writer, at_us=small)
    def seal(self, writer, at_us) -> None:
        """By any writer, at any time, also in the past."""
        self.same(lambda store: (seal := store.seal(at_us, writer=writer)) and (seal, seal.ref))

    @rule(
        kind=st.sampled_from([Watch, DriverRecord, WorkloadEvent, Hold]),
        since_us=st.one_of(st.none(), st.integers(0, 2500)),
        until_us=st.one_of(st.none(), st.integers(0, 2500)),
        hosts=st.one_of(st.none(), st.sets(host)),
        devices=st.one_of(st.none(), st.sets(device)),
        after=st.one_of(st.none(), mark),
        upto=st.one_of(st.none(), mark),
        order=st.sampled_from(["number", "time"]),
        descending=st.booleans(),
        limit=st.one_of(st.none(), st.integers(0, 5)),
    )
    def scan(self, kind, **wanted) -> None:
        """Any choice in any order."""
        if kind in (WorkloadEvent, Hold):  # of no host and no device
            wanted |= {"hosts": None, "devices": None}
        self.same(lambda store: [(row, row.ref) for row in store.scan(kind, **wanted)])

    @rule(pids=st.sets(st.tuples(host, st.integers(1, 3))))
    def scan_pids(self, pids) -> None:
        """Any pairs of host and pid."""
        self.same(lambda store: [(row, row.ref) for row in store.scan(DriverRecord, pids=pids)])

    @invariant()
    def agree(self) -> None:
        """Marks, hashes, roots and counts are the same, and every number is used once."""
        marks = self.same(lambda store: store.marks())
        self.same(lambda store: store.heads())
        self.same(lambda store: store.latest_root())
        counts = self.same(lambda store: [store.count(kind) for kind in ROWS])
        assert sum(counts) == sum(marks.values())

    def teardown(self) -> None:
        for store in self.stores:
            assert store.findings() == []
            store.close()


def test_all_stores_agree(stores, tmp_path: Path) -> None:
    """Any history leaves every store with the same rows, references and hashes, and nothing to find."""
    machine = type("Machine", (Stores,), {"makers": stores, "root": tmp_path})
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=25, stateful_step_count=15, deadline=None, suppress_health_check=list(HealthCheck)
        ),
    )
