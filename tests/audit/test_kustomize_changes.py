"""What a kustomization does to an object: whom a patch aims at, namespaces, prefixes, images; and what it makes."""

from __future__ import annotations

import pytest

from gpuledger.audit.document_node import Node
from gpuledger.audit.documents import Document, documents
from gpuledger.audit.kustomize_changes import held_patches, in_namespace, of_chart, of_generator, renamed, retagged
from gpuledger.model.findings import Written

OBJECT = "apiVersion: apps/v1\nkind: DaemonSet\nmetadata: {name: dcgm, namespace: gpu, labels: {app: e, tier: x}}\n"


def document(text: str, path: str = "kustomization.yaml") -> Document:
    return documents(Written(path=path, text=text))[0][0]


def node(text: str) -> Node:
    return document(text).root


@pytest.mark.parametrize(
    ("target", "aims"),
    [
        ("kind: DaemonSet", True),
        ("kind: DaemonSet, name: dcgm", True),
        ("name: 'dc.*'", True),
        ("name: cgm", False),
        ("kind: Daemon.*", True),
        ("name: other", False),
        ("kind: Deployment", False),
        ("group: apps, version: v1, kind: DaemonSet", True),
        ("group: batch", False),
        ("namespace: gpu", True),
        ("namespace: other", False),
        ("labelSelector: app=e", True),
        ("labelSelector: 'app==e,tier'", True),
        ("labelSelector: app=z", False),
        ("labelSelector: gone", False),
        ("labelSelector: 'app in (z, e)'", True),
        ("labelSelector: 'app in (z),tier'", False),
        ("labelSelector: 'gone in (e)'", False),
        ("labelSelector: 'app notin (z, y), tier = x'", True),
        ("labelSelector: 'app notin (z,e)'", False),
        ("labelSelector: 'gone notin (e)'", True),
        ("labelSelector: app!=other", True),
        ("labelSelector: app != e", False),
        ("labelSelector: gone!=e", True),
        ("labelSelector: '!gone,app'", True),
        ("labelSelector: '!app'", False),
        ("annotationSelector: '!any'", True),
        ("name: '['", False),
    ],
)
def test_whom_a_patch_aims_at(target: str, aims: bool) -> None:
    """Kinds and names as anchored patterns, groups, namespaces, labels."""
    text = f"patches: [{{target: {{{target}}}, patch: '[{{op: add, path: /a, value: 1}}]'}}]"
    ((patch,), wrong) = held_patches(document(text), {}, ".")
    assert patch.aims_at(node(OBJECT), "dcgm") is aims
    assert not wrong


@pytest.mark.parametrize("selector", ["app > 1", "app in e", "app=e,", "app e", "app in (e"])
def test_a_selector_that_cannot_be_read_is_told(selector: str) -> None:
    """Its patch is not applied, and that is no silence."""
    text = f"patches: [{{target: {{labelSelector: '{selector}'}}, patch: '[{{op: add, path: /a, value: 1}}]'}}]"
    ((patch,), ((why, line),)) = held_patches(document(text), {}, ".")
    assert not patch.aims_at(node(OBJECT), "dcgm")
    assert (why, line) == (f"a patch of the labelSelector {selector!r} is not applied here", 1)


def test_a_patch_without_a_target_aims_at_its_own_name() -> None:
    """The name before a prefix counts as well as the one after it."""
    ((patch,), _) = held_patches(document("patches: [{path: p.yaml}]"), {"p.yaml": [document(OBJECT, "p.yaml")]}, ".")
    assert (patch.aim, patch.own_file) == ("DaemonSet dcgm", True)
    assert patch.aims_at(node(OBJECT.replace("name: dcgm", "name: a-dcgm")), "dcgm")
    assert not patch.aims_at(node(OBJECT.replace("name: dcgm", "name: other")), "other")


def test_a_patch_with_a_target_leaves_the_name() -> None:
    """Its own name is a placeholder."""
    patch = "kind: DaemonSet\\nmetadata: {name: any, labels: {new: b}}\\n"
    text = f'patches: [{{target: {{kind: DaemonSet}}, patch: "{patch}"}}]'
    ((held,), _) = held_patches(document(text), {}, ".")
    came, why = held.applied(node(OBJECT))
    assert not why
    assert came.at("metadata", "name").text == "dcgm"
    assert came.at("metadata", "labels", "new").text == "b"


def test_every_form_of_a_patch() -> None:
    """Files and texts, strategic and JSON, several in one file; what cannot be read is told."""
    text = (
        "patchesStrategicMerge:\n- p.yaml\n- |-\n  kind: A\n  metadata: {name: a}\n"
        "patchesJson6902:\n- target: {kind: B}\n  path: j.json\n- {target: {kind: C}, path: gone.yaml}\n"
        "patches:\n- patch: |-\n    kind: [\n"
    )
    texts = {
        "d/p.yaml": [document("kind: X\nmetadata: {name: x}", "d/p.yaml")],
        "d/j.json": [document('[{"op": "remove", "path": "/a"}]', "d/j.json")],
    }
    found, wrong = held_patches(document(text, "d/kustomization.yaml"), texts, "d")
    assert [(patch.aim, patch.document.path, patch.line) for patch in found] == [
        ("X x", "d/p.yaml", 1), ("A a", "d/kustomization.yaml", 4), ("B", "d/j.json", 1),
    ]  # fmt: skip
    assert [(why.partition(":")[0], line) for why, line in wrong] == [
        ("a patch is not YAML", 11), ("the patch gone.yaml is not among these texts", 9),
    ]  # fmt: skip


def test_a_template_is_no_patch_of_kustomize() -> None:
    """It would be laid over with its braces."""
    texts = {"p.yaml": [document("kind: X\nspec:\n  a: {{ .Values.b }}\n", "p.yaml")]}
    found, wrong = held_patches(document("patches: [{path: p.yaml}]"), texts, ".")
    assert not found
    assert "is a template" in wrong[0][0]


def test_the_namespace() -> None:
    """Of objects that have one; a Namespace takes it as its name; accounts of the build go with it in bindings."""
    assert in_namespace(node(OBJECT), "new", set()).at("metadata", "namespace").text == "new"
    assert in_namespace(node(OBJECT), "", set()).at("metadata", "namespace").text == "gpu"
    role = "kind: ClusterRole\nmetadata: {name: r}"
    assert not in_namespace(node(role), "new", set()).at("metadata", "namespace").is_there
    assert in_namespace(node("kind: Namespace\nmetadata: {name: n}"), "new", set()).at("metadata", "name").text == "new"
    binding = (
        "kind: ClusterRoleBinding\nmetadata: {name: b}\nsubjects: [{kind: ServiceAccount, name: a, namespace: old}, "
        "{kind: ServiceAccount, name: z, namespace: old}, {kind: Group, name: a}]"
    )
    came = in_namespace(node(binding), "new", {"a"}).at("subjects").entries
    assert [each.at("namespace").text for each in came] == ["new", "old", ""]


def test_prefixes() -> None:
    """Workloads alone: what others refer to keeps its name here, on both sides."""
    assert renamed(node(OBJECT), "a-", "-z").at("metadata", "name").text == "a-dcgm-z"
    account = "kind: ServiceAccount\nmetadata: {name: s}"
    assert renamed(node(account), "a-", "").at("metadata", "name").text == "s"


@pytest.mark.parametrize(
    ("image", "entry", "came"),
    [
        ("nv/e:1", "name: nv/e, newTag: '2'", "nv/e:2"),
        ("nv/e", "name: nv/e, newTag: '2'", "nv/e:2"),
        ("nv/e:1", "name: nv/e, newName: own/e", "own/e:1"),
        ("nv/e:1@sha256:a", "name: nv/e, newTag: '2'", "nv/e:2"),
        ("nv/e:1", "name: nv/e, digest: 'sha256:b'", "nv/e:1@sha256:b"),
        ("host:5000/e:1", "name: 'host:5000/e', newTag: '2'", "host:5000/e:2"),
        ("host:5000/e", "name: 'host:5000/e', newTag: '2'", "host:5000/e:2"),
        ("nv/e:1", "name: nv/other, newTag: '2'", "nv/e:1"),
    ],
)
def test_images(image: str, entry: str, came: str) -> None:
    """Another name, tag or digest, of all containers of a pod."""
    text = f"spec: {{template: {{spec: {{containers: [{{name: c, image: '{image}'}}]}}}}}}"
    new = retagged(node(text), node(f"[{{{entry}}}]").entries)
    assert new.at("spec", "template", "spec", "containers", 0, "image").text == came


def test_generated_maps() -> None:
    """Literals and files that are here; one with a source that is not here is not known, and left out."""
    text = (
        "configMapGenerator:\n- {name: a, literals: [K=v=w, Q='x']}\n- {name: b, files: [any=c.yaml]}\n"
        "- {name: c, files: [gone.yaml]}\n- {name: d, envs: [e.env]}\n"
    )
    maps = list(of_generator(node(text), {"c.yaml": [document("sharing: {mps: {}}", "c.yaml")]}, "."))
    assert [each.at("metadata", "name").text for each in maps] == ["a", "b"]
    assert (maps[0].at("data", "K").text, maps[0].at("data", "Q").text) == ("v=w", "x")
    assert maps[1].at("data", "any", "sharing").is_there


def test_charts() -> None:
    """Inline values go before those of a file; files that are not here are named."""
    text = "helmCharts: [{name: dcgm-exporter, releaseName: r, valuesFile: v.yaml, valuesInline: {a: {b: 1}}}]"
    (chart,) = of_chart(node(text), {"v.yaml": [document("a: {b: 0, c: 2}", "v.yaml")]}, ".")
    assert chart.at("spec", "chart", "spec", "chart").text == "dcgm-exporter"
    values = chart.at("spec", "values", "a")
    assert (values.at("b").text, values.at("c").text) == ("1", "2")
    assert not chart.at("spec", "valuesFrom").is_there
    (gone,) = of_chart(node(text), {}, ".")
    assert gone.at("spec", "valuesFrom", 0, "name").text == "v.yaml"
