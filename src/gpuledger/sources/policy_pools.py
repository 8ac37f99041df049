"""The ``pools`` of a policy: whose reservations count in each, and who has to confirm that its devices are free.

In: the document. Out: ``PoolRule`` by name, and a ``Problem`` for each word that is kept but not acted on.
"""

from __future__ import annotations

from gpuledger.errors import BadInput
from gpuledger.model.policy import PoolRule
from gpuledger.model.problem import Problem
from gpuledger.sources.yaml_nodes import MappingReader

_ACTED_ON = ("source", "release")
_KEPT = ("starts", "replicas")
_CONFIRMED = "confirmed"


def pools(document: MappingReader, *, path: str, is_stored: bool) -> tuple[dict[str, PoolRule], list[Problem]]:
    """Rules by pool.

    Args:
        document: the whole policy.
        path: as problems name it.
        is_stored: whether it was applied before: versions before pools were acted on have whatever stood there.

    Raises:
        BadInput: ``policy-unknown-key``, ``policy-bad-value``; not of a stored document.
    """
    try:
        return _pools(document, path)
    except BadInput as error:
        if not is_stored:
            raise
        return {}, [Problem(code="policy-unused", message=f"its pools are not acted on: {error.message}")]


def _pools(document: MappingReader, path: str) -> tuple[dict[str, PoolRule], list[Problem]]:
    named = document.mapping("pools")
    rules: dict[str, PoolRule] = {}
    problems: list[Problem] = []
    for name, entry in named.entries() if named else ():
        entry.refuse_unknown((*_ACTED_ON, *_KEPT))
        release = entry.text("release")
        if release not in ("", _CONFIRMED):
            message = f"`release: {release}` of pool {name} is no rule that is known"
            raise entry.error("policy-bad-value", message, "release", "release: confirmed, or leave it out")
        rules[name] = PoolRule(source=entry.text("source"), is_release_confirmed=release == _CONFIRMED)
        problems += [
            Problem(
                code="policy-unused",
                message=f"`{key}` of pool {name} is kept, but this version does not act on it",
                where=f"{path}:{entry.line_of(key)}",
            )
            for key in entry.names
            if key in _KEPT
        ]
    return rules, problems
