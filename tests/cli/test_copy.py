"""``gpuledger copy``."""

from __future__ import annotations


def test_a_copy_in_three_formats(gpuledger, morning, postgres) -> None:
    """What is new, then nothing; the password is nowhere."""
    url = postgres.new_ledger()
    done = gpuledger("copy", morning.place, url)
    assert done.status == 0
    assert "rows, 1 link and 2 identity texts copied, of 1 chain" in done.out
    assert "secret" not in done.out + done.err
    again = gpuledger("copy", morning.place, url, "--format", "json").json
    assert (again["rows"], again["known_rows"] > 0) == (0, True)
    assert gpuledger("copy", morning.place, url, "--format", "csv").out.startswith("from,to,chains,rows")


def test_what_cannot_be_copied_is_refused(gpuledger, morning, tmp_path) -> None:
    """By name, with a status of its own."""
    assert gpuledger("copy", morning.place, morning.place, "--format", "json").error["code"] == "same-ledger"
    other = tmp_path / "other.db"
    (tmp_path / "p.yaml").write_text("services: []\n")
    gpuledger("apply", tmp_path / "p.yaml", "--ledger", other)
    done = gpuledger("copy", morning.place, other, "--format", "json")
    assert (done.status, done.error["code"]) == (4, "copy-diverges")
