"""Finds exporters of GPU figures in manifests, and brings every form of them to one: a pod and where it stands.

Forms: a DaemonSet or another workload as it is or as a Helm template; values of the dcgm-exporter chart, of the
gpu-operator chart, and of charts that hold either; a ClusterPolicy; the values inside a HelmRelease (Flux) or an
Application (Argo CD). For values, the pod is put together as the chart does it, so that one set of rules judges all.
Sources: the charts' own templates (dcgm-exporter 4.8.2, gpu-operator 0800_daemonset of 26.3).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from gpuledger.audit.documents import NOTHING, Document, Kind, Node, documents, objects
from gpuledger.audit.manifest_parameters import with_parameters
from gpuledger.model.findings import Written
from gpuledger.model.problem import Problem

POD_RESOURCES = "/var/lib/kubelet/pod-resources"
"""Where the kubelet's socket lies, and where both charts mount it."""

_WORKLOADS = ("DaemonSet", "Deployment", "StatefulSet", "Pod", "Job", "ReplicaSet")
_EXPORTER = re.compile(r"dcgm[-_]?exporter", re.IGNORECASE)
_CHARTS = ("dcgm-exporter", "gpu-operator")
_CLOUDWATCH = ("neuronMonitor", "gpuNodeLabelKey", "gpuInstances", "containerLogs")
"""Keys of the chart amazon-cloudwatch-observability, which has a dcgmExporter of its own."""

UNJUDGED = ("patch", "made-elsewhere")
"""Verdicts of what may well be an exporter: it is told as not judged, never passed over."""

_CHART_KEYS = frozenset(["kubeletPath", "kubernetesDRA", "hostPID", "arguments", "extraEnv", "kubernetes"])


@dataclass(frozen=True, slots=True, kw_only=True)
class Exporter:
    """One exporter of one text.

    Args:
        document: the document it stands in.
        form: what it is, for people: ``DaemonSet``, ``values of the dcgm-exporter chart``.
        name: of the workload, or the path of keys of values.
        namespace: where it will run; empty where the text does not say.
        line: where it begins.
        pod: the pod's spec, as it stands or as the chart makes it.
        container: the exporter's own.
        access: True where a chart makes the account's rights to read pods; None where texts must show them.
        from_values: whether a chart makes the pod, so that what is not said has the chart's default.
        chart: name and version of the chart that a release pins; empty where none does.
    """

    document: Document
    form: str
    name: str
    namespace: str
    line: int
    pod: Node
    container: Node
    access: bool | None = None
    from_values: bool = False
    chart: tuple[str, str] = ("", "")

    @property
    def title(self) -> str:
        """How findings name it."""
        built = f" built by {self.document.built_by}" if self.document.built_by else ""
        return f"{self.form} {self.name}".rstrip() + built


@dataclass(frozen=True, slots=True, kw_only=True)
class Other:
    """What was looked at and is no exporter that can be judged.

    Args:
        document: the document it stands in.
        line: where it begins.
        name: what it is called.
        verdict: ``not-an-exporter``, ``patch``, ``switched-off``, ``undecidable``, ``made-elsewhere`` or ``no-pods``.
        why: in one sentence.
    """

    document: Document
    line: int
    name: str
    verdict: str
    why: str


def exporters(document: Document) -> tuple[tuple[Exporter | Other, ...], tuple[Problem, ...]]:
    """Every exporter of a document and every workload that is none, in order; and values in it that are no YAML."""
    found: list[Exporter | Other] = []
    unread: list[Problem] = []
    for node in objects(document):
        kind = node.at("kind").text
        if kind in _WORKLOADS or node.at("spec", "template", "spec", "containers").is_there:
            found.append(_workload(document, node))
        elif kind == "ClusterPolicy" and node.at("spec", "dcgmExporter").is_there:
            found.append(
                _of_operator(document, node.at("spec", "dcgmExporter"), "ClusterPolicy", _name(document, node))
            )
        elif kind and (kind == "DcgmExporter" or node.at("spec", "dcgmExporter").is_there):
            why = f"the operator of {kind} makes a DaemonSet of it that is not known here"
            found.append(_not_here(document, node.line, f"{kind} {_name(document, node)}", why))
        elif kind == "HelmRelease":
            chart = node.at("spec", "chart", "spec", "chart").text
            values, name = _for_chart(node.at("spec", "values"), chart, node.line), _name(document, node)
            parts = list(_of_values(document, values, _namespace(node), f"{name} spec.values", chart))
            parts = _pinned(parts, chart, node.at("spec", "chart", "spec", "version").text)
            if parts and (sources := [entry.at("name").text for entry in node.at("spec", "valuesFrom").entries]):
                parts, wrong = _elsewhere(document, node.line, name, ", ".join(sources))
                unread += wrong
            found += parts or _other_chart(document, node.line, name, chart)
        elif kind == "Application":
            inside, wrong = _of_application(document, node)
            found += inside
            unread += wrong
        elif not kind and not node.at("apiVersion").is_there:
            found += _of_values(document, node, "", "")
    unread += [_unjudged(part) for part in found if isinstance(part, Other) and part.verdict in UNJUDGED]
    return tuple(found), tuple(unread)


def _unjudged(other: Other) -> Problem:
    where = f"{other.document.path}:{other.line}"
    return Problem(code=other.verdict, message=f"{other.name}: {other.why}", where=where)


def _workload(document: Document, node: Node) -> Exporter | Other:
    kind = node.at("kind").text or "workload"
    pod = node.at("spec") if kind == "Pod" else node.at("spec", "template", "spec")
    name = _name(document, node)

    def other(verdict: str, why: str) -> Other:
        return Other(document=document, line=node.line, name=f"{kind} {name}", verdict=verdict, why=why)

    container = _exporting(document, node, pod)
    if container is None:
        return other("not-an-exporter", "no container of it exports DCGM's figures")
    if not container.at("image").is_there and not node.at("spec", "selector").is_there and kind != "Pod":
        return other("patch", "it changes a manifest that is not here; audit what comes out: kubectl kustomize DIR")
    return Exporter(
        document=document, form=kind, name=name, namespace=_namespace(node), line=node.line, pod=pod,
        container=container,
    )  # fmt: skip


def _exporting(document: Document, node: Node, pod: Node) -> Node | None:
    """The container that exports: by its image, its name, what it runs or is told, else by the workload's own name."""
    containers = [each for each in pod.at("containers").entries if each.kind is Kind.MAPPING]
    for each in containers:
        told = [each.at("image").text, each.at("name").text, *(entry.text for entry in each.at("command").entries)]
        env = [entry.at("name").text for entry in each.at("env").entries]
        if any(_EXPORTER.search(document.shown(word)) for word in told) or any(
            name.startswith("DCGM_EXPORTER_") for name in env
        ):
            return each
    named = document.shown(node.at("metadata", "name").text)
    return containers[0] if containers and _EXPORTER.search(named) and len(containers) == 1 else None


def _of_application(document: Document, node: Node) -> tuple[list[Exporter | Other], list[Problem]]:
    """Argo CD: values as an object, or as a text in which YAML stands; parameters go before both."""
    found: list[Exporter | Other] = []
    unread: list[Problem] = []
    name, namespace = _name(document, node), node.at("spec", "destination", "namespace").text
    spec = node.at("spec")
    for source in (spec.at("source"), *spec.at("sources").entries):
        helm, chart = source.at("helm"), source.at("chart").text
        read, values, form = document, helm.at("valuesObject"), f"{name} helm.valuesObject"
        text = helm.at("values")
        if not values.is_there and text.text:
            inside, wrong = documents(Written(path=document.path, text="\n" * text.line + text.text))
            unread += wrong
            read, values, form = (inside[0], inside[0].root, f"{name} helm.values") if inside else (read, values, form)
        if helm.at("parameters").entries and values.kind is not Kind.TEXT:
            values, form = with_parameters(values, helm.at("parameters")), f"{name} helm"
        parts = list(_of_values(read, _for_chart(values, chart, source.line), namespace, form, chart))
        parts = _pinned(parts, chart, source.at("targetRevision").text)
        if parts and (elsewhere := [entry.text for entry in helm.at("valueFiles").entries]):
            parts, more = _elsewhere(document, source.line, name, ", ".join(elsewhere))
            unread += more
        found += parts or _other_chart(document, source.line, name, chart)
    return found, unread


def _pinned(parts: list[Exporter | Other], chart: str, version: str) -> list[Exporter | Other]:
    """Exporters with the chart that a release pins; a chart that holds others pins none of theirs."""
    if chart not in _CHARTS:
        return parts
    return [replace(part, chart=(chart, version)) if isinstance(part, Exporter) else part for part in parts]


def _for_chart(values: Node, chart: str, line: int) -> Node:
    """Values, or none at all, of a chart that exports: by its own defaults it does, and does not map processes."""
    if chart not in _CHARTS or values.kind is Kind.MAPPING:
        return values
    return Node(kind=Kind.MAPPING, line=line)


def _elsewhere(document: Document, line: int, name: str, files: str) -> tuple[list[Exporter | Other], list[Problem]]:
    """A release of which values lie where no text shows them: nothing of it is known, set or not."""
    why = f"values come from {files} too; audit what comes out: helm template ... | gpuledger audit manifests -"
    told = Other(document=document, line=line, name=f"release {name}", verdict="undecidable", why=why)
    return [told], [Problem(code="values-elsewhere", message=f"{name}: {why}", where=f"{document.path}:{line}")]


def _not_here(document: Document, line: int, name: str, why: str) -> Other:
    """An exporter that something makes whose ways are not known: what it makes can be audited."""
    made = "audit what it makes: kubectl get daemonset,clusterrole,clusterrolebinding -A -o yaml"
    return Other(document=document, line=line, name=name, verdict="made-elsewhere", why=f"{why}; {made}")


def _other_chart(document: Document, line: int, release: str, chart: str) -> list[Exporter | Other]:
    """A release of a chart that is called an exporter's, and is none of those that are known."""
    if not _EXPORTER.search(document.shown(chart)) or chart in _CHARTS:
        return []
    return [_not_here(document, line, f"release {release}", f"the chart {document.shown(chart)} is not known here")]


def _of_values(
    document: Document, values: Node, namespace: str, name: str, chart: str = ""
) -> Iterator[Exporter | Other]:
    """Exporters of chart values; a chart that holds others has theirs below the name of each."""
    if values.kind is not Kind.MAPPING:
        return
    operator = values.at("dcgmExporter")
    if operator.is_there and any(values.at(key).is_there for key in _CLOUDWATCH):
        why = "the operator of CloudWatch's observability makes the exporter"
        yield _not_here(document, operator.line, f"values of CloudWatch {name}".strip(), why)
        return
    for key, service in values.at("services").pairs:
        if _EXPORTER.search(f"{key} {document.shown(service.at('image').text)}") and service.kind is Kind.MAPPING:
            why = "a service of Docker Compose: there is no kubelet to ask, so no figure has a pod"
            yield Other(document=document, line=service.line, name=f"service {key}", verdict="no-pods", why=why)
    if operator.kind is Kind.MAPPING or chart == "gpu-operator":
        given = operator if operator.is_there else Node(kind=Kind.MAPPING, line=values.line)
        yield _of_operator(document, given, "values of the gpu-operator chart", name, namespace)
    elif chart == "dcgm-exporter" or _is_chart(document, values):
        yield _of_chart(document, values, name, namespace)
    else:
        for key, value in values.pairs:
            if value.kind is Kind.MAPPING and (_EXPORTER.search(key) or key == "gpu-operator"):
                yield from _of_values(document, value, namespace, f"{name} {key}".strip())


def _is_chart(document: Document, values: Node) -> bool:
    keys = {key for key, _ in values.pairs}
    env = [entry.at("name").text for entry in values.at("extraEnv").entries]
    return (
        bool(_EXPORTER.search(document.shown(values.at("image", "repository").text)))
        or any(name.startswith(("DCGM_", "KUBERNETES_VIRTUAL", "NVIDIA_RESOURCE")) for name in env)
        or values.at("kubernetes", "enablePodUID").is_there
        or values.at("kubernetes", "enablePodLabels").is_there
        or len(keys & _CHART_KEYS) >= 2
    )


def _of_chart(document: Document, values: Node, name: str, namespace: str) -> Exporter:
    """The pod that the dcgm-exporter chart makes."""
    kubernetes = values.at("kubernetes")
    labels, uid = kubernetes.at("enablePodLabels"), kubernetes.at("enablePodUID")
    dra = values.at("kubernetesDRA", "enabled")
    made = kubernetes.at("rbac", "create").truth is not False
    reads = bool((labels.truth or uid.truth) and made)
    env = [_variable("DCGM_EXPORTER_KUBERNETES", values.line), _variable("NODE_NAME", values.line, "spec.nodeName")]
    env += _switched("DCGM_EXPORTER_KUBERNETES_ENABLE_POD_LABELS", labels)
    env += _switched("DCGM_EXPORTER_KUBERNETES_ENABLE_POD_UID", uid)
    env += _switched("KUBERNETES_ENABLE_DRA", dra)
    context = values.at("securityContext")
    default = _mapping(
        values.line,
        runAsUser=_text("0", values.line),
        capabilities=_mapping(
            values.line,
            add=_list(values.line, _text("SYS_ADMIN", values.line)),
            drop=_list(values.line, _text("ALL", 0)),
        ),
        allowPrivilegeEscalation=_text("false", values.line),
    )
    container = _mapping(
        values.line,
        name=_text("exporter", values.line),
        image=_image(values.at("image", "repository"), values.at("image", "tag"), values.line),
        args=values.at("arguments"),
        env=_list(values.line, *env, *values.at("extraEnv").entries),
        securityContext=context if context.is_there else default,
        volumeMounts=_mounted(values.line),
    )
    kubelet = values.at("kubeletPath")
    pod = _pod(values, container, kubelet.text or POD_RESOURCES, token=reads or dra.truth is True)
    return Exporter(
        document=document, form="values of the dcgm-exporter chart", name=name,
        namespace=values.at("namespaceOverride").text or namespace, line=values.line, pod=pod, container=container,
        access=True if reads else None, from_values=True,
    )  # fmt: skip


def _of_operator(document: Document, given: Node, form: str, name: str, namespace: str = "") -> Exporter | Other:
    """The pod that the gpu-operator makes of its ``dcgmExporter`` settings."""
    if given.at("enabled").truth is False:
        why = "dcgmExporter.enabled is false: nothing exports GPU figures from here"
        return Other(
            document=document,
            line=given.at("enabled").line,
            name=f"{form} {name}".strip(),
            verdict="switched-off",
            why=why,
        )
    labels, uid = given.at("enablePodLabels"), given.at("enablePodUID")
    reads = bool(labels.truth or uid.truth)
    env = [_variable("DCGM_EXPORTER_KUBERNETES", given.line), _variable("NODE_NAME", given.line, "spec.nodeName")]
    env.append(_variable("DCGM_EXPORTER_COLLECTORS", given.line, "/etc/dcgm-exporter/dcp-metrics-included.csv"))
    env += _switched("DCGM_EXPORTER_KUBERNETES_ENABLE_POD_LABELS", labels)
    env += _switched("DCGM_EXPORTER_KUBERNETES_ENABLE_POD_UID", uid)
    repository = given.at("repository").text
    image = given.at("image").text or "dcgm-exporter"
    container = _mapping(
        given.line,
        name=_text("nvidia-dcgm-exporter", given.line),
        image=_image(_text(f"{repository}/{image}".strip("/"), given.line), given.at("version"), given.line),
        args=given.at("args"),
        env=_list(given.line, *env, *given.at("env").entries),
        securityContext=_mapping(given.line, privileged=_text("true", given.line)),
        volumeMounts=_mounted(given.line),
    )
    return Exporter(
        document=document, form=form, name=name, namespace=namespace, line=given.line,
        pod=_pod(given, container, POD_RESOURCES, token=reads), container=container, access=True if reads else None,
        from_values=True,
    )  # fmt: skip


def _pod(given: Node, container: Node, kubelet: str, *, token: bool) -> Node:
    volume = _mapping(
        given.line, name=_text("pod-gpu-resources", 0), hostPath=_mapping(given.line, path=_text(kubelet, given.line))
    )
    own = {key: given.at(key) for key in ("hostPID", "hostNetwork") if given.at(key).is_there}
    context = given.at("podSecurityContext")
    return _mapping(
        given.line,
        **own,
        securityContext=context if context.is_there else NOTHING,
        automountServiceAccountToken=_text("true" if token else "false", given.line),
        volumes=_list(given.line, volume),
        containers=_list(given.line, container),
    )


def _switched(name: str, node: Node) -> list[Node]:
    """A variable that the chart sets where a value is true."""
    if node.opaque:
        return [_mapping(node.line, name=_text(name, node.line), value=node)]
    return [_variable(name, node.line)] if node.truth else []


def _variable(name: str, line: int, value: str = "true") -> Node:
    return _mapping(line, name=_text(name, line), value=_text(value, line))


def _mounted(line: int) -> Node:
    mount = _mapping(line, name=_text("pod-gpu-resources", line), mountPath=_text(POD_RESOURCES, line))
    return _list(line, mount)


def _image(repository: Node, tag: Node, line: int) -> Node:
    name = repository.text or "dcgm-exporter"
    return _text(f"{name}:{tag.text}" if tag.text else name, tag.line or repository.line or line)


def _text(text: str, line: int) -> Node:
    return Node(kind=Kind.TEXT, text=text, line=line, plain=True)


def _list(line: int, *entries: Node) -> Node:
    return Node(kind=Kind.LIST, line=line, entries=entries)


def _mapping(line: int, **pairs: Node) -> Node:
    return Node(kind=Kind.MAPPING, line=line, pairs=tuple((key, node) for key, node in pairs.items() if node.is_there))


def _name(document: Document, node: Node) -> str:
    return document.shown(node.at("metadata", "name").text)


def _namespace(node: Node) -> str:
    """A namespace that is really one: neither a template nor a sentence that somebody else will replace."""
    namespace = node.at("metadata", "namespace")
    return (
        "" if namespace.opaque or not re.fullmatch(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?", namespace.text) else namespace.text
    )
