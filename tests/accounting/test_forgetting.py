"""Which texts a choice means, and what loses its name."""

from __future__ import annotations

import pytest

from gpuledger.accounting.amounts import Amount, OpenContext
from gpuledger.accounting.forgetting import chosen, lines, still_named, unknown_names
from gpuledger.accounting.owners import Naming
from gpuledger.model.forgetting import Choice
from gpuledger.model.identity import IdentityText
from gpuledger.model.missing import Missing
from gpuledger.model.policy import Policy, UserOwner

ANY_TIME = Missing("not given")
TEXTS = {
    "a": IdentityText(exe="/usr/bin/ollama", unit="ollama.service", user="ollama"),
    "b": IdentityText(exe="/usr/bin/python3", command="python3 /home/al/train.py", user="al"),
    "c": IdentityText(exe="/usr/bin/python3", command="python3 /home/al/train.py --epochs 3", user="al"),
    "d": IdentityText(exe="/usr/bin/python3", command="python3 /home/bo/train.py", user="bo"),
}
SEEN_US = {"a": 900, "b": 100, "c": 500}


@pytest.mark.parametrize(
    ("words", "keys"),
    [
        ({"user": "al"}, "bc"),
        ({"user": "nobody"}, ""),
        ({"subject": "script:/home/al/train.py by al"}, "bc"),
        ({"service": "ollama"}, "a"),
        ({"before_us": 500}, "b"),
        ({"before_us": 10_000}, "abc"),
        ({"user": "al", "before_us": 500}, "b"),
        ({"user": "al", "service": "ollama"}, ""),
    ],
)
def test_what_fits_everything_given(words: dict, keys: str) -> None:
    """Several options are narrower, never wider; a text that no row was ever read for has no last sight."""
    choice = Choice(**{"before_us": ANY_TIME, **words})
    assert chosen(choice, TEXTS, Naming(texts=TEXTS), SEEN_US, now_us=1000) == frozenset(keys)


def test_a_name_that_no_text_has_is_told() -> None:
    """A slip of the pen is not the answer that nothing is kept; what fits nothing together is no slip."""

    def told(**words: str) -> list[str]:
        choice = Choice(before_us=ANY_TIME, **words)
        return [each.message for each in unknown_names(choice, TEXTS, Naming(texts=TEXTS), now_us=1000)]

    assert told(user="ollama", service="script:/home/al/train.py by al") == []
    assert told(user="la") == ["nothing knows a user called 'la'; known: al, bo, ollama"]
    assert [text.partition("; ")[0] for text in told(subject="x", service="y")] == [
        "nothing knows a subject called 'x'", "nothing knows a service called 'y'",
    ]  # fmt: skip


def test_lines_size_what_loses_its_name() -> None:
    """By subject, most first: texts of one script are one line."""

    def amount(subject: str, quantity: int) -> Amount:
        return Amount(
            meter="gpu.context", subject=subject, host="", device="", at_us=0, quantity=quantity, settled=quantity
        )

    living = OpenContext(
        host="box", device="GPU-0", pid=1, subject="a", since_us=0, quantity=1, accounted="yes",
        process_started_at_us=0, seen_at_us=5, memory_mib=1,
    )  # fmt: skip
    found = lines(
        "abc", Naming(texts=TEXTS), read_us={"b": 100, "c": 500}, open_contexts=[living], now_us=1000,
        amounts=[amount("a", 5), amount("b", 70), amount("c", 30), amount("d", 1), amount("b", 1)],
    )  # fmt: skip
    assert [(line.subject, line.texts, line.quantity, line.open) for line in found] == [
        ("script:/home/al/train.py by al", 2, 101, 0), ("unit:ollama.service", 1, 5, 1),
    ]  # fmt: skip
    assert found[0].read_us == 500
    assert isinstance(found[1].read_us, Missing)


def test_a_policy_that_names_the_user_is_told_of() -> None:
    """Policy versions are never changed, so the name stands there."""
    versions = [(0, Policy(effective_from_us=0, users={"al": UserOwner(team="vision")}))]
    assert [each.code for each in still_named(Choice(user="al", before_us=ANY_TIME), versions)] == ["named-by-policy"]
    assert not list(still_named(Choice(user="bo", before_us=ANY_TIME), versions))
