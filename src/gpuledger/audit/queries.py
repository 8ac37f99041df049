"""One query as a dashboard, rule or list has it, with everything around it that says whose figure it is shown as."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from gpuledger.audit.query_text import Variable
from gpuledger.model.findings import Where


class Role(StrEnum):
    """Where a query stands."""

    PANEL = "panel"
    RECORD = "record"
    ALERT = "alert"
    VARIABLE = "variable"
    ADAPTER = "adapter"
    LISTED = "listed"
    MENTION = "mention"
    FOREIGN = "foreign"
    CLOUD = "cloud"


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """What a panel, an alert's text or a table says beside the figure.

    Args:
        labels: labels that it prints, each with the place: ``the legend {{pod}}``.
        hidden: columns that a table leaves out.
        by_default: whether every label that varies is printed because nothing else was said.
        by_variable: variables of pods and the like whose values it is repeated for or titled with, with the place.
    """

    labels: tuple[tuple[str, str], ...] = ()
    hidden: frozenset[str] = frozenset()
    by_default: bool = False
    by_variable: tuple[tuple[str, str], ...] = ()


NOTHING_SHOWN = Shown()


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """One query.

    Args:
        where: its place.
        text: as written.
        role: what it is there for.
        shown: what stands beside its figure.
        variables: of its dashboard, by name.
        record: of a rule, the name that it records.
        labels: of a rule, those that it adds.
        panel: the place of its panel, the same for all queries of one; empty outside panels.
        is_merged: whether the panel joins its queries' rows into one table.
        note: of one that is not judged as PromQL, what it is.
        is_certain: whether the place can hold nothing but a query, so that an unreadable one is told.
    """

    where: Where
    text: str
    role: Role
    shown: Shown = NOTHING_SHOWN
    variables: Mapping[str, Variable] = field(default_factory=dict)
    record: str = ""
    labels: tuple[tuple[str, str], ...] = ()
    panel: str = ""
    is_merged: bool = False
    note: str = ""
    is_certain: bool = True
