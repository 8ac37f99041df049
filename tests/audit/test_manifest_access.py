"""Whether an account may read pods of all namespaces, by roles and bindings."""

from __future__ import annotations

import pytest

from gpuledger.audit.documents import documents
from gpuledger.audit.manifest_access import Reading, access_to_pods
from gpuledger.model.findings import Written

ROLE = (
    "kind: ClusterRole\nmetadata: {name: r}\nrules: [{apiGroups: [''], resources: [pods], verbs: [get, list, watch]}]\n"
)
BINDING = (
    "kind: ClusterRoleBinding\nmetadata: {name: b}\nroleRef: {kind: ClusterRole, name: r}\n"
    "subjects: [{kind: ServiceAccount, name: dcgm, namespace: gpu}]\n"
)


@pytest.mark.parametrize(
    ("text", "reading"),
    [
        (f"{ROLE}---\n{BINDING}", Reading.ALLOWED),
        (f"{ROLE.replace('get, list, watch', chr(39) + '*' + chr(39))}---\n{BINDING}", Reading.ALLOWED),
        (f"{ROLE.replace('[pods]', '[nodes, ' + chr(39) + '*' + chr(39) + ']')}---\n{BINDING}", Reading.ALLOWED),
        (f"{ROLE.replace(', watch', '')}---\n{BINDING}", Reading.DENIED),
        (f"{ROLE.replace('[pods]', '[nodes]')}---\n{BINDING}", Reading.DENIED),
        (f"{ROLE.replace('verbs', 'resourceNames: [x], verbs')}---\n{BINDING}", Reading.DENIED),
        (f"{ROLE}---\n{BINDING.replace('kind: ClusterRoleBinding', 'kind: RoleBinding')}", Reading.DENIED),
        (f"{ROLE}---\n{BINDING.replace('name: dcgm', 'name: other')}", Reading.UNSEEN),
        (f"{ROLE}---\n{BINDING.replace('namespace: gpu', 'namespace: other')}", Reading.UNSEEN),
        (BINDING, Reading.UNSEEN),
        (BINDING.replace("name: r", "name: view"), Reading.ALLOWED),
        ("a: 1", Reading.UNSEEN),
    ],
)
def test_what_the_texts_say(text: str, reading: Reading) -> None:
    """Allowed, denied, or not shown; with what it rests on."""
    access = access_to_pods(documents(Written(path="f", text=text))[0], "dcgm", "gpu")
    assert access.reading is reading
    assert access.why


@pytest.mark.parametrize(
    ("subject", "reading"),
    [
        ("{kind: Group, name: 'system:serviceaccounts'}", Reading.ALLOWED),
        ("{kind: Group, name: 'system:authenticated'}", Reading.ALLOWED),
        ("{kind: Group, name: 'system:serviceaccounts:gpu'}", Reading.ALLOWED),
        ("{kind: Group, name: 'system:serviceaccounts:other'}", Reading.UNSEEN),
        ("{kind: Group, name: 'system:nodes'}", Reading.UNSEEN),
        ("{kind: User, name: 'system:serviceaccount:gpu:dcgm'}", Reading.ALLOWED),
        ("{kind: User, name: 'system:serviceaccount:other:dcgm'}", Reading.UNSEEN),
        ("{kind: User, name: dcgm}", Reading.UNSEEN),
        ("{kind: User, name: 'system:serviceaccount:gpu:other'}, {kind: ServiceAccount, name: dcgm}", Reading.ALLOWED),
    ],
)
def test_who_a_subject_is(subject: str, reading: Reading) -> None:
    """The account by its name, as a user, or by a group: every account's, or that of its namespace."""
    binding = BINDING.replace("{kind: ServiceAccount, name: dcgm, namespace: gpu}", subject)
    access = access_to_pods(documents(Written(path="f", text=f"{ROLE}---\n{binding}"))[0], "dcgm", "gpu")
    assert access.reading is reading


def test_rights_of_several_bindings_add_up() -> None:
    """One role reads, another watches; and a binding that is not here does not hide what another one gives."""
    first = ROLE.replace("get, list, watch", "get, list")
    second = ROLE.replace("name: r", "name: s").replace("get, list, watch", "watch")
    other = BINDING.replace("name: r}", "name: s}")
    both = f"{first}---\n{second}---\n{BINDING}---\n{other}"
    assert access_to_pods(documents(Written(path="f", text=both))[0], "dcgm", "gpu").reading is Reading.ALLOWED
    half = f"{first}---\n{second}---\n{BINDING}"
    assert access_to_pods(documents(Written(path="f", text=half))[0], "dcgm", "gpu").reading is Reading.DENIED
    elsewhere = BINDING.replace("name: r}", "name: gone}") + f"---\n{ROLE}---\n{BINDING}"
    assert access_to_pods(documents(Written(path="f", text=elsewhere))[0], "dcgm", "gpu").reading is Reading.ALLOWED


def test_a_role_that_gathers_others() -> None:
    """The cluster writes the rules of roles with its label into it."""
    selectors = "aggregationRule: {clusterRoleSelectors: [{matchLabels: {a: b}}]}\n"
    gathers = f"kind: ClusterRole\nmetadata: {{name: r}}\n{selectors}"
    part = ROLE.replace("{name: r}", "{name: part, labels: {a: b}}")
    text = f"{gathers}---\n{part}---\n{BINDING}"
    assert access_to_pods(documents(Written(path="f", text=text))[0], "dcgm", "gpu").reading is Reading.ALLOWED
    text = text.replace("labels: {a: b}", "labels: {a: c}")
    assert access_to_pods(documents(Written(path="f", text=text))[0], "dcgm", "gpu").reading is Reading.UNSEEN


def test_a_role_that_gathers_roles_of_the_cluster() -> None:
    """Its rules are empty here, and roles that every cluster has may carry its label: that is no refusal."""
    selector = "{matchLabels: {rbac.authorization.k8s.io/aggregate-to-view: 'true'}}"
    gathers = f"kind: ClusterRole\nmetadata: {{name: r}}\naggregationRule: {{clusterRoleSelectors: [{selector}]}}\n"
    access = access_to_pods(documents(Written(path="f", text=f"{gathers}rules: []\n---\n{BINDING}"))[0], "dcgm", "gpu")
    assert (access.reading, access.why) == (Reading.UNSEEN, "ClusterRole r gathers roles that are not here")


@pytest.mark.parametrize(
    ("expression", "reading"),
    [
        ("{key: a, operator: In, values: [b, c]}", Reading.ALLOWED),
        ("{key: a, operator: In, values: [c]}", Reading.UNSEEN),
        ("{key: a, operator: NotIn, values: [c]}", Reading.ALLOWED),
        ("{key: z, operator: NotIn, values: [c]}", Reading.ALLOWED),
        ("{key: a, operator: NotIn, values: [b]}", Reading.UNSEEN),
        ("{key: a, operator: Exists}", Reading.ALLOWED),
        ("{key: z, operator: Exists}", Reading.UNSEEN),
        ("{key: z, operator: DoesNotExist}", Reading.ALLOWED),
        ("{key: a, operator: DoesNotExist}", Reading.UNSEEN),
        ("{key: a, operator: Like, values: [b]}", Reading.UNSEEN),
    ],
)
def test_roles_gathered_by_expressions(expression: str, reading: Reading) -> None:
    """By themselves, and beside labels, where both must hold."""
    part = ROLE.replace("{name: r}", "{name: part, labels: {a: b}}")
    for selector in (f"matchExpressions: [{expression}]", f"matchLabels: {{a: b}}, matchExpressions: [{expression}]"):
        rule = f"aggregationRule: {{clusterRoleSelectors: [{{{selector}}}]}}\n"
        text = f"kind: ClusterRole\nmetadata: {{name: r}}\n{rule}---\n{part}---\n{BINDING}"
        assert access_to_pods(documents(Written(path="f", text=text))[0], "dcgm", "gpu").reading is reading


def test_an_account_of_that_name_elsewhere_is_told() -> None:
    """It is another account, and most often a namespace mistyped."""
    text = f"{ROLE}---\n{BINDING.replace('namespace: gpu', 'namespace: gpus')}"
    access = access_to_pods(documents(Written(path="f", text=text))[0], "dcgm", "gpu")
    assert access.why == "no binding of the account dcgm is in these files; one of that name in gpus is bound"
