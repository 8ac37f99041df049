"""Policy versions, and what applying one did."""

from __future__ import annotations

from dataclasses import replace

from gpuledger.model.moments import parse_moment
from gpuledger.model.outcomes import Applied
from gpuledger.model.problem import Problem
from gpuledger.model.rows import PolicyVersion
from gpuledger.reports import policy_report

T0 = parse_moment("2026-11-01", now_us=0)
VERSION = PolicyVersion(
    version=3, effective_from_us=T0, applied_at_us=T0 + 1_000_000, document="# [bold]ours[/bold]\nservices: []\n",
    document_hash="ab" * 32, writer="box.policy", number=3,
)  # fmt: skip


def applied(changed: bool = True) -> Applied:
    problem = Problem(code="policy-not-used", message="`rates` is not acted on yet", where="policy.yaml:3")
    return Applied(
        version=VERSION, changed=changed, services=2, users=1, namespaces=0, hosts=4, problems=(problem,)
    )  # fmt: skip


def test_a_new_version_says_from_when_it_holds(printed) -> None:
    """Owners from a date on, services for all time."""
    told = printed(policy_report.applied_table(applied()))
    assert "policy 3 applied; owners hold from 2026-11-01T00:00:00Z, services for all time" in told
    assert "2 service rules, 1 user, 0 namespaces, 4 hosts" in told
    assert "quota" not in told


def test_quotas_and_shares_of_a_new_version_are_counted(printed) -> None:
    """With the verb that shows them."""
    told = printed(policy_report.applied_table(replace(applied(), quotas=6, accounts=1)))
    assert "6 quotas: gpuledger quota" in told
    assert "1 account with shares: gpuledger fairshare" in told


def test_an_old_version_says_that_nothing_changed(printed) -> None:
    """And nothing more."""
    assert printed(policy_report.applied_table(applied(changed=False))) == "policy 3 already holds: nothing changed"


def test_applied_json_says_whether_it_is_new() -> None:
    """With the reference and the problems."""
    found = policy_report.applied_json(applied())
    assert (found["ref"], found["version"], found["changed"], found["services"]) == ("policy:box.policy/3", 3, True, 2)
    assert [problem["code"] for problem in found["problems"]] == ["policy-not-used"]


def test_a_whole_document_is_printed_as_it_is(printed) -> None:
    """Brackets are not taken for markup, and the last line end is not doubled."""
    assert printed(policy_report.versions_table([VERSION], whole=True)) == "# [bold]ours[/bold]\nservices: []"
    assert policy_report.versions_json([VERSION])[0]["document"] == VERSION.document


def test_versions_are_a_table_with_short_hashes(printed) -> None:
    """The whole hash is in CSV."""
    told = printed(policy_report.versions_table([VERSION], whole=False))
    assert "abababababababab" in told
    assert VERSION.document_hash not in told
    assert VERSION.document_hash in policy_report.versions_csv([VERSION])


def test_no_version_says_what_to_type(printed) -> None:
    """And that names come from built-in rules meanwhile."""
    told = printed(policy_report.versions_table([], whole=False))
    assert "gpuledger apply FILE" in told
    assert "built-in rules" in told
