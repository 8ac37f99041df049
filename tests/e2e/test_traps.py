"""The traps of counting GPU use, each met by the installed command on a machine that sets it."""

from __future__ import annotations

import pytest

from e2e import smi
from e2e.box import GPU, HOST, OTHER_GPU, Box, reasons, short, sums_up
from e2e.machine import ME, eventually
from gpuledger.model.moments import HOUR_US, iso, parse_moment

MORNING_US = parse_moment("2026-11-29T10:10:00Z", now_us=0)
SECOND_US = 1_000_000


def far_pid(number: int) -> int:
    """A pid that no process of this test has."""
    return 3_000_000 + number


def test_accounting_off(bare: Box) -> None:
    """UNKNOWN accounting-disabled with the command that enables it, exit 3, nowhere a zero; what lives counts."""
    bare.driver.add_gpu(GPU, accounting=False)
    bare.clock.stand_at(MORNING_US)
    bare.look()
    bare.clock.advance(60)
    bare.look()
    table, as_json, blind, journal = bare.together(
        ("usage",), ("usage", "--format", "json"), ("blind",), ("journal", "--format", "json")
    )
    assert "UNKNOWN" in table.must(3).stdout
    assert " 0 ms" not in table.stdout
    report = as_json.must(3).json
    assert (report["total"], report["unattributed"]["quantity"]) == (None, None)
    assert (report["rows"], report["watched"]["seconds"]) == ([], 0)
    span = next(span for span in report["unknown"] if span["reason"] == "accounting-disabled")
    assert 59 <= span["seconds"] <= 120
    for told in (table.stdout, blind.must(3).stdout):
        assert "accounting-disabled" in told
        assert "gpuledger agent --enable-accounting" in told
    assert any("UNKNOWN accounting-disabled" in line["sentence"] for line in journal.must(0).json["lines"])
    job = bare.job("serve.py")
    bare.opens(job)
    bare.look()
    bare.clock.advance(60)
    bare.look()
    (report,) = bare.read("usage")
    assert 60_000 <= short(report)["serve.py"] <= 120_000
    assert "accounting-disabled" in reasons(report)
    sums_up(report)


def test_enabled_but_empty(box: Box) -> None:
    """An empty list is UNKNOWN empty-ledger: polling cannot tell it from idle, so there is no zero."""
    box.clock.stand_at(MORNING_US)
    box.look()
    box.clock.advance(60)
    box.look()
    usage, blind = box.read("usage", "blind", status=3)
    assert usage["total"] is None
    assert usage["watched"]["seconds"] == 0
    span = next(span for span in usage["unknown"] if span["reason"] == "empty-ledger")
    assert 59 <= span["seconds"] <= 120
    told = next(size for size in blind["reasons"] if size["reason"] == "empty-ledger")
    assert "nothing proves that nobody used the device" in told["meaning"]


def test_a_short_job_reads_no_utilisation(box: Box) -> None:
    """A 679 ms job with 184 MiB at 0 % counts its 679 ms, and 40 rows of which 31 read 0 % lose nothing."""
    now_us = box.clock.now_us()
    for number in range(39):
        percent = 0 if number < 30 else 7
        ms = 10_657 if percent else 130_000
        started_us = now_us - 3 * HOUR_US + number * SECOND_US
        box.driver.add_finished(far_pid(number), GPU, started_at_us=started_us, context_ms=ms, percent=percent)
    agent = box.agent()
    job = box.job("xtts.py")
    since_us = box.opens(job, memory_mib=184)
    box.named(job)
    assert box.closes(job, at_us=since_us + 679_000) == 679
    job.end()
    box.settled(40)
    agent.stop().must(0)
    idle_ms = sum(int(row[4]) for row in box.dead() if row[6] == "0")
    all_ms = sum(int(row[4]) for row in box.dead())
    assert sum(row[6] == "0" for row in box.dead()) == 31
    assert round(1000 * idle_ms / all_ms) == 976
    (usage,) = box.read(f"usage --now {later_than(box)}")
    assert short(usage) == {"xtts.py": 679}
    assert usage["unattributed"]["causes"] == {"before-watch": all_ms - 679}
    assert usage["total"] == all_ms
    sums_up(usage)


def test_pid_gone_name_gone_and_pid_reused(box: Box) -> None:
    """The name outlives the process, and each life of one pid keeps its own."""
    agent = box.agent()
    first = box.job("train.py")
    box.opens(first, memory_mib=2048)
    box.named(first)
    trained_ms = box.closes(first)
    first.end()
    box.settled(1)
    second = box.job("serve.py", pid=first.pid)
    box.opens(second)
    box.named(second)
    served_ms = box.closes(second)
    second.end()
    box.settled(2)
    agent.stop().must(0)
    (usage,) = box.read("usage")
    assert short(usage) == {"train.py": trained_ms, "serve.py": served_ms}
    assert usage["unattributed"]["causes"] == {}
    assert all(row["settled"] == row["quantity"] for row in usage["rows"])


def test_two_candidates_are_pid_ambiguous(box: Box) -> None:
    """One pid, two processes that fit the row's start: nobody is named, and the cause says so."""
    box.driver.add_gpu(OTHER_GPU, accounting=True)
    box.clock.stand_at(MORNING_US)
    first = box.job("train.py")
    opened_us = box.opens(first)
    box.look("60s")
    looked_us = box.clock.now_us()
    eventually(lambda: box.clock.now_us() > opened_us + 2_200_000, "two starts are told apart beyond 2 s")
    box.closes(first)
    first.end()
    second = box.job("serve.py", pid=first.pid)
    box.opens(second)
    box.opens(second, OTHER_GPU)
    box.clock.advance(6)
    brief_ms = box.closes(second)
    box.clock.advance(30)
    box.look("60s")
    (usage,) = box.read("usage")
    assert usage["unattributed"]["causes"] == {"pid-ambiguous": brief_ms}
    rows = short(usage)
    assert set(rows) == {"train.py", "serve.py"}
    assert 0 < rows["train.py"] <= (looked_us - opened_us) // 1000
    sums_up(usage)


def test_a_running_process_says_0_ms(box: Box) -> None:
    """Observed and unsettled with its time so far; settled later, and not counted twice."""
    agent = box.agent()
    job = box.job("whisper.py")
    since_us = box.opens(job)
    box.named(job)
    box.looks_again()
    (running,) = box.read("usage")
    so_far = short(running)["whisper.py"]
    assert so_far > 0
    assert (running["rows"][0]["observed"], running["rows"][0]["settled"]) == (so_far, 0)
    assert running["unsettled"]["quantity"] == so_far == running["total"]
    (open_context,) = running["unsettled"]["rows"]
    assert (open_context["pid"], open_context["device"], open_context["quantity"]) == (job.pid, GPU, so_far)
    assert parse_moment(open_context["since"], now_us=0) == since_us
    held_ms = box.closes(job)
    job.end()
    box.settled(1)
    agent.stop().must(0)
    (over,) = box.read("usage")
    assert short(over) == {"whisper.py": held_ms}
    assert (over["rows"][0]["observed"], over["rows"][0]["settled"]) == (0, held_ms)
    assert over["unsettled"] == {"quantity": 0, "rows": []}
    assert over["total"] == held_ms >= so_far


def test_a_daemon_that_never_exits_was_there_before_accounting(bare: Box) -> None:
    """Metered each hour as observed from first sight, and listed never-accounted with uptime and memory."""
    bare.driver.add_gpu(GPU, accounting=False)
    bare.clock.stand_at(MORNING_US)
    daemon = bare.job("tts-daemon.py")
    bare.opens(daemon, memory_mib=2196)
    bare.driver.set_accounting(GPU, True)
    bare.clock.advance(600)
    for _ in range(5):
        bare.look("30m")
        bare.clock.advance(1800)
    meter = bare.run("meter", "--format", "json").json
    assert meter["open_from"] == "2026-11-29T12:00:00Z"
    usage, hours, blind = bare.read("usage", "usage --by hour,service", "blind")
    by_hour = {row["hour"]: row for row in hours["rows"]}
    assert by_hour["2026-11-29T11:00:00Z"]["quantity"] == 3_600_000
    first, last = by_hour["2026-11-29T10:00:00Z"]["quantity"], by_hour["2026-11-29T12:00:00Z"]["quantity"]
    assert 2_280_000 < first <= 2_400_000
    assert 1_200_000 < last < 1_500_000
    assert set(by_hour) == {f"2026-11-29T{hour}:00:00Z" for hour in (10, 11, 12)}
    assert all((row["settled"], row["observed"]) == (0, row["quantity"]) for row in hours["rows"])
    assert short(usage) == {"tts-daemon.py": first + 3_600_000 + last}
    assert usage["provisional"]["quantity"] == last
    (listed,) = usage["never_accounted"]
    assert listed == blind["never_accounted"][0]
    assert (listed["pid"], listed["memory_mib"], listed["user"]) == (daemon.pid, 2196, ME)
    assert listed["service"].startswith(f"script:{daemon.script} by ")
    assert 7_800_000 <= listed["uptime_ms"] < 8_100_000
    assert listed["quantity"] == usage["total"]


def test_a_6_s_job_under_a_60_s_poll(box: Box) -> None:
    """Unattributed, between-samples; the watch says 60 s, and blind prints the chance of catching it."""
    box.clock.stand_at(MORNING_US)
    box.look("60s")
    box.clock.advance(20)
    job = box.job("hello.py")
    since_us = box.opens(job)
    assert box.closes(job, at_us=since_us + 6_000_000) == 6000
    job.end()
    box.clock.advance(40)
    box.look("60s")
    usage, blind, journal = box.read("usage", "blind", "journal")
    assert usage["rows"] == []
    assert usage["unattributed"] == {"quantity": 6000, "causes": {"between-samples": 6000}}
    assert usage["total"] == 6000
    assert any("by poll every 1 min" in line["sentence"] for line in journal["lines"])
    assert box.sql("SELECT DISTINCT interval_ms FROM watch WHERE source = 'process'") == [(60_000,)]
    chance = next(one for one in blind["chances"] if one["length_ms"] == 6000)
    assert (chance["interval_ms"], chance["chance"], chance["percent"]) == (60_000, "1/10", "10.0 %")
    assert blind["unattributed"]["causes"][0]["meaning"] == "lived and died between two polls"


def test_dead_before_the_agent_first_looked(box: Box) -> None:
    """Cause before-watch, frozen: neither a living process of the same pid nor later records take any of it."""
    now_us = box.clock.now_us()
    namesake = box.job("namesake.py")
    for pid, ms in ((far_pid(1), 773_149), (far_pid(2), 4161), (namesake.pid, 64_466)):
        box.driver.add_finished(pid, GPU, started_at_us=now_us - 5 * HOUR_US, context_ms=ms)
    agent = box.agent()
    job = box.job("train.py")
    box.opens(job)
    box.opens(namesake)
    box.named(job, namesake)
    ms = box.closes(job)
    job.end()
    box.settled(4)
    agent.stop().must(0)
    later = f"--now {later_than(box)}"
    frozen = {"before-watch": 773_149 + 4161 + 64_466}
    (before,) = box.read("usage")
    box.run("meter", *later.split())
    after, again = box.read(f"usage {later}", f"blind {later}")
    assert before["unattributed"]["causes"] == after["unattributed"]["causes"] == frozen
    assert short(before)["train.py"] == short(after)["train.py"] == ms
    assert set(short(after)) == {"train.py", "namesake.py"}
    assert {one["cause"]: one["quantity"] for one in again["unattributed"]["causes"]} == frozen
    sums_up(after)


def test_128_or_more_exits_between_two_reads(box: Box) -> None:
    """The driver's ring went round: UNKNOWN ring-overflow for that span, beside what it still held."""
    box.clock.stand_at(MORNING_US)
    box.driver.add_finished(far_pid(0), GPU, started_at_us=MORNING_US - HOUR_US, context_ms=1000)
    box.look("60s")
    for number in range(1, 131):
        started_us = MORNING_US + (10 + number % 40) * SECOND_US
        box.driver.add_finished(far_pid(number), GPU, started_at_us=started_us, context_ms=100 + number)
    box.clock.advance(60)
    box.look("60s")
    usage, journal = box.read("usage", "journal")
    held_ms = sum(100 + number for number in range(3, 131))
    assert len(box.dead()) == 128
    assert usage["total"] == 1000 + held_ms
    (span,) = [span for span in usage["unknown"] if span["reason"] == "ring-overflow"]
    assert 59 <= span["seconds"] <= 120
    assert any("UNKNOWN ring-overflow" in line["sentence"] for line in journal["lines"])
    sums_up(usage)


@pytest.mark.parametrize("first", ["agent", "csv", "xml"])
def test_the_same_rows_read_twice_from_two_sources_after_a_restart(box: Box, first: str) -> None:
    """Counted once, whichever source came first, each source twice."""
    box.clock.stand_at(MORNING_US)
    for number, ms in enumerate((4115, 679, 679, 7365)):
        started_us = MORNING_US - (10 - number) * 60 * SECOND_US
        box.driver.add_finished(far_pid(number), GPU, started_at_us=started_us, context_ms=ms, percent=number)
    sources = ["agent", "csv", "xml"]
    sources.remove(first)
    for source in (first, *sources, first):
        box.clock.advance(60)
        if source == "agent":
            box.look("60s")
            continue
        dump = box.folder / f"dump.{source}"
        printed = smi.csv if source == "csv" else smi.xml
        dump.write_text(printed(box.driver.lines(), box.clock.now_us()))
        report = box.run("import", "nvidia-smi", str(dump), "--host", HOST, "--zone", "UTC", "--format", "json").json
        assert report["finished"] == 4
    usage, metered = box.read("usage", f"usage --now {later_than(box)}")
    for report in (usage, metered):
        assert report["total"] == report["unattributed"]["quantity"] == 4115 + 679 + 679 + 7365
        sums_up(report)


def later_than(box: Box) -> str:
    """An hour and a half from now: by then the hour at hand is closed."""
    return iso(box.clock.now_us() // SECOND_US * SECOND_US + HOUR_US * 3 // 2)
