"""What stands beside an exporter: by name inside a namespace, and by what builds it."""

from __future__ import annotations

from dataclasses import replace

from gpuledger.audit.documents import Document, documents
from gpuledger.audit.manifest_world import World, worlds_of
from gpuledger.model.findings import Written


def read(text: str) -> list[Document]:
    return list(documents(Written(path="f", text=text))[0])


ACCOUNT = "kind: ServiceAccount\nmetadata: {name: dcgm%s}\nautomountServiceAccountToken: %s\n"
TWO = ACCOUNT % (", namespace: gpu", "true") + "---\n" + ACCOUNT % (", namespace: other", "false")


def token(text: str, namespace: str) -> str:
    return World(read(text), 0).account("dcgm", namespace).at("automountServiceAccountToken").text


def test_an_account_counts_in_its_namespace() -> None:
    """One of the same name elsewhere says nothing of this one; one without a namespace may be it."""
    assert token(TWO, "gpu") == "true"
    assert token(TWO, "other") == "false"
    assert token(TWO, "third") == ""
    assert token(ACCOUNT % ("", "false"), "gpu") == "false"
    assert token(ACCOUNT % ("", "false") + "---\n" + TWO, "gpu") == "true"


def test_where_the_namespace_is_not_known() -> None:
    """The only one of that name counts; of two nobody knows which."""
    assert token(ACCOUNT % (", namespace: gpu", "false"), "") == "false"
    assert token(TWO, "") == ""


def test_config_maps() -> None:
    """By name, in the same way."""
    text = "kind: ConfigMap\nmetadata: {name: m%s}\ndata: {a: %s}\n"
    both = text % (", namespace: gpu", "b") + "---\n" + text % (", namespace: other", "c")
    assert World(read(text % ("", "b")), 0).config_maps("gpu")["m"].at("a").text == "b"
    assert World(read(both), 0).config_maps("gpu")["m"].at("a").text == "b"
    assert World(read(both), 0).config_maps("third") == {}


def test_one_world_for_each_build() -> None:
    """Two overlays each hold their own account; a text that none takes up belongs to both."""
    plain = read("kind: Namespace\nmetadata: {name: gpu}\n")
    one, two = (
        replace(read(ACCOUNT % (", namespace: gpu", word))[0], built_by=by)
        for by, word in (("a", "true"), ("b", "false"))
    )
    worlds = worlds_of([*plain, one, two], 0)
    assert list(worlds) == ["", "a", "b"]
    assert worlds["a"].account("dcgm", "gpu").at("automountServiceAccountToken").text == "true"
    assert worlds["b"].account("dcgm", "gpu").at("automountServiceAccountToken").text == "false"
    assert all("gpu" in world.namespaces for world in worlds.values())
