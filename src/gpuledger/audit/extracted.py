"""What is found in one document, and what stands around a place in it while it is walked.

Words of :mod:`gpuledger.audit.extraction`; values only.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import NamedTuple

from gpuledger.audit.queries import Query
from gpuledger.audit.query_text import Variable
from gpuledger.audit.renaming import Rename
from gpuledger.model.problem import Problem


@dataclass(slots=True)
class Extracted:
    """What a file holds.

    Args:
        queries: in the order of the text.
        renames: of metrics, by relabelling.
        unread: what could not be read.
        made: labels that relabelling makes out of a workload's, each with what it is made of.
        panel_uids: uids of the panels of Grafana's library that are there.
        borrowed: uids of those that are shown, each with what is said where the panel is in no file.
    """

    queries: list[Query] = field(default_factory=list)
    renames: list[Rename] = field(default_factory=list)
    made: dict[str, str] = field(default_factory=dict)
    panel_uids: set[str] = field(default_factory=set)
    borrowed: list[tuple[str, Problem]] = field(default_factory=list)
    unread: list[Problem] = field(default_factory=list)


class Around(NamedTuple):
    """What stands around a place in a document.

    Args:
        variables: of the dashboard, by name.
        sources: kinds of data source by the variable or input that stands for them.
        panel: the panel it is in; None outside of one.
        name: of the place, for people.
        panel_place: of the panel, the same for all of its queries.
        in_annotations: whether it is in those of a dashboard.
        in_metrics: whether it is in steps over the labels of what was scraped.
        source: the kind of its data source where that does not answer PromQL.
        repeated: variables of workloads that it is repeated for or titled with, each with the place.
        said: labels that the texts of its alert print, each with the place.
        nested: how many texts it is in.
        labels: that a group of rules adds to each of its rules.
        layout: of schema 2, the rows and tabs of each panel.
    """

    variables: Mapping[str, Variable] = MappingProxyType({})
    sources: Mapping[str, str] = MappingProxyType({})
    panel: Mapping[str, object] | None = None
    name: str = ""
    panel_place: str = ""
    in_annotations: bool = False
    in_metrics: bool = False
    source: str = ""
    repeated: tuple[tuple[str, str], ...] = ()
    said: tuple[tuple[str, str], ...] = ()
    nested: int = 0
    labels: tuple[tuple[str, str], ...] = ()
    layout: Mapping[str, tuple[Mapping[str, object], ...]] = MappingProxyType({})
