"""Hurt on PostgreSQL: connections cut, servers stopped and crashed, processes killed, many writers at once.

What was acknowledged is there, nothing half-written is, and the same again completes it.
"""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import psycopg
import pytest

from gpuledger.errors import Refused, Unavailable
from gpuledger.ledger import Ledger, verify_ledger
from gpuledger.ledger.engine import bare_cursor
from gpuledger.model.identity import IdentityText
from gpuledger.model.rows import DriverRecord, Pass, Row, Seal, UsageRecord, Watch
from postgres_server import Server


@pytest.fixture
def place(postgres) -> str:
    """The URL of an empty ledger, as the application."""
    return str(postgres.new_ledger())


def cut(server: Server, place: str) -> int:
    """Cut every connection of the application to a ledger; returns how many there were."""
    return server.cut(place)


def test_a_connection_cut_in_the_middle_of_an_append(postgres, place: str, make) -> None:
    """Said by name; nothing of it is there; the same ledger goes on with the next call."""
    with Ledger.open(place, mode="append") as ledger:
        ledger.append([make.watch(1)], writer="w", at_us=1)
        key = ledger.key_of(IdentityText(exe="/bin/a"))

        def judge() -> list[Row]:
            assert cut(postgres, place) == 1
            return [make.watch(2), make.identity(text_key=key)]

        with pytest.raises(Unavailable) as caught:
            ledger.append_made(judge, writer="w", at_us=2)
        assert (caught.value.code, caught.value.exit_status) == ("ledger-unreachable", 5)
        assert "not added twice" in caught.value.hint
        assert (ledger.count(Watch), ledger.texts()) == (1, {})
        assert len(ledger.append([make.watch(2), make.identity(text_key=key)], writer="w", at_us=2).added) == 2
        assert set(ledger.texts()) == {key}
        assert verify_ledger(ledger) == []


def test_a_fault_that_the_caller_swallows_writes_nothing(postgres, place: str, make) -> None:
    """What was begun on one connection never goes on over another."""
    with Ledger.open(place, mode="append") as ledger:

        def judge() -> list[Row]:
            cut(postgres, place)
            with suppress(Unavailable):
                ledger.count(Watch)
            return [make.watch(2)]

        with pytest.raises(Unavailable):
            ledger.append_made(judge, writer="w", at_us=2)
        assert (ledger.marks(), ledger.count(Watch)) == ({}, 0)


def test_what_is_asked_of_the_connection_itself_is_told_as_well(postgres, place: str) -> None:
    """Whoever asks without a method of the ledger: what leaves it is an error that people meet, not a bug."""

    def ask() -> None:
        with Ledger.open(place, mode="read") as ledger:
            cut(postgres, place)
            bare_cursor(ledger.connection).execute("SELECT count(*) FROM link")

    with pytest.raises(Unavailable) as caught:
        ask()
    assert caught.value.code == "ledger-unreachable"


def test_an_error_told_inside_a_transaction_is_the_one_that_is_heard(postgres, place: str) -> None:
    """Closing the ledger afterwards fails by no other."""

    def ask() -> None:
        with Ledger.open(place, mode="read") as ledger, ledger.snapshot():
            cut(postgres, place)
            ledger.count(Watch)

    with pytest.raises(Unavailable) as caught:
        ask()
    assert caught.value.code == "ledger-unreachable"


def test_an_idle_connection_that_was_cut_is_opened_again(postgres, place: str, make) -> None:
    """Nothing had been asked of it: the next append and the next snapshot go through at once."""
    with Ledger.open(place, mode="append") as ledger:
        ledger.append([make.watch(1)], writer="w", at_us=1)
        assert cut(postgres, place) == 1
        assert len(ledger.append([make.watch(2)], writer="w", at_us=2).added) == 1
        assert cut(postgres, place) == 1
        with ledger.snapshot():
            assert ledger.count(Watch) == 2
        assert cut(postgres, place) == 1
        with pytest.raises(Unavailable, match="cannot be reached"):
            ledger.count(Watch)
        assert ledger.count(Watch) == 2


def test_a_scan_that_is_cut_is_never_a_shorter_answer(postgres, place: str, make) -> None:
    """Rows that were not read are not rows that are not there."""
    with Ledger.open(place, mode="append") as ledger:
        ledger.append([make.driver(number) for number in range(3000)], writer="w", at_us=1)
        scan = ledger.scan(DriverRecord, batch=10)
        next(scan)
        cut(postgres, place)
        with pytest.raises(Unavailable):
            list(scan)
        assert len(list(ledger.scan(DriverRecord))) == 3000


_WRITE_FOREVER = """
import itertools, sys, time
from gpuledger.errors import Unavailable
from gpuledger.ledger import Ledger
from gpuledger.model.identity import IdentityText
from gpuledger.model.rows import DriverRecord, ProcessIdentity

def rows(batch, key):
    for n in range(batch * 100, batch * 100 + 100):
        yield DriverRecord(host="h", device="GPU-a", pid=n, started_at_us=n, context_ms=1, peak_memory_mib=1,
                           gpu_percent=0, memory_percent=0, read_at_us=n + 5000, method="nvml")
    yield ProcessIdentity(host="h", boot_id="b", pid=batch, start_ticks=1, started_at_us=1, seen_at_us=1,
                          method="poll", grade="kernel", text_key=key)

with Ledger.open(sys.argv[1], mode="append") as ledger:
    print("open", flush=True)
    for batch in itertools.count(int(sys.argv[2])):
        while True:
            try:
                key = ledger.key_of(IdentityText(exe=f"/bin/{batch}"))
                ledger.append(list(rows(batch, key)), writer="h.agent", at_us=batch)
                if batch % 7 == 0:
                    ledger.seal(batch, writer="h.agent")
                break
            except Unavailable as error:
                print(error.code, file=sys.stderr, flush=True)
                time.sleep(0.05)
        print(batch, flush=True)
"""


@contextmanager
def writing(place: str, start: int) -> Iterator[subprocess.Popen[str]]:
    """A process that appends until it is killed."""
    process = subprocess.Popen(
        [sys.executable, "-c", _WRITE_FOREVER, place, str(start)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout is not None
    assert process.stdout.readline() == "open\n"
    try:
        yield process
    finally:
        process.kill()


def check(place: str, acknowledged: list[int]) -> int:
    """Everything acknowledged is there, whole batches and nothing else; returns the next batch."""
    with Ledger.open(place, mode="read") as ledger:
        assert verify_ledger(ledger) == []
        batches = {row.pid // 100 for row in ledger.scan(DriverRecord)}
        assert ledger.count(DriverRecord) == 100 * len(batches)
        assert len(ledger.texts()) == len(batches)
    assert set(acknowledged) <= batches
    assert batches == set(range(len(batches)))
    return len(batches)


def test_killed_in_the_middle(place: str) -> None:
    """kill -9 at any moment: the server rolls back what was not committed."""
    start = 0
    for delay in (0.05, 0.11, 0.17, 0.3):
        with writing(place, start) as process:
            time.sleep(delay)
            process.kill()
            output, _ = process.communicate()
        assert process.returncode == -signal.SIGKILL
        start = check(place, [int(line) for line in output.splitlines() if line])
    assert start > 1


def test_connections_cut_again_and_again(postgres, place: str) -> None:
    """A writer that tries again loses nothing and adds nothing twice, wherever it was cut."""
    with writing(place, 0) as process:
        cuts = 0
        for number in range(25):
            time.sleep(0.02 + number % 5 * 0.013)
            cuts += cut(postgres, place)
        time.sleep(0.3)
        process.kill()
        output, _ = process.communicate()
    assert cuts > 5
    acknowledged = [int(line) for line in output.splitlines() if line]
    assert acknowledged
    check(place, acknowledged)


@pytest.fixture
def own_server() -> Iterator[Server]:
    """A server of this test alone, to be stopped."""
    from postgres_server import programs

    where = programs()
    assert where is not None
    server = Server(where)
    yield server
    server.remove()


@pytest.mark.usefixtures("postgres")
def test_a_server_that_is_stopped_crashed_and_started_again(own_server: Server) -> None:
    """While it is away that is said; once it is back the same process goes on where it stood."""
    place = own_server.new_ledger()
    with writing(place, 0) as process:
        for mode in ("fast", "immediate"):
            time.sleep(0.2)
            own_server.stop(mode)
            time.sleep(0.2)
            own_server.start()
        time.sleep(0.5)
        process.kill()
        output, told = process.communicate()
    acknowledged = [int(line) for line in output.splitlines() if line]
    assert set(told.split()) == {"ledger-unreachable"}
    # fsync is off in tests, so a crash of the server is one of its processes, not of the machine
    assert check(place, acknowledged) >= len(acknowledged)


_APPEND_SHUFFLED = """
import random, sys
from gpuledger.ledger import Ledger
from gpuledger.model.rows import DriverRecord
numbers = list(range(600))
random.Random(sys.argv[2]).shuffle(numbers)
with Ledger.open(sys.argv[1], mode="append") as ledger:
    print("open", flush=True)
    sys.stdin.readline()
    for start in range(0, 600, 60):
        rows = [DriverRecord(host="h", device="GPU-a", pid=n, started_at_us=n, context_ms=1, peak_memory_mib=1,
                             gpu_percent=0, memory_percent=0, read_at_us=n + 5000, method="nvml")
                for n in numbers[start : start + 60]]
        ledger.append(rows, writer=f"h{sys.argv[2]}.import", at_us=1)
"""


def test_writers_that_bring_the_same_rows_at_once(place: str) -> None:
    """In any order: each row is there once, in somebody's chain, and nobody fails."""
    processes = [
        subprocess.Popen([sys.executable, "-c", _APPEND_SHUFFLED, place, str(number)], stdin=subprocess.PIPE,
                         stdout=subprocess.PIPE, text=True)
        for number in range(4)
    ]  # fmt: skip
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "open\n"
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
    for process in processes:
        process.communicate(timeout=60)
    assert [process.returncode for process in processes] == [0] * 4
    with Ledger.open(place, mode="read") as ledger:
        assert sorted(row.pid for row in ledger.scan(DriverRecord)) == list(range(600))
        assert verify_ledger(ledger) == []


def test_many_sealers_make_one_chain_of_seals(place: str, make) -> None:
    """Each follows the one before."""
    with Ledger.open(place, mode="append") as ledger:
        ledger.append([make.watch(1)], writer="w", at_us=1)

    def work(name: str) -> None:
        with Ledger.open(place, mode="append") as ledger:
            for number in range(10):
                ledger.seal(number, writer=name)

    threads = [threading.Thread(target=work, args=(f"s{number}",)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with Ledger.open(place, mode="read") as ledger:
        assert ledger.count(Seal) == 40
        assert verify_ledger(ledger) == []


_TAKE_THE_LAST_DEVICE = """
import sys
from gpuledger.errors import Refused
from gpuledger.ledger import Ledger
from gpuledger.model.lifecycle import Placement, State, Transition
from gpuledger.operations.transition import record_transitions
with Ledger.open(sys.argv[1], mode="append") as ledger:
    print("open", flush=True)
    sys.stdin.readline()
    where = Placement(class_name="L4", devices=("GPU-last",))
    one = Transition(workload=f"job-{sys.argv[2]}", event_id="e", state=State.PROVISIONING, at_us=1_800_000_000_000_000,
                     source="test", placement=where)
    try:
        record_transitions(ledger, [one], writer=f"h{sys.argv[2]}.transition", now_us=1_800_000_000_000_000)
        print("taken")
    except Refused as error:
        print(error.code)
"""


def test_two_controllers_cannot_both_take_the_last_device(place: str) -> None:
    """Judged alone, each after the other: one gets it, the others are refused by name."""
    processes = [
        subprocess.Popen([sys.executable, "-c", _TAKE_THE_LAST_DEVICE, place, str(number)], stdin=subprocess.PIPE,
                         stdout=subprocess.PIPE, text=True)
        for number in range(6)
    ]  # fmt: skip
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "open\n"
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
    told = sorted(process.communicate(timeout=60)[0].strip() for process in processes)
    assert told == ["device-full"] * 5 + ["taken"]


def _history(ledger: Ledger, workloads: int) -> None:
    from gpuledger.model.lifecycle import Placement, State, Transition
    from gpuledger.model.moments import HOUR_US
    from gpuledger.operations.transition import record_transitions

    noon = 494_000 * HOUR_US
    told: list[Any] = []
    for number in range(workloads):
        where = Placement(class_name="L4", devices=(f"GPU-{number}",))
        for state, at_us in (
            (State.PROVISIONING, noon),
            (State.RUNNING, noon + 1),
            (State.STOPPED, noon + 5 * HOUR_US),
        ):
            told.append(Transition(workload=f"w{number}", event_id=state.value, state=state, at_us=at_us, source="test",
                                   placement=where))  # fmt: skip
    record_transitions(ledger, told, writer="h.transition", now_us=noon + 6 * HOUR_US)


_METER = """
import sys
from gpuledger.errors import Unavailable
from gpuledger.ledger import Ledger
from gpuledger.operations.meter import meter
try:
    with Ledger.open(sys.argv[1], mode="append") as ledger:
        meter(ledger, now_us=int(sys.argv[2]), writer=sys.argv[3])
except Unavailable as error:
    print(error.code)
"""


def test_a_pass_that_is_cut_books_all_or_nothing(postgres, place: str, make) -> None:
    """Meters race, their connections are cut; in the end every hour is booked once, and a last pass changes nothing."""
    from gpuledger.model.moments import HOUR_US

    with Ledger.open(place, mode="append") as ledger:
        _history(ledger, 300)
    now_us = make.noon + 7 * HOUR_US
    codes: set[str] = set()
    for turn in range(6):
        processes = [
            subprocess.Popen([sys.executable, "-c", _METER, place, str(now_us), f"h{number}.meter"],
                             stdout=subprocess.PIPE, text=True)
            for number in range(2)
        ]  # fmt: skip
        while turn < 4 and any(process.poll() is None for process in processes):
            cut(postgres, place)
            time.sleep(0.03 * turn + 0.01)
        for process in processes:
            codes.update(process.communicate(timeout=60)[0].split())
        assert [process.returncode for process in processes] == [0, 0]
        with Ledger.open(place, mode="read") as ledger:
            assert ledger.count(UsageRecord) in (0, 1500)
            assert verify_ledger(ledger) == []
    assert codes <= {"ledger-unreachable", "passes-collide"}
    assert "ledger-unreachable" in codes
    with Ledger.open(place, mode="read") as ledger:
        assert (ledger.count(UsageRecord), ledger.count(Pass)) == (1500, 1)


def test_a_row_of_another_writer_at_the_same_moment(place: str, make) -> None:
    """An append looks again and finds it known; one whose rows were made is refused whole."""
    with Ledger.open(place, mode="append") as one, Ledger.open(place, mode="append") as other:

        def judge() -> list[Row]:
            other.append([make.watch(1)], writer="other", at_us=1)
            return [make.watch(2), make.watch(1)]

        with pytest.raises(Refused) as caught:
            one.append_made(judge, writer="one", at_us=1, are_new=True)
        assert caught.value.code == "append-only"
        assert one.marks() == {"other": 1}

        started = threading.Event()

        def slow() -> None:
            with psycopg.connect(place) as connection:
                connection.execute(
                    "INSERT INTO watch SELECT 'slow', 1, host, device, source, method, interval_ms, 7, 8, status, "
                    "readings, new_rows, living, detail FROM watch"
                )
                started.set()
                time.sleep(0.3)
                connection.commit()

        thread = threading.Thread(target=slow)
        thread.start()
        started.wait()
        row = next(one.scan(Watch))
        from dataclasses import replace

        appended = one.append([replace(row, writer="", number=0, since_us=7, until_us=8)], writer="one", at_us=2)
        thread.join()
        assert (appended.added, appended.known) == ((), 1)
