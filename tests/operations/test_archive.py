"""``archive``: what leaves, what stays, and that every answer afterwards is the one that it was before."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from gpuledger.errors import GpuledgerError, Misconfigured, Refused, Unavailable
from gpuledger.ledger import archive_files
from gpuledger.ledger.copying import copy_ledger
from gpuledger.ledger.lake import Lake, writing
from gpuledger.ledger.laying import lay_under
from gpuledger.ledger.store import Ledger
from gpuledger.model.archive import Archive, ArchiveReport
from gpuledger.model.checks import Verdict, VerifyReport
from gpuledger.model.forgetting import Choice
from gpuledger.model.lifecycle import Placement, State, Transition
from gpuledger.model.meters import GPU_RESERVED
from gpuledger.model.missing import Missing
from gpuledger.model.moments import DAY_US, HOUR_US, MINUTE_US
from gpuledger.model.rows import DriverRecord, Sighting, UsageCorrection, UsageRecord
from gpuledger.model.workload_rows import WorkloadEvent
from gpuledger.operations import export_parquet as export_operation
from gpuledger.operations.archive import archive
from gpuledger.operations.explain import explain
from gpuledger.operations.export_parquet import export_parquet
from gpuledger.operations.forget import forget
from gpuledger.operations.meter import meter
from gpuledger.operations.smi import smi
from gpuledger.operations.transition import record_transitions
from gpuledger.operations.usage import usage, window
from gpuledger.operations.usage_reserved import usage_reserved
from gpuledger.operations.verify import verify
from gpuledger.reports import reserved_report, usage_report
from old_evidence import GPU, JULY_US, JUNE_US, MAY_US, NOW_US, OldBox


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A ledger of 75 days, made once."""
    place = tmp_path_factory.mktemp("old") / "ledger.db"
    box = OldBox(place, jobs=4)
    box.fill()
    box.ledger.close()
    return place


@pytest.fixture
def ledger(filled: Path, tmp_path: Path) -> Iterator[Ledger]:
    """A copy of it, open to append."""
    for each in filled.parent.glob("ledger.db*"):
        shutil.copy(each, tmp_path / each.name)
    with Ledger.open(tmp_path / "ledger.db", mode="append") as opened:
        yield opened


def archived(ledger: Ledger, folder: Path, *, before_us: int = JULY_US, done: bool = True) -> ArchiveReport:
    return archive(ledger, before_us=before_us, folder=folder, done=done, now_us=NOW_US, writer="box.archive")


def verified(ledger: Ledger, folder: Path | None = None, *, lay: bool = True) -> VerifyReport:
    """What ``verify`` says, of the ledger opened anew."""
    with Ledger.open(ledger.place, mode="read") as opened:
        laid = lay_under(opened, folder=folder) if lay else None
        return verify(opened, now_us=NOW_US, laid=laid)


def verdicts(report: VerifyReport) -> dict[str, Verdict]:
    return {check.name: check.verdict for check in report.checks}


def answers(ledger: Ledger) -> list[object]:
    """Usage of every kind, over windows of whole hours on both sides of the bound."""
    found: list[object] = [window(ledger, since=None, until=None, now_us=NOW_US)]
    for since_us, until_us in (
        (MAY_US, NOW_US),
        (MAY_US + 3 * HOUR_US, JUNE_US),
        (JULY_US - HOUR_US, JULY_US + DAY_US),
    ):
        span = {"since_us": since_us, "until_us": until_us}
        for by in (("user",), ("day", "device")):
            found += [
                usage_report.to_json(usage(ledger, meter=name, by=by, now_us=NOW_US, **span))
                for name in ("gpu.context", "gpu.memory", "gpu.busy")
            ]
            told = usage_reserved(ledger, meter=GPU_RESERVED, by=("user", "day"), now_us=NOW_US, **span)
            found.append(reserved_report.to_json(told))
    return found


def test_without_yes_nothing_changes(ledger: Ledger, tmp_path: Path) -> None:
    """It is shown what would leave, by month and kind, and what stays and why; no file is written."""
    report = archived(ledger, tmp_path / "archive", done=False)
    assert not report.done
    assert {(line.month, line.rows_of) for line in report.leaving} == {
        (month, kind) for month in ("2026-05", "2026-06") for kind in ("driver", "sighting", "event", "hold")
    }
    assert report.row_count == sum(line.row_count for line in report.leaving) > 500
    assert {line.rows_of for line in report.staying} >= {"driver", "event"}
    assert not (tmp_path / "archive").exists()
    assert not ledger.count(Archive)


def test_answers_stay_and_the_ledger_verifies(ledger: Ledger, tmp_path: Path) -> None:
    """Rows are gone, every answer is as before, and verify passes with the archive and, as far as it can, without."""
    before, rows = answers(ledger), {kind: ledger.count(kind) for kind in (DriverRecord, Sighting, WorkloadEvent)}
    records = ledger.count(UsageRecord)
    report = archived(ledger, tmp_path / "archive")
    assert report.done
    assert report.root
    assert all(ledger.count(kind) < count for kind, count in rows.items())
    assert ledger.count(UsageRecord) == records
    assert answers(ledger) == before
    whole, alone = verified(ledger), verified(ledger, tmp_path / "nowhere")
    assert set(verdicts(whole).values()) == {Verdict.OK}
    assert verdicts(alone)["archived-rows"] is Verdict.SKIPPED
    looked = next(check for check in alone.checks if check.name == "archived-rows").findings
    assert looked[0] == f"archive-0001/2026-05.driver.parquet is not in {tmp_path / 'nowhere'}"
    assert set(verdicts(alone).values()) == {Verdict.OK, Verdict.SKIPPED}
    assert alone.ok
    assert alone.skipped
    assert dict(whole.counts)["sighting"] == rows[Sighting]


def test_evidence_goes_on_after_it(ledger: Ledger, tmp_path: Path) -> None:
    """A second pass changes nothing; a later archive takes the next month from where the first ended."""
    archived(ledger, tmp_path / "archive", before_us=JUNE_US)
    again = meter(ledger, now_us=NOW_US + HOUR_US, writer="box.meter")
    assert not again.corrections
    second = archived(ledger, tmp_path / "archive")
    assert {line.file_name.partition("/")[0] for line in second.leaving} == {"archive-0002"}
    assert verdicts(verified(ledger))["archived-rows"] is Verdict.OK
    assert verified(ledger).ok
    assert archived(ledger, tmp_path / "archive").row_count == 0


def test_a_changed_file_is_found(ledger: Ledger, tmp_path: Path) -> None:
    """One byte of one file: verify calls it damaged and names it, and explain refuses to read it."""
    archived(ledger, tmp_path / "archive")
    file = tmp_path / "archive" / "archive-0001" / "2026-05.sighting.parquet"
    content = bytearray(file.read_bytes())
    content[200] ^= 1
    file.write_bytes(content)
    report = verified(ledger)
    found = next(check for check in report.checks if check.name == "archived-rows")
    assert report.damaged
    assert found.verdict is Verdict.DAMAGED
    assert str(file) in found.findings[0]


def test_rows_taken_out_beside_the_archive_are_found(ledger: Ledger, tmp_path: Path) -> None:
    """Somebody takes the guards off and one row more out: the number that is gone is not the number that left."""
    archived(ledger, tmp_path / "archive")
    with sqlite3.connect(str(ledger.place)) as raw:
        (sql,) = raw.execute("SELECT sql FROM sqlite_master WHERE name = 'sighting_no_delete'").fetchone()
        raw.execute("DROP TRIGGER sighting_no_delete")
        raw.execute("DELETE FROM sighting WHERE (writer, number) = (SELECT writer, min(number) FROM sighting)")
        raw.execute(sql)
    raw.close()
    assert verdicts(verified(ledger, tmp_path / "nowhere"))["chain"] is Verdict.DAMAGED
    assert verdicts(verified(ledger))["chain"] is Verdict.DAMAGED


def test_a_copy_of_it_is_the_same_ledger(ledger: Ledger, tmp_path: Path) -> None:
    """Copied before it left or after: the chain stands, verify passes with the archive and without."""
    with Ledger.open(tmp_path / "early.db", mode="append") as early:
        copy_ledger(ledger, early)
    rows = ledger.count(Sighting)
    archived(ledger, tmp_path / "archive")
    for name, stay in (("early.db", rows), ("late.db", ledger.count(Sighting))):
        with Ledger.open(tmp_path / name, mode="append") as target:
            copy_ledger(ledger, target)
            assert target.count(Sighting) == stay
            assert target.latest_root() == ledger.latest_root()
            assert verified(target, tmp_path / "nowhere").ok
            assert set(verdicts(verified(target)).values()) == {Verdict.OK}


def test_a_copy_that_has_the_rows_still_does_not_archive_them_again(ledger: Ledger, tmp_path: Path) -> None:
    """They would leave into files that no row of it names; copied anew they are not in it, and it archives on."""
    with Ledger.open(tmp_path / "early.db", mode="append") as early:
        copy_ledger(ledger, early)
    archived(ledger, tmp_path / "archive")
    with Ledger.open(tmp_path / "early.db", mode="append") as early:
        copy_ledger(ledger, early)
        looks = early.count(Sighting)
        with pytest.raises(Refused) as refused:
            archived(early, tmp_path / "second")
        assert refused.value.code == "archived-already"
        assert (early.count(Sighting), (tmp_path / "second").exists()) == (looks, False)
    with Ledger.open(tmp_path / "anew.db", mode="append") as anew:
        copy_ledger(ledger, anew)
        assert not archived(anew, tmp_path / "second").done


def test_a_lake_is_exported_whole(ledger: Ledger, tmp_path: Path) -> None:
    """With the archive under the ledger nothing of an earlier lake changes; without it nothing is exported."""
    archived_rows = ledger.count(Sighting)
    export_parquet(ledger, tmp_path / "lake", now_us=NOW_US)
    archived(ledger, tmp_path / "archive")
    with pytest.raises(Unavailable) as refused:
        export_parquet(ledger, tmp_path / "lake", now_us=NOW_US)
    assert refused.value.code == "archive-missing"
    export_parquet(ledger, tmp_path / "part", now_us=NOW_US, since_us=JULY_US + DAY_US)
    with Ledger.open(ledger.place, mode="read") as opened:
        assert lay_under(opened, folder=None).is_whole
        again = export_parquet(opened, tmp_path / "lake", now_us=NOW_US)
        assert opened.count(Sighting) == archived_rows
    assert not [name for name in again.written if "sighting" in name or "workload_event" in name]
    assert not again.removed


def test_rows_that_leave_while_somebody_reads_are_missed(ledger: Ledger, tmp_path: Path, monkeypatch) -> None:
    """An export that begins before they leave, with and without an archive under it: refused, and the lake stands;
    and verify does not call damage what it saw half.
    """
    lake = tmp_path / "lake"
    export_parquet(ledger, lake, now_us=NOW_US)
    whole = Lake.open(lake).manifest
    bounds = iter((JUNE_US, JULY_US))

    @contextmanager
    def overtaken(folder: Path) -> Iterator[None]:
        with Ledger.open(ledger.place, mode="append") as other:
            assert archived(other, tmp_path / "archive", before_us=next(bounds)).done
        with writing(folder):
            yield

    with monkeypatch.context() as patched:
        patched.setattr(export_operation, "writing", overtaken)
        for _ in range(2):
            with Ledger.open(ledger.place, mode="read") as reader:
                lay_under(reader, folder=None)
                with pytest.raises(Unavailable) as refused:
                    export_parquet(reader, lake, now_us=NOW_US)
            assert refused.value.code == "archive-missing"
            assert Lake.open(lake).manifest == whole


def test_rows_that_leave_while_they_are_checked(ledger: Ledger, tmp_path: Path) -> None:
    """No check that saw half of them calls it damage."""
    archived(ledger, tmp_path / "archive", before_us=JUNE_US)
    left: list[bool] = []

    def leave(done: int, of: int) -> None:
        with Ledger.open(ledger.place, mode="append") as other:
            left.append(archived(other, tmp_path / "archive").done)

    with Ledger.open(ledger.place, mode="read") as reader, pytest.raises(Unavailable) as busy:
        verify(reader, now_us=NOW_US, laid=lay_under(reader, folder=None), progress=leave)
    assert left[0]
    assert (busy.value.code, busy.value.hint) == ("ledger-busy", "run the command again")
    assert verified(ledger).ok


def test_evidence_told_again_is_not_counted_twice(ledger: Ledger, tmp_path: Path) -> None:
    """Rows that left and are read again are not added, and it is said; no hour gets a correction."""
    old = [*ledger.scan(DriverRecord, until_us=JUNE_US - DAY_US), *ledger.scan(Sighting, until_us=MAY_US + 9 * DAY_US)]
    before = answers(ledger)
    archived(ledger, tmp_path / "archive")
    appended = ledger.append(old, writer="box.agent", at_us=NOW_US)
    assert not appended.added
    assert {problem.code for problem in appended.conflicts} == {"archived"}
    assert not meter(ledger, now_us=NOW_US + HOUR_US, writer="box.meter").corrections
    assert answers(ledger) == before


def test_a_row_that_reaches_back_corrects_no_archived_hour(ledger: Ledger, tmp_path: Path) -> None:
    """A context from before the bound that ends after it is booked from the bound on, and the rest is told."""
    archived(ledger, tmp_path / "archive")
    late = DriverRecord(
        host="box", device=GPU, pid=4242, started_at_us=JULY_US - 5 * DAY_US, context_ms=6 * DAY_US // 1000,
        peak_memory_mib=Missing("-"), gpu_percent=Missing("-"), memory_percent=Missing("-"), read_at_us=NOW_US,
        method="nvml",
    )  # fmt: skip
    ledger.append([late], writer="box.agent", at_us=NOW_US)
    report = meter(ledger, now_us=NOW_US + HOUR_US, writer="box.meter")
    booked = list(ledger.scan(UsageCorrection))
    assert booked
    assert min(row.hour_us for row in booked) == JULY_US
    assert all(row.delta > 0 for row in booked)
    assert [problem.code for problem in report.problems] == ["archived"]
    assert verified(ledger).ok


def test_events_of_archived_time_are_refused(ledger: Ledger, tmp_path: Path) -> None:
    """A live control plane is refused; an importer is told; what is known adds nothing; a new life goes on."""
    archived(ledger, tmp_path / "archive")
    where = Placement(class_name="H100-80GB", machine="n1", count=1)
    old = Transition(workload="w3", event_id="w3-2", state=State.RUNNING, at_us=MAY_US + 3 * DAY_US + HOUR_US,
                     source="cp")  # fmt: skip
    with pytest.raises(Refused) as refused:
        record_transitions(ledger, [old], writer="box.transition", now_us=NOW_US)
    assert refused.value.code == "archived"
    told = record_transitions(ledger, [old], writer="box.import", now_us=NOW_US, imported=True)
    assert [problem.code for problem in told.problems] == ["archived"]
    assert not told.added
    fresh = [
        Transition(workload="w3", event_id=f"again-{number}", state=state, at_us=NOW_US + number * MINUTE_US,
                   source="cp", placement=where if state is State.PROVISIONING else None)
        for number, state in enumerate((State.PROVISIONING, State.RUNNING, State.STOPPED))
    ]  # fmt: skip
    for each in fresh:
        record_transitions(ledger, [each], writer="box.transition", now_us=each.at_us)
    report = meter(ledger, now_us=NOW_US + 2 * HOUR_US, writer="box.meter")
    assert not report.corrections
    assert {row.quantity for row in ledger.scan(UsageRecord, since_us=NOW_US) if row.meter == "gpu.reserved"} == {60}
    sequences = [row.sequence for row in ledger.scan(WorkloadEvent) if row.workload == "w3"]
    assert sorted(sequences) == [4, 5, 6, 7]


def test_explain_reads_the_archive(ledger: Ledger, tmp_path: Path) -> None:
    """A row that left is read out of it; without it the error names what is needed, and a record says where to look."""
    row = next(iter(ledger.scan(DriverRecord)))
    record = next(iter(ledger.scan(UsageRecord)))
    asked = {"meter": "gpu.context", "since_us": MAY_US, "until_us": JUNE_US, "now_us": NOW_US}
    before = [explain(ledger, each.ref, **asked) for each in (row, record)]
    archived(ledger, tmp_path / "archive")
    with pytest.raises(Unavailable) as gone:
        explain(ledger, row.ref, **asked)
    assert gone.value.code == "archive-missing"
    assert "--archive" in gone.value.hint
    assert "is archived" in explain(ledger, record.ref, **asked).children[-1].title
    with Ledger.open(ledger.place, mode="read") as opened:
        assert lay_under(opened, folder=tmp_path / "archive").is_whole
        assert [explain(opened, each.ref, **asked) for each in (row, record)] == before


def test_a_moment_and_a_part_of_an_hour_need_the_archive(ledger: Ledger, tmp_path: Path) -> None:
    """smi of an archived moment, and a window that cuts an archived hour, say so instead of less."""
    archived(ledger, tmp_path / "archive")
    with pytest.raises(Unavailable) as gone:
        smi(ledger, at_us=MAY_US + DAY_US, now_us=NOW_US)
    assert gone.value.code == "archive-missing"
    with pytest.raises(Unavailable) as cut:
        window(ledger, since=MAY_US, until=MAY_US + DAY_US + MINUTE_US, now_us=NOW_US)
    assert cut.value.code == "archive-missing"


def test_forgetting_still_finds_every_text(ledger: Ledger, tmp_path: Path) -> None:
    """The archive holds keys and no texts; identities stay, so who it was can be dropped as ever."""
    archived(ledger, tmp_path / "archive")
    content = b"".join(file.read_bytes() for file in (tmp_path / "archive").rglob("*") if file.is_file())
    assert b"ollama" not in content
    assert b"/bin/job" not in content
    report = forget(ledger, Choice(user="al", before_us=Missing("any")), typed=(), done=True, host="box",
                    writer="box.forget", now_us=NOW_US)  # fmt: skip
    assert report.dropped
    assert report.verified
    assert verified(ledger).ok


def test_what_is_not_final_stays(ledger: Ledger, tmp_path: Path) -> None:
    """A month with an hour that can still change does not leave; from when on it can is said."""
    with pytest.raises(Refused, match="it will be at") as refused:
        archive(ledger, before_us=JULY_US, folder=tmp_path / "archive", done=True, now_us=JULY_US + HOUR_US,
                writer="box.archive")  # fmt: skip
    assert refused.value.code == "not-final"
    assert "the same again from 2026-0" in refused.value.hint
    assert not (tmp_path / "archive").exists()


@pytest.mark.parametrize("before_us", [JULY_US + 31 * DAY_US, NOW_US + 31 * DAY_US])
def test_a_month_that_is_not_over_stays(ledger: Ledger, tmp_path: Path, before_us: int) -> None:
    """No pass would help."""
    with pytest.raises(Misconfigured, match="lies ahead") as refused:
        archived(ledger, tmp_path / "archive", before_us=before_us)
    assert (refused.value.code, refused.value.hint) == ("bound-ahead", "gpuledger archive --before 2026-07")
    assert not (tmp_path / "archive").exists()


def test_what_waits_for_a_pass_stays(ledger: Ledger, tmp_path: Path) -> None:
    """Evidence that no pass has seen of the time that is to leave: first meter, then archive."""
    row = next(iter(ledger.scan(DriverRecord, since_us=JUNE_US)))
    late = DriverRecord(
        host="box", device=GPU, pid=9, started_at_us=row.started_at_us, context_ms=5000, peak_memory_mib=1,
        gpu_percent=1, memory_percent=1, read_at_us=NOW_US, method="nvml",
    )  # fmt: skip
    ledger.append([late], writer="box.agent", at_us=NOW_US)
    with pytest.raises(Refused) as refused:
        archived(ledger, tmp_path / "archive")
    assert refused.value.code == "not-final"
    assert refused.value.hint == "gpuledger meter"


def test_late_evidence_is_booked_first(ledger: Ledger, tmp_path: Path) -> None:
    """A late stop of a final hour waits for somebody to book it; once the events left nobody could."""
    stop = Transition(workload="w3", event_id="early", state=State.STOPPED, at_us=MAY_US + 3 * DAY_US + 3 * HOUR_US,
                      source="cp")  # fmt: skip
    record_transitions(ledger, [stop], writer="box.import", now_us=NOW_US, imported=True)
    meter(ledger, now_us=NOW_US + 3 * HOUR_US, writer="box.meter")
    with pytest.raises(Refused) as refused:
        archived(ledger, tmp_path / "archive")
    assert refused.value.code == "late-evidence"
    assert "correct" in refused.value.hint


def test_a_folder_of_something_else_is_left_alone(ledger: Ledger, tmp_path: Path) -> None:
    """An archive has a folder of its own; without any it is a wrong call."""
    (tmp_path / "holidays").mkdir()
    (tmp_path / "holidays" / "photo.jpg").write_text("sea")
    for folder, code in ((tmp_path / "holidays", "archive-folder"), (tmp_path / "ledger.db", "archive-folder")):
        with pytest.raises(Misconfigured) as refused:
            archived(ledger, folder)
        assert refused.value.code == code
    with pytest.raises(Misconfigured):
        archive(ledger, before_us=JULY_US, folder=None, done=True, now_us=NOW_US, writer="box.archive")
    assert not ledger.count(Archive)


def test_a_folder_that_cannot_be_written(ledger: Ledger) -> None:
    """No room, or no right: nothing left the ledger."""
    with pytest.raises(GpuledgerError) as refused:
        archived(ledger, Path("/proc/nowhere/archive"))
    assert refused.value.code == "archive-unwritable"
    assert not ledger.count(Archive)


def test_where_somebody_else_writes_all_the_while_nothing_is_left_of_it(
    filled: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is said by name, no row left, and no folder lies about that no row of the ledger would name."""
    shutil.copy(filled, tmp_path / "ledger.db")
    finish = archive_files.Run.finish
    with sqlite3.connect(tmp_path / "ledger.db", isolation_level=None) as other:

        def then_another_writes(run: archive_files.Run, about: dict[str, object]) -> None:
            finish(run, about)
            other.execute("BEGIN IMMEDIATE")

        monkeypatch.setattr(archive_files.Run, "finish", then_another_writes)
        with Ledger.open(tmp_path / "ledger.db", mode="append", busy_timeout_ms=50) as opened:
            with pytest.raises(Unavailable) as refused:
                archived(opened, tmp_path / "archive")
            assert refused.value.code == "ledger-busy"
        other.execute("ROLLBACK")
    other.close()
    assert list((tmp_path / "archive").iterdir()) == []


def test_what_is_done_and_not_sealed_is_done(ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The rows are gone: an error would say that nothing is."""

    def full(*_: object, **__: object) -> None:
        raise Unavailable("ledger-full", "no room left; nothing was added", hint="make room")

    monkeypatch.setattr(Ledger, "seal", full)
    report = archived(ledger, tmp_path / "archive")
    assert (report.done, report.root, [each.code for each in report.problems]) == (True, "", ["ledger-full"])
    assert ledger.count(Archive) == len(report.leaving) > 0
