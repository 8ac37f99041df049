"""What one kustomization does to an object: its patches and whom they aim at, namespace, prefixes, images; and makes.

Pure parts of :mod:`gpuledger.audit.kustomize`; each takes an object as nodes and gives the object that comes of it.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass

from gpuledger.audit.document_node import NOTHING, Kind, Node
from gpuledger.audit.documents import Document, documents, objects
from gpuledger.audit.kustomize_patches import DoesNotApply, changed, merged, patched
from gpuledger.audit.label_selectors import meets, requirements_of_text
from gpuledger.audit.name_patterns import UnreadablePattern, compiled
from gpuledger.model.findings import Written

_Texts = Mapping[str, Sequence[Document]]

_PODS = (("spec", "template", "spec"), ("spec", "jobTemplate", "spec", "template", "spec"), ("spec",))
_OWN_KINDS = ("k8s.io", "apps", "batch", "autoscaling", "policy")
"""Groups of which Kustomize knows how lists merge; of every other kind they are replaced."""

_OF_CLUSTER_WORDS = (
    "Namespace ClusterRole ClusterRoleBinding CustomResourceDefinition PersistentVolume StorageClass PriorityClass "
    "DeviceClass SecurityContextConstraints ClusterPolicy ValidatingWebhookConfiguration "
    "MutatingWebhookConfiguration APIService Node"
)
_OF_CLUSTER = frozenset(_OF_CLUSTER_WORDS.split())
"""Kinds that are in no namespace."""

_NAMED = frozenset(["DaemonSet", "Deployment", "StatefulSet", "Job", "CronJob", "Pod", "ReplicaSet"])
"""Kinds whose names nothing else refers to, so that a prefix changes them alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Patch:
    """One patch of a kustomization.

    Args:
        document: where it stands: a file of its own, or the kustomization.
        own_file: whether it is a file of its own.
        line: of its first word.
        root: a mapping for a strategic merge, a list of operations for a JSON patch.
        target: whom it aims at, as written; nothing where its own kind and name say so.
    """

    document: Document
    own_file: bool
    line: int
    root: Node
    target: Node

    @property
    def aim(self) -> str:
        """Whom it aims at, for people."""
        told = self.target if self.target.is_there else _self_target(self.root)
        words = [told.at(key).text for key in ("kind", "name", "labelSelector") if told.at(key).text]
        return " ".join(words) or "everything"

    @property
    def words(self) -> str:
        """All that may tell whether it is about GPUs: whom it aims at, and the containers that it names."""
        named = [each.at("name").text for path in _PODS for each in self.root.at(*path, "containers").entries]
        return " ".join((self.aim, *named))

    def aims_at(self, node: Node, first: str) -> bool:
        """Whether it changes an object.

        Args:
            node: the object as it is now.
            first: the name that it had before any prefix.
        """
        target = self.target if self.target.is_there else _self_target(self.root)
        group, _, version = node.at("apiVersion").text.rpartition("/")
        now = node.at("metadata", "name").text
        metadata = node.at("metadata")
        return (
            _fits(target.at("kind").text, node.at("kind").text)
            and (_fits(target.at("name").text, now) or _fits(target.at("name").text, first))
            and target.at("group").text in ("", group)
            and target.at("version").text in ("", version)
            and (not target.at("namespace").text or _fits(target.at("namespace").text, metadata.at("namespace").text))
            and _selects(target.at("labelSelector").text, metadata.at("labels"))
            and _selects(target.at("annotationSelector").text, metadata.at("annotations"))
        )

    def applied(self, node: Node) -> tuple[Node, str]:
        """An object after it, and why it does not apply; the object is left as it was then."""
        if self.root.kind is Kind.LIST:
            try:
                return patched(node, self.root), ""
            except DoesNotApply as error:
                return node, str(error)
        group = node.at("apiVersion").text.rpartition("/")[0]
        patch = self.root
        if self.target.is_there and patch.at("metadata").is_there:
            # a patch with a target may have any name: it is the target's that stays
            named = tuple(pair for pair in patch.at("metadata").pairs if pair[0] not in ("name", "namespace"))
            own = ("metadata", patch.at("metadata")._replace(pairs=named))
            patch = patch._replace(
                pairs=tuple(own if key == "metadata" else (key, value) for key, value in patch.pairs)
            )
        strategic = not group or group.endswith(_OWN_KINDS)
        return merged(node, patch, strategic=strategic), ""


def _self_target(root: Node) -> Node:
    pairs = [("kind", root.at("kind")), ("name", root.at("metadata", "name"))]
    return Node(kind=Kind.MAPPING, line=root.line, pairs=tuple(pairs))


def _fits(wanted: str, told: str) -> bool:
    if not wanted or wanted == told:
        return True
    try:
        return compiled(wanted)(told)
    except UnreadablePattern:
        return False


def _selects(selector: str, labels: Node) -> bool:
    """Whether labels meet a selector; one that cannot be read selects nothing, and is told with its patch."""
    asked = requirements_of_text(selector)
    return asked is not None and meets(labels, asked)


def held_patches(kustomization: Document, texts: _Texts, folder: str) -> tuple[list[Patch], list[tuple[str, int]]]:
    """The patches of a kustomization in the order in which they are applied; and what of them cannot be read.

    Args:
        kustomization: the document.
        texts: documents by path.
        folder: of the kustomization.

    Returns:
        The patches; and sentences with their lines.
    """
    root = kustomization.root
    found: list[Patch] = []
    wrong: list[tuple[str, int]] = []
    entries = [(entry, entry.text, NOTHING) for entry in root.at("patchesStrategicMerge").entries]
    entries += [
        (entry, "", entry.at("target")) for key in ("patches", "patchesJson6902") for entry in root.at(key).entries
    ]
    for entry, bare, target in entries:
        inline = bare if "\n" in bare or ":" in bare else entry.at("patch").text
        path = entry.at("path").text or ("" if inline else bare)
        place = joined(folder, path)
        selectors = [(key, target.at(key).text) for key in ("labelSelector", "annotationSelector")]
        wrong += [
            (f"a patch of the {key} {text!r} is not applied here", entry.line)
            for key, text in selectors
            if requirements_of_text(text) is None
        ]
        if inline:
            shift = (entry.at("patch").line or entry.line) - (0 if "\n" in inline else 1)
            read, unread = documents(Written(path=kustomization.path, text="\n" * shift + inline))
            wrong += [(f"a patch is {problem.message}", entry.line) for problem in unread]
        else:
            read = tuple(texts.get(place, ()))
            if not read:
                wrong.append((f"the patch {path or '(none)'} is not among these texts", entry.line))
        for document in read:
            if document.is_template:
                wrong.append((f"the patch {path or 'here'} is a template, which Kustomize does not fill", entry.line))
                continue
            is_json = document.root.kind is Kind.LIST and not document.root.at(0, "kind").is_there
            for node in (document.root,) if is_json else objects(document):
                where = document if path else kustomization
                found.append(
                    Patch(document=where, own_file=bool(path), line=node.line or entry.line, root=node, target=target)
                )
    return found, wrong


def joined(folder: str, name: str) -> str:
    """Where a name that stands in a kustomization of a folder leads."""
    return posixpath.normpath(posixpath.join(folder, name))


def in_namespace(node: Node, namespace: str, accounts: Set[str]) -> Node:
    """An object in the namespace of its kustomization; accounts of the same build in bindings go with it.

    Args:
        node: the object.
        namespace: of the kustomization; empty for none.
        accounts: names of the service accounts that the build holds.
    """
    kind = node.at("kind").text
    if not namespace:
        return node
    given = Node(kind=Kind.TEXT, text=namespace, line=node.at("metadata").line or node.line, plain=True)
    if kind == "Namespace":
        return changed(node, ("metadata", "name"), lambda old: given._replace(line=old.line))

    def moved(subject: Node) -> Node:
        name = subject.at("name").text
        if subject.at("kind").text != "ServiceAccount" or (name not in accounts and name != "default"):
            return subject
        return _with(subject, "namespace", given._replace(line=subject.line))

    if kind in ("ClusterRoleBinding", "RoleBinding"):
        node = changed(node, ("subjects", "*"), moved)
    if kind in _OF_CLUSTER or not kind:
        return node
    return changed(node, ("metadata",), lambda metadata: _with(metadata, "namespace", given))


def _with(node: Node, key: str, value: Node) -> Node:
    return node._replace(pairs=(*(pair for pair in node.pairs if pair[0] != key), (key, value)))


def renamed(node: Node, prefix: str, suffix: str) -> Node:
    """A workload with the prefix and suffix of its kustomization; what others refer to keeps its name, as they do."""
    if not (prefix or suffix) or node.at("kind").text not in _NAMED:
        return node
    return changed(node, ("metadata", "name"), lambda name: name._replace(text=f"{prefix}{name.text}{suffix}"))


def retagged(node: Node, images: Sequence[Node]) -> Node:
    """An object with the images of its kustomization: another name, tag or digest."""

    def given(image: Node) -> Node:
        for entry in images:
            name, _, digest = image.text.partition("@")
            bare, colon, tag = name.rpartition(":")
            if not colon or "/" in tag:
                bare, tag = name, ""
            if entry.at("name").text == bare:
                tag, digest = entry.at("newTag").text or tag, entry.at("digest").text or digest
                if entry.at("newTag").is_there and not entry.at("digest").is_there:
                    digest = ""
                text = entry.at("newName").text or bare
                text += (f":{tag}" if tag else "") + (f"@{digest}" if digest else "")
                return image._replace(text=text)
        return image

    for path in _PODS if images else ():
        for key in ("containers", "initContainers"):
            node = changed(node, (*path, key, "*", "image"), given)
    return node


def of_generator(root: Node, texts: _Texts, folder: str) -> Iterator[Node]:
    """The config maps that a kustomization makes of literals and of files that are here.

    One with a source that is not here is left out: what it holds is not known.
    """
    for entry in root.at("configMapGenerator").entries:
        if entry.at("envs").is_there or entry.at("env").is_there:
            continue
        pairs = []
        for literal in entry.at("literals").entries:
            key, _, value = literal.text.partition("=")
            pairs.append((key, Node(kind=Kind.TEXT, text=value.strip("'\""), line=literal.line)))
        known = True
        for file in entry.at("files").entries:
            key, equals, path = file.text.partition("=")
            path = path if equals else key
            here = texts.get(joined(folder, path), ())
            known = known and len(here) == 1
            pairs += [(key if equals else posixpath.basename(path), document.root) for document in here]
        if known:
            metadata = Node(kind=Kind.MAPPING, line=entry.line, pairs=(("name", entry.at("name")),))
            held = Node(kind=Kind.MAPPING, line=entry.line, pairs=tuple(pairs))
            kind = Node(kind=Kind.TEXT, text="ConfigMap", line=entry.line)
            yield Node(
                kind=Kind.MAPPING, line=entry.line, pairs=(("kind", kind), ("metadata", metadata), ("data", held))
            )


def of_chart(root: Node, texts: _Texts, folder: str) -> Iterator[Node]:
    """The charts that a kustomization fills, each as a release with its values."""
    for entry in root.at("helmCharts").entries:
        values, elsewhere = entry.at("valuesInline"), []
        if (named := entry.at("valuesFile").text) and not named.startswith(("http:", "https:")):
            here = texts.get(joined(folder, named), ())
            elsewhere += [] if here else [named]
            if here:
                values = merged(here[0].root, values, strategic=False) if values.is_there else here[0].root
        elsewhere += [each.text for each in entry.at("additionalValuesFiles").entries]
        yield _release(entry, values, elsewhere)


def _release(entry: Node, values: Node, elsewhere: Sequence[str]) -> Node:
    line = entry.line

    def text(word: str) -> Node:
        return Node(kind=Kind.TEXT, text=word, line=line)

    def mapping(*pairs: tuple[str, Node]) -> Node:
        return Node(kind=Kind.MAPPING, line=line, pairs=tuple(pair for pair in pairs if pair[1].is_there))

    files = tuple(mapping(("name", text(name))) for name in elsewhere)
    name = entry.at("releaseName").text or entry.at("name").text
    version = (("version", entry.at("version")),)
    return mapping(
        ("kind", text("HelmRelease")),
        ("metadata", mapping(("name", text(name)), ("namespace", entry.at("namespace")))),
        (
            "spec",
            mapping(
                ("chart", mapping(("spec", mapping(("chart", text(entry.at("name").text)), *version)))),
                ("values", values),
                ("valuesFrom", Node(kind=Kind.LIST, line=line, entries=files) if files else NOTHING),
            ),
        ),
    )
