"""From branches to a verdict."""

from __future__ import annotations

from gpuledger.audit.branches import Branch, Flow, Scope
from gpuledger.audit.judging import judge, workload_marks
from gpuledger.audit.queries import Query, Role, Shown
from gpuledger.model.findings import Where

PROF = Flow("DCGM_FI_PROF_SM_ACTIVE", Scope.PROF)


def query(role: Role = Role.LISTED, **more: object) -> Query:
    """A query at some place."""
    return Query(where=Where(path="f"), text="x", role=role, **more)  # type: ignore[arg-type]


def test_the_heaviest_branch_counts() -> None:
    """One alternative at fault is enough."""
    fine, wrong = Branch(flows=(PROF,)), Branch(flows=(PROF,)).marked("pod", "grouped by it")
    found = judge(query(), [fine, wrong])
    assert found.verdict == "misattribution"
    assert found.why.endswith("gives it to pod: grouped by it")


def test_a_chain_is_evidence() -> None:
    """And makes it laundered where the name it is read by hides the metric."""
    flow = PROF._replace(chain=("busy", "gpu:busy"))
    found = judge(query(), [Branch(flows=(flow,)).marked("pod", "x")])
    assert found.verdict == "laundered"
    assert found.evidence == ("busy <- gpu:busy <- DCGM_FI_PROF_SM_ACTIVE",)
    told = PROF._replace(chain=("pod:DCGM_FI_PROF_SM_ACTIVE:avg",))
    assert judge(query(), [Branch(flows=(told,)).marked("pod", "x")]).verdict == "misattribution"


def test_what_is_hidden_is_not_given() -> None:
    """A table that leaves the column out."""
    hidden = query(Role.PANEL, shown=Shown(hidden=frozenset({"pod"})))
    assert judge(hidden, [Branch(flows=(PROF,)).marked("pod", "x")]).verdict == "fine"


def test_what_is_shown_counts_only_if_it_can_be_there() -> None:
    """A legend of a label that was aggregated away."""
    shown = query(Role.PANEL, shown=Shown(labels=(("pod", "the legend"),)))
    assert judge(shown, [Branch(flows=(PROF,))]).verdict == "misattribution"
    assert judge(shown, [Branch(flows=(PROF,)).only(frozenset({"gpu"}))]).verdict == "fine"


def test_jobs_alone_are_a_warning() -> None:
    """With a pod among the labels it is the pod's."""
    branch = Branch(flows=(PROF,)).marked("hpc_job", "x")
    assert judge(query(), [branch]).verdict == "job-level"
    assert judge(query(), [branch.marked("pod", "y")]).verdict == "misattribution"


def test_per_process_figures_say_when_they_are_right() -> None:
    """GPU_UTIL and FB_USED with process mapping, others never."""
    util = Branch(flows=(Flow("DCGM_FI_DEV_GPU_UTIL", Scope.DEVICE),)).marked("pod", "x")
    power = Branch(flows=(Flow("DCGM_FI_DEV_POWER_USAGE", Scope.DEVICE),)).marked("pod", "x")
    assert "process mapping" in judge(query(), [util]).why
    assert "every exporter" in judge(query(), [power]).why


def test_marks_are_told_for_tables_that_join() -> None:
    """The labels of all branches."""
    assert workload_marks([Branch().marked("pod", "a"), Branch().marked("team", "b")]) == {"pod": "a", "team": "b"}
