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
