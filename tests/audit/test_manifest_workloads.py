"""Every form in which an exporter is written down, brought to one pod."""

from __future__ import annotations

import pytest

from gpuledger.audit.documents import documents
from gpuledger.audit.manifest_workloads import Exporter, Other, exporters
from gpuledger.model.findings import Written

POD = "{containers: [{name: c, image: nvcr.io/nvidia/k8s/dcgm-exporter:4.5.3-4.8.2-distroless}]}"
CHART = (
    "image: {repository: nvcr.io/nvidia/k8s/dcgm-exporter, tag: 4.5.3-4.8.2-ubi9}\n"
    "hostPID: true\nkubernetes: {enablePodUID: true}\n"
)
OF_CHART = "values of the dcgm-exporter chart"
OF_OPERATOR = "values of the gpu-operator chart"
SET = f"kind: DaemonSet\nmetadata: {{name: d, namespace: n}}\nspec: {{template: {{spec: {POD}}}}}"
LIST = f"kind: List\nitems: [{{kind: DaemonSet, metadata: {{name: d}}, spec: {{template: {{spec: {POD}}}}}}}]"
HELD = "dcgm-exporter:\n" + "".join(f"  {row}\n" for row in CHART.splitlines())
FLUX = (
    "kind: HelmRelease\nmetadata: {name: r, namespace: n}\n"
    "spec: {values: {hostPID: true, kubernetes: {enablePodUID: true}}}"
)
ARGO = (
    "kind: Application\nmetadata: {name: a}\n"
    "spec: {destination: {namespace: n}, source: {helm: {valuesObject: {dcgmExporter: {hostPID: true}}}}}"
)
ARGO_TEXT = (
    "kind: Application\nmetadata: {name: a}\n"
    "spec:\n  sources:\n  - helm:\n      values: |\n        hostPID: true\n        kubeletPath: /k\n"
)
OTHER = "kind: DaemonSet\nmetadata: {name: d}\nspec: {template: {spec: {containers: [{name: x, image: nginx}]}}}"
PATCH = (
    "kind: DaemonSet\nmetadata: {name: dcgm-exporter}\n"
    "spec: {template: {spec: {containers: [{name: exporter, env: []}]}}}"
)


def found_in(text: str) -> list[Exporter | Other]:
    read, unread = documents(Written(path="f.yaml", text=text))
    assert not unread
    return [part for document in read for part in exporters(document)[0]]


@pytest.mark.parametrize(
    ("text", "form", "name", "namespace"),
    [
        (SET, "DaemonSet", "d", "n"),
        (f"kind: Pod\nmetadata: {{name: p}}\nspec: {POD}", "Pod", "p", ""),
        (LIST, "DaemonSet", "d", ""),
        (CHART, OF_CHART, "", ""),
        (HELD, OF_CHART, "dcgm-exporter", ""),
        ("extraEnv: [{name: KUBERNETES_VIRTUAL_GPUS, value: 'true'}]", OF_CHART, "", ""),
        ("dcgmExporter: {enabled: true, version: 4.6.0-4.8.3-distroless}", OF_OPERATOR, "", ""),
        ("gpu-operator: {dcgmExporter: {hostPID: true}}", OF_OPERATOR, "gpu-operator", ""),
        ("kind: ClusterPolicy\nmetadata: {name: cp}\nspec: {dcgmExporter: {enabled: true}}", "ClusterPolicy", "cp", ""),
        (FLUX, OF_CHART, "r spec.values", "n"),
        (ARGO, OF_OPERATOR, "a helm.valuesObject", "n"),
        (ARGO_TEXT, OF_CHART, "a helm.values", ""),
    ],
)  # fmt: skip
def test_forms(text: str, form: str, name: str, namespace: str) -> None:
    """Workloads, lists, values alone and inside others, ClusterPolicy, Flux and Argo CD."""
    (part,) = found_in(text)
    assert isinstance(part, Exporter)
    assert (part.form, part.name, part.namespace) == (form, name, namespace)
    assert part.pod.at("containers", 0).is_there


def test_values_inside_a_text_have_their_lines() -> None:
    """As an editor would open them."""
    (part,) = found_in(ARGO_TEXT)
    assert isinstance(part, Exporter)
    assert part.pod.at("hostPID").line == 7


def test_the_pod_of_the_chart() -> None:
    """As the chart makes it: variables, token, mounts, the rights it gives itself by default."""
    (part,) = found_in(CHART)
    assert isinstance(part, Exporter)
    names = [entry.at("name").text for entry in part.container.at("env").entries]
    assert "DCGM_EXPORTER_KUBERNETES_ENABLE_POD_UID" in names
    assert part.pod.at("automountServiceAccountToken").truth is True
    assert part.access is True
    assert part.container.at("image").text.endswith("dcgm-exporter:4.5.3-4.8.2-ubi9")
    assert part.container.at("securityContext", "capabilities", "add", 0).text == "SYS_ADMIN"
    (without,) = found_in(f"{CHART.replace('enablePodUID: true', 'enablePodUID: true, rbac: {create: false}')}")
    assert isinstance(without, Exporter)
    assert (without.access, without.pod.at("automountServiceAccountToken").truth) == (None, False)


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        (OTHER, "not-an-exporter"),
        (PATCH, "patch"),
        ("dcgmExporter: {enabled: false}", "switched-off"),
    ],
)  # fmt: skip
def test_what_is_no_exporter_is_told(text: str, verdict: str) -> None:
    """Others, patches of manifests that are not here, and one that is switched off."""
    (part,) = found_in(text)
    assert isinstance(part, Other)
    assert part.verdict == verdict


def test_other_values_are_left_alone() -> None:
    """A chart that has nothing to do with it."""
    assert found_in("image: {repository: nginx}\nreplicas: 3") == []


ARGO_CHART = "kind: Application\nmetadata: {name: a}\nspec: {source: {chart: %s, helm: {%s}}}"
FLUX_CHART = "kind: HelmRelease\nmetadata: {name: r}\nspec: {chart: {spec: {chart: %s}}%s}"


@pytest.mark.parametrize(
    ("text", "form"),
    [
        (ARGO_CHART % ("dcgm-exporter", ""), OF_CHART),
        (ARGO_CHART % ("gpu-operator", ""), OF_OPERATOR),
        (FLUX_CHART % ("dcgm-exporter", ""), OF_CHART),
        (FLUX_CHART % ("gpu-operator", ""), OF_OPERATOR),
    ],
)
def test_a_chart_without_values_exports_by_its_own(text: str, form: str) -> None:
    """Its defaults map no processes, so that it is no clean release."""
    (exporter,) = found_in(text)
    assert isinstance(exporter, Exporter)
    assert (exporter.form, exporter.pod.at("hostPID").is_there) == (form, False)


def test_parameters_go_before_values() -> None:
    """As Argo CD has it."""
    given = "parameters: [{name: hostPID, value: 'true'}], valuesObject: {hostPID: false, kubeletPath: /k}"
    (exporter,) = found_in(ARGO_CHART % ("dcgm-exporter", given))
    assert isinstance(exporter, Exporter)
    assert exporter.pod.at("hostPID").truth is True


@pytest.mark.parametrize(
    "text",
    [
        ARGO_CHART % ("gpu-operator", "valueFiles: [prod.yaml]"),
        FLUX_CHART % ("gpu-operator", ", valuesFrom: [{kind: ConfigMap, name: prod.yaml}]"),
    ],
)
def test_values_that_lie_elsewhere_are_told(text: str) -> None:
    """What they set is not known, so nothing of the release is judged."""
    (document,) = documents(Written(path="f.yaml", text=text))[0]
    (part,), (problem,) = exporters(document)
    assert isinstance(part, Other)
    assert (part.verdict, problem.code) == ("undecidable", "values-elsewhere")
    assert "prod.yaml" in problem.message


@pytest.mark.parametrize(
    ("text", "name", "verdict", "why"),
    [
        ("apiVersion: cloudwatch.aws.amazon.com/v1alpha1\nkind: DcgmExporter\nmetadata: {name: d}\nspec: {image: x}",
         "DcgmExporter d", "made-elsewhere", "the operator of DcgmExporter makes"),
        ("apiVersion: nvidia.com/v1alpha1\nkind: GPUStack\nmetadata: {name: g}\nspec: {dcgmExporter: {enabled: true}}",
         "GPUStack g", "made-elsewhere", "the operator of GPUStack makes"),
        ("neuronMonitor: {}\ngpuInstances: [p3]\ndcgmExporter: {image: {tag: x}}",
         "values of CloudWatch", "made-elsewhere", "the operator of CloudWatch's"),
        (FLUX_CHART % ("own-dcgm-exporter", ""), "release r", "made-elsewhere", "the chart own-dcgm-exporter"),
        (ARGO_CHART % ("own-dcgm-exporter", ""), "release a", "made-elsewhere", "the chart own-dcgm-exporter"),
        ("services: {gpu: {image: 'nvidia/dcgm-exporter:4.2.3-4.1.3'}, db: {image: x}}",
         "service gpu", "no-pods", "a service of Docker Compose"),
    ],
)  # fmt: skip
def test_what_others_make_is_told(text: str, name: str, verdict: str, why: str) -> None:
    """Never silence, and never judged by the defaults of a chart that it is not."""
    (document,) = documents(Written(path="f", text=text))[0]
    ((found,), wrong) = exporters(document)
    assert isinstance(found, Other)
    assert (found.name, found.verdict) == (name, verdict)
    assert found.why.startswith(why)
    assert [problem.code for problem in wrong] == (["made-elsewhere"] if verdict == "made-elsewhere" else [])
    assert all("kubectl get daemonset" in problem.message for problem in wrong)
