"""``admit`` on a server, where many write at once: who waits for whom, what stands between, and connections cut."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

import psycopg
import pytest

from gpuledger.errors import Refused, Unavailable
from gpuledger.ledger import Ledger, verify_ledger
from gpuledger.ledger.postgres_pipeline import Pipeline
from gpuledger.model.workload_rows import ExpectedEnd, Hold, WorkloadEvent
from gpuledger.operations.apply import apply
from quota_desk import Desk


@pytest.fixture
def place(postgres) -> str:
    """The URL of an empty ledger, as the application."""
    return str(postgres.new_ledger())


@pytest.fixture
def desk(place: str) -> Iterator[Desk]:
    """A team of two, whose members may have one device each, and another team."""
    made = Desk(place, '{user: "*", devices: 1}\n{team: vision, devices: 2}')
    yield made
    assert verify_ledger(made.ledger) == []
    made.ledger.close()


@pytest.fixture
def beside(place: str, desk: Desk) -> Iterator[Ledger]:
    """Another connection, which does not wait long."""
    assert desk.versions
    with Ledger.open(place, mode="append", busy_timeout_ms=200) as ledger:
        yield ledger


def in_between(monkeypatch: pytest.MonkeyPatch, ledger: Ledger, act: Callable[[], object]) -> None:
    """The next time that a ledger has judged and not yet written, this happens."""
    original = ledger.append_made

    def append_made(make: Callable[[], Any], **words: Any) -> object:
        def made() -> Any:
            rows = make()
            monkeypatch.undo()
            act()
            return rows

        return original(made, **words)

    monkeypatch.setattr(ledger, "append_made", append_made)


def test_only_those_of_one_scope_wait_for_each_other(desk: Desk, beside: Ledger, monkeypatch) -> None:
    """While al is being answered, cy of another team is too; bo of the same team waits, and so does a transition."""
    desk.ask("first", "zoe")  # so that the placement stands, which all of them ask for

    def meanwhile() -> None:
        assert desk.ask("c", "cy", ledger=beside, writer="box.other").admitted
        for ask in (
            lambda: desk.ask("b", "bo", ledger=beside, writer="box.other"),
            lambda: desk.tell("t", "pending", 0, ledger=beside, requested="L4"),
        ):
            with pytest.raises(Unavailable) as caught:
                ask()
            assert caught.value.code == "ledger-busy"

    in_between(monkeypatch, desk.ledger, meanwhile)
    assert desk.ask("a", "al").admitted
    assert desk.ask("b", "bo", ledger=beside, writer="box.other").admitted


def test_a_refusal_costs_the_next_question_nothing(desk: Desk) -> None:
    """Also the first one of a process that has read in parts for long: the connection answers as before."""
    assert desk.ask("a", "al").admitted
    for _ in range(8):
        assert verify_ledger(desk.ledger) == []
        assert desk.ask("a", "al").known
    with pytest.raises(Refused):
        desk.ask("a", "al", count=2)
    assert desk.ask("a", "al").known
    assert verify_ledger(desk.ledger) == []


def test_a_question_takes_five_round_trips(desk: Desk, beside: Ledger, monkeypatch) -> None:
    """Begin and locks; who wrote and what; what they hold, whose it is, until when; the chain; all rows and the end.

    However much others wrote meanwhile; and four where nobody did. A server far away is asked no more often.
    """
    for number in range(3):
        assert desk.ask(f"before-{number}", f"u{number}", until=60).admitted
        assert desk.ask(f"others-{number}", f"v{number}", until=60, ledger=beside, writer="box.other").admitted
    trips: list[int] = []
    flush = Pipeline.flush

    def counted(pipeline: Pipeline, driver: Any) -> None:
        if pipeline._waiting:
            trips.append(len(pipeline._waiting))
        flush(pipeline, driver)

    monkeypatch.setattr(Pipeline, "flush", counted)
    monkeypatch.setattr(psycopg.Connection, "execute", None)  # nor by any other way
    assert desk.ask("mine", "u9", until=60).admitted
    assert len(trips) == 5, trips
    trips.clear()
    assert desk.ask("more", "u8", until=60).admitted
    assert len(trips) == 4, trips


def test_a_policy_waits_until_all_are_answered(desk: Desk, place: str, tmp_path, monkeypatch) -> None:
    """Nobody grants by the policy before while another comes into force."""
    path = tmp_path / "policy.yaml"
    path.write_text("quotas:\n  - {user: al, devices: 0}\n")

    def meanwhile() -> None:
        with pytest.raises(Unavailable) as caught:
            apply(lambda: Ledger.open(place, mode="append", busy_timeout_ms=200), path, now_us=desk.at(0), writer="b.a")
        assert caught.value.code == "ledger-busy"

    in_between(monkeypatch, desk.ledger, meanwhile)
    assert desk.ask("a", "al").admitted
    apply(lambda: Ledger.open(place, mode="append"), path, now_us=desk.at(0), writer="b.a")
    assert not desk.ask("b", "al", 20).admitted


def test_one_chain_of_two_processes_hides_nothing(desk: Desk, beside: Ledger, monkeypatch) -> None:
    """Both write as HOST.admit: what the other wrote just before one's own rows is seen by the next question."""
    desk.ask("first", "zoe")
    took = {}
    in_between(
        monkeypatch, desk.ledger, lambda: took.update(report=desk.ask("b", "bo", ledger=beside, devices=("GPU-7",)))
    )
    assert desk.ask("c", "cy").admitted
    assert took["report"].admitted
    report = desk.ask("b2", "bo")
    assert not report.admitted
    assert [holder.workload for holder in report.uses[0].holders] == ["b"]
    assert [full.device for full in desk.ask("d", "dee", devices=("GPU-7",)).full] == ["GPU-7"]


def test_what_others_take_on_an_empty_ledger_is_seen(place: str) -> None:
    """Also by one who looked while there was nothing at all."""
    first, second = Desk(place), Desk(place)
    assert first.ask("a", "al", check=True, devices=("GPU-1",)).admitted
    assert second.ask("b", "bo", devices=("GPU-1",)).admitted
    assert [full.device for full in first.ask("a", "al", check=True, devices=("GPU-1",)).full] == ["GPU-1"]
    first.ledger.close()
    second.ledger.close()


def test_the_first_of_a_kind_is_asked_for_by_many(place: str, desk: Desk) -> None:
    """Users of different teams ask for a class that nobody had before: nobody fails."""
    begin = Barrier(6)

    def ask(me: int) -> list[bool]:
        answers = []
        with Ledger.open(place, mode="append", busy_timeout_ms=60_000) as ledger:
            for turn in range(10):
                begin.wait(60)
                report = desk.ask(f"w{me}-{turn}", f"u{me}", 30 * turn, ledger=ledger, writer=f"box.a{me}",
                                  class_name=f"class-{turn}")  # fmt: skip
                answers.append(report.admitted)
        return answers

    with ThreadPoolExecutor(6) as pool:
        assert list(pool.map(ask, range(6))) == [[True] * 10] * 6


def test_cut_in_the_middle(postgres, place: str, desk: Desk, monkeypatch) -> None:
    """Said by name, nothing of it is there, and asked again it is answered; an idle connection is opened anew."""
    in_between(monkeypatch, desk.ledger, lambda: postgres.cut(place))
    with pytest.raises(Unavailable) as caught:
        desk.ask("a", "al", until=60)
    assert (caught.value.code, caught.value.exit_status) == ("ledger-unreachable", 5)
    assert [desk.ledger.count(kind) for kind in (WorkloadEvent, Hold, ExpectedEnd)] == [0, 0, 0]
    assert desk.ask("a", "al", until=60).admitted
    assert postgres.cut(place) == 1
    assert not desk.ask("b", "al").admitted
    assert postgres.cut(place) == 1
    assert desk.ask("c", "bo").admitted


ASKED = 200
ALLOWED = 120

PROGRAM = f"""
import sys, time
from gpuledger.errors import Unavailable
from gpuledger.ledger import Ledger
from gpuledger.model.lifecycle import Placement
from gpuledger.model.moments import HOUR_US, parse_moment
from gpuledger.model.quotas import AdmitRequest
from gpuledger.operations.admit import admit
now_us = parse_moment("2026-07-27T10:00:00Z", now_us=0)
told, codes = [], set()
with Ledger.open(sys.argv[1], mode="append", busy_timeout_ms=60_000) as ledger:
    print("ready", flush=True)
    for number in range({ASKED}):
        request = AdmitRequest(
            workload=f"w{{number}}", placement=Placement(class_name="L4", machine=f"n{{number % 7}}"), user="zoe",
            span_us=HOUR_US,
        )
        while True:
            try:
                told.append(admit(ledger, request, writer=sys.argv[2], now_us=now_us).admitted)
                break
            except Unavailable as error:
                codes.add(error.code)
                time.sleep(0.02)
print(told.count(True), *codes, flush=True)
"""


def test_cut_again_and_again(postgres, place: str) -> None:
    """Two ask for the same workloads, by one chain: each is held once, whole, and the quota is full and no fuller."""
    Desk(place, f"{{user: zoe, devices: {ALLOWED}}}").ledger.close()
    runs = [
        subprocess.Popen([sys.executable, "-c", PROGRAM, place, "box.admit"], stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    for run in runs:
        assert run.stdout is not None
        assert run.stdout.readline() == "ready\n"
    cuts = 0
    while any(run.poll() is None for run in runs) and cuts < 40:
        time.sleep(0.05 + cuts % 7 * 0.011)
        cuts += postgres.cut(place)
    answers = [run.communicate(timeout=120)[0].split() for run in runs]
    assert cuts > 4
    assert [answer[0] for answer in answers] == [str(ALLOWED)] * 2
    assert {code for answer in answers for code in answer[1:]} <= {"ledger-unreachable"}
    with Ledger.open(place, mode="read") as ledger:
        assert verify_ledger(ledger) == []
        events = [event.workload for event in ledger.scan(WorkloadEvent)]
        assert len(events) == len(set(events)) == ALLOWED
        assert sorted(hold.workload for hold in ledger.scan(Hold)) == sorted(events)
        assert sorted(end.workload for end in ledger.scan(ExpectedEnd)) == sorted(events)


def test_askers_of_disjoint_scopes_are_answered_side_by_side(place: str, desk: Desk) -> None:
    """Neither waits for the transaction of the other, which waits for it."""
    desk.ask("first", "zoe")
    both_judged = Barrier(2)

    def ask(user: str) -> bool:
        with Ledger.open(place, mode="append", busy_timeout_ms=20_000) as ledger, pytest.MonkeyPatch.context() as patch:
            in_between(patch, ledger, lambda: both_judged.wait(20))
            return desk.ask(user, user, ledger=ledger, writer=f"box.{user}").admitted

    answers: list[bool] = []
    threads = [threading.Thread(target=lambda user=user: answers.append(ask(user))) for user in ("al", "cy")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == [True, True]
