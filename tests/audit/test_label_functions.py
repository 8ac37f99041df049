"""Functions that change labels."""

from __future__ import annotations

import pytest

from gpuledger.audit.branches import Branch
from gpuledger.audit.label_functions import LABEL_FUNCTIONS


@pytest.mark.parametrize(
    ("function", "quoted", "marked", "stands_for"),
    [
        ("label_replace", ("", "pod", "$1", "exported_pod", "(.*)"), ["pod"], {}),
        ("label_replace", ("", "svc", "$1", "pod", "(.*)"), [], {"svc": "pod"}),
        ("label_replace", ("", "node", "$1", "Hostname", "(.*)"), [], {}),
        ("label_join", ("", "x", "-", "namespace", "gpu"), [], {"x": "namespace"}),
        ("label_set", ("", "pod", "a", "b", "c"), ["pod"], {}),
        ("label_copy", ("", "pod", "p"), [], {"p": "pod"}),
        ("label_move", ("", "pod", "namespace"), ["namespace"], {}),
        ("label_keep", ("", "pod", "gpu"), ["pod"], {}),
        ("sort_by_label", ("", "pod"), ["pod"], {}),
    ],
)
def test_what_a_function_makes(
    function: str, quoted: tuple[str, ...], marked: list[str], stands_for: dict[str, str]
) -> None:
    """Labels that name a workload are marked; others remember what they are made of."""
    found = LABEL_FUNCTIONS[function](Branch(), quoted)
    assert [label for label, _ in found.marks] == marked
    assert dict(found.stands_for) == stands_for


def test_what_is_not_there_makes_nothing() -> None:
    """A label out of one that was aggregated away."""
    closed = Branch().only(frozenset({"gpu"}))
    assert LABEL_FUNCTIONS["label_replace"](closed, ("", "pod", "$1", "exported_pod", "(.*)")) == closed


def test_the_exporters_own_stays_its_own() -> None:
    """Copied, it is still the exporter's pod."""
    found = LABEL_FUNCTIONS["label_copy"](Branch(pinned=frozenset({"pod"})), ("", "pod", "exporter_pod"))
    assert not found.carries("exporter_pod")


def test_labels_can_be_taken_away() -> None:
    """By name, by an empty value, by moving."""
    for function, quoted in (
        ("label_del", ("", "pod")),
        ("label_set", ("", "pod", "")),
        ("label_move", ("", "pod", "x")),
    ):
        assert not LABEL_FUNCTIONS[function](Branch(), quoted).has("pod")
    assert not LABEL_FUNCTIONS["label_replace"](Branch(), ("", "pod", "", "pod", ".*")).has("pod")


def test_matching_selects() -> None:
    """``label_match`` is a matcher."""
    assert LABEL_FUNCTIONS["label_match"](Branch(), ("", "pod", "a.*")).selects == (("pod", 'pod=~"a.*"'),)


@pytest.mark.parametrize(
    ("pattern", "source", "is_pods"), [("(.+)", "gpu", False), ("(.*)", "rack", False), ("a(.+)", "gpu", True)]
)
def test_a_label_that_is_written_over_is_the_pods_no_more(pattern: str, source: str, is_pods: bool) -> None:
    """Where the pattern always fits; where it can fail, what was there stays on some series."""
    of_pod = LABEL_FUNCTIONS["label_replace"](Branch(), ("", "site", "$1", "pod", "(.*)"))
    found = LABEL_FUNCTIONS["label_replace"](of_pod, ("", "site", "$1", source, pattern))
    assert (dict(found.stands_for) == {"site": "pod"}) is is_pods
