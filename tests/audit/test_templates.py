"""Helm templates as YAML: same lines, opaque values, lists and keys where Helm would put them."""

from __future__ import annotations

from gpuledger.audit.documents import documents
from gpuledger.audit.templates import conditional_lines, expressions, untemplated
from gpuledger.model.findings import Written

TEMPLATE = """\
{{- /* a comment
  of two lines */ -}}
kind: DaemonSet
metadata:
  name: {{ include "x.name" . }}
  labels:
    {{- include "x.labels" . | nindent 4 }}
spec:
  hostPID: {{ .Values.hostPID | default false }}
  {{- with .Values.pull }}
  secrets:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  volumes:
  - name: a
  {{- range .Values.more }}
  - name: {{ .name | quote }}
  {{- end }}
  {{- toYaml .Values.extra | nindent 2 }}
  containers:
  - {{- toYaml .Values.first | nindent 4 }}
  {{- if .Values.tag }}
  - image: "{{ .Values.repo }}:{{ .Values.tag }}"
  {{- else }}
  - image: "{{ .Values.repo }}:{{ .Chart.AppVersion }}"
  {{- end }}
"""


def test_a_template_is_read_with_its_lines() -> None:
    """Values are opaque and shown as written; what stands there in any case is read as it stands."""
    (document,), unread = documents(Written(path="d.yaml", text=TEMPLATE))
    root = document.root
    assert (unread, document.is_template) == ((), True)
    assert root.at("kind").text == "DaemonSet"
    assert (root.at("spec", "hostPID").line, root.at("spec", "hostPID").opaque) == (9, True)
    assert document.shown(root.at("spec", "hostPID").text) == "{{ .Values.hostPID | default false }}"
    assert root.at("metadata", "labels").opaque
    volumes = root.at("spec", "volumes").entries
    assert next(volume.opaque for volume in volumes) is False
    assert len(volumes) == 3
    assert [document.shown(entry.at("image").text) for entry in root.at("spec", "containers").entries][-2:] == [
        "{{ .Values.repo }}:{{ .Values.tag }}",
        "{{ .Values.repo }}:{{ .Chart.AppVersion }}",
    ]


def test_lines_stay_where_they_are() -> None:
    """An expression over several lines leaves as many."""
    assert untemplated(TEMPLATE).count("\n") == TEMPLATE.count("\n")


def test_a_value_in_braces_is_a_template_though_yaml_would_take_it() -> None:
    """To YAML it is a mapping whose key is a mapping."""
    (document,), unread = documents(Written(path="d.yaml", text="kind: DaemonSet\nhostPID: {{ .Values.hostPID }}\n"))
    assert (unread, document.is_template, document.root.at("hostPID").opaque) == ((), True, True)


def test_braces_that_never_end_are_text() -> None:
    """Nothing is swallowed."""
    assert untemplated("a: {{ b") == "a: {{ b"
    assert expressions("a: {{- b | c -}} {{d}} {{") == ("b | c", "d")


def test_many_open_braces_cost_little() -> None:
    """No search from every one of them to the end."""
    assert untemplated("{{" * 500_000) == "{{" * 500_000


def test_plain_yaml_with_braces_is_no_template() -> None:
    """Prometheus writes its own braces inside quotes."""
    (document,), _ = documents(Written(path="r.yaml", text='a: "{{ $labels.pod }} is slow"\n'))
    assert not document.is_template
    assert document.root.at("a").text == "{{ $labels.pod }} is slow"


def test_a_condition_around_everything_is_none() -> None:
    """Where it fails there is no manifest; what is inside another one within it is conditional still."""
    whole = "# made here\n{{- if .Values.on }}\na: 1\n{{- if .Values.b }}\nb: 2\n{{- end }}\n{{- end }}\n"
    assert conditional_lines(whole) == {4, 5, 6}
    assert conditional_lines("{{ if .A }}\na: 1\n{{ else }}\na: 2\n{{ end }}\n") == {1, 2, 3, 4, 5}
    assert conditional_lines("{{ if .A }}\na: 1\n{{ end }}\nb: 1\n") == {1, 2, 3}
