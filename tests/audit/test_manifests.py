"""Exporters judged: one of ours that has everything, each thing taken away, and the real ones argued one by one."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from gpuledger.audit.exception_drafts import DraftKind
from gpuledger.audit.manifests import WantedDraft, audit_manifests
from gpuledger.model.findings import AuditReport, Level, Written
from gpuledger.model.moments import parse_moment

NOW = parse_moment("2026-11-29", now_us=0)
SHARED = Path(__file__).resolve().parents[3] / "shared" / "data"
GOOD = """\
apiVersion: v1
kind: Namespace
metadata:
  name: gpu
  labels: {pod-security.kubernetes.io/enforce: privileged}
  annotations: {gpuledger/exception-owner: ana, gpuledger/exception-until: 2027-01-31}
---
kind: ClusterRole
metadata: {name: reads-pods}
rules: [{apiGroups: [""], resources: [pods], verbs: [get, list, watch]}]
---
kind: ClusterRoleBinding
metadata: {name: reads-pods}
roleRef: {kind: ClusterRole, name: reads-pods}
subjects: [{kind: ServiceAccount, name: dcgm, namespace: gpu}]
---
kind: DaemonSet
metadata: {name: dcgm-exporter, namespace: gpu}
spec:
  selector: {matchLabels: {a: b}}
  template:
    spec:
      hostPID: true
      serviceAccountName: dcgm
      automountServiceAccountToken: true
      containers:
      - name: exporter
        image: nvcr.io/nvidia/k8s/dcgm-exporter:4.5.3-4.8.2-distroless
        env:
        - {name: DCGM_EXPORTER_KUBERNETES, value: "true"}
        - {name: KUBERNETES_VIRTUAL_GPUS, value: "true"}
        - {name: DCGM_EXPORTER_KUBERNETES_ENABLE_POD_UID, value: "true"}
        - {name: NVIDIA_RESOURCE_NAMES, value: "nvidia.com/gpu,nvidia.com/gpu.shared"}
        - {name: DCGM_EXPORTER_COLLECTORS, value: /etc/dcgm-exporter/dcp-metrics-included.csv}
        securityContext: {capabilities: {add: [SYS_ADMIN]}}
        volumeMounts: [{name: pr, mountPath: /var/lib/kubelet/pod-resources}]
      volumes: [{name: pr, hostPath: {path: /var/lib/kubelet/pod-resources}}]
"""


def audited(*texts: str, **words) -> AuditReport:
    written = tuple(Written(path=f"{place}.yaml", text=text) for place, text in enumerate(texts))
    return audit_manifests(written, now_us=NOW, **words)


def verdicts(*texts: str) -> set[str]:
    return {finding.check.verdict for finding in audited(*texts).findings}


def test_one_that_has_everything() -> None:
    """Nothing to say, and it is said what was looked at."""
    report = audited(GOOD)
    assert (report.findings, report.unread) == ((), ())
    assert [(each.verdict, each.where.line) for each in report.looked] == [("fine", 17)]
    assert dict(report.facts)["Pod Security level that admits them"] == "privileged"


@pytest.mark.parametrize(
    ("old", "new", "struck"),
    [
        ('{name: DCGM_EXPORTER_KUBERNETES, value: "true"}', "{name: X, value: y}", {"kubernetes-off"}),
        ('VIRTUAL_GPUS, value: "true"', 'VIRTUAL_GPUS, value: "false"', {"one-pod-per-gpu"}),
        ("hostPID: true", "hostPID: false", {"no-host-pid"}),
        ('POD_UID, value: "true"', 'POD_LABELS, value: "true"', {"no-pod-uid"}),
        ("automountServiceAccountToken: true", "automountServiceAccountToken: false", {"no-token"}),
        ("[get, list, watch]", "[get]", {"no-access"}),
        ("name: dcgm, namespace: gpu", "name: other, namespace: gpu", {"access-unseen"}),
        ("mountPath: /var/lib/kubelet/pod-resources", "mountPath: /elsewhere", {"no-pod-resources"}),
        ("hostPath: {path: /var/lib/kubelet/pod-resources}", "emptyDir: {}", {"no-pod-resources"}),
        ("4.5.3-4.8.2", "4.5.2-4.8.1", {"too-old"}),
        (":4.5.3-4.8.2-distroless", ":latest", {"version-unknown"}),
        ("add: [SYS_ADMIN]", "drop: [ALL]", {"no-profiling"}),
        ("{name: NVIDIA_RESOURCE_NAMES", "{name: X", {"resource-names-unset"}),
        ("        env:\n", "        args: [--fake-gpus]\n        env:\n", {"fake-gpus"}),
        ("        env:\n", "        args: [-o]\n        env:\n", {"old-names"}),
        ("enforce: privileged", "enforce: baseline", {"rejected"}),
        ("enforce: privileged", "warn: baseline", {"needs-privileged"}),
        ("gpuledger/exception-owner: ana, ", "", {"exception-unsigned"}),
        ("exception-until: 2027-01-31", "exception-until: soon", {"exception-unsigned"}),
        ("exception-until: 2027-01-31", "exception-until: 2026-11-29", {"exception-over"}),
        ('VIRTUAL_GPUS, value: "true"', "VIRTUAL_GPUS, valueFrom: {secretKeyRef: {name: s, key: k}}", {"undecidable"}),
    ],
)  # fmt: skip
def test_each_thing_that_can_be_missing(old: str, new: str, struck: set[str]) -> None:
    """It strikes alone, and its own line is told."""
    assert old in GOOD
    assert verdicts(GOOD.replace(old, new)) == struck


def test_other_ways_to_have_it() -> None:
    """Flags for variables, a whole kubelet folder mounted, another kubelet root, the account's own token rule."""
    flags = GOOD.replace('{name: KUBERNETES_VIRTUAL_GPUS, value: "true"}', "{name: X, value: y}").replace(
        "        env:\n", "        args: [--kubernetes-virtual-gpus]\n        env:\n"
    )
    assert verdicts(flags) == set()
    kubelet = GOOD.replace("/var/lib/kubelet/pod-resources", "/var/lib/kubelet")
    assert verdicts(kubelet) == set()
    root = GOOD.replace("path: /var/lib/kubelet/pod-resources}", "path: /data/kubelet/pod-resources/}")
    assert verdicts(root) == set()
    account = "kind: ServiceAccount\nmetadata: {name: dcgm}\nautomountServiceAccountToken: false\n"
    assert verdicts(GOOD, account) == set()
    silent = GOOD.replace("      automountServiceAccountToken: true\n", "")
    assert verdicts(silent) == set()
    assert verdicts(silent, account) == {"no-token"}


def test_names_that_others_use() -> None:
    """A config of the device plugin, or a pod, that asks for a name which is not listed."""
    unlisted = GOOD.replace("nvidia.com/gpu,nvidia.com/gpu.shared", "nvidia.com/gpu")
    sharing = "sharing: {timeSlicing: {renameByDefault: true, resources: [{name: nvidia.com/gpu, replicas: 4}]}}"
    assert verdicts(unlisted, sharing) == {"resource-names"}
    assert verdicts(GOOD, sharing) == set()
    claims = "kind: ResourceSlice\nspec: {driver: gpu.nvidia.com}"
    assert verdicts(GOOD, claims) == {"dra-off"}


def test_an_old_version_does_not_map_whatever_it_is_told() -> None:
    """The finding says so: settings alone prove nothing."""
    (finding,) = audited(GOOD.replace("4.5.3-4.8.2", "3.1.3-3.1.2")).findings
    assert "whatever KUBERNETES_VIRTUAL_GPUS" in finding.message


def test_what_to_do_in_order() -> None:
    """A step for each fault, none for notes."""
    report = audited(
        GOOD.replace("hostPID: true", "hostPID: false").replace("{name: NVIDIA_RESOURCE_NAMES", "{name: X")
    )
    assert {finding.check.level for finding in report.findings} == {Level.ERROR, Level.NOTE}
    assert len(report.checklist) == 1
    assert "hostPID: true" in report.checklist[0]


def test_a_draft_of_the_exception() -> None:
    """With the host's processes, which it needs and does not have yet."""
    wanted = WantedDraft(kind=DraftKind.PLAIN, owner="ana", until_us=NOW + 1)
    text = audited(GOOD.replace("hostPID: true", "hostPID: false"), wanted=wanted).draft
    assert "hostPID: true, which it needs" in text
    assert "name: gpu" in text


@pytest.mark.parametrize(
    "text",
    ["a: [", "\x00\x01", "[" * 500, "a: &a [x]\nb: &b [*a, *a]\nc: [*b, *b, *c]", "", "just words"],
)  # fmt: skip
def test_bad_texts_do_not_hide_the_good(text: str) -> None:
    """Told as unread, or empty; the others are judged."""
    report = audited(text, GOOD)
    assert [each.verdict for each in report.looked] == ["fine"]


def test_nothing_here_exports() -> None:
    """Said, so that a clean report is not taken for a clean exporter."""
    report = audited("kind: Service\nmetadata: {name: s}")
    assert dict(report.facts)["exporters"].startswith("none")


def real(*places: str) -> AuditReport:
    """The audit of real inputs."""
    if not SHARED.exists():
        if os.environ.get("CI"):
            pytest.fail("../shared/data is not there")
        pytest.skip("../shared/data is not there")
    texts = tuple(Written(path=place, text=(SHARED / place).read_text(encoding="utf-8")) for place in places)
    return audit_manifests(texts, now_us=NOW)


def struck(report: AuditReport) -> dict[str, int]:
    return {finding.check.verdict: finding.where.line for finding in report.findings}


def test_the_manifest_of_the_exporters_own_repository() -> None:
    """4.5.3-4.8.2 could do it, and is not told to: no virtual GPUs, no host pids, no UIDs, no token to ask for them.

    It mounts pod-resources, so that is no fault. SYS_ADMIN and the host's folder make baseline reject it already.
    """
    report = real("dcgm/dcgm-exporter-conf/dcgm-exporter.yaml")
    assert set(struck(report)) == {
        "one-pod-per-gpu", "no-host-pid", "no-pod-uid", "no-token", "resource-names-unset", "needs-privileged",
    }  # fmt: skip
    assert struck(report)["no-token"] == 36
    assert report.unread == ()


def test_the_operators_own_daemonset() -> None:
    """The same four, and an image that the operator fills in: which version it is nobody can tell from here."""
    assert set(struck(real("dcgm/dcgm-exporter-conf/gpu-operator-0800_daemonset.yaml"))) == {
        "one-pod-per-gpu", "no-host-pid", "no-pod-uid", "no-token", "version-unknown", "resource-names-unset",
        "needs-privileged",
    }  # fmt: skip


def test_the_values_of_the_exporters_chart() -> None:
    """The chart's defaults lack the same four; its monitor lets Prometheus rename the pod label."""
    found = struck(real("dcgm/dcgm-exporter-conf/helm-values.yaml"))
    assert set(found) == {
        "one-pod-per-gpu", "no-host-pid", "no-pod-uid", "no-token", "resource-names-unset", "needs-privileged",
        "honor-labels",
    }  # fmt: skip
    assert (found["no-host-pid"], found["honor-labels"]) == (54, 132)


def test_the_template_of_the_exporters_chart() -> None:
    """No YAML before Helm fills it: what it fixes is judged, what values give is undecidable, nothing is guessed."""
    report = real("dcgm/dcgm-exporter-conf/helm-daemonset.tpl.yaml")
    assert set(struck(report)) == {"version-unknown", "undecidable", "needs-privileged"}
    (undecided,) = [finding for finding in report.findings if finding.check.verdict == "undecidable"]
    told = " ".join(undecided.evidence)
    for words in ("hostPID: {{ .Values.hostPID | default false }}", "KUBERNETES_VIRTUAL_GPUS", "POD_UID"):
        assert words in told
    assert not report.found()


def test_the_values_of_the_operators_chart() -> None:
    """4.6.0-4.8.3 could do it; hostPID is false and enablePodUID too, so the operator mounts no token either."""
    found = struck(real("k8s/gpu-operator-values.yaml"))
    assert set(found) == {
        "one-pod-per-gpu", "no-host-pid", "no-pod-uid", "no-token", "resource-names-unset", "needs-privileged",
        "honor-labels",
    }  # fmt: skip
    assert found["no-host-pid"] == 308


def test_values_beside_the_configs_they_meet() -> None:
    """With the config of device-plugin #321 (renameByDefault), gpu.shared is missing; with DRA claims, so is DRA."""
    found = struck(
        real(
            "k8s/gpu-operator-values.yaml",
            "k8s/time-slicing/issue_device-plugin-321_renameByDefault.yaml",
            "k8s/dra/bats_gpu-timeslicing.yaml",
        )
    )
    assert {"resource-names", "dra-off"} <= set(found)
    assert "resource-names-unset" not in found


def test_an_exporter_that_is_switched_off() -> None:
    """The values of gpu-operator #835: dcgmExporter.enabled is false, which is no fault and is said."""
    report = real("k8s/time-slicing/issue_gpu-operator-835_helm_values.yaml")
    assert report.findings == ()
    assert [each.verdict for each in report.looked] == ["switched-off"]


def test_device_plugins_are_no_exporters() -> None:
    """They are looked at, and not judged by rules of others."""
    report = real("k8s/device-plugin/nvidia-device-plugin.yml", "k8s/dra/demo_v1_gpu-test4.yaml")
    assert report.findings == ()
    assert {each.verdict for each in report.looked} == {"not-an-exporter"}


RELEASE = """\
kind: HelmRelease
metadata: {name: r, namespace: gpu}
spec:
  chart: {spec: {chart: %s, version: "%s"}}
  values: %s
"""


@pytest.mark.parametrize(
    ("chart", "version", "values", "struck"),
    [
        ("dcgm-exporter", "4.8.2", "{}", set()),
        ("dcgm-exporter", "4.7.0", "{}", {"too-old"}),
        ("dcgm-exporter", "4.x", "{}", {"version-unknown"}),
        ("dcgm-exporter", "4.8.2", "{image: {tag: 4.4.1-4.5.2-ubuntu22.04}}", {"too-old"}),
        ("dcgm-exporter", "4.7.0", "{image: {tag: 4.5.3-4.8.2-distroless}}", set()),
        ("dcgm-exporter", "4.8.2", "{image: {tag: latest}}", {"version-unknown"}),
        ("gpu-operator", "v25.3.3", "{dcgmExporter: {}}", {"too-old"}),
        ("gpu-operator", "v26.3.2", "{dcgmExporter: {}}", set()),
    ],
)
def test_a_release_that_pins_its_chart(chart: str, version: str, values: str, struck: set[str]) -> None:
    """Where its values name no tag, the chart's version tells the exporter's."""
    found = verdicts(RELEASE % (chart, version, values)) & {"too-old", "version-unknown"}
    assert found == struck


CONSTRAINT = "kind: SecurityContextConstraints\nmetadata: {name: restricted-v2}\ngroups: ['system:authenticated']\n"
USES = (
    "kind: RoleBinding\nmetadata: {name: b, namespace: gpu}\n"
    "roleRef: {kind: ClusterRole, name: 'system:openshift:scc:privileged'}\n"
    "subjects: [{kind: ServiceAccount, name: dcgm, namespace: gpu}]\n"
)


def test_a_constraint_that_is_not_here() -> None:
    """The account may use it by a binding: whether its pods are made cannot be told, and is no error."""
    assert verdicts(GOOD, CONSTRAINT) == {"constrained"}
    (finding,) = audited(GOOD, CONSTRAINT, USES).findings
    assert finding.check.verdict == "undecidable"
    why = "ClusterRole system:openshift:scc:privileged lets it use privileged, which is not here"
    assert finding.evidence == (f"OpenShift's constraint of its pods: {why}",)
