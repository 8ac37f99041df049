"""Kustomize's folders built as ``kubectl kustomize`` builds them, as far as audits need it: what is applied is judged.

In: all documents of the texts, kustomizations among them. Out: the documents to judge: those that no kustomization
takes up as they are, and for each kustomization that is no other one's base what it makes of its resources.
Resources, components, patches of every form, namespaces, prefixes, images, generated maps, charts with their values.
What lies elsewhere (a remote base) or is not applied here (replacements) is told.
Source: kustomize's own order of transformers (api/internal/target) and its documentation of the file.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from gpuledger.audit.document_node import Node
from gpuledger.audit.documents import Document, documents, objects
from gpuledger.audit.kustomize_changes import (
    Patch,
    held_patches,
    in_namespace,
    joined,
    of_chart,
    of_generator,
    renamed,
    retagged,
)
from gpuledger.model.findings import Looked, Where, Written
from gpuledger.model.problem import Problem

NAMES = ("kustomization.yaml", "kustomization.yml", "Kustomization")
"""What the file of a folder may be called."""

_NOT_APPLIED = ("replacements", "vars", "transformers", "generators")
_GPU = re.compile(r"dcgm|gpu|nvidia", re.IGNORECASE)
_DEEPEST = 20
_MOST_TRIES = 2_000_000
"""Patches times objects of one kustomization; the largest published ones have a few hundred of each."""

_MOST = 20_000
"""Objects that all kustomizations together may make: a base of many overlays is built for each."""


@dataclass(slots=True, kw_only=True)
class Built:
    """What came of the kustomizations.

    Args:
        documents: to be judged, in the order of the texts; built ones say by what.
        looked: patches, with what they change.
        unread: what lies elsewhere or is not applied here, where it may be of GPUs.
        elsewhere: resources that are not here and whose names do not speak of GPUs.
    """

    documents: tuple[Document, ...]
    looked: tuple[Looked, ...] = ()
    unread: tuple[Problem, ...] = ()
    elsewhere: tuple[str, ...] = ()


@dataclass(slots=True)
class _Held:
    """One object on its way through a build: where it stands, what it is now, and the name it was given at first."""

    document: Document
    node: Node
    first: str


@dataclass(slots=True)
class _Making:
    """All builds of one audit."""

    by_path: dict[str, list[Document]]
    folders: dict[str, Document]
    audit: str
    taken: set[str] = field(default_factory=set)
    looked: dict[tuple[str, int, str], Looked] = field(default_factory=dict)
    unread: dict[str, Problem] = field(default_factory=dict)
    elsewhere: dict[str, None] = field(default_factory=dict)
    built: dict[str, list[_Held]] = field(default_factory=dict)
    made: int = 0


def is_kustomization(document: Document) -> bool:
    """Whether a document tells Kustomize what to build; Flux' objects of the same name do not."""
    api = document.root.at("apiVersion").text
    return api.startswith("kustomize.config.k8s.io/") or (not api and posixpath.basename(document.path) in NAMES)


def folder_of(path: str) -> str:
    """The folder of a file, spelled one way."""
    return posixpath.normpath(posixpath.dirname(path) or ".")


def references(document: Document) -> tuple[str, ...]:
    """Files and folders that a kustomization names and that can lie beside it, spelled one way.

    Args:
        document: any; others name none.
    """
    if not is_kustomization(document):
        return ()
    root, folder = document.root, folder_of(document.path)
    named = [entry.text for key in ("resources", "bases", "components") for entry in root.at(key).entries]
    named += [entry.text for entry in root.at("patchesStrategicMerge").entries if "\n" not in entry.text]
    named += [entry.at("path").text for key in ("patches", "patchesJson6902") for entry in root.at(key).entries]
    named += [entry.at("valuesFile").text for entry in root.at("helmCharts").entries]
    return tuple(joined(folder, name) for name in named if name and not _is_remote(name))


def kustomization_references(written: Written) -> tuple[str, ...]:
    """What a text names beside it, if it is a kustomization; other texts are not even parsed.

    Args:
        written: any text.
    """
    if posixpath.basename(written.path) not in NAMES and "kustomize.config.k8s.io/" not in written.text:
        return ()
    found, _ = documents(written)
    return tuple(name for document in found for name in references(document))


def built(read: Sequence[Document], *, audit: str = "manifests") -> Built:
    """The documents as they are applied.

    Args:
        read: every document of the texts.
        audit: whose they are, for the command that is told where something is not here.
    """
    folders = {folder_of(document.path): document for document in read if is_kustomization(document)}
    if not folders:
        return Built(documents=tuple(read))
    by_path: dict[str, list[Document]] = {}
    for document in read:
        by_path.setdefault(posixpath.normpath(document.path), []).append(document)
    making = _Making(by_path, folders, audit)
    bases = {each for document in folders.values() for each in references(document)} & folders.keys()
    made: list[Document] = []
    for folder, document in folders.items():
        if folder in bases or document.root.at("kind").text == "Component":
            continue
        made += [replace(held.document, root=held.node, built_by=document.path) for held in _build(making, folder, ())]
    left = [
        document
        for document in read
        if posixpath.normpath(document.path) not in making.taken and not is_kustomization(document)
    ]
    return Built(
        documents=(*left, *made),
        looked=tuple(making.looked.values()),
        unread=tuple(making.unread.values()),
        elsewhere=tuple(making.elsewhere),
    )


def _build(making: _Making, folder: str, above: tuple[str, ...]) -> list[_Held]:
    """What one folder makes."""
    kustomization = making.folders[folder]
    if folder in above or len(above) >= _DEEPEST:
        _tell(making, kustomization, "a circle of bases" if folder in above else "bases of bases without an end")
        return []
    if folder in making.built:
        return [_Held(each.document, each.node, each.first) for each in making.built[folder]]
    root = kustomization.root
    held: list[_Held] = []
    missing = False
    for entry in (*root.at("resources").entries, *root.at("bases").entries):
        more = _resource(making, kustomization, entry, (*above, folder))
        missing |= more is None
        held += more or []
        if making.made + len(held) > _MOST:
            _tell(making, kustomization, f"more than {_MOST:,} objects are built; the rest was left out")
            break
    for node in (*of_generator(root, making.by_path, folder), *of_chart(root, making.by_path, folder)):
        held.append(_Held(kustomization, node, node.at("metadata", "name").text))
    missing |= root.at("helmCharts").is_there
    for entry in root.at("components").entries:
        missing |= _component(making, kustomization, entry, held, (*above, folder))
    _change(making, kustomization, held, missing=missing)
    making.made += len(held)
    making.built[folder] = [_Held(each.document, each.node, each.first) for each in held]
    return held


def _resource(making: _Making, kustomization: Document, entry: Node, above: tuple[str, ...]) -> list[_Held] | None:
    """The objects of one entry of ``resources``; None where they are not here."""
    place = joined(folder_of(kustomization.path), entry.text)
    if not _is_remote(entry.text) and place in making.folders:
        return _build(making, place, above)
    if not _is_remote(entry.text) and place in making.by_path:
        making.taken.add(place)
        return [
            _Held(document, node, node.at("metadata", "name").text)
            for document in making.by_path[place]
            for node in objects(document)
        ]
    if _GPU.search(f"{entry.text} {posixpath.basename(folder_of(kustomization.path))}"):
        _tell(making, kustomization, f"{entry.text} is not among these texts", entry.line)
    else:
        making.elsewhere[entry.text] = None
    return None


def _component(
    making: _Making, kustomization: Document, entry: Node, held: list[_Held], above: tuple[str, ...]
) -> bool:
    """A component laid over what is there; whether something of it is not here."""
    place = joined(folder_of(kustomization.path), entry.text)
    component = making.folders.get(place)
    if component is None or place in above or len(above) >= _DEEPEST:
        _tell(making, kustomization, f"the component {entry.text} is not among these texts", entry.line)
        return True
    missing = False
    for each in component.root.at("resources").entries:
        more = _resource(making, component, each, (*above, place))
        missing |= more is None
        held += more or []
    for each in component.root.at("components").entries:
        missing |= _component(making, component, each, held, (*above, place))
    _change(making, component, held, missing=missing)
    return missing


def _change(making: _Making, kustomization: Document, held: list[_Held], *, missing: bool) -> None:
    """Everything that one kustomization does to its objects, in the order in which Kustomize does it."""
    root = kustomization.root
    patches, wrong = held_patches(kustomization, making.by_path, folder_of(kustomization.path))
    if len(patches) * len(held) > _MOST_TRIES:
        patches, wrong = [], [*wrong, (f"{len(patches):,} patches over {len(held):,} objects are not applied here", 0)]
    for patch in patches:
        _patch(making, kustomization, patch, held, missing=missing)
    for why, line in wrong:
        _tell(making, kustomization, why, line)
    accounts = {each.first for each in held if each.node.at("kind").text == "ServiceAccount"}
    for each in held:
        each.node = in_namespace(each.node, root.at("namespace").text, accounts)
        each.node = renamed(each.node, root.at("namePrefix").text, root.at("nameSuffix").text)
        each.node = retagged(each.node, root.at("images").entries)
    undone = [key for key in _NOT_APPLIED if root.at(key).is_there]
    if undone and any(_GPU.search(each.first) for each in held):
        _tell(making, kustomization, f"{', '.join(undone)} of it are not applied here")


def _patch(making: _Making, kustomization: Document, patch: Patch, held: list[_Held], *, missing: bool) -> None:
    making.taken |= {posixpath.normpath(patch.document.path)} if patch.own_file else set()
    struck = []
    for each in held:
        if patch.aims_at(each.node, each.first):
            kind = each.node.at("kind").text
            node, why = patch.applied(each.node)
            if why:
                _tell(making, kustomization, f"a patch of {each.first} does not apply: {why}", patch.line)
            each.node = node
            struck.append(f"{kind} {each.first}")
    held[:] = [each for each in held if each.node.is_there]
    speaks = bool(_GPU.search(patch.words))
    if not struck and missing and speaks:
        _tell(making, kustomization, f"a patch changes {patch.aim}, which is not here", patch.line)
    if struck and (speaks or any(_GPU.search(name) for name in struck)):
        why = f"it changes {', '.join(struck[:3])}; what {kustomization.path} makes of it is judged"
        where = Where(path=patch.document.path, line=patch.line, name=f"patch of {patch.aim}")
        making.looked[where.path, where.line, kustomization.path] = Looked(where=where, verdict="patch", why=why)


def _tell(making: _Making, kustomization: Document, why: str, line: int = 0) -> None:
    """Something of a build that was not judged, and how to give it."""
    message = f"{why}: kubectl kustomize {folder_of(kustomization.path)} | gpuledger audit {making.audit} -"
    where = f"{kustomization.path}:{line or kustomization.line}"
    making.unread.setdefault(message, Problem(code="kustomize-not-built", message=message, where=where))


def _is_remote(name: str) -> bool:
    """Whether an entry lies in a repository or behind an address, and not beside the file."""
    return "://" in name or "?ref=" in name or name.startswith(("git@", "github.com/", "git::"))
