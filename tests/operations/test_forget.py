"""``forget``: names go, and nothing else."""

from __future__ import annotations

import pytest

from gpuledger.errors import Misconfigured, Refused
from gpuledger.ledger.store import Ledger
from gpuledger.model.forgetting import Choice, ForgetReport
from gpuledger.model.lifecycle import Placement, State, Transition
from gpuledger.model.meters import GPU_RESERVED
from gpuledger.model.missing import Missing
from gpuledger.model.moments import SECOND_US
from gpuledger.model.workload_rows import WorkloadEvent
from gpuledger.operations.blind import blind
from gpuledger.operations.explain import explain
from gpuledger.operations.forget import forget
from gpuledger.operations.journal import journal
from gpuledger.operations.meter import meter
from gpuledger.operations.smi import smi
from gpuledger.operations.transition import heartbeat, record_transitions
from gpuledger.operations.usage import usage
from gpuledger.operations.usage_reserved import usage_reserved
from gpuledger.operations.verify import verify

ANY_TIME = Missing("not given")


def ask(box, *, done: bool, now: float = 130, ledger: Ledger | None = None, **words) -> ForgetReport:
    """Forget by these words at a minute of the day."""
    return forget(
        ledger or box.ledger, Choice(**{"before_us": ANY_TIME, **words}),
        typed=tuple((f"--{name}", str(value)) for name, value in words.items()), done=done, host=box.host,
        writer=f"{box.host}.forget", now_us=box.at(now),
    )  # fmt: skip


def answers(box, now: float = 130) -> tuple:
    """What the reading verbs say of the whole morning, names left out."""
    window = {"since_us": box.at(0), "until_us": box.at(120), "now_us": box.at(now)}
    used = usage(box.ledger, meter="gpu.context", by=("service",), **window)
    unseen = blind(box.ledger, **window)
    held = smi(box.ledger, at_us=box.at(100), now_us=box.at(now)).devices[0].processes
    return (
        used.total, sorted(row.quantity for row in used.rows), used.unattributed, used.watched,
        unseen.unattributed_ms, [(one.pid, one.memory) for one in held],
    )  # fmt: skip


def bytes_of(box) -> bytes:
    """Everything that the ledger keeps on disk."""
    return b"".join(path.read_bytes() for path in box.place.parent.iterdir() if path.name.startswith(box.place.name))


@pytest.mark.parametrize("metered", [False, True])
def test_amounts_stand_and_names_are_gone(box, metered: bool) -> None:
    """Totals, blind spots, chains and seals are the same; the text is in no byte of the ledger."""
    box.tell_a_morning()
    if metered:
        meter(box.ledger, now_us=box.at(126), writer="box.meter")
        box.ledger.seal(box.at(127), writer="box.agent")
    before = answers(box)
    assert b"/usr/bin/chat" in bytes_of(box)
    report = ask(box, done=True, subject="unit:chat.service")
    assert (report.dropped, report.quantity, report.verified) == (1, 3_600_000, True)
    assert answers(box) == before
    assert b"/usr/bin/chat" not in bytes_of(box)
    assert b"chat.service" not in bytes_of(box)
    assert b"/usr/bin/tts" in bytes_of(box)
    assert verify(box.ledger, now_us=box.at(130)).ok
    window = {"since_us": box.at(0), "until_us": box.at(120), "now_us": box.at(130)}
    rows = usage(box.ledger, meter="gpu.context", by=("service", "user"), **window).rows
    assert [row.key for row in rows] == [("forgotten", "-"), ("unit:tts.service", "al")]
    told = explain(box.ledger, "service:forgotten", meter="gpu.context", **window)
    assert dict(told.figures)["quantity"] == 3_600_000


def test_asking_changes_nothing(box) -> None:
    """What would be dropped is sized by subject; a ledger opened to read is enough for it."""
    box.tell_a_morning()
    marks = box.ledger.marks()
    with Ledger.open(box.place, mode="read") as reader:
        report = ask(box, done=False, ledger=reader, user="al")
    assert [(line.subject, line.texts, line.quantity, line.open) for line in report.lines] == [
        ("unit:chat.service", 1, 3_600_000, 0), ("unit:tts.service", 1, 1_800_000, 1),
    ]  # fmt: skip
    assert (report.done, report.dropped, report.total, report.words) == (False, 0, 5_400_600, "--user al")
    assert isinstance(report.verified, Missing)
    assert (box.ledger.marks(), len(box.ledger.texts())) == (marks, 2)


def test_nothing_chosen_is_refused(box) -> None:
    """Everything is never meant."""
    with pytest.raises(Misconfigured, match="nothing says what to forget"):
        ask(box, done=True)


def test_a_reader_cannot_forget(box) -> None:
    """Deleting needs the right to write."""
    box.tell_a_morning()
    with Ledger.open(box.place, mode="read") as reader, pytest.raises(Refused, match="opened to read"):
        ask(box, done=True, ledger=reader, user="al")


def test_what_lived_on_is_not_old(box) -> None:
    """A daemon that was read long before and is seen alive since is kept; what was last seen before is not."""
    box.tell_a_morning()
    assert [line.subject for line in ask(box, done=False, before_us=box.at(100)).lines] == ["unit:chat.service"]
    assert [line.subject for line in ask(box, done=False, before_us=box.at(20)).lines] == []
    assert len(ask(box, done=False, before_us=box.at(125)).lines) == 2


def test_the_journal_says_how_many_and_never_who(box) -> None:
    """The deed is evidence; the name is not."""
    box.tell_a_morning()
    ask(box, done=True, subject="unit:chat.service")
    lines = journal(box.ledger, since_us=box.at(129), until_us=box.at(131)).lines
    assert [line.sentence for line in lines] == ["1 identity text forgotten; amounts stand"]
    assert ask(box, done=True, subject="unit:chat.service").dropped == 0
    assert len(journal(box.ledger, since_us=box.at(129), until_us=box.at(131)).lines) == 1


def test_a_running_agent_names_the_same_program_anew(machine) -> None:
    """It had the forgotten key in memory: a process started afterwards is named, what it named before is not."""
    agent = machine.agent(flush_us=SECOND_US)
    machine.start(7, "chat")
    machine.watch(agent, 3)
    machine.finish(7)
    machine.watch(agent, 2)
    with Ledger.open(machine.ledger.place, mode="append") as other:
        report = forget(
            other, Choice(user="al", before_us=ANY_TIME), typed=(), done=True, host="box", writer="box.forget",
            now_us=machine.clock.now_us(),
        )  # fmt: skip
    assert report.dropped == 1
    machine.start(8, "chat")
    machine.watch(agent, 3)
    machine.finish(8)
    machine.watch(agent, 2)
    agent.stop()
    now_us = machine.clock.now_us()
    rows = usage(machine.ledger, meter="gpu.context", by=("subject",), since_us=0, until_us=now_us, now_us=now_us).rows
    assert {row.key[0]: row.quantity for row in rows} == {"script:/usr/bin/chat by al": 3000, "forgotten": 3000}
    assert verify(machine.ledger, now_us=now_us).ok


def test_a_process_that_lives_on_stays_forgotten(machine) -> None:
    """Its start is what names its context, and that was forgotten; its next start is read anew."""
    agent = machine.agent(flush_us=SECOND_US)
    machine.start(7, "chat")
    machine.watch(agent, 3)
    forget(
        machine.ledger, Choice(user="al", before_us=ANY_TIME), typed=(), done=True, host="box", writer="box.forget",
        now_us=machine.clock.now_us(),
    )  # fmt: skip
    machine.watch(agent, 3)
    agent.stop()
    report = smi(machine.ledger, at_us=machine.clock.now_us(), now_us=machine.clock.now_us())
    assert [one.service for one in report.devices[0].processes] == ["forgotten"]


def tell(box, name: str, state: str, minute: float, *, now: float = 10, imported: bool = False, **words) -> None:
    """One transition of a workload, placed when it is admitted."""
    told = Transition(
        workload=name, event_id=f"{name}-{state}-{minute}", state=State(state), at_us=box.at(minute), source="ctl",
        placement=Placement(class_name="L4") if state == "provisioning" else None, **words,
    )  # fmt: skip
    record_transitions(box.ledger, [told], writer="box.transition", now_us=box.at(now), imported=imported)


def test_a_text_is_as_old_as_the_last_event_that_names_it(box) -> None:
    """Of a stopped workload; no byte of it is left, and what it used is counted on."""
    tell(box, "old", "provisioning", 1, user="alice-of-old")
    tell(box, "old", "running", 2)
    tell(box, "old", "stopped", 62, now=63)
    meter(box.ledger, now_us=box.at(126), writer="box.meter")
    assert ask(box, done=True, before_us=box.at(62)).dropped == 0
    (line,) = ask(box, done=False, before_us=box.at(63)).lines
    assert line.read_us == box.at(62)
    assert b"alice-of-old" in bytes_of(box)
    assert ask(box, done=True, before_us=box.at(63)).dropped == 1
    assert b"alice-of-old" not in bytes_of(box)
    window = {"since_us": box.at(0), "until_us": box.at(120), "now_us": box.at(130)}
    used = usage_reserved(box.ledger, meter=GPU_RESERVED, by=("user",), **window)
    assert [(row.key, row.quantity) for row in used.rows] == [(("-",), 3600)]
    assert verify(box.ledger, now_us=box.at(130)).ok


def test_an_open_workload_keeps_every_text_of_its_life(box) -> None:
    """The text of its admission names its hours, whatever its later events are labelled; the life before is over."""
    tell(box, "w", "provisioning", 1, user="first-life")
    tell(box, "w", "stopped", 2)
    tell(box, "w", "provisioning", 3, user="alice")
    tell(box, "w", "running", 4)
    tell(box, "w", "running", 5, labels=(("phase", "two"),))
    assert len(box.ledger.texts()) == 3
    assert ask(box, done=True, before_us=box.at(60)).dropped == 1
    assert {text.user for text in box.ledger.texts().values()} == {"alice"}
    tell(box, "w", "stopped", 30, now=31)
    assert ask(box, done=True, before_us=box.at(60)).dropped == 2


def test_what_nobody_knows_to_be_open_still_is_as_old_as_what_is_known(box) -> None:
    """Open history ends with what its importer knew, and a silent controller's workload with its last beat."""
    tell(box, "trace", "provisioning", 1, user="carol", imported=True)
    tell(box, "trace", "running", 2, imported=True)
    assert ask(box, done=False, before_us=box.at(2)).texts == 0
    assert ask(box, done=False, before_us=box.at(3)).texts == 1
    heartbeat(box.ledger, "ctl", writer="box.transition", at_us=box.at(40), interval_us=60 * SECOND_US)
    assert ask(box, done=False, before_us=box.at(40)).texts == 0
    assert ask(box, done=False, before_us=box.at(41)).texts == 1


def test_whose_workload_it_was_can_be_forgotten(box) -> None:
    """By user, or once it has long stopped; one that still runs was seen a moment ago; its events stand."""
    told = [
        Transition(
            workload=name, event_id=state, state=State(state), at_us=box.at(minute), source="ctl", user="alice",
            placement=Placement(class_name="L4") if state == "provisioning" else None,
        )
        for name, state, minute in [
            ("old", "provisioning", 1), ("old", "stopped", 2), ("new", "provisioning", 1), ("new", "running", 2),
        ]
    ]  # fmt: skip
    record_transitions(box.ledger, told, writer="box.transition", now_us=box.at(10))
    report = ask(box, done=True, before_us=box.at(60))
    assert (report.dropped, [line.subject for line in report.lines]) == (1, ["workload:old"])
    assert ask(box, done=True, user="alice").dropped == 1
    assert b"alice" not in bytes_of(box)
    assert box.ledger.count(WorkloadEvent) == 4
