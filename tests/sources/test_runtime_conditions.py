"""What a runtime says: its words become states, its times are kept, anything else is named."""

from __future__ import annotations

import json

import pytest

from gpuledger.errors import BadInput
from gpuledger.model.lifecycle import Placement
from gpuledger.sources.runtime_conditions import parse


def conditions(*told: dict, workload: object = "w") -> list[tuple[str, int]]:
    """State and second of the minute of each."""
    found = parse(json.dumps({"workload": workload, "conditions": list(told)}), path="f")
    return [(each.state.value, each.at_us // 1_000_000 % 60) for each in found]


def at(second: int) -> str:
    """A time."""
    return f"2026-11-29T14:00:{second:02}Z"


def test_the_words_of_runtimes_become_states() -> None:
    """In any case, in the order of their times; an exit code that is not 0 is a failure."""
    assert conditions(
        {"type": "Terminated", "at": at(9), "exit_code": 137, "reason": "OOMKilled"},
        {"type": "Running", "at": at(3)}, {"type": "Pulling", "at": at(2)}, {"type": "Scheduled", "at": at(1)},
    ) == [("provisioning", 1), ("downloading", 2), ("running", 3), ("failed", 9)]  # fmt: skip
    assert conditions({"type": "exited", "at": at(1), "exit_code": 0}) == [("stopped", 1)]
    assert conditions({"type": "stopping", "at": at(1)}) == [("stopping", 1)]


@pytest.mark.parametrize("shape", ["{}", "[{}]", '{{"workloads": [{}]}}'])
def test_one_workload_or_many(shape: str) -> None:
    """Three ways to write the same."""
    told = json.dumps({"workload": "w", "conditions": [{"type": "Running", "at": at(1), "class": "L4"}]})
    (found,) = parse(shape.format(told), path="f")
    assert found.placement == Placement(class_name="L4")


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("{", "bad-json"),
        ("[" * 100_000, "bad-json"),
        ("{}", "bad-condition"),
        ("[1]", "bad-condition"),
        ('{"workload": "w", "conditions": {}}', "bad-condition"),
        ('{"workload": "", "conditions": []}', "bad-condition"),
        ('{"workload": "w", "conditions": [1]}', "bad-condition"),
        ('{"workload": "w", "conditions": [{"type": "Flying", "at": "2026-11-29T14:00:00Z"}]}', "bad-condition"),
        ('{"workload": "w", "conditions": [{"type": "Running", "at": "now"}]}', "bad-time"),
        ('{"workload": "w", "conditions": [{"type": "Running"}]}', "bad-time"),
        (
            '{"workload": "w", "conditions": [{"type": "Exited", "at": "2026-11-29", "exit_code": "1"}]}',
            "bad-condition",
        ),
        ('{"workload": "w", "conditions": [{"type": "Exited", "when": "2026-11-29"}]}', "bad-condition"),
        ('{"workload": "w", "conditions": [{"type": "Running", "at": "2026-11-29T14:00:00"}]}', "zone-needed"),
        ('{"workload": "w", "workload": "v", "conditions": []}', "bad-json"),
        (
            '{"workload": "w", "conditions": [{"type": "Running", "at": "2026-11-29T14:00:00Z", "share": "2"}]}',
            "bad-placement",
        ),
    ],
)
def test_what_is_not_understood_is_named(text: str, code: str) -> None:
    """With the file, and the workload where there is one."""
    with pytest.raises(BadInput, match="f") as caught:
        parse(text, path="f")
    assert caught.value.code == code
    assert caught.value.hint
