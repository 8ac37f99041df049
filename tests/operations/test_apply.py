"""``apply``: a policy file becomes the next version, or the ledger stays untouched."""

from __future__ import annotations

import pytest

from gpuledger.errors import BadInput
from gpuledger.ledger.store import Ledger
from gpuledger.model.lifecycle import Placement
from gpuledger.model.rows import PolicyVersion
from gpuledger.model.workload_rows import PlacementRow
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


def test_what_is_no_text_is_no_policy(tmp_path) -> None:
    """The hint says what is wanted here, and not what another verb reads."""
    path = tmp_path / "policy.yaml"
    path.write_bytes(b"\xff")
    with pytest.raises(BadInput) as refused:
        apply(lambda: Ledger.open(tmp_path / "ledger.db", mode="append"), path, now_us=1000, writer="box.policy")
    assert (refused.value.code, "YAML" in refused.value.hint) == ("not-text", True)


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


def test_a_pattern_that_fits_no_class_is_told(tmp_path) -> None:
    """A quota of ``H100`` counts no ``H100-80GB``; before anything is known of classes nothing is said."""
    text = "quotas:\n  - {user: al, class: H100, devices: 1}\n  - {user: al, class: 'H100*', devices: 1}\n"
    text += "shares: {half_life: 7d, class_weights: {A100: 2}, tree: {vision: {shares: 1}}}\n"
    assert applied(tmp_path, text).problems == ()
    with Ledger.open(tmp_path / "ledger.db", mode="append") as ledger:
        rows = [PlacementRow.of(Placement(class_name=name)) for name in ("H100-80GB", "L4")]
        ledger.append(rows, writer="box.ctl", at_us=1)
    assert [(each.code, each.message) for each in applied(tmp_path, text).problems] == [
        (
            "class-of-nothing",
            f"nothing knows a class called {name!r}; known: H100-80GB, L4; `{where}` with it count nothing so far",
        )
        for name, where in (("H100", "quotas"), ("A100", "class_weights"))
    ]


def test_a_quota_of_class_cpu_counts_nothing_and_says_so(tmp_path) -> None:
    """It takes no device, so that it would never fill; and of each place that names a class it is told."""
    text = "quotas:\n  - {user: al, class: cpu, devices: 1}\n  - {user: al, class: '*', devices: 1}\n"
    text += "shares: {half_life: 7d, class_weights: {cpu: 2}, tree: {vision: {shares: 1}}}\n"
    assert [(each.code, each.message) for each in applied(tmp_path, text).problems] == [
        ("class-of-nothing", f"class cpu takes no device: `{where}` with it count nothing")
        for where in ("quotas", "class_weights")
    ]


def test_a_quota_of_a_team_binds_where_the_policy_lists_no_team(tmp_path) -> None:
    """Everybody may then name their own; each slip is told once, however many quotas repeat it."""
    text = "quotas:\n  - {team: vision, devices: 8}\n  - {role: prof, devices: 1}\n"
    found = applied(tmp_path, text + "  - {role: prof, device_hours: 9, per: day}\n")
    assert [problem.message for problem in found.problems] == [
        "the policy gives nobody the role 'prof', so its quota binds nobody"
    ]
