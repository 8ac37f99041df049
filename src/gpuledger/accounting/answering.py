"""Who answers for a usage, and nothing else of it: user, team and project of many thousand subjects at once.

In: identity texts as their stored values. Out: what :class:`~gpuledger.accounting.owners.Naming` would say of each,
found once for all subjects that differ in nothing that decides it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gpuledger.accounting.owners import Naming
from gpuledger.model.identity import IdentityText
from gpuledger.model.policy import Policy
from gpuledger.model.usage import NO_NAME

_DECIDING = ("user", "team", "project", "namespace", "pod")

Answerer = tuple[str, str, str]
"""User, team and project; ``-`` where nobody is named."""

NOBODY: Answerer = (NO_NAME, NO_NAME, NO_NAME)
"""Of a subject that has no text: unattributed, or forgotten."""


class Answering:
    """Resolves subjects by what decides who answers.

    Args:
        values: of each subject the fields of its text that are filled.
        versions: as for ``Naming``.
    """

    def __init__(self, *, values: Mapping[str, Mapping[str, str]], versions: Sequence[tuple[int, Policy]]) -> None:
        self._values = values
        self._naming = Naming(texts={}, versions=versions)
        rules = versions[-1][1].services if versions else ()
        self._fields = tuple(dict.fromkeys([*_DECIDING, *(name for rule in rules for name in rule.match)]))
        self._known: dict[tuple[int, tuple[str, ...]], Answerer] = {}

    def of(self, subject: str, at_us: int) -> Answerer:
        """Who answered for a subject in the hour that begins at ``at_us``."""
        values = self._values.get(subject)
        if values is None:
            return NOBODY
        get = values.get
        key = (at_us, tuple([get(name, "") for name in self._fields]))
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = self._naming.answerer_of(IdentityText(**values), at_us)
        return found

    def labels(self, subject: str) -> str:
        """The labels of a subject, a JSON object; empty without any."""
        return self._values.get(subject, {}).get("labels", "")
