"""What an exporter is told: by variables, by flags, by config maps; and what cannot be seen."""

from __future__ import annotations

import pytest

from gpuledger.audit.documents import documents
from gpuledger.audit.manifest_settings import (
    COLLECTORS,
    KUBERNETES,
    NODE_NAME,
    POD_UID,
    RESOURCE_NAMES,
    VIRTUAL_GPUS,
    Setting,
    settings_of,
)
from gpuledger.model.findings import Written


def settings(container: str, maps: str = "{}") -> dict[str, Setting]:
    (document,), _ = documents(Written(path="d.yaml", text=container))
    (held,), _ = documents(Written(path="m.yaml", text=f"a: {maps}"))
    return settings_of(document.root, document, dict(held.root.at("a").pairs))


@pytest.mark.parametrize("value", ["true", '"true"', '"1"', "T", '"True"'])
def test_switched_on_as_go_reads_it(value: str) -> None:
    """Quoted or not."""
    found = settings(f"env: [{{name: KUBERNETES_VIRTUAL_GPUS, value: {value}}}]")[VIRTUAL_GPUS]
    assert (found.is_on, found.is_off, found.line, found.why) == (True, False, 1, "env")


@pytest.mark.parametrize("text", ["env: []", "env: [{name: KUBERNETES_VIRTUAL_GPUS, value: 'yes'}]", "image: x"])
def test_not_switched_on(text: str) -> None:
    """Unset, or a word that Go does not take."""
    found = settings(text)[VIRTUAL_GPUS]
    assert (found.is_on, found.is_off) == (False, True)


@pytest.mark.parametrize(
    "args",
    [
        "[-k, --kubernetes-virtual-gpus]",
        "[--kubernetes=true, --kubernetes-virtual-gpus=true]",
        "['-k --kubernetes-virtual-gpus']",
    ],
)
def test_flags_are_settings(args: str) -> None:
    """Short, long, with a value, or in one word for a shell; they go before variables."""
    found = settings(f"args: {args}\nenv: [{{name: DCGM_EXPORTER_KUBERNETES, value: 'false'}}]")
    assert found[KUBERNETES].is_on
    assert found[VIRTUAL_GPUS].is_on


def test_flags_with_values() -> None:
    """After a blank or an equals sign."""
    found = settings("args: [-f, /etc/dcp-metrics-included.csv, --nvidia-resource-names=a/b]")
    assert found[COLLECTORS].text == "/etc/dcp-metrics-included.csv"
    assert found[RESOURCE_NAMES].text == "a/b"


def test_config_maps_of_the_texts() -> None:
    """Whole ones, and single keys; one that is not here leaves everything open."""
    maps = "{m: {KUBERNETES_VIRTUAL_GPUS: 'true'}}"
    assert settings("envFrom: [{configMapRef: {name: m}}]", maps)[VIRTUAL_GPUS].is_on
    reference = "{configMapKeyRef: {name: m, key: KUBERNETES_VIRTUAL_GPUS}}"
    key = f"env: [{{name: X, value: y}}, {{name: KUBERNETES_VIRTUAL_GPUS, valueFrom: {reference}}}]"
    assert settings(key, maps)[VIRTUAL_GPUS].is_on
    open_ended = settings("envFrom: [{secretRef: {name: s}}]")
    assert not open_ended[VIRTUAL_GPUS].known
    assert not settings(key)[VIRTUAL_GPUS].known


def test_a_configuration_file_leaves_the_rest_open() -> None:
    """Since 4.6.0-4.8.3 it may set what no variable does."""
    found = settings("args: [--config-file=/c.yaml]\nenv: [{name: DCGM_EXPORTER_KUBERNETES, value: 'true'}]")
    assert found[KUBERNETES].is_on
    assert (found[POD_UID].known, found[POD_UID].why) == (False, "the configuration file /c.yaml")


def test_templates_are_open_where_they_are() -> None:
    """An expression, a condition, a list that values extend."""
    found = settings(
        "env:\n- name: DCGM_EXPORTER_KUBERNETES\n  value: {{ .Values.k }}\n{{- if .Values.uid }}\n"
        '- name: DCGM_EXPORTER_KUBERNETES_ENABLE_POD_UID\n  value: "true"\n{{- end }}\n'
        "- name: NODE_NAME\n  valueFrom: {fieldRef: {fieldPath: spec.nodeName}}\n"
        "{{- toYaml .Values.extraEnv | nindent 0 }}\n"
    )
    assert (found[KUBERNETES].known, found[KUBERNETES].why) == (False, "{{ .Values.k }}")
    assert (found[POD_UID].known, "condition" in found[POD_UID].why) == (False, True)
    assert (found[VIRTUAL_GPUS].known, "extraEnv" in found[VIRTUAL_GPUS].why) == (False, True)
    assert found[NODE_NAME].text == "spec.nodeName"
