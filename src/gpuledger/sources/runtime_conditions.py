"""What a runtime says of its workloads: conditions with the runtime's own times, as a small JSON document.

In: text such as ``{"workloads": [{"workload": "w1", "conditions": [{"type": "Running", "at": "..."},
{"type": "Terminated", "at": "...", "exit_code": 137}]}]}``. Out: conditions, in the order of each workload's times.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gpuledger.errors import BadInput, Misconfigured
from gpuledger.model.lifecycle import Placement, State
from gpuledger.sources.transition_lines import once, parse_at, parse_placement

_TYPES: dict[str, State] = {
    **{state.value: state for state in State},
    "waiting": State.PENDING,
    "scheduled": State.PROVISIONING,
    "pulling": State.DOWNLOADING,
    "created": State.BOOTING,
    "started": State.RUNNING,
    "terminating": State.STOPPING,
    "terminated": State.STOPPED,
    "exited": State.STOPPED,
    "succeeded": State.STOPPED,
}
"""A condition's type, in any case, to the state it means; the words of Kubernetes, docker and our own."""

_PLACING = ("class", "region", "machine", "pool", "devices", "share")
_WORDS = frozenset({"type", "at", "exit_code", "reason", *_PLACING})
_HINT = 'the shape: {"workload": "w1", "conditions": [{"type": "Running", "at": "2026-11-29T14:00:00Z"}]}'


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """One condition of one workload.

    Args:
        workload: its id.
        state: what it means.
        at_us: when it began, by the runtime.
        placement: where the runtime says it ran; None where it does not say.
    """

    workload: str
    state: State
    at_us: int
    placement: Placement | None = None


def parse(text: str, *, path: str) -> tuple[Condition, ...]:
    """The conditions of a document: one workload, a list of them, or ``{"workloads": [...]}``.

    A ``Terminated`` whose ``exit_code`` is not 0 is ``failed``.

    Raises:
        BadInput: ``bad-json`` with its line, or ``bad-condition`` naming the workload.
    """
    try:
        document = json.loads(text, parse_float=str, object_pairs_hook=once)
    except RecursionError:
        raise BadInput("bad-json", "nested too deeply", path=path, hint=_HINT) from None
    except ValueError as error:
        line = getattr(error, "lineno", 0)
        raise BadInput("bad-json", f"not JSON: {error}", path=path, line=line, hint=_HINT) from None
    if isinstance(document, Mapping) and "workloads" in document:
        document = document["workloads"]
    listed = document if isinstance(document, list) else [document]
    found: list[Condition] = []
    for place, told in enumerate(listed, 1):
        name = told.get("workload") if isinstance(told, Mapping) else None
        conditions = told.get("conditions") if isinstance(told, Mapping) else None
        if not isinstance(name, str) or not name or not isinstance(conditions, list):
            raise _bad(path, f"workload {place}", "it has no workload and conditions")
        found += sorted((_condition(name, each, path) for each in conditions), key=lambda each: each.at_us)
    return tuple(found)


def _condition(workload: str, told: Any, path: str) -> Condition:
    if not isinstance(told, Mapping):
        raise _bad(path, workload, "a condition that is no object")
    if unknown := sorted(str(name) for name in told if name not in _WORDS):
        raise _bad(path, workload, f"unknown word {unknown[0][:40]!r}")
    state = _TYPES.get(str(told.get("type", "")).lower())
    if state is None:
        raise _bad(path, workload, f"a condition of type {str(told.get('type'))[:40]!r}; known: {', '.join(_TYPES)}")
    exit_code = told.get("exit_code", 0)
    if type(exit_code) is not int:
        raise _bad(path, workload, f"exit code {exit_code!r}")
    if state is State.STOPPED and exit_code:
        state = State.FAILED
    try:
        return Condition(
            workload=workload, state=state, at_us=parse_at(told.get("at")), placement=parse_placement(told)
        )
    except Misconfigured as error:
        raise BadInput(error.code, f"{workload}: {error.message}", path=path, hint=error.hint) from None


def _bad(path: str, workload: str, why: str) -> BadInput:
    return BadInput("bad-condition", f"{workload}: {why}", path=path, hint=_HINT)
