"""What an exporter's container is told: environment and arguments, each on, off, unset, or not to be seen here."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from gpuledger.audit.documents import Document, Kind, Node

KUBERNETES = "DCGM_EXPORTER_KUBERNETES"
VIRTUAL_GPUS = "KUBERNETES_VIRTUAL_GPUS"
POD_UID = "DCGM_EXPORTER_KUBERNETES_ENABLE_POD_UID"
POD_LABELS = "DCGM_EXPORTER_KUBERNETES_ENABLE_POD_LABELS"
RESOURCE_NAMES = "NVIDIA_RESOURCE_NAMES"
DRA = "KUBERNETES_ENABLE_DRA"
SOCKET = "DCGM_POD_RESOURCES_KUBELET_SOCKET"
COLLECTORS = "DCGM_EXPORTER_COLLECTORS"
OLD_NAMES = "DCGM_EXPORTER_USE_OLD_NAMESPACE"
FAKE_GPUS = "DCGM_EXPORTER_USE_FAKE_GPUS"
CONFIG_FILE = "DCGM_EXPORTER_CONFIG_FILE"
NODE_NAME = "NODE_NAME"

FLAGS: dict[str, tuple[str, ...]] = {
    KUBERNETES: ("kubernetes", "k"),
    VIRTUAL_GPUS: ("kubernetes-virtual-gpus",),
    POD_UID: ("kubernetes-enable-pod-uid",),
    POD_LABELS: ("kubernetes-enable-pod-labels",),
    RESOURCE_NAMES: ("nvidia-resource-names",),
    DRA: ("kubernetes-enable-dra",),
    SOCKET: ("pod-resources-kubelet-socket",),
    COLLECTORS: ("collectors", "f"),
    OLD_NAMES: ("use-old-namespace", "o"),
    FAKE_GPUS: ("fake-gpus",),
    CONFIG_FILE: ("config-file",),
}
"""Each variable with the flags that mean the same (dcgm-exporter, pkg/cmd/app.go); a flag goes before its variable."""

_VALUED = frozenset([RESOURCE_NAMES, SOCKET, COLLECTORS, CONFIG_FILE])
_TRUTHS = {"1": True, "t": True, "true": True, "0": False, "f": False, "false": False}


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One setting of one container.

    Args:
        name: the environment variable.
        text: its value; empty where it is not set.
        known: whether the text tells it; else a template, a config map or a secret does.
        line: where it stands; of the container where it does not.
        why: where it comes from, for people: ``env``, ``--kubernetes``, ``not set``, ``{{ .Values.x }}``.
    """

    name: str
    text: str
    known: bool
    line: int
    why: str

    @property
    def is_on(self) -> bool:
        """Whether it is surely switched on, as Go's strconv.ParseBool reads it."""
        return self.known and _TRUTHS.get(self.text.strip().lower(), False)

    @property
    def is_off(self) -> bool:
        """Whether it is surely not switched on."""
        return self.known and not self.is_on


def settings_of(container: Node, document: Document, config_maps: Mapping[str, Node]) -> dict[str, Setting]:
    """Every setting that the audit asks for.

    Args:
        container: the exporter's.
        document: the one it stands in.
        config_maps: ``data`` of the config maps of all texts, by name.
    """
    given = _environment(container, document, config_maps)
    flags, open_ended = _flags(container, document)
    elsewhere = given.pop("", None)
    found: dict[str, Setting] = {}
    for name in (*FLAGS, NODE_NAME):
        flag = next((flags[word] for word in FLAGS.get(name, ()) if word in flags), None)
        if flag is not None:
            found[name] = Setting(name=name, text=flag[0], known=flag[1], line=flag[2], why=flag[3])
        elif name in given:
            found[name] = given[name]
        else:
            why = elsewhere.why if elsewhere else open_ended if name in FLAGS else ""
            found[name] = Setting(name=name, text="", known=not why, line=container.line, why=why or "not set")
    file = found[CONFIG_FILE]
    if file.text or not file.known:
        why = f"the configuration file {document.shown(file.text)}" if file.known else file.why
        for name, setting in found.items():
            if setting.why == "not set" and name != NODE_NAME:
                found[name] = Setting(name=name, text="", known=False, line=file.line, why=why)
    return found


def _environment(container: Node, document: Document, config_maps: Mapping[str, Node]) -> dict[str, Setting]:
    """Variables by name; under the empty name, why there may be others."""
    found: dict[str, Setting] = {}

    def unknown(name: str, node: Node, why: str) -> None:
        found[name] = Setting(name=name, text="", known=False, line=node.line or container.line, why=why)

    for source in container.at("envFrom").entries:
        named = source.at("configMapRef", "name").text
        if named in config_maps:
            why = f"config map {named}"
            for key, value in config_maps[named].pairs:
                name = f"{source.at('prefix').text}{key}"
                found[name] = Setting(name=name, text=value.text, known=True, line=source.line, why=why)
        else:
            unknown("", source, f"envFrom {document.shown(named)}".rstrip())
    if container.at("env").opaque and container.at("env").kind is not Kind.LIST:
        unknown("", container.at("env"), document.shown(container.at("env").pairs[0][0]))
    for entry in container.at("env").entries:
        name, value = entry.at("name").text, entry.at("value")
        reference = entry.at("valueFrom", "configMapKeyRef")
        if entry.kind is not Kind.MAPPING or not name or entry.at("name").opaque:
            text = entry.text or (entry.pairs[0][0] if entry.pairs else "") or name
            unknown("", entry, document.shown(text) or "a template")
        elif entry.line in document.conditional:
            unknown(name, entry, f"a condition of the template at line {entry.line}")
        elif value.opaque:
            unknown(name, value, document.shown(value.text))
        elif reference.is_there and reference.at("name").text in config_maps:
            text = config_maps[reference.at("name").text].at(reference.at("key").text).text
            found[name] = Setting(name=name, text=text, known=True, line=entry.line, why="config map")
        elif entry.at("valueFrom").is_there and not entry.at("valueFrom", "fieldRef").is_there:
            unknown(name, entry, "valueFrom")
        else:
            text = value.text or entry.at("valueFrom", "fieldRef", "fieldPath").text
            found[name] = Setting(name=name, text=text, known=True, line=entry.line, why="env")
    return found


def _flags(container: Node, document: Document) -> tuple[dict[str, tuple[str, bool, int, str]], str]:
    """Flags by name without dashes: value, whether it is known, line, how it stands; and why there may be others."""
    words: list[tuple[str, int]] = []
    open_ended = ""
    for key in ("command", "args"):
        node = container.at(key)
        for entry in node.entries or ((node,) if node.is_there else ()):
            if entry.opaque or entry.line in document.conditional:
                open_ended = document.shown(entry.text or (entry.pairs[0][0] if entry.pairs else "a template"))
            words += [(word, entry.line) for word in entry.text.split()]
    found: dict[str, tuple[str, bool, int, str]] = {}
    for place, (word, line) in enumerate(words):
        flag = re.match(r"--?([a-z][a-z-]*)(?:=(.*))?$", word)
        if flag is None:
            continue
        valued = any(flag[1] in FLAGS[name] for name in _VALUED)
        follows = words[place + 1][0] if valued and place + 1 < len(words) else "true"
        text = flag[2] if flag[2] is not None else follows
        known = "\ue000" not in text and line not in document.conditional
        found[flag[1]] = (text, known, line, f"-{'-' * (len(flag[1]) > 1)}{flag[1]}")
    return found, open_ended
