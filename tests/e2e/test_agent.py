"""The agent as people run it: one at a time, stopped, killed, without rights, with other drivers and modes."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from pathlib import Path

import pytest

from e2e import smi
from e2e.box import GPU, OTHER_GPU, Box, reasons, short, sums_up
from e2e.machine import eventually, need
from gpuledger.model.moments import HOUR_US, iso, parse_moment

MORNING_US = parse_moment("2026-11-29T10:10:00Z", now_us=0)
SLICES = ("MIG-aaaaaaaa-0000-1111-2222-333333333333", "MIG-bbbbbbbb-0000-1111-2222-333333333333")


def test_sigterm_ends_with_0_and_a_seal_and_a_second_agent_is_refused(box: Box) -> None:
    """Two agents at once: exit 4. The first ends well when told to, with everything written and sealed."""
    agent = box.agent()
    second, once = box.together(("agent",), ("agent", "--once"))
    for answer in (second, once):
        assert "[agent-running]" in answer.must(4).stderr
    job = box.job("train.py")
    box.opens(job)
    box.named(job)
    agent.stop().must(0)
    assert box.sql("SELECT count(*) FROM seal") == [(1,)]
    assert box.sql("SELECT count(*) FROM sighting WHERE pid = ?", job.pid)[0][0] >= 1
    verify = box.run("verify", "--format", "json").json
    assert verify["ok"]
    assert len(verify["root"]) == 64


def test_no_secret_reaches_the_disk(box: Box) -> None:
    """Values of secret options and assignments are nowhere in the ledger, its log or its index of the log."""
    secret = "hunter2-c0rrect-h0rse"
    agent = box.agent()
    job = box.job(
        "serve.py", "--api-key", secret, f"--password={secret}", f"HF_TOKEN={secret}", f"DATABASE_PASSWORD={secret}",
        f"https://user:{secret}@example.org/", "--max-tokens", "4096", "--tokenizer", "llama",
    )  # fmt: skip
    box.opens(job)
    box.named(job)
    found = 0
    for suffix in ("", "-wal", "-shm"):
        content = box.ledger.with_name(box.ledger.name + suffix).read_bytes()
        assert secret.encode() not in content
        found += content.count(b"--max-tokens 4096 --tokenizer llama")
    assert found, "the rest of the command line is kept"
    agent.stop().must(0)
    assert sorted(path.name for path in box.ledger.parent.iterdir()) == ["ledger.db", "ledger.db.agent"]
    assert secret.encode() not in box.ledger.read_bytes()
    (text,) = box.sql("SELECT json FROM identity_text")
    assert json.loads(text[0])["command"].count("[redacted]") == 5


def test_root_enables_accounting_again_after_the_driver_was_gone(bare: Box) -> None:
    """As root and if told to: enabled, enabled again after a reload and after an unload, and the gaps are written."""
    need(os.geteuid() == 0, "only root may enable accounting")
    bare.driver.add_gpu(GPU, accounting=False)
    agent = bare.agent("--enable-accounting")
    eventually(lambda: bare.driver.accounting(GPU), "accounting is enabled")
    job = bare.job("train.py")
    bare.opens(job)
    bare.named(job)
    ms = bare.closes(job)
    bare.settled(1)
    bare.driver.reload()
    eventually(lambda: bare.driver.accounting(GPU), "accounting is enabled again")
    agent.says("again")
    bare.driver.unload()
    agent.says("the driver did not answer")
    bare.driver.add_gpu(GPU, accounting=False)
    eventually(lambda: bare.driver.accounting(GPU), "accounting is enabled once more")
    bare.opens(job)
    bare.looks_again()
    ms += bare.closes(job)
    bare.settled(2)
    agent.stop().must(0)
    usage, journal = bare.read("usage", "journal")
    told = [line["sentence"] for line in journal["lines"]]
    assert sum("accounting enabled" in sentence for sentence in told) == 3
    assert any("accounting enabled again" in sentence for sentence in told)
    for reason in ("accounting-disabled", "accounting-reset", "driver-unreachable"):
        assert any(f"UNKNOWN {reason}" in sentence for sentence in told), told
    assert reasons(usage) >= {"accounting-reset", "driver-unreachable"}
    assert short(usage) == {"train.py": ms}
    sums_up(usage)


def test_others_may_not_enable_accounting_and_may_read_only_what_their_group_may(
    box: Box, request: pytest.FixtureRequest
) -> None:
    """Exit 5 with the command; a reader without write permission reads while the agent runs and when it does not."""
    need(os.geteuid() == 0, "giving up rights needs root")
    public = Path(tempfile.mkdtemp())  # pytest's own folders are closed to others
    public.chmod(0o755)
    request.addfinalizer(lambda: shutil.rmtree(public))
    box.ledger = public / "ledger.db"
    box.look()
    assert oct(box.ledger.stat().st_mode & 0o777) == oct(0o640)
    open_to_all = public / "open"
    open_to_all.mkdir()
    open_to_all.chmod(0o777)
    refused = box.as_nobody("agent", "--once", "--enable-accounting", "--ledger", str(open_to_all / "l.db"), status=5)
    assert "[needs-root]" in refused.stderr
    assert "sudo gpuledger agent --enable-accounting" in refused.stderr
    assert "[ledger-permission]" in box.as_nobody("usage", status=5).stderr
    os.chown(box.ledger, 0, 65534)
    agent = box.agent()
    job = box.job("train.py")
    box.opens(job)
    box.named(job)
    during = box.as_nobody("usage", "--format", "json").json
    assert short(during)["train.py"] > 0
    later = box.as_nobody("meter", "--now", iso(box.clock.now_us() + 2 * HOUR_US), status=5)
    assert "[ledger-permission]" in later.stderr
    ms = box.closes(job)
    box.settled(1)
    agent.stop().must(0)
    before = {path.name: path.read_bytes() for path in public.iterdir() if path.is_file()}
    after = box.as_nobody("usage", "--format", "json").json
    assert short(after) == {"train.py": ms}
    assert {path.name: path.read_bytes() for path in public.iterdir() if path.is_file()} == before


def test_a_reader_while_the_agent_writes(box: Box) -> None:
    """Every answer in the middle of writing is whole: rows and causes add up, and nothing counted is lost again."""
    agent = box.agent(interval="50ms")
    total_ms = 0
    answers = []
    for _ in range(3):
        for number in range(5):
            job = box.job(f"job{number}.py")
            box.opens(job)
            total_ms += box.closes(job, at_us=box.clock.now_us() + 10_000)
            job.end()
        asked = box.together(("usage", "--format", "json"), ("usage", "--by", "user", "--format", "json"))
        answers += [answer.must(0).json for answer in asked]
    box.settled(15)
    agent.stop().must(0)
    answers += box.read("usage")
    for report in answers:
        if report["total"] is not None:
            sums_up(report)
    totals = [report["total"] or 0 for report in answers]
    assert totals[::2] == sorted(totals[::2])
    assert totals[-1] == total_ms


def test_a_driver_reload_in_the_middle(box: Box) -> None:
    """Rows vanish and the mode is off: UNKNOWN accounting-reset, and what was settled before stands."""
    box.clock.stand_at(MORNING_US)
    job = box.job("train.py")
    box.opens(job)
    agent = box.agent()
    box.named(job)
    ms = box.closes(job)
    box.settled(1)
    box.driver.reload()
    eventually(lambda: box.sql("SELECT 1 FROM watch WHERE status = 'accounting-reset'"), "the reset is written")
    box.driver.set_accounting(GPU, True)
    box.opens(job)
    box.looks_again()
    ms += box.closes(job)
    box.settled(2)
    agent.stop().must(0)
    usage, journal = box.read("usage", "journal")
    assert short(usage) == {"train.py": ms}
    assert "accounting-reset" in reasons(usage)
    assert any("the driver was reloaded" in line["sentence"] for line in journal["lines"])


def test_mig_meters_the_living_on_their_instance(bare: Box) -> None:
    """Accounting cannot be on: UNKNOWN accounting-unsupported; contexts and memory count for the instance's UUID."""
    bare.driver.add_gpu(GPU, product="NVIDIA A100-SXM4-40GB", memory_mib=40960, accounting=False, mig=True)
    for number, uuid in enumerate(SLICES):
        bare.driver.add_slice(GPU, uuid, profile="1g.5gb", memory_mib=4864, gpu_instance=7 + number)
    bare.driver.add_gpu(OTHER_GPU, accounting=True)
    bare.clock.stand_at(MORNING_US)
    job = bare.job("train.py")
    bare.opens(job, memory_mib=1024, instance=(8, 0))
    bare.look("60s")
    bare.clock.advance(60)
    bare.look("60s")
    usage, memory, by_class = bare.read("usage --by device", "usage --meter gpu.memory --by device", "usage --by class")
    ((device, held_ms),) = short(usage, "device").items()
    assert device == SLICES[1]
    assert 60_000 <= held_ms < 120_000
    assert short(by_class, "class") == {"A100-SXM4-40GB/1g.5gb": held_ms}
    assert 60 * 1024 <= short(memory, "device")[SLICES[1]] < 120 * 1024
    assert {span["device"] for span in usage["unknown"] if span["reason"] == "accounting-unsupported"} == {GPU}


def test_without_nvml_the_agent_reads_nvidia_smi_and_says_so(box: Box) -> None:
    """The fallback names the living, counts rows without a start once, and says what it cannot give."""
    programs = smi.install(box.folder, box.driver.state)
    broken = box.folder / "broken"
    broken.mkdir()
    (broken / "libnvidia-ml.so.1").write_text("this is no library\n")
    variables = {"LD_LIBRARY_PATH": str(broken), "PATH": f"{programs}:{os.environ['PATH']}"}
    job = box.job("train.py")
    box.opens(job, memory_mib=512)
    agent = box.agent(**variables)
    agent.says("reading nvidia-smi instead, which gives no start times")
    box.named(job)
    ms = box.closes(job)
    box.settled(1)
    box.looks_again()
    agent.stop().must(0)
    assert box.sql("SELECT DISTINCT method FROM watch WHERE source = 'driver'") == [("nvidia-smi",)]
    (usage,) = box.read("usage")
    assert usage["total"] == ms
    assert short(usage) == {"train.py": ms}
    nothing = {"LD_LIBRARY_PATH": str(broken), "PATH": "/nowhere"}
    assert "[driver-unreachable]" in box.run("agent", "--once", status=5, **nothing).stderr
    doctor = box.run("doctor", "--format", "json", status=1, **nothing).json
    assert next(check for check in doctor["checks"] if check["name"] == "driver")["verdict"] == "found"


def test_a_context_seen_once_and_gone_at_the_next_look_is_over(bare: Box) -> None:
    """Without a driver start a single look has no length; the look that misses it still ends it, and it stays ended."""
    bare.driver.add_gpu(GPU, accounting=False)
    bare.clock.stand_at(MORNING_US)
    job = bare.job("train.py")
    bare.opens(job)
    bare.look("60s")
    bare.closes_unaccounted(job)
    for _ in range(2):
        bare.clock.advance(60)
        assert "conflict" not in bare.look("60s").stderr
    (usage,) = bare.read("usage", status=3)
    assert bare.sql("SELECT count(*) FROM sighting WHERE gone_at_us IS NOT NULL") == [(1,)]
    assert usage["unsettled"]["rows"] == []
    assert usage["rows"] == []
