"""Fair share against a real Slurm: jobs run there, ``sacct`` is imported here, and both say who is next."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from e2e.box import COMMAND
from e2e.machine import need
from e2e.slurm_site import HALF_LIFE_DAYS, PACKAGES, SlurmSite, missing_programs

TREE = {"vision": (40, {"daemon": 1, "bin": 1}), "nlp": (60, {"games": 3, "nobody": 1})}
"""Accounts and users, of whom every Debian has an entry in its passwd."""

THOUSANDTH = 0.0005


@pytest.fixture
def site() -> Iterator[SlurmSite]:
    """A site in a folder that its daemons' users can enter, gone with the test."""
    need(os.geteuid() == 0, "Slurm's daemons start jobs as other users: run the tests as root")
    missing = missing_programs()
    need(not missing, f"no {', '.join(missing)}: apt-get install -y {PACKAGES}")
    folder = Path(tempfile.mkdtemp(prefix="gpuledger-slurm-"))
    made = SlurmSite(folder)
    try:
        made.start()
        yield made
    finally:
        made.stop()
        shutil.rmtree(folder)


def gpuledger(place: Path, *words: str | Path) -> Any:
    """The installed command; its answer as JSON."""
    environment = {name: text for name, text in os.environ.items() if not name.startswith("GPULEDGER_")}
    done = subprocess.run(
        [str(COMMAND), *(str(word) for word in words), "--ledger", str(place), "--format", "json"],
        env=environment, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 0, f"{words}: {done.stdout}{done.stderr}"
    return json.loads(done.stdout)


def policy(folder: Path, algorithm: str) -> Path:
    """The same tree as the site's; root has a user of its own there, as every Slurm has."""
    lines = ["shares:", f"  half_life: {HALF_LIFE_DAYS}d", f"  algorithm: {algorithm}", "  users: {root: 1}", "  tree:"]
    for account, (shares, users) in TREE.items():
        lines.append(f"    {account}: {{shares: {shares}, users: {json.dumps(users)}}}")
    path = folder / f"{algorithm}.yaml"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def agree(ours: list[dict[str, Any]], theirs: dict[tuple[str, str], dict[str, str]]) -> None:
    """Every user and account: shares, usage and factor to three decimals."""
    found = {(line["account"] or "root", line["user"]): line for line in ours}
    assert set(found) == set(theirs) - {("root", "")}
    for key, line in found.items():
        row = theirs[key]
        assert str(line["shares"]) == row["RawShares"], key
        pairs = [("norm_shares", "NormShares"), ("norm_usage", "NormUsage"), ("effective_usage", "EffectvUsage")]
        pairs += [("factor", "FairShare")] if line["factor"] is not None else []
        for mine, slurms in pairs:
            assert abs(float(line[mine]) - float(row[slurms])) < THOUSANDTH, (key, mine, line, row)
        assert abs(float(line["usage"]) - float(row["RawUsage"])) < 1.001, (key, line, row)


def test_factors_come_out_as_sshare_says_from_imported_usage(site: SlurmSite, tmp_path: Path) -> None:
    """Two accounts, three jobs; Fair Tree and the classic formula, before and after the hour is recorded."""
    for account, (shares, users) in TREE.items():
        site.account(account, shares, users)
    jobs = [
        site.submit("daemon", "vision", gpus=2, seconds=5),
        site.submit("bin", "vision", gpus=1, seconds=3),
        site.submit("games", "nlp", gpus=1, seconds=4),
    ]
    site.finish(jobs, within_s=60)

    place, dump = tmp_path / "site.db", tmp_path / "sacct.txt"
    dump.write_text(site.sacct(), encoding="utf-8")
    gpuledger(place, "import", "slurm", dump, "--zone", "UTC")
    gpuledger(place, "apply", policy(tmp_path, "fair-tree"))
    fair_tree = gpuledger(place, "fairshare")
    agree(fair_tree["lines"], site.shares(is_classic=False))
    assert {line["user"]: line["rank"] for line in fair_tree["lines"] if line["user"]} == {
        "root": 1, "nobody": 2, "games": 3, "bin": 4, "daemon": 5,
    }  # fmt: skip
    assert fair_tree["outside"] == []

    gpuledger(place, "meter")
    gpuledger(place, "apply", policy(tmp_path, "classic"))
    classic = gpuledger(place, "fairshare")
    agree(classic["lines"], site.shares(is_classic=True))
    later = subprocess.run(
        ["date", "-u", "-d", "3 hours", "+%Y-%m-%dT%H:%M:%SZ"], capture_output=True, text=True, check=True
    ).stdout.strip()
    gpuledger(place, "meter", "--now", later)
    recorded = gpuledger(place, "fairshare", "--now", later)
    assert [line["factor"] for line in recorded["lines"]] == [line["factor"] for line in classic["lines"]]
