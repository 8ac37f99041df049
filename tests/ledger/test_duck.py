"""DuckDB as an engine: bounded, gone when it is closed, and its errors are ours."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from gpuledger.errors import Unavailable
from gpuledger.ledger import metered
from gpuledger.ledger.duck import Duck


def test_what_is_put_aside_goes_with_it(tmp_path: Path) -> None:
    """Also after an error."""
    with Duck(tmp_path) as duck:
        duck.run("CREATE TABLE t AS SELECT * FROM range(10)")
        assert list(tmp_path.iterdir())
        with pytest.raises(Exception, match="nowhere"):
            duck.run("SELECT * FROM nowhere")
    assert not list(tmp_path.iterdir())


_HOLD = """
import sys, time
from pathlib import Path
from gpuledger.ledger.duck import Duck
with Duck(Path(sys.argv[1])) as duck:
    print(duck.folder, flush=True)
    time.sleep(60)
"""


def test_what_a_killed_one_put_aside_goes_with_the_next(tmp_path: Path) -> None:
    """kill -9 leaves its folder; whoever comes next takes it away, and not those of the living."""
    words = [sys.executable, "-c", _HOLD, str(tmp_path)]
    with (
        subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as one,
        subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as other,
    ):
        assert one.stdout is not None
        assert other.stdout is not None
        killed, living = Path(one.stdout.readline().strip()), Path(other.stdout.readline().strip())
        one.kill()
        one.wait()
        assert killed.exists()
        with Duck(tmp_path) as duck:
            assert set(tmp_path.iterdir()) == {living, duck.folder}
        other.kill()


def test_too_little_memory_is_told(tmp_path: Path) -> None:
    """And is no crash."""
    with Duck(tmp_path, memory_mib=8) as duck, pytest.raises(Unavailable) as refused:
        duck.run("SELECT LIST(i ORDER BY hash(i)) FROM range(20000000) AS r(i)")
    assert refused.value.code in ("lake-memory", "lake-full")


def test_the_rule_runs_with_its_own_text(tmp_path: Path) -> None:
    """One interval of an hour and a half, over three hours."""
    hour = 3_600_000_000
    with Duck(tmp_path) as duck:
        duck.make_relations()
        duck.fill("metered_mark", ("writer", "number"), [("w", 9)])
        duck.run(f"INSERT INTO metered_workload VALUES ('a', {metered.ALWAYS_US}, {metered.ALWAYS_US}, {2**62})")
        columns = "writer, number, workload, sequence, state, at_us, source, is_declared, subject, placement"
        duck.run(
            f"INSERT INTO workload_event ({columns}) VALUES "
            f"('w', 1, 'a', 1, 'running', {hour // 2}, 'cp', 0, 's', 'p'), "
            f"('w', 2, 'a', 2, 'stopped', {2 * hour + 7}, 'cp', 0, 's', '')"
        )
        duck.run(f"INSERT INTO metered_hour SELECT h * {hour}, h * {hour} + {hour}, 1 FROM range(3) AS r(h)")
        duck.find_runs(9 * hour)
        duck.cut_runs()
        found = duck.rows("SELECT hour_us, amount_us FROM metered_amount ORDER BY 1")
    assert found == [(0, hour // 2), (hour, hour), (2 * hour, 7)]
