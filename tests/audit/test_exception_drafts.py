"""Drafts of an exception: signed and with an end, or refused; what they hold is what the audit reads back."""

from __future__ import annotations

import pytest

from gpuledger.audit.documents import Node, documents
from gpuledger.audit.exception_drafts import ENFORCE, OWNER, UNTIL, DraftKind, Exempted, draft
from gpuledger.audit.pod_security import Breach, PodLevel
from gpuledger.errors import GpuledgerError, Misconfigured, Refused
from gpuledger.model.findings import Written
from gpuledger.model.moments import parse_moment

NOW = parse_moment("2026-11-29", now_us=0)
END = parse_moment("2027-01-31", now_us=0)
BREACHES = (
    Breach(level=PodLevel.BASELINE, control="Host Namespaces", what="hostPID: true"),
    Breach(level=PodLevel.BASELINE, control="HostPath Volumes", what="hostPath /x"),
    Breach(level=PodLevel.RESTRICTED, control="Seccomp", what="seccompProfile"),
)
ONE = Exempted(kind="DaemonSet", name="dcgm-exporter", namespace="gpu", breaches=BREACHES)


def written(*exempted: Exempted, kind: DraftKind, owner: str = 'ana "a" b', **words) -> list[Node]:
    text = draft(exempted, kind=kind, owner=owner, until_us=END, now_us=NOW, **words)
    read, unread = documents(Written(path="draft", text=text))
    assert unread == ()
    return [document.root for document in read]


@pytest.mark.parametrize("kind", list(DraftKind))
@pytest.mark.parametrize(
    ("owner", "until_us", "code"),
    [("", END, "exception-needs-owner"), ("  ", END, "exception-needs-owner"), ("ana", None, "exception-needs-end"),
     ("ana", NOW, "exception-is-over")],
)  # fmt: skip
def test_unsigned_drafts_are_refused(kind: DraftKind, owner: str, until_us: int | None, code: str) -> None:
    """No owner, no end, or an end that has passed: nothing is drafted."""
    with pytest.raises(Refused) as refused:
        draft([ONE], kind=kind, owner=owner, until_us=until_us, now_us=NOW)
    assert refused.value.code == code


@pytest.mark.parametrize(
    ("exempted", "code"),
    [
        ([], "nothing-to-except"),
        ([Exempted(kind="DaemonSet", name="d", namespace="n", breaches=())], "nothing-to-except"),
        ([Exempted(kind="DaemonSet", name="d", namespace="", breaches=BREACHES)], "exception-needs-namespace"),
    ],
)
def test_drafts_for_nothing_are_refused(exempted: list[Exempted], code: str) -> None:
    """Nothing to except, or nowhere to do it."""
    with pytest.raises(GpuledgerError) as refused:
        draft(exempted, kind=DraftKind.PLAIN, owner="ana", until_us=END, now_us=NOW)
    assert isinstance(refused.value, Misconfigured)
    assert refused.value.code == code


def test_labels_of_the_namespace() -> None:
    """Enforce privileged, warn and audit all the same; owner and end as annotations, whatever stands in the name."""
    (node,) = written(ONE, kind=DraftKind.PLAIN)
    assert (node.at("kind").text, node.at("metadata", "name").text) == ("Namespace", "gpu")
    assert node.at("metadata", "labels", ENFORCE).text == "privileged"
    assert node.at("metadata", "annotations", OWNER).text == 'ana "a" b'
    assert node.at("metadata", "annotations", UNTIL).text == "2027-01-31T00:00:00Z"


def test_an_exception_of_kyverno() -> None:
    """Only the rules that reject it, for that workload in that namespace, and only until its end."""
    (node,) = written(ONE, kind=DraftKind.KYVERNO)
    assert node.at("kind").text == "PolicyException"
    excepted = {entry.at("policyName").text for entry in node.at("spec", "exceptions").entries}
    assert excepted == {
        "disallow-host-namespaces", "disallow-host-path", "restrict-volume-types", "restrict-seccomp-strict",
    }  # fmt: skip
    rules = [each.text for each in node.at("spec", "exceptions", 0, "ruleNames").entries]
    assert rules == ["host-namespaces", "autogen-host-namespaces"]
    match = node.at("spec", "match", "any", 0, "resources")
    assert [each.text for each in match.at("kinds").entries] == ["Pod", "DaemonSet"]
    assert [each.text for each in match.at("names").entries] == ["dcgm-exporter", "dcgm-exporter-*"]
    assert "2027-01-31T00:00:00Z" in node.at("spec", "conditions", "all", 0, "key").text
    assert node.at("metadata", "annotations", OWNER).text == 'ana "a" b'


def test_one_for_each_namespace() -> None:
    """Where the text does not say, the one that was given."""
    other = Exempted(kind="DaemonSet", name="", namespace="", breaches=BREACHES)
    nodes = written(ONE, other, kind=DraftKind.KYVERNO, namespace="dcgm")
    assert [node.at("metadata", "namespace").text for node in nodes] == ["gpu", "dcgm"]
    assert not nodes[1].at("spec", "match", "any", 0, "resources", "names").is_there


def test_a_draft_holds_no_yaml_of_others() -> None:
    """Neither a namespace from the terminal nor a container's name from a text writes lines of its own."""
    with pytest.raises(Misconfigured, match="no name of a namespace"):
        written(Exempted(kind="DaemonSet", name="d", namespace="", breaches=BREACHES), kind=DraftKind.PLAIN,
                namespace="x\nspec: {}")  # fmt: skip
    odd = Breach(level=PodLevel.BASELINE, control="Privileged Containers", what="privileged: true in a\nspec: {}")
    (node,) = written(Exempted(kind="DaemonSet", name="d\n- e", namespace="gpu", breaches=(odd,)), kind=DraftKind.PLAIN)
    assert not node.at("spec").is_there
    (node,) = written(
        Exempted(kind="DaemonSet", name="d\n- e", namespace="gpu", breaches=(odd,)), kind=DraftKind.KYVERNO
    )
    assert not node.at("spec", "match", "any", 0, "resources", "names").is_there


def test_an_exception_without_a_name_says_how_far_it_reaches() -> None:
    """Every pod of the namespace: nobody should apply that unread."""
    text = draft([Exempted(kind="DaemonSet", name="", namespace="gpu", breaches=BREACHES)], kind=DraftKind.KYVERNO,
                 owner="ana", until_us=END, now_us=NOW)  # fmt: skip
    assert "every pod of the namespace" in text
