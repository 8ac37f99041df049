"""What the ledger knows of who holds a device now: only what it can be sure of."""

from __future__ import annotations

import os
from typing import Any

import pytest

from gpuledger.model.missing import Missing
from gpuledger.operations.known_holders import Held, KnownHolder, known_holders
from gpuledger.operations.pulse import Pulse, pulse_path, tell

NO_START = Missing("accounting: disabled")


def held(box: Any, pid: int = 7, *, ticks: int = 0, start: float | None = None) -> Held:
    started = NO_START if start is None else box.at(start)
    return Held(device=box.gpu, pid=pid, start_ticks=ticks, started_at_us=started)


def ask(box: Any, *wanted: Held, minute: float = 60, boot_id: str = "boot") -> dict[int, KnownHolder]:
    """What is known at a minute, by pid."""
    found = known_holders(box.ledger, wanted, host=box.host, boot_id=boot_id, now_us=box.at(minute))
    assert all(device == box.gpu for device, _ in found)
    return {pid: known for (_, pid), known in found.items()}


def beat(box: Any, minute: float = 60, **words: Any) -> None:
    """An agent has looked a moment ago."""
    descriptor = os.open(pulse_path(box.ledger.place), os.O_RDWR | os.O_CREAT)
    fields: dict[str, Any] = {"host": box.host, "looked_us": box.at(minute), "interval_us": 1_000_000}
    tell(descriptor, Pulse(**fields | words))
    os.close(descriptor)


@pytest.fixture
def chat(box: Any) -> Any:
    """chat.service, read by the agent, seen on the GPU from 20 to 60 without a driver's start."""
    box.append(
        box.named(7, 15, "chat", seen=20), box.seen(7, 20, 40), box.seen(7, 40, 55), box.seen(7, 55, 60), minute=60
    )  # fmt: skip
    return box


def test_a_process_is_known_by_boot_pid_and_start(chat: Any) -> None:
    """Its text is the ledger's; another boot, another start, another pid are somebody else."""
    known = ask(chat, held(chat, ticks=7))[7]
    assert known.text is not None
    assert (known.text.unit, known.start_ticks) == ("chat.service", 7)
    assert ask(chat, held(chat, ticks=8))[7].text is None
    assert ask(chat, held(chat, ticks=7), boot_id="later")[7].text is None
    assert ask(chat, held(chat, ticks=7), boot_id="") == {}
    assert ask(chat, held(chat, pid=8)) == {}


def test_since_the_agents_first_sight_of_an_unbroken_run_while_it_looks(chat: Any) -> None:
    """At least so long; without a beating agent nobody knows what happened since it looked last."""
    beat(chat)
    known = ask(chat, held(chat, ticks=7))[7]
    assert (known.since_us, known.is_at_least) == (chat.at(20), True)
    assert isinstance(ask(chat, held(chat, ticks=7), minute=70)[7].since_us, Missing)
    beat(chat, answered=False)
    assert isinstance(ask(chat, held(chat, ticks=7))[7].since_us, Missing)
    beat(chat, host="elsewhere")
    assert isinstance(ask(chat, held(chat, ticks=7))[7].since_us, Missing)


def test_a_gap_in_looking_begins_the_run_anew(box: Any) -> None:
    """It may have let go and come back in it."""
    box.append(box.named(7, 15, "chat", seen=20), box.seen(7, 20, 30), box.seen(7, 50, 60), minute=60)
    beat(box)
    assert ask(box, held(box, ticks=7))[7].since_us == box.at(50)


def test_what_was_missed_or_is_another_process_is_not_this_run(box: Any) -> None:
    """A context that was gone, and an earlier life of the pid."""
    box.append(
        box.named(7, 15, "chat", seen=20), box.seen(7, 20, 30, gone=31), box.seen(7, 31, 60),
        box.named(8, 15, "old", seen=20), box.seen(8, 20, 30), minute=60,
    )  # fmt: skip
    beat(box)
    assert ask(box, held(box, ticks=7))[7].since_us == box.at(31)
    assert ask(box, held(box, pid=8, ticks=99))[8] == KnownHolder(
        start_ticks=99, text=None, since_us=Missing("no agent has seen it without a break up to now"), is_at_least=False
    )


def test_the_drivers_start_is_exact_where_the_agent_could_read_it(box: Any) -> None:
    """A user's nvidia-smi gives none; root's NVML did."""
    box.append(box.named(7, 15, "chat", seen=20), box.seen(7, 18, 60, start=18), minute=60)
    beat(box)
    known = ask(box, held(box, ticks=7))[7]
    assert (known.since_us, known.is_at_least) == (box.at(18), False)


def test_who_cannot_be_read_is_named_by_the_agents_sighting(chat: Any) -> None:
    """While it looks it vouches for pid and device; else only the same driver's start does."""
    assert ask(chat, held(chat)) == {}
    beat(chat)
    known = ask(chat, held(chat))[7]
    assert known.text is not None
    assert known.text.unit == "chat.service"


def test_without_a_beating_agent_the_same_start_of_the_context_names_it(box: Any) -> None:
    """Within two seconds: two clocks; any other start is another context."""
    box.append(box.named(7, 15, "chat", seen=20), box.seen(7, 18, 60, start=18), minute=60)
    known = ask(box, held(box, start=18.02), minute=600)[7]
    assert known.text is not None
    assert ask(box, held(box, start=19), minute=600) == {}


def test_a_forgotten_text_names_nobody(chat: Any) -> None:
    """Its amounts stand, its name is gone."""
    (key,) = chat.ledger.texts()
    chat.ledger.forget([key])
    assert ask(chat, held(chat, ticks=7))[7].text is None


def test_the_last_program_of_a_process_counts(box: Any) -> None:
    """It became another one by exec."""
    box.append(
        box.named(7, 15, "shell", seen=20), box.named(7, 15, "chat", seen=30, exec_number=1), box.seen(7, 20, 60),
        minute=60,
    )  # fmt: skip
    known = ask(box, held(box, ticks=7))[7]
    assert known.text is not None
    assert known.text.unit == "chat.service"


def test_dumps_of_another_time_prove_nothing(box: Any) -> None:
    """An import is no look of this machine's agent."""
    box.append(box.named(7, 15, "chat", seen=20), box.seen(7, 20, 60, method="import"), minute=60)
    beat(box)
    assert ask(box, held(box)) == {}
