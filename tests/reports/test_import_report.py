"""What an import brought in, and what its dump cannot say."""

from __future__ import annotations

from gpuledger.model.outcomes import ImportReport
from gpuledger.model.problem import Problem
from gpuledger.reports import import_report

REPORT = ImportReport(
    path="dump.xml", host="box", readings=2, finished=40, living=1, claims=3, added=44, known=2,
    unknown=(("GPU-0", "accounting-disabled"),),
    problems=(Problem(code="host-assumed", message="filed under this machine", where="dump.xml"),),
)  # fmt: skip


def test_counts_are_sentences(printed) -> None:
    """Found, added, known already."""
    lines = printed(import_report.to_table(REPORT)).splitlines()
    assert lines[0].startswith("dump.xml: 2 looks at box, 40 finished processes, 1 alive, 3 names claimed")
    assert lines[1] == "44 rows added, 2 known already"


def test_what_a_dump_cannot_say_is_unknown_with_what_helps(printed) -> None:
    """A driver that kept nothing is not an idle machine."""
    told = printed(import_report.to_table(REPORT))
    assert "UNKNOWN accounting-disabled on GPU-0" in told
    assert "nvidia-smi -am 1" in told


def test_json_and_csv_hold_the_same_counts() -> None:
    """With problems and reasons in JSON."""
    found = import_report.to_json(REPORT)
    assert found["unknown"] == [{"device": "GPU-0", "reason": "accounting-disabled"}]
    assert found["problems"] == [{"code": "host-assumed", "message": "filed under this machine", "where": "dump.xml"}]
    header, values = import_report.to_csv(REPORT).splitlines()
    assert dict(zip(header.split(","), values.split(","), strict=True)) == {
        name: str(found[name])
        for name in ("path", "host", "readings", "finished", "living", "claims", "added", "known")
    }
