"""What stands beside an exporter in the texts of ``audit manifests``: namespaces, accounts, config maps, resources.

Names count inside their namespace: an account of another one says nothing. What a kustomization builds is judged
with what it builds beside it and with the texts that no kustomization takes up, not with other builds.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from gpuledger.audit.documents import NOTHING, Document, Node, objects
from gpuledger.audit.resource_names import renamed_resources, uses_claims


class World:
    """What all texts around an exporter say.

    Args:
        read: every document that is applied together.
        now_us: the present.
    """

    def __init__(self, read: Sequence[Document], now_us: int) -> None:
        self.read = read
        self.now_us = now_us
        self.renamed = renamed_resources(read)
        self.claims = uses_claims(read)
        self.namespaces: dict[str, tuple[Document, Node]] = {}
        self.constraints: list[Node] = []
        self._named: dict[tuple[str, str], dict[str, Node]] = {}
        for document in read:
            for node in objects(document):
                kind, name = node.at("kind").text, node.at("metadata", "name").text
                if kind == "Namespace":
                    self.namespaces[name] = (document, node)
                elif kind == "SecurityContextConstraints":
                    self.constraints.append(node)
                elif kind in ("ServiceAccount", "ConfigMap"):
                    self._named.setdefault((kind, name), {})[node.at("metadata", "namespace").text] = node

    def account(self, name: str, namespace: str) -> Node:
        """A service account as an exporter of a namespace has it; nothing where the texts do not hold it."""
        return _in(self._named.get(("ServiceAccount", name or "default"), {}), namespace)

    def config_maps(self, namespace: str) -> Mapping[str, Node]:
        """``data`` of the config maps that an exporter of a namespace can name, by name."""
        named = ((name, _in(places, namespace)) for (kind, name), places in self._named.items() if kind == "ConfigMap")
        return {name: node.at("data") for name, node in named if node.is_there}


def _in(places: Mapping[str, Node], namespace: str) -> Node:
    """The object of a namespace, else one that does not say its own; where the namespace is unknown, the only one."""
    if namespace in places:
        return places[namespace]
    if "" in places:
        return places[""]
    return next(iter(places.values())) if not namespace and len(places) == 1 else NOTHING


def worlds_of(read: Iterable[Document], now_us: int) -> dict[str, World]:
    """A world for the texts as they lie there (under the empty name), and one for each kustomization.

    Args:
        read: every document, built ones among them.
        now_us: the present.
    """
    every = list(read)
    builders = dict.fromkeys(document.built_by for document in every)
    parts = {by: [document for document in every if document.built_by in ("", by)] for by in builders}
    return {by: World(part if by else every, now_us) for by, part in parts.items()}
