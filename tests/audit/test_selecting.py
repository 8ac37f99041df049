"""What a selector can mean."""

from __future__ import annotations

from gpuledger.audit.branches import Scope
from gpuledger.audit.promql_tree import Match
from gpuledger.audit.query_text import Choice, Prepared, Variable
from gpuledger.audit.selecting import Chooser

NONE = Chooser(frozenset(), Prepared(text=""), {})


def metrics(chooser: Chooser, name: str, *matchers: Match) -> list[tuple[str, Scope]]:
    """The device metrics of a selector."""
    return [(flow.metric, flow.scope) for flow in chooser.sources(name, matchers)[1]]


def test_names_and_patterns_give_metrics() -> None:
    """By name, by matcher, by pattern; what is no device's gives none."""
    assert metrics(NONE, "DCGM_FI_PROF_X") == [("DCGM_FI_PROF_X", Scope.PROF)]
    assert metrics(NONE, "", Match("__name__", "=", "DCGM_FI_DEV_X")) == [("DCGM_FI_DEV_X", Scope.DEVICE)]
    assert metrics(NONE, "", Match("__name__", "=~", "DCGM_FI_PROF_SM_.*"))[0] == ("DCGM_FI_PROF_SM_ACTIVE", Scope.PROF)
    assert metrics(NONE, "up") == []


def test_names_that_are_left_out_are_not_meant() -> None:
    """``!~`` over the name takes the profiling metrics out of ``DCGM_.*``; one choice of several leaves them in."""
    wide, out = Match("__name__", "=~", "DCGM_.*"), Match("__name__", "!~", "DCGM_FI_PROF.*")
    assert {scope for _, scope in metrics(NONE, "", wide, out)} == {Scope.DEVICE}
    assert metrics(NONE, "", wide)[0][1] is Scope.PROF
    left = metrics(NONE, "", Match("__name__", "=~", "DCGM_FI_PROF_SM_(ACTIVE|OCCUPANCY)"),
                   Match("__name__", "!=", "DCGM_FI_PROF_SM_ACTIVE"))  # fmt: skip
    assert left == [("DCGM_FI_PROF_SM_OCCUPANCY", Scope.PROF)]


def test_a_selector_without_a_name_is_unknown_only_where_it_speaks_of_the_exporter() -> None:
    """``{job="dcgm-exporter"}`` is every metric of it."""
    assert metrics(NONE, "", Match("job", "=", "dcgm-exporter")) == [("{}", Scope.UNKNOWN)]
    assert metrics(NONE, "", Match("job", "=", "node")) == []


def test_recorded_names_are_followed_elsewhere() -> None:
    """Also those that a pattern meets."""
    chooser = Chooser(frozenset({"gpu:busy"}), Prepared(text=""), {})
    assert chooser.sources("gpu:busy", ())[0] == ["gpu:busy"]
    assert chooser.sources("", (Match("__name__", "=~", "gpu:.*"),))[0] == ["gpu:busy"]


def test_matchers_select_drop_or_pin() -> None:
    """A value selects, an empty one drops, the exporter's own pins, and ``!=`` does none of it."""
    assert NONE.chosen((Match("pod", "=~", "$pod"),)).branch.selects == (("pod", 'pod=~"$pod"'),)
    assert not NONE.chosen((Match("pod", "=", ""),)).branch.has("pod")
    assert not NONE.chosen((Match("namespace", "=", "gpu-operator"),)).branch.carries("pod")
    assert not NONE.chosen((Match("app", "=", "nvidia-dcgm-exporter"),)).branch.carries("app")
    assert NONE.chosen((Match("app", "=", "nvidia-dcgm-exporter"),)).branch.carries("pod")
    assert NONE.chosen((Match("pod", "!=", "a"),)).branch.selects == ()
    assert NONE.chosen((Match("GPU_I_ID", "!=", ""),)).of_instance


def test_a_variable_that_is_always_anything_selects_nothing() -> None:
    """A constant ``.*`` of a dashboard."""
    constant = {"pod": Variable(name="pod", choice=Choice.LISTED, values=(".*",))}
    assert Chooser(frozenset(), Prepared(text=""), constant).chosen((Match("pod", "=~", "$pod"),)).branch.selects == ()
