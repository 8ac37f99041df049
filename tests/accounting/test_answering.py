"""Who answers, for many subjects at once: the same as naming says of each."""

from __future__ import annotations

import re

from hypothesis import given, settings
from hypothesis import strategies as st

from gpuledger.accounting.answering import NOBODY, Answering
from gpuledger.accounting.owners import Naming
from gpuledger.model.identity import IdentityText
from gpuledger.model.policy import Policy, ServiceRule, UserOwner

EARLY = Policy(effective_from_us=0, users={"al": UserOwner(team="old")}, namespaces={"ns": "spaces"})
LATE = Policy(
    effective_from_us=100,
    users={"al": UserOwner(team="new", project="p")},
    services=(
        ServiceRule(service="s", team="ruled", match={"unit": re.compile("train"), "user": re.compile("^b")}),
        ServiceRule(service="t", match={"command": re.compile("serve")}),
    ),
)
VERSIONS = [(0, EARLY), (100, LATE)]
WORD = st.sampled_from(["", "al", "bob", "ns", "ns/pod", "train.service", "serve it"])
FIELDS = ("user", "team", "project", "namespace", "pod", "unit", "command", "workload")
TEXT = st.fixed_dictionaries(dict.fromkeys(FIELDS, WORD))


@settings(max_examples=150, deadline=None)
@given(st.lists(TEXT, max_size=6))
def test_it_is_what_naming_says(texts: list[dict[str, str]]) -> None:
    """At every moment, of every text, whatever its neighbours are."""
    values = {f"k{n}": {name: word for name, word in text.items() if word} for n, text in enumerate(texts)}
    naming = Naming(texts={key: IdentityText(**found) for key, found in values.items()}, versions=VERSIONS)
    answering = Answering(values=values, versions=VERSIONS)
    for key in values:
        for at_us in (0, 50, 100, 1000):
            owner = naming.owner(key, at_us)
            assert answering.of(key, at_us) == (owner.user, owner.team, owner.project)


def test_who_was_forgotten_is_nobody() -> None:
    """So is what nobody was ever named for; the labels of such a subject are none."""
    answering = Answering(values={"k": {"labels": '{"pool": "a"}'}}, versions=[])
    assert answering.of("gone", 0) == answering.of("unattributed:before-watch", 0) == NOBODY
    assert (answering.labels("k"), answering.labels("gone")) == ('{"pool": "a"}', "")
