"""``apply``: a policy file becomes the next version, or the ledger stays untouched."""

from __future__ import annotations

import pytest

from gpuledger.errors import BadInput
from gpuledger.ledger.store import Ledger
from gpuledger.model.rows import PolicyVersion
from gpuledger.operations.apply import apply

ONE = "services:\n  - {service: ollama, team: home, match: {unit: 'ollama'}}\nowners:\n  users: {al: {team: vision}}\n"


def applied(folder, text: str, now_us: int = 1000):
    path = folder / "policy.yaml"
    path.write_text(text, encoding="utf-8")
    place = folder / "ledger.db"
    return apply(lambda: Ledger.open(place, mode="append"), path, now_us=now_us, writer="box.policy")


def test_versions_are_counted_and_kept(tmp_path) -> None:
    """Each with its document as it was given, and when it was applied."""
    assert applied(tmp_path, ONE).version.version == 1
    second = applied(tmp_path, ONE + "# and a remark\n", now_us=2000)
    assert (second.version.version, second.changed, second.services, second.users) == (2, True, 1, 1)
    with Ledger.open(tmp_path / "ledger.db", mode="read") as ledger:
        assert [(row.version, row.applied_at_us, row.document) for row in ledger.scan(PolicyVersion)] == [
            (1, 1000, ONE),
            (2, 2000, ONE + "# and a remark\n"),
        ]


def test_the_same_document_again_changes_nothing(tmp_path) -> None:
    """The version that holds is answered."""
    first = applied(tmp_path, ONE)
    again = applied(tmp_path, ONE, now_us=5000)
    assert (again.changed, again.version) == (False, first.version)


def test_an_older_document_applied_again_is_a_new_version(tmp_path) -> None:
    """Going back is a decision, and is written down."""
    applied(tmp_path, ONE)
    applied(tmp_path, "services: []\n", now_us=2000)
    assert applied(tmp_path, ONE, now_us=3000).version.version == 3


@pytest.mark.parametrize("text", ["servces: []\n", "services:\n  - {service: x, match: {unit: '('}}\n", "a: [\n"])
def test_a_document_that_cannot_be_understood_leaves_no_trace(tmp_path, text: str) -> None:
    """The line is named, and the ledger is not even made."""
    with pytest.raises(BadInput, match=r"policy\.yaml:\d"):
        applied(tmp_path, text)
    assert not (tmp_path / "ledger.db").exists()


def test_a_quota_that_binds_nobody_is_told(tmp_path) -> None:
    """A role or team that no user has is most often a slip of the pen; each quota counts all the same."""
    text = "owners:\n  users: {al: {team: vision, roles: [student]}}\nquotas:\n"
    text += "  - {role: studnt, devices: 1}\n  - {team: visoin, devices: 8}\n  - {role: student, devices: 1}\n"
    text += "  - {team: vision, devices: 8}\n  - {user: zoe, devices: 1}\n  - {team: '*', devices: 9}\n"
    found = applied(
        tmp_path, text + "shares: {half_life: 7d, tree: {vision: {shares: 1, accounts: {x: {shares: 1}}}}}\n"
    )
    assert [problem.code for problem in found.problems] == ["quota-of-nobody"] * 2
    assert "'studnt'" in found.problems[0].message
    assert "'visoin'" in found.problems[1].message
    assert (found.quotas, found.accounts) == (6, 2)
